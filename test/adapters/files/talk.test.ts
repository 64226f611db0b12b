import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { talkFiles } from '../../../src/adapters/files/talk.ts'
import { readJournal } from '../../../src/adapters/files/journal-text.ts'
import { canMount, fill, smallDisk } from '../../small-disk.ts'
import { openTeller, says, started, warns } from './teller.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-talk-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const small = { fileBytes: 1000, iterationBytes: 4000, totalBytes: 8000 }

interface Line {
  readonly record?: number
  readonly talk: number
  readonly loop?: string
  readonly dropped?: number
  readonly event?: { readonly text: string }
}

function linesIn(talk: string): Line[] {
  return talkFiles(talk).flatMap(({ path }) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line),
  )
}

describe('the talk log', () => {
  test("what the agent says stands beside the journal, under the journal's own records, and only its owner may read it", async () => {
    const teller = await openTeller(folder)
    await teller.tell(started('run-1'))
    await teller.tell(says('one'))
    await teller.tell(says('two'))
    await teller.tell(warns('between'))
    await teller.tell(says('three'))
    await teller.close()
    const { paths } = teller
    const at = linesIn(paths.talk).map(({ event, ...line }) => ({
      ...line,
      ...(event && { text: event.text }),
    }))
    expect(at).toEqual([
      { talk: 1, loop: 'run-1' },
      { record: 1, talk: 1, text: 'one' },
      { record: 1, talk: 2, text: 'two' },
      { record: 2, talk: 1, text: 'three' },
    ])
    expect((await readJournal(paths.journal)).events.map(({ type }) => type)).toEqual([
      'loop.started',
      'warning',
    ])
    const [file] = talkFiles(paths.talk)
    expect(statSync(file?.path ?? '').mode & 0o777).toBe(0o600)
    expect(statSync(paths.talk).mode & 0o777).toBe(0o700)
  })

  test('all talk before a record is there as soon as the record is', async () => {
    const teller = await openTeller(folder)
    await teller.tell(started('run-1'))
    for (let i = 1; i <= 20; i += 1) {
      void teller.tell(says(`${i}`))
      await teller.tell(warns(`after ${i}`))
      expect(linesIn(teller.paths.talk).at(-1)?.event?.text).toBe(`${i}`)
    }
    await teller.close()
  })

  test('each iteration has files of its own, and a loop that goes on begins another', async () => {
    for (const run of ['run-1', 'run-2']) {
      const teller = await openTeller(folder)
      await teller.tell(started(run, run === 'run-2'))
      await teller.tell(says('x', 1))
      await teller.tell(says('y', 2))
      await teller.close()
    }
    const talk = join(folder, 'ralph/changes/demo/talk')
    expect(readdirSync(talk).toSorted()).toEqual([
      '000001-1.ndjson',
      '000002-2.ndjson',
      '000003-1.ndjson',
      '000004-2.ndjson',
    ])
    expect(
      linesIn(talk)
        .filter((line) => line.loop !== undefined)
        .map((line) => line.loop),
    ).toEqual(['run-1', 'run-1', 'run-2', 'run-2'])
  })

  test('of a chatty iteration the oldest goes, and what others said stays; all together stay below the whole', async () => {
    const teller = await openTeller(folder, { limits: small })
    await teller.tell(started('run-1'))
    await teller.tell(says('quiet', 1))
    const chat = async (n: number): Promise<void> => {
      for (let i = 0; i < 100; i += 1) {
        await teller.tell(says(`${n} ${i} ${'x'.repeat(100)}`, n))
        await teller.tell(warns('so that it is written'))
      }
    }
    await chat(2)
    const { talk } = teller.paths
    const bytes = (n?: number): number =>
      talkFiles(talk)
        .filter((file) => n === undefined || file.n === n)
        .reduce((sum, file) => sum + statSync(file.path).size, 0)
    const [first, second] = talkFiles(talk)
    expect(first?.number).toBe(1)
    expect(second?.number).toBeGreaterThan(2)
    const oneMore = small.fileBytes + 400
    expect(bytes(2)).toBeLessThanOrEqual(small.iterationBytes + oneMore)
    for (const n of [3, 4, 5]) await chat(n)
    await teller.close()
    expect(bytes()).toBeLessThanOrEqual(small.totalBytes + oneMore)
    expect(linesIn(talk).at(-1)?.event?.text).toMatch(/^5 99 /)
  })

  test('where it cannot be written the loop goes on, and what was lost is counted once there is room again', async () => {
    const teller = await openTeller(folder)
    await teller.tell(started('run-1'))
    writeFileSync(teller.paths.talk, 'a file where the folder should be')
    await teller.tell(says('lost'))
    await teller.tell(says('lost too'))
    await teller.tell(warns('the loop goes on'))
    await rm(teller.paths.talk)
    await teller.tell(says('found'))
    await teller.close()
    expect(linesIn(teller.paths.talk)).toEqual([
      { talk: 1, loop: 'run-1' },
      { record: 1, talk: 2, dropped: 2 },
      expect.objectContaining({ record: 2, talk: 1 }),
    ])
  })

  test.skipIf(!canMount)('on a full disk talk is dropped, not the loop (needs root)', async () => {
    const disk = smallDisk()
    const teller = await openTeller(disk)
    await teller.tell(started('run-1'))
    await teller.tell(says('before'))
    await teller.tell(warns('written'))
    fill(join(disk, 'ballast'), 8)
    for (let i = 0; i < 20; i += 1) await teller.tell(says('x'.repeat(4000)))
    await teller.tell(says('x'.repeat(40_000)))
    await rm(join(disk, 'ballast'))
    await teller.tell(warns('there is room again'))
    await teller.tell(says('after'))
    await teller.close()
    const lines = linesIn(teller.paths.talk)
    expect(lines.some((line) => (line.dropped ?? 0) > 0)).toBe(true)
    expect(lines.at(-1)?.event?.text).toBe('after')
    expect((await readJournal(teller.paths.journal)).events).toHaveLength(3)
  })

  test('nothing is written where nobody speaks', async () => {
    const teller = await openTeller(folder)
    await teller.tell(started('run-1'))
    await teller.close()
    expect(existsSync(teller.paths.talk)).toBe(false)
  })
})
