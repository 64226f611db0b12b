#!/usr/bin/env node
// The program's door: answers --version and --help by itself, loads the rest only for a command, and ends with its exit code.
import { existsSync, readFileSync } from 'node:fs'
import type { Io } from './ui/io.ts'

declare const RALPH_VERSION: string

const argv = process.argv.slice(2)

const help = helpPage(argv)

if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
  process.stdout.write(`${RALPH_VERSION}\n`)
} else if (help !== undefined) {
  process.stdout.write(help)
} else {
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
  const { isCutOff, run } = await import('./ui/cli/run.ts')
  const exitCode = await run(argv, {
    io,
    version: RALPH_VERSION,
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

/** Written by the build from the program's own help: half of the start-up is building what `--help` only prints. */
function helpPage(words: readonly string[]): string | undefined {
  const [name, flag] = words.length === 1 ? ['ralph', words[0]] : words
  if (words.length > 2 || (flag !== '--help' && flag !== '-h') || !/^[a-z]+$/.test(name ?? ''))
    return undefined
  const file = new URL(`help/${name}.txt`, import.meta.url)
  const page = existsSync(file) ? readFileSync(file, 'utf8') : undefined
  // A narrower terminal gets lines of its own width, from the program itself.
  const columns = process.stdout.columns ?? Infinity
  return page?.split('\n').every((line) => line.length <= columns) ? page : undefined
}
