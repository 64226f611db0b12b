// A user who is still writing while an attempt is kept and reverted: nothing of it is in no ref.
import { execSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { applyTrees } from '../../../src/adapters/git/landing/apply.ts'
import { gitIn } from '../../../src/adapters/git/git.ts'
import { findRepository } from '../../../src/adapters/git/repository.ts'
import type { Checkpoints } from '../../../src/ports.ts'
import { makeWorld, type World } from './world.ts'

const worlds: World[] = []
afterEach(() => {
  for (const made of worlds.splice(0)) made.end()
})

describe.each(['branch', 'stash'] as const)(
  'O3, found by torture: between keep and revert (%s)',
  (strategy) => {
    it('what the user writes there is kept with the attempt before it is undone', async () => {
      const w = makeWorld()
      worlds.push(w)
      const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() } })
      await checkpoints.preflight('start')
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      await w.note({
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
      w.write('agent.txt', 'by the agent\n')
      await checkpoints.keep(1)
      w.write('late.txt', 'by the user, late\n')
      w.write('a.txt', 'edited by the user, late\n')
      await checkpoints.restore()
      expect(w.read('a.txt')).toBe('one\n')
      const attempt = 'refs/ralph/demo/attempts/1'
      expect(w.user('show', `${attempt}:late.txt`)).toBe('by the user, late\n')
      expect(w.user('show', `${attempt}:a.txt`)).toBe('edited by the user, late\n')
      expect(w.user('show', `${attempt}:agent.txt`)).toBe('by the agent\n')
      expect(w.user('show', '-s', '--format=%B', attempt)).toContain('Ralph-Base: ')
    })

    it.each(['a.txt', 'agent.txt'])(
      'what the user writes while git brings files back is kept, too: %s',
      async (name) => {
        const w = makeWorld()
        worlds.push(w)
        const settings = { timeoutMs: 30_000, env: { ...w.env, PATH: `${w.root}:${w.env['PATH'] ?? ''}` } }
        const git = gitIn(await findRepository(w.dir, settings), settings)
        const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() }, git })
        await checkpoints.start('start')
        await checkpoints.ensure('1')
        w.write('a.txt', 'by the agent\n')
        w.write('b/deep.txt', 'by the agent\n')
        w.write('agent.txt', 'by the agent\n')
        await checkpoints.keep(1)
        // Once, just before git writes the files.
        const file = join(w.dir, name)
        const done = join(w.root, 'done')
        const real = execSync('command -v git', { encoding: 'utf8' }).trim()
        const shim = `case "$*" in *checkout-index*) [ -e '${done}' ] || { : > '${done}'; echo late > '${file}'; };; esac`
        writeFileSync(join(w.root, 'git'), `#!/bin/sh\n${shim}\nexec ${real} "$@"\n`, { mode: 0o755 })
        await checkpoints.restore()
        expect(existsSync(done)).toBe(true)
        expect(w.user('show', `refs/ralph/demo/attempts/1:${name}`)).toBe('late\n')
        expect(w.read('a.txt')).toBe('one\n')
        expect(existsSync(join(w.dir, 'agent.txt'))).toBe(false)
      },
    )

    it.each<[string, (w: World) => void, string]>([
      [
        'a folder in the place of a file',
        (w) => {
          rmSync(join(w.dir, 'agent.txt'))
          w.write('agent.txt/theirs.txt', 'late\n')
        },
        'agent.txt/theirs.txt',
      ],
      [
        'a link in the place of a folder',
        (w) => {
          mkdirSync(join(w.root, 'elsewhere'))
          for (const name of ['deep.txt', 'new.txt'])
            writeFileSync(join(w.root, 'elsewhere', name), 'not in the repository\n')
          rmSync(join(w.dir, 'b'), { recursive: true })
          symlinkSync('../elsewhere', join(w.dir, 'b'))
        },
        'b',
      ],
      [
        'a file that the attempt had deleted',
        (w) => {
          w.write('src/keep.txt', 'late\n')
        },
        'src/keep.txt',
      ],
    ])('%s, put there by the user, is kept and not followed', async (_, change, kept) => {
      const w = makeWorld()
      worlds.push(w)
      w.write('src/keep.txt', 'one\n')
      w.write('b/deep.txt', 'one\n')
      w.user('add', '-A')
      w.user('commit', '-qm', 'more')
      const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() } })
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      w.write('agent.txt', 'by the agent\n')
      w.write('b/deep.txt', 'by the agent\n')
      w.write('b/new.txt', 'by the agent\n')
      rmSync(join(w.dir, 'src/keep.txt'))
      await checkpoints.keep(1)
      change(w)
      await checkpoints.restore()
      const attempt = 'refs/ralph/demo/attempts/1'
      expect(w.user('show', `${attempt}:${kept}`)).toBe(kept === 'b' ? '../elsewhere' : 'late\n')
      expect(w.user('show', `${attempt}~:b/new.txt`)).toBe('by the agent\n')
      expect([w.read('b/deep.txt'), w.read('src/keep.txt')]).toEqual(['one\n', 'one\n'])
      expect([existsSync(join(w.dir, 'agent.txt')), existsSync(join(w.dir, 'b/new.txt'))]).toEqual([
        false,
        false,
      ])
      if (kept === 'b')
        for (const name of ['deep.txt', 'new.txt'])
          expect(readFileSync(join(w.root, 'elsewhere', name), 'utf8')).toBe('not in the repository\n')
    })

    it('O4: a file of theirs that an agent removes comes back as they had it last, not as it was when the loop began', async () => {
      const w = makeWorld()
      worlds.push(w)
      w.write('mine.txt', 'at the start\n')
      const checkpoints = w.checkpoints(strategy)
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      w.write('agent.txt', 'by the agent\n')
      await checkpoints.keep(1, true)
      w.write('mine.txt', 'at the start\nedited while the gates ran\n')
      await checkpoints.keep(1, true)
      await checkpoints.save('1', 'checkpoint: 1')
      await checkpoints.ensure('2')
      rmSync(join(w.dir, 'mine.txt'))
      w.write('agent.txt', 'more by the agent\n')
      const { gone } = await checkpoints.keep(2, true)
      await checkpoints.save('2', 'checkpoint: 2')
      await checkpoints.finish('cleanup')
      w.user('gc', '--quiet', '--prune=now')
      execSync(gone[0]?.restore ?? 'false', { cwd: w.dir, env: w.env })
      expect(w.read('mine.txt')).toBe('at the start\nedited while the gates ran\n')
    })

    it('what the user commits there stays on the user’s branch; on the loop’s it is named, with the command that brings it back', async () => {
      const w = makeWorld()
      worlds.push(w)
      w.write('notes.txt', 'not committed\n')
      const checkpoints = w.checkpoints(strategy, { clock: { now: () => Date.now() } })
      await checkpoints.start('start')
      await checkpoints.ensure('1')
      w.write('agent.txt', 'by the agent\n')
      w.write('a.txt', 'by the agent\n')
      await checkpoints.keep(1)
      w.write('late.txt', 'by the user, late\n')
      w.user('add', 'late.txt', 'notes.txt')
      w.user('commit', '-qm', 'late')
      const commit = w.user('rev-parse', '--short=12', 'HEAD').trim()
      await checkpoints.restore()
      const told = w.journal.flatMap((event) => (event.type === 'warning' ? [event.message] : [])).join('\n')
      if (strategy === 'branch') {
        expect(told).toContain(`git cherry-pick ${commit} brings it back`)
        expect(w.user('show', `refs/ralph/demo/moved/1/beside/${commit}:late.txt`)).toBe(
          'by the user, late\n',
        )
      } else {
        expect(told).not.toContain(commit)
        expect(w.user('rev-parse', '--short=12', 'main').trim()).toBe(commit)
        expect(w.user('status', '--porcelain')).toBe('')
        expect(w.read('late.txt')).toBe('by the user, late\n')
      }
      expect([w.read('a.txt'), w.read('notes.txt')]).toEqual(['one\n', 'not committed\n'])
      // And it goes on from there.
      await checkpoints.ensure('1')
      expect(w.user('status', '--porcelain')).not.toContain('agent.txt')
    })
  },
)

describe('O3, found by torture: files that ralph is about to write, remove or bring', () => {
  /** Two trees: `deleted` is gone in the second, `changed` is another, `made` is new, `folder` was a file. */
  async function twoTrees(lateName?: string): Promise<{ w: World; apply: () => Promise<string[]> }> {
    const w = makeWorld()
    worlds.push(w)
    const commit = (): string => {
      w.user('add', '-A')
      w.user('commit', '-qm', 'a tree')
      return w.user('rev-parse', 'HEAD^{tree}').trim()
    }
    for (const name of ['deleted', 'changed', 'folder', 'same']) w.write(name, `${name}: one\n`)
    const from = commit()
    for (const name of ['deleted', 'folder']) rmSync(join(w.dir, name))
    for (const name of ['changed', 'made', 'folder/in it']) w.write(name, `${name}: two\n`)
    const to = commit()
    w.user('checkout', '-q', 'HEAD^')
    const path = w.env['PATH'] ?? ''
    const bin = join(w.root, 'bin')
    mkdirSync(bin)
    const late = `case "$*" in *checkout-index*) echo late > "${join(w.dir, lateName ?? '')}";; esac`
    writeFileSync(join(bin, 'git'), `#!/bin/sh\n${late}\nPATH='${path}' exec git "$@"\n`, { mode: 0o755 })
    const env = lateName === undefined ? w.env : { ...w.env, PATH: `${bin}:${path}` }
    const settings = { timeoutMs: 10_000, env }
    const git = gitIn(await findRepository(w.dir, settings), settings)
    return { w, apply: () => applyTrees(git, join(w.dir, '.git'), from, to, []) }
  }

  it('go over when nobody has touched them, and once more after that', async () => {
    const { w, apply } = await twoTrees()
    expect(await apply()).toEqual([])
    const written = ['changed', 'made', 'folder/in it'].map((name) => w.read(name))
    expect(written).toEqual(['changed: two\n', 'made: two\n', 'folder/in it: two\n'])
    expect(existsSync(join(w.dir, 'deleted'))).toBe(false)
    expect(await apply()).toEqual([])
  })

  it.each(['deleted', 'changed', 'made', 'folder'])(
    'stay where somebody has written since: %s',
    async (name) => {
      const { w, apply } = await twoTrees()
      w.write(name, 'by the user, late\n')
      expect(await apply()).toEqual([name])
      expect(w.read(name)).toBe('by the user, late\n')
      // The others went over.
      if (name !== 'changed') expect(w.read('changed')).toBe('changed: two\n')
      expect(existsSync(join(w.dir, 'deleted'))).toBe(name === 'deleted')
    },
  )

  it.each(['deleted', 'changed', 'made'])(
    'O3: stay, and are told, where somebody writes when git is just about to: %s',
    async (name) => {
      const { w, apply } = await twoTrees(name)
      expect(await apply()).toEqual([name])
      expect(w.read(name)).toBe('late\n')
      expect(w.read('folder/in it')).toBe('folder/in it: two\n')
    },
  )

  it('are not written through a link that somebody has put in the place of their folder', async () => {
    const { w, apply } = await twoTrees()
    mkdirSync(join(w.root, 'elsewhere'))
    writeFileSync(join(w.root, 'elsewhere/in it'), 'not in the repository\n')
    rmSync(join(w.dir, 'folder'))
    symlinkSync('../elsewhere', join(w.dir, 'folder'))
    expect(await apply()).toEqual(['folder', 'folder/in it'])
    expect(readFileSync(join(w.root, 'elsewhere/in it'), 'utf8')).toBe('not in the repository\n')
    expect(w.read('changed')).toBe('changed: two\n')
  })
})

describe('C1, found by torture (810/28): a user who switches to another branch just as git looks', () => {
  /** The switch comes right before the first `git status` of ralph's after `done` was removed. */
  async function withSwitch(): Promise<{ w: World; done: string; checkpoints: Checkpoints }> {
    const w = makeWorld()
    worlds.push(w)
    const [bin, done, path] = [join(w.root, 'bin'), join(w.root, 'done'), w.env['PATH'] ?? '']
    mkdirSync(bin)
    writeFileSync(done, '')
    const late = `case "$*" in *' status '*) [ -e '${done}' ] || { : > '${done}'; env -i PATH="$PATH" git -C '${w.dir}' switch -q main; };; esac`
    const shim = `#!/bin/sh\nexport PATH='${path}'\n${late}\nexec git "$@"\n`
    writeFileSync(join(bin, 'git'), shim, { mode: 0o755 })
    const settings = { timeoutMs: 30_000, env: { ...w.env, PATH: `${bin}:${path}` } }
    w.write('a.txt', 'not committed by the user\n')
    w.write('mine.txt', 'new, of the user\n')
    const git = gitIn(await findRepository(w.dir, settings), settings)
    const checkpoints = w.checkpoints('branch', { clock: { now: () => Date.now() }, git })
    await checkpoints.start('start')
    await checkpoints.ensure('1')
    w.write('agent.txt', 'by the agent\n')
    return { w, done, checkpoints }
  }

  it('before a story: nothing is taken for an edit, and all is back', async () => {
    const { w, done, checkpoints } = await withSwitch()
    await checkpoints.keep(1, true)
    await checkpoints.save('1', 'checkpoint: 1')
    rmSync(done)
    await checkpoints.ensure('2')
    expect(existsSync(done)).toBe(true)
    expect(w.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/ralph/demo')
    expect(w.git('log', '-1', '--format=%s').trim()).toBe('checkpoint: 1')
    expect(['a.txt', 'mine.txt', 'agent.txt'].map((name) => w.read(name))).toEqual([
      'not committed by the user\n',
      'new, of the user\n',
      'by the agent\n',
    ])
  })

  it('after an agent, by a look that takes longer than a lock is waited for: what the switch took away is not called deleted', async () => {
    const { w, done, checkpoints } = await withSwitch()
    await checkpoints.keep(1, true)
    await checkpoints.save('1', 'checkpoint: 1')
    await checkpoints.ensure('2')
    w.write('more.txt', 'of the second story\n')
    rmSync(done)
    const clock = performance.now.bind(performance)
    let passedMs = 0
    const slow = vi.spyOn(performance, 'now').mockImplementation(() => clock() + (passedMs += 4000))
    const { refused } = await checkpoints.keep(2, true).finally(() => slow.mockRestore())
    expect([existsSync(done), refused ?? '']).toEqual([true, ''])
    await checkpoints.save('2', 'checkpoint: 2')
    expect(w.git('ls-tree', '--name-only', 'ralph/demo').trim().split('\n')).toEqual(
      expect.arrayContaining(['a.txt', 'agent.txt', 'mine.txt', 'more.txt']),
    )
  })

  it('after an agent: the attempt fails with that reason, its work is kept and the user’s files are back', async () => {
    const { w, done, checkpoints } = await withSwitch()
    // Committed by the agent, or the switch would be refused.
    w.git('add', '-A')
    w.git('commit', '-qm', 'work')
    rmSync(done)
    const { refused, commits } = await checkpoints.keep(1, true)
    expect([existsSync(done), refused]).toEqual([true, expect.stringContaining('agent.txt')])
    await checkpoints.restore()
    expect(['a.txt', 'mine.txt'].map((name) => w.read(name))).toEqual([
      'not committed by the user\n',
      'new, of the user\n',
    ])
    expect(commits.map((hash) => w.git('show', `${hash}:agent.txt`))).toEqual(['by the agent\n'])
    expect(w.git('for-each-ref', '--contains', commits[0] ?? '')).toContain('refs/ralph/demo/')
  })
})
