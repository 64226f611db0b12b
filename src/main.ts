#!/usr/bin/env node
// The program's door: answers --version and --help by itself, and opens the rest only for a command.
import { closeSync, existsSync, fstatSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
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
const command = argv.find((word, at) => !word.startsWith('-') && argv[at - 1] !== '-C') ?? 'ralph'
const isLoop = /^(?:loop|run|resume)$/.test(command)
const packs = new Map<string, Record<string, Part>>()
const usedByLoops =
  'child_process cluster crypto fs/promises net os perf_hooks readline timers/promises tty zlib'.split(' ')
let held: ReadonlyMap<string, () => string> | undefined
const opened = new Map<string, { exports: object }>()
const compiled = new Map<string, { script: Script; kept: string; before: number }>()
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
  process.once('exit', keepCompiled)
  void (open('look:program') as typeof Program).start(argv, RALPH_VERSION)
}

/**
 * A loop waits for others for hours; V8's habits of a busy server would cost it memory and win it nothing. What is young stays in 1 MB
 * instead of growing to 16, and garbage does not pile up: 85 MB became 72 in 20 stories on Node 20, in the same time. What is compiled
 * anew, quicker and larger, is only what a flood makes hot, and only what is short: four threads of V8's compile it, each keeps the memory
 * that its largest piece took, and after 300 stories those were 12 MB (86 MB in all, now 78 to 81, in the same time, also for 200 MB of output).
 * So little garbage is collected faster by one thread than by several that have to be woken first.
 */
function spareMemory(): void {
  const { setFlagsFromString } = open('node:v8') as typeof V8
  // What Node brings compiled of itself V8 takes only with the flags that it began with: else these cost more than the start of Node.
  for (const name of usedByLoops) open(`node:${name}`)
  for (const flag of [
    '--semi-space-growth-factor=1',
    '--no-parallel-scavenge',
    // Not --optimize-for-size, which collects from the start on: a tenth of the time of a short loop, for the same memory after 100 stories.
    '--heap-growing-percent=30',
    '--max-optimized-bytecode-size=500',
    '--max-inlined-bytecode-size-cumulative=400',
    '--no-sparkplug',
    // To compile a pattern pays where it is tried often, or on a long text, for which V8 does so at once.
    '--regexp-tier-up-ticks=50',
    // V8 prints an error for a flag that it does not know: newer ones do not have these.
    ...(process.versions.v8.startsWith('11.')
      ? ['--interrupt-budget=4000000', '--ticks-before-optimization=1']
      : []),
  ])
    setFlagsFromString(flag)
}

/**
 * Open from the start, and so still there when a new version takes the place of this one under a loop that runs. A pack is compiled
 * when a command first needs something in it. One that has another name elsewhere, as pnpm makes them, can be written there: it is read now.
 */
function holdPacks(): ReadonlyMap<string, () => string> {
  return new Map(
    RALPH_PACKS.split(' ').map((pack) => {
      const file = openSync(packFile(pack), 'r')
      const read = (): string => {
        // Nothing but ASCII is in it, and as such it is read ten times as fast.
        const text = readFileSync(file, 'latin1')
        closeSync(file)
        return text
      }
      const text = fstatSync(file).nlink > 1 ? read() : undefined
      return [pack, text === undefined ? read : () => text]
    }),
  )
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
  const parts = packs.get(pack) ?? openPack(pack, (held ??= holdPacks()).get(pack)?.() ?? '')
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
 * So each reads what it needs itself and nothing else, and a loop has other flags, with which V8 takes only its own. Its last byte is how
 * many parts were in use: a run that got further than the one that kept it, which may have been refused or a dry one, keeps its own.
 */
function openPack(pack: string, source: string): Record<string, Part> {
  const file = packFile(pack)
  const kept = `${file}.${isLoop ? 'loop' : command}.${process.versions.v8}-${process.arch}.cache`
  const isCommand = /^[a-z]+$/.test(command) && existsSync(helpFile(command))
  const bytes = isCommand && existsSync(kept) ? readFileSync(kept) : undefined
  const cachedData = bytes?.subarray(0, -1)
  const script = new Script(source, { filename: file, ...(cachedData !== undefined && { cachedData }) })
  const before = script.cachedDataRejected === false ? (bytes?.at(-1) ?? 0) : 0
  if (isCommand) compiled.set(pack, { script, kept, before })
  return script.runInThisContext() as Record<string, Part>
}

function keepCompiled(code: number): void {
  // One that a signal ended has opened what it did not get to.
  if (code >= 128) return
  const used = (pack: string): number =>
    [...opened.keys()].filter((name) => name.startsWith(`${pack}:`)).length
  if (![...compiled].some(([pack, { before }]) => used(pack) > before)) return
  for (const [pack, { script, kept, before }] of compiled)
    if (used(pack) >= before) keep(Buffer.concat([script.createCachedData(), Buffer.of(used(pack))]), kept)
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
