import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readJournal } from '../../../src/adapters/files/journal-text.ts'
import { runPaths } from '../../../src/adapters/files/paths.ts'
import { openTail } from '../../../src/adapters/files/tail.ts'
import type { Tail } from '../../../src/adapters/files/tail.ts'
import { talkFiles } from '../../../src/adapters/files/talk.ts'
import { cursorText, parseCursor } from '../../../src/core/cursor.ts'
import { replay } from '../../../src/core/loop.ts'
import { initialState } from '../../../src/core/state.ts'
import type { Told } from '../../../src/ports.ts'
import { change, openTeller, says, started, warns } from './teller.ts'
import type { Teller } from './teller.ts'

let folder = ''
const tails: Tail[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-tail-'))
})
afterEach(async () => {
  await Promise.all(tails.splice(0).map((tail) => tail.close()))
  await rm(folder, { recursive: true, force: true })
})

const paths = (): ReturnType<typeof runPaths> => runPaths(folder, change)

function openOne(from?: string): Tail {
  const cursor = parseCursor(from ?? '')
  const tail = openTail(paths(), change, { ...(cursor !== undefined && { from: cursor }) })
  tails.push(tail)
  return tail
}

async function rest(tail: Tail): Promise<Told[]> {
  const told: Told[] = []
  for (let next = await tail.next(); next !== undefined; next = await tail.next()) told.push(next)
  return told
}

/** Short enough to compare: an event by its cursor and what it says, all else by its type. */
function short(told: readonly Told[]): string[] {
  return told.map((each) => {
    if (each.type !== 'event') return each.type
    const { event } = each
    const what = 'text' in event ? event.text : 'message' in event ? event.message : event.type
    return `${cursorText(each.cursor)} ${what}`
  })
}

function shortOf({ told }: Teller): string[] {
  return told.map(({ cursor, event }) => {
    const what = 'text' in event ? event.text : 'message' in event ? event.message : event.type
    return `${cursor} ${what}`
  })
}

/** A small loop with talk; left open. */
async function teller(run = 'run-1', resumed = false): Promise<Teller> {
  const opened = await openTeller(folder)
  await opened.tell(started(run, resumed))
  await opened.tell(says('one'))
  await opened.tell(warns('two'))
  await opened.tell(says('three'))
  await opened.tell(says('four'))
  await opened.tell(warns('five'))
  return opened
}

/** As `--fresh` does it. */
function archive(name: string): void {
  const { root, archive: all, journal, talk } = paths()
  const to = join(all, name)
  mkdirSync(to, { recursive: true })
  renameSync(journal, join(to, 'journal.ndjson'))
  renameSync(talk, join(to, 'talk'))
  expect(statSync(root).isDirectory()).toBe(true)
}

describe('a tail', () => {
  test('tells journal and talk in the order in which the loop told them, each once, with the same cursors', async () => {
    const writer = await teller()
    const tail = openOne()
    expect(short(await rest(tail))).toEqual(shortOf(writer))
    await writer.tell(says('six'))
    await writer.tell(warns('seven'))
    expect(short(await rest(tail))).toEqual(shortOf(writer).slice(-2))
    expect(await rest(tail)).toEqual([])
    await writer.close()
    const { events } = await readJournal(paths().journal)
    expect(tail.state.phase).toBe(replay(initialState(change), events).phase)
  })

  test('goes on from any cursor with exactly what came after it', async () => {
    const writer = await teller()
    await writer.close()
    const all = shortOf(writer)
    for (const [index, { cursor }] of writer.told.entries())
      expect(short(await rest(openOne(cursor)))).toEqual(all.slice(index + 1))
  })

  test('two of them, and one that was there before the run, hear the same', async () => {
    const early = openOne()
    expect(await rest(early)).toEqual([])
    const writer = await teller()
    const second = openOne()
    expect(short(await rest(early))).toEqual(shortOf(writer))
    expect(short(await rest(second))).toEqual(shortOf(writer))
    await writer.close()
  })

  test('a loop that goes on with a run is heard by whoever followed the one before, talk that was lost or not', async () => {
    const first = await teller()
    const tail = openOne()
    await rest(tail)
    await first.close()
    // Said after a record that the power cut took.
    const [file] = talkFiles(paths().talk)
    appendFileSync(
      file?.path ?? '',
      `${JSON.stringify({ record: 4, talk: 1, event: first.told[1]?.event })}\n{"rec`,
    )
    const second = await teller('run-2', true)
    await second.close()
    const told = short(await rest(tail))
    expect(told.filter((each) => each !== 'talk_dropped')).toEqual(shortOf(second))
    expect(told).toContain('talk_dropped')
  })

  test('an old journal without talk is read as it is', async () => {
    const writer = await teller()
    await writer.close()
    rmSync(paths().talk, { recursive: true })
    expect(short(await rest(openOne()))).toEqual([
      'run-1:1.0 loop.started',
      'run-1:2.0 two',
      'run-1:3.0 five',
    ])
  })
})

describe('--fresh', () => {
  test('who follows hears the rest of the old run, that another began, and all of that', async () => {
    const old = await teller()
    const tail = openOne()
    await rest(tail)
    await old.tell(says('last words'))
    await old.tell(warns('the end'))
    await old.close()
    archive('a')
    const fresh = await teller('run-2')
    await fresh.close()
    expect(short(await rest(tail))).toEqual([...shortOf(old).slice(-2), 'run_began', ...shortOf(fresh)])
  })

  test('while it moves the run away nothing is told too early, and nothing is lost', async () => {
    const old = await teller()
    const tail = openOne()
    await tail.next()
    await old.tell(says('in a file of its own', 2))
    await old.tell(warns('last'))
    await old.close()
    const late = openOne()
    const to = join(paths().archive, 'a')
    mkdirSync(to, { recursive: true })
    renameSync(paths().journal, join(to, 'journal.ndjson'))
    const first = await rest(tail)
    const meanwhile = openOne(old.told[2]?.cursor)
    expect(await rest(meanwhile)).toEqual([])
    renameSync(paths().talk, join(to, 'talk'))
    expect(short([...first, ...(await rest(tail))])).toEqual(shortOf(old).slice(1))
    expect(short(await rest(meanwhile))).toEqual(shortOf(old).slice(3))
    // Who names no run waits for the next.
    expect(await rest(late)).toEqual([])
    const fresh = await teller('run-2')
    await fresh.close()
    for (const each of [tail, meanwhile])
      expect(short(await rest(each))).toEqual(['run_began', ...shortOf(fresh)])
    expect(short(await rest(late))).toEqual(shortOf(fresh))
  })

  test('a cursor of an archived run is known: its rest, then every run that came later', async () => {
    const runs = []
    for (const run of ['run-1', 'run-2', 'run-3']) {
      const writer = await teller(run)
      await writer.close()
      runs.push(writer)
      if (run !== 'run-3') archive(run)
    }
    const [first, second, third] = runs.map(shortOf)
    expect(short(await rest(openOne(runs[0]?.told[2]?.cursor)))).toEqual([
      ...(first ?? []).slice(3),
      'run_began',
      ...(second ?? []),
      'run_began',
      ...(third ?? []),
    ])
  })

  test('a cursor of a run that is nowhere any more: that is said, and the run that is there is told from its start', async () => {
    const writer = await teller('run-2')
    await writer.close()
    const [began, ...told] = await rest(openOne('run-1:2.1'))
    expect(began).toMatchObject({ type: 'run_began', isLost: true })
    expect(short(told)).toEqual(shortOf(writer))
  })
})

describe('what a crash or a stranger does to the files', () => {
  test('torn at every byte: what is whole is told and nothing else, and the rest once it is there', async () => {
    const writer = await teller()
    await writer.close()
    const { journal } = paths()
    const bytes = readFileSync(journal)
    const all = shortOf(writer)
    rmSync(journal)
    const patient = openOne()
    const heard: Told[] = []
    for (let size = 0; size <= bytes.length; size += 1) {
      writeFileSync(join(folder, 'torn'), bytes.subarray(0, size))
      copyFileSync(join(folder, 'torn'), journal)
      const { events } = await readJournal(journal)
      const told = await rest(openOne())
      const records = told.filter((each) => each.type === 'event' && each.cursor.talk === 0)
      expect(records.map((each) => each.type === 'event' && each.event)).toEqual(events)
      expect(short(told)).toEqual(all.slice(0, told.length))
      await tails.pop()?.close()
      heard.push(...(await rest(patient)))
    }
    expect(short(heard)).toEqual(all)
  })

  test('talk torn at every byte never spoils the journal, and is whole once it is there', async () => {
    const writer = await teller()
    await writer.close()
    const path = talkFiles(paths().talk)[0]?.path ?? ''
    const bytes = readFileSync(path)
    const records = shortOf(writer).filter((each) => each.includes('.0 '))
    for (let size = 0; size < bytes.length; size += 1) {
      truncateSync(path, 0)
      appendFileSync(path, bytes.subarray(0, size))
      const told = short(await rest(openOne()))
      expect(told.filter((each) => each.includes('.0 '))).toEqual(records)
      expect(told.every((each) => shortOf(writer).includes(each))).toBe(true)
      await tails.pop()?.close()
    }
  })

  test('a damaged line is said once, with its number, and nothing after it is told until it is mended', async () => {
    const writer = await teller()
    await writer.close()
    const { journal } = paths()
    const whole = readFileSync(journal, 'utf8').split('\n')
    const tail = openOne()
    await tail.next()
    writeFileSync(journal, [whole[0], '{"v":1,"se\u0000', ...whole.slice(2)].join('\n'))
    const fresh = openOne()
    const told = await rest(fresh)
    expect(short(told)).toEqual([...shortOf(writer).slice(0, 2), 'journal_damaged'])
    expect(told.at(-1)).toMatchObject({
      message: expect.stringContaining(`Line 2 of the journal ${journal}`),
    })
    expect(await rest(fresh)).toEqual([])
    // As the writer does it.
    writeFileSync(`${journal}.tmp`, whole.join('\n'))
    renameSync(`${journal}.tmp`, journal)
    expect(short(await rest(fresh))).toEqual(shortOf(writer).slice(2))
    expect(short(await rest(tail))).toEqual(shortOf(writer).slice(1))
  })

  test('a journal that was cut is said, and told anew from there', async () => {
    const writer = await teller()
    await writer.close()
    const tail = openOne()
    await rest(tail)
    const { journal } = paths()
    const [first = ''] = readFileSync(journal, 'utf8').split('\n')
    truncateSync(journal, first.length + 1)
    expect(short(await rest(tail))).toEqual(['journal_cut'])
    expect(cursorText(tail.cursor)).toBe('run-1:1.1')
    const again = await teller('run-2', true)
    await again.close()
    expect(short(await rest(tail)).filter((each) => each !== 'talk_dropped')).toEqual(shortOf(again))
  })

  test('a file that the writer has written anew is gone on with, and nothing is told twice', async () => {
    const writer = await teller()
    const tail = openOne()
    await rest(tail)
    appendFileSync(paths().journal, 'nonsense')
    await writer.tell(warns('after'))
    await writer.close()
    expect(short(await rest(tail)).at(-1)).toBe('run-1:4.0 after')
    expect(await rest(tail)).toEqual([])
    expect(short(await rest(openOne())).filter((each) => /warning|journal/.test(each))).toEqual([])
  })

  test('a pipe in the place of a file is no wait for ever', async () => {
    const writer = await teller()
    await writer.close()
    const records = shortOf(writer).filter((each) => each.includes('.0 '))
    const talk = talkFiles(paths().talk)[0]?.path ?? ''
    rmSync(talk)
    execFileSync('mkfifo', [talk])
    expect(short(await rest(openOne()))).toEqual(records)
    rmSync(paths().journal)
    execFileSync('mkfifo', [paths().journal])
    expect(await rest(openOne())).toEqual([])
  })

  test('talk beyond its share is dropped, the oldest first, and that is said where it was', async () => {
    const limits = { fileBytes: 500, iterationBytes: 2000, totalBytes: 4000 }
    const writer = await openTeller(folder, { limits })
    await writer.tell(started('run-1'))
    const slow = openOne()
    await rest(slow)
    for (let i = 0; i < 60; i += 1) {
      await writer.tell(says(`${i}`, 1 + Math.floor(i / 20)))
      await writer.tell(warns('so that it is written'))
      if (i === 1) expect(short(await rest(slow))).not.toContain('talk_dropped')
    }
    await writer.close()
    for (const tail of [slow, openOne()]) {
      const told = short(await rest(tail))
      expect(told).toContain('talk_dropped')
      const kept = told.filter((each) => each !== 'talk_dropped')
      expect(kept.findLast((each) => each.includes('.0 '))).toBe('run-1:61.0 so that it is written')
      expect(kept).toEqual(shortOf(writer).filter((each) => kept.includes(each)))
      expect(kept.at(-2)).toBe('run-1:60.1 59')
    }
  })
})
