// What ralph reads and writes in git's own formats, held against git itself: loose and packed, SHA-1 and SHA-256.
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { textOf } from '../../../src/adapters/git/formats/bytes.ts'
import { readRef, readRefs, refsUnder } from '../../../src/adapters/git/refs/refs.ts'
import { findRepository } from '../../../src/adapters/git/repository.ts'
import { allSettings } from '../../../src/adapters/git/formats/settings.ts'
import { treeFolders } from '../../../src/adapters/git/revert/snapshot.ts'
import {
  allTreeChanges,
  changedPaths,
  commitTree,
  treeChanges,
  treeOf,
  treeOfIndex,
} from '../../../src/adapters/git/tree/tree.ts'
import { run, runBytes } from '../../shell.ts'
import { makeWorld, type World } from './world.ts'

const worlds: World[] = []
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})

function world(): World {
  const made = makeWorld()
  worlds.push(made)
  return made
}

/** Commits that differ in every way in which trees can. With a salt of their own no other test has read them before. */
function commits(w: World, salt = ''): string[] {
  const made: string[] = []
  const commit = (): void => {
    w.git('add', '-A')
    w.git('commit', '-qm', `${made.length}`, '--allow-empty')
    made.push(w.git('rev-parse', 'HEAD').trim())
  }
  commit()
  for (const path of ['a.b', 'a/x', 'a/deep/y', 'a0', 'ünï', 'b/c/d/e/f']) w.write(path, `${path} ${salt}`)
  writeFileSync(Buffer.concat([Buffer.from(`${w.dir}/`), Buffer.from([0x66, 0xff])]), 'bytes')
  commit()
  w.write('a/x', 'changed', 0o755)
  rmSync(join(w.dir, 'a/deep'), { recursive: true })
  w.write('a/deep', 'a file now')
  rmSync(join(w.dir, 'a0'))
  w.write('a0/now/a/folder', '')
  symlinkSync('a.b', join(w.dir, 'link'))
  commit()
  w.git('update-index', '--add', '--cacheinfo', `160000,${made[0]},b/module`)
  w.git('commit', '-qm', 'module')
  made.push(w.git('rev-parse', 'HEAD').trim())
  w.git('rm', '-rq', '--cached', 'b')
  w.git('commit', '-qm', 'gone')
  made.push(w.git('rev-parse', 'HEAD').trim())
  return made
}

function raw(w: World, args: readonly string[]): string[] {
  const out = runBytes('git', args, { cwd: w.dir, env: w.env }).toString('latin1')
  return out.split('\0').filter((field) => field !== '')
}

async function expectSameTrees(w: World, all: readonly string[]): Promise<void> {
  for (const to of all) {
    const tree = w.git('rev-parse', `${to}^{tree}`).trim()
    expect(await treeOf(w.gitPort, to)).toBe(tree)
    const folders = (await treeFolders(w.gitPort, tree)).map(
      ({ path, isSubmodule }) => `${isSubmodule ? '160000' : '040000'} ${path}`,
    )
    const listed = raw(w, ['ls-tree', '-r', '-d', '-z', '--format=%(objectmode) %(path)', tree])
    expect(folders).toEqual(listed)
    for (const from of all) {
      const fields = raw(w, ['diff-tree', '-r', '-z', '--no-renames', '--raw', from, to])
      const paths = fields.filter((_, at) => at % 2 === 1)
      expect(await changedPaths(w.gitPort, from, to)).toEqual(paths)
      const modes = fields.filter((_, at) => at % 2 === 0).map((field) => field.slice(1, 14))
      const changes = await treeChanges(w.gitPort, from, to)
      expect(changes.map((each) => `${each.from ?? '000000'} ${each.to ?? '000000'}`)).toEqual(modes)
    }
  }
  const pairs = all.flatMap((from) => all.map((to) => ({ from, to })))
  const alone = await Promise.all(pairs.map(({ from, to }) => treeChanges(w.gitPort, from, to)))
  expect(await allTreeChanges(w.gitPort, pairs)).toEqual(alone)
}

describe('trees', () => {
  it('are the same as git has them, loose', async () => {
    const w = world()
    await expectSameTrees(w, commits(w, 'loose'))
  })

  it('are the same as git has them, packed, and loose ones on top of those', async () => {
    const w = world()
    const all = commits(w, 'packed')
    w.git('gc', '-q')
    await expectSameTrees(w, all)
    w.write('a/again', 'mixed')
    w.git('add', '-A')
    w.git('commit', '-qm', 'mixed')
    await expectSameTrees(w, [...all, w.git('rev-parse', 'HEAD').trim()])
  })

  it('of an index is asked for once, and again when the index holds something else', async () => {
    const w = world()
    const index = join(w.dir, '.git', 'index')
    const now = (): string => w.git('write-tree').trim()
    w.write('one', '1')
    w.git('add', '-A')
    expect(await treeOfIndex(w.gitPort, index)).toBe(now())
    expect(await treeOfIndex(w.gitPort, index)).toBe(now())
    // The same length, the same names.
    w.write('one', '2')
    w.git('add', '-A')
    expect(await treeOfIndex(w.gitPort, index)).toBe(now())
    w.git('config', 'index.skipHash', 'true')
    for (const content of ['3', '4']) {
      w.write('one', content)
      w.git('add', '-A')
      expect(await treeOfIndex(w.gitPort, index)).toBe(now())
    }
  })
})

describe('a commit', () => {
  it.each(['sha1', 'sha256'])('is one that git accepts: %s', async (format) => {
    const w = world()
    rmSync(join(w.dir, '.git'), { recursive: true })
    w.git('init', '-q', `--object-format=${format}`)
    w.write('file', 'x')
    w.git('add', '-A')
    const tree = w.git('write-tree').trim()
    const first = await commitTree(w.gitPort, tree, [undefined], 'the first')
    const second = await commitTree(w.gitPort, tree, [first, first, undefined], 'ünï\n\nRalph-Base: x')
    w.git('update-ref', 'refs/heads/main', second)
    expect(w.git('fsck', '--strict')).toBe('')
    expect(w.git('log', '--format=%P|%T|%an <%ae>|%cn <%ce>|%B', '-1', second).trim()).toBe(
      `${first}|${tree}|ralph <ralph@localhost>|ralph <ralph@localhost>|ünï\n\nRalph-Base: x`,
    )
    const [seconds = '', zone] = w.git('log', '-1', '--format=%ad', '--date=raw', second).trim().split(' ')
    expect(zone).toBe(w.git('log', '-1', '--format=%ad', '--date=format-local:%z', second).trim())
    expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(60)
  })
})

describe('refs', () => {
  async function expectSameRefs(w: World, kinds: readonly string[]): Promise<void> {
    const asked = ['for-each-ref', '--format=%(objectname) %(refname) %(symref)%00', ...kinds]
    const lines = raw(w, asked).map((line) => line.trim().split(' '))
    const plain = lines.flatMap(([hash = '', name = '', symref]) =>
      name !== '' && symref === undefined ? [[textOf(name), hash] as const] : [],
    )
    expect(await refsUnder(w.gitPort, kinds)).toEqual(Object.fromEntries(plain))
  }

  it('are the same as git lists them: loose, packed, both, symbolic, broken, no UTF-8', async () => {
    const w = world()
    const [first = '', second = '', third = ''] = commits(w)
    const kinds = ['refs/heads', 'refs/tags', 'refs/stash', 'refs/ralph/demo']
    for (const name of ['heads/a/b', 'heads/ünï', 'tags/v1', 'ralph/demo/attempts/1', 'ralph/demon/1'])
      w.git('update-ref', `refs/${name}`, first)
    w.git('tag', '-am', 'annotated', 'v2', second)
    await expectSameRefs(w, kinds)
    expect(await readRef(w.gitPort, 'refs/heads/ünï')).toBe(first)
    w.git('pack-refs', '--all')
    await expectSameRefs(w, kinds)
    w.git('update-ref', 'refs/heads/a/b', third)
    w.git('symbolic-ref', 'refs/heads/symbolic', 'refs/heads/main')
    w.git('update-ref', '-d', 'refs/tags/v1')
    const folder = join(w.dir, '.git', 'refs', 'heads')
    writeFileSync(join(folder, 'broken'), 'no hash\n')
    writeFileSync(join(folder, 'main.lock'), '')
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff])]), `${second}\n`)
    mkdirSync(join(folder, 'empty'))
    await expectSameRefs(w, kinds)
    expect(await readRef(w.gitPort, 'refs/heads/a/b')).toBe(third)
    expect(await readRef(w.gitPort, 'refs/heads/ünï')).toBe(first)
    expect(await readRef(w.gitPort, 'refs/tags/v1')).toBeUndefined()
    expect(await readRef(w.gitPort, 'refs/heads/symbolic')).toBe(w.git('rev-parse', 'main').trim())
    const { head } = await readRefs(w.gitPort)
    expect(head).toEqual({ ref: 'refs/heads/main', commit: w.git('rev-parse', 'HEAD').trim() })
  })
})

describe('settings', () => {
  async function expectSameSettings(w: World): Promise<void> {
    const listed = raw(w, ['config', '-z', '--list', '--show-scope'])
    const own = (await allSettings(w.gitPort)).filter(({ scope }) => scope !== 'command')
    expect(own.flatMap(({ scope, key, value }) => [scope, `${key}\n${value}`])).toEqual(listed)
  }

  it('are the same as git reads them, whichever of their files changes', async () => {
    const w = world()
    commits(w)
    w.git('config', 'include.path', 'more')
    w.git('config', 'includeIf.onbranch:other.path', 'on-other')
    writeFileSync(join(w.dir, '.git', 'on-other'), '[ralph]\n\tbranch = other\n')
    await expectSameSettings(w)
    // Named from the start, made later.
    writeFileSync(join(w.dir, '.git', 'more'), '[ralph]\n\tmore = 1\n')
    await expectSameSettings(w)
    writeFileSync(join(w.dir, '.git', 'more'), '[ralph]\n\tmore = 2\n')
    await expectSameSettings(w)
    w.git('config', '--global', 'ralph.global', 'ünï')
    await expectSameSettings(w)
    w.git('symbolic-ref', 'HEAD', 'refs/heads/other')
    await expectSameSettings(w)
  })
})

it('where the repository is: as git says, for every kind of place', async () => {
  const w = world()
  // Of this one git is not asked: there is none.
  const alone = { ...w.env, PATH: '/nowhere' }
  expect(await findRepository(w.dir, { timeoutMs: 10_000, env: alone })).toMatchObject({ worktree: w.dir })
  w.write('in/side/x', '')
  symlinkSync('in', join(w.dir, 'way'))
  w.git('worktree', 'add', '-q', '../tree')
  const at = (name: string): string => join(w.root, name)
  w.git('clone', '-q', '--separate-git-dir', at('apart.git'), '.', at('apart'))
  w.git('init', '-q', '--object-format=sha256', at('long'))
  w.git('clone', '-q', '.', at('placed'))
  w.git('-C', at('placed'), 'config', 'core.worktree', at('tree'))
  w.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', w.dir, 'sub')
  mkdirSync(at('tree/deep'))
  const places = [w.dir, `${w.dir}/in/side`, `${w.dir}/way/side`, `${w.dir}/sub`, `${w.dir}/sub/src`]
  for (const cwd of [...places, ...['tree', 'tree/deep', 'apart', 'long', 'placed'].map(at)]) {
    const asked = [
      'rev-parse',
      '--path-format=absolute',
      '--show-toplevel',
      '--absolute-git-dir',
      '--git-common-dir',
    ]
    const said = run('git', asked, { cwd, env: w.env }).trimEnd().split('\n')
    const found = await findRepository(cwd, { timeoutMs: 10_000, env: w.env })
    expect([cwd, found.worktree, found.gitDir, found.gitCommonDir]).toEqual([cwd, ...said])
  }
})
