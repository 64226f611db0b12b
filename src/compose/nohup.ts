// Whether `nohup` started the program. Node takes every signal back when it starts, so the system no longer tells that HUP was to be ignored.
import { readFileSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'

export function isUnderNohup(env: NodeJS.ProcessEnv): boolean {
  // Most shells name there what they were asked to start.
  return basename(env['_'] ?? '') === 'nohup' || hasInputOfNohup()
}

/** In a terminal's place nohup opens /dev/null for writing only; nobody else makes such a stdin. */
function hasInputOfNohup(): boolean {
  try {
    const isWriteOnly = /^flags:\s*\d*1$/m.test(readFileSync('/proc/self/fdinfo/0', 'utf8'))
    return isWriteOnly && readlinkSync('/proc/self/fd/0') === '/dev/null'
  } catch {
    // Only Linux has these files.
    return false
  }
}
