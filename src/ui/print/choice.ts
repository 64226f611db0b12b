// The person at the terminal: where a loop's work goes, and whether a manual loop is done.
import type { Human } from '../../ports.ts'
import type { Io } from '../io.ts'
import { isTerminal, paintFor } from '../io.ts'
import type { Context } from '../cli/context.ts'
import { ask } from './ask.ts'
import { branchName } from './describe.ts'
import { entryLines, folded } from './layout.ts'
import type { Sheet } from './layout.ts'
import { oneLine } from './text.ts'
import { dropTyped } from './typed.ts'

export interface HumanOptions extends Pick<Io, 'stdin' | 'stdout' | 'env'> {
  /** With `--json` stdout is for events: nothing is asked. */
  readonly isQuiet: boolean
  /** Takes the live line off the screen before a question. */
  readonly before: () => void
  /** The answer is a squash: that is done once the loop has ended, until then its work stays where it is. */
  readonly onSquash?: () => void
  /** The answer is another try, now: a resume, once this loop has ended. Without it nobody is offered one. */
  readonly onAgain?: () => void
  /** Rings before a question in the middle of a loop; at its end the printer has done so. */
  readonly ring?: () => void
}

/** On a terminal: asks. In a pipe nobody answers: the work stays where it is, and a manual loop is not called done. */
export function humanAt(options: HumanOptions): Human {
  if (options.isQuiet || !isTerminal(options.stdin) || !isTerminal(options.stdout)) {
    return { choose: () => Promise.resolve('later'), isDone: () => Promise.resolve('later') }
  }
  const paint = paintFor(options.stdout, options.env)
  return {
    async choose(question, stop) {
      dropTyped(options.stdin)
      const answer = (await askWhere(options, question, stop)) ?? 'later'
      if (answer === 'squash') options.onSquash?.()
      if (answer === 'again') options.onAgain?.()
      return answer === 'squash' || answer === 'again' ? 'later' : answer
    },
    async isDone(task, stop) {
      dropTyped(options.stdin)
      options.before()
      options.ring?.()
      const lines = [
        '',
        paint.bold(`The agent says that this is done: ${oneLine(task)}`),
        ...doneChoices.flatMap((choice) =>
          answerLines(choice, { paint, columns: options.stdout.columns ?? 80 }),
        ),
      ]
      const prompt = 'done? yes, no or later? [later] '
      const interpret = meaning({ y: 'done', n: 'go_on', l: 'later' } as const, 'later')
      return (
        (await ask(options, { lines, prompt, interpret, again: 'please type y, n or l: ' }, stop)) ?? 'later'
      )
    },
  }
}

/** Undefined: nobody answered. */
export function askWhere(
  options: HumanOptions,
  { originalBranch, branch, worktree, isStuck = false }: Omit<Parameters<Human['choose']>[0], 'summary'>,
  stop: AbortSignal,
): Promise<'again' | 'cleanup' | 'squash' | 'keep' | 'later' | undefined> {
  options.before()
  const paint = paintFor(options.stdout, options.env)
  const again: Choice = ['again', 'try the story again now, as `ralph resume` does']
  const offered = [
    ...(isStuck && options.onAgain !== undefined ? [again] : []),
    ...choices(originalBranch, branch, worktree),
  ]
  const lines = [
    '',
    paint.bold('What should happen to the work?'),
    ...offered.flatMap((choice) => answerLines(choice, { paint, columns: options.stdout.columns ?? 80 })),
  ]
  const names = offered.map(([answer]) => answer)
  const letters = names.map((name) => name.slice(0, 1))
  const known = { a: 'again', c: 'cleanup', s: 'squash', k: 'keep', l: 'later' } as const
  // Enter must not move anything, and decide nothing about work that is not done.
  const onEnter = isStuck ? 'later' : 'keep'
  const interpret = meaning(known, onEnter)
  const question = {
    lines,
    prompt: `${orOf(names)}? [${onEnter}] `,
    interpret: (word: string) => {
      const answer = interpret(word)
      return answer === undefined || names.includes(answer) ? answer : undefined
    },
    again: `please type ${orOf(letters)}: `,
  }
  return ask(options, question, stop)
}

/** a, b or c */
function orOf(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`
}

/** Whether a start that may surprise is wanted; who sits in front of no terminal is only told. */
export async function agreesAt(
  { io, readerGone, isQuiet }: Pick<Context, 'io' | 'readerGone'> & { readonly isQuiet: boolean },
  what: string,
): Promise<boolean> {
  const paint = paintFor(io.stderr, io.env)
  if (isQuiet || !isTerminal(io.stdin) || !isTerminal(io.stdout)) {
    io.stderr.write(`${paint.yellow('note:')} ${oneLine(what)}\n`)
    return true
  }
  const question = {
    lines: folded(oneLine(what), io.stdout.columns).split('\n'),
    prompt: 'Start it? [y/N] ',
    interpret: meaning({ y: true, n: false }, false),
    again: 'please type y or n: ',
  }
  return (await ask(io, question, readerGone)) ?? false
}

type Choice = readonly [answer: string, what: string]

const doneChoices: readonly Choice[] = [
  ['yes', 'it is done'],
  ['no', 'continue with another attempt'],
  ['later', 'stop here; then `ralph done`, or `ralph resume --feedback "…"`'],
]

function choices(originalBranch: string, branch: string, worktree?: string): readonly Choice[] {
  const original = branchName(originalBranch)
  const work = oneLine(branch)
  const later: Choice = ['later', 'change nothing now, and decide with `ralph finish`']
  if (originalBranch === branch) {
    return [
      ['cleanup', `the work stays in your tree on ${original}; ralph's own stash entries are deleted`],
      ['keep', 'leave everything as it is'],
      later,
    ]
  }
  return [
    ['cleanup', `all changes on ${original}, uncommitted; the branch ${work} is deleted (a backup is kept)`],
    ['squash', `all changes on ${original} as one commit; the branch ${work} is deleted (a backup is kept)`],
    [
      'keep',
      worktree === undefined
        ? `stay on ${work} with its commits`
        : `leave it on ${work} in ${oneLine(worktree)}; your checkout is not changed`,
    ],
    later,
  ]
}

function answerLines([answer, what]: Choice, sheet: Sheet): readonly string[] {
  const head = `  ${answer.slice(0, 1)}  ${answer.padEnd(8)}  `
  const [first = '', ...rest] = entryLines({ indent: head.length, text: what }, sheet)
  return [`${head}${first.trimStart()}`, ...rest]
}

const words: Readonly<Record<string, string>> = {
  again: 'a',
  resume: 'a',
  cleanup: 'c',
  clean: 'c',
  squash: 's',
  keep: 'k',
  later: 'l',
  yes: 'y',
  done: 'y',
  no: 'n',
}

function meaning<Answer>(
  answers: Readonly<Record<string, Answer>>,
  onEnter: Answer,
): (word: string) => Answer | undefined {
  return (word) => (word === '' ? onEnter : answers[words[word] ?? word])
}
