// What to type next is the same wherever one looks, and it gets further.
import { expect, test } from 'vitest'
import type { Scratch } from './harness.ts'
import { run } from '../shell.ts'
import { goodAgent, program, ralph, scratch, tasksOf } from './harness.ts'

const gate = 'grep -q good hello.txt'

/** Story 1 failed its gate, was ticked by hand, and failed it again. */
async function refused(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(1) })
  const args = ['--agent-command', goodAgent, '--max-retries', '0', '--verify', gate]
  expect((await ralph(at, ['loop', 'demo', ...args])).code).toBe(3)
  const plan = 'openspec/changes/demo/tasks.md'
  at.write(plan, at.read(plan).replaceAll('[ ]', '[x]'))
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  return at
}

test('F5: with several changes the example of what to type is one with a plan', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('openspec/changes/another/proposal.md', '# Another\n')
  const end = await ralph(at, ['loop', '--agent-command', goodAgent])
  expect([end.code, end.stderr]).toEqual([2, expect.stringContaining('e.g. `ralph loop demo`')])
})

test('B6: at --max-iterations the error, the last lines, status and why name one command, and it works', async () => {
  const at = scratch({ tasks: tasksOf(4) })
  const first = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--max-iterations', '2'])
  expect(first.code).toBe(3)
  const command = 'ralph resume demo --max-iterations 4'
  const shown = [first.stdout, first.stderr]
  for (const look of ['status', 'why', 'report']) shown.push((await ralph(at, [look, 'demo'])).stdout)
  for (const text of shown) {
    expect(text).toContain(command)
    expect(text).not.toMatch(/ralph resume demo(?! --max-iterations 4$| --max-iterations 4 )/m)
  }
  // A limit that its user has set is no failure of a story.
  for (const text of [shown[0], shown[2], (await ralph(at, ['list'])).stdout])
    expect(text).toContain('‖ stuck')
  // It counts what was before the resume, too.
  const low = await ralph(at, ['resume', 'demo', '--max-iterations', '1'])
  expect([low.code, low.stderr]).toEqual([3, expect.stringContaining(command)])
  expect(low.stdout).toContain('the limit of 1 attempt is reached; the run has made 2, and all of them count')
  expect((await ralph(at, ['resume', 'demo', '--max-iterations', '4'])).code).toBe(0)
})

test('B6: after a cleanup, too, the command that is named gets past the limit', async () => {
  const at = scratch({ tasks: tasksOf(4) })
  await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--max-iterations', '2'])
  const command = 'ralph resume demo --max-iterations 4'
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).stdout).toContain(command)
  expect((await ralph(at, ['status', 'demo'])).stdout).toContain(command)
  expect((await ralph(at, ['resume', 'demo', '--max-iterations', '4'])).code).toBe(0)
})

test.each(['--squash', '--cleanup', '--keep'])(
  'B2: what a gate has refused after a tick by hand is stuck wherever one looks, and finish %s says so',
  async (choice) => {
    const at = await refused()
    const looks = async (): Promise<string[]> => {
      const all = ['list', 'status', 'why', 'report'].map((look) =>
        ralph(at, [look, ...(look === 'list' ? [] : ['demo'])]),
      )
      return (await Promise.all(all)).map(({ stdout }) => stdout)
    }
    for (const shown of await looks()) {
      expect(shown).toContain('✕ stuck')
      expect(shown).not.toContain('✓ done')
    }
    const end = await ralph(at, ['finish', 'demo', choice])
    expect(end.code).toBe(0)
    expect(end.stdout).toContain(`\nIt is not done: ${gate} failed on what was ticked by hand.\n`)
    expect(end.stdout).not.toContain('archive demo')
    for (const shown of await looks()) expect(shown).not.toContain('✓ done')
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('when it is fixed, or its box unticked')
  },
)

test('B6 B11: after a gate that ran out of time all name more time, and nobody is sent to what it did not print', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const args = ['--max-retries', '0', '--iteration-timeout', '2s', '--verify', 'tail -f /dev/null']
  const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, ...args])
  const shown = [end.stdout, end.stderr]
  for (const look of ['status', 'why']) shown.push((await ralph(at, [look, 'demo'])).stdout)
  for (const text of shown) {
    expect(text).toContain('ralph resume demo --iteration-timeout 4s')
    expect(text).not.toContain('--gate 1')
  }
})

test('F10: where both streams go to one place the last lines are the only word on why it ended; stderr alone has the error', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const words = ['loop', 'demo', '--max-retries', '0', '--agent-command', 'exit 1']
  const typed = [process.execPath, program, ...words].map((word) => `'${word}'`).join(' ')
  const both = run('sh', ['-c', `${typed} 2>&1; true`], { cwd: at.repo, env: at.env })
  expect(both).toMatch(/✕ stuck: story 1[^]*try again +ralph resume demo/)
  expect(both).not.toContain('error:')
  expect((await ralph(at, ['resume', 'demo'])).stderr).toMatch(/^error: Story 1 failed/m)
})
