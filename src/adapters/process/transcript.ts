// The raw bytes of everything that an agent or a gate prints, on disk, up to a size.
import { closeSync, constants, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { faultMessage } from './fault.ts'

export interface Transcript {
  write(chunk: Buffer): void
  close(): void
}

/** Appends: what an earlier run of the same iteration said stays. `warn` is called at most once. */
export function openTranscript(
  path: string,
  maxBytes: number,
  warn: (message: string) => void,
  whose = 'the agent',
): Transcript {
  const Whose = `${whose[0]?.toUpperCase() ?? ''}${whose.slice(1)}`
  let file: number | undefined
  let written = 0

  const giveUp = (message: string): void => {
    if (file !== undefined) closeSync(file)
    file = undefined
    warn(message)
  }
  try {
    mkdirSync(dirname(path), { recursive: true })
    // Not a wait for ever where an agent has put a pipe there.
    const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK
    file = openSync(path, appending, 0o600)
  } catch (error) {
    giveUp(`${Whose}'s output cannot be kept in ${path}: ${faultMessage(error)}`)
  }

  return {
    write(chunk) {
      if (file === undefined) return
      const part = chunk.subarray(0, maxBytes - written)
      try {
        // Synchronous: the pipe is not read meanwhile, so the agent waits for the disk and nothing piles up in memory.
        for (let at = 0; at < part.length;) at += writeSync(file, part, at)
      } catch (error) {
        giveUp(`${Whose}'s output is no longer kept in ${path}: ${faultMessage(error)}`)
        return
      }
      written += part.length
      if (part.length < chunk.length) {
        giveUp(`${Whose} printed more than ${maxBytes} bytes; the rest is not kept in ${path}`)
      }
    },
    close() {
      if (file !== undefined) closeSync(file)
      file = undefined
    },
  }
}
