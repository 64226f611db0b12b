// Asks the person at the terminal; the terminal stays in its normal line mode, so that Ctrl-C and even kill -9 are harmless.
import { createInterface } from 'node:readline'
import type { Human } from '../../ports.ts'
import type { Io } from '../io.ts'
import { isTerminal, paintFor } from '../io.ts'
import { branchName } from './describe.ts'
import { oneLine } from './text.ts'

export interface HumanOptions extends Pick<Io, 'stdin' | 'stdout' | 'env'> {
  /** With `--json` stdout is for events: nothing is asked. */
  readonly isQuiet: boolean
  /** Takes the live line off the screen before a question. */
  readonly before: () => void
}

/** On a terminal: asks. In a pipe nobody answers: the work stays where it is, and a manual loop is not called done. */
export function humanAt(options: HumanOptions): Human {
  if (options.isQuiet || !isTerminal(options.stdin) || !isTerminal(options.stdout)) {
    return { choose: () => Promise.resolve('later'), isDone: () => Promise.resolve('later') }
  }
  const paint = paintFor(options.stdout, options.env)
  return {
    choose({ originalBranch, branch, summary }, stop) {
      const original = branchName(originalBranch)
      const work = oneLine(branch)
      const inPlace = originalBranch === branch
      const lines = [
        '',
        paint.bold(oneLine(summary) || 'The loop is over. Where should its work go?'),
        inPlace
          ? `  c  cleanup: drop ralph's own stash entries; the work stays in your tree on ${original}`
          : `  c  cleanup: back to ${original}, the work there as uncommitted changes; ${work} goes (its tip is archived)`,
        inPlace
          ? `  k  keep: leave everything as it is`
          : `  k  keep: stay on ${work} with all its commits; ${original} is as it was`,
        '  l  later: touch nothing now; `ralph finish` does it any time',
      ]
      return ask(
        options,
        lines,
        'cleanup, keep or later? [keep] ',
        { c: 'cleanup', k: 'keep', l: 'later' },
        'keep',
        stop,
      )
    },
    isDone(task, stop) {
      const lines = [
        '',
        paint.bold(`The agent says that this is done: ${oneLine(task)}`),
        '  y  yes, it is done',
        '  n  no, go on with another iteration',
        '  l  later: stop here; `ralph done` or `ralph resume --feedback "…"` goes on',
      ]
      return ask(
        options,
        lines,
        'done? yes, no or later? [later] ',
        { y: 'done', n: 'go_on', l: 'later' },
        'later',
        stop,
      )
    },
  }
}

/** Enter takes the default; the end of input and a stop mean later; anything else asks again. */
async function ask<Answer extends string>(
  { stdin, stdout, before }: HumanOptions,
  lines: readonly string[],
  question: string,
  answers: Readonly<Record<string, Answer>>,
  onEnter: Answer,
  stop: AbortSignal,
): Promise<Answer | 'later'> {
  if (stop.aborted) return 'later'
  before()
  stdout.write(`${lines.join('\n')}\n`)
  const reader = createInterface({ input: stdin, terminal: false })
  try {
    return await new Promise((resolve) => {
      const later = (): void => resolve('later')
      stop.addEventListener('abort', later, { once: true })
      reader.on('close', later)
      reader.on('line', (line) => {
        const word = line.trim().toLowerCase()
        const letter = Object.keys(answers).find(
          (key) => word === key || (word !== '' && wordFor(key).includes(word)),
        )
        if (word === '') resolve(onEnter)
        else if (letter !== undefined) resolve(answers[letter] ?? onEnter)
        else stdout.write(`please type ${Object.keys(answers).join(', ')}: `)
      })
      stdout.write(question)
    })
  } finally {
    reader.close()
    stdin.pause()
  }
}

const words: Readonly<Record<string, readonly string[]>> = {
  c: ['cleanup', 'clean'],
  k: ['keep'],
  l: ['later'],
  y: ['yes', 'done'],
  n: ['no'],
}

function wordFor(key: string): readonly string[] {
  return words[key] ?? []
}
