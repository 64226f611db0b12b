// What is typed while no question is there: the terminal shows it all the same, and moves the cursor for it.
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import type { Io } from '../io.ts'

/** What was typed before a question was there to be read is no answer to it; half a line stays. */
export function dropTyped(stdin: Io['stdin']): void {
  // A stand-in for a terminal has no device.
  if (stdin instanceof ReadStream) readTyped()
}

/**
 * How often Enter was pressed since the last time: each has moved the cursor down a row. The terminal stays in its normal mode, so that
 * Ctrl-C works and even kill -9 leaves it sane; and who reads in the background would be stopped, so then nothing is read.
 */
export function typedRows(stdin: Io['stdin']): () => number {
  if (!(stdin instanceof ReadStream)) return () => 0
  return () => (isInForeground() ? readTyped() : 0)
}

/** How many lines there were. */
function readTyped(): number {
  let device: number | undefined
  let lines = 0
  try {
    device = openSync('/dev/tty', constants.O_RDONLY | constants.O_NONBLOCK)
    const typed = Buffer.alloc(4096)
    for (let length = readSync(device, typed); length > 0; length = readSync(device, typed))
      for (const byte of typed.subarray(0, length)) if (byte === lineFeed) lines += 1
  } catch (error) {
    // EAGAIN: nothing is left. Any other: the terminal cannot be read this way, and all goes on without it.
    if (!(error instanceof Error && 'code' in error)) throw error
  } finally {
    if (device !== undefined) closeSync(device)
  }
  return lines
}

const lineFeed = 10

/** Where nobody can tell it is not. */
function isInForeground(): boolean {
  try {
    const [, , group, , , owner] = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return group === owner
  } catch (error) {
    // Only Linux has this file.
    if (!(error instanceof Error && 'code' in error)) throw error
    return false
  }
}
