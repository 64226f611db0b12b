// How every bench measures: one program watched from its start to its exit, and many samples told in three figures.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { join } from 'node:path'

export interface Sample {
  readonly value: number
  /** The part of all cores that was busy with something else meanwhile. */
  readonly others: number
}

/** By the quartiles: on a shared machine the extremes measure the neighbours. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
  readonly samples: number
}

/** Of the quieter half: chosen by what others did, not by the value. */
export function spreadOf(samples: readonly Sample[]): Spread {
  const quiet = median(samples.map(({ others }) => others))
  const kept = samples.filter(({ others }) => others <= quiet || samples.length < 4).map(({ value }) => value)
  const at = (part: number): number => quantile(kept, part)
  return { median: at(0.5), low: at(0.25), high: at(0.75), samples: kept.length }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * part
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]]
  return below + (above - below) * (place - Math.floor(place))
}

export interface Watched {
  /** Epoch milliseconds, as the stand-in's own. */
  readonly beganMs: number
  readonly endedMs: number
  readonly ms: number
  readonly code: number | null
  /** The end of what it said on stderr. */
  readonly said: string
  /** Of this process alone, without its children. */
  readonly peakMb: number
  readonly others: number
}

interface HowToWatch {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Where what it prints goes; nowhere by default. */
  readonly stdout?: string
  /** What it prints, at the time it comes. */
  readonly hear?: (chunk: string, atMs: number) => void
}

export async function watch(command: readonly string[], how: HowToWatch): Promise<Watched> {
  const [file = '', ...args] = command
  const printed = openSync(how.stdout ?? devNull, 'w')
  const burnt = ticks()
  const [beganMs, from] = [Date.now(), performance.now()]
  const child = spawn(file, args, {
    cwd: how.cwd,
    env: how.env,
    stdio: ['ignore', how.hear === undefined ? printed : 'pipe', 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-2000)
  })
  child.stdout?.on('data', (chunk: Buffer) => how.hear?.(chunk.toString('utf8'), Date.now()))
  let peakMb = 0
  // The kernel's own high-water mark: only what grows after the last look is missed.
  const look = setInterval(() => {
    peakMb = Math.max(peakMb, highWaterMb(child.pid ?? 0))
  }, 20)
  const [code] = (await once(child, 'exit')) as [number | null]
  const [endedMs, ms] = [Date.now(), performance.now() - from]
  clearInterval(look)
  closeSync(printed)
  return { beganMs, endedMs, ms, code, said, peakMb, others: othersSince(burnt) }
}

interface Ticks {
  readonly all: number
  readonly idle: number
  /** Of this process and of all its children that have ended. */
  readonly own: number
}

export function ticks(): Ticks {
  const numbers = (text: string): number[] => text.trim().split(/\s+/).map(Number)
  const machine = numbers(/^cpu (.+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? '').slice(0, 8)
  const own = numbers(readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) \S+/, '')).slice(10, 14)
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
  return { all: sum(machine), idle: (machine[3] ?? 0) + (machine[4] ?? 0), own: sum(own) }
}

export function othersSince(before: Ticks): number {
  const { all, idle, own } = ticks()
  const elapsed = all - before.all
  return elapsed === 0 ? 0 : Math.max(0, elapsed - (idle - before.idle) - (own - before.own)) / elapsed
}

export function highWaterMb(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024
  } catch {
    // Gone meanwhile.
    return 0
  }
}

/** NODE_EXTRA_CA_CERTS alone adds 50 ms to every start of Node 20. */
export function cleanEnv(): NodeJS.ProcessEnv {
  const { NODE_EXTRA_CA_CERTS: _, NODE_OPTIONS: __, ...env } = process.env
  return env
}

export function run(cwd: string, file: string, ...args: string[]): string {
  return execFileSync(file, args, { cwd, env: cleanEnv(), encoding: 'utf8' })
}

/** A hundred small files beside what is there already, all committed. */
export function commitRepository(folder: string): void {
  for (let n = 0; n < 100; n += 1) writeFileSync(join(folder, `file-${n}.txt`), `${n}\n`)
  run(folder, 'git', 'init', '-q')
  run(folder, 'git', 'config', 'user.email', 'bench@example.invalid')
  run(folder, 'git', 'config', 'user.name', 'bench')
  run(folder, 'git', 'add', '-A')
  run(folder, 'git', 'commit', '-qm', 'start')
}

export function shuffled<T>(values: readonly T[]): readonly T[] {
  return values
    .map((value) => ({ value, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ value }) => value)
}
