import { existsSync } from 'node:fs'
import { lstat, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { diskReserve } from '../../../src/adapters/files/reserve.ts'

const full = Object.assign(new Error('no room'), { code: 'ENOSPC' })

let folder = ''
let path = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ralph-reserve-'))
  path = join(folder, 'reserve')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('reserve', () => {
  test('R14: it takes real room, gives it back once, and says so once', async () => {
    const spent: unknown[] = []
    const reserve = diskReserve(path)
    await reserve.fill()
    reserve.onSpent((error) => spent.push(error))
    expect((await stat(path)).blocks * 512).toBeGreaterThanOrEqual(64 * 1024)
    expect(reserve.spend(full)).toBe(true)
    expect(existsSync(path)).toBe(false)
    expect(reserve.spend(full)).toBe(false)
    expect(spent).toEqual([full])
  })

  test('R14: it is kept where room would not help, and gone at the end', async () => {
    const reserve = diskReserve(path)
    await reserve.fill()
    expect(reserve.spend(Object.assign(new Error('read-only'), { code: 'EROFS' }))).toBe(false)
    expect(existsSync(path)).toBe(true)
    await reserve.close()
    expect(existsSync(path)).toBe(false)
  })

  test.skipIf(!existsSync('/dev/full'))('R14: without room it throws and leaves nothing behind', async () => {
    await symlink('/dev/full', path)
    await expect(diskReserve(path).fill()).rejects.toThrow('ENOSPC')
    await expect(lstat(path)).rejects.toThrow('ENOENT')
  })
})
