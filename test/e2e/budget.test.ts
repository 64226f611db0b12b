// Budgets through the built program: what is not started, what is ended, what beats a budget, and how a run goes on.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { answerLine, install, installClaude, spawned, works } from './usage-kit.ts'

const claude = ['--agent', 'claude', '--json']

/** Stopped by the budget, and nothing lost: two checkpoints, a clean tree, the third story open. */
function expectStoppedAfterTwo(at: Scratch, end: Finished): void {
  expect(end.code).toBe(6)
  expect(spawned(at)).toEqual(['1', '2'])
  expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'budget', total_tokens: 240 })
  expect(eventsOf(end).at(-1)).toMatchObject({ type: 'complete', stop_reason: 'budget', exit_code: 6 })
  expect(at.git('log', '--format=%s', '--reverse', 'main..')).toBe(
    'initial state\ncheckpoint: 1\ncheckpoint: 2',
  )
  expect(at.git('status', '--porcelain')).toBe('')
}

describe('before a spawn', () => {
  test.each([
    ['--max-tokens', '300', '1000'],
    ['--max-cost', '0.03', '1'],
  ])(
    '%s: the iteration that would overshoot is not started; a bare resume keeps the limit, a larger one goes on',
    async (flag, limit, more) => {
      const at = scratch({ tasks: tasksOf(3) })
      installClaude(at)
      const end = await ralph(at, ['loop', 'demo', ...claude, flag, limit])
      expectStoppedAfterTwo(at, end)
      const error = eventsOf(end).find((event) => event.type === 'error')
      expect(error).toMatchObject({
        code: 'budget',
        hint: expect.stringContaining(`ralph resume demo ${flag}`),
      })
      const why = await ralph(at, ['why', 'demo', '--trace'])
      expect(why.stdout).toContain(`the next attempt would exceed ${flag}`)
      expect(why.stdout).toMatch(/max_(?:tokens=300|cost_usd=0\.03)/)
      const bare = await ralph(at, ['resume', 'demo', ...claude])
      expectStoppedAfterTwo(at, bare)
      const resumed = await ralph(at, ['resume', 'demo', ...claude, flag, more])
      expect(resumed.code).toBe(0)
      expect(spawned(at)).toEqual(['1', '2', '3'])
      expect(at.state()).toMatchObject({ status: 'done', total_tokens: 360 })
    },
  )

  test('tokens of failed attempts count, and the budget outranks the retries', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at, `text('<promise>FAILED: no</promise>'); success('')`)
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-tokens', '130', '--max-retries', '0'])
    expect(end.code).toBe(6)
    expect(at.state()).toMatchObject({ stop_reason: 'budget', total_tokens: 120 })
  })

  test('R8: the provider’s limit is not waited for when the budget is used up anyway', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(
      at,
      `say({ type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt: Math.floor(Date.now() / 1000) + 3600 } })
success('limit', { is_error: true, api_error_status: 429, terminal_reason: 'api_error' })`,
    )
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-tokens', '200'])
    expect(end.code).toBe(6)
    expect(at.state()).toMatchObject({ stop_reason: 'budget', iterations: [{ verdict: 'limit' }] })
    expect(end.stdout).not.toContain('"type":"waiting"')
  })

  test('a cost that nobody knows stops a run with --max-cost after its first iteration', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    installClaude(at, works.replace("success('')", "success('', { total_cost_usd: null })"))
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-cost', '5'])
    expect(end.code).toBe(6)
    expect(spawned(at)).toEqual(['1'])
    expect(at.state()).toMatchObject({ stop_reason: 'budget' })
    expect(eventsOf(end).find((event) => event.type === 'error')).toMatchObject({
      message: expect.stringContaining('their price is not known') as string,
      hint: expect.stringMatching(/ralph resume demo --max-tokens N$/) as string,
    })
  })

  test('a result without figures by model: the sums of the turn count, and --max-cost holds', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    const usage = '{ input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 7 }'
    installClaude(at, works.replace("success('')", `success('', { modelUsage: undefined, usage: ${usage} })`))
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-cost', '0.03'])
    expectStoppedAfterTwo(at, end)
    expect(at.state()).toMatchObject({
      iterations: [{ cost_usd: 0.0127, cache_read_tokens: 7, tokens_source: 'agent' }, {}],
    })
  })

  test.each([
    [['--agent-command', goodAgent], 'command'],
    [['--agent', 'demo', '--model', 'house-model-7'], 'house-model-7'],
  ])('--max-cost with %j is refused: exit 2, nothing touched', async (args, named) => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'demo', ...args, '--max-cost', '5'])
    expect(end.code).toBe(2)
    expect(end.stderr).toContain('no known price')
    expect(end.stderr).toContain(named)
    expect(end.stderr).toContain('--max-tokens')
    expect(existsSync(join(at.repo, '.git', 'ralph'))).toBe(false)
    expect(at.git('branch', '--list', 'ralph/*')).toBe('')
  })
})

describe('a run with a limit in dollars, resumed with an agent whose cost nobody knows', () => {
  test('is refused, and goes on as soon as a limit in tokens is named', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    installClaude(at)
    await ralph(at, ['loop', 'demo', ...claude, '--max-cost', '0.03'])
    const other = ['resume', 'demo', '--json', '--agent-command', goodAgent]
    const refused = await ralph(at, other)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('Use --max-tokens instead')
    const elsewhere = await ralph(at, [...other, '--worktree'])
    expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('only for a start')])
    const resumed = await ralph(at, [...other, '--max-tokens', '5000'])
    expect([resumed.code, resumed.stderr]).toEqual([
      0,
      expect.stringContaining('--max-tokens may hold up nothing'),
    ])
    expect(at.state()).toMatchObject({ status: 'done', token_budget: 5000 })
  })
})

describe('done beats budget', () => {
  test('the last story is complete although it broke the budget by far', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at)
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-tokens', '10', '--max-cost', '0.0001'])
    expect(end.code).toBe(0)
    expect(at.state()).toMatchObject({
      status: 'done',
      iterations: [{ verdict: 'complete', tokens_used: 120 }],
    })
  })

  test('a result that breaks the budget is kept; the next story is not started', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    installClaude(at)
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-tokens', '10'])
    expect(end.code).toBe(6)
    expect(at.state()).toMatchObject({ stop_reason: 'budget', iterations: [{ verdict: 'complete' }] })
    expect(at.git('log', '--format=%s', '--reverse', 'main..')).toBe('initial state\ncheckpoint: 1')
  })
})

describe('while an agent runs', () => {
  const session = '{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"type":"step-start"}}'
  const step = (input: number): string =>
    JSON.stringify({
      type: 'step_finish',
      timestamp: 2,
      sessionID: 'ses_1',
      part: {
        type: 'step-finish',
        reason: 'tool-calls',
        cost: 0.5,
        tokens: { input, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
      },
    })

  test('an agent whose own figures pass 110 % is ended; its work is kept as an attempt, and uses no retry', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    install(
      at,
      'opencode',
      `#!/bin/sh\ncat >/dev/null\necho half > half.txt\necho '${session}'\necho '${step(1000)}'\necho '${step(100)}'\nsleep 60\n`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent', 'opencode', '--json', '--max-tokens', '1000'])
    expect(end.code).toBe(6)
    expect(at.state()).toMatchObject({
      stop_reason: 'budget',
      iterations: [{ verdict: 'budget', attempt: 1, tokens_used: 1100, cost_usd: 1 }],
    })
    expect(at.git('status', '--porcelain')).toBe('')
    expect(at.git('show', 'refs/ralph/demo/attempts/1:half.txt')).toBe('half')
    const again = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      goodAgent,
      '--max-tokens',
      '5000',
      '--json',
    ])
    expect(again.code).toBe(0)
    expect(at.state().iterations.at(-1)).toMatchObject({ attempt: 1, verdict: 'complete' })
  })

  test('just below 110 % it may go on', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const said = JSON.stringify({
      type: 'text',
      timestamp: 3,
      sessionID: 'ses_1',
      part: { type: 'text', text: '<promise>COMPLETE</promise>', time: { start: 1, end: 2 } },
    })
    install(
      at,
      'opencode',
      `#!/bin/sh\ncat >/dev/null\necho '${session}'\necho '${step(1099)}'\necho '${said}'\necho '${step(0).replace('tool-calls', 'stop')}'\n`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent', 'opencode', '--json', '--max-tokens', '1000'])
    expect(end.code).toBe(0)
    expect(at.state().iterations).toMatchObject([{ verdict: 'complete', tokens_used: 1099 }])
  })

  test('Claude Code, which reports only at its end, is ended by what its session file tells', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const answer = answerLine(at.repo, { id: 'm1', time: 'NOW', input: 1400, output: 7 })
    installClaude(
      at,
      `mkdirSync(session.slice(0, session.lastIndexOf('/')), { recursive: true })
appendFileSync(session, ${JSON.stringify(answer)}.replace('NOW', new Date().toISOString()))
setInterval(() => text('still at it'), 200)`,
    )
    const end = await ralph(at, ['loop', 'demo', ...claude, '--max-cost', '0.004'])
    expect(end.code).toBe(6)
    expect(at.state()).toMatchObject({
      stop_reason: 'budget',
      iterations: [{ verdict: 'budget', tokens_used: 1407, tokens_source: 'sessions' }],
    })
  })
})
