// The whole command line: every command with its flags, help and example. Loads commander and nothing else.
import { Command } from '@commander-js/extra-typings'
import { addAttempts } from './attempts.ts'
import { addClean } from './clean.ts'
import { addCompletion } from './completion.ts'
import { addConfig } from './config.ts'
import type { Context } from './context.ts'
import { addDiff } from './diff.ts'
import { addDoctor } from './doctor.ts'
import { addDone } from './done.ts'
import { addFinish } from './finish.ts'
import { addHelp } from './help.ts'
import { addHistory } from './history.ts'
import { addLearnings } from './learnings.ts'
import { addList } from './list.ts'
import { addLogs } from './logs.ts'
import { addLoop } from './loop.ts'
import { addPrompt } from './prompt.ts'
import { addReport } from './report.ts'
import { addRestore } from './restore.ts'
import { addResume } from './resume.ts'
import { addShow } from './show.ts'
import { addStatus } from './status.ts'
import { addStop } from './stop.ts'
import { addUsage } from './usage.ts'
import { addWhy } from './why.ts'

/** Help in the order in which one needs the commands. */
const groups: readonly (readonly [string, readonly ((program: Command, context: Context) => void)[]])[] = [
  ['Run a loop:', [addLoop, addResume, addStop, addDone, addFinish]],
  ['See the plan:', [addList, addShow, addPrompt]],
  ['See what happened:', [addStatus, addHistory, addLogs, addWhy, addUsage, addReport, addLearnings]],
  ['Every attempt is kept:', [addAttempts, addDiff, addRestore, addClean]],
  ['Set up:', [addConfig, addDoctor, addCompletion, addHelp]],
]

/** The ones that are typed, or called by scripts, many times a day; the others are declared all together. */
const alone: ReadonlyMap<string, (program: Command, context: Context) => void> = new Map([
  ['status', addStatus],
  ['list', addList],
  ['logs', addLogs],
  ['stop', addStop],
  ['loop', addLoop],
  ['run', addLoop],
  ['resume', addResume],
])

/** `first`: the first word typed: declaring one command is quicker than declaring all. */
export function buildProgram(context: Context, version: string, first = ''): Command {
  const { stdout } = context.io
  const program = new Command('ralph')
    .description(
      'Runs a coding agent in a loop over an OpenSpec change: checkpoints, gates, retries, and never a false done.',
    )
    .version(version)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      // Errors are thrown by exitOverride and said by failure.ts, in words of our own.
      writeErr: () => undefined,
      // Never wider than the pages that the build makes of it.
      getOutHelpWidth: () => Math.min(stdout.columns ?? 100, 100),
    })
    .addHelpText('after', '\nExample:\n  $ ralph loop add-login --verify "npm test"')
  const only = alone.get(first)
  if (only !== undefined) {
    only(program, context)
    return program
  }
  for (const [heading, commands] of groups) {
    program.commandsGroup(heading)
    for (const add of commands) add(program, context)
  }
  return program
}
