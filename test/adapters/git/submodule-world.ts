// A repository with submodules in every state that a user may leave them in, and a picture of all that could be lost in them.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'vitest'
import { run } from '../../shell.ts'
import { filesOf, gits, picture, stashLooks, type World } from './world.ts'

export const odd = 'libs/odd näme\nwith a line'
/** Old style: its git directory is in the work tree. */
export const plain = 'old'
/** On a branch, with one inside it. */
export const branched = 'sub'
export const nested = 'sub/inner'
export const all = [branched, nested, odd, plain]

/** Lays the libraries beside the work tree; `git submodule` copies from them. */
export function addSubmodules(w: World): void {
  const libs = join(dirname(w.dir), 'libs')
  const at = (dir: string, ...args: string[]): string =>
    run('git', ['-c', 'protocol.file.allow=always', ...args], { cwd: dir, env: w.env })
  for (const name of ['inner', 'outer']) {
    mkdirSync(join(libs, name), { recursive: true })
    at(join(libs, name), 'init', '-q', '-b', 'main')
    for (const file of ['one.txt', 'two.txt', 'three.txt'])
      writeFileSync(join(libs, name, file), `${file} of ${name}\n`)
    writeFileSync(join(libs, name, '.gitignore'), '*.log\n')
    at(join(libs, name), 'add', '-A')
    at(join(libs, name), 'commit', '-qm', 'first')
  }
  at(join(libs, 'outer'), 'submodule', '--quiet', 'add', join(libs, 'inner'), 'inner')
  at(join(libs, 'outer'), 'commit', '-qm', 'with one inside')
  at(w.dir, 'submodule', '--quiet', 'add', join(libs, 'outer'), branched)
  at(w.dir, 'submodule', '--quiet', 'update', '--init', '--recursive')
  at(w.dir, 'submodule', '--quiet', 'add', '--name', 'odd', join(libs, 'inner'), odd)
  at(w.dir, 'clone', '-q', join(libs, 'inner'), plain)
  at(w.dir, 'submodule', '--quiet', 'add', join(libs, 'inner'), plain)
  at(w.dir, 'commit', '-qm', 'submodules')
  at(join(w.dir, odd), 'checkout', '-q', '--detach')
  at(join(w.dir, branched), 'checkout', '-q', '-b', 'feature')
  at(join(w.dir, branched), 'branch', 'spare')
  for (const name of ['also', 'too'])
    at(join(w.dir, branched), 'symbolic-ref', `refs/heads/${name}`, 'refs/heads/spare')
  for (const path of all) dirty(w, path)
}

/** Staged, partly staged, unstaged, deleted, untracked, ignored, an empty folder, a private file, a stash entry. */
function dirty(w: World, path: string): void {
  const file = (name: string): string => `${path}/${name}`
  w.write(file('one.txt'), 'stashed\n')
  w.git('-C', path, 'stash', 'push', '-q', '-m', 'of the user')
  w.write(file('one.txt'), 'staged\n')
  w.git('-C', path, 'add', 'one.txt')
  w.write(file('one.txt'), 'staged, then edited\n')
  w.write(file('two.txt'), 'edited\n')
  w.write(file('mine/new file.txt'), 'untracked\n')
  w.write(file('secret'), 'private\n', 0o600)
  w.write(file('build.log'), 'ignored\n')
  mkdirSync(join(w.dir, path, 'empty'))
}

/** Everything that has to be as it was: of the superproject and of each submodule. */
export function wholePicture(w: World): ReturnType<typeof picture> & { inside: unknown; settings: string } {
  const paths = all.filter((path) => existsSync(join(w.dir, path, '.git')))
  const asked = paths.map((path) => looksAt(w, path))
  const [settings = '', ...printed] = gits(w.dir, { ...w.env, ...w.watched() }, [
    ['config', '--local', '--list'],
    ...asked.flat(),
  ])
  const seen = Object.fromEntries(
    paths.map((path, n) => [path, one(w, path, printed.splice(0, asked[n]?.length))]),
  )
  return {
    ...picture(w),
    files: filesIn(w),
    inside: Object.fromEntries(all.map((path) => [path, seen[path] ?? 'not checked out'])),
    settings: settings.split('\n').sort().join('\n'),
  }
}

export function filesIn(w: World): Record<string, string> {
  return filesOf(w.dir, ['.git', ...all.map((path) => `${path}/.git`)])
}

function gitDirOf(w: World, path: string): string {
  const link = join(w.dir, path, '.git')
  if (!statSync(link).isFile()) return link
  const [, gitDir = ''] = /^gitdir: (.*)\n$/.exec(readFileSync(link, 'utf8')) ?? []
  return resolve(w.dir, path, gitDir)
}

const looksAt = (w: World, path: string): string[][] =>
  [
    ['for-each-ref', '--format=%(objectname) %(refname) %(symref)', 'refs/heads', 'refs/tags', 'refs/notes'],
    ['ls-files', '-s', '-v', '-z'],
    ['status', '--porcelain', '-z', '-uall'],
    ...stashLooks(gitDirOf(w, path)),
  ].map((args) => ['-C', path, ...args])

function one(w: World, path: string, printed: readonly string[]): unknown {
  expect(printed.filter((text) => text.endsWith('failed'))).toEqual([])
  const [refs, index, status, stashes = ''] = printed
  const gitDir = gitDirOf(w, path)
  return {
    link: statSync(join(w.dir, path, '.git')).isFile() ? w.read(`${path}/.git`) : 'folder',
    head: readFileSync(join(gitDir, 'HEAD'), 'utf8'),
    refs,
    index,
    stashes,
    status,
    config: readFileSync(join(gitDir, 'config'), 'utf8'),
    private: statSync(join(w.dir, path, 'secret'), { throwIfNoEntry: false })?.mode,
  }
}
