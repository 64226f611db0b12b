#!/usr/bin/env node
// The program's door: answers --version and --help by itself, and opens the rest only for a command.
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type * as V8 from 'node:v8'
import { Script } from 'node:vm'
import type * as Program from './program.ts'
import type * as StatusLine from './statusline.ts'

declare const RALPH_VERSION: string
/** How the names of the packs begin: their content is in it, so that what V8 has compiled of others is not taken for them. */
declare const RALPH_PROGRAM: string
/** Their names, apart by blanks. */
declare const RALPH_PACKS: string

const argv = process.argv.slice(2)
const isLoop = /^(?:loop|run|resume)$/.test(argv[0] ?? '')
const packs = new Map<string, Record<string, Part>>()
const usedByLoops =
  'child_process cluster crypto fs/promises net os perf_hooks readline timers/promises tty zlib'.split(' ')
let held: ReadonlyMap<string, number> | undefined
const opened = new Map<string, { exports: object }>()
const help = helpPage(argv)
const line = lineAsked(argv)

if (argv.length === 1 && /^(?:--version|-[vV]|version)$/.test(argv[0] ?? '')) {
  process.stdout.write(`${RALPH_VERSION}\n`)
} else if (help !== undefined) {
  process.stdout.write(help)
} else if (line !== undefined) {
  ;(require(join(__dirname, 'statusline.js')) as typeof StatusLine).start(line)
} else {
  if (isLoop) spareMemory()
  void (open('look:program') as typeof Program).start(argv, RALPH_VERSION)
}

/**
 * A loop waits for others for hours; V8's habits of a busy server would cost it memory and win it nothing. What is young stays in 1 MB
 * instead of growing to 16, and garbage does not pile up: 85 MB became 72 in 20 stories on Node 20, in the same time. What is compiled
 * anew, quicker and larger, is only what a flood makes hot: 66 MB instead of 73, and for 200 MB of output the same time. So little garbage
 * is collected faster by one thread than by several that have to be woken first.
 */
function spareMemory(): void {
  const { setFlagsFromString } = open('node:v8') as typeof V8
  // What Node brings compiled of itself V8 takes only with the flags that it began with: else these cost more than the start of Node.
  for (const name of usedByLoops) open(`node:${name}`)
  for (const flag of [
    '--semi-space-growth-factor=1',
    '--no-parallel-scavenge',
    '--optimize-for-size',
    '--interrupt-budget=1000000',
    '--no-sparkplug',
  ])
    setFlagsFromString(flag)
}

/**
 * Open from the start, and so still there when a new version takes the place of this one under a loop that runs. A pack is compiled
 * when a command first needs something in it.
 */
function holdPacks(): ReadonlyMap<string, number> {
  return new Map(RALPH_PACKS.split(' ').map((pack) => [pack, openSync(packFile(pack), 'r')]))
}

function packFile(pack: string): string {
  return join(__dirname, `${RALPH_PROGRAM}.${pack}.js`)
}

/** One part of the program, as the build wraps it. */
type Part = (exports: object, require: (name: string) => unknown, module: { exports: object }) => void

/** `look:3` is a part in the pack of what looks; any other name is Node's. */
function open(name: string): unknown {
  const known = opened.get(name)
  if (known !== undefined) return known.exports
  const [pack = '', part] = name.split(':')
  if (part === undefined || pack === 'node') {
    const exports = require(name) as object
    opened.set(name, { exports })
    return exports
  }
  const parts = packs.get(pack) ?? openPack(pack, (held ??= holdPacks()).get(pack))
  packs.set(pack, parts)
  const begin = parts[name]
  if (begin === undefined) throw new Error(`${name} is in no pack`)
  const module = { exports: {} }
  opened.set(name, module)
  begin(module.exports, open, module)
  return module.exports
}

/**
 * Compiling it takes longer than most commands: what V8 made of it is kept beside it, where that can be written, for each command apart.
 * So each reads what it needs itself and nothing else, and a loop has other flags, with which V8 takes only its own.
 */
function openPack(pack: string, held = -1): Record<string, Part> {
  const file = packFile(pack)
  const command = argv.find((word, at) => !word.startsWith('-') && argv[at - 1] !== '-C') ?? 'ralph'
  const kept = `${file}.${command}.${process.versions.v8}-${process.arch}.cache`
  const isCommand = /^[a-z]+$/.test(command) && existsSync(helpFile(command))
  const cachedData = isCommand && existsSync(kept) ? readFileSync(kept) : undefined
  // Nothing but ASCII is in it, and as such it is read ten times as fast.
  const script = new Script(readFileSync(held, 'latin1'), {
    filename: file,
    ...(cachedData !== undefined && { cachedData }),
  })
  closeSync(held)
  // One that was refused (1, 2) did not get to most of what it is made of; doctor says with 2 what it found.
  const isWhole = (code: number): boolean => code === 0 || code > 2 || command === 'doctor'
  if (script.cachedDataRejected !== false && isCommand)
    process.once('exit', (code) => isWhole(code) && keep(script.createCachedData(), kept))
  return script.runInThisContext() as Record<string, Part>
}

function keep(bytes: Buffer, file: string): void {
  try {
    writeFileSync(`${file}.${process.pid}`, bytes)
    renameSync(`${file}.${process.pid}`, file)
  } catch {
    // Installed by somebody else: then each start compiles.
  }
}

/** A status bar asks every few seconds. Whatever else is typed is for the command line to judge. */
function lineAsked(words: readonly string[]): { isJson: boolean; folder?: string } | undefined {
  const [flag, folder, ...rest] = words
  const isElsewhere = flag === '-C' && folder !== undefined
  const [command, ...options] = isElsewhere ? rest : words
  if (command !== 'statusline' || options.some((word) => word !== '--json')) return undefined
  return { isJson: options.length > 0, ...(isElsewhere && { folder }) }
}

/** Written by the build from the program's own help: half of the start-up is building what `--help` only prints. */
function helpPage(words: readonly string[]): string | undefined {
  const [name = '', flag] = words.length === 1 ? ['ralph', words[0]] : words
  if (words.length > 2 || (flag !== '--help' && flag !== '-h') || !/^[a-z]+$/.test(name)) return undefined
  // There is one for each usual width; any other terminal gets lines of its own width, from the program itself.
  const file = helpFile(name, Math.min(process.stdout.columns || Number(process.env['COLUMNS']) || 80, 100))
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

function helpFile(command: string, width = 80): string {
  return join(__dirname, 'help', String(width), `${command}.txt`)
}
