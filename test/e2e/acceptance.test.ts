// The acceptance tests of the reference loop's study that no other file covers; W is its number there.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

/** A `claude` on PATH that hits its limit, with a reset `seconds` from now, `times` times; then it does the work. */
function limitedClaude(at: Scratch, seconds: number, times: number): NodeJS.ProcessEnv {
  mkdirSync(join(at.root, 'bin'), { recursive: true })
  const line = (value: unknown): string => `printf '%s\\n' '${JSON.stringify(value)}'`
  at.script(
    'bin/claude',
    `#!/bin/sh
cat > /dev/null
count=$(cat "${at.root}/count" 2>/dev/null || echo 0); echo $((count + 1)) > "${at.root}/count"
${line({ type: 'system', subtype: 'init', session_id: 's1', model: 'claude-sonnet-4-5' })}
if [ "$count" -lt ${times} ]; then
  reset=$(( $(date +%s) + ${seconds} ))
  echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":'$reset',"rateLimitType":"five_hour"}}'
  ${line({ type: 'result', subtype: 'success', is_error: true, api_error_status: 429, num_turns: 1, result: 'You have hit your limit', session_id: 's1', total_cost_usd: 0 })}
  exit 1
fi
echo done > "story-$RALPH_STORY.txt"
${line({ type: 'assistant', message: { id: 'm1', content: [{ type: 'text', text: 'All done.\\n<promise>COMPLETE</promise>' }] }, session_id: 's1' })}
${line({ type: 'result', subtype: 'success', is_error: false, num_turns: 2, result: 'All done.\\n<promise>COMPLETE</promise>', session_id: 's1', total_cost_usd: 0.5, modelUsage: { 'claude-sonnet-4-5': { inputTokens: 100, outputTokens: 20, cacheReadInputTokens: 5, cacheCreationInputTokens: 1, costUSD: 0.5 } } })}
`,
  )
  return { PATH: `${join(at.root, 'bin')}:${at.env['PATH']}` }
}

describe('acceptance', () => {
  test('W1: an agent that dies by a signal is recorded with it, and the loop goes on', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `[ "$RALPH_ITERATION" = 1 ] && kill -KILL $$; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect(end.code).toBe(0)
    expect(at.state().iterations[0]).toMatchObject({ signal: 'SIGKILL', verdict: 'crash' })
  })

  test('W2, R2: a timeout while a grandchild ignores TERM and holds stdout: timed_out, nothing left, the loop goes on', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const stubborn = `(trap "" TERM INT; echo $BASHPID > /dev/null; while :; do sleep 1; done) & echo working; wait`
    const agent = `[ "$RALPH_ITERATION" = 1 ] && { ${stubborn}; }; ${goodAgent}`
    const end = await ralph(
      at,
      ['loop', 'demo', '--agent-command', agent, '--iteration-timeout', '0.02', '--json'],
      { env: { MARK: at.root } },
    )
    expect(end.code).toBe(0)
    expect(at.state().iterations[0]).toMatchObject({
      timed_out: true,
      verdict: 'timeout',
      // How long, by which option; which signal ralph sent then is nobody's question.
      reason: 'the agent took longer than 1 s (--iteration-timeout); it said: working',
    })
    expect(at.state().iterations[1]).not.toHaveProperty('timed_out')
    expect(marked(at.root)).toEqual([])
  })

  test('W6: of two simultaneous starts exactly one runs, the other exits 7', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    // Whoever runs goes on only when the other has ended.
    const waits = `until [ -e '${at.root}/go' ]; do sleep 0.02; done; ${goodAgent}`
    const starts = [1, 2].map(() => ralph(at, ['loop', 'demo', '--agent-command', waits, '--json']))
    expect((await Promise.race(starts)).code).toBe(7)
    writeFileSync(join(at.root, 'go'), '')
    expect(
      (await Promise.all(starts)).map((end) => end.code).toSorted((a, b) => Number(a) - Number(b)),
    ).toEqual([0, 7])
    expect(at.state().iterations).toHaveLength(1)
  })

  test('W6, R8: while it waits for a limit it says until when, a second start exits 7, and stop works', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const env = limitedClaude(at, 3600, 99)
    const running = start(at, ['loop', 'demo', '--agent', 'claude', '--json'], { env })
    await running.seen((stdout) => stdout.includes('"type":"waiting"'))
    const status = JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as {
      waiting_for: string
      waiting_until: string
      status: string
    }
    expect(status).toMatchObject({ status: 'running', waiting_for: 'limit' })
    expect(Date.parse(status.waiting_until)).toBeGreaterThan(Date.now())
    expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(7)
    expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
    const end = await running.ended
    expect(end.code).toBe(143)
    expect(at.state().iterations.map((iteration) => iteration.verdict)).toEqual(['limit'])
  })

  test('R8: a limit with a reset in seconds waits, goes on with the same attempt, and uses no retry', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude', '--max-retries', '0', '--json'], {
      env: limitedClaude(at, 2, 1),
    })
    expect(end.code).toBe(0)
    expect(eventsOf(end).filter((event) => event.type === 'waiting')).toHaveLength(1)
    expect(at.state().iterations.map((iteration) => [iteration.verdict, iteration.attempt])).toEqual([
      ['limit', 1],
      ['complete', 1],
    ])
    expect(at.state()).toMatchObject({ max_iterations: 2, cost_usd: 0.5, total_tokens: 120 })
  })

  test('R8: a limit past --limit-wait ends with exit 6 and nothing lost', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude', '--limit-wait', '1', '--json'], {
      env: limitedClaude(at, 3600, 99),
    })
    expect(end.code).toBe(6)
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'limit' })
    expect(at.git('status', '--porcelain')).toBe('')
  })

  test('W11: commits are base..HEAD by hash, oldest first, with the checkpoint; an amend is told as rewritten history', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `
git config user.email a@example.invalid; git config user.name a
if [ "$RALPH_STORY" = 1 ]; then
  echo 1 > a; git add a; git commit -qm one; echo 2 > a; git commit -qam two
else
  echo 3 > b; git add b; GIT_COMMITTER_DATE=2001-01-01T00:00:00Z git commit -q --amend -m "rewrote the checkpoint"
fi
echo "<promise>COMPLETE</promise>"`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    const [first, second] = at.state().iterations
    expect(first?.commits.map((commit) => at.git('log', '-1', '--format=%s', commit))).toEqual([
      'one',
      'two',
      'checkpoint: 1',
    ])
    expect(second?.history_rewritten).toBe(true)
    expect(at.read('b')).toBe('3\n')
    expect(at.read('a')).toBe('2\n')
    for (const commit of first?.commits ?? []) expect(commit).toMatch(/^[0-9a-f]{40}$/)
  })

  test('W11, G8: an unborn HEAD works', async () => {
    const at = scratch({ tasks: tasksOf(1), commit: false })
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      '--on-complete',
      'cleanup',
      '--json',
    ])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect(at.read('story-1.txt')).toBe('work of 1\n')
    expect(at.git('status', '--porcelain')).toContain('?? story-1.txt')
  })

  test('W16: .claude is not ignored and the agent idles: the loop stalls all the same', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      'true',
      '--max-retries',
      '9',
      '--stall-threshold',
      '3',
      '--json',
    ])
    expect(end.code).toBe(4)
    expect(at.state().iterations).toHaveLength(3)
  })

  test('W18: in a pipe not an escape byte, neither title nor colour, and every event is a line', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent], {
      env: { TERM: 'xterm-256color', NO_COLOR: undefined },
    })
    expect(end.code).toBe(0)
    // oxlint-disable-next-line no-control-regex -- that is what is looked for
    expect(end.stdout + end.stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/)
    expect(end.stdout).toMatch(/✓ saved [0-9a-f]{7}/)
  })

  test('W20, R14: a state file that cannot be written is told before anything is touched', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    writeFileSync(join(at.repo, '.claude'), 'a file where the folder should be')
    at.git('add', '-A')
    at.git('commit', '-qm', 'odd')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(2)
    expect(end.stderr + end.stdout).toContain('Nothing was touched.')
    expect(readFileSync(join(at.repo, '.claude'), 'utf8')).toBe('a file where the folder should be')
    expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
  })

  test('W20, R14: a work tree deleted under it: it stops, and does not make folders again', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    // It would say COMPLETE: nothing but the missing tree can stop this loop.
    const agent = `echo working; until [ -e '${at.root}/go' ]; do sleep 0.02; done; echo "<promise>COMPLETE</promise>"`
    const running = start(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    await running.seen((stdout) => stdout.includes('"text":"working'))
    renameSync(at.repo, join(at.root, 'gone'))
    writeFileSync(join(at.root, 'go'), '')
    const end = await running.ended
    expect([end.code, end.stdout]).toEqual([1, expect.stringMatching(/"type":"error".*\/repo/)])
    expect(end.stdout).not.toContain('"status":"done"')
    expect(existsSync(at.repo) ? readdirSync(at.repo, { recursive: true }) : []).toEqual([])
  })

  test('W8: the files of every outcome are valid and hold every iteration and exact totals', async () => {
    const outcomes: [string, string, string[]][] = [
      ['done', 'done', ['--agent-command', goodAgent]],
      ['stuck', 'retries', ['--agent-command', 'echo "<promise>FAILED: x</promise>"', '--max-retries', '1']],
      ['stuck', 'iterations', ['--agent-command', 'echo work > a', '--max-iterations', '1']],
      ['stalled', 'stall', ['--agent-command', 'true', '--stall-threshold', '1']],
      ['stopped', 'human', ['--agent-command', goodAgent, '--done', 'manual']],
      ['stopped', 'signal', ['--agent-command', 'kill -TERM $PPID; exec tail -f /dev/null']],
    ]
    for (const [status, reason, args] of outcomes) {
      const at = scratch({ tasks: tasksOf(1) })
      const end = await ralph(at, ['loop', 'demo', ...args, '--json'])
      const state = at.state()
      expect(stateFileSchema.safeParse(state).error).toBeUndefined()
      expect([state.status, state.stop_reason]).toEqual([status, reason])
      expect(state.iterations).toHaveLength(
        eventsOf(end).filter((event) => event.type === 'iteration.started').length,
      )
      expect(state.total_tokens).toBe(
        state.iterations.reduce((sum, iteration) => sum + iteration.tokens_used, 0),
      )
      for (const [index, iteration] of state.iterations.entries())
        expect(iteration).toMatchObject({
          n: index + 1,
          started: expect.stringMatching(/^\d{4}-/),
          ended: expect.stringMatching(/^\d{4}-/),
          done_check: expect.any(Boolean),
          commits: expect.any(Array),
          tokens_used: expect.any(Number),
        })
      for (const field of Object.values(state)) expect(field).not.toBeNull()
    }
  })
})

/** Pids whose environment carries the mark. */
function marked(mark: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MARK=${mark}`)
    } catch {
      return false
    }
  })
}
