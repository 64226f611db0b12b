// Recorded streams of the real CLIs through their parsers: what each version says, without running it.
import * as fc from 'fast-check'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { startTurn } from '../../../src/adapters/agents/turn.ts'
import { agentKind, agentKinds } from '../../../src/adapters/agents/table.ts'
import type { AgentEnded } from '../../../src/core/event.ts'
import type { AgentSignal } from '../../../src/ports.ts'

const streams = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'fixtures', 'streams')
const expected: Record<string, object> = {
  complete: { ending: 'finished', promise: { kind: 'complete' } },
  failed: { ending: 'finished', promise: { kind: 'failed', reason: 'no parser\nno tests' } },
  limit: { ending: 'limit', promise: { kind: 'none' } },
  overloaded: { ending: 'overloaded', promise: { kind: 'none' } },
  unauthorized: { ending: 'auth', promise: { kind: 'none' } },
}
const recorded = readdirSync(streams).flatMap((agent) =>
  readdirSync(join(streams, agent)).flatMap((version) =>
    readdirSync(join(streams, agent, version)).map((file) => ({
      agent,
      version,
      scenario: file.replace('.ndjson', ''),
    })),
  ),
)

describe('recorded streams', () => {
  it('are there for Claude Code and Codex', () => {
    expect(recorded.map(({ agent }) => agent)).toEqual(expect.arrayContaining(['claude', 'codex']))
    expect(recorded.length).toBeGreaterThanOrEqual(10)
  })

  it.each(recorded)('$agent $version: $scenario', ({ agent, version, scenario }) => {
    const bytes = readFileSync(join(streams, agent, version, `${scenario}.ndjson`))
    const { ended, signals } = replay(agent, bytes)
    expect(ended).toMatchObject(expected[scenario] ?? {})
    expect(ended.session_id).toBeTruthy()
    if (scenario !== 'complete') return
    expect(signals.filter((signal) => signal.type === 'tool').length).toBeGreaterThanOrEqual(2)
    expect(ended.usage).toMatchObject({ output_tokens: 150, cache_read_tokens: 600 })
  })

  it.each(recorded)(
    'P5: $agent $version: $scenario in other forms of JSON says the same, however long its lines',
    ({ agent, version, scenario }) => {
      const bytes = readFileSync(join(streams, agent, version, `${scenario}.ndjson`))
      const { ended } = replay(agent, bytes)
      for (const write of [spaced, backwards, (value: object) => spaced({ ...value, pad })]) {
        const lines = bytes.toString().trim().split('\n')
        const others = lines.map((line) => write({ pad, ...(JSON.parse(line) as object) }))
        expect(replay(agent, Buffer.from(others.join('\n'))).ended).toEqual(ended)
      }
    },
  )

  it.each(recorded.filter(({ agent, scenario }) => agent === 'claude' && scenario === 'limit'))(
    'R8: $agent $version says when its limit ends',
    ({ agent, version, scenario }) => {
      const bytes = readFileSync(join(streams, agent, version, `${scenario}.ndjson`))
      const { ended } = replay(agent, bytes, 4_102_444_800_000 - 3_600_000)
      expect(ended.resets_at_ms).toBe(4_102_444_800_000)
    },
  )

  it.each(recorded)(
    '$agent $version: $scenario cut anywhere never throws, and never says COMPLETE without its end',
    ({ agent, version, scenario }) => {
      const bytes = readFileSync(join(streams, agent, version, `${scenario}.ndjson`))
      for (let cut = 0; cut < bytes.length - 1; cut += 97) {
        const { ended } = replay(agent, bytes.subarray(0, cut))
        expect(ended.promise.kind).toBe('none')
      }
    },
  )
})

describe('tools and figures', () => {
  it.each([
    ["/bin/bash -lc 'npm test'", 'npm test'],
    ['/bin/zsh -lc "echo it\'s"', "echo it's"],
    ['bash -lc ls', 'ls'],
    // Cut and glued by its quotes: as it came.
    [`/bin/bash -lc 'echo '"'"'x'`, `/bin/bash -lc 'echo '"'"'x'`],
    ['git status', 'git status'],
  ])('codex: %s is shown as %s', (command, input) => {
    const line = { type: 'item.started', item: { type: 'command_execution', command } }
    const { signals } = replay('codex', Buffer.from(JSON.stringify(line)))
    expect(signals).toContainEqual({ type: 'tool', name: 'shell', input })
  })

  it.each([100, 100_000])(
    'codex: a command whose output has %d bytes is known to be over; one that is not, is told',
    (size) => {
      const item = {
        id: 'item_1',
        type: 'command_execution',
        command: 'ls',
        aggregated_output: 'x'.repeat(size),
      }
      const started = { type: 'item.started', item: { ...item, aggregated_output: '' } }
      const over = { type: 'turn.completed', usage: {} }
      const warnings = (...events: object[]): unknown =>
        replay('codex', Buffer.from(events.map((event) => JSON.stringify(event)).join('\n'))).signals.filter(
          ({ type }) => type === 'warning',
        )
      expect(warnings(started, { type: 'item.completed', item }, over)).toEqual([])
      expect(warnings(started, over)).toHaveLength(1)
    },
  )

  it.each([
    [
      'opencode',
      {
        type: 'step_finish',
        part: { tokens: { input: 800, output: 40, reasoning: 10, cache: { read: 200 } } },
      },
    ],
    [
      'gemini',
      {
        type: 'result',
        status: 'success',
        stats: { total_tokens: 1050, input_tokens: 1000, output_tokens: 40, cached: 200 },
      },
    ],
  ])('%s: what was thought is output', (agent, line) => {
    expect(replay(agent, Buffer.from(JSON.stringify(line))).ended.usage).toMatchObject({
      input_tokens: 800,
      output_tokens: 50,
      cache_read_tokens: 200,
    })
  })
})

describe('R8: what claude says of its provider, without the HTTP status', () => {
  const now = Date.parse('2026-11-18T14:00:00Z')
  const result = (text: string): object => ({
    type: 'result',
    subtype: 'success',
    is_error: true,
    result: text,
  })
  const refusal = (error: string, text: string): object => ({
    type: 'assistant',
    message: { model: '<synthetic>', content: [{ type: 'text', text }] },
    error,
  })
  const rejected = {
    type: 'rate_limit_event',
    rate_limit_info: { status: 'rejected', resetsAt: now / 1000 + 3600 },
  }
  const rows: [string, object[], object][] = [
    [
      'an epoch behind a bar',
      [result(`Claude AI usage limit reached|${now / 1000 + 3600}`)],
      { ending: 'limit', resets_at_ms: now + 3_600_000, last_words: 'Claude AI usage limit reached' },
    ],
    [
      'an hour of the day',
      [result('5-hour limit reached ∙ resets 3pm (UTC)')],
      { ending: 'limit', resets_at_ms: now + 3_660_000 },
    ],
    [
      'an overloaded service',
      [result('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}')],
      { ending: 'overloaded' },
    ],
    ['a rejected request', [result('API Error: Request rejected (429) · slow down')], { ending: 'limit' }],
    [
      'the error of a message',
      [refusal('rate_limit', 'Limit, resets 3pm (UTC)'), result('no')],
      { ending: 'limit', resets_at_ms: now + 3_660_000, last_words: 'Limit, resets 3pm (UTC)' },
    ],
    ['the error of a message, and no result', [refusal('server_error', 'Busy')], { ending: 'overloaded' }],
    ['a login that is gone', [refusal('authentication_failed', 'Who?'), result('no')], { ending: 'auth' }],
    ['a rejected event', [rejected, result('no')], { ending: 'limit', resets_at_ms: now + 3_600_000 }],
    ['a rejected event, and no result', [rejected], { ending: 'limit', resets_at_ms: now + 3_600_000 }],
    ['a context that is full', [result('Context limit reached')], { ending: 'crash' }],
    [
      'an event that was rejected before it went on',
      [rejected, { type: 'assistant', message: { content: [{ type: 'text', text: 'On.' }] } }, result('no')],
      { ending: 'crash' },
    ],
  ]
  it.each(rows)('%s', (_name, events, ended) => {
    const bytes = Buffer.from(events.map((event) => JSON.stringify(event)).join('\n'))
    expect(replay('claude', bytes, now).ended).toMatchObject({ ...ended, promise: { kind: 'none' } })
  })
})

it('R10: an error result of claude tells its own reason, not what the assistant said last', () => {
  const line = {
    type: 'result',
    subtype: 'error_max_turns',
    result: '<promise>COMPLETE</promise>',
    errors: ['30 turns'],
  }
  expect(replay('claude', Buffer.from(JSON.stringify(line))).ended).toMatchObject({
    ending: 'crash',
    last_words: 'error_max_turns: 30 turns',
  })
})

it('R10: an error after the last step of opencode takes the promise back', () => {
  const said = [
    { type: 'text', part: { text: '<promise>COMPLETE</promise>' } },
    { type: 'step_finish', part: { reason: 'stop' } },
    { type: 'error', error: { name: 'APIError', data: { message: 'boom', statusCode: 500 } } },
  ].map((line) => JSON.stringify(line))
  const ending = (lines: string[]): AgentEnded => replay('opencode', Buffer.from(lines.join('\n'))).ended
  expect(ending(said.slice(0, 2))).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
  expect(ending(said)).toMatchObject({ ending: 'overloaded', promise: { kind: 'none' }, last_words: 'boom' })
})

describe('P4: a promise that only the result of claude has', () => {
  const end = (rest: object): string =>
    JSON.stringify({ type: 'result', subtype: 'success', num_turns: 2, ...rest })
  const says = (text: string): string =>
    JSON.stringify({ type: 'assistant', message: { content: [{ type: 'text', text }] } })
  const done = 'All is done.\n<promise>COMPLETE</promise>'

  it.each([
    ['counts', [says('I begin.'), end({ result: done })], { kind: 'complete' }],
    ['counts without any assistant event', [end({ result: done })], { kind: 'complete' }],
    [
      'is not heard again after what came later',
      [says(done), says('<promise>FAILED: red</promise>'), end({ result: done })],
      { kind: 'failed', reason: 'red' },
    ],
    ['does not count in an error', [end({ is_error: true, result: done })], { kind: 'none' }],
    [
      'does not count where the model was never asked',
      [end({ num_turns: 0, result: done })],
      { kind: 'none' },
    ],
  ])('%s', (_name, lines, promise) => {
    expect(replay('claude', Buffer.from(lines.join('\n'))).ended.promise).toEqual(promise)
  })

  it('is told once', () => {
    const { signals } = replay('claude', Buffer.from([says(done), end({ result: done })].join('\n')))
    expect(signals.filter(({ type }) => type === 'message')).toHaveLength(1)
  })
})

describe('R16: an account without credit', () => {
  it.each([
    [
      'claude',
      { type: 'result', is_error: true, api_error_status: 400, result: 'Credit balance is too low' },
    ],
    ['claude', { type: 'system', subtype: 'api_retry', error_status: 402, error: 'billing_error' }],
    [
      'codex',
      { type: 'turn.failed', error: { message: 'Quota exceeded. Check your plan and billing details.' } },
    ],
    [
      'opencode',
      {
        type: 'error',
        error: { name: 'APIError', data: { statusCode: 429, message: 'insufficient_quota' } },
      },
    ],
    [
      'gemini',
      { type: 'result', status: 'error', error: { type: 'Error', message: 'billing hard limit reached' } },
    ],
  ])('%s: is told apart from a login that is gone', (agent, line) => {
    expect(replay(agent, Buffer.from(JSON.stringify(line))).ended).toMatchObject({
      ending: 'auth',
      unpaid: true,
    })
  })

  it('a login that is gone is no bill', () => {
    const line = { type: 'result', is_error: true, result: 'Not logged in · Please run /login' }
    const { ended } = replay('claude', Buffer.from(JSON.stringify(line)))
    expect(ended).toMatchObject({ ending: 'auth' })
    expect(ended).not.toHaveProperty('unpaid')
  })
})

describe('unknown lines', () => {
  const words = [
    'assistant',
    'result',
    'system',
    'user',
    'item.completed',
    'turn.failed',
    'error',
    'text',
    'tool_use',
    'step_finish',
    'message',
    'init',
  ]
  const keys = [
    'message',
    'content',
    'item',
    'part',
    'error',
    'usage',
    'modelUsage',
    'stats',
    'params',
    'update',
    'id',
    'method',
    'subtype',
  ]
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom(...words, null, 3, -1))
  const event = fc.dictionary(
    fc.constantFrom('type', ...keys),
    fc.oneof(value, fc.dictionary(fc.constantFrom('type', ...keys), value)),
  )
  it.each(Object.keys(agentKinds))(
    '%s: nothing that is JSON, or is not, throws or gives a verdict',
    (agent) => {
      fc.assert(
        fc.property(
          fc.array(
            fc.oneof(
              event.map((made) => JSON.stringify(made)),
              fc.string(),
            ),
            { maxLength: 8 },
          ),
          (lines) => {
            const { ended } = replay(agent, Buffer.from(lines.join('\n')))
            expect(ended.promise.kind).toBe('none')
          },
        ),
        { numRuns: 500 },
      )
    },
  )
})

const pad = 'x'.repeat(300_000)

/** As Python writes it. */
function spaced(value: unknown): string {
  return JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, ' ')
}

function backwards(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toReversed())
      : inner,
  )
}

function replay(agent: string, bytes: Buffer, nowMs = 0): { ended: AgentEnded; signals: AgentSignal[] } {
  const kind = agentKind(agent)
  if (kind === undefined) throw new Error(`no kind ${agent}`)
  const signals: AgentSignal[] = []
  const turn = startTurn(
    kind,
    (signal) => signals.push(signal),
    () => false,
  )
  const run = {
    prompt: '',
    cwd: '/repo',
    model: undefined,
    command: undefined,
    passThrough: [],
    isRoot: false,
  }
  const listener = kind.listen(run)
  for (const line of bytes.toString('utf8').split('\n')) {
    for (const fact of listener.hear(Buffer.from(line), nowMs)) turn.hear(fact)
  }
  return { ended: turn.end({ exitCode: 0, leftBehind: 0, survivors: [] }, '', nowMs), signals }
}
