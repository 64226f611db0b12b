// Real processes: one tells, is killed or begins anew; others follow it.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { inspectLock } from '../../../src/adapters/files/lock.ts'
import { runPaths } from '../../../src/adapters/files/paths.ts'
import { follow } from '../../../src/adapters/files/tail.ts'
import { bootId, isAlive, processIdentity } from '../../../src/adapters/process/table.ts'
import { cursorText, isAfter } from '../../../src/core/cursor.ts'
import type { Cursor } from '../../../src/core/cursor.ts'
import type { FollowRequest, Told } from '../../../src/ports.ts'
import { change } from './teller.ts'

const root = mkdtempSync(join(tmpdir(), 'ralph-follow-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const driver = join(root, 'driver.mjs')
buildSync({
  entryPoints: [join(import.meta.dirname, 'teller-driver.ts')],
  outfile: driver,
  bundle: true,
  platform: 'node',
  format: 'esm',
  banner: {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
  },
})

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(root, 'run-'))
})

const identity = { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive }

function following(request: Partial<FollowRequest> = {}): AsyncGenerator<Told, void> {
  const paths = runPaths(folder, change)
  const isRunning = (): boolean => inspectLock(paths.lock, identity).held === 'alive'
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  return follow(paths, change, isRunning, { until: 'end', stop: stop.signal, ...request })
}

async function telling(count: number, run = 'run-1'): Promise<ChildProcess> {
  const child = spawn(process.execPath, [driver, folder, run, String(count), '7'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

function textOf(told: Told): string {
  if (told.type !== 'event') return told.type
  const { event } = told
  return ('text' in event ? event.text : 'message' in event ? event.message : '0').split(' ')[0] ?? ''
}

/** Every cursor once, each after the one before it. */
function expectInOrder(told: readonly Told[]): void {
  let last: Cursor | undefined
  for (const { type, cursor } of told) {
    if (type !== 'event') continue
    if (last !== undefined) expect(isAfter(cursor, last), cursorText(cursor)).toBe(true)
    last = cursor
  }
}

const numbers = (count: number): string[] => Array.from({ length: count + 1 }, (_, i) => String(i))

describe('a follower in another process', () => {
  test('hears all that a loop tells and says while it runs, in its order, and ends with it; so do two', async () => {
    await telling(3000)
    const [first, second] = await Promise.all(
      [following(), following()].map(async (stream) => {
        const told: Told[] = []
        for await (const each of stream) told.push(each)
        return told
      }),
    )
    for (const told of [first ?? [], second ?? []]) {
      expect(told.filter(({ type }) => type === 'event').map(textOf)).toEqual(numbers(3000))
      expectInOrder(told)
    }
  })

  test('kill -9: it hears what was written, that the loop is dead, and goes on with the next loop where it was', async () => {
    const child = await telling(1_000_000)
    const told: Told[] = []
    for await (const each of following()) {
      told.push(each)
      if (told.length === 500) child.kill('SIGKILL')
    }
    expect(told.at(-1)).toMatchObject({ type: 'loop', loop: 'dead' })
    const events = told.filter(({ type }) => type === 'event').map(textOf)
    expect(events).toEqual(numbers(events.length - 1))
    expectInOrder(told)

    const next = await telling(50, 'run-2')
    const from = told.at(-1)?.cursor
    if (from === undefined) throw new TypeError('nothing was told')
    const later: Told[] = []
    for await (const each of following({ from })) later.push(each)
    await (next.exitCode ?? once(next, 'exit'))
    expect(later.filter(({ type }) => type === 'event').map(textOf)).toEqual(numbers(50))
    expectInOrder([...told, ...later])
  })

  test('follows through --fresh from before the first run to the end of the second, for as long as it is asked to', async () => {
    const stop = new AbortController()
    const stream = following({ until: 'stop', stop: stop.signal })
    expect((await stream.next()).value).toMatchObject({ type: 'loop', loop: 'none' })
    const heard: string[] = []
    const until = async (isLast: (told: Told) => boolean): Promise<void> => {
      for (let next = await stream.next(); next.done !== true; next = await stream.next()) {
        heard.push(next.value.type === 'loop' ? next.value.loop : textOf(next.value))
        if (isLast(next.value)) return
      }
    }
    const first = await telling(500)
    await until((told) => textOf(told) === '500')
    await (first.exitCode ?? once(first, 'exit'))
    const { root: run, archive } = runPaths(folder, change)
    mkdirSync(join(archive, 'a'), { recursive: true })
    for (const name of ['journal.ndjson', 'talk']) renameSync(join(run, name), join(archive, 'a', name))
    await telling(700, 'run-2')
    await until(({ type }) => type === 'run_began')
    await until((told) => textOf(told) === '700')
    stop.abort()
    expect((await stream.next()).done).toBe(true)
    const events = heard.filter((each) => /^\d+$/.test(each))
    expect(events).toEqual([...numbers(500), ...numbers(700)])
    expect(heard.indexOf('run_began')).toBeGreaterThan(heard.indexOf('500'))
  })
})
