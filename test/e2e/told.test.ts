// The commands that tell and clean up, as a user reads them: each says what is so, of which change, and what to type.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'
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

describe('what is true of the change', () => {
  /** Story 1 complete, every other fails. */
  const half = `case $RALPH_STORY in 1) ${goodAgent};; *) ${failing};; esac`
  const stateOf = async (at: Scratch): Promise<string> => {
    const row = (await ralph(at, ['list'])).stdout.split('\n').find((line) => line.startsWith('demo '))
    return row?.split(/ {2,}/)[3] ?? ''
  }

  test('B6: done is what the boxes say: after --story, and after the work was thrown away, list and status say open', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, 'demo', goodAgent, '--story', '1', '--on-complete', 'cleanup')
    expect(at.state().status).toBe('done')
    expect(await stateOf(at)).toBe('○ open (last run: done)')
    const part = (await ralph(at, ['status', 'demo'])).stdout
    expect(part).toMatch(/^demo {2}○ open {2}\(last run: done\)\n {2}stories +1\/2 done\n/)
    expect(part).toContain('next        ralph loop demo runs the 1 open story')
    await loop(at, 'demo', goodAgent, '--on-complete', 'cleanup')
    expect(await stateOf(at)).toBe('✓ done')
    at.git('restore', '.')
    expect(await stateOf(at)).toBe('○ open (last run: done)')
    const thrown = (await ralph(at, ['status', 'demo'])).stdout
    expect(thrown).toContain('0/2 done in this checkout (the run had 2)')
    expect(JSON.parse((await ralph(at, ['status', '--json'])).stdout)).toMatchObject({ status: 'done' })
  })

  test('B6: kept on its branch: list says where it is done, and nothing is called open', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, 'demo', goodAgent)
    expect(await stateOf(at)).toBe('✓ done')
    at.git('switch', '-q', 'main')
    expect(await stateOf(at)).toBe('✓ done on ralph/demo')
  })

  test('B12: a cleanup ends a run that was not done: no unfinished run, and the next loop runs what is left', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    expect((await loop(at, 'demo', half)).code).toBe(3)
    const { stdout } = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(stdout).toContain('next: ralph loop demo runs what is left')
    at.git('add', '-A')
    at.git('commit', '-qm', 'half of it')
    const looked = (await ralph(at, ['status', 'demo'])).stdout
    expect(looked).toContain('next        ralph loop demo runs the 1 open story\n')
    expect(looked.match(/next/g)).toHaveLength(1)
    const again = await loop(at, 'demo', goodAgent)
    expect([again.code, at.state().iterations.map((each) => each.story_id)]).toEqual([0, ['2']])
    expect((await ralph(at, ['attempts', 'demo', '--json'])).stdout).toContain('no luck')
  })

  test('B12: merged by hand and the branch deleted: nothing is left to finish', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, 'demo', goodAgent)
    at.git('switch', '-q', 'main')
    at.git('merge', '-q', 'ralph/demo')
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('it is merged: only its branch goes')
    at.git('branch', '-d', 'ralph/demo')
    const { stdout } = await ralph(at, ['status', 'demo'])
    expect(stdout).toContain('merged into main; ralph/demo is deleted')
    expect(stdout).not.toContain('next')
  })

  test('B13: after a cleanup the own work tree is named with the command that removes it, until it is removed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, 'demo', goodAgent, '--worktree', '--on-complete', 'cleanup')
    const tree = join(at.root, 'repo-ralph-demo')
    const { stdout } = await ralph(at, ['status', 'demo'])
    const command = `git worktree remove ${tree}`
    expect(stdout).toContain(`next        ${command}: the loop's own folder`)
    at.git(...command.split(' ').slice(1))
    expect(existsSync(tree)).toBe(false)
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('worktree remove')
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
