// Calls that are done at once: the same answers and errors as those of Node's promises, and others are heard in between.
import promises from 'node:fs/promises'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  lstat,
  readdir,
  readFile,
  readlink,
  realpath,
  stat,
  unlink,
} from '../../../src/adapters/files/now.ts'

test('the answers and errors are those of node:fs/promises', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'ralph-now-'))
  writeFileSync(join(dir, 'a'), 'bytes')
  expect(await readFile(join(dir, 'a'), 'utf8')).toBe('bytes')
  expect(await readdir(dir)).toEqual(['a'])
  expect((await stat(join(dir, 'a'))).ino).toBe((await promises.stat(join(dir, 'a'))).ino)
  const gone = join(dir, 'gone')
  const pairs = [
    [readFile, promises.readFile],
    [readdir, promises.readdir],
    [stat, promises.stat],
    [lstat, promises.lstat],
    [realpath, promises.realpath],
    [unlink, promises.unlink],
    [readlink, promises.readlink],
  ] as const
  for (const [one, other] of pairs) {
    const [now, later] = await Promise.allSettled([one(gone), other(gone)])
    expect(now).toMatchObject({ status: 'rejected', reason: { code: 'ENOENT' } })
    expect(String((now as PromiseRejectedResult).reason)).toBe(
      String((later as PromiseRejectedResult).reason),
    )
  }
})

test('many in a row let others be heard', async () => {
  let heard = 0
  const ear = setInterval(() => (heard += 1), 0)
  for (let n = 0; n < 20_000; n += 1) await stat('/')
  clearInterval(ear)
  expect(heard).toBeGreaterThan(1)
})
