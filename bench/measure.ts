// How every bench measures: competitors in random order within each round, medians, ratios to the floor.
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Competitor {
  readonly name: string
  /** One sample, in milliseconds. */
  readonly sample: () => number
}

export interface Measured {
  readonly name: string
  readonly medianMs: number
  readonly ratio: number
}

/** The first competitor is the floor. */
export function compare(competitors: readonly Competitor[], rounds: number): readonly Measured[] {
  const samples = new Map(competitors.map(({ name }) => [name, [] as number[]]))
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, sample } of shuffled(competitors)) samples.get(name)?.push(sample())
  }
  const medians = competitors.map(({ name }) => ({ name, medianMs: median(samples.get(name) ?? []) }))
  const floorMs = medians[0]?.medianMs ?? 1
  return medians.map((each) => ({ ...each, ratio: each.medianMs / floorMs }))
}

export function print(title: string, measured: readonly Measured[]): void {
  console.log(`\n${title}`)
  for (const { name, medianMs, ratio } of measured) {
    console.log(
      `  ${name.padEnd(44)} ${medianMs.toFixed(1).padStart(9)} ms  ${ratio.toFixed(2).padStart(6)}x`,
    )
  }
}

/** Wall clock of one command; NODE_EXTRA_CA_CERTS alone adds 50 ms to every start of Node 20. */
export function timed(
  file: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): number {
  const began = performance.now()
  const { status, stderr } = spawnSync(file, args, {
    cwd: options.cwd,
    env: { ...cleanEnv(), ...options.env },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${status}: ${stderr}`)
  return performance.now() - began
}

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

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

export function shuffled<T>(values: readonly T[]): readonly T[] {
  return values
    .map((value) => ({ value, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ value }) => value)
}
