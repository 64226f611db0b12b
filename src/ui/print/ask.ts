// Asks one question on a terminal in its normal line mode, so that Ctrl-C and even kill -9 leave it sane.
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { ReadStream } from 'node:tty'
import type { Io } from '../io.ts'

export interface Question<Answer> {
  readonly lines: readonly string[]
  readonly prompt: string
  /** What a line means; undefined asks again. */
  readonly interpret: (word: string) => Answer | undefined
  readonly again: string
}

/** Undefined: the input ended, or a stop came first. */
export async function ask<Answer>(
  { stdin, stdout }: Pick<Io, 'stdin' | 'stdout'>,
  { lines, prompt, interpret, again }: Question<Answer>,
  stop: AbortSignal,
): Promise<Answer | undefined> {
  if (stop.aborted) return undefined
  stdout.write([...lines, prompt].join('\n'))
  const reader = createInterface({ input: stdin, terminal: false })
  try {
    return await new Promise((resolve) => {
      const nobody = (): void => resolve(undefined)
      stop.addEventListener('abort', nobody, { once: true })
      reader.on('close', nobody)
      reader.on('line', (line) => {
        const answer = interpret(line.trim().toLowerCase())
        if (answer === undefined) stdout.write(again)
        else resolve(answer)
      })
    })
  } finally {
    reader.close()
    stdin.pause()
  }
}

/** What was typed before a question was there to be read is no answer to it; half a line stays. */
export function dropTyped(stdin: Io['stdin']): void {
  // A stand-in for a terminal has no device.
  if (!(stdin instanceof ReadStream)) return
  let device: number | undefined
  try {
    device = openSync('/dev/tty', constants.O_RDONLY | constants.O_NONBLOCK)
    const typed = Buffer.alloc(4096)
    while (readSync(device, typed) > 0);
  } catch (error) {
    // EAGAIN: nothing is left. Any other: the terminal cannot be read this way, and the question is asked all the same.
    if (!(error instanceof Error && 'code' in error)) throw error
  } finally {
    if (device !== undefined) closeSync(device)
  }
}
