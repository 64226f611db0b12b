import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { packLoose } from '../../../src/adapters/git/pack.ts'
import { makeWorld, type World } from './world.ts'

describe('what a long run leaves in the git directory', () => {
  let w: World
  beforeEach(() => {
    w = makeWorld()
  })
  afterEach(() => w.end())

  const fileOf = (hash: string): string => join(w.dir, '.git', 'objects', hash.slice(0, 2), hash.slice(2))
  const objects = (): string[] =>
    w.git('cat-file', '--batch-all-objects', '--batch-check=%(objectname)').split('\n').filter(Boolean)

  test('its loose objects become one pack: all are there, and older and larger ones are as they were', async () => {
    const older = w.git('rev-parse', 'HEAD').trim()
    utimesSync(fileOf(older), 1, 1)
    w.write('large', randomBytes(2 ** 21))
    const large = w.git('hash-object', '-w', 'large').trim()
    for (let n = 0; n < 30; n += 1) w.write(`file-${n}`, `${n}\n`)
    w.git('add', 'file-*')
    const before = objects()
    const made = before.filter((hash) => hash !== older && hash !== large)
    expect(await packLoose(w.gitPort, 1_000_000)).toBe(made.length)
    expect(made.filter((hash) => existsSync(fileOf(hash)))).toEqual([])
    expect([existsSync(fileOf(older)), existsSync(fileOf(large))]).toEqual([true, true])
    expect(objects()).toEqual(before)
    w.git('fsck', '--strict')
    const packs = (): string[] => readdirSync(join(w.dir, '.git', 'objects', 'pack'))
    const files = packs()
    expect(await packLoose(w.gitPort, 1_000_000)).toBe(0)
    expect(packs()).toEqual(files)
  })

  test('an attempt adds one ref and no log of it', async () => {
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('work.txt', 'done\n')
    const { ref } = await checkpoints.keep(1, true)
    await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('rev-parse', `${ref}:work.txt`)).toBe(w.git('rev-parse', 'HEAD:work.txt'))
    expect(existsSync(join(w.dir, '.git', 'logs', ref))).toBe(false)
    expect(existsSync(join(w.dir, '.git', 'logs', 'refs', 'heads', 'ralph'))).toBe(true)
  })
})
