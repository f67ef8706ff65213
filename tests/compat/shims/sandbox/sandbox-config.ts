// In place of the package's schema: settings are valid where our `srt` takes them, which it says before it would run anything.

import { spawnSync } from 'node:child_process'
import { SRT, settingsFile } from '../srt.js'

export const SandboxRuntimeConfigSchema = {
  safeParse(data: any) {
    const ended = spawnSync(SRT, ['run', '--settings', settingsFile(data), '--print-policy'], { encoding: 'utf8' })
    return ended.status === 0 ? { success: true, data } : { success: false, error: new Error(ended.stderr) }
  },
}
