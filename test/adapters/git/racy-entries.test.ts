// An edit of the same size, with its mtime put back, in the second in which git has looked at the file: git itself does not see it.
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { scanTree } from '../../../src/adapters/git/tree/scan.ts'
import { distrustRacy } from '../../../src/adapters/git/tree/racy-entries.ts'
import { worldOfTest, type Strategy, type World } from './world.ts'

const longAgo = new Date('2026-01-01')

function write(w: World, path: string, text: string): number {
  w.write(path, text)
  const file = join(w.dir, path)
  utimesSync(file, longAgo, longAgo)
  return Math.floor(statSync(file).ctimeMs / 1000)
}

const files = ['a.txt', 'new.txt', 'src/b.txt']

/** Writes all of them, does the work, and writes others into them; again in another world until both were in one second. */
async function inOneSecond(
  work: (w: World) => Promise<void>,
  prepare: (w: World) => void = () => undefined,
  written: readonly string[] = files,
): Promise<World> {
  for (;;) {
    const w = worldOfTest()
    prepare(w)
    const before = written.map((file) => write(w, file, 'mine\n'))
    await work(w)
    const after = written.map((file) => write(w, file, 'evil\n'))
    if (after.every((second, at) => second === before[at])) return w
  }
}

async function begin(w: World, strategy: Strategy): Promise<void> {
  const checkpoints = w.checkpoints(strategy)
  await checkpoints.preflight('start')
  await checkpoints.start('start')
  await checkpoints.ensure('1')
}

const filtered = (w: World): void => w.write('.gitattributes', '*.md text\n')

describe.each(['branch', 'stash'] as const)('an edit that git does not see (%s)', (strategy) => {
  it.each([
    ['by ralph alone', undefined],
    ['by git', filtered],
  ])('is kept and undone: %s', async (_, prepare) => {
    const w = await inOneSecond((made) => begin(made, strategy), prepare)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.keep(1)
    for (const file of files) expect(w.user('show', `refs/ralph/demo/attempts/1:${file}`)).toBe('evil\n')
    await checkpoints.restore()
    expect(files.map((file) => w.read(file))).toEqual(files.map(() => 'mine\n'))
  })

  it.each([
    ['by ralph alone', undefined],
    ['by git', filtered],
  ])('is in what is saved: %s', async (_, prepare) => {
    const w = await inOneSecond((made) => begin(made, strategy), prepare)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.keep(1, true)
    const { tree } = await checkpoints.look('HEAD')
    for (const file of files) expect(w.user('show', `${tree}:${file}`)).toBe('evil\n')
  })

  it('O19: in a submodule is kept and undone', async () => {
    const prepare = (made: World): void => {
      made.user('init', '-q', 'sub')
      made.user('-C', 'sub', 'commit', '-q', '--allow-empty', '-m', 'first')
      made.user('-c', 'advice.addEmbeddedRepo=false', 'add', 'sub')
      made.user('commit', '-q', '-m', 'a submodule')
    }
    const inside = ['sub/a.txt', 'sub/staged.txt']
    const stage = (made: World): string => made.user('-C', 'sub', 'add', 'staged.txt')
    const w = await inOneSecond(
      async (made) => {
        stage(made)
        await begin(made, strategy)
      },
      prepare,
      inside,
    )
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.keep(1)
    for (const file of ['a.txt', 'staged.txt'])
      expect(w.user('-C', 'sub', 'show', `refs/ralph/demo/superproject/attempts/1:${file}`)).toBe('evil\n')
    await checkpoints.restore()
    expect(inside.map((file) => w.read(file))).toEqual(inside.map(() => 'mine\n'))
    expect(w.user('-C', 'sub', 'status', '--porcelain')).toBe('A  staged.txt\n?? a.txt\n')
  })

  it('is seen when a gate makes it', async () => {
    let judged = ''
    const w = await inOneSecond(async (made) => {
      await begin(made, strategy)
      made.write('agent.txt', 'by the agent\n')
      judged = (await made.checkpoints(strategy).keep(1, true)).tree
    })
    expect((await w.checkpoints(strategy).look(judged)).stirred).toEqual(files)
  })

  it('is undone when the loop was killed and the agent has brought the index up to it', async () => {
    const w = await inOneSecond(async (made) => {
      await begin(made, strategy)
      await made.note({
        type: 'iteration.started',
        n: 1,
        story_id: '1',
        attempt: 1,
        attempts: 4,
        max_iterations: 4,
        agent: 'command',
        base_commit: '',
        log_file: '',
      })
    })
    const later = new Date(Date.now() + 5000)
    utimesSync(join(w.dir, '.git', 'index'), later, later)
    await w.checkpoints(strategy).ensure('1')
    expect(files.map((file) => w.read(file))).toEqual(files.map(() => 'mine\n'))
    expect(w.user('show', 'refs/ralph/demo/attempts/1:new.txt')).toBe('evil\n')
  })
})

describe('an index in which no racy entry is trusted', () => {
  it.each<[string, string[], (w: World) => void]>([
    ['of version 2', [], () => undefined],
    ['of version 3', [], (w) => w.user('update-index', '--skip-worktree', 'd/4.txt')],
    ['of version 4', [], (w) => w.user('update-index', '--index-version', '4')],
    ['with SHA-256', ['--object-format=sha256'], () => undefined],
    ['without a checksum', [], (w) => w.user('config', 'index.skipHash', 'true')],
  ])('%s is one that git reads as before', async (_, options, change) => {
    const w = worldOfTest({ commit: false })
    execFileSync('rm', ['-rf', join(w.dir, '.git')])
    w.user('init', '-q', ...options)
    mkdirSync(join(w.dir, 'd'))
    for (let n = 0; n < 40; n += 1) writeFileSync(join(w.dir, 'd', `${n}.txt`), `${n}\n`)
    w.write(`d/${'long'.repeat(50)}/x`, 'x\n')
    symlinkSync('1.txt', join(w.dir, 'd', 'link'))
    w.user('add', '-A')
    w.user('commit', '-q', '-m', 'first')
    change(w)
    const index = join(w.dir, '.git', 'index')
    const staged = w.user('ls-files', '-s', '-v')
    const bytes = readFileSync(index)
    const second = Math.floor(lstatSync(join(w.dir, 'd', '7.txt')).ctimeMs / 1000)
    expect(distrustRacy(bytes, second + 60)).toBeUndefined()
    const doubted = distrustRacy(bytes, second, (path) => path === 'd/7.txt') ?? Buffer.alloc(0)
    writeFileSync(index, doubted)
    expect(w.user('ls-files', '-s', '-v')).toBe(staged)
    expect(w.user('ls-files', '--debug', 'd/7.txt')).toContain('size: 0\t')
    expect(w.user('ls-files', '--debug', 'd/8.txt')).toContain('size: 2\t')
    w.user('fsck', '--no-dangling')
    expect(await scanTree(w.gitPort)).toMatchObject({ changed: [], deleted: [], staged: [], untracked: [] })
  })

  it('is looked through where it is split in two files', async () => {
    const w = await inOneSecond(async (made) => {
      made.user('add', '-A')
      made.user('update-index', '--split-index')
      await Promise.resolve()
    })
    const before = readFileSync(join(w.dir, '.git', 'index'))
    expect((await scanTree(w.gitPort)).changed).toEqual(files)
    expect(readFileSync(join(w.dir, '.git', 'index')).equals(before)).toBe(true)
  })

  it('is no concern of what is no index', () => {
    expect(distrustRacy(Buffer.from('DIRC'), 0)).toBeUndefined()
    expect(distrustRacy(Buffer.alloc(200, 'DIRC\0\0\0\x02'), 0)).toBeUndefined()
  })
})
