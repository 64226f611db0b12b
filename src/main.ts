#!/usr/bin/env node
// The program's door: answers --version and --help by itself, and opens the rest only for a command.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { wrap } from 'node:module'
import { join } from 'node:path'
import { Script } from 'node:vm'
import type * as Program from './program.ts'

declare const RALPH_VERSION: string
/** Named after its content: what V8 has compiled of another one must not be taken for it. */
declare const RALPH_PROGRAM: string

const argv = process.argv.slice(2)
const help = helpPage(argv)

if (argv.length === 1 && /^(?:--version|-[vV]|version)$/.test(argv[0] ?? '')) {
  process.stdout.write(`${RALPH_VERSION}\n`)
} else if (help !== undefined) {
  process.stdout.write(help)
} else {
  void openProgram().start(argv, RALPH_VERSION)
}

/** Compiling it takes longer than most commands: what V8 made of it in a loop is kept beside it, where that can be written. */
function openProgram(): typeof Program {
  const file = join(__dirname, RALPH_PROGRAM)
  const kept = `${file}.${process.versions.v8}-${process.arch}.cache`
  const cachedData = existsSync(kept) ? readFileSync(kept) : undefined
  const script = new Script(wrap(readFileSync(file, 'utf8')), {
    filename: file,
    ...(cachedData !== undefined && { cachedData }),
  })
  if (script.cachedDataRejected !== false && /^(?:loop|run|resume)$/.test(argv[0] ?? ''))
    process.once('exit', () => keep(script.createCachedData(), kept))
  const opened = { exports: {} as typeof Program }
  // oxlint-disable-next-line typescript/no-unsafe-call -- what `wrap` makes
  script.runInThisContext()(opened.exports, require, opened, file, __dirname)
  return opened.exports
}

function keep(bytes: Buffer, file: string): void {
  try {
    writeFileSync(`${file}.${process.pid}`, bytes)
    renameSync(`${file}.${process.pid}`, file)
  } catch {
    // Installed by somebody else: then each start compiles.
  }
}

/** Written by the build from the program's own help: half of the start-up is building what `--help` only prints. */
function helpPage(words: readonly string[]): string | undefined {
  const [name, flag] = words.length === 1 ? ['ralph', words[0]] : words
  if (words.length > 2 || (flag !== '--help' && flag !== '-h') || !/^[a-z]+$/.test(name ?? ''))
    return undefined
  const file = join(__dirname, 'help', `${name}.txt`)
  const page = existsSync(file) ? readFileSync(file, 'utf8') : undefined
  // A narrower terminal gets lines of its own width, from the program itself.
  const columns = process.stdout.columns ?? Infinity
  return page?.split('\n').every((line) => line.length <= columns) ? page : undefined
}
