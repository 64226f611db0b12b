import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { borrow, borrowFile, giveBack } from '../../../src/adapters/git/formats/large-buffers.ts'

const large = 2 * 1024 * 1024

it('who borrows has it alone, also when another gave something back twice', () => {
  const first = borrow(large)
  giveBack(first)
  giveBack(first)
  const [one, other] = [borrow(large), borrow(large)]
  one.fill(1)
  other.fill(2)
  expect(one.every((byte) => byte === 1)).toBe(true)
  expect(one.buffer).toBe(first.buffer)
})

it('it is as long as what was asked for, whatever it was used for before', () => {
  giveBack(borrow(large).fill(7))
  const folder = mkdtempSync(join(tmpdir(), 'ralph-buffers-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'file')
  writeFileSync(file, Buffer.alloc(large / 2, 3))
  const bytes = borrowFile(file)
  expect([bytes.length, bytes.every((byte) => byte === 3)]).toEqual([large / 2, true])
  writeFileSync(file, '')
  expect(borrowFile(file)).toHaveLength(0)
})

it('what is small is not held, for it may lie beside what others have', () => {
  const small = Buffer.from('small')
  giveBack(small)
  expect(borrow(3).buffer).not.toBe(small.buffer)
})
