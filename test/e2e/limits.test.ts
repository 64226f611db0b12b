// Limits that tell the wrong time, and chains with agents that cannot run, through the whole built program (R8).
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LoopEvent } from '../../src/core/event.ts'
import { agentPath, standIn } from '../agents/kit.ts'
import { eventsOf, goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { expectTruth } from './truth.ts'

describe('reset times', () => {
  test.each(['99999999999999', '1e300', '-5', '1000'])(
    'R8: a limit that resets at %s: exit 6 by --limit-wait, asked once, everything recorded',
    async (resetsAt) => {
      const at = scratch({ tasks: tasksOf(1) })
      const env = { AGENT_LIMITS: '99', AGENT_RESETS_AT: resetsAt }
      const end = await loop(at, ['--agent', 'claude', '--limit-wait', '0.1'], env)
      expect(end.code).toBe(6)
      expectTruth(at, end)
      expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'limit' })
      expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['limit'])
    },
  )

  test('R8: a journal with a reset time beyond every date, cut off there, is resumed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const env = { AGENT_RESET_SECONDS: '3600' }
    expect((await loop(at, ['--agent', 'claude', '--limit-wait', '0.1'], env)).code).toBe(6)
    const journal = join(at.repo, '.git', 'ralph', 'changes', 'demo', 'journal.ndjson')
    const lines = readFileSync(journal, 'utf8').split('\n')
    const cut = lines.findIndex((line) => line.includes('"type":"checkpoint.reverted"'))
    const poisoned = lines.slice(0, cut + 1).join('\n')
    expect(poisoned).toContain('"resets_at_ms":')
    writeFileSync(journal, `${poisoned.replace(/"resets_at_ms":\d+/, '"resets_at_ms":99999999999999000')}\n`)
    const end = await loop(at, [], env, 'resume')
    expect(end.code).toBe(0)
    expect(at.state()).toMatchObject({ status: 'done' })
  })
})

describe('a script that its provider refuses', () => {
  test.each([
    ['says so on stderr', "echo 'Error: 429 Too Many Requests' >&2; exit 1", '0.5', '30 s'],
    ['says when', "echo 'usage limit reached, try again in 3 hours' >&2; exit 1", '1', '1 minute'],
    ['exits with 75', "echo 'come back in an hour' >&2; exit 75", '0.5', '30 s'],
  ])('R8: it %s: no retry is used, --limit-wait ends it', async (_name, command, wait, words) => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'demo', '--json', '--agent-command', command, '--limit-wait', wait])
    expect(end.code).toBe(6)
    expectTruth(at, end)
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'limit' })
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['limit'])
    expect(eventsOf(end).at(-1)).toMatchObject({
      reason: expect.stringContaining(`Waiting would take longer than ${words} (--limit-wait)`) as string,
    })
  })

  test('R8: its lost login stops the loop at once', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const command = "echo 'Not logged in. Please run /login' >&2; exit 1"
    const end = await ralph(at, ['loop', 'demo', '--agent-command', command])
    expect(end.code).toBe(6)
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['fatal'])
  })
})

describe('a chain', () => {
  const outs: readonly [string, (at: Scratch) => void][] = [
    ['is not installed', () => undefined],
    ['has no login', (at) => fallback(at, 'turn.failed', 'unexpected status 401 Unauthorized')],
    ['does not know its model', (at) => fallback(at, 'turn.failed', 'The model `x` does not exist')],
  ]
  test.each(outs)('R8: a fallback that %s: a warning, and the limit is waited for', async (_name, set) => {
    const at = scratch({ tasks: tasksOf(1) })
    set(at)
    const end = await loop(at, ['--agent', 'claude,codex', '--max-retries', '0'], {
      AGENT_RESET_SECONDS: '2',
    })
    expect(end.code).toBe(0)
    expectTruth(at, end)
    const events = eventsOf(end)
    expect(messagesOf(events)).toContainEqual(
      expect.stringMatching(/^codex .*the chain continues without it/),
    )
    expect(events.filter((event) => event.type === 'waiting')).toMatchObject([{ agent: 'claude' }])
  })

  test('a chain whose first agent is not installed goes on with the next, without the first one’s flags', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = standInCodex(at)
    const end = await ralph(
      at,
      ['loop', 'demo', '--json', '--agent', 'claude,codex', '--model', 'sonnet', '--', '--mine'],
      withBin(at),
    )
    expect(end.code).toBe(0)
    expect(messagesOf(eventsOf(end))).toContain('claude is not on PATH: the chain continues without it')
    expect(readFileSync(args, 'utf8')).not.toMatch(/sonnet|--mine/)
    expect(at.state().iterations).toMatchObject([{ agent: 'codex', verdict: 'complete' }])
  })

  test('--model and what stands after -- go to the first agent of a chain only', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = standInCodex(at)
    const end = await loop(
      at,
      ['--agent', 'claude,codex', '--model', 'sonnet', '--', '--append-system-prompt', 'hi'],
      { AGENT_RESET_SECONDS: '3600' },
    )
    expect(end.code).toBe(0)
    expect(readFileSync(args, 'utf8')).toContain('exec --json')
    expect(readFileSync(args, 'utf8')).not.toMatch(/sonnet|append-system-prompt/)
  })
})

test('R2: a gate that hangs is ended after the iteration timeout, and has failed', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const gate = ['--verify', 'tail -f /dev/null', '--iteration-timeout', '0.05']
  const end = await ralph(at, [
    'loop',
    'demo',
    '--json',
    '--agent-command',
    goodAgent,
    '--max-retries',
    '0',
    ...gate,
  ])
  expect(end.code).toBe(3)
  expectTruth(at, end)
  expect(at.state().iterations).toMatchObject([{ verdict: 'gate_failed', done_check: false }])
  expect(at.state().iterations[0]?.reason).toBe(
    'tail -f /dev/null failed: ended by ralph after 3 s (--iteration-timeout)',
  )
})

function messagesOf(events: readonly LoopEvent[]): string[] {
  return events.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
}

/** A codex that says one event of an error and leaves. */
function fallback(at: Scratch, type: string, message: string): void {
  const lines = [
    { type: 'thread.started', thread_id: 't' },
    { type, error: { message } },
  ]
  const said = lines.map((line) => `echo '${JSON.stringify(line)}'`).join('\n')
  standIn(binOf(at), 'codex', at.script('codex.sh', `#!/bin/sh\ncat > /dev/null\n${said}\nexit 1\n`))
}

/** The kit's limited agent stands in for claude. */
function loop(
  at: Scratch,
  args: readonly string[],
  env: Record<string, string>,
  command = 'loop',
): Promise<Finished> {
  standIn(binOf(at), 'claude', agentPath('claude-limited-once.mjs'))
  const variables = Object.entries({ AGENT_STATE: join(at.root, 'runs'), ...env }).flatMap(
    ([name, value]) => ['--agent-env', `${name}=${value}`],
  )
  return ralph(at, [command, 'demo', '--json', ...variables, ...args], withBin(at))
}

/** Only what a loop needs: no agent of the developer's own may be found. */
function binOf(at: Scratch): string {
  const bin = join(at.root, 'bin')
  if (existsSync(bin)) return bin
  mkdirSync(bin)
  for (const tool of ['git', 'node', 'sh', 'env', 'cat'])
    symlinkSync(
      execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim(),
      join(bin, tool),
    )
  return bin
}

function withBin(at: Scratch): { env: NodeJS.ProcessEnv } {
  return { env: { PATH: binOf(at) } }
}

/** A codex that works, and the file where it writes down its arguments. */
function standInCodex(at: Scratch): string {
  const args = join(at.root, 'args')
  const body = `#!/bin/sh\necho "$@" >> ${args}\nexec ${agentPath('codex-works.mjs')} "$@"\n`
  standIn(binOf(at), 'codex', at.script('codex.sh', body))
  return args
}
