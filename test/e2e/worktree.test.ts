import { chmodSync, existsSync, readFileSync, realpathSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Scratch } from './harness.ts'
import { goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'

describe('--worktree', () => {
  test("G28: the loop runs in a work tree of its own; the user's checkout is not touched; cleanup brings the result back", async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('mine.txt', 'being edited meanwhile\n')
    at.write('README.md', '# changed by the user\n')
    const before = at.git('status', '--porcelain')
    const end = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent, '--json'])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.git('status', '--porcelain')).toBe(before)
    const tree = join(at.root, 'repo-ralph-demo')
    expect(readFileSync(join(tree, 'story-2.txt'), 'utf8')).toBe('work of 2\n')
    expect(existsSync(join(tree, '.claude', 'loop-state.json'))).toBe(true)
    const status = JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as {
      status: string
      worktree_name: string
    }
    expect(status).toMatchObject({ status: 'done', worktree_name: 'repo-ralph-demo' })
    const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([finish.code, finish.stderr]).toEqual([0, ''])
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.read('story-1.txt')).toBe('work of 1\n')
    expect(at.read('mine.txt')).toBe('being edited meanwhile\n')
    expect(at.read('README.md')).toBe('# changed by the user\n')
    expect(at.git('diff', '--cached', '--name-only')).toBe('')
  })

  test.each([
    ['agent', ['--agent-command', './mine.sh']],
    ['gate', ['--agent-command', goodAgent, '--verify', 'sh mine.sh']],
  ])(
    'B3: %s: a script of the user’s own that is not committed is refused before the start',
    async (_, args) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('mine.sh', `#!/bin/sh\n${goodAgent}\n`)
      chmodSync(join(at.repo, 'mine.sh'), 0o755)
      const run = (...more: string[]) => ralph(at, ['loop', 'demo', '--worktree', ...args, ...more])
      const words = /mine\.sh is not committed, so the loop's work tree does not have it\./
      const dry = await run('--dry-run')
      expect([dry.code, dry.stdout]).toEqual([2, expect.stringMatching(words)])
      const refused = await run()
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(words)])
      expect(refused.stderr).toContain('Commit it, or give its absolute path.')
      expect(existsSync(join(at.root, 'repo-ralph-demo'))).toBe(false)
      at.git('add', 'mine.sh')
      expect((await run('--dry-run')).code).toBe(2)
      at.git('commit', '-qm', 'mine')
      expect((await run('--dry-run')).code).toBe(0)
      expect((await run()).code).toBe(0)
    },
  )

  test('an untracked change folder is brought along', async () => {
    const at = scratch({ tasks: tasksOf(1), commit: false })
    at.git('add', 'README.md')
    at.git('commit', '-qm', 'without the plan')
    const end = await ralph(at, [
      'loop',
      'demo',
      '--worktree',
      join(at.root, 'elsewhere'),
      '--agent-command',
      goodAgent,
      '--json',
    ])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(readFileSync(join(at.root, 'elsewhere', 'story-1.txt'), 'utf8')).toBe('work of 1\n')
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(1))
  })

  test.each([['resume'], ['finish']])(
    'G28: cleanup by %s, typed inside the loop’s tree, brings the work to the user’s checkout',
    async (by) => {
      const at = await stopped()
      const inside = { cwd: join(at.root, 'repo-ralph-demo') }
      const now = by === 'resume' ? ['--on-complete', 'cleanup'] : []
      const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, ...now], inside)
      expect([resumed.code, resumed.stderr.match(/error/i)]).toEqual([0, null])
      if (by === 'finish') expect((await ralph(at, ['finish', 'demo', '--cleanup'], inside)).code).toBe(0)
      expect(at.read('story-1.txt') + at.read('story-2.txt')).toBe('work of 1\nwork of 2\n')
      expect(at.git('branch', '--show-current')).toBe('main')
    },
  )

  describe('a work tree that was moved', () => {
    const work = async (at: Scratch): Promise<void> => {
      const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
      expect([resumed.code, resumed.stderr.match(/error/i)]).toEqual([0, null])
      expect(existsSync(join(at.root, 'repo-ralph-demo'))).toBe(false)
      expect(readFileSync(join(at.root, 'moved', 'story-2.txt'), 'utf8')).toBe('work of 2\n')
    }

    test('by git worktree move: status, resume and finish follow it', async () => {
      const at = await stopped()
      at.git('worktree', 'move', join(at.root, 'repo-ralph-demo'), join(at.root, 'moved'))
      const status = await ralph(at, ['status', 'demo'])
      expect([status.code, status.stdout]).toEqual([
        0,
        expect.stringContaining(`(in ${join(at.root, 'moved')})`),
      ])
      await work(at)
      const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
      expect([finish.code, finish.stderr]).toEqual([0, ''])
      expect(at.read('story-1.txt') + at.read('story-2.txt')).toBe('work of 1\nwork of 2\n')
    })

    test('it is followed from inside it too', async () => {
      const at = await stopped()
      const moved = join(at.root, 'moved')
      at.git('worktree', 'move', join(at.root, 'repo-ralph-demo'), moved)
      const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent], { cwd: moved })
      expect([resumed.code, resumed.stderr.match(/error/i)]).toEqual([0, null])
      expect(readFileSync(join(moved, 'story-2.txt'), 'utf8')).toBe('work of 2\n')
      expect((await ralph(at, ['finish', 'demo', '--cleanup'], { cwd: moved })).code).toBe(0)
      expect(at.read('story-1.txt') + at.read('story-2.txt')).toBe('work of 1\nwork of 2\n')
    })

    test('U5: by hand: an error that says how git is told, and after that it is followed', async () => {
      const at = await stopped()
      renameSync(join(at.root, 'repo-ralph-demo'), join(at.root, 'moved'))
      const lost = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
      expect(lost.code).toBe(2)
      expect(lost.stderr).toContain('git worktree repair')
      at.git('worktree', 'repair', join(at.root, 'moved'))
      await work(at)
    })

    test('U5: a tree of the user’s own on its branch is not taken for it', async () => {
      const at = await stopped()
      at.git('worktree', 'remove', '--force', join(at.root, 'repo-ralph-demo'))
      at.git('worktree', 'add', '-q', join(at.root, 'mine'), 'ralph/demo')
      const lost = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
      expect(lost.code).toBe(2)
      expect(lost.stderr).toContain('git merge --squash ralph/demo')
      expect(existsSync(join(at.root, 'mine', 'story-2.txt'))).toBe(false)
    })
  })

  test('G26: the same change from two work trees: the second exits 7; status lists all loops; stop works from the main checkout', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const running = start(at, [
      'loop',
      'demo',
      '--worktree',
      '--agent-command',
      'echo working; exec tail -f /dev/null',
      '--json',
    ])
    await running.seen((stdout) => stdout.includes('"text":"working'))
    const second = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(second.code).toBe(7)
    const list = JSON.parse((await ralph(at, ['status', '--json'])).stdout) as
      | { loops?: { change_id: string; alive: boolean }[] }
      | { change_id: string; alive: boolean }
    expect(JSON.stringify(list)).toContain('"alive":true')
    expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
    expect((await running.ended).code).toBe(143)
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect([resumed.code, resumed.stderr.match(/error/i)]).toEqual([0, null])
    expect(realpathSync(join(at.root, 'repo-ralph-demo'))).toContain('repo-ralph-demo')
    expect(existsSync(join(at.root, 'repo-ralph-demo', 'story-1.txt'))).toBe(true)
  })
})

/** The first story is done, the second has failed. */
async function stopped(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(2) })
  const agent = `test $RALPH_STORY = 1 || { echo "<promise>FAILED: no</promise>"; exit; }; ${goodAgent}`
  const options = ['--worktree', '--agent-command', agent, '--max-retries', '0']
  expect((await ralph(at, ['loop', 'demo', ...options])).code).toBe(3)
  return at
}

test('F15: the user’s own checkout is refused as the work tree of a loop, by what it is', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const refused = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--worktree', '.'])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('repo is your own checkout')])
  expect(at.git('for-each-ref', 'refs/heads/ralph', 'refs/ralph')).toBe('')
})
