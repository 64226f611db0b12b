// Files that are written whole, also by two at once in one process.
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isLeftover, isResting, writeDurably } from '../../../src/adapters/files/whole.ts'

test('two loops of one process write the same file at once: one of the two contents is there, and no draft', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-whole-'))
  const file = join(folder, 'agreed.json')
  const contents = Array.from({ length: 20 }, (_, at) => `${at} `.repeat(5000))
  await Promise.all(contents.map((content) => writeDurably(file, content)))
  expect(contents).toContain(readFileSync(file, 'utf8'))
  expect(readdirSync(folder)).toEqual(['agreed.json'])
})

test.each([
  ['state.json.77', true],
  ['state.json.77.tmp', true],
  ['state.json.77.3.tmp', true],
  ['state.json.77.now', true],
  ['state.json.mine.tmp', false],
  ['other.json.77.tmp', false],
])('%s is a draft of state.json: %s', (name, isDraft) => {
  expect(isLeftover(name, 'state.json')).toBe(isDraft)
})

test.each([
  ['of a tick', 0.25, 100, false],
  ['of a tick', 0.25, 300, true],
  ['that may be of a whole second', 0, 300, false],
  ['that may be of a whole second', 0, 2600, true],
])('a time %s (%s ms beyond) rests after %s ms: %s', (_, part, passedMs, rests) => {
  const second = 1_700_000_000_000
  expect(isResting(second + part, second + passedMs)).toBe(rests)
})
