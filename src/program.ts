// One command of the program, from its words to its exit.
import { isCutOff, run } from './ui/cli/run.ts'
import type { Io } from './ui/io.ts'

export async function start(argv: readonly string[], version: string): Promise<void> {
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
    stdout: process.stdout,
    stderr: process.stderr,
  }
  const exitCode = await run(argv, {
    io,
    version,
    loadApp: async (surroundings) => {
      const { createApp } = await import('./compose.ts')
      return createApp(surroundings)
    },
  })
  // Once stdout has taken everything: a handle that somebody left open must not keep a finished command alive.
  process.stdout.write('', () => {
    const { errored } = process.stdout
    const isWhole = errored === null || !isCutOff(errored)
    if (!isWhole) process.stderr.write(`error: not everything could be printed: ${errored.message}\n`)
    process.exit(isWhole ? exitCode : exitCode || 1)
  })
}
