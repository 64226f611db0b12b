// `ralph demo`: one loop from its start to its end in a throw-away repository, and what to type next.
import { rm } from 'node:fs/promises'
import { parseSetting } from '../../config/parse.ts'
import { paintFor } from '../io.ts'
import { entryLines, wrapWords } from '../print/layout.ts'
import { stepLines } from '../print/step-lines.ts'
import { shellWord } from '../../core/shell-word.ts'
import { oneLine } from '../print/text.ts'
import type { QueueReport } from '../app.ts'
import type { Context } from './context.ts'

export interface DemoOptions {
  readonly agent: string
  /** Six changes by the merge queue. */
  readonly parallel: boolean
  readonly remove: boolean
}

export async function showDemo(context: Context, { agent, parallel, remove }: DemoOptions): Promise<void> {
  // Before a folder is made for it.
  parseSetting('agent', agent, '--agent')
  const { control } = await context.app()
  const { folder, repo, change } = await control.makeDemo(parallel)
  const sheet = { paint: paintFor(context.io.stdout, context.io.env), columns: context.io.stdout.columns }
  const say = (...lines: string[]): void => void context.io.stdout.write(`${lines.join('\n')}\n`)
  const wrapped = (text: string): string => entryLines({ text }, sheet).join('\n')
  const isScripted = agent === 'demo'
  say(
    wrapped(`A throw-away repository: ${oneLine(repo)}`),
    parallel
      ? 'Its plans: six changes of one story in openspec/changes.'
      : `Its plan: openspec/changes/${change}/tasks.md, three stories.`,
    wrapped(
      isScripted
        ? `The demo agent is a script: no key, no network, no cost.${parallel ? '' : ' In story 2 it fails once, so that you see the undo and the retry.'}`
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
  const how = ['--agent', agent, '--verify', 'node --test']
  const exitCode = parallel
    ? await run('up', '--jobs', '3', '--pull', ...how)
    : await run('loop', change, ...how, '--on-complete', 'cleanup')
  context.exitWith(exitCode)
  // Refused: nothing is there to look at.
  if (exitCode === 2) return rm(folder, { recursive: true, force: true })
  const ralph = programWords(context.io.env)
  const rows = (...steps: (readonly [string, string])[]): readonly string[] =>
    stepLines(
      steps.map(([command, why]) => ['', command, why]),
      { indent: 2, column: 2 },
      sheet,
    )
  const seen = parallel && !remove ? landedSteps(await control.demoQueue(repo), ralph) : []
  if (!remove)
    say(
      '',
      'Look around:',
      ...rows(
        [`cd ${shellWord(repo)}`, ''],
        ...(parallel
          ? [...seen, [`${ralph} queue`, 'where everything stands'] as const]
          : ([
              [`${ralph} diff --all`, 'what the loop made'],
              [`${ralph} attempts`, 'every attempt, the failed one too'],
              [`${ralph} diff 2`, 'what the failed attempt had done'],
            ] as const)),
        [`rm -rf ${shellWord(folder)}`, 'delete it all'],
      ),
    )
  say(
    '',
    'Your turn, in your own repository. A plan, openspec/changes/<name>/tasks.md:',
    '  ## 1. A story',
    '  - [ ] 1.1 A task',
    'Then:',
    ...rows(
      [`${ralph} doctor`, 'what is there, what is missing'],
      [`${ralph} loop <name> --dry-run`, 'what a start would do'],
      [`${ralph} loop <name> --verify "npm test"`, 'go'],
      [ralph, 'the same on full screens: choose, run, watch'],
      ...(parallel ? [[`${ralph} up --verify "npm test"`, 'all open changes, two at a time'] as const] : []),
    ),
  )
  if (remove) {
    await rm(folder, { recursive: true, force: true })
    say('', `${oneLine(folder)} is deleted.`)
  }
}

/** Only what is there to be seen. */
export function landedSteps(
  { entries, target, take }: Pick<QueueReport, 'entries' | 'target' | 'take'>,
  ralph: string,
): readonly (readonly [string, string])[] {
  const hasLanded = entries.some(({ state }) => state === 'landed')
  const log: readonly [string, string] =
    take === undefined
      ? ['git log --stat', 'what landed: one commit for each change']
      : [`git log --stat refs/ralph-landed/${target}`, `what landed; ${target} does not have it yet`]
  return [
    ...(hasLanded ? [log] : []),
    ...entries
      .filter(({ state }) => state === 'parked')
      .map(({ change }) => [`${ralph} why ${oneLine(change)}`, 'it has not landed: it is parked'] as const),
  ]
}

/** As the user can type it: who came by npx has no `ralph` on PATH. */
function programWords({ npm_command: how }: NodeJS.ProcessEnv): string {
  if (how === 'exec') return 'npx ralphtool'
  return how === 'run-script' || how === 'run' ? `node ${shellWord(process.argv[1] ?? '')}` : 'ralph'
}
