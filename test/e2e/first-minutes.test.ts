// The first five minutes of a new user: what is counted, what is checked before a start, what is said, and the demo.
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import { installClaude, installWtUsage, tokenWarnings, works } from './usage-kit.ts'

/** What Claude Code writes of a prompt that no model has answered. */
const growsOnly = `mkdirSync(session.slice(0, session.lastIndexOf('/')), { recursive: true })
appendFileSync(session, JSON.stringify({ type: 'user', cwd: process.cwd(), text: 'p'.repeat(90_000) }) + '\\n')
`
const error = (status: number | null, message: string): string =>
  `success('${message}', { is_error: true, api_error_status: ${status}, terminal_reason: 'api_error', modelUsage: {}, total_cost_usd: 0 })`

describe('tokens', () => {
  const unanswered: [name: string, ending: string][] = [
    ['overloaded', error(529, 'API Error: 529 overloaded_error')],
    ['limit', error(429, 'Claude AI usage limit reached')],
    ['login', error(null, 'Not logged in · Please run /login')],
  ]
  test.each(unanswered)(
    'B1: %s: the model never answered, so nothing was used, nothing is guessed, nothing is warned of',
    async (_, ending) => {
      const at = scratch({ tasks: tasksOf(1) })
      installClaude(at, `${growsOnly}${ending}`)
      const how = ['--agent', 'claude', '--limit-wait', '0', '--max-tokens', '40000']
      const end = await ralph(at, ['loop', 'demo', ...how])
      expect(end.code).toBe(6)
      expect(tokenWarnings(end)).toEqual([])
      expect(end.stdout + end.stderr).not.toMatch(/wt-usage|~\d|--max-tokens/)
      const state = at.state()
      expect(state).toMatchObject({ total_tokens: 0, iterations: [{ tokens_used: 0 }] })
      expect(state.iterations[0]).not.toHaveProperty('tokens_estimated')
    },
  )

  test('B1: what the agent itself reported before its limit counts', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const ending = `${growsOnly}success('usage limit reached', { is_error: true, api_error_status: 429, terminal_reason: 'api_error' })`
    installClaude(at, ending)
    await ralph(at, ['loop', 'demo', '--agent', 'claude', '--limit-wait', '0'])
    expect(at.state()).toMatchObject({ total_tokens: 120, iterations: [{ verdict: 'limit' }] })
  })

  test('B1: one warning in plain words; wt-usage is named only to those who have it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    installClaude(at, `${growsOnly}${works.replace("success('')", "success('', { modelUsage: {} })")}`)
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude'])
    expect(end.code).toBe(0)
    expect(tokenWarnings(end)).toHaveLength(1)
    expect(tokenWarnings(end)[0]).toMatch(
      /The tokens of this iteration are not known: the agent did not report them\. About \d+, estimated from/,
    )
    expect(end.stderr).not.toContain('wt-usage')
    installWtUsage(at, 'exit 3')
    const again = await ralph(at, [
      'loop',
      'demo',
      '--fresh',
      '--agent-command',
      goodAgent,
      '--done',
      'manual',
    ])
    expect(tokenWarnings(again)[0]).toContain('wt-usage: exit code 3')
  })

  test('B14: a guess keeps its ~ in every sum, and what is not known is never 0', async () => {
    const guessed = scratch({ tasks: tasksOf(1) })
    installClaude(guessed, `${growsOnly}${works.replace("success('')", "success('', { modelUsage: {} })")}`)
    const end = await ralph(guessed, ['loop', 'demo', '--agent', 'claude'])
    expect(end.stdout.match(/~22\.5k tokens/g)).toHaveLength(2)
    for (const command of ['status', 'history', 'report'])
      expect((await ralph(guessed, [command, 'demo'])).stdout, command).not.toMatch(/(?<!~)22\.5k/)

    const unknown = scratch({ tasks: tasksOf(1) })
    const silent = await ralph(unknown, ['loop', 'demo', '--agent-command', goodAgent])
    expect(silent.stdout.match(/tokens unknown/g)).toHaveLength(2)
    for (const command of ['history', 'report'])
      expect((await ralph(unknown, [command, 'demo'])).stdout, command).toContain('tokens unknown')
    expect((await ralph(unknown, ['status', 'demo'])).stdout).toMatch(/tokens +\?/)
  })
})
