import { appendFileSync, existsSync, rmSync } from 'node:fs'
import { appendFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canMount, fill, smallDisk } from '../../small-disk.ts'
import { fileJournal } from '../../../src/adapters/files/journal.ts'
import { readJournal } from '../../../src/adapters/files/journal-text.ts'
import type { EventBody, LoopEvent } from '../../../src/core/event.ts'

let folder = ''
let path = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-journal-'))
  path = join(folder, 'deep', 'journal.ndjson')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

function event(seq: number, body: EventBody = { type: 'warning', code: 'x', message: `m${seq}` }): LoopEvent {
  return { v: 1, seq, time: '2026-01-01T00:00:00+00:00', change_id: 'demo', ...body }
}

describe('journal', () => {
  test('an append is on disk when its promise has resolved, in order', async () => {
    const journal = fileJournal(path)
    await Promise.all([1, 2, 3, 4, 5].map((seq) => journal.append(event(seq))))
    const lines = (await readFile(path, 'utf8')).trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as LoopEvent).seq)).toEqual([1, 2, 3, 4, 5])
    expect((await readJournal(path)).events).toEqual([1, 2, 3, 4, 5].map((seq) => event(seq)))
    await journal.close()
  })

  test("the agent's talk is not kept", async () => {
    const journal = fileJournal(path)
    await journal.append(event(1, { type: 'agent.message', n: 1, text: 'hello' }))
    await journal.append(event(2))
    await journal.close()
    expect((await readJournal(path)).events.map((each) => each.seq)).toEqual([2])
  })

  test('a torn last line is dropped, and the next append starts a line of its own', async () => {
    const first = fileJournal(path)
    await first.append(event(1))
    await first.close()
    await appendFile(path, '{"v":1,"seq":2,"ti')
    expect((await readJournal(path)).events.map((each) => each.seq)).toEqual([1])
    const second = fileJournal(path)
    await second.append(event(3))
    await second.close()
    expect((await readJournal(path)).events.map((each) => each.seq)).toEqual([1, 3])
  })

  test('O9: a torn last line leaves no damage behind once another line follows', async () => {
    const first = fileJournal(path)
    await first.append(event(1))
    await first.close()
    await appendFile(path, '{"v":1,"seq":2,"ti')
    const second = fileJournal(path)
    await second.append(event(3))
    await second.close()
    expect(await readJournal(path)).toEqual({ events: [event(1), event(3)], damage: undefined })
  })

  test.each([
    ['of a newer version', '{"v":2,"seq":2,"type":"from.the.future"}', 'is not an event that this version'],
    ['of no known type', '{"v":1,"type":"x"}', 'is not an event that this version'],
    ['that is damaged', '{"v":1,"seq":2,"ti\u0000\u0000', 'is damaged'],
  ])('O9, section 6.7: a line %s is said, with its number, and never skipped', async (_, line, why) => {
    const journal = fileJournal(path)
    await journal.append(event(1))
    await journal.close()
    await appendFile(path, `${line}\n${JSON.stringify(event(3))}\n`)
    const { events, damage } = await readJournal(path)
    expect(events).toEqual([event(1)])
    expect(damage).toContain(`Line 2 of the journal ${path} ${why}`)
  })

  test.each<[string, (path: string) => Promise<void>]>([
    ['appends a line', (file) => appendFile(file, '{"v":1,"type":"x"}\n')],
    ['truncates it', (file) => writeFile(file, '')],
    ['writes over it', (file) => writeFile(file, 'nonsense\n')],
    ['removes it', (file) => rm(file)],
  ])(
    'H3: where another program %s, the writer goes by its own memory, says so, and writes it anew',
    async (_, change) => {
      const said: string[] = []
      const journal = fileJournal(path, { onChanged: (message) => said.push(message) })
      await journal.append(event(1))
      await change(path)
      await journal.append(event(2))
      expect((await readJournal(path)).events).toEqual([event(1), event(2)])
      await change(path)
      await journal.close()
      expect(await readJournal(path)).toEqual({ events: [event(1), event(2)], damage: undefined })
      expect(said).toHaveLength(2)
      expect(said[0]).toContain('another program has changed the journal')
    },
  )

  test('H3: a line that somebody appends at any moment of a write is taken out again', async () => {
    for (let moment = 0; moment < 80; moment += 1) {
      const file = join(folder, `${moment}.ndjson`)
      const journal = fileJournal(file)
      await journal.append(event(1))
      const written = journal.append(event(2))
      // As many steps of the append as fit into so many turns.
      for (let turn = moment % 20; turn > 0; turn -= 1) await new Promise(setImmediate)
      appendFileSync(file, 'nonsense\n')
      await written
      await journal.close()
      expect(await readJournal(file)).toEqual({ events: [event(1), event(2)], damage: undefined })
    }
  })

  test('no file means no events', async () => {
    expect(await readJournal(join(folder, 'none'))).toEqual({ events: [], damage: undefined })
  })

  test('R14: an append that cannot be written rejects, and so does the next one', async () => {
    await writeFile(join(folder, 'deep'), 'a file where a folder should be')
    const journal = fileJournal(path)
    await expect(journal.append(event(1))).rejects.toThrow()
    await expect(journal.append(event(2))).rejects.toThrow()
  })

  describe.skipIf(!existsSync('/dev/full'))('on a full disk', () => {
    beforeEach(async () => {
      await mkdir(join(folder, 'deep'))
      // Takes no byte, as a full disk does.
      await symlink('/dev/full', path)
    })

    test('R14: what could not be written goes out with the next that can, in order and once', async () => {
      const journal = fileJournal(path)
      await expect(journal.append(event(1))).rejects.toThrow('ENOSPC')
      await expect(journal.append(event(2))).rejects.toThrow('ENOSPC')
      await rm(path)
      await journal.append(event(3))
      await journal.close()
      expect((await readJournal(path)).events.map((each) => each.seq)).toEqual([1, 2, 3])
    })

    test('R14: room that is given back takes the line after all', async () => {
      const errors: unknown[] = []
      const spend = (error: unknown): boolean => {
        errors.push(error)
        rmSync(path)
        return true
      }
      const journal = fileJournal(path, { spend })
      await journal.append(event(1))
      await journal.close()
      expect(errors).toEqual([expect.objectContaining({ code: 'ENOSPC' })])
      expect((await readJournal(path)).events.map((each) => each.seq)).toEqual([1])
    })
  })

  test.skipIf(!canMount)('R14: half a line that fitted does not spoil the next (needs root)', async () => {
    const disk = smallDisk()
    const [path, ballast] = [join(disk, 'journal.ndjson'), join(disk, 'ballast')]
    const journal = fileJournal(path)
    await journal.append(event(1))
    fill(ballast, 4)
    const long: EventBody = { type: 'warning', code: 'x', message: 'm'.repeat(20_000) }
    await expect(journal.append(event(2, long))).rejects.toThrow('ENOSPC')
    expect(await readFile(path, 'utf8')).toBe(`${JSON.stringify(event(1))}\n`)
    await rm(ballast)
    await journal.append(event(3))
    await journal.close()
    expect((await readJournal(path)).events.map((each) => each.seq)).toEqual([1, 2, 3])
  })
})
