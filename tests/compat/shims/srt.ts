// How each shim starts our `srt`: settings in a file of their own, a command as the shell line that a test runs.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const SRT = process.env.COMPAT_SRT!

// Not where a sandbox has its own temporary directory.
const folder = mkdtempSync(join(process.env.COMPAT_SCRATCH ?? tmpdir(), 'settings-'))
let number = 0

export const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

export function settingsFile(config: unknown): string {
  number += 1
  const file = join(folder, `${number}.json`)
  writeFileSync(file, JSON.stringify(config))
  return file
}

/** The line for a shell that runs a command under settings. */
export function wrapped(config: unknown, command: string, shell?: string): string {
  const start = `${quoted(SRT)} run --settings ${quoted(settingsFile(config))}`
  return `exec ${start} -- ${quoted(shell ?? 'bash')} -c ${quoted(command)}`
}
