// One command of the program, from its words to its exit.
import { isCutOff, run } from './ui/cli/run.ts'
import type { Io } from './ui/io.ts'
import { lateOutput } from './ui/cli/late-output.ts'

export async function start(argv: readonly string[], version: string): Promise<void> {
  const isLook = looks.has(argv[0] ?? '') && !argv.includes('--watch')
  const stdout = lateOutput(1, () => process.stdout, isLook)
  const io: Io = {
    env: process.env,
    // Fails where the folder was deleted: for those to say who need one.
    get cwd() {
      return process.cwd()
    },
    // Looking at process.stdin opens it; most commands never do.
    get stdin() {
      return process.stdin
    },
    stdout,
    stderr: lateOutput(2, () => process.stderr, false),
  }
  // Where nothing is left that could happen Node ends, and with 0: as if the command had.
  process.once('beforeExit', endedEarly)
  const exitCode = await run(argv, {
    io,
    version,
    loadApp: async (surroundings) => {
      const { createApp } = await import('./compose.ts')
      return createApp(surroundings)
    },
  })
  process.off('beforeExit', endedEarly)
  // Also where stdout never says that it has taken everything.
  process.exitCode = exitCode
  // Once stdout has taken everything: a handle that somebody left open must not keep a finished command alive.
  stdout.write('', () => {
    const { errored } = stdout
    const isWhole = errored === null || !isCutOff(errored)
    if (!isWhole) process.stderr.write(`error: not everything could be printed: ${errored.message}\n`)
    process.exit(isWhole ? exitCode : exitCode || 1)
  })
}

function endedEarly(): void {
  process.exitCode = 1
  process.stderr.write(
    'error: ralph ended before its command had done its work. This is a bug in ralph.\n  Nothing is lost. See where things stand: ralph status\n',
  )
}

/** Those that print one text and end. */
const looks = new Set(
  'status list show prompt config doctor history why usage attempts report learnings'.split(' '),
)
