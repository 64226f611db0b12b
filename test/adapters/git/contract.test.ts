// The contract of the Checkpoints port, run on both strategies in real repositories.
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { copyWorld, endTemplates, filesOf, makeWorld, picture, type Strategy, type World } from './world.ts'

const worlds: World[] = []
const world = (setUp?: (w: World) => void): World => {
  const made = setUp === undefined ? makeWorld() : copyWorld(setUp)
  worlds.push(made)
  return made
}
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})

afterAll(endTemplates)

/** What a failing agent may do; each leaves the repository in a state that must be undone exactly. */
const agents: Record<string, (w: World) => void> = {
  'G1: leaves new files': (w) => {
    w.write('junk.txt', 'x')
    w.write('deep/er/junk.txt', 'x')
  },
  'G2: commits, then fails': (w) => {
    w.write('a.txt', 'changed\n')
    w.git('commit', '-qam', 'agent')
  },
  'G3: switches branch and commits there': (w) => {
    w.git('checkout', '-q', '-b', 'feature')
    w.write('new.txt', 'x')
    w.git('add', '-A')
    w.git('commit', '-qm', 'agent')
  },
  'G3: moves another branch and deletes a third': (w) => {
    w.git('branch', '-f', 'other', 'HEAD')
    w.git('branch', '-D', 'third')
    w.git('tag', '-f', 'v1', 'HEAD')
  },
  'G4: stashes its work': (w) => {
    w.write('a.txt', 'changed\n')
    w.git('add', '-A')
    w.git('stash', 'push', '-u', '-m', 'mine')
  },
  "G4: drops the user's stash": (w) => {
    w.git(
      'stash',
      'drop',
      '-q',
      w
        .git('stash', 'list')
        .split('\n')
        .findIndex((line) => line.includes('the user'))
        .toString(),
    )
  },
  'G4: amends and rewrites': (w) => {
    w.write('a.txt', 'amended\n')
    w.git('commit', '-q', '--amend', '-am', 'rewritten')
  },
  'G4: detaches HEAD and deletes the branch it was on': (w) => {
    const branch = w.git('symbolic-ref', '--short', 'HEAD').trim()
    w.git('checkout', '-q', '--detach')
    w.git('branch', '-D', branch)
  },
  'G16: edits .gitignore and has an eye on ignored files': (w) => {
    w.write('.gitignore', 'hidden.txt\n')
    w.write('hidden.txt', 'x')
    w.git('add', '-A')
    w.git('commit', '-qm', 'all of it')
  },
  'G16: hides its files by info/exclude': (w) => {
    w.write('.git/info/exclude', 'secret-junk\n')
    w.write('secret-junk', 'x')
  },
  'G16: hides its files by a folder that ignores itself, and by a setting': (w) => {
    w.write('.venv/.gitignore', '*\n')
    w.write('.venv/lib/deep/module', 'x')
    w.write('empty/inner/.gitignore', 'self\n.gitignore\n')
    w.write('empty/inner/self', 'x')
    w.write('.git/agents-rules', 'by-setting*\n')
    w.git('config', 'core.excludesFile', '.git/agents-rules')
    w.write('by-setting/inner/file', 'x')
    w.write('by-setting.txt', 'x')
  },
  'G19: makes nested repositories, in a new and in a tracked folder': (w) => {
    w.git('init', '-q', 'nested')
    w.write('nested/x', 'x')
    w.git('init', '-q', 'src')
  },
  'G21: leaves a merge half done': (w) => {
    w.git('checkout', '-q', '-b', 'side', 'other')
    w.write('a.txt', 'side\n')
    w.git('commit', '-qam', 'side')
    w.git('checkout', '-q', '-b', 'side2', 'other')
    w.write('a.txt', 'side2\n')
    w.git('commit', '-qam', 'side2')
    expect(() => w.git('merge', 'side')).toThrow('merge')
  },
  'G21: leaves a rebase half done': (w) => {
    w.git('checkout', '-q', '-b', 'side', 'other')
    w.write('a.txt', 'side\n')
    w.git('commit', '-qam', 'side')
    w.git('checkout', '-q', '-b', 'side2', 'other')
    w.write('a.txt', 'side2\n')
    w.git('commit', '-qam', 'side2')
    expect(() => w.git('rebase', 'side')).toThrow('rebase')
  },
  'G21: leaves a bisect': (w) => {
    w.git('bisect', 'start')
    w.git('bisect', 'bad')
  },
  'G27: renames, modes, links, odd names': (w) => {
    renameSync(join(w.dir, 'a.txt'), join(w.dir, 'A.txt'))
    chmodSync(join(w.dir, 'run.sh'), 0o644)
    rmSync(join(w.dir, 'src'), { recursive: true })
    symlinkSync('/etc', join(w.dir, 'src'))
    w.write('-rf', 'x')
    w.write('new\nline é "quoted"', 'x')
  },
  'G27: turns a file into a folder and a folder into a file': (w) => {
    rmSync(join(w.dir, 'a.txt'))
    w.write('a.txt/inside', 'x')
    rmSync(join(w.dir, 'src'), { recursive: true })
    w.write('src', 'x')
  },
  'removes empty folders and makes others': (w) => {
    rmSync(join(w.dir, 'empty'), { recursive: true })
    mkdirSync(join(w.dir, 'other/empty/folder'), { recursive: true })
  },
  'stages, unstages, flags': (w) => {
    w.write('a.txt', 'hidden edit\n')
    w.git('update-index', '--assume-unchanged', 'a.txt')
    w.git('rm', '-q', '--cached', 'src/b.txt')
    w.git('add', '-f', '.env')
  },
  'deletes everything': (w) => {
    for (const name of Object.keys(filesOf(w.dir, ['.git', '.env', 'build', 'x.log'])))
      rmSync(join(w.dir, name), { recursive: true, force: true })
    rmSync(join(w.dir, '.git', 'index'))
  },
}

/** Staged, partly staged, unstaged, untracked, ignored, deleted; a stash and other branches of the user's. */
function userWork(w: World): void {
  w.git('branch', 'third')
  w.write('a.txt', 'stashed\n')
  w.git('stash', 'push', '-q', '-m', 'the user')
  w.write('second.txt', 'x\n')
  w.git('add', '-A')
  w.git('commit', '-qm', 'second')
  w.git('branch', 'other', 'HEAD~1')
  w.git('tag', 'v1', 'HEAD~1')
  w.write('a.txt', 'one\nstaged\n')
  w.git('add', 'a.txt')
  w.write('a.txt', 'one\nstaged\nunstaged\n')
  w.write('staged.txt', 's\n')
  w.git('add', 'staged.txt')
  w.write('intended.txt', 'i\n')
  w.git('add', '-N', 'intended.txt')
  w.write('untracked é.txt', 'u\n')
  w.write('.env', 'SECRET=1\n')
  w.write('build/out', 'b\n')
  w.write('x.log', 'l\n')
  mkdirSync(join(w.dir, 'empty/inner'), { recursive: true })
  symlinkSync('a.txt', join(w.dir, 'link'))
}

describe.each<Strategy>(['branch', 'stash'])('checkpoints by %s', (strategy) => {
  it.each(Object.entries(agents))('%s: the attempt is kept and the revert is exact', async (_name, agent) => {
    const w = world(userWork)
    const files = filesOf(w.dir)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.preflight('start')
    await checkpoints.start('start')
    const { commit } = await checkpoints.ensure('1')
    const before = picture(w)
    expect(before.files).toEqual(files)
    agent(w)
    const left = filesOf(w.dir, ['.git', 'nested/.git', 'src/.git', '.env', 'build', 'x.log'])
    const kept = await checkpoints.keep(1)
    const keptFiles = w.git('ls-tree', '-r', '-z', '--name-only', kept.ref).split('\0').filter(Boolean)
    expect(keptFiles).toEqual(expect.arrayContaining(Object.keys(left).filter((name) => !name.endsWith('/'))))
    expect(keptFiles).not.toContain('.env')
    expect(await checkpoints.restore()).toEqual({ commit, stays: [] })
    const after = picture(w)
    expect(after).toEqual(before)
    expect(await checkpoints.ensure('1')).toEqual({ commit })
    if (strategy === 'branch') expect(after.status).toBe('')
  })

  it('G15: a complete story stays, the next failure goes back to it and not further', async () => {
    const w = world(userWork)
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('one.txt', '1')
    expect((await checkpoints.keep(1)).changed).toBe(true)
    expect((await checkpoints.save('1', 'checkpoint: 1')).changed).toBe(true)
    await checkpoints.ensure('2')
    const before = picture(w)
    w.write('one.txt', 'broken')
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect(picture(w)).toEqual(before)
    expect(w.read('one.txt')).toBe('1')
  })

  it('a folder that the user emptied of tracked files is an empty folder after the revert', async () => {
    const w = world()
    rmSync(join(w.dir, 'src/b.txt'))
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = picture(w)
    expect(before.files).toHaveProperty('src/')
    rmSync(join(w.dir, 'src'), { recursive: true })
    w.git('reset', '-q', '--hard', 'main')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(picture(w)).toEqual(before)
  })

  it('every method can be called twice', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = picture(w)
    w.write('a.txt', 'work\n')
    w.git('commit', '-qam', 'agent')
    const first = await checkpoints.keep(1)
    const second = await checkpoints.keep(1)
    expect(second.commit).toBe(first.commit)
    await checkpoints.restore()
    await checkpoints.restore()
    expect(picture(w)).toEqual(before)
    expect((await checkpoints.keep(1)).commit).toBe(first.commit)
    await checkpoints.restore()
    expect(await checkpoints.recover()).toEqual({})
  })

  it('G16: ignored files stay out of a checkpoint and on the disk, even if the agent shows them to git', async () => {
    const w = world()
    w.write('.env', 'SECRET=1\n')
    w.write('build/out', 'b\n')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('.gitignore', '')
    w.write('work.txt', 'w')
    await checkpoints.keep(1)
    const { commit } = await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('ls-tree', '-r', '--name-only', commit)).not.toMatch(/\.env|build/)
    await checkpoints.ensure('2')
    w.write('junk', 'x')
    await checkpoints.keep(2)
    await checkpoints.restore()
    expect(w.read('.env')).toBe('SECRET=1\n')
    expect(w.read('build/out')).toBe('b\n')
    expect(w.git('ls-tree', '-r', '--name-only', 'refs/ralph/demo/attempts/2')).not.toMatch(/\.env|build/)
  })

  it('the state file is never committed, cleaned or rolled back, even if the repository tracks it', async () => {
    const w = world()
    w.write('.claude/loop-state.json', '{"old":1}')
    w.git('add', '-f', '.claude')
    w.git('commit', '-qm', 'tracks it')
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    w.write('.claude/loop-state.json', '{"n":1}')
    w.write('.claude/loop-state.json.tmp', '{')
    await checkpoints.ensure('1')
    w.write('.claude/loop-state.json', '{"n":2}')
    w.write('junk', 'x')
    const kept = await checkpoints.keep(1)
    await checkpoints.restore()
    expect(w.read('.claude/loop-state.json')).toBe('{"n":2}')
    expect(w.git('show', `${kept.commit}:.claude/loop-state.json`)).toBe('{"old":1}')
    expect(w.git('ls-tree', '-r', '--name-only', kept.commit)).not.toContain('.tmp')
    const { commit } = await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('show', `${commit}:.claude/loop-state.json`)).toBe('{"old":1}')
  })

  it('what a person changes between two attempts is taken into the checkpoint', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('by-hand.txt', 'mine')
    await w.checkpoints(strategy).ensure('1')
    w.write('by-hand.txt', 'spoilt')
    await checkpoints.keep(1)
    await checkpoints.restore()
    expect(w.read('by-hand.txt')).toBe('mine')
    expect(w.journal.some((event) => event.type === 'warning' && event.code === 'changes_adopted')).toBe(true)
  })

  it('an attempt that was open when ralph died is kept and reverted before the next spawn', async () => {
    const w = world()
    const checkpoints = w.checkpoints(strategy)
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const before = picture(w)
    await w.note({
      type: 'iteration.started',
      n: 1,
      story_id: '1',
      attempt: 1,
      attempts: 4,
      max_iterations: 4,
      agent: 'x',
      base_commit: '',
      log_file: '',
    })
    w.write('half.txt', 'half')
    await w.checkpoints(strategy).ensure('1')
    expect(picture(w)).toEqual(before)
    expect(w.git('show', 'refs/ralph/demo/attempts/1:half.txt')).toBe('half')
  })
})
