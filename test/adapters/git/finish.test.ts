// The completion choice of the branch strategy, from every place where a loop can begin and end.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { gitIn } from '../../../src/adapters/git/git.ts'
import { findRepository } from '../../../src/adapters/git/repository.ts'
import { addWorktree } from '../../../src/adapters/git/start/worktrees.ts'
import type { RalphError } from '../../../src/core/error.ts'
import { copyWorld, endTemplates, filesOf, worldOfTest as world, picture, type World } from './world.ts'

afterAll(endTemplates)

/** One complete story. */
async function loop(
  w: World,
  work: () => void = () => w.write('work.txt', 'w'),
): Promise<ReturnType<World['checkpoints']>> {
  const checkpoints = w.checkpoints()
  await checkpoints.preflight('start')
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  work()
  await checkpoints.keep(1)
  await checkpoints.save('1', 'checkpoint: 1')
  return checkpoints
}

const branches = (w: World): string[] => w.git('branch', '--format=%(refname:short)').trim().split('\n')

describe('cleanup', () => {
  /** A loop whose git runs `deed` once, just before the cleanup writes its first ref, or the one that is `named`. */
  async function whileItBegins(
    w: World,
    deed: string,
    named = 'archive',
  ): Promise<ReturnType<World['checkpoints']>> {
    const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
    const done = join(w.root, 'done')
    const shim = `case "$*" in *'ralph: ${named}'*) [ -e ${done} ] || { : > ${done}; (${deed}) || exit 1; };; esac`
    writeFileSync(join(w.root, 'git'), `#!/bin/sh\ngit=${real}\n${shim}\nexec $git "$@"\n`, { mode: 0o755 })
    const settings = { timeoutMs: 30_000, env: { ...w.env, PATH: `${w.root}:${w.env['PATH'] ?? ''}` } }
    const git = gitIn(await findRepository(w.dir, settings), settings)
    const checkpoints = w.checkpoints('branch', { git })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('work.txt', 'w')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    return checkpoints
  }

  it('O3, found by torture: a user who switches while the cleanup begins: nothing is touched, and it works when they are back', async () => {
    const w = world()
    const checkpoints = await whileItBegins(w, '$git switch -q main')
    await expect(checkpoints.finish('cleanup')).rejects.toMatchObject({ code: 'finish_conflict' })
    expect(w.git('branch', '--show-current').trim()).toBe('main')
    expect(w.git('show', 'ralph/demo:work.txt')).toBe('w')
    w.git('switch', '-q', 'ralph/demo')
    await checkpoints.finish('cleanup')
    expect([w.git('branch', '--show-current').trim(), w.read('work.txt')]).toEqual(['main', 'w'])
  })

  it('O3: a commit that the user makes on the branch while the cleanup runs is kept, and named', async () => {
    const w = world()
    const checkpoints = await whileItBegins(w, '$git commit -q --allow-empty -m theirs')
    const { message } = await checkpoints.finish('cleanup')
    const [, hash = '', ref = ''] = /not brought: (\w+) \(theirs\); it is kept as (\S+):/.exec(message) ?? []
    expect(w.git('rev-parse', '--short=12', ref).trim()).toBe(hash)
    expect(branches(w)).toEqual(['main'])
    expect(w.read('work.txt')).toBe('w')
  })

  it('O3: a commit that the user makes on the branch between a cleanup that was cut off and its repair is kept, and named', async () => {
    const w = world()
    const checkpoints = await whileItBegins(w, 'exit 1', 'cleanup')
    await expect(checkpoints.finish('cleanup')).rejects.toThrow()
    const theirs = w.git('commit-tree', '-p', 'ralph/demo', '-m', 'theirs', 'ralph/demo^{tree}').trim()
    w.git('update-ref', 'refs/heads/ralph/demo', theirs)
    const { said: message } = await checkpoints.recover()
    const [, ref = 'none'] = /not brought: \w+ \(theirs\); it is kept as (\S+):/.exec(message ?? '') ?? []
    expect(w.git('rev-parse', ref).trim()).toBe(theirs)
    expect([branches(w), w.read('work.txt')]).toEqual([['main'], 'w'])
  })

  it('O3: a branch that its user has set back: what was taken off it stays off, and is named with what keeps it', async () => {
    const w = world()
    const checkpoints = await loop(w)
    const saved = w.git('rev-parse', 'ralph/demo').trim()
    w.git('reset', '-q', '--hard', 'main')
    const { message } = await checkpoints.finish('cleanup')
    const kept = /not brought; it is kept as (\S+)/.exec(message)?.[1] ?? 'none'
    expect(w.git('rev-parse', kept).trim()).toBe(saved)
    expect(message).not.toMatch(/everything/i)
    expect(w.git('status', '--porcelain')).toBe('')
  })

  it('S003-cleanup: back on the original branch, all changes uncommitted and unstaged, the branch gone, its tip archived', async () => {
    const w = world()
    const first = w.git('rev-parse', 'HEAD')
    const checkpoints = await loop(w, () => {
      w.write('work.txt', 'w')
      w.write('a.txt', 'changed\n')
    })
    const tip = w.git('rev-parse', 'ralph/demo')
    expect(w.git('log', '--format=%s').trim().split('\n')).toEqual([
      'checkpoint: 1',
      'initial state',
      'first',
    ])
    const report = await checkpoints.finish('cleanup')
    expect(w.git('rev-parse', '--abbrev-ref', 'HEAD').trim()).toBe('main')
    expect(w.git('rev-parse', 'HEAD')).toBe(first)
    expect(w.git('status', '--porcelain')).toBe(' M a.txt\n?? work.txt\n')
    expect(branches(w)).toEqual(['main'])
    expect(w.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/demo/archive')).toBe(tip)
    expect(report).toMatchObject({ loopPaths: ['a.txt', 'work.txt'], userPaths: [] })
    expect((await checkpoints.finish('cleanup')).message).toContain('nothing is left')
  })

  it('G15: work that was squashed into the original branch is not said to be uncommitted; a branch that is gone is made again, and that is said; one that was renamed is not', async () => {
    const w = world()
    const checkpoints = await loop(w)
    w.git('switch', '-q', 'main')
    w.git('merge', '-q', '--squash', 'ralph/demo')
    w.git('commit', '-q', '-m', 'squashed')
    w.git('branch', '-q', '-D', 'ralph/demo')
    expect((await checkpoints.finish('cleanup')).message).toMatch(/^the work was merged into main already/)
    const other = world()
    const started = await loop(other)
    other.git('branch', '-q', '-m', 'main', 'trunk')
    const refused = await started.finish('cleanup').catch((error: unknown) => error as RalphError)
    expect(refused).toMatchObject({
      code: 'finish_conflict',
      hint: expect.stringContaining('branch -m trunk main'),
    })
    expect(branches(other)).toEqual(['ralph/demo', 'trunk'])
    rmSync(join(other.dir, '.git/logs/refs/heads/trunk'))
    expect((await started.finish('cleanup')).message).toMatch(/main was gone .* made again at \w+/)
    expect(branches(other)).toEqual(['main', 'trunk'])
  })

  it("G15: the user's staged, partly staged and untracked work is as it was where the loop did not touch it", async () => {
    const w = copyWorld(dirty)
    onTestFinished(() => w.end())
    const before = picture(w)
    const checkpoints = await loop(w, () => {
      w.write('work.txt', 'w')
      w.git('gc', '-q', '--prune=now')
    })
    const report = await checkpoints.finish('cleanup')
    expect(report.message).not.toContain('lost')
    const after = picture(w)
    expect(after.index).toBe(before.index)
    expect(after.status).toBe(`${before.status}?? work.txt\0`)
    expect(after.files).toEqual({ ...before.files, 'work.txt': expect.any(String) as string })
    expect(report.userPaths).toEqual(['a.txt', 'intended.txt', 'staged.txt', 'untracked.txt'])
    expect(report.loopPaths).toEqual(['work.txt'])
  })

  it('G15: what was staged in a file that the loop went on with is unstaged, and the staged version is kept under a ref', async () => {
    const w = copyWorld(dirty)
    onTestFinished(() => w.end())
    const checkpoints = await loop(w, () => w.write('a.txt', 'loop\n'))
    await checkpoints.finish('cleanup')
    expect(w.git('status', '--porcelain', 'a.txt', 'staged.txt')).toBe(' M a.txt\nA  staged.txt\n')
    const [kept = ''] = w
      .git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/index')
      .trim()
      .split('\n')
    expect(w.git('show', `${kept}:a.txt`)).toBe('one\nstaged\n')
  })

  it('O16: an ignored file or link where the loop has a folder is in the way and stays; a file of the loop’s own that becomes a folder is not', async () => {
    const w = world()
    w.write('.gitignore', 'build\n')
    w.git('add', '-A')
    w.git('commit', '-qm', 'ignored')
    const checkpoints = await loop(w, () => {
      w.write('.gitignore', '')
      w.write('build/q/x', 'loop\n')
      rmSync(join(w.dir, 'a.txt'))
      w.write('a.txt/x', 'loop\n')
    })
    w.git('switch', '-q', 'main')
    mkdirSync(join(w.root, 'outside/q'), { recursive: true })
    const put = [
      (): void => w.write('build', 'precious\n'),
      (): void => symlinkSync('../outside', join(w.dir, 'build')),
    ]
    for (const each of put) {
      each()
      const before = picture(w)
      await expect(checkpoints.finish('cleanup')).rejects.toMatchObject({
        code: 'finish_conflict',
        message: expect.stringMatching(/in the way: build$/) as string,
      })
      expect([picture(w), readdirSync(join(w.root, 'outside/q'))]).toEqual([before, []])
      rmSync(join(w.dir, 'build'))
    }
    await checkpoints.finish('cleanup')
    expect([w.read('build/q/x'), w.read('a.txt/x')]).toEqual(['loop\n', 'loop\n'])
  })

  it('O15: what a filter leaves out of a file that the cleanup merges is kept as it is now, and the command is said', async () => {
    const w = world()
    w.git('config', 'filter.strip.clean', 'sed /OUTPUT/d')
    w.write('.gitattributes', '*.nb filter=strip\n')
    w.write('old.nb', '1\n2\n3\n4\n5\n')
    w.git('add', '-A')
    w.git('commit', '-qm', 'notebook')
    w.write('old.nb', '1\n2\n3\n4\nuser\nOUTPUT 1\n')
    const checkpoints = await loop(w)
    w.git('worktree', 'add', '-q', '../moved', 'main')
    writeFileSync(join(w.root, 'moved/old.nb'), 'main\n2\n3\n4\n5\n')
    w.git('-C', '../moved', 'commit', '-qam', 'moved')
    w.git('worktree', 'remove', '../moved')
    const latest = '1\n2\n3\n4\nuser\nOUTPUT 2\n'
    w.write('old.nb', latest)
    const { message } = await checkpoints.finish('cleanup')
    expect(w.read('old.nb')).toBe('main\n2\n3\n4\nuser\n')
    const blob =
      /part of old\.nb .*refs\/ralph\/demo\/bytes\): git cat-file blob (\w+)/.exec(message)?.[1] ?? ''
    w.git('gc', '-q', '--prune=now')
    expect(w.git('cat-file', 'blob', blob)).toBe(latest)
  })

  it.each(['cleanup', 'squash'] as const)(
    'found by an attack: a sparse checkout that the user made after the loop: %s touches nothing, and works when it is off',
    async (choice) => {
      const w = world()
      w.write('far/away.txt', 'far\n')
      w.git('add', '-A')
      w.git('commit', '-qm', 'far')
      const checkpoints = await loop(w, () => {
        w.write('src/b.txt', 'work\n')
        w.write('near/new.txt', 'new\n')
      })
      w.git('sparse-checkout', 'set', 'openspec')
      const before = picture(w)
      await expect(checkpoints.finish(choice)).rejects.toMatchObject({
        code: 'finish_conflict',
        message: expect.stringMatching(/leaves out files: far\/away\.txt, .*near\/new\.txt/),
        hint: expect.stringMatching(`git sparse-checkout disable.*--${choice} again`),
      })
      expect(picture(w)).toEqual(before)
      w.git('sparse-checkout', 'disable')
      await checkpoints.finish(choice, 'work')
      expect(w.read('src/b.txt') + w.read('near/new.txt') + w.read('far/away.txt')).toBe('work\nnew\nfar\n')
      expect(w.git('status', '--short')).toBe(choice === 'squash' ? '' : ' M src/b.txt\n?? near/\n')
    },
  )

  it('G7: returns to a detached commit', async () => {
    const w = world()
    const commit = w.git('rev-parse', 'HEAD')
    w.git('checkout', '-q', '--detach')
    const checkpoints = await loop(w)
    await checkpoints.finish('cleanup')
    expect(w.git('rev-parse', 'HEAD')).toBe(commit)
    expect(() => w.git('symbolic-ref', '-q', 'HEAD')).toThrow('symbolic-ref')
    expect(w.git('status', '--porcelain')).toBe('?? work.txt\n')
  })

  it('G8: returns to a branch without a commit', async () => {
    const w = world({ commit: false })
    w.write('staged.txt', 's')
    w.git('add', '-A')
    w.write('untracked.txt', 'u')
    const checkpoints = await loop(w)
    await checkpoints.finish('cleanup')
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main')
    expect(w.git('status', '--porcelain')).toBe('A  staged.txt\n?? untracked.txt\n?? work.txt\n')
  })

  it('G6: after a crash the original branch comes from the journal, in a new process too', async () => {
    const w = world()
    await loop(w)
    await expect(w.checkpoints().preflight('start')).rejects.toMatchObject({
      code: 'branch_exists',
      exitCode: 2,
    })
    expect((await w.checkpoints().preflight('resume')).originalBranch).toBe('main')
    await w.checkpoints().finish('cleanup')
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main')
  })

  it('G13: the original branch moved without a conflict: merged, uncommitted', async () => {
    const w = world()
    const checkpoints = await loop(w, () => w.write('a.txt', 'loop\n'))
    moveMain(w, 'src/b.txt', 'moved\n')
    await checkpoints.finish('cleanup')
    expect(w.git('status', '--porcelain')).toBe(' M a.txt\n')
    expect([w.read('a.txt'), w.read('src/b.txt')]).toEqual(['loop\n', 'moved\n'])
  })

  it('G15: the original branch moved: what was staged and touched by neither side is staged again', async () => {
    const w = copyWorld(dirty)
    onTestFinished(() => w.end())
    const before = picture(w)
    const checkpoints = await loop(w)
    moveMain(w, 'run.sh', 'moved\n')
    await checkpoints.finish('cleanup')
    expect(picture(w).status).toBe(`${before.status}?? work.txt\0`)
    expect(w.git('show', ':a.txt')).toBe('one\nstaged\n')
    expect([w.git('show', ':run.sh'), w.read('run.sh')]).toEqual(['moved\n', 'moved\n'])
  })

  it.each(['cleanup', 'squash'] as const)(
    'G15, found by an attack: main has the work already while the user is on the branch: %s stages nothing but what they staged since',
    async (choice) => {
      const w = copyWorld(dirty)
      onTestFinished(() => w.end())
      const checkpoints = await loop(w)
      w.git('fetch', '-q', '.', 'ralph/demo:main')
      w.write('a.txt', 'staged since\n')
      w.git('add', 'a.txt')
      const { message } = await checkpoints.finish(choice, 'the work')
      expect(message).toMatch(/^the work was merged into main already/)
      expect(w.git('status', '--porcelain')).toBe('M  a.txt\n')
      expect(w.git('diff', '--cached', '--name-status')).toBe('M\ta.txt\n')
    },
  )

  it('G15, found by an attack: main has the work by a merge and more: the index is as main', async () => {
    const w = copyWorld(dirty)
    onTestFinished(() => w.end())
    const checkpoints = await loop(w)
    w.git('worktree', 'add', '-q', '--detach', '../merged', 'main')
    w.git('-C', '../merged', 'merge', '-q', '--no-ff', '-m', 'merged', 'ralph/demo')
    writeFileSync(join(w.root, 'merged', 'more.txt'), 'more\n')
    w.git('-C', '../merged', 'add', '-A')
    w.git('-C', '../merged', 'commit', '-q', '-m', 'more')
    w.git('fetch', '-q', '../merged', 'HEAD:main')
    w.git('worktree', 'remove', '../merged')
    await checkpoints.finish('cleanup')
    expect([w.git('status', '--porcelain'), w.read('more.txt')]).toEqual(['', 'more\n'])
  })

  it('G13, found by an attack: main was moved to a part of the work: that is said, and only the rest is uncommitted', async () => {
    const w = copyWorld(dirty)
    onTestFinished(() => w.end())
    const checkpoints = await loop(w)
    const [from, to] = ['main', 'ralph/demo^'].map((name) => w.git('rev-parse', '--short=12', name).trim())
    w.git('push', '-q', '.', 'ralph/demo^:refs/heads/main')
    const { message } = await checkpoints.finish('cleanup')
    expect(message).toContain('main has a part of this in commits already; the rest is there, uncommitted')
    expect(message).toContain(`main has moved since the loop began (${from} → ${to})`)
    expect(message).not.toContain('by whom')
    expect(w.git('status', '--porcelain')).toBe('?? work.txt\n')
  })

  it('G13: main moved, and its user has merged it into the branch: nothing of the work is said to be in main', async () => {
    const w = world()
    const checkpoints = await loop(w)
    moveMain(w, 'src/b.txt', 'moved\n')
    w.git('merge', '-q', '-m', 'merged', 'main')
    const moved = 'main has moved since the loop began ('
    expect((await checkpoints.finish('keep')).message).toContain(moved)
    const { message } = await checkpoints.finish('cleanup')
    expect(message).toMatch(/^everything is on main, uncommitted/)
    expect(message).toContain(moved)
    expect(w.git('status', '--porcelain')).toBe('?? work.txt\n')
  })

  it('G13: the original branch moved with a conflict: nothing is touched', async () => {
    const w = world()
    const checkpoints = await loop(w, () => w.write('a.txt', 'loop\n'))
    moveMain(w, 'a.txt', 'moved\n')
    const before = picture(w)
    await expect(checkpoints.finish('cleanup')).rejects.toMatchObject({
      code: 'finish_conflict',
      exitCode: 1,
    })
    expect(picture(w)).toEqual(before)
    expect(await checkpoints.recover()).toEqual({})
  })

  it('G13: changes of the user that the merge would overwrite are in the way: nothing is touched', async () => {
    const w = world()
    const checkpoints = await loop(w)
    moveMain(w, 'new.txt', 'from main\n')
    w.write('new.txt', 'from the user\n')
    await expect(checkpoints.finish('cleanup')).rejects.toMatchObject({ code: 'finish_conflict' })
    expect(w.read('new.txt')).toBe('from the user\n')
  })

  it('works later, after the user has gone back to the original branch', async () => {
    const w = world()
    const checkpoints = await loop(w, () => w.write('a.txt', 'loop\n'))
    await checkpoints.finish('keep')
    w.git('switch', '-q', 'main')
    w.write('own.txt', 'mine')
    await w.checkpoints().finish('cleanup')
    expect(w.git('status', '--porcelain')).toBe(' M a.txt\n?? own.txt\n')
    expect(branches(w)).toEqual(['main'])
  })

  it('keeps what was changed by hand after the last checkpoint', async () => {
    const w = world()
    const checkpoints = await loop(w)
    w.write('by-hand.txt', 'h')
    await checkpoints.finish('cleanup')
    expect(w.git('status', '--porcelain')).toBe('?? by-hand.txt\n?? work.txt\n')
  })
})

describe('keep, later, fresh', () => {
  it('S003-keep: stays on the branch with all commits', async () => {
    const w = world()
    const checkpoints = await loop(w)
    const before = picture(w)
    await checkpoints.finish('later')
    await checkpoints.finish('keep')
    expect(picture(w)).toEqual(before)
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/ralph/demo')
  })

  it('G5: an existing branch is refused, and with --fresh archived first; G6: the original stays main', async () => {
    const w = world()
    const checkpoints = await loop(w)
    await checkpoints.finish('keep')
    const tip = w.git('rev-parse', 'ralph/demo').trim()
    w.journal.splice(0)
    const fresh = w.checkpoints()
    await expect(fresh.start('start')).rejects.toMatchObject({ code: 'branch_exists' })
    expect((await fresh.preflight('fresh')).originalBranch).toBe('main')
    await fresh.start('fresh')
    expect(w.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/demo/archive')).toContain(tip)
    expect(w.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/earlier')).toContain('attempts/1')
    await fresh.finish('cleanup')
    expect(w.git('status', '--porcelain')).toBe('?? work.txt\n')
  })

  it('G6: after --fresh with nothing left to do, cleanup still knows the original branch and brings everything there', async () => {
    const w = world()
    w.write('mine.txt', 'mine')
    await (await loop(w)).finish('keep')
    w.journal.splice(0)
    const fresh = w.checkpoints()
    expect((await fresh.preflight('fresh')).originalBranch).toBe('main')
    const report = await w.checkpoints().finish('cleanup')
    expect(report).toMatchObject({ userPaths: ['mine.txt'], loopPaths: ['work.txt'] })
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main')
    expect(w.git('status', '--porcelain')).toBe('?? mine.txt\n?? work.txt\n')
    expect(branches(w)).toEqual(['main'])
    expect((await w.checkpoints().finish('cleanup')).message).toMatch(/cleanup of demo is complete.*archive/)
  })

  it('G6: a second run from the kept branch of the first brings the work of both to the original branch', async () => {
    const w = world()
    w.write('mine.txt', 'mine')
    await (await loop(w)).finish('keep')
    const fresh = w.checkpoints()
    await fresh.preflight('fresh')
    w.journal.splice(0)
    await fresh.start('fresh')
    await fresh.ensure('1')
    w.write('second.txt', 's')
    await fresh.keep(1)
    await fresh.save('1', 'checkpoint: 1')
    await w.checkpoints().finish('cleanup')
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main')
    expect(w.git('status', '--porcelain')).toBe('?? mine.txt\n?? second.txt\n?? work.txt\n')
  })

  it("G3: an agent that left the branch and says COMPLETE: its work and its commits are on ralph's branch", async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    const main = w.git('rev-parse', 'main')
    w.write('work.txt', 'w')
    w.git('add', '-A')
    w.git('stash', '-q')
    w.git('checkout', '-q', 'main')
    w.git('stash', 'pop', '-q')
    w.git('commit', '-qm', 'on main')
    const kept = await checkpoints.keep(1)
    expect(kept.warnings.join()).toContain('the agent moved main')
    expect(kept.commits).toHaveLength(1)
    const { changed } = await checkpoints.save('1', 'checkpoint: 1')
    expect(changed).toBe(true)
    expect(w.git('rev-parse', 'main')).toBe(main)
    expect(w.git('rev-parse', 'refs/ralph/demo/moved/1/heads/main').trim()).toBe(kept.commits[0])
    expect(w.git('show', 'ralph/demo:work.txt')).toBe('w')
    expect(w.git('status', '--porcelain')).toBe('')
    await checkpoints.ensure('2')
  })

  it("an agent's own commits stay in the history of a complete story", async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('work.txt', 'w')
    w.git('add', '-A')
    w.git('commit', '-qm', 'by the agent')
    const kept = await checkpoints.keep(1)
    expect(kept).toMatchObject({ changed: true, historyRewritten: false, warnings: [] })
    await checkpoints.save('1', 'checkpoint: 1')
    expect(w.git('log', '--format=%s').trim().split('\n')).toEqual([
      'checkpoint: 1',
      'by the agent',
      'initial state',
      'first',
    ])
  })
})

describe('a work tree of its own', () => {
  it('G28: the checkout is untouched while the loop runs; cleanup carries the work into it, uncommitted', async () => {
    const w = world()
    w.write('openspec/changes/demo/tasks.md', '- [ ] one\n')
    w.write('own.txt', 'mine')
    const before = picture(w)
    const { repository, brought } = await addWorktree(w.gitPort, {
      change: 'demo',
      changeFolder: 'openspec/changes/demo',
    })
    expect(repository.worktree).toBe(join(w.root, 'repo-ralph-demo'))
    expect(brought).toEqual(['openspec/changes/demo'])
    const checkpoints = w.checkpoints('branch', { git: w.gitPort.at(repository), home: w.gitPort, brought })
    expect((await checkpoints.preflight('start')).originalBranch).toBe('main')
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    writeFileSync(join(repository.worktree, 'a.txt'), 'loop\n')
    writeFileSync(join(repository.worktree, 'openspec/changes/demo/tasks.md'), '- [x] one\n')
    w.write('src/b.txt', 'user\n')
    w.user('commit', '-qam', 'the user goes on')
    const main = w.git('rev-parse', 'main')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    expect((await checkpoints.finish('keep')).message).toContain(`in the work tree ${repository.worktree}`)
    expect(w.git('rev-parse', 'main')).toBe(main)
    expect(filesOf(w.dir)).toEqual({ ...before.files, 'src/b.txt': expect.any(String) as string })
    await checkpoints.finish('cleanup')
    expect(w.git('status', '--porcelain', '-uall')).toBe(
      ' M a.txt\n?? openspec/changes/demo/tasks.md\n?? own.txt\n',
    )
    expect(w.read('openspec/changes/demo/tasks.md')).toBe('- [x] one\n')
    expect(branches(w)).not.toContain('ralph/demo')
  })

  it('G28: a work tree that ralph did not make for this change is refused; its own is used again', async () => {
    const w = world()
    w.git('worktree', 'add', '-q', '../mine', '-b', 'mine')
    w.git('worktree', 'add', '-q', '--detach', '../loose')
    for (const dir of ['../mine', '../loose']) {
      await expect(addWorktree(w.gitPort, { change: 'demo', dir })).rejects.toMatchObject({
        exitCode: 2,
        code: 'usage',
      })
    }
    const first = await addWorktree(w.gitPort, { change: 'demo' })
    expect(await addWorktree(w.gitPort, { change: 'demo' })).toEqual({ ...first, isNew: false })
    const checkpoints = w.checkpoints('branch', { git: w.gitPort.at(first.repository), home: w.gitPort })
    await checkpoints.start('start')
    expect(await addWorktree(w.gitPort, { change: 'demo' })).toEqual({ ...first, isNew: false })
    await checkpoints.finish('cleanup')
    expect(await addWorktree(w.gitPort, { change: 'demo' })).toEqual({ ...first, isNew: false })
    await expect(
      addWorktree(w.gitPort, { change: 'other', dir: first.repository.worktree }),
    ).rejects.toMatchObject({ exitCode: 2 })
  })

  it('refuses to carry the work over changes of the user; on no branch, the merge that it names begins at their own commit', async () => {
    const w = world()
    w.git('checkout', '-q', '--detach')
    const { repository } = await addWorktree(w.gitPort, {
      change: 'demo',
      changeFolder: 'openspec/changes/demo',
      dir: '../elsewhere',
    })
    const checkpoints = w.checkpoints('branch', {
      git: w.gitPort.at(repository),
      home: w.gitPort,
      brought: [],
    })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    writeFileSync(join(repository.worktree, 'a.txt'), 'loop\n')
    await checkpoints.keep(1)
    await checkpoints.save('1', 'checkpoint: 1')
    w.write('a.txt', 'user\n')
    const before = picture(w)
    await expect(checkpoints.finish('cleanup')).rejects.toMatchObject({ code: 'finish_conflict' })
    expect(picture(w)).toEqual(before)
    w.git('commit', '-qam', 'mine')
    await mergeAsTold(w, checkpoints)
  })

  it('G13: on no branch, moved with a conflict: the merge that it names begins at the user’s own commit', async () => {
    const w = world()
    w.git('checkout', '-q', '--detach')
    const checkpoints = await loop(w, () => w.write('a.txt', 'loop\n'))
    w.git('checkout', '-q', '--detach', 'main')
    w.write('a.txt', 'user\n')
    w.git('commit', '-qam', 'mine')
    await mergeAsTold(w, checkpoints)
  })
})

async function mergeAsTold(w: World, checkpoints: ReturnType<World['checkpoints']>): Promise<void> {
  const mine = w.git('rev-parse', 'HEAD')
  const { hint } = await checkpoints.finish('cleanup').then(
    () => ({ hint: '' }),
    (error: unknown) => error as RalphError,
  )
  const told = /Merge by hand: (.*?);/.exec(hint)?.[1] ?? 'none'
  expect(() => execFileSync('sh', ['-c', told], { cwd: w.dir, env: w.env, stdio: 'pipe' })).toThrow()
  w.write('a.txt', 'both\n')
  w.git('commit', '-qam', 'merged')
  expect(w.git('rev-parse', 'HEAD^1')).toBe(mine)
  await checkpoints.finish('cleanup')
  expect([branches(w).filter((name) => name.startsWith('ralph/')), w.read('a.txt')]).toEqual([[], 'both\n'])
}

function dirty(w: World): void {
  w.write('a.txt', 'one\nstaged\n')
  w.git('add', 'a.txt')
  w.write('a.txt', 'one\nstaged\nunstaged\n')
  w.write('staged.txt', 's\n')
  w.git('add', 'staged.txt')
  w.write('intended.txt', 'i\n')
  w.git('add', '-N', 'intended.txt')
  w.write('untracked.txt', 'u\n')
}

/** A commit on main, made without leaving the branch. */
function moveMain(w: World, path: string, content: string): void {
  w.git('worktree', 'add', '-q', '../side', 'main')
  writeFileSync(join(w.root, 'side', path), content)
  w.git('-C', '../side', 'add', '-A')
  w.git('-C', '../side', 'commit', '-qm', 'moved')
  w.git('worktree', 'remove', '../side')
}
