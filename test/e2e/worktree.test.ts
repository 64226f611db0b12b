import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
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
