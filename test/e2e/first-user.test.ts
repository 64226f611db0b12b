// What a demanding first-time user found: a command that ralph advises works, and what it says is so.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

/** Story 1 complete, every other fails. */
const half = `case $RALPH_STORY in 1) ${goodAgent};; *) echo try > try.txt; echo "<promise>FAILED: no luck</promise>";; esac`

function loop(at: Scratch, agent: string, ...more: string[]) {
  return ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '0', ...more])
}

/** Types a line that ralph printed, as a user would. */
function type(at: Scratch, line: string, cwd = at.repo): string {
  return execFileSync('sh', ['-c', line], { cwd, env: at.env, encoding: 'utf8' })
}

function after(text: string, label: string): string {
  const line = text.split('\n').find((each) => each.trimStart().startsWith(label))
  return line?.trimStart().slice(label.length).trim() ?? ''
}

async function killed(at: Scratch, agent: string, ...more: string[]): Promise<void> {
  const running = start(at, ['loop', 'demo', '--agent-command', agent, '--json', ...more])
  await running.seen((out) => out.includes('"text":"ready'))
  running.child.kill('SIGKILL')
  await running.ended
  await ralph(at, ['stop', 'demo'])
}

describe('restore', () => {
  test('F26, F5: brings back what diff shows, onto the tree as it is; later commits and ticked boxes stay; it names the files, and the undo it prints undoes it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    expect((await loop(at, goodAgent, '--on-complete', 'cleanup')).code).toBe(0)
    at.write('README.md', '# mine\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'mine')
    at.git('rm', '-q', 'story-2.txt')
    at.write(
      'openspec/changes/demo/tasks.md',
      at.read('openspec/changes/demo/tasks.md').replaceAll('[x] 2.', '[ ] 2.'),
    )
    at.git('commit', '-qam', 'without story 2')
    const patch = (await ralph(at, ['diff', '2'])).stdout
    expect(patch).toContain('story-2.txt')
    expect(patch).toContain('+- [x] 2.1')
    const { stdout, code } = await ralph(at, ['restore', '2'], { cwd: join(at.repo, 'openspec') })
    expect(code).toBe(0)
    expect(stdout).toContain('in the work tree now, uncommitted: openspec/changes/demo/tasks.md, story-2.txt')
    expect(at.git('status', '--porcelain')).toBe(' M openspec/changes/demo/tasks.md\n?? story-2.txt')
    expect(at.read('openspec/changes/demo/tasks.md')).not.toContain('[ ]')
    expect(at.read('README.md')).toBe('# mine\n')
    type(at, after(stdout, 'undo:'), join(at.repo, 'openspec'))
    expect(at.git('status', '--porcelain')).toBe('')
  })

  test('F26: right after a cleanup, over uncommitted work; an attempt that is all there touches nothing', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, half, '--on-complete', 'cleanup')
    at.write('README.md', '# mine\n')
    const there = await ralph(at, ['restore', '1'])
    expect(there.stdout).toContain('in the work tree already; nothing was touched')
    const { stdout, code } = await ralph(at, ['restore', '2'])
    expect([code, at.read('try.txt'), at.read('README.md')]).toEqual([0, 'try\n', '# mine\n'])
    expect(stdout).toContain('uncommitted: try.txt\n')
    expect(at.read('openspec/changes/demo/tasks.md')).toContain('[x] 1.1')
    type(at, after(stdout, 'undo:'))
    expect(existsSync(join(at.repo, 'try.txt'))).toBe(false)
  })

  test('F26: what conflicts, or is ignored and in the way, is named and refused with nothing touched', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, 'echo agent > README.md; echo x > new.txt; echo "<promise>FAILED: no</promise>"')
    at.write('README.md', '# mine\n')
    const { stderr, code } = await ralph(at, ['restore', '1'])
    expect(code).toBe(1)
    expect(stderr).toContain('changed the same lines: README.md')
    expect(stderr).toContain('ralph restore 1 --to DIR')
    expect(at.git('status', '--porcelain')).toBe(' M README.md')
    at.git('restore', 'README.md')
    at.write('.git/info/exclude', 'new.txt\n.claude\n')
    at.write('new.txt', 'secret\n')
    expect((await ralph(at, ['restore', '1'])).stderr).toContain('are in the way: new.txt')
    expect([at.read('new.txt'), at.git('status', '--porcelain')]).toEqual(['secret\n', ''])
  })

  test('F2: an attempt that its dead loop has not kept is neither shown nor advised; where it is, is said', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await killed(at, 'echo x > new.txt; echo ready; exec tail -f /dev/null')
    for (const args of [
      ['restore', '1'],
      ['diff', '1'],
      ['restore', '1', '--to', '../out'],
    ]) {
      const { stderr, code } = await ralph(at, args)
      expect(code).toBe(2)
      expect(stderr).toContain('Attempt 1 of demo is not kept yet')
      expect(stderr).toContain('ralph finish demo --keep')
      expect(stderr).not.toContain('--to DIR')
    }
    expect((await ralph(at, ['finish', 'demo', '--keep'])).code).toBe(0)
    expect((await ralph(at, ['diff', '1'])).stdout).toContain('new.txt')
    expect((await ralph(at, ['restore', '1'])).code).toBe(0)
    expect(at.read('new.txt')).toBe('x\n')
  })
})
