// What is in a folder is read again when it may have changed, and only then.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { restingMark } from '../../../src/adapters/files/whole.ts'
import type { Git } from '../../../src/adapters/git/git.ts'
import { findWaysOut } from '../../../src/adapters/git/guard/ways-out.ts'
import { listingOf } from '../../../src/adapters/git/tree/listing.ts'

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'ralph-listing-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

/** What changes it from here on has another time: that of a disk may stand still for some milliseconds. */
function untilTheClockTicks(place: string): void {
  const probe = join(folder(), 'probe')
  do writeFileSync(probe, '')
  while (statSync(probe).ctimeMs <= statSync(place).ctimeMs)
}

/** As a folder looks that nobody has changed for a while. */
const later = (): number => Date.now() + 60_000
const listed = (place: string, nowMs?: number): ReturnType<typeof listingOf> =>
  listingOf(Buffer.from(place), nowMs)

it('a folder that rests is read once', () => {
  const place = folder()
  mkdirSync(join(place, 'sub'))
  writeFileSync(join(place, 'file'), '')
  const first = listed(place, later())
  expect(first).toEqual({ folders: ['sub'], special: [], isEmpty: false, isRepository: false })
  expect(listed(place, later())).toBe(first)
})

it.each<[string, string, Partial<NonNullable<ReturnType<typeof listingOf>>>]>([
  ['a pipe that came', 'mkfifo pipe', { special: ['pipe'] }],
  ['a pipe in the place of a file', 'mkfifo pipe; mv pipe file', { special: ['file'] }],
  ['a folder that went', 'rmdir sub', { folders: [] }],
  ['a repository', 'mkdir .git', { isRepository: true }],
  ['a link to one', 'echo > .git', { isRepository: true }],
  ['nothing at all', 'rm -r sub file', { isEmpty: true }],
  ['a change whose time was set back', 'rmdir sub; touch -d 2000-01-01 .', { folders: [] }],
])('%s is seen in a folder that rested before', (_, script, seen) => {
  const place = folder()
  mkdirSync(join(place, 'sub'))
  writeFileSync(join(place, 'file'), '')
  listed(place, later())
  untilTheClockTicks(place)
  execFileSync('sh', ['-ec', script], { cwd: place })
  expect(listed(place, later())).toMatchObject(seen)
})

it('another folder of the same name is another', () => {
  const [place, other] = [folder(), folder()]
  for (const [each, name] of [
    [place, 'one'],
    [other, 'two'],
  ] as const) {
    mkdirSync(join(each, 'at', name), { recursive: true })
    listed(join(each, 'at'), later())
  }
  renameSync(join(place, 'at'), join(place, 'away'))
  renameSync(join(other, 'at'), join(place, 'at'))
  expect(listed(join(place, 'at'), later())?.folders).toEqual(['two'])
})

it('a folder that was changed a moment ago is read again: the next change may bear the same time', () => {
  const place = folder()
  const atOnce = statSync(place).ctimeMs + 20
  const first = listed(place, atOnce)
  expect(listed(place, atOnce)).not.toBe(first)
  expect(listed(place, atOnce)).toEqual(first)
})

it('a link that an attempt put into a folder of refs that rested is found, and where it leads now', () => {
  const place = folder()
  const heads = join(place, 'refs/heads')
  mkdirSync(heads, { recursive: true })
  const git = { gitDir: place, gitCommonDir: place } as Git
  const seen = (): object => {
    while (restingMark(statSync(heads, { bigint: true })) === '');
    // The second time from memory.
    return [findWaysOut(git), findWaysOut(git)][1] ?? {}
  }
  expect(seen()).toEqual({})
  symlinkSync('../../outside', join(heads, 'way'))
  expect(findWaysOut(git)).toEqual({ 'refs/heads/way': '../../outside' })
  expect(seen()).toEqual({ 'refs/heads/way': '../../outside' })
  rmSync(join(heads, 'way'))
  symlinkSync('../../elsewhere', join(heads, 'way'))
  expect(findWaysOut(git)).toEqual({ 'refs/heads/way': '../../elsewhere' })
  rmSync(join(heads, 'way'))
  expect(findWaysOut(git)).toEqual({})
})

it('one that is gone, or is none, has no listing', () => {
  const place = folder()
  mkdirSync(join(place, 'sub'))
  listed(join(place, 'sub'), later())
  rmSync(join(place, 'sub'), { recursive: true })
  expect(listed(join(place, 'sub'), later())).toBeUndefined()
  writeFileSync(join(place, 'sub'), '')
  expect(listed(join(place, 'sub'), later())).toBeUndefined()
})
