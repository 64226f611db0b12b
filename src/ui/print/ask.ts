// Asks one question on a terminal in its normal line mode, so that Ctrl-C and even kill -9 leave it sane.
import { createInterface } from 'node:readline'
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
