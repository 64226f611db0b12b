// Folders and files that nobody may read or write: the user's are refused before the start, the agent's are opened, another user's are told.
import { describe, expect, it } from 'vitest'
import { execFileSync } from 'node:child_process'
import { chmodSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isRoot, plainUser } from './plain-user.ts'
import { filesOf, worldOfTest as world, type Strategy, type World } from './world.ts'

const modeOf = (path: string): string => (lstatSync(path).mode & 0o777).toString(8)

/** Of the work tree and every folder in it. */
function folderModes(dir: string): Record<string, string> {
  const modes: Record<string, string> = {}
  const walk = (folder: string): void => {
    modes[folder] = modeOf(join(dir, folder))
    for (const entry of readdirSync(join(dir, folder), { withFileTypes: true }))
      if (entry.isDirectory() && entry.name !== '.git') walk(join(folder, entry.name))
  }
  walk('')
  return modes
}

const kept = (w: World): string =>
  w.git('-c', 'safe.directory=*', 'ls-tree', '-r', '--name-only', 'refs/ralph/demo/attempts/1')

describe.each<Strategy>(['branch', 'stash'])('what cannot be read (%s)', (strategy) => {
  it.each<[string, string, number]>([
    ['a folder', 'locked', 0],
    ['a folder that can be listed but not entered', 'locked', 0o444],
    ['a tracked folder that can be listed but not entered', 'src', 0o444],
    ['a file', 'locked/file', 0],
  ])('G14: %s of the user is refused, nothing is touched', async (_what, path, mode) => {
    const w = world()
    w.write('locked/file', 'x')
    const user = plainUser(w, strategy)
    const head = w.read('.git/HEAD')
    chmodSync(join(w.dir, path), mode)
    for (const operation of ['preflight', 'start'] as const) {
      const said = await user.run(operation)
      expect(said).toContain(`what cannot be read cannot be saved: ${path}`)
      expect(said).toContain('exitCode: 2')
    }
    expect(statSync(join(w.dir, path)).mode & 0o777).toBe(mode)
    expect(w.read('.git/HEAD')).toBe(head)
  })

  it('G2: what the agent locked is opened, kept and reverted', async () => {
    const w = world()
    const user = plainUser(w, strategy)
    const before = filesOf(w.dir)
    expect(await user.run('start', 'ensure')).toBe('')
    user.sh('mkdir -p new/deep; echo n > new/deep/file; echo o > new/other')
    user.sh('chmod 0 a.txt run.sh src new/other new/deep new')
    expect(await user.run('keep')).toBe('')
    expect(kept(w)).toMatch(/new\/deep\/file\nnew\/other\nrun\.sh\nsrc\/b\.txt/)
    expect(await user.run('restore')).toBe('')
    expect(filesOf(w.dir)).toEqual(before)
  })
})

describe.each<Strategy>(['branch', 'stash'])('modes of uncommitted files (%s)', (strategy) => {
  it.each([['000'], ['400'], ['600'], ['666'], ['700']])(
    'L: chmod %s by a failed attempt is undone, as that of an earlier story is not',
    async (mode) => {
      const w = world()
      w.write('un.txt', 'mine\n', 0o644)
      w.write('private.txt', 'mine\n', 0o600)
      w.write('later.txt', 'mine\n', 0o644)
      const user = plainUser(w, strategy)
      expect(await user.run('start', 'ensure')).toBe('')
      user.sh('chmod 600 later.txt; echo w > work.txt')
      expect(await user.run('keep', 'save', 'ensure')).toBe('')
      user.sh(`chmod ${mode} un.txt private.txt later.txt work.txt`)
      expect(await user.run('keep', 'restore')).toBe('')
      const modes = ['un.txt', 'private.txt', 'later.txt', 'work.txt'].map((name) =>
        modeOf(join(w.dir, name)),
      )
      expect(modes).toEqual(['644', '600', '600', '644'])
      expect(w.read('un.txt')).toBe('mine\n')
    },
  )
})

describe.each<Strategy>(['branch', 'stash'])('what the agent made read-only (%s)', (strategy) => {
  const made = 'mkdir -p new/deep/empty; echo n > new/deep/file; echo a >> src/b.txt'

  it.each<[string, string]>([
    ['a cache, down to its folders', `${made}; chmod -R a-w new`],
    ['a folder that can be listed but not entered', `${made}; chmod 444 new`],
    ['a folder in a folder that can be listed but not entered', `${made}; chmod 0 new/deep; chmod 444 new`],
    ['a tracked folder', `${made}; chmod 555 src`],
    ['a tracked folder that can be listed but not entered', `${made}; rm src/b.txt; chmod 444 src`],
    ['a tracked folder, and nothing else', `${made}; chmod 000 src`],
    ['a folder that was empty', `${made}; chmod 555 empty`],
    ['the root of the work tree', `${made}; rm a.txt; chmod 555 .`],
    ['what its own rules hide', `${made}; echo new/ > .gitignore; chmod -R a-w new`],
    ['everything, the git directory too', `${made}; chmod -R a-w .`],
  ])('G2: %s is kept, and the revert is exact, permissions of folders too', async (_what, agent) => {
    const w = world()
    w.write('empty/x', '')
    w.write('private/x', '')
    const user = plainUser(w, strategy)
    user.sh('rm empty/x; chmod 700 private')
    const before = [filesOf(w.dir), folderModes(w.dir)]
    expect(await user.run('start', 'ensure')).toBe('')
    user.sh(agent)
    expect(await user.run('keep')).toBe('')
    expect(kept(w)).toContain('new/deep/file')
    expect(await user.run('restore')).toBe('')
    expect([filesOf(w.dir), folderModes(w.dir)]).toEqual(before)
    expect(await user.run('ensure')).toBe('')
  })

  it('G2: a folder that the user keeps read-only is written to and read-only again', async () => {
    const w = world()
    const user = plainUser(w, strategy)
    user.sh('chmod 555 src')
    expect(await user.run('start', 'ensure')).toBe('')
    user.sh('chmod 755 src; echo x > src/new; rm src/b.txt')
    expect(await user.run('keep', 'restore')).toBe('')
    expect(filesOf(join(w.dir, 'src'))).toHaveProperty('b.txt')
    expect(modeOf(join(w.dir, 'src'))).toBe('555')
  })

  it('G27: a private file behind a hard link is never opened for others, and is private again', async () => {
    const w = world()
    const user = plainUser(w, strategy)
    const outside = join(w.root, 'secret')
    user.sh('echo s > ../secret; chmod 0 ../secret')
    expect(await user.run('start', 'ensure')).toBe('')
    if (isRoot) execFileSync('ln', [outside, join(w.dir, 'link')])
    else user.sh('chmod 600 ../secret; ln ../secret link; chmod 0 ../secret')
    expect(await user.run('keep')).toBe('')
    expect(kept(w)).toContain('link')
    expect(modeOf(outside)).toBe('0')
    expect(await user.run('restore')).toBe('')
    expect(modeOf(outside)).toBe('0')
    expect(filesOf(w.dir)).not.toHaveProperty('link')
  })
})

/** Only root can make files of somebody else's. */
describe.skipIf(!isRoot).each<Strategy>(['branch', 'stash'])(
  'what belongs to another user, as root only (%s)',
  (strategy) => {
    it('G2: what can be read is kept, and the error says where, and how to remove the rest', async () => {
      const w = world()
      const user = plainUser(w, strategy)
      const before = filesOf(w.dir)
      expect(await user.run('start', 'ensure')).toBe('')
      w.write('data base/sub/file', 'made in a container')
      expect(await user.run('keep')).toBe('')
      const said = await user.run('restore')
      const place = join(w.dir, 'data base')
      expect(said).toContain(`${place} belongs to another user (root)`)
      expect(said).toContain(`sudo rm -rf '${place}'`)
      expect(said).toContain('what attempt 1 did is in git as refs/ralph/demo/attempts/1')
      expect(said).toContain('exitCode: 1')
      execFileSync('chown', ['-R', '65534:65534', place])
      expect(await user.run('restore')).toBe('')
      expect(filesOf(w.dir)).toEqual(before)
    })

    it.each<[string, number]>([
      ['data', 0o700],
      ['data/file', 0o600],
    ])('G2: an attempt with %s that cannot be read is not said to be in git', async (path, mode) => {
      const w = world()
      const user = plainUser(w, strategy)
      expect(await user.run('start', 'ensure')).toBe('')
      w.write('data/file', 'private to the container')
      chmodSync(join(w.dir, path), mode)
      const said = await user.run('keep')
      expect(said).toContain(`${join(w.dir, 'data')} belongs to another user (root)`)
      expect(said).toContain('What attempt 1 did is in the work tree only, not in git')
      expect(said).toContain('exitCode: 1')
      execFileSync('chown', ['-R', '65534:65534', join(w.dir, 'data')])
      expect(await user.run('keep', 'restore')).toBe('')
      expect(kept(w)).toContain('data/file')
      expect(filesOf(w.dir)).not.toHaveProperty('data/file')
    })

    it('G2: a tracked folder that changed hands stops the revert before git half does it', async () => {
      const w = world()
      const user = plainUser(w, strategy)
      expect(await user.run('start', 'ensure')).toBe('')
      w.write('src/b.txt', 'changed')
      execFileSync('chown', ['0:0', join(w.dir, 'src')])
      expect(await user.run('keep')).toBe('')
      expect(await user.run('restore')).toContain(`${join(w.dir, 'src')} belongs to another user (root)`)
      expect(w.read('src/b.txt')).toBe('changed')
    })
  },
)
