import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { publicEventSchema } from '../../src/core/event.ts'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { eventsOf, goodAgent, ralph, scratch, tasksOf } from './harness.ts'

describe('the loop, as a user runs it', () => {
  test('S000-start-loop: three stories complete: branch, commits, exit 0, complete is the last event', async () => {
    const at = scratch()
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.stderr).not.toMatch(/error/i)
    expect(end.code).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('ralph/demo')
    expect(at.git('log', '--format=%s', '--reverse', 'main..')).toBe(
      'initial state\ncheckpoint: 1\ncheckpoint: 2\ncheckpoint: 3',
    )
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(3).replaceAll('[ ]', '[x]'))
    expect(at.git('status', '--porcelain')).toBe('')
    const events = eventsOf(end)
    expect(events.at(-1)).toMatchObject({ type: 'complete', status: 'done', exit_code: 0 })
    for (const event of events) expect(publicEventSchema.safeParse(event).error).toBeUndefined()
    const numbers = events.map((event) => event.seq)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    const state = at.state()
    expect(stateFileSchema.safeParse(state).success).toBe(true)
    expect(state).toMatchObject({
      status: 'done',
      current_iteration: 3,
      max_iterations: 12,
      change_id: 'demo',
    })
    expect(state.iterations.map((iteration) => iteration.done_check)).toEqual([false, false, true])
    const commits = at.git('log', '--format=%H', '--reverse', 'main..').split('\n').slice(1)
    expect(state.iterations.map((iteration) => iteration.commits)).toEqual(commits.map((commit) => [commit]))
  })

  test('S000-retry-with-reason: FAILED restores the tree exactly; the reason is in the next prompt of that story and in no other', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh
cat > "${at.root}/prompt-$RALPH_ITERATION"
git status --porcelain > "${at.root}/status-$RALPH_ITERATION"
ls > "${at.root}/files-$RALPH_ITERATION"
echo junk > junk.txt; echo changed >> README.md
if [ "$RALPH_ITERATION" = 1 ]; then echo "<promise>FAILED: the flux capacitor is missing</promise>"; exit 0; fi
rm -f junk.txt
echo "<promise>COMPLETE</promise>"
`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect(end.code).toBe(0)
    const prompt = (n: number): string => readFileSync(join(at.root, `prompt-${n}`), 'utf8')
    expect(prompt(1)).not.toContain('Previous Attempt Failed')
    expect(prompt(2)).toContain('Previous Attempt Failed')
    expect(prompt(2)).toContain('the flux capacitor is missing')
    expect(prompt(3)).not.toContain('flux capacitor')
    expect(readFileSync(join(at.root, 'status-2'), 'utf8')).toBe('')
    expect(readFileSync(join(at.root, 'files-2'), 'utf8')).not.toContain('junk')
  })

  test('S000-abnormal-termination: no promise is retried without added context', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh
cat > "${at.root}/prompt-$RALPH_ITERATION"
[ "$RALPH_ITERATION" = 1 ] && { echo "I give up"; exit 3; }
echo "<promise>COMPLETE</promise>"
`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(0)
    expect(readFileSync(join(at.root, 'prompt-2'), 'utf8')).not.toContain('Previous Attempt Failed')
    expect(at.state().iterations[0]).toMatchObject({ verdict: 'crash', exit_code: 3, attempt: 1 })
  })

  test('S000-max-retries: 4 attempts by default, then error, max_retries_exceeded, exit 3, no further story', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      'echo x > x.txt; echo "<promise>FAILED: no</promise>"',
      '--json',
    ])
    expect(end.code).toBe(3)
    const events = eventsOf(end)
    expect(
      events.filter((event) => event.type === 'iteration.started').map((event) => event.story_id),
    ).toEqual(['1', '1', '1', '1'])
    expect(events.map((event) => event.type).slice(-3)).toEqual(['error', 'max_retries_exceeded', 'complete'])
    expect(at.state()).toMatchObject({ status: 'stuck', stop_reason: 'retries' })
    expect(at.git('status', '--porcelain')).toBe('')
    expect(existsSync(join(at.repo, 'x.txt'))).toBe(false)
    expect(
      at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/attempts').split('\n'),
    ).toHaveLength(4)
  })

  test('S000-cli-flag-max-retries: --max-retries 5 means six attempts, 0 means one', async () => {
    const failing = [
      '--agent-command',
      'echo "<promise>FAILED: no</promise>"',
      '--stall-threshold',
      '99',
      '--json',
    ]
    const five = scratch({ tasks: tasksOf(1) })
    await ralph(five, ['loop', 'demo', '--max-retries', '5', ...failing])
    expect(five.state().iterations).toHaveLength(6)
    const zero = scratch({ tasks: tasksOf(1) })
    await ralph(zero, ['loop', 'demo', '--max-retries', '0', ...failing])
    expect(zero.state().iterations).toHaveLength(1)
  })

  test('a gate that fails makes a failed attempt; its output reaches the next prompt; nothing is saved before it passes', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh
cat > "${at.root}/prompt-$RALPH_ITERATION"
[ "$RALPH_ITERATION" = 2 ] && echo ok > built.txt
echo "<promise>COMPLETE</promise>"
`,
    )
    const gate = 'cat built.txt 2> /dev/null || { echo the build is broken; exit 4; }'
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      agent,
      '--verify',
      'true',
      '--verify',
      gate,
      '--json',
    ])
    expect(end.code).toBe(0)
    const prompt = readFileSync(join(at.root, 'prompt-2'), 'utf8')
    expect(prompt).toContain('Previous Attempt Failed')
    expect(prompt).toContain('the build is broken')
    expect(at.state().iterations.map((iteration) => iteration.verdict)).toEqual(['gate_failed', 'complete'])
    // F25: people read one line, and the whole output by its own command.
    expect(at.state().iterations[0]?.reason).toBe(`${gate} failed (exit 4): the build is broken`)
    const logs = await ralph(at, ['logs', '--gate', '1'])
    expect(logs.stdout).toMatch(
      /^▸ 1\/1 Story 1   #1 of demo .*\n+\$ true\n\(exit 0, \d+ ms\)\n\n\$ cat built.*\nthe build is broken\n\(exit 4/,
    )
    // F14: its gates, too, each in a line.
    expect((await ralph(at, ['logs', '1'])).stdout).toMatch(/\n {2}✕ .* \(exit \d+\) .*s\n\n✕ gate failed/)
    expect((await ralph(at, ['logs', '1'])).stdout).toMatch(
      /\n✕ gate failed: .* failed \(exit 4\): the build is broken \(ralph logs demo --gate 1\)\n$/,
    )
    expect((await ralph(at, ['logs', '--gate'])).stdout).toContain('(exit 0,')
    const none = await ralph(at, ['logs', '--gate', '7'])
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('attempt #7 of demo')])
  })

  test('S003-cleanup: back on the original branch, every change there, uncommitted and unstaged, the branch gone', async () => {
    const at = scratch()
    at.write('mine.txt', 'my own uncommitted work\n')
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      '--on-complete',
      'cleanup',
      '--json',
    ])
    expect(end.code).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.git('branch', '--list', 'ralph/*')).toBe('')
    expect(at.git('diff', '--cached', '--name-only')).toBe('')
    expect(at.git('status', '--porcelain').split('\n').sort()).toEqual(
      [
        ' M openspec/changes/demo/tasks.md',
        '?? mine.txt',
        '?? story-1.txt',
        '?? story-2.txt',
        '?? story-3.txt',
      ].sort(),
    )
    expect(at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/archive')).not.toBe('')
  })

  test('S003-keep: stays on the branch with all checkpoint commits', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'keep', '--json'])
    expect(at.git('branch', '--show-current')).toBe('ralph/demo')
    expect(at.git('rev-list', '--count', 'main..')).toBe('2')
  })

  test('a finished list spawns no agent and touches nothing', async () => {
    const at = scratch({ tasks: '## 1. A\n\n- [x] 1.1 done\n' })
    const end = await ralph(at, ['loop', 'demo', '--agent-command', `touch ${at.root}/spawned`, '--json'])
    expect(end.code).toBe(0)
    expect(existsSync(join(at.root, 'spawned'))).toBe(false)
    expect(at.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
    expect(at.state()).toMatchObject({ status: 'done', current_iteration: 0, iterations: [] })
  })

  test('a second start names resume and --fresh; --fresh archives the kept branch first', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const gaveUp = 'echo "<promise>FAILED: no</promise>"'
    await ralph(at, ['loop', 'demo', '--agent-command', gaveUp, '--max-retries', '0'])
    const again = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(again.code).toBe(2)
    expect(again.stderr).toMatch(/ralph resume demo/)
    expect(again.stderr).toMatch(/ralph loop demo --fresh/)
    expect((await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    const tip = at.git('rev-parse', 'ralph/demo')
    const done = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(done.code).toBe(2)
    expect(done.stderr).toMatch(/ralph finish demo --cleanup/)
    expect(done.stderr).toMatch(/ralph loop demo --fresh/)
    at.git('checkout', '-q', 'main')
    const fresh = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--fresh', '--json'])
    expect(fresh.code).toBe(0)
    expect(at.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/demo/archive')).toContain(tip)
  })

  test.each([
    [['loop', 'demo', '--max-retires', '5'], /--max-retries/],
    [['loop', 'demo', '--max-retries', 'abc'], /max-retries/],
    [['loop', 'deno', '--agent', 'demo'], /demo/],
    [['lop'], /loop/],
    [['loop', 'demo', '--agent', 'cluade'], /claude/],
  ])('wrong input %j: exit 2, the right name, nothing touched', async (args, expected) => {
    const at = scratch()
    const before = at.git('for-each-ref')
    const end = await ralph(at, args)
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(expected)
    expect(at.git('for-each-ref')).toBe(before)
    expect(at.git('status', '--porcelain')).toBe('')
    expect(existsSync(join(at.repo, '.git', 'ralph'))).toBe(false)
    expect(existsSync(join(at.repo, '.claude'))).toBe(false)
  })

  test('an unknown key in ralph.yaml: exit 2 with the nearest key, nothing touched', async () => {
    const at = scratch()
    at.write('ralph.yaml', 'max_retrys: 3\n')
    const end = await ralph(at, ['loop', 'demo', '--agent', 'demo'])
    expect(end.code).toBe(2)
    expect(end.stderr).toContain('max_retries')
    expect(existsSync(join(at.repo, '.git', 'ralph'))).toBe(false)
  })

  test('--dry-run shows the plan and the prompts and changes nothing', async () => {
    const at = scratch()
    const end = await ralph(at, ['loop', 'demo', '--agent', 'demo', '--dry-run', '--json'])
    expect(end.code).toBe(0)
    const plan = JSON.parse(end.stdout) as { stories: { id: string; prompt: string }[] }
    expect(plan.stories.map((story) => story.id)).toEqual(['1', '2', '3'])
    const shown = await ralph(at, ['prompt', 'demo', '--story', '2'])
    expect(shown.stdout.trimEnd()).toBe(plan.stories[1]?.prompt.trimEnd())
    const page = await ralph(at, ['loop', 'demo', '--agent', 'demo', '--dry-run', '--prompts'])
    expect(page.stdout).toContain(shown.stdout.trimEnd())
    expect(at.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
    expect(existsSync(join(at.repo, '.git', 'ralph'))).toBe(false)
  })

  test('P10: no boxes at all, an empty and an unreadable plan are errors, never success', async () => {
    for (const tasks of ['# Tasks\n\n- do this\n', '\n']) {
      const at = scratch({ tasks })
      const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
      expect(end.code).toBe(2)
      expect(existsSync(join(at.repo, '.git', 'ralph'))).toBe(false)
    }
  })

  test('S000-checkpoint-before-spawn: the agent finds HEAD at the checkpoint and a clean tree', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('mine.txt', 'uncommitted\n')
    const agent = `git rev-parse HEAD >> "${at.root}/heads"; git status --porcelain >> "${at.root}/dirt"; git branch --show-current >> "${at.root}/branches"; ${goodAgent}`
    expect((await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])).code).toBe(0)
    expect(readFileSync(join(at.root, 'dirt'), 'utf8')).toBe('')
    expect(readFileSync(join(at.root, 'branches'), 'utf8')).toBe('ralph/demo\nralph/demo\n')
    expect(readFileSync(join(at.root, 'heads'), 'utf8').trim()).toBe(
      at.git('log', '--format=%H', '--reverse', 'main..').split('\n').slice(0, 2).join('\n'),
    )
  })

  test('--story runs only the named stories, says that others are open, and resume goes on with them', async () => {
    const at = scratch()
    const end = await ralph(at, ['loop', 'demo', '--story', '2', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(0)
    expect(at.state().iterations.map((iteration) => iteration.story_id)).toEqual(['2'])
    expect(eventsOf(end).at(-1)).toMatchObject({
      reason: expect.stringContaining('2 others are open') as string,
    })
    const rest = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect(rest.code).toBe(0)
    expect(at.state().iterations.map((iteration) => iteration.story_id)).toEqual(['2', '1', '3'])
    const unknown = await ralph(at, ['loop', 'demo', '--fresh', '--story', '9', '--agent-command', goodAgent])
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain('1, 2, 3')
  })

  test("U5: an error of ralph's own is recorded, says what is safe, and exits 1", async () => {
    const at = scratch({ tasks: tasksOf(1) })
    // Its last act makes the next checkpoint impossible: a file that git cannot take in (G11).
    const agent = `echo work > work.txt; rm -rf .git/objects/?? ; echo "<promise>COMPLETE</promise>"`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(1)
    expect(eventsOf(end).at(-1)).toMatchObject({ type: 'complete', status: 'stopped', exit_code: 1 })
    expect(eventsOf(end).find((event) => event.type === 'error')).toMatchObject({
      hint: expect.stringContaining('ralph resume') as string,
    })
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'error' })
    expect(at.state().iterations).toHaveLength(1)
    expect(at.read('work.txt')).toBe('work\n')
  })
})
