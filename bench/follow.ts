// A second process follows a running loop with talk, 100,000 events: what each costs must not grow with how many came before.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { talkLog } from '../src/adapters/files/talk.ts'
import type { LoopEvent } from '../src/core/event.ts'
import { initialState } from '../src/core/state.ts'
import { cleanEnv, median } from './measure.ts'

const events = 100_000
const windows = 10
/** Of the last three tenths to the second to fourth, by their medians: the first one warms up. */
const maxGrowth = 1.5
const maxGrowthMb = 20
const maxWriteUs = 50
const root = resolve(import.meta.dirname, '..')
const dir = mkdtempSync(join(tmpdir(), 'ralph-bench-follow-'))

interface Window {
  readonly cpuUs: number
  readonly heapMb: number
}

try {
  await bundle(join(root, 'test/adapters/files/teller-driver.ts'), 'teller.mjs')
  await bundle(join(root, 'src/adapters/files/tail.ts'), 'tail.mjs')
  writeFileSync(join(dir, 'follower.mjs'), follower())
  const follows = spawn(process.execPath, ['--expose-gc', join(dir, 'follower.mjs')], {
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  follows.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8')
  })
  const began = performance.now()
  const teller = spawn(
    process.execPath,
    [join(dir, 'teller.mjs'), join(dir, 'run'), 'run-1', String(events)],
    {
      env: cleanEnv(),
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  const [[code], [followed]] = (await Promise.all([once(teller, 'exit'), once(follows, 'exit')])) as [
    [number],
    [number],
  ]
  if (code !== 0 || followed !== 0) throw new Error(`teller ${code}, follower ${followed}: ${output}`)
  const seconds = (performance.now() - began) / 1000
  const measured = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Window)
  console.log(`\nfollow: ${events} events of a running loop, nine of ten talk, ${seconds.toFixed(0)} s`)
  for (const [index, { cpuUs, heapMb }] of measured.entries())
    console.log(
      `  ${String(index * (100 / windows)).padStart(3)} to ${String((index + 1) * (100 / windows)).padStart(3)} %: ${cpuUs.toFixed(1).padStart(6)} µs of processor for each event, ${heapMb.toFixed(1).padStart(5)} MB heap`,
    )
  if (measured.length !== windows) throw new Error('not all was heard')
  const growth =
    median(measured.slice(-3).map((each) => each.cpuUs)) /
    median(measured.slice(1, 4).map((each) => each.cpuUs))
  const heapMb = (measured.at(-1)?.heapMb ?? Infinity) - (measured[1]?.heapMb ?? 0)
  console.log(
    `  the last tenths cost ${growth.toFixed(2)}x the first (goal: ${maxGrowth}x), heap +${heapMb.toFixed(1)} MB (goal: ${maxGrowthMb} MB)`,
  )
  const us = await toWrite()
  console.log(`  the loop itself pays ${us.toFixed(1)} µs for each piece of talk (goal: ${maxWriteUs} µs)`)
  process.exitCode = growth <= maxGrowth && heapMb <= maxGrowthMb && us <= maxWriteUs ? 0 : 1
} finally {
  rmSync(dir, { recursive: true, force: true })
}

/** Processor time of the talk log alone. */
async function toWrite(): Promise<number> {
  const log = talkLog(join(dir, 'talk'))
  const state = initialState('demo')
  const text = 'x'.repeat(100)
  const burnt = process.cpuUsage()
  for (let talk = 1; talk <= events; talk += 1) {
    const event: LoopEvent = {
      v: 1,
      seq: talk,
      time: '',
      change_id: 'demo',
      type: 'agent.message',
      n: 1,
      text,
    }
    log.read(event, state, { run: 'run-1', record: 1, talk })
    if (talk % 100 === 0) await new Promise(setImmediate)
  }
  log.close()
  const { user, system } = process.cpuUsage(burnt)
  return (user + system) / events
}

/** As plain JavaScript in a process of its own: a loader's time and memory are not ralph's. */
function follower(): string {
  return `
import { follow } from './tail.mjs'
const paths = { root: ${JSON.stringify(join(dir, 'run/ralph/changes/demo'))} }
paths.journal = paths.root + '/journal.ndjson'
paths.talk = paths.root + '/talk'
paths.archive = paths.root + '/archive'
const stop = new AbortController()
const each = ${events / windows}
let count = 0
let burnt = process.cpuUsage()
for await (const told of follow(paths, 'demo', () => true, { until: 'stop', stop: stop.signal })) {
  if (told.type === 'talk_dropped') throw new Error('talk was dropped before it was heard')
  if (told.type !== 'event' || told.event.type === 'loop.started') continue
  count += 1
  const text = told.event.text ?? told.event.message
  if (Number.parseInt(text, 10) !== count) throw new Error('expected ' + count + ', heard ' + text.slice(0, 20))
  if (count % each !== 0) continue
  const { user, system } = process.cpuUsage(burnt)
  gc()
  console.log(JSON.stringify({ cpuUs: (user + system) / each, heapMb: process.memoryUsage().heapUsed / 1e6 }))
  burnt = process.cpuUsage()
  if (count === ${events}) stop.abort()
}`
}

async function bundle(entry: string, name: string): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile: join(dir, name),
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  })
}
