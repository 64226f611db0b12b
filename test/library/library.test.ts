// ralph as a library, from its source: a loop is driven, stopped and watched inside this process, which stays as it was.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as library from '../../src/library/index.ts'
import type * as api from '../../src/library/api.ts'
import { goodAgent, ralph, scratch, start, tasksOf } from '../e2e/harness.ts'
import type { Scratch } from '../e2e/harness.ts'

type LoopItem = api.LoopItem
type WatchItem = api.WatchItem

/** What the declarations say is what there is. */
const { readLoop, runLoop, RalphError, watchLoops }: typeof api = library

const waiting = 'echo working; exec tail -f /dev/null'

function at(place: Scratch): { cwd: string; env: NodeJS.ProcessEnv } {
  return { cwd: place.repo, env: place.env }
}

/** Until the agent works. */
async function workingLoop(
  place: Scratch,
  signal?: AbortSignal,
): Promise<{ loop: ReturnType<typeof runLoop>; items: LoopItem[] }> {
  const loop = runLoop({ ...at(place), change: 'demo', settings: { agent_command: waiting }, signal })
  const items: LoopItem[] = []
  for (;;) {
    const { value, done } = await loop.next()
    if (done) throw new Error(`ended: ${JSON.stringify(value)}`)
    items.push(value)
    if (value.event.type === 'agent.message') return { loop, items }
  }
}

/** Every byte and time of the repository. */
function traceOf(folder: string): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const stats = statSync(join(folder, name))
    hash.update(`${name} ${stats.mtimeMs} ${stats.mode} `)
    if (stats.isFile()) hash.update(readFileSync(join(folder, name)))
  }
  return hash.digest('hex')
}

describe('runLoop', () => {
  test('tells the events that --json prints, each with the state after it and a cursor, and how it ended', async () => {
    const place = scratch({ tasks: tasksOf(2) })
    const loop = runLoop({
      ...at(place),
      change: 'demo',
      settings: { agent_command: goodAgent, verify: ['true'], max_retries: 1 },
    })
    const items: LoopItem[] = []
    for await (const item of loop) items.push(item)
    expect(loop.end).toEqual({ exit_code: 0, warnings: [] })
    const types = items.map(({ event }) => event.type)
    expect(types[0]).toBe('loop.started')
    expect(types.filter((type) => type === 'story.started')).toHaveLength(2)
    expect(types.at(-1)).toBe('complete')
    expect(items.map(({ event }) => event.seq)).toEqual(items.map((_, index) => index + 1))
    expect(new Set(items.map(({ cursor }) => cursor)).size).toBe(items.length)
    expect(items[0]?.state).toMatchObject({ change_id: 'demo', current_iteration: 0 })
    expect(items.at(-1)?.state).toMatchObject({ status: 'done', current_iteration: 2 })
    expect(place.state()).toMatchObject({ status: 'done', change_id: 'demo' })
    expect(items[0]?.event).toMatchObject({ settings: { max_retries: 1, gates: ['true'] } })
  })

  test('a signal stops it in order: the iteration is recorded, exit code 143', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const wish = new AbortController()
    const { loop } = await workingLoop(place, wish.signal)
    wish.abort()
    const rest: LoopItem[] = []
    for await (const item of loop) rest.push(item)
    expect(rest.at(-1)?.event).toMatchObject({ type: 'complete', status: 'stopped', exit_code: 143 })
    expect(loop.end?.exit_code).toBe(143)
    expect(place.state()).toMatchObject({ status: 'stopped', iterations: [{ n: 1, verdict: 'interrupted' }] })
    expect((await readLoop(at(place)))?.alive).toBe(false)
  })

  test('whoever stops reading stops it, and it is over then; a resume goes on', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const { loop } = await workingLoop(place)
    await loop.return({ exit_code: 0, warnings: [] })
    expect(place.state()).toMatchObject({ status: 'stopped' })
    const again = runLoop({
      ...at(place),
      resume: true,
      feedback: 'be quick',
      settings: { agent_command: goodAgent },
    })
    for await (const { event } of again)
      if (event.type === 'loop.started') expect(event).toMatchObject({ resumed: true, feedback: 'be quick' })
    expect(again.end?.exit_code).toBe(0)
  })

  test('a signal that was aborted before: nothing is touched', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const loop = runLoop({ ...at(place), signal: AbortSignal.abort() })
    await expect(loop.next()).rejects.toThrow('aborted')
    expect(existsSync(join(place.repo, '.git/ralph'))).toBe(false)
  })

  test.each([
    [{ settings: { max_retry: 1 } }, 'usage', 'Did you mean max_retries?'],
    [{ setings: {} }, 'usage', 'Did you mean settings?'],
    [{ settings: { json: true } }, 'usage', 'There are: '],
    [{ settings: { max_retries: -1 } }, 'config', ''],
    [{ change: 'nope' }, 'change_not_found', ''],
    [{ settings: { agent: 'claud' } }, 'config', ''],
  ])('what is wrong is refused before anything is touched: %j', async (options, code, hint) => {
    const place = scratch({ tasks: tasksOf(1) })
    const loop = runLoop({ change: 'demo', ...at(place), ...options } as Parameters<typeof runLoop>[0])
    const error = await loop.next().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RalphError)
    expect(error).toMatchObject({ code, exitCode: 2, hint: expect.stringContaining(hint) as string })
    expect(existsSync(join(place.repo, '.git/ralph'))).toBe(false)
  })

  test('a signal that comes while the start is prepared: the loop ends as stopped, and no agent was started', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const wish = new AbortController()
    const settings = { agent_command: `echo x > '${place.root}/started'; ${waiting}` }
    const loop = runLoop({ ...at(place), change: 'demo', settings, signal: wish.signal })
    const first = loop.next()
    wish.abort()
    const { value } = await first
    const items: unknown[] = [value]
    for await (const item of loop) items.push(item)
    expect(items.at(-1)).toMatchObject({ event: { type: 'complete', exit_code: 143 } })
    expect(existsSync(join(place.root, 'started'))).toBe(false)
    expect(place.state()).toMatchObject({ status: 'stopped', iterations: [] })
  })

  test('two loops of one process, each in a work tree of its own', async () => {
    const place = scratch({ tasks: tasksOf(2) })
    place.write('openspec/changes/next/tasks.md', tasksOf(2))
    place.git('add', '-A')
    place.git('commit', '-qm', 'next')
    const settings = { agent_command: goodAgent, worktree: true as const, verify: ['true'] }
    const ends = await Promise.all(
      ['demo', 'next'].map(async (change) => {
        const loop = runLoop({ ...at(place), change, settings })
        const changes = new Set<string>()
        for await (const { event, state } of loop) {
          changes.add(event.change_id)
          changes.add(state.change_id)
        }
        return [loop.end?.exit_code, [...changes]]
      }),
    )
    expect(ends).toEqual([
      [0, ['demo']],
      [0, ['next']],
    ])
    expect(place.git('branch', '--format=%(refname:short)').split('\n')).toEqual(
      expect.arrayContaining(['ralph/demo', 'ralph/next']),
    )
  })

  test('a reader that takes its time makes the agent wait, and loses nothing', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const chatty = `i=0; while [ $i -lt 3000 ]; do echo "line $i"; echo; i=$((i+1)); done; ${goodAgent}`
    const loop = runLoop({ ...at(place), change: 'demo', settings: { agent_command: chatty } })
    const said: string[] = []
    for await (const { event } of loop) {
      if (event.type === 'agent.message') said.push(event.text)
      if (said.length % 50 === 1) await new Promise((done) => setImmediate(done))
    }
    expect(loop.end?.exit_code).toBe(0)
    expect(said.join('\n')).toContain('line 2999')
  })

  test('a second loop in this work tree is refused, and names this process', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const { loop } = await workingLoop(place)
    await expect(runLoop({ ...at(place), change: 'demo' }).next()).rejects.toMatchObject({
      code: 'locked',
      exitCode: 7,
      message: expect.stringContaining(`pid ${process.pid}`) as string,
    })
    await loop.return({ exit_code: 0, warnings: [] })
  })

  test('ralph stop ends the loop and not the program that it runs in; --force kills no other program', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const { loop } = await workingLoop(place)
    const forced = await ralph(place, ['stop', 'demo', '--force'])
    expect(forced.code).toBe(2)
    expect(forced.stderr).toContain('runs inside another program')
    const stopping = ralph(place, ['stop', 'demo'])
    const items: LoopItem[] = []
    for await (const item of loop) items.push(item)
    const stopped = await stopping
    expect(stopped.code).toBe(0)
    expect(stopped.stdout).toContain('Stopped: demo')
    expect(items.at(-1)?.event).toMatchObject({ type: 'complete', exit_code: 143 })
  })

  test('the human of the program answers where the work goes', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    const loop = runLoop({
      ...at(place),
      change: 'demo',
      settings: { agent_command: goodAgent, on_complete: 'ask' },
      human: {
        choose: ({ originalBranch }) => Promise.resolve(originalBranch === 'main' ? 'cleanup' : 'keep'),
      },
    })
    for await (const _ of loop) continue
    expect(loop.end?.exit_code).toBe(0)
    expect(place.git('branch', '--show-current')).toBe('main')
  })
})

describe('observers', () => {
  test('readLoop: undefined before the first loop, an error for a name that is none, a dead loop is called dead; nothing is written', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    expect(await readLoop(at(place))).toBeUndefined()
    expect(await readLoop({ ...at(place), change: 'demo' })).toBeUndefined()
    await expect(readLoop({ ...at(place), change: 'dmo' })).rejects.toMatchObject({
      code: 'change_not_found',
    })
    const loop = start(place, ['loop', 'demo', '--json', '--agent-command', waiting])
    await loop.seen((out) => out.includes('working'))
    expect(await readLoop(at(place))).toMatchObject({ alive: true, status: 'running', change_id: 'demo' })
    loop.child.kill('SIGKILL')
    await loop.ended
    const before = traceOf(place.repo)
    const dead = await readLoop({ ...at(place), change: 'demo' })
    expect(dead).toMatchObject({ alive: false, status: 'stopped' })
    expect(dead?.died_at).toBeDefined()
    for await (const item of watchLoops(at(place))) {
      expect(item).toMatchObject({ type: 'loop', loop: 'dead', change_id: 'demo' })
      break
    }
    expect(traceOf(place.repo)).toBe(before)
  })

  test('watchLoops: how each loop stands, then what comes, loops of other work trees and those that begin later too; a cursor continues', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    place.write('openspec/changes/next/tasks.md', tasksOf(1))
    place.write('openspec/changes/past/tasks.md', tasksOf(1))
    place.git('add', '-A')
    place.git('commit', '-qm', 'more')
    expect((await ralph(place, ['loop', 'past', '--agent-command', goodAgent])).code).toBe(0)
    expect((await ralph(place, ['finish', 'past', '--cleanup'])).code).toBe(0)
    place.git('add', '-A')
    place.git('commit', '-qm', 'past is done')
    const end = new AbortController()
    const items: WatchItem[] = []
    let next: ReturnType<typeof start> | undefined
    for await (const item of watchLoops({ ...at(place), signal: end.signal })) {
      items.push(item)
      // Only when the watch has begun: it is seen from its first event on.
      next ??= start(place, ['loop', 'next', '--worktree', '--json', '--agent-command', goodAgent])
      if (item.change_id === 'next' && item.type === 'loop' && item.loop === 'ended') end.abort()
    }
    const ran = await next?.ended
    expect(ran?.code).toBe(0)
    const of = (change: string): readonly WatchItem[] => items.filter((item) => item.change_id === change)
    expect(of('past')).toMatchObject([{ type: 'loop', loop: 'ended', state: { status: 'done' } }])
    const events = of('next').flatMap((item) => (item.type === 'event' ? [item.event] : []))
    const printed = (ran?.stdout ?? '').trimEnd().split('\n')
    expect(events).toEqual(printed.map((line) => JSON.parse(line) as unknown))
    const third = of('next').filter((item) => item.type === 'event')[2]
    const rest: WatchItem[] = []
    const from = { next: third?.cursor ?? '' }
    for await (const item of watchLoops({ ...at(place), from })) {
      if (item.change_id !== 'next') continue
      rest.push(item)
      if (item.type === 'loop') break
    }
    expect(rest.flatMap((item) => (item.type === 'event' ? [item.event.seq] : []))).toEqual(
      events.slice(3).map(({ seq }) => seq),
    )
  })

  test('a journal that cannot be read hides no other loop', async () => {
    const place = scratch({ tasks: tasksOf(1) })
    expect((await ralph(place, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    const folder = join(place.repo, '.git/ralph/changes')
    mkdirSync(join(folder, 'odd/journal.ndjson'), { recursive: true })
    writeFileSync(join(folder, 'odd/journal.ndjson/x'), '')
    const seen = new Map<string, string>()
    for await (const item of watchLoops(at(place))) {
      seen.set(item.change_id, item.type)
      if (seen.size === 2) break
    }
    expect(Object.fromEntries(seen)).toEqual({ demo: 'loop', odd: 'journal_damaged' })
  })
})
