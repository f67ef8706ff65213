// In place of the package's manager: settings are kept until a command is wrapped, and our `srt` does the rest.

import { wrapped } from '../srt.js'

let current: any = {}

/** Settings with parts of others in place of their own. */
const merged = (custom: any) => {
  const all: any = { ...current, ...custom }
  for (const part of ['network', 'filesystem']) all[part] = { ...current[part], ...custom?.[part] }
  return all
}

export const SandboxManager = {
  async initialize(config: unknown) {
    current = config
  },
  async reset() {
    current = {}
  },
  async wrapWithSandbox(command: string, shell?: string, custom?: unknown) {
    return wrapped(custom ? merged(custom) : current, command, shell)
  },
}
