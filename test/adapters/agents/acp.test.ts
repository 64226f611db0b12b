// The ACP client against small agents that speak the protocol.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { agentPath, bench, type Bench } from '../../agents/kit.ts'

let kit: Bench
beforeEach(() => {
  kit = bench()
})
afterEach(() => kit.remove())

it('works: permission given, token split over chunks, figures and session told, ended with its turn', async () => {
  const { ended, signals, alive } = await kit.work('acp', {
    options: { command: agentPath('acp-works.mjs') },
  })
  expect(ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' }, session_id: 's-1' })
  expect(ended.usage).toMatchObject({ input_tokens: 10, output_tokens: 2, cache_read_tokens: 3 })
  expect(signals).toContainEqual({ type: 'tool', name: 'Write', input: 'made.txt' })
  expect(existsSync(join(kit.cwd, 'made.txt'))).toBe(true)
  expect(alive).toEqual([])
})

const rows: [string, unknown, string][] = [
  ['authentication required', { code: -32_000, message: 'Authentication required' }, 'auth'],
  ['a status as code', { code: 429, message: 'quota' }, 'limit'],
  [
    'a class in data (Claude)',
    { code: -32_603, message: 'Internal error', data: { errorKind: 'rate_limit' } },
    'limit',
  ],
  [
    'a class in data (Codex)',
    { code: -32_603, message: 'Internal error', data: { codexErrorInfo: 'usageLimitExceeded' } },
    'limit',
  ],
  ['words only', { code: -32_603, message: 'fetch failed: ECONNREFUSED' }, 'offline'],
  ['500 for whatever it was (Gemini)', { code: 500, message: 'models/x is not found' }, 'model'],
  ['500 and nothing else', { code: 500, message: 'oops' }, 'overloaded'],
  ['R16: an empty account as 429', { code: 429, message: 'insufficient_quota' }, 'auth'],
  ['nothing known', { code: -32_603, message: 'Internal error' }, 'crash'],
]
it.each(rows)('an error: %s', async (_name, error, ending) => {
  const options = {
    command: agentPath('acp-refuses.mjs'),
    agentEnv: { AGENT_ERROR: JSON.stringify(error) },
    turnGraceMs: 100,
  }
  expect((await kit.work('acp', { options })).ended).toMatchObject({ ending, promise: { kind: 'none' } })
})

it('R18: it is asked to cancel before any signal, and its COMPLETE after that does not count', async () => {
  const { ended, transcript } = await kit.work('acp', {
    options: { command: agentPath('acp-waits.mjs') },
    onSignal: (signal) => {
      if (signal.type === 'message') kit.stop.abort('stopped')
    },
  })
  expect(ended).toMatchObject({ ending: 'stopped', promise: { kind: 'none' }, exit_code: 0 })
  expect(transcript.toString()).toContain('cancelled')
})

it('a server that does not exist is missing', async () => {
  expect((await kit.work('acp', { options: { command: 'no-such-acp-server' } })).ended.ending).toBe('missing')
})
