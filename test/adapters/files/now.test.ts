// Calls that are done at once: the same answers and errors as those of Node's promises, and others are heard in between.
import * as promises from 'node:fs/promises'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as now from '../../../src/adapters/files/now.ts'

test('the answers and errors are those of node:fs/promises', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'ralph-now-'))
  writeFileSync(join(dir, 'a'), 'bytes')
  expect(await now.readFile(join(dir, 'a'), 'utf8')).toBe('bytes')
  expect(await now.readdir(dir)).toEqual(['a'])
  expect((await now.stat(join(dir, 'a'))).ino).toBe((await promises.stat(join(dir, 'a'))).ino)
  for (const name of ['readFile', 'readdir', 'stat', 'lstat', 'realpath', 'unlink', 'readlink'] as const) {
    const gone = join(dir, 'gone')
    const [one, other] = await Promise.allSettled([now[name](gone), promises[name](gone)])
    expect([name, one.status, String((one as PromiseRejectedResult).reason)]).toEqual([
      name,
      'rejected',
      String((other as PromiseRejectedResult).reason),
    ])
  }
})

test('many in a row let others be heard', async () => {
  let heard = 0
  const ear = setInterval(() => (heard += 1), 0)
  for (let n = 0; n < 20_000; n += 1) await now.stat('/')
  clearInterval(ear)
  expect(heard).toBeGreaterThan(1)
})
