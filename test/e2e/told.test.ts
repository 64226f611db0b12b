// The commands that tell and clean up, as a user reads them: each says what is so, of which change, and what to type.
import { describe, expect, test } from 'vitest'
import { ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

const failing = 'echo try > try.txt; echo "<promise>FAILED: no luck</promise>"'

function loop(at: Scratch, change: string, agent: string, ...more: string[]) {
  return ralph(at, ['loop', change, '--agent-command', agent, '--max-retries', '0', ...more])
}

/** `demo`, and a second change `other`. */
function twoChanges(tasks = tasksOf(1)): Scratch {
  const at = scratch({ tasks })
  at.write('openspec/changes/other/proposal.md', '# Other\n')
  at.write('openspec/changes/other/tasks.md', tasks)
  at.git('add', '-A')
  at.git('commit', '-qm', 'other')
  return at
}

describe('clean', () => {
  test('B5: deletes nothing without a yes; in a pipe it names --yes; with two changes it wants a name', async () => {
    const at = twoChanges()
    await loop(at, 'demo', failing, '--on-complete', 'cleanup')
    const refs = () => at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/attempts')
    const kept = refs()
    expect(kept).toBe('refs/ralph/demo/attempts/1')
    const asked = await ralph(at, ['clean', '--attempts'])
    expect([asked.code, asked.stdout]).toEqual([2, ''])
    expect(asked.stderr).toContain('Delete 1 attempt of demo? They cannot be brought back.')
    expect(asked.stderr).toContain('--yes')
    await loop(at, 'other', failing, '--on-complete', 'cleanup')
    const unnamed = await ralph(at, ['clean', '--attempts', '--yes'])
    expect(unnamed.code).toBe(2)
    expect(unnamed.stderr).toContain('Which change? There are other, demo.')
    expect(refs()).toBe(kept)
    const { stdout } = await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    expect([stdout, refs()]).toEqual(['Deleted 1 attempt of demo.\n', ''])
    expect(at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/other/attempts')).not.toBe('')
    expect((await ralph(at, ['clean', 'demo', '--attempts'])).stdout).toBe('No attempt of demo is kept.\n')
  })
})

describe('the small ones', () => {
  test('F10: -C works from another folder, -v and version tell the version', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const there = await ralph(at, ['-C', at.repo, 'list'], { cwd: at.root })
    expect([there.code, there.stdout]).toEqual([0, (await ralph(at, ['list'])).stdout])
    const inside = await ralph(at, ['show', 'demo', '-C', 'repo'], { cwd: at.root })
    expect(inside.stdout).toContain('Story 1')
    const { stdout } = await ralph(at, ['--version'])
    for (const word of ['-v', '-V', 'version']) expect((await ralph(at, [word])).stdout).toBe(stdout)
  })

  test('F7: show of a change without a plan says so, and what to write', async () => {
    const at = scratch({ tasks: '' })
    const { stdout } = await ralph(at, ['show', 'demo'])
    expect(stdout).toContain('no tasks.md yet')
    expect(stdout).toContain('- [ ] 1.1')
  })
})
