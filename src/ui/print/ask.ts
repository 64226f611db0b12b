// Asks one question on a terminal in its normal line mode, so that Ctrl-C and even kill -9 leave it sane.
import { createInterface } from 'node:readline'
import { isTerminal, type Io } from '../io.ts'
import { RalphError } from '../../core/error.ts'
import { folded } from './layout.ts'

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

export function confirmAt(io: Io, stop: AbortSignal): (question: string) => Promise<boolean> {
  return async (question) => {
    if (!isTerminal(io.stdin) || !isTerminal(io.stdout)) {
      throw new RalphError('usage', `${question} There is no terminal to ask on.`, {
        hint: 'Nothing was deleted. To delete without a question, add: --yes',
      })
    }
    const lines = folded(`${question} [y/N]`, io.stdout.columns).split('\n')
    const answer = await ask(
      io,
      {
        lines: lines.slice(0, -1),
        prompt: `${lines.at(-1) ?? ''} `,
        interpret: (word) =>
          word === 'y' || word === 'yes' ? 'yes' : /^(?:|n|no)$/.test(word) ? 'no' : undefined,
        again: 'please type y or n: ',
      },
      stop,
    )
    return answer === 'yes'
  }
}
