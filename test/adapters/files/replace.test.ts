// A file takes the place of another while somebody saves that.
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { replaceSeen } from '../../../src/adapters/files/replace.ts'

let folder: string
let file: string
let aside: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ralph-replace-'))
  file = join(folder, 'plan')
  aside = join(folder, 'aside')
  mkdirSync(aside)
})
afterEach(() => rmSync(folder, { recursive: true }))

const bytes = (text: string): Buffer => Buffer.from(text)
const now = (): string => readFileSync(file, 'utf8')
const kept = (): string[] => readdirSync(aside).map((name) => readFileSync(join(aside, name), 'utf8'))
/** Looks, and then somebody does this: between the look and the write. */
const thenDo = (deed: () => void): ((path: string) => Buffer) => {
  let looks = 0
  return (path) => {
    const seen = readFileSync(path)
    if (looks === 0) deed()
    looks += 1
    return seen
  }
}

test('what was seen is replaced, and nothing is left beside', async () => {
  writeFileSync(file, 'old', { mode: 0o640 })
  expect(await replaceSeen(file, bytes('old'), bytes('new'), { aside })).toBe(true)
  expect([now(), kept(), readdirSync(folder).sort()]).toEqual(['new', [], ['aside', 'plan']])
})

test('what was not seen stays, where there was a file and where there was none', async () => {
  writeFileSync(file, 'theirs')
  expect(await replaceSeen(file, bytes('old'), bytes('new'), { aside })).toBe(false)
  expect(await replaceSeen(file, undefined, bytes('new'), { aside })).toBe(false)
  expect([now(), readdirSync(folder).sort()]).toEqual(['theirs', ['aside', 'plan']])
  rmSync(file)
  expect(await replaceSeen(file, bytes('theirs'), bytes('new'), { aside })).toBe(false)
  expect(readdirSync(folder)).toEqual(['aside'])
  expect(await replaceSeen(file, undefined, bytes('new'), { aside })).toBe(true)
  expect(now()).toBe('new')
})

test('one that is made in the moment of the write stays', async () => {
  const look = (): undefined => {
    writeFileSync(file, 'theirs')
    return undefined
  }
  expect(await replaceSeen(file, undefined, bytes('new'), { aside, look })).toBe(false)
  expect(now()).toBe('theirs')
})

test('found by an attack: an editor that has it open and writes after the last look has its own file back, and goes on in it', async () => {
  writeFileSync(file, 'old')
  const editor = openSync(file, 'a')
  const look = thenDo(() => writeSync(editor, ' and theirs'))
  expect(await replaceSeen(file, bytes('old'), bytes('new'), { aside, look })).toBe(false)
  writeSync(editor, ', all of it')
  closeSync(editor)
  expect([now(), kept()]).toEqual(['old and theirs, all of it', []])
})

test('found by an attack: what was written so, and has a newer version in its place by then, is kept aside', async () => {
  writeFileSync(file, 'old')
  const editor = openSync(file, 'a')
  const look = (path: string): Buffer => {
    if (path !== file) {
      writeSync(editor, ' and theirs')
      writeFileSync(join(folder, 'newer'), 'newer')
      renameSync(join(folder, 'newer'), file)
    }
    return readFileSync(path)
  }
  expect(await replaceSeen(file, bytes('old'), bytes('new'), { aside, look })).toBe(false)
  closeSync(editor)
  expect([now(), kept()]).toEqual(['newer', ['old and theirs']])
})
