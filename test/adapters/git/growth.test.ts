import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { packLoose } from '../../../src/adapters/git/formats/pack.ts'
import { refLocks } from '../../../src/adapters/git/formats/ref-files.ts'
import { readAliases } from '../../../src/adapters/git/refs/aliases.ts'
import { compareRefs, readRefs } from '../../../src/adapters/git/refs/refs.ts'
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

  test('thousands of tags are recorded once, not with each checkpoint, and come back all the same', async () => {
    const head = w.git('rev-parse', 'HEAD').trim()
    const tags = Array.from({ length: 1_000 }, (_, n) => `refs/tags/v${n}`)
    writeFileSync(
      join(w.dir, '.git', 'packed-refs'),
      [
        '# pack-refs with: peeled fully-peeled sorted ',
        ...tags.sort().map((tag) => `${head} ${tag}`),
        '',
      ].join('\n'),
    )
    const folder = join(w.dir, '.git', 'ralph', 'checkpoints', 'demo')
    const bases = (): string[] =>
      readdirSync(folder)
        .filter((name) => name.startsWith('refs-'))
        .map((name) => `${name} ${statSync(join(folder, name)).ino}`)
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const base = bases()
    expect(base).toHaveLength(1)
    for (const n of [1, 2]) {
      w.write(`work-${n}.txt`, 'done\n')
      w.git('tag', '-d', `v${n}`)
      w.git('tag', '-f', `v${n + 10}`, w.git('commit-tree', 'HEAD^{tree}', '-m', 'x').trim())
      w.git('tag', `mine-${n}`)
      // As another process would find it.
      utimesSync(join(folder, 'snapshot.json'), n, n)
      const { warnings } = await checkpoints.keep(n, true)
      expect(warnings.join()).toMatch(
        new RegExp(`moved tags/v${n + 10};.*deleted tags/v${n};.*made tags/mine-${n}`),
      )
      await checkpoints.save(String(n), `checkpoint: ${n}`)
      expect(
        w.git('for-each-ref', '--format=%(objectname) %(refname)', 'refs/tags').trim().split('\n'),
      ).toEqual(tags.map((tag) => `${head} ${tag}`))
      expect(statSync(join(folder, 'snapshot.json')).size).toBeLessThan(10_000)
      await checkpoints.ensure(String(n + 1))
    }
    expect(bases()).toHaveLength(1)
  })

  test('refs that are at rest are not read again, but one that was written past git is noticed after an attempt', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 })
    try {
      w.git('branch', 'theirs')
      w.git('branch', 'folder/theirs')
      const before = await readRefs(w.gitPort)
      expect((await readRefs(w.gitPort)).all).toBe(before.all)
      const other = w.git('commit-tree', 'HEAD^{tree}', '-m', 'other').trim()
      writeFileSync(join(w.dir, '.git', 'refs', 'heads', 'theirs'), `${other}\n`)
      const now = await readRefs(w.gitPort, true)
      expect(compareRefs(before.all, now.all)).toEqual({
        moved: [{ name: 'refs/heads/theirs', from: before.head.commit, to: other }],
        deleted: [],
        created: [],
      })
      w.git('branch', '-D', 'theirs')
      expect((await readRefs(w.gitPort)).all['refs/heads/theirs']).toBe(undefined)
    } finally {
      vi.useRealTimers()
    }
  })

  test('of folders with refs at rest, what comes, goes or becomes another name is noticed, and a lock too', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 })
    try {
      const head = w.git('rev-parse', 'HEAD').trim()
      for (const name of ['group/one', 'group/two', 'other/one']) w.git('branch', name)
      w.git('pack-refs', '--all')
      const newer = w.git('commit-tree', 'HEAD^{tree}', '-m', 'newer').trim()
      for (const name of ['group/one', 'group/two']) w.git('update-ref', `refs/heads/${name}`, newer)
      const folder = join(w.dir, '.git', 'refs', 'heads', 'group')
      const now = async (name: string): Promise<string | undefined> =>
        (await readRefs(w.gitPort)).all[`refs/heads/group/${name}`]
      expect([await now('one'), await now('two'), refLocks(w.gitPort)]).toEqual([newer, newer, []])
      rmSync(join(folder, 'one'))
      expect([await now('one'), await now('two')]).toEqual([head, newer])
      writeFileSync(join(folder, 'two.lock'), '')
      expect(refLocks(w.gitPort)).toEqual([join(folder, 'two.lock')])
      rmSync(join(folder, 'two.lock'))
      expect(refLocks(w.gitPort)).toEqual([])
      writeFileSync(join(folder, 'two'), 'ref: refs/heads/other/one\n')
      expect(await readAliases(w.gitPort, true)).toEqual({ 'refs/heads/group/two': 'refs/heads/other/one' })
      expect([await now('one'), await now('two')]).toEqual([head, undefined])
      rmSync(folder, { recursive: true })
      expect([await now('one'), await now('two')]).toEqual([head, head])
    } finally {
      vi.useRealTimers()
    }
  })
})
