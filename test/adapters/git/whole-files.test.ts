// Files come back whole: between the moment in which git makes one and that in which it writes it, nobody's bytes are written over.
import { execSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { gitIn, type Git } from '../../../src/adapters/git/git.ts'
import { findRepository } from '../../../src/adapters/git/repository.ts'
import { worldOfTest, type World } from './world.ts'

const clock = { now: (): number => Date.now() }

/** Ralph's own git, behind a script that does this first. */
async function gitBehind(w: World, script: string): Promise<Git> {
  const real = execSync('command -v git', { encoding: 'utf8' }).trim()
  writeFileSync(join(w.root, 'git'), `#!/bin/sh\n${script}\nexec ${real} "$@"\n`, { mode: 0o755 })
  const settings = { timeoutMs: 30_000, env: { ...w.env, PATH: `${w.root}:${w.env['PATH'] ?? ''}` } }
  return gitIn(await findRepository(w.dir, settings), settings)
}

describe.each(['branch', 'stash'] as const)('while git brings files back (%s)', (strategy) => {
  // Git makes a file, then reads what is to be in it: here it has to fetch that, and meanwhile the user saves.
  it.each(['changed', 'deleted'])(
    'what an editor saves in place between the two is kept, of a file that the attempt had %s',
    async (how) => {
      const w = worldOfTest()
      const [file, done, remote] = ['repo/a.txt', 'done', 'remote'].map((name) => join(w.root, name))
      w.git('clone', '-q', '--bare', '.', remote ?? '')
      const save = `#!/bin/sh\n[ -e '${done}' ] || { : > '${done}'; echo 'by the user' > '${file}'; }\nexec git-upload-pack "$@"\n`
      writeFileSync(join(w.root, 'upload-pack'), save, { mode: 0o755 })
      execSync(`git -C '${remote}' config uploadpack.allowAnySHA1InWant true`, { env: w.env })
      w.git('remote', 'add', 'origin', remote ?? '')
      w.git('config', 'remote.origin.promisor', 'true')
      w.git('config', 'remote.origin.uploadpack', join(w.root, 'upload-pack'))
      const checkpoints = w.checkpoints(strategy, { clock })
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      if (how === 'changed') w.write('a.txt', 'by the agent\n')
      else rmSync(join(w.dir, 'a.txt'))
      await checkpoints.keep(1)
      const blob = w.user('rev-parse', 'HEAD:a.txt').trim()
      rmSync(join(w.dir, '.git/objects', blob.slice(0, 2), blob.slice(2)))
      await checkpoints.restore()
      expect(existsSync(done ?? '')).toBe(true)
      expect(w.read('a.txt')).toBe('one\n')
      expect(w.user('show', 'refs/ralph/demo/attempts/1:a.txt')).toBe('by the user\n')
    },
  )

  it('where they cannot be written, what is in their place stays', async () => {
    const w = worldOfTest()
    w.write('large.txt', 'a line of many\n'.repeat(1000))
    w.user('add', '-A')
    w.user('commit', '-qm', 'large')
    const git = await gitBehind(w, `case "$*" in *checkout-index*) ulimit -f 1;; esac`)
    const checkpoints = w.checkpoints(strategy, { clock, git })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('large.txt', 'by the agent\n')
    await checkpoints.keep(1)
    await expect(checkpoints.restore()).rejects.toThrow()
    expect(w.read('large.txt')).toBe('by the agent\n')
    expect(readdirSync(join(w.dir, '.git/ralph/checkpoints/demo'))).not.toContain('drafts')
  })

  it('one whose name is too long beside the work tree comes back in its place', async () => {
    const w = worldOfTest()
    const limit = Number(execSync(`getconf PATH_MAX '${w.dir}'`, { encoding: 'utf8' }))
    const left = limit - 20 - w.dir.length
    const path = `${'a-folder-of-a-deep-tree/'.repeat(Math.floor(left / 24))}deep.txt`
    w.write(path, 'one\n')
    w.user('add', '-A')
    w.user('commit', '-qm', 'deep')
    const checkpoints = w.checkpoints(strategy, { clock })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write(path, 'by the agent\n')
    w.write('a.txt', 'by the agent\n')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect([w.read(path), w.read('a.txt')]).toEqual(['one\n', 'one\n'])
    expect(w.user('status', '--porcelain')).toBe('')
  })
})

it.each(['2', '4'])('git takes none of them for changed: index version %s', async (version) => {
  const w = worldOfTest()
  w.write('with a tab\t.txt', 'one\n')
  w.write('new/deep/in.txt', '')
  symlinkSync('a.txt', join(w.dir, 'link'))
  w.user('add', '-A')
  w.user('commit', '-qm', 'more')
  w.user('update-index', '--index-version', version)
  const mode = lstatSync(join(w.dir, '.git/index')).mode & 0o777
  const checkpoints = w.checkpoints('branch', { clock })
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  rmSync(join(w.dir, 'new'), { recursive: true })
  for (const path of ['link', 'run.sh', 'with a tab\t.txt']) rmSync(join(w.dir, path))
  w.write('link', 'by the agent\n')
  w.write('a.txt', 'by the agent\n')
  mkdirSync(join(w.dir, '.git/ralph/checkpoints/demo/drafts/of a kill'), { recursive: true })
  await checkpoints.keep(1)
  await checkpoints.restore()
  expect(w.user('diff-files', '--name-only')).toBe('')
  expect(lstatSync(join(w.dir, '.git/index')).mode & 0o777).toBe(mode)
  expect([w.read('a.txt'), readlinkSync(join(w.dir, 'link')), w.read('new/deep/in.txt')]).toEqual([
    'one\n',
    'a.txt',
    '',
  ])
  const run = lstatSync(join(w.dir, 'run.sh'))
  expect([run.mode & 0o111, run.nlink]).toEqual([0o111, 1])
  expect(readdirSync(join(w.dir, '.git/ralph/checkpoints/demo'))).not.toContain('drafts')
})

it('by the rules of the checkpoint, not by those of the attempt', async () => {
  const w = worldOfTest()
  const paths = ['-.txt', 'id.txt', 'src/id.txt']
  for (const path of paths) w.write(path, '$Id$\n')
  for (const path of ['.gitattributes', 'src/.gitattributes']) w.write(path, '*.txt text\n')
  w.user('add', '-A')
  w.user('commit', '-qm', 'rules')
  // In the same second git looks at the bytes again, and a second round would hide it.
  const [input, early] = [join(w.root, 'input'), join(w.root, 'early')]
  const isEarly = `grep -q id.txt '${input}' && grep -qs ident '${w.dir}/.gitattributes'`
  const script = `case "$*" in *checkout-index*/drafts/*) cat > '${input}'; exec < '${input}'; if ${isEarly}; then : > '${early}'; fi;; esac`
  const checkpoints = w.checkpoints('branch', { clock, git: await gitBehind(w, script) })
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  for (const path of ['.gitattributes', 'src/.gitattributes']) w.write(path, '* ident\n')
  for (const path of paths) w.write(path, 'by the agent\n')
  await checkpoints.keep(1)
  await checkpoints.restore()
  expect([existsSync(input), existsSync(early)]).toEqual([true, false])
  expect(paths.map((path) => w.read(path))).toEqual(['$Id$\n', '$Id$\n', '$Id$\n'])
  expect(w.user('status', '--porcelain')).toBe('')
})
