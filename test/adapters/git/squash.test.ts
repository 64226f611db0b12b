// The result as one commit of the user's, and as commits with the names of their stories.
import { execSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { addWorktree } from '../../../src/adapters/git/start/worktrees.ts'
import type { RalphError } from '../../../src/core/error.ts'
import { worldOfTest as world, picture, type World } from './world.ts'

const message = 'Demo\n\n- 1 One\n\nRalph-Change: demo\nCo-authored-by: ralph (command) <ralph@localhost>'
const about = (n: number, title: string): string =>
  `${title}\n\n- [x] ${n}.1 task\n\nRalph-Change: demo\nRalph-Story: ${n}\nRalph-Agent: command`

/** Two complete stories, the second in a commit of the agent's own. */
async function loop(w: World, checkpoints = w.checkpoints()): Promise<ReturnType<World['checkpoints']>> {
  await checkpoints.preflight('start')
  await checkpoints.start('start')
  await checkpoints.ensure('1')
  w.write('one.txt', '1')
  await checkpoints.keep(1, true)
  await checkpoints.save('1', 'checkpoint: 1', undefined, about(1, 'Language table'))
  await checkpoints.ensure('2')
  w.write('src/b.txt', 'loop\n')
  w.git('add', '-A')
  w.git('commit', '-qm', 'by the agent')
  w.write('two.txt', '2')
  await checkpoints.keep(2, true)
  await checkpoints.save('2', 'checkpoint: 2', undefined, about(2, 'Größe'))
  return checkpoints
}

function hook(w: World, name: string, body: string): void {
  mkdirSync(join(w.dir, '.git/hooks'), { recursive: true })
  writeFileSync(join(w.dir, '.git/hooks', name), `#!/bin/sh\n${body}\n`)
  chmodSync(join(w.dir, '.git/hooks', name), 0o755)
}

const refusal = (work: Promise<unknown>): Promise<RalphError> =>
  work.then(
    () => expect.unreachable(),
    (error: unknown) => error as RalphError,
  )

describe('finish --squash', () => {
  it('F37: one commit of the user’s own on the branch they came from; the branch is archived and gone', async () => {
    const w = world()
    const checkpoints = await loop(w)
    const tip = w.git('rev-parse', 'ralph/demo')
    const report = await checkpoints.finish('squash', message)
    expect(w.git('branch', '--format=%(refname:short)').trim()).toBe('main')
    expect(w.git('log', '--format=%s|%an|%cn')).toBe('Demo|Ada|Ada\nfirst|Ada|Ada\n')
    expect(w.git('log', '-1', '--format=%B').trim()).toBe(message)
    expect(w.git('status', '--porcelain')).toBe('')
    expect(w.git('diff', tip.trim(), 'HEAD')).toBe('')
    expect(w.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/demo/archive')).toBe(tip)
    expect(report.commit).toBe(w.git('rev-parse', 'HEAD').trim())
    expect(report.message).toMatch(/^the work is one commit on main, [0-9a-f]{12};/)
    expect((await checkpoints.finish('squash', message)).message).toContain('nothing is left to finish')
  })

  it('F37: a commit that the user makes while a hook runs is theirs, and not called the work', async () => {
    const w = world()
    const checkpoints = await loop(w)
    hook(w, 'pre-commit', 'env -u GIT_INDEX_FILE git commit -q --no-verify --allow-empty -m theirs')
    const report = await checkpoints.finish('squash', message)
    expect(report.commit).toBeUndefined()
    expect(report.refused?.why).toContain('another commit was made on the branch meanwhile')
    expect(w.git('log', '-1', '--format=%s').trim()).toBe('theirs')
    expect([w.read('one.txt'), w.read('src/b.txt')]).toEqual(['1', 'loop\n'])
    w.write('mine.txt', 'not the loop’s')
    rmSync(join(w.dir, '.git/hooks/pre-commit'))
    const [, command = 'false'] = /Commit it: (.*)$/.exec(report.refused?.hint ?? '') ?? []
    execSync(command, { cwd: w.dir, env: w.env })
    expect(w.git('log', '-1', '--format=%s').trim()).toBe('Demo')
    expect(w.git('status', '--porcelain')).toBe('?? mine.txt\n')
  })

  it('F37: a hook that leaves a part of the work out: that part is named, with the command that adds it', async () => {
    const w = world()
    const checkpoints = await loop(w)
    hook(w, 'pre-commit', 'git reset -q; git add one.txt')
    const report = await checkpoints.finish('squash', message)
    expect(report.commit).toBeUndefined()
    expect(report.refused?.why).toMatch(/^a hook left src\/b\.txt, two\.txt out of the commit/)
    rmSync(join(w.dir, '.git/hooks/pre-commit'))
    const [, command = 'false'] = /uncommitted: (.*)$/.exec(report.refused?.hint ?? '') ?? []
    execSync(command, { cwd: w.dir, env: w.env })
    expect(w.git('show', 'HEAD:src/b.txt')).toBe('loop\n')
    expect(w.git('status', '--porcelain')).toBe('')
  })

  it('F37: a hook refuses, and something of the user’s is staged: the printed command commits the work alone', async () => {
    const w = world()
    w.write('staged.txt', 's')
    w.git('add', 'staged.txt')
    const checkpoints = await loop(w)
    hook(w, 'pre-commit', 'exit 1')
    const report = await checkpoints.finish('squash', message)
    rmSync(join(w.dir, '.git/hooks/pre-commit'))
    const [, command = 'false'] = /then: (.*)$/.exec(report.refused?.hint ?? '') ?? []
    execSync(command, { cwd: w.dir, env: w.env })
    expect(w.git('show', '--name-only', '--format=').trim().split('\n')).toEqual([
      'one.txt',
      'src/b.txt',
      'two.txt',
    ])
    expect(w.git('status', '--porcelain')).toBe('A  staged.txt\n')
  })

  it.each([0, 1])(
    'G10: a hook that resets and exits %s: the work and what the user had not committed are there again',
    async (code) => {
      const w = world()
      w.write('a.txt', 'not committed\n')
      w.write('mine.txt', 'mine\n')
      const checkpoints = await loop(w)
      const reset = code === 0 ? 'post-commit' : 'pre-commit'
      hook(w, reset, `git reset -q --hard ${code === 0 ? 'HEAD^' : ''}; git clean -fdq; exit ${code}`)
      const { refused } = await checkpoints.finish('squash', message)
      expect(refused?.hint).toMatch(/^The work is there and staged, nothing is lost\. /)
      expect(['a.txt', 'mine.txt', 'one.txt', 'src/b.txt', 'two.txt'].map((path) => w.read(path))).toEqual([
        'not committed\n',
        'mine\n',
        '1',
        'loop\n',
        '2',
      ])
      rmSync(join(w.dir, '.git/hooks', reset))
      execSync(/then: (.*)$/.exec(refused?.hint ?? '')?.[1] ?? 'false', { cwd: w.dir, env: w.env })
      expect(w.git('status', '--porcelain')).toBe(' M a.txt\n?? mine.txt\n')
    },
  )

  it('G25: work that was stashed before its commit is made is in the work tree as committed, not its reverse', async () => {
    const w = world()
    const checkpoints = await loop(w)
    hook(w, 'pre-commit', 'env -u GIT_INDEX_FILE git stash -uq')
    const { commit } = await checkpoints.finish('squash', message)
    expect([w.git('rev-parse', 'HEAD').trim(), w.git('status', '--porcelain')]).toEqual([commit, ''])
    expect([w.read('one.txt'), w.read('src/b.txt')]).toEqual(['1', 'loop\n'])
  })

  it.each(['git stash -qu', 'git reset -q --hard; git clean -fdq'])(
    'G10: a hook that takes the work away (%s) and lets an empty commit pass: all of it is there again, and the printed command adds it',
    async (body) => {
      const w = world()
      w.write('a.txt', 'not committed\n')
      const checkpoints = await loop(w)
      hook(w, 'pre-commit', body)
      const { refused } = await checkpoints.finish('squash', message)
      expect(refused?.why).toMatch(/^a hook left one\.txt, src\/b\.txt, two\.txt out of the commit/)
      rmSync(join(w.dir, '.git/hooks/pre-commit'))
      execSync(/uncommitted: (.*)$/.exec(refused?.hint ?? '')?.[1] ?? 'false', { cwd: w.dir, env: w.env })
      expect(w.git('show', '--name-only', '--format=').trim().split('\n')).toEqual([
        'one.txt',
        'src/b.txt',
        'two.txt',
      ])
      expect([w.git('status', '--porcelain'), w.read('a.txt')]).toEqual([' M a.txt\n', 'not committed\n'])
    },
  )

  it.each([
    ['pre-commit', 'git checkout -q -b other', 'other'],
    ['post-commit', 'git branch -m main trunk', 'trunk'],
  ])('G10: a %s hook leaves the branch (%s): the commit is told where it is', async (name, body, there) => {
    const w = world()
    const checkpoints = await loop(w)
    hook(w, name, body)
    const report = await checkpoints.finish('squash', message)
    expect(w.git('rev-parse', there).trim()).toBe(report.commit)
    expect(report.message).toMatch(
      new RegExp(`^the work is one commit on ${there} \\(not on main: a hook of yours left it\\), `),
    )
  })

  it('G10: a commit that a hook makes on top of it is not undone by the index', async () => {
    const w = world()
    w.write('staged.txt', 's')
    w.git('add', 'staged.txt')
    const checkpoints = await loop(w)
    const more = 'echo entry > CHANGELOG; echo bumped >> src/b.txt; git add CHANGELOG src/b.txt'
    hook(w, 'post-commit', `[ -e CHANGELOG ] && exit; ${more}; git commit -qm changelog`)
    const report = await checkpoints.finish('squash', message)
    expect(report.commit).toBe(w.git('rev-parse', 'HEAD^').trim())
    expect(w.git('status', '--porcelain')).toBe('A  staged.txt\n')
  })

  it('G10: a commit of a hook with the index of before takes the work out again: that is said, and the printed command mends it', async () => {
    const w = world()
    w.write('a.txt', 'not committed\n')
    const checkpoints = await loop(w)
    const more = 'unset GIT_INDEX_FILE; echo entry > CHANGELOG; git add CHANGELOG; git commit -qm changelog'
    hook(w, 'post-commit', `[ -e CHANGELOG ] && exit; ${more}`)
    const { refused } = await checkpoints.finish('squash', message)
    expect(refused?.why).toMatch(/^the commit \w+, which .* takes one\.txt, src\/b\.txt, two\.txt out again$/)
    execSync(/uncommitted: (.*)$/.exec(refused?.hint ?? '')?.[1] ?? 'false', { cwd: w.dir, env: w.env })
    expect(w.git('diff', 'HEAD^', 'HEAD', '--name-only')).toBe('CHANGELOG\n')
    expect(w.git('status', '--porcelain')).toBe(' M a.txt\n')
  })

  it('G10: a hook that switches and refuses: the printed command commits on the branch that the user came from', async () => {
    const w = world()
    const checkpoints = await loop(w)
    hook(w, 'pre-commit', 'git checkout -q -b other; exit 1')
    const { refused } = await checkpoints.finish('squash', message)
    rmSync(join(w.dir, '.git/hooks/pre-commit'))
    expect(refused?.hint).toContain('A hook of yours has switched to another branch.')
    execSync(/then: (.*)$/.exec(refused?.hint ?? '')?.[1] ?? 'false', { cwd: w.dir, env: w.env })
    expect([w.git('log', '--format=%s', 'main'), w.git('status', '--porcelain')]).toEqual([
      'Demo\nfirst\n',
      '',
    ])
  })

  it('F37: what the user had not committed is not committed now, and what was staged is staged', async () => {
    const w = world()
    w.write('a.txt', 'one\nmine\n')
    w.write('staged.txt', 's')
    w.git('add', 'staged.txt')
    w.write('untracked.txt', 'u')
    const before = picture(w)
    const checkpoints = await loop(w)
    const report = await checkpoints.finish('squash', message)
    expect(w.git('show', '--name-only', '--format=').trim().split('\n')).toEqual([
      'one.txt',
      'src/b.txt',
      'two.txt',
    ])
    expect(picture(w).status).toBe(before.status)
    expect(w.read('a.txt')).toBe('one\nmine\n')
    expect(report.message).toContain('your other uncommitted files are as they were')
  })

  it('F37: where the loop went on with lines that were not committed, nothing is touched and the way out is named', async () => {
    const w = world()
    w.write('src/b.txt', 'mine\n')
    const checkpoints = await loop(w)
    const before = picture(w)
    const { code, exitCode, hint } = await refusal(checkpoints.finish('squash', message))
    expect([code, exitCode]).toEqual(['finish_conflict', 1])
    expect(hint).toContain('ralph finish demo --cleanup')
    expect(picture(w)).toEqual(before)
  })

  it('F37: a moved branch is merged without a conflict, or nothing is touched', async () => {
    const w = world()
    const checkpoints = await loop(w)
    w.git('switch', '-q', 'main')
    w.write('a.txt', 'moved\n')
    w.git('commit', '-qam', 'moved')
    const report = await checkpoints.finish('squash', message)
    expect(w.git('log', '--format=%s')).toBe('Demo\nmoved\nfirst\n')
    expect([w.read('a.txt'), w.read('src/b.txt'), w.git('status', '--porcelain')]).toEqual([
      'moved\n',
      'loop\n',
      '',
    ])
    expect(report.commit).toBe(w.git('rev-parse', 'HEAD').trim())

    const other = world()
    const started = await loop(other)
    other.git('switch', '-q', 'main')
    other.write('src/b.txt', 'moved\n')
    other.git('commit', '-qam', 'moved')
    other.git('switch', '-q', 'ralph/demo')
    const before = picture(other)
    const { code, exitCode, hint } = await refusal(started.finish('squash', message))
    expect([code, exitCode]).toEqual(['finish_conflict', 1])
    expect(hint).toMatch(/^Nothing was touched\. .*ralph finish demo --squash/)
    expect(picture(other)).toEqual(before)
  })

  it('F37: a merge that the user is in the middle of is not concluded', async () => {
    const w = world()
    const checkpoints = await loop(w)
    w.git('switch', '-q', 'main')
    writeFileSync(join(w.dir, '.git/MERGE_HEAD'), w.git('rev-parse', 'main'))
    const before = picture(w)
    expect((await refusal(checkpoints.finish('squash', message))).message).toContain('middle of a merge')
    expect(picture(w)).toEqual(before)
  })

  it('F37: hooks of the user run, see what is committed, and may change the message', async () => {
    const w = world()
    w.write('mine.txt', 'm')
    const checkpoints = await loop(w)
    hook(w, 'pre-commit', 'git diff --cached --name-only > ../seen; git symbolic-ref HEAD >> ../seen')
    hook(w, 'commit-msg', 'echo "Reviewed-by: hook" >> "$1"')
    await checkpoints.finish('squash', message)
    expect(readFileSync(join(w.root, 'seen'), 'utf8')).toBe('one.txt\nsrc/b.txt\ntwo.txt\nrefs/heads/main\n')
    expect(w.git('log', '-1', '--format=%B').trim()).toBe(`${message}\nReviewed-by: hook`)
    expect(w.git('status', '--porcelain')).toBe('?? mine.txt\n')
  })

  it.each([
    [
      'a hook that refuses',
      (w: World) => hook(w, 'pre-commit', 'echo "no tabs, please" >&2; exit 1'),
      'no tabs',
    ],
    ['no identity', (w: World) => writeFileSync(join(w.root, 'home/.gitconfig'), ''), /identity|who you are/],
    [
      'a signature that cannot be made',
      (w: World) => w.git('config', 'gpg.program', 'false') + w.git('config', 'commit.gpgSign', 'true'),
      'sign',
    ],
  ] as const)(
    'F37: %s loses nothing: the work is there, staged, and the next command is named',
    async (_, set, said) => {
      const w = world()
      w.write('mine.txt', 'm')
      const checkpoints = await loop(w)
      set(w)
      const report = await checkpoints.finish('squash', message)
      expect(report.commit).toBeUndefined()
      expect(report.refused?.why).toMatch(said)
      expect(w.git('log', '--format=%s', 'main')).toBe('first\n')
      expect(w.git('branch', '--show-current').trim()).toBe('main')
      expect(w.git('status', '--porcelain')).toBe('A  one.txt\nM  src/b.txt\nA  two.txt\n?? mine.txt\n')
      const command = /git commit -F (\S+)$/.exec(report.refused?.hint ?? '')?.[1] ?? ''
      w.git('-c', 'user.name=A', '-c', 'user.email=a@x', 'commit', '-qn', '--no-gpg-sign', '-F', command)
      expect(w.git('log', '-1', '--format=%B').trim()).toBe(message)
    },
  )

  it.each(['unborn', 'detached'])('F37: from an %s HEAD', async (kind) => {
    const w = world({ commit: kind !== 'unborn' })
    if (kind === 'detached') w.git('checkout', '-q', '--detach')
    const report = await (await loop(w)).finish('squash', message)
    expect(w.git('log', '--format=%s')).toBe(kind === 'unborn' ? 'Demo\n' : 'Demo\nfirst\n')
    expect(w.git('rev-parse', '--abbrev-ref', 'HEAD').trim()).toBe(kind === 'unborn' ? 'main' : 'HEAD')
    expect([w.git('status', '--porcelain'), report.commit]).toEqual(['', w.git('rev-parse', 'HEAD').trim()])
  })

  it('F37: a loop that kept nothing leaves no empty commit', async () => {
    const w = world()
    const checkpoints = w.checkpoints()
    await checkpoints.start('start')
    const report = await checkpoints.finish('squash', message)
    expect(report.message).toContain('the loop has saved nothing, so there is nothing to commit on main')
    expect(w.git('log', '--format=%s')).toBe('first\n')
  })

  it('F37: with a work tree of its own the commit is made in the user’s checkout', async () => {
    const w = world()
    w.write('mine.txt', 'm')
    const { repository: at } = await addWorktree(w.gitPort, { change: 'demo' })
    const run = w.checkpoints('branch', { git: w.gitPort.at(at), home: w.gitPort })
    await run.start('start')
    await run.ensure('1')
    writeFileSync(join(at.worktree, 'one.txt'), '1')
    await run.keep(1, true)
    await run.save('1', 'checkpoint: 1')
    const report = await run.finish('squash', message)
    expect(w.git('log', '--format=%s')).toBe('Demo\nfirst\n')
    expect(w.git('status', '--porcelain')).toBe('?? mine.txt\n')
    expect(report.commit).toBe(w.git('rev-parse', 'HEAD').trim())
  })

  it('F37: lines of the user’s own in a file that the loop changed are left out by each of two squashes', async () => {
    const w = world()
    const text = (first: string, last: string): string => `${first}\n${'-\n'.repeat(9)}${last}\n`
    w.write('long.txt', text('a', 'z'))
    w.git('add', '-A')
    w.git('commit', '-qm', 'long')
    w.write('long.txt', text('mine', 'z'))
    const checkpoints = w.checkpoints()
    for (const n of [1, 2]) {
      await checkpoints.start(n === 1 ? 'start' : 'resume')
      await checkpoints.ensure(`${n}`)
      w.write('long.txt', text('mine', `loop ${n}`))
      await checkpoints.keep(n, true)
      await checkpoints.save(`${n}`, `checkpoint: ${n}`)
      const report = await checkpoints.finish('squash', message)
      expect([w.git('show', 'main:long.txt'), report.leftOut]).toEqual([text('a', `loop ${n}`), ['long.txt']])
      expect([w.read('long.txt'), w.git('status', '--porcelain')]).toEqual([
        text('mine', `loop ${n}`),
        ' M long.txt\n',
      ])
    }
  })

  it.each(['the user’s checkout', 'a work tree of its own'])(
    'F37: what a cleanup brought, and its user committed in their own way and went on with, is not committed again (%s)',
    async (place) => {
      const w = world()
      const { repository: at } = await addWorktree(w.gitPort, { change: 'demo' })
      const isApart = place !== 'the user’s checkout'
      const run = w.checkpoints('branch', isApart ? { git: w.gitPort.at(at), home: w.gitPort } : {})
      const there = isApart ? at.worktree : w.dir
      const story = async (n: number): Promise<void> => {
        await run.start(n === 1 ? 'start' : 'resume')
        await run.ensure(`${n}`)
        writeFileSync(join(there, `${n}.txt`), `${n}\n`)
        await run.keep(n, true)
        await run.save(`${n}`, `checkpoint: ${n}`)
      }
      await story(1)
      await run.finish('cleanup')
      w.write('1.txt', 'otherwise\n')
      w.git('add', '1.txt')
      w.git('commit', '-qm', 'in my own way')
      w.write('1.txt', 'later\n')
      await story(2)
      await run.finish('squash', message)
      expect(w.git('show', '--name-only', '--format=').trim()).toBe('2.txt')
      expect([w.read('1.txt'), w.git('status', '--porcelain')]).toEqual(['later\n', ' M 1.txt\n'])
    },
  )

  it('F37: what the user set aside of an earlier cleanup, or wrote in its place before a fresh start, is theirs', async () => {
    const w = world()
    const checkpoints = await loop(w)
    await checkpoints.finish('cleanup')
    rmSync(join(w.dir, 'one.txt'))
    w.write('src/b.txt', 'mine\n')
    await checkpoints.start('fresh')
    await checkpoints.ensure('3')
    w.write('three.txt', '3')
    await checkpoints.keep(3, true)
    await checkpoints.save('3', 'checkpoint: 3')
    const { leftOut } = await checkpoints.finish('squash', message)
    expect(w.git('show', '--name-only', '--format=').trim().split('\n')).toEqual(['three.txt', 'two.txt'])
    expect([w.git('status', '--porcelain'), leftOut]).toEqual([' M src/b.txt\n', ['src/b.txt']])
  })

  it('F37: where a start after a cleanup is undone, the next one still knows what the cleanup brought', async () => {
    const w = world()
    const checkpoints = await loop(w)
    await checkpoints.finish('cleanup')
    await checkpoints.start('resume')
    // As a kill leaves it before HEAD has moved.
    w.journal.pop()
    w.git('symbolic-ref', 'HEAD', 'refs/heads/main')
    w.git('reset', '-q')
    expect((await checkpoints.recover()).said).toContain('an unfinished start was undone')
    await checkpoints.start('resume')
    await checkpoints.finish('squash', message)
    expect(w.git('show', '--name-only', '--format=').trim().split('\n')).toEqual([
      'one.txt',
      'src/b.txt',
      'two.txt',
    ])
  })

  it('F37: with stashes there is nothing to squash or to rename, and nothing is touched', async () => {
    const w = world()
    const checkpoints = w.checkpoints('stash')
    await checkpoints.start('start')
    const before = picture(w)
    for (const choice of ['squash', 'rename'] as const)
      expect((await refusal(checkpoints.finish(choice, message))).exitCode).toBe(2)
    expect(picture(w)).toEqual(before)
  })
})

describe('finish --keep --rename', () => {
  it('F37: titles become subjects; trees, authors and times stay; the old tip is archived, an empty initial state goes', async () => {
    const w = world()
    const checkpoints = await loop(w)
    const before = picture(w)
    const old = w.git('rev-parse', 'HEAD').trim()
    const times = w.git('log', '--format=%an %ad %cn %cd %T', '-3')
    const report = await checkpoints.finish('rename')
    expect(w.git('log', '--format=%s')).toBe('Größe\nby the agent\nLanguage table\nfirst\n')
    expect(w.git('log', '-1', '--format=%b').trim()).toBe(
      '- [x] 2.1 task\n\nRalph-Change: demo\nRalph-Story: 2\nRalph-Agent: command',
    )
    expect(w.git('log', '--format=%an %ad %cn %cd %T', '-3')).toBe(times)
    expect(w.git('fsck', '--strict')).toBe('')
    expect(w.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/demo/archive').trim()).toBe(old)
    const after = picture(w)
    expect([after.files, after.index, after.status, after.head]).toEqual([
      before.files,
      before.index,
      before.status,
      before.head,
    ])
    expect(report.message).toMatch(
      /^2 commits have the names of their stories now; .*archive\/\S+; the work is on ralph\/demo/,
    )
  })

  it('F37: the run goes on with the new commits, a second time renames nothing, and a cleanup brings all', async () => {
    const w = world()
    w.write('mine.txt', 'm')
    const checkpoints = await loop(w)
    await checkpoints.finish('rename')
    expect(w.git('log', '--format=%s')).toBe('Größe\nby the agent\nLanguage table\ninitial state\nfirst\n')
    const named = w.git('rev-parse', 'HEAD').trim()
    expect((await checkpoints.finish('rename')).message).toContain('no commit was renamed')
    await w.checkpoints().ensure('3')
    expect(w.git('rev-parse', 'HEAD').trim()).toBe(named)
    expect(w.journal.filter(({ type }) => type === 'warning')).toEqual([])
    w.write('three.txt', '3')
    await checkpoints.keep(3, true)
    await checkpoints.save('3', 'checkpoint: 3')
    await checkpoints.finish('cleanup')
    expect(w.git('status', '--porcelain')).toBe(
      ' M src/b.txt\n?? mine.txt\n?? one.txt\n?? three.txt\n?? two.txt\n',
    )
  })

  it('F37: signatures go with the commits that they were made for', async () => {
    const w = world()
    const checkpoints = await loop(w)
    const signed = w
      .git('cat-file', 'commit', 'HEAD')
      .replace(/^(committer .*)$/m, '$1\ngpgsig -----BEGIN\n abc\n -----END')
    writeFileSync(join(w.root, 'raw'), signed)
    const hash = w.git('hash-object', '-t', 'commit', '-w', join(w.root, 'raw')).trim()
    w.git('update-ref', 'refs/heads/ralph/demo', hash)
    await checkpoints.finish('rename')
    expect(w.git('cat-file', 'commit', 'HEAD')).not.toContain('gpgsig')
    expect(w.git('log', '-1', '--format=%s')).toBe('Größe\n')
    expect(w.git('fsck', '--strict')).toBe('')
  })
})
