// `ralph demo`: one loop from its start to its end in a throw-away repository, and what to type next.
import { rm } from 'node:fs/promises'
import { paintFor } from '../io.ts'
import { entryLines, wrapWords } from '../print/layout.ts'
import { oneLine, shellWord } from '../print/text.ts'
import type { Context } from './context.ts'

export interface DemoOptions {
  readonly agent: string
  readonly remove: boolean
}

export async function showDemo(context: Context, { agent, remove }: DemoOptions): Promise<void> {
  const { control } = await context.app()
  const { folder, repo, change } = await control.makeDemo()
  const sheet = { paint: paintFor(context.io.stdout, context.io.env), columns: context.io.stdout.columns }
  const say = (...lines: string[]): void => void context.io.stdout.write(`${lines.join('\n')}\n`)
  const wrapped = (text: string): string => entryLines({ text }, sheet).join('\n')
  const isScripted = agent === 'demo'
  say(
    wrapped(`A throw-away repository: ${oneLine(repo)}`),
    `Its plan: openspec/changes/${change}/tasks.md, three stories.`,
    wrapped(
      isScripted
        ? 'The demo agent is a script: no key, no network, no cost. In story 2 it fails once, so that you see the undo and the retry.'
        : `The agent is ${oneLine(agent)}: it may cost something, and it works in that folder only.`,
    ),
  )
  // The user's own settings are for the user's own projects; a real agent needs its surroundings, though.
  const env = Object.fromEntries(
    Object.entries(context.io.env).filter(([name]) => !name.startsWith('RALPH_')),
  )
  const run = (...words: string[]): Promise<number> => {
    const typed = `$ ralph ${words.map((word) => (word.includes(' ') ? `"${word}"` : word)).join(' ')}`
    const room = sheet.columns === undefined ? Infinity : Math.max(20, sheet.columns - 7)
    say('', wrapWords(typed, room).join(' \\\n    '))
    // Its lines are to be read beside what else is said here.
    const plain = { ...env, RALPH_NO_TUI: 'true' }
    return context.run(['-C', repo, ...words], isScripted ? { ...plain, XDG_CONFIG_HOME: folder } : plain)
  }
  const exitCode = await run(
    'loop',
    change,
    '--agent',
    agent,
    '--verify',
    'node --test',
    '--on-complete',
    'cleanup',
  )
  context.exitWith(exitCode)
  // Refused: nothing is there to look at.
  if (exitCode === 2) return rm(folder, { recursive: true, force: true })
  const ralph = programWords(context.io.env)
  const rows: (readonly [string, string])[] = remove
    ? []
    : [
        [`cd ${shellWord(repo)}`, 'look around'],
        ['git diff; git status', 'what the loop has made, uncommitted, for you to review'],
        [`${ralph} attempts`, 'every attempt, the failed one too'],
        [`${ralph} diff 2`, 'what the failed attempt had done'],
        [`rm -rf ${shellWord(folder)}`, 'delete all of it; there is nothing anywhere else'],
      ]
  const own: (readonly [string, string])[] = [
    [`${ralph} doctor`, 'in your own repository: what is there, what is missing'],
    ['openspec/changes/<name>/tasks.md', 'write a plan there: `## 1. A story`, below it `- [ ] 1.1 a task`'],
    [`${ralph} loop <name> --dry-run`, 'what a start would do'],
    [`${ralph} loop <name> --verify "npm test"`, 'and go'],
  ]
  const width = Math.max(...[...rows, ...own].map(([command]) => command.length).filter((n) => n <= 44))
  const line = ([command, why]: readonly [string, string]): string => {
    const head = `  ${command.padEnd(width)}  `
    const [first = '', ...rest] = entryLines({ indent: width + 4, text: why }, sheet)
    return command.length > width && sheet.columns !== undefined
      ? [`  ${command}`, first, ...rest].join('\n')
      : [head + first.trimStart(), ...rest].join('\n')
  }
  say('', ...rows.map(line), ...(remove ? [] : ['']), 'Your turn:', ...own.map(line))
  if (remove) {
    await rm(folder, { recursive: true, force: true })
    say('', `${oneLine(folder)} is deleted.`)
  }
}

/** As the user can type it: who came by npx has no `ralph` on PATH. */
function programWords({ npm_command: how }: NodeJS.ProcessEnv): string {
  if (how === 'exec') return 'npx ralphtool'
  return how === 'run-script' || how === 'run' ? `node ${shellWord(process.argv[1] ?? '')}` : 'ralph'
}
