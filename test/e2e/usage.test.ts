// Tokens and cost through the built program: where the figures come from, what is recorded, and what `ralph usage` adds up.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import {
  answerLine,
  counted,
  installClaude,
  installWtUsage,
  projectOf,
  tokenWarnings,
  works,
  writeSession,
} from './usage-kit.ts'

/** Works, and lets the session files of this work tree grow by 4,000 bytes that hold no figures. */
function growingAgent(at: Scratch): string {
  const folder = projectOf(at)
  return `mkdir -p '${folder}'; head -c 4000 /dev/zero | tr '\\0' x >> '${folder}/s.jsonl'; ${goodAgent}`
}

describe('S004 token counting via wt-usage', () => {
  test('S004-token-rising: each iteration is the difference of wt-usage --since <loop start>, all four parts; the total is their sum', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const wtUsage = installWtUsage(at, counted('n * 1000'))
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(end.code).toBe(0)
    expect(tokenWarnings(end)).toEqual([])
    const state = at.state()
    expect(stateFileSchema.safeParse(state).error).toBeUndefined()
    for (const iteration of state.iterations) {
      expect(iteration).toMatchObject({
        tokens_used: 1010,
        input_tokens: 1000,
        output_tokens: 10,
        cache_read_tokens: 50,
        cache_creation_tokens: 3,
        tokens_source: 'wt-usage',
      })
      expect(iteration).not.toHaveProperty('tokens_estimated')
      expect(iteration).not.toHaveProperty('cost_usd')
    }
    expect(state.total_tokens).toBe(2020)
    const [call = ''] = wtUsage.calls()
    expect(wtUsage.calls()).toEqual(Array(4).fill(call))
    const since = /^--since (\S+) --format json$/.exec(call)?.[1] ?? ''
    expect(Math.abs(Date.parse(since) - Date.parse(state.started_at))).toBeLessThanOrEqual(2000)
  })

  test.each([
    ['zero', counted('500 - n * 10'), 'counted 0 tokens'],
    ['falling', counted('5000 - n * 100'), 'fell by 90 tokens'],
    ['failing', 'echo "no module named usage" >&2; exit 3', 'exit code 3: no module named usage'],
    ['failing-afterwards', `[ $((n % 2)) = 0 ] && exit 1; ${counted('n * 1000')}`, 'exit code 1'],
    ['garbage', 'echo "Claude usage: lots"', 'not JSON'],
  ])(
    'S004-token-%s: one warning on stderr with the cause, then growth / 4, marked as estimated',
    async (_, body, cause) => {
      const at = scratch({ tasks: tasksOf(2) })
      installWtUsage(at, body)
      const end = await ralph(at, ['loop', 'demo', '--agent-command', growingAgent(at)])
      expect(end.code).toBe(0)
      expect(tokenWarnings(end)).toHaveLength(1)
      expect(tokenWarnings(end)[0]).toContain(cause)
      const state = at.state()
      expect(state.iterations).toMatchObject([
        { tokens_used: 1000, tokens_estimated: true },
        { tokens_used: 1000, tokens_estimated: true },
      ])
      expect(state.total_tokens).toBe(2000)
    },
  )

  test('S004-token-hanging: wt-usage gets 10 s, then it is ended with all that it started, and the loop goes on', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    // In a session of its own and with the pipe in its hands: no group kill reaches it.
    installWtUsage(at, `setsid sh -c 'echo $$ > "${at.root}/stray"; exec sleep 600' & wait`)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', growingAgent(at)])
    process.kill(Number(readFileSync(join(at.root, 'stray'), 'utf8')), 'SIGKILL')
    expect(end.code).toBe(0)
    expect(tokenWarnings(end).join()).toContain('wt-usage: no answer within 10 s')
    expect(at.state().iterations).toMatchObject([{ tokens_used: 1000, tokens_estimated: true }])
  })

  test('S004-token-hanging: a stop does not wait for it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installWtUsage(at, 'sleep 60')
    const running = start(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    await running.seen((stdout) => stdout.includes('"iteration.started"'))
    running.child.kill('SIGTERM')
    const end = await running.ended
    expect(end.code).toBe(143)
    expect(end.stdout).not.toContain('no answer within 10 s')
    expect(at.state().iterations).toMatchObject([{ verdict: 'interrupted', tokens_used: 0 }])
  })

  test('S004-token-total: an interrupted iteration is in the total, and a resumed run goes on adding', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const wtUsage = installWtUsage(at, counted('n * 1000'))
    const running = start(at, ['loop', 'demo', '--agent-command', 'echo waiting; sleep 60', '--json'])
    await running.seen((stdout) => stdout.includes('waiting'))
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
    expect(at.state()).toMatchObject({ iterations: [{ verdict: 'interrupted' }], total_tokens: 1010 })
    const { started_at } = at.state()
    expect((await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    const state = at.state()
    expect(state.iterations.map((iteration) => iteration.tokens_used)).toEqual([1010, 1010, 1010])
    expect(state.total_tokens).toBe(3030)
    expect(wtUsage.calls().slice(2)).toEqual(Array(4).fill(`--since ${started_at} --format json`))
  })
})

describe('the other sources', () => {
  test('the agent’s own figures and cost are taken where there is no wt-usage, and told in status, history and report', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    installClaude(at)
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude'])
    expect(end.code).toBe(0)
    expect(tokenWarnings(end)).toEqual([])
    expect(end.stdout).toContain('240 tokens   $0.03')
    const state = at.state()
    for (const iteration of state.iterations) {
      expect(iteration).toMatchObject({
        tokens_used: 120,
        cache_read_tokens: 30,
        cache_creation_tokens: 4,
        cost_usd: 0.0127,
        tokens_source: 'agent',
      })
    }
    expect(state).toMatchObject({ total_tokens: 240, cost_usd: 0.0254 })
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('240, $0.03')
    // It writes no session files: what the attempts have noted is all there is, of the run before this one too.
    const used = async (): Promise<unknown> => JSON.parse((await ralph(at, ['usage', '--json'])).stdout)
    expect(await used()).toMatchObject({ api_tokens: 240, cache_read_tokens: 60, estimated_cost_usd: 0.0254 })
    at.git('switch', '-q', 'main')
    expect((await ralph(at, ['loop', 'demo', '--agent', 'claude', '--fresh'])).code).toBe(0)
    expect(await used()).toMatchObject({ api_tokens: 480, estimated_cost_usd: 0.0508 })
  })

  test('`ralph why` names the source of the figures, and another one that is more than 20 % apart', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at)
    installWtUsage(at, counted('n * 1000'))
    await ralph(at, ['loop', 'demo', '--agent', 'claude'])
    expect(at.state().iterations).toMatchObject([{ tokens_used: 1010, cost_usd: 0.0127 }])
    const why = (await ralph(at, ['why', 'demo', '--trace'])).stdout
    expect(why).toContain('tokens_source=wt-usage')
    expect(why).toContain('wt-usage says 1010 tokens, agent says 120')
  })

  const writesSession = `
const answer = (id, time) => ${answerLine.toString().replace(/^function answerLine/, 'function')}(process.cwd(), { id, time, input: 300, output: 7 })
mkdirSync(session.slice(0, session.lastIndexOf('/')), { recursive: true })
if (n === 1) appendFileSync(session, answer('before the loop', '2020-01-01T00:00:00.000Z'))
appendFileSync(session, answer('m' + n, new Date().toISOString()).repeat(2))
`
  test.each([
    ['agent', 120, 0, 'agent'],
    ['sessions', 307, 0, 'sessions'],
    ['wt-usage', 1010, 2, 'wt-usage'],
  ])('--usage %s takes that source and asks no other program', async (source, tokens, calls, from) => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at, `${writesSession}${works}`)
    const wtUsage = installWtUsage(at, counted('n * 1000'))
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude', '--usage', source])
    expect(end.code).toBe(0)
    expect(at.state().iterations).toMatchObject([{ tokens_used: tokens, tokens_source: from }])
    expect(at.state().iterations[0]).not.toHaveProperty('tokens_estimated')
    expect(wtUsage.calls()).toHaveLength(calls)
  })

  test('--usage wt-usage without that program: an estimate that says so, never the next source in silence', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at)
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude', '--usage', 'wt-usage'])
    expect(end.code).toBe(0)
    expect(tokenWarnings(end)).toHaveLength(1)
    expect(tokenWarnings(end)[0]).toContain('wt-usage is not on PATH')
    expect(at.state().iterations).toMatchObject([{ tokens_used: 0, tokens_estimated: true }])
  })

  test('session files are looked for where the agent itself was told to put them', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const project = projectOf(at).replace(/.*projects/, '"$CLAUDE_CONFIG_DIR"/projects')
    const agent = `mkdir -p ${project}; head -c 4000 /dev/zero >> ${project}/s.jsonl; ${goodAgent}`
    const elsewhere = `CLAUDE_CONFIG_DIR=${join(at.root, 'elsewhere')}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--agent-env', elsewhere])
    expect(end.code).toBe(0)
    expect(at.state().iterations).toMatchObject([{ tokens_used: 1000, tokens_estimated: true }])
  })

  test('R6: what a loop that was killed had used is counted by the next command', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at, `${writesSession} text('counted'); setInterval(() => {}, 1000)`)
    const running = start(at, ['loop', 'demo', '--agent', 'claude', '--json'])
    await running.seen((stdout) => stdout.includes('counted'))
    running.child.kill('SIGKILL')
    await running.ended
    await ralph(at, ['status', 'demo'])
    expect(at.state()).toMatchObject({
      status: 'stopped',
      iterations: [{ verdict: 'interrupted', tokens_used: 307, tokens_source: 'sessions' }],
      total_tokens: 307,
    })
  })
})

describe('ralph usage', () => {
  /** Two answers of today, one of 2025, one of another project; one answer is written twice. */
  function withSessions(): Scratch {
    const at = scratch({ tasks: tasksOf(1) })
    // Before any loop of the test: iterations are stamped in whole seconds.
    const now = new Date(Math.max(new Date().setHours(0, 0, 0, 0), Date.now() - 5000)).toISOString()
    const first = answerLine(at.repo, { id: 'a', time: now, input: 100, output: 10 })
    const other = answerLine(at.repo, { id: 'b', time: now, input: 200, output: 20, model: 'house-model' })
    const old = answerLine(at.repo, { id: 'c', time: '2025-03-04T12:00:00.000Z', input: 4000, output: 0 })
    writeSession(at, 'one.jsonl', `${old}${first}${first}{"cut":\n`)
    writeSession(at, 'two.jsonl', other)
    writeSession(at, 'foreign.jsonl', answerLine('/elsewhere', { id: 'd', time: now, input: 9, output: 9 }))
    return at
  }

  test('--since with --format json has the fields of wt-usage, each answer once, and no other project’s', async () => {
    const at = withSessions()
    const end = await ralph(at, ['usage', '--since', '2026-01-01', '--format', 'json'])
    expect(end.stderr).toBe('')
    const usage = JSON.parse(end.stdout) as Record<string, unknown>
    expect(usage).toMatchObject({
      period: 'custom',
      input_tokens: 300,
      output_tokens: 30,
      cache_read_tokens: 2000,
      cache_creation_tokens: 0,
      api_tokens: 330,
      total_tokens: 2330,
      unpriced_models: ['house-model'],
    })
    // 100 x $3 + 10 x $15 + 1000 x $0.30, by the million.
    expect(usage['estimated_cost_usd']).toBeCloseTo(0.00075, 8)
    const since2025 = await ralph(at, ['usage', '--since', '2025-03-04T11:59:00Z', '--json'])
    expect(JSON.parse(since2025.stdout)).toMatchObject({ api_tokens: 4330 })
  })

  test('--today and --week', async () => {
    const at = withSessions()
    for (const period of ['today', 'week']) {
      const end = await ralph(at, ['usage', `--${period}`, '--json'])
      expect(JSON.parse(end.stdout)).toMatchObject({ period, api_tokens: 330 })
    }
  })

  test('--by agent, model, day and story break it down; the parts are the whole', async () => {
    const at = withSessions()
    installClaude(
      at,
      `
mkdirSync(session.slice(0, session.lastIndexOf('/')), { recursive: true })
appendFileSync(session, ${JSON.stringify(answerLine(at.repo, { id: 'loop', time: 'NOW', input: 55, output: 5 }))}.replace('NOW', new Date().toISOString()))
${works}`,
    )
    await ralph(at, ['loop', 'demo', '--agent', 'claude'])
    const by = async (group: string): Promise<Record<string, number>> => {
      const end = await ralph(at, ['usage', '--since', '2025-01-01', '--by', group, '--json'])
      const { breakdown, api_tokens } = JSON.parse(end.stdout) as {
        breakdown: { name: string; api_tokens: number }[]
        api_tokens: number
      }
      expect(breakdown.reduce((sum, row) => sum + row.api_tokens, 0)).toBe(api_tokens)
      return Object.fromEntries(breakdown.map((row) => [row.name, row.api_tokens]))
    }
    expect(await by('agent')).toEqual({ claude: 4390 })
    expect(await by('model')).toEqual({ 'claude-sonnet-4-5': 4170, 'house-model': 220 })
    expect(await by('story')).toEqual({ 'outside any loop': 4330, 'demo/1 Story 1': 60 })
    expect(Object.values(await by('day'))).toEqual([4000, 390])
  })

  test('as text: the figures, bars that say which is larger, and what has no price', async () => {
    const { stdout } = await ralph(withSessions(), ['usage', '--since', '2026-01-01', '--by', 'model'])
    expect(stdout).toMatch(/input \+ output\s+330 /)
    expect(stdout).toContain('not in the cost (unpriced): house-model')
    const bar = (model: string): number => (new RegExp(`${model}\\s+(█+)`).exec(stdout)?.[1] ?? '').length
    expect(bar('house-model')).toBeGreaterThan(bar('claude-sonnet-4-5'))
    expect(bar('claude-sonnet-4-5')).toBeGreaterThan(0)
  })

  test.each([
    [['usage', '--since', 'yesterdayish'], /ISO/],
    [['usage', '--since', '2026-02-30'], /ISO/],
    [['usage', '--today', '--week'], /--week/],
    [['usage', '--today', '--by', 'modle'], /model/],
  ])('%j: exit 2 and the right word', async (args, expected) => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, args)
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(expected)
    expect(existsSync(join(at.repo, '.git', 'ralph'))).toBe(false)
  })
})
