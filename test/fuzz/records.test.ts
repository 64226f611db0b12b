// ralph's own records after somebody has written into them: state file, journal, locks. Read, or refused by name.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readJournal } from '../../src/adapters/files/journal-text.ts'
import { fileLock, inspectLock, type Identity } from '../../src/adapters/files/lock.ts'
import { runPaths } from '../../src/adapters/files/paths.ts'
import { openStateFile } from '../../src/adapters/files/state-file.ts'
import { readStateFile } from '../../src/adapters/files/state-reader.ts'
import { openTail } from '../../src/adapters/files/tail.ts'
import { RalphError } from '../../src/core/error.ts'
import { next, replay } from '../../src/core/loop.ts'
import { toStateFile } from '../../src/core/state-snapshot.ts'
import { initialState } from '../../src/core/state.ts'
import { good, play, settings as loopSettings } from '../core/world.ts'
import { anyBytes, isUnspoilt, jsonOf, seeded, settings, twisted, wounded } from './foreign.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ralph-fuzz-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = play({
  settings: { ...loopSettings, gates: ['true'] },
  tasks: [2, 1, 1],
  deeds: [
    good,
    { ...good, promise: 'failed' },
    { ...good, gatesPass: false },
    good,
    { ...good, ending: 'limit' },
    good,
  ],
})
const state = toStateFile(run.state)
const journal = Buffer.from(run.events.map((event) => `${JSON.stringify(event)}\n`).join(''))

describe('fuzz: the state file', () => {
  test(`whatever stands there, a loop can begin, and its file is a state file again ${seeded}`, async () => {
    const path = join(folder, 'tree', '.claude', 'loop-state.json')
    mkdirSync(join(folder, 'tree', '.claude'), { recursive: true })
    const input = fc.oneof(
      anyBytes,
      wounded([Buffer.from(JSON.stringify(state))]),
      twisted([state, { ...state, foreign: { a: [1, { b: 2 }] } }]).map((value) =>
        Buffer.from(jsonOf(value)),
      ),
    )
    await fc.assert(
      fc.asyncProperty(input, async (bytes) => {
        writeFileSync(path, bytes)
        await readStateFile(path)
        const { writer } = await openStateFile(path, join(folder, 'archive'), 'demo')
        await writer.write(state)
        expect((await readStateFile(path))?.status).toBe(state.status)
        expect(isUnspoilt()).toBe(true)
      }),
      settings(4),
    )
  })

  test('a foreign field that is nested deeper than the stack', async () => {
    const path = join(folder, 'tree', '.claude', 'loop-state.json')
    mkdirSync(join(folder, 'tree', '.claude'), { recursive: true })
    writeFileSync(
      path,
      JSON.stringify({ ...state, foreign: '@' }).replace(
        '"@"',
        `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
      ),
    )
    const { writer } = await openStateFile(path, join(folder, 'archive'), 'demo')
    await writer.write(state)
    expect((await readStateFile(path))?.status).toBe(state.status)
  })
})

describe('fuzz: the journal', () => {
  test(`is read and replayed, or refused with its line ${seeded}`, async () => {
    const path = join(folder, 'journal.ndjson')
    const input = fc.oneof(
      anyBytes,
      wounded([journal]),
      fc
        .array(twisted(run.events), { minLength: 1, maxLength: 3 })
        .map((events) => Buffer.concat([journal, Buffer.from(events.map(jsonOf).join('\n'))])),
    )
    await fc.assert(
      fc.asyncProperty(input, async (bytes) => {
        writeFileSync(path, bytes)
        const { events, damage } = await readJournal(path)
        if (damage !== undefined) expect(damage).toMatch(new RegExp(`^Line \\d+ of the journal ${path} `))
        const replayed = replay(initialState('demo'), events)
        next(replayed)
        expect(JSON.stringify(toStateFile(replayed)).length).toBeGreaterThan(0)
        expect(isUnspoilt()).toBe(true)
        expect(readFileSync(path).equals(bytes)).toBe(true)
      }),
      settings(4),
    )
  })

  test(`is followed to the same end as it is read, whatever was said beside it ${seeded}`, async () => {
    const paths = runPaths(join(folder, 'followed'), 'demo')
    mkdirSync(paths.talk, { recursive: true })
    const said = run.events
      .slice(0, 3)
      .map((event, talk) =>
        jsonOf({ record: 1, talk, event: { ...event, type: 'agent.message', n: 1, text: 'x' } }),
      )
    const talk = Buffer.from([jsonOf({ talk: 1, loop: 'run' }), ...said, ''].join('\n'))
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(anyBytes, wounded([journal])),
        fc.oneof(anyBytes, wounded([talk])),
        async (bytes, beside) => {
          writeFileSync(paths.journal, bytes)
          writeFileSync(join(paths.talk, '000001-1.ndjson'), beside)
          const { events, damage } = await readJournal(paths.journal)
          const tail = openTail(paths, 'demo')
          const records = []
          for (let told = await tail.next(); told !== undefined; told = await tail.next())
            if (told.type === 'event' && told.cursor.talk === 0) records.push(told.event)
          expect({ events: records, damage: tail.damage }).toEqual({ events, damage })
          await tail.close()
        },
      ),
      settings(4),
    )
  })

  test('a line of 50 MB', async () => {
    const path = join(folder, 'long.ndjson')
    writeFileSync(path, Buffer.concat([journal, Buffer.alloc(50 * 1024 * 1024, 'x')]))
    expect((await readJournal(path)).events.length).toBeGreaterThan(0)
  })
})

describe('fuzz: locks', () => {
  const identity: Identity = { pid: process.pid, started: '1', bootId: 'boot', isAlive: () => false }
  const owner = {
    pid: 4711,
    pid_started: '1',
    boot_id: 'boot',
    host: hostname(),
    token: 't',
    change: 'demo',
    worktree: '/x',
    since: '2026-01-01T00:00:00+00:00',
  }

  test(`a broken lock is nobody's, and can be taken ${seeded}`, async () => {
    const path = join(folder, 'lock.json')
    const input = fc.oneof(
      anyBytes,
      wounded([Buffer.from(JSON.stringify(owner))]),
      twisted([owner]).map((value) => Buffer.from(jsonOf(value))),
    )
    await fc.assert(
      fc.asyncProperty(input, async (bytes) => {
        writeFileSync(path, bytes)
        const { held } = inspectLock(path, identity)
        const taken = await fileLock(path, { change: 'demo', worktree: '/x', since: '' }, identity)
          .acquire()
          .catch((error: unknown) => error)
        if (taken instanceof Error) {
          expect(taken).toBeInstanceOf(RalphError)
          expect(['alive', 'elsewhere']).toContain(held)
        } else await (taken as { release(): Promise<void> }).release()
        rmSync(path, { force: true })
      }),
      settings(4),
    )
  })
})
