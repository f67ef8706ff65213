// In place of what builds a command for one system: what it is told is written down as settings, for our `srt`.

import { wrapped } from '../srt.js'

export async function wrapCommandWithSandboxLinux(told: any) {
  const { command, writeConfig, readConfig, allowGitConfig, binShell } = told
  const settings = {
    // Whatever the network would be: settings cannot open all of it, and these tests are about files.
    network: { allowedDomains: [], deniedDomains: [] },
    filesystem: {
      denyRead: readConfig?.denyOnly ?? [],
      allowWrite: writeConfig ? writeConfig.allowOnly : ['/'],
      denyWrite: writeConfig?.denyWithinAllow ?? [],
      allowGitConfig: allowGitConfig ?? false,
    },
  }
  return wrapped(settings, command, binShell)
}
