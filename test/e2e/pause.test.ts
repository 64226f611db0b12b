// `ralph pause`: the loop is there and waits, until somebody lets it go on.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, start, tasksOf, type Running, type Scratch } from './harness.ts'

/** A loop whose first iteration has been told to be the last before a pause, and has ended. */
async function pausedLoop(): Promise<{ at: Scratch; loop: Running; said: string }> {
  const at = scratch({ tasks: tasksOf(2) })
  const agent = at.script(
    'agent.sh',
    `#!/bin/sh
while [ ! -e "${at.root}/go" ]; do sleep 0.05; done
echo "$RALPH_STORY" > "story-$RALPH_STORY.txt"
echo "<promise>COMPLETE</promise>"
`,
  )
  const loop = start(at, ['loop', 'demo', '--agent-command', agent, '--json'])
  await loop.seen((out) => out.includes('"iteration.started"'))
  const { stdout: said } = await ralph(at, ['pause', 'demo'])
  await until(async () => (await status(at))['pause_requested'] === true)
  writeFileSync(join(at.root, 'go'), '')
  await loop.seen((out) => out.includes('"for":"pause"'))
  await until(async () => (await status(at))['waiting_for'] === 'pause')
  return { at, loop, said }
}

const status = async (at: Scratch): Promise<Record<string, unknown>> =>
  JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as Record<string, unknown>

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo()));
}

describe('pause', () => {
  test('F45: the running iteration comes to its end, the next does not begin; resume continues', async () => {
    const { at, loop, said } = await pausedLoop()
    expect(said).toContain('demo pauses after this attempt (#1)')
    expect(said).toContain('ralph resume demo')
    const now = await status(at)
    expect(now).toMatchObject({ alive: true, status: 'running', waiting_for: 'pause', current_iteration: 1 })
    expect([now['waiting_until'], now['pause_requested'], now['current']]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/paused[^]*next +ralph resume demo/)
    expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/^demo {2}‖ paused\n/)
    const list = (await ralph(at, ['list'])).stdout
    expect(list).toMatch(/^demo .* {2}‖ paused {2}/m)
    expect(list).toContain('demo: paused; continue with: ralph resume demo')
    const other = await ralph(at, ['resume', 'demo', '--max-retries', '1'])
    expect([other.code, other.stderr]).toEqual([7, expect.stringContaining('is paused')])
    const on = await ralph(at, ['resume', 'demo'])
    expect([on.code, on.stderr]).toEqual([0, expect.stringContaining('demo continues')])
    const end = await loop.ended
    expect(end.code).toBe(0)
    const events = end.stdout.split('\n')
    const at2 = events.findIndex((line) => line.includes('"iteration.started"') && line.includes('"n":2'))
    expect(at2).toBeGreaterThan(events.findIndex((line) => line.includes('"for":"pause"')))
    expect(at.state()).toMatchObject({ status: 'done', current_iteration: 2 })
    expect(at.state().waiting_for).toBeUndefined()
  })

  test('B5: resume --feedback on a paused loop hands the words over, and it continues', async () => {
    const { at, loop } = await pausedLoop()
    const on = await ralph(at, ['resume', 'demo', '--feedback', 'use the blue one'])
    expect([on.code, on.stderr]).toEqual([
      0,
      expect.stringMatching(/The next prompt of demo has your note\.\s+demo continues/),
    ])
    const end = await loop.ended
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining('use the blue one')])
  })

  test('F3: resume without a name, with several runs to resume: the one that is paused, or that of this branch', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/other/proposal.md', '# Other\n')
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    at.git('add', '-A')
    at.git('commit', '-qm', 'other')
    const failing = ['--max-retries', '0', '--agent-command', 'echo "<promise>FAILED: no</promise>"']
    await ralph(at, ['loop', 'demo', '--worktree', ...failing])
    await ralph(at, ['loop', 'other', ...failing])
    const end = await ralph(at, ['resume', '--agent-command', goodAgent])
    expect([end.code, at.state().change_id]).toEqual([0, 'other'])
  })

  test('F45: pause --off continues, too; a stop while paused ends the loop with 143', async () => {
    const { at, loop } = await pausedLoop()
    expect((await ralph(at, ['stop', 'demo'])).stdout).toContain('Stopped: demo')
    expect((await loop.ended).code).toBe(143)
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'signal' })
    const other = await pausedLoop()
    expect((await ralph(other.at, ['pause', '--off'])).stdout).toContain('demo continues')
    expect((await other.loop.ended).code).toBe(0)
  })

  test('B10: a pause while the loop waits for a limit is said by status, why and list, with the command that ends it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = "cat > /dev/null; echo 'usage limit reached, try again in 3 hours' >&2; exit 1"
    const loop = start(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    await loop.seen((out) => out.includes('"for":"limit"'))
    await ralph(at, ['pause', 'demo'])
    await until(async () => (await status(at))['pause_requested'] === true)
    const look = async (...args: string[]): Promise<string> => (await ralph(at, args)).stdout
    for (const shown of [await look('status', 'demo'), await look('why', 'demo')]) {
      expect(shown).toMatch(/^demo {2}‖ paused/)
      expect(shown).toContain('paused, too: no attempt begins until it is resumed')
      expect(shown).toMatch(/next +ralph resume demo +continue\n/)
    }
    expect(await look('list')).toMatch(/^demo .*‖ paused[^]*demo: paused; continue with: ralph resume demo/m)
    expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
    await loop.ended
  })

  test('F45: killed while paused: told as stopped, and a resume runs on to the end', async () => {
    const { at, loop } = await pausedLoop()
    process.kill(loop.pid, 'SIGKILL')
    await loop.ended
    expect(await status(at)).toMatchObject({ alive: false, status: 'stopped' })
    expect(existsSync(join(at.repo, 'story-1.txt'))).toBe(true)
    const resumed = await ralph(at, ['resume', 'demo', '--json'])
    expect([resumed.code, resumed.stdout.includes('"for":"pause"')]).toEqual([0, false])
    expect(at.state().status).toBe('done')
  })

  test('F45: without a running loop it says so and exits 0', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['pause'])
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining('No loop is running here.')])
  })
})
