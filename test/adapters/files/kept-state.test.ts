import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fileJournal } from '../../../src/adapters/files/journal.ts'
import { readJournal } from '../../../src/adapters/files/journal-text.ts'
import { lookAtJournal } from '../../../src/adapters/files/journal-look.ts'
import { keptStateFile } from '../../../src/adapters/files/kept-state.ts'
import type { LoopEvent } from '../../../src/core/event.ts'
import { reduce, replay } from '../../../src/core/loop.ts'
import { initialState } from '../../../src/core/state.ts'
import type { LoopState } from '../../../src/core/state.ts'
import { good, play, settings } from '../../core/world.ts'

const change = 'demo'
let folder = ''
let path = ''
let beside = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-kept-state-'))
  path = join(folder, 'journal.ndjson')
  beside = keptStateFile(path)
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Every second attempt fails. */
function playedRun(stories: number, deed = good): readonly LoopEvent[] {
  const deeds = Array.from({ length: stories * 2 }, (_, n) =>
    n % 2 === 0 ? { ...deed, promise: 'failed' as const } : deed,
  )
  return play({ settings, tasks: Array.from({ length: stories }, () => 1), deeds }).events
}

/** As a stream does it, with the agent's talk, which is in no journal. */
async function write(events: readonly LoopEvent[], from = initialState(change)): Promise<void> {
  const journal = fileJournal(path)
  let state = from
  const appends: Promise<void>[] = []
  for (const event of events) {
    state = reduce(state, event).state
    appends.push(journal.append(event, state))
    if (event.type === 'agent.ended') await Promise.all(appends)
    if (event.type === 'iteration.started')
      state = reduce(state, { ...event, type: 'agent.message', time: later, text: 'hm' }).state
  }
  await Promise.all(appends)
  await journal.close()
}

const later = '2026-01-01T00:00:09+00:00'

/** By a replay of every line, and of nothing else. */
async function whole(): Promise<LoopState> {
  return replay(initialState(change), (await readJournal(path)).events)
}

interface Parts {
  head: Record<string, unknown>
  body: string
}

function parts(): Parts {
  const [head = '', body = ''] = readFileSync(beside, 'utf8').split('\n')
  return { head: JSON.parse(head) as Record<string, unknown>, body }
}

/** What is kept, with a word in it that no replay comes to: who finds it has gone by it. */
function mark(changed: (parts: Parts) => Parts = (same) => same): void {
  const { head, body } = parts()
  const marked = body.replace('"branch":"ralph/demo"', '"branch":"ralph/kept"')
  expect(marked).not.toBe(body)
  const state = createHash('sha1').update(marked).digest('hex')
  const written = changed({ head: { ...head, state }, body: marked })
  writeFileSync(beside, `${JSON.stringify(written.head)}\n${written.body}`)
}

async function branchSeen(): Promise<string | undefined> {
  return (await lookAtJournal(path, change)).state.branch
}

describe('the state beside a journal', () => {
  test('a look comes to the state of a replay, and replays only what came after', async () => {
    const events = playedRun(60)
    await write(events)
    expect(statSync(path).size).toBeGreaterThan(100_000)
    expect(parts().head['offset']).toBe(statSync(path).size)
    expect((await lookAtJournal(path, change)).state).toEqual(await whole())
    mark()
    expect(await branchSeen()).toBe('ralph/kept')
    expect((await whole()).branch).toBe('ralph/demo')
  })

  test('in the middle of a loop it is that of an iteration that has ended, without the talk', async () => {
    const events = playedRun(60)
    await write(events.slice(0, events.findLastIndex(({ type }) => type === 'iteration.started') + 1))
    const { head, body } = parts()
    const offset = Number(head['offset'])
    expect(offset).toBeLessThan(statSync(path).size)
    const lines = readFileSync(path).subarray(0, offset).toString('utf8').trimEnd().split('\n')
    const before = lines.map((line) => JSON.parse(line) as LoopEvent)
    expect(before.at(-1)?.type).toBe('iteration.ended')
    const [rest, stories, iterations] = JSON.parse(body) as readonly LoopState[]
    expect({ ...rest, stories, iterations }).toEqual(replay(initialState(change), before))
    expect((await lookAtJournal(path, change)).state).toEqual(await whole())
  })

  test('what came after it counts, and what is asked for is found on both sides of it', async () => {
    const events = playedRun(60)
    await write(events)
    const offset = Number(parts().head['offset'])
    const [begun] = events
    if (begun?.type !== 'loop.started') throw new Error('the first event is no start')
    await write([{ ...begun, resumed: true, time: later }], await whole())
    expect(parts().head['offset']).toBe(offset)
    const look = await lookAtJournal(path, change)
    expect(look.state).toEqual(await whole())
    expect(look.recall('loop.started').map(({ resumed }) => resumed)).toEqual([false, true])
    const wanted = ['attempt.kept', 'iteration.ended', 'loop.started'] as const
    const all = (await readJournal(path)).events.filter(({ type }) => wanted.some((each) => each === type))
    expect(look.recall(...wanted)).toEqual(all)
    expect(look.recall('gate.ended')).toEqual([])
  })

  test('a short run has none, and a long one writes it seldom', async () => {
    await write(playedRun(5))
    expect(existsSync(beside)).toBe(false)
    const events = playedRun(60)
    rmSync(path)
    const journal = fileJournal(path)
    let state = initialState(change)
    const offsets = new Set<unknown>()
    for (const event of events) {
      state = reduce(state, event).state
      await journal.append(event, state)
      if (existsSync(beside)) offsets.add(parts().head['offset'])
    }
    await journal.close()
    expect(offsets.size).toBeGreaterThan(1)
    expect(offsets.size).toBeLessThanOrEqual(Math.ceil(statSync(path).size / 65_536) + 1)
  })

  test('a time without end, which JSON does not know, is never kept as none', async () => {
    const events = playedRun(60)
    const end = events.findLastIndex(({ type }) => type === 'iteration.ended')
    await write(events.slice(0, end))
    const before = readFileSync(beside, 'utf8')
    const journal = fileJournal(path)
    const limited = { ...(await whole()), limitedUntilMs: { claude: Number.POSITIVE_INFINITY } }
    for (const event of events.slice(end)) await journal.append(event, limited)
    await journal.close()
    expect(readFileSync(beside, 'utf8')).toBe(before)
  })

  test.each<readonly [string, () => void]>([
    ['of another core', () => mark(({ head, body }) => ({ head: { ...head, core: 'other' }, body }))],
    ['of another version', () => mark(({ head, body }) => ({ head: { ...head, v: 2 }, body }))],
    ['of a longer journal', () => mark(({ head, body }) => ({ head: { ...head, offset: 1e9 }, body }))],
    ['with no place', () => mark(({ head, body }) => ({ head: { ...head, offset: undefined }, body }))],
    ['damaged', () => mark(({ head, body }) => ({ head, body: body.replace('"step":', '"stop":') }))],
    ['torn', () => mark(({ head, body }) => ({ head, body: body.slice(0, 1000) }))],
    ['of another change', () => mark(({ head, body }) => otherChange(head, body))],
    ['empty', () => writeFileSync(beside, '')],
    ['no text', () => writeFileSync(beside, Buffer.from([0xff, 0xfe, 0x0a, 0x00]))],
    ['a folder', () => (rmSync(beside), mkdirSync(beside))],
    ['a pipe', () => (rmSync(beside), execFileSync('mkfifo', [beside]))],
  ])('one that is %s is not believed', async (_, harm) => {
    await write(playedRun(60))
    harm()
    expect((await lookAtJournal(path, change)).state).toEqual(await whole())
  })

  test('H3: a byte that changed in the journal before it is found, and a damaged line is said', async () => {
    await write(playedRun(60))
    mark()
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace('reason 21', 'reason 12'))
    expect(await branchSeen()).toBe('ralph/demo')
    const lines = text.split('\n')
    writeFileSync(path, [...lines.slice(0, 40), '{"half": ', ...lines.slice(41)].join('\n'))
    const { damage, state } = await lookAtJournal(path, change)
    expect(damage).toBe(`Line 41 of the journal ${path} is damaged (it is not JSON).`)
    expect(state).toEqual(await whole())
  })

  test('H3: a damaged line after it is said with its number, and a torn last one is none', async () => {
    await write(playedRun(60))
    const count = readFileSync(path, 'utf8').split('\n').length
    appendFileSync(path, '{"half": ')
    expect((await lookAtJournal(path, change)).damage).toBeUndefined()
    appendFileSync(path, '\n')
    mark()
    const { damage, state } = await lookAtJournal(path, change)
    expect(damage).toBe(`Line ${count} of the journal ${path} is damaged (it is not JSON).`)
    expect(state.branch).toBe('ralph/kept')
  })

  test('where it cannot be written the journal is, and nothing is left lying about', async () => {
    mkdirSync(join(beside, 'in-the-way'), { recursive: true })
    await write(playedRun(60))
    expect((await lookAtJournal(path, change)).state).toEqual(await whole())
    expect(existsSync(`${beside}.${process.pid}.tmp`)).toBe(false)
  })

  test('where not even its draft can be taken away the journal has every line once', async () => {
    mkdirSync(join(`${beside}.${process.pid}.tmp`, 'in-the-way'), { recursive: true })
    const events = playedRun(60)
    await write(events)
    expect((await readJournal(path)).events).toEqual(events)
    expect(existsSync(beside)).toBe(false)
  })
})

function otherChange(head: Record<string, unknown>, body: string): Parts {
  const other = body.replace('"changeId":"demo"', '"changeId":"other"')
  return { head: { ...head, state: createHash('sha1').update(other).digest('hex') }, body: other }
}
