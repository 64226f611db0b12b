// Every agent of the kit through the real port: a true ending, a true promise, nothing left alive.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentEnding } from '../../../src/core/event.ts'
import { agentPath, bench, type Bench, type Worked } from '../../agents/kit.ts'

let kit: Bench
beforeEach(() => {
  kit = bench()
})
afterEach(() => kit.remove())

const complete = { kind: 'complete' }
const none = { kind: 'none' }
/** By itself, with no shell between that could call it an exit code. */
const diesOfPipe = 'echo "<promise>COMPLETE</promise>"; kill -s PIPE $$'

describe('any command as agent', () => {
  const rows: [string, string, AgentEnding, unknown][] = [
    ['P1: a promise that is only spoken about', 'quotes-promise.sh', 'finished', none],
    ['P2: the prompt echoed', 'echoes-prompt.sh', 'finished', none],
    ['P2: a file with the token shown in a fence', 'shows-promise-in-fence.sh', 'finished', none],
    ['P3: COMPLETE, then FAILED', 'changes-its-mind.sh', 'finished', { kind: 'failed', reason: 'red tests' }],
    ['P5: pieces of characters, invalid UTF-8, CRLF', 'splits-characters.mjs', 'finished', complete],
    ['P5: one line of 20 MB', 'one-long-line.mjs', 'finished', complete],
    ['P12: a question and the end', 'asks-and-stops.sh', 'finished', none],
    [
      'S: FAILED with a reason over two lines',
      'fails-once.sh',
      'finished',
      { kind: 'failed', reason: 'the parser has no tests\nand the build is red' },
    ],
    ['R1: killed in the middle of its promise', 'dies-mid-line.sh', 'crash', none],
    ['R1: killed after its promise', 'killed-after-promise.sh', 'crash', none],
    ['R1: what it ran was killed after its promise', 'model-killed.sh', 'crash', none],
    ['R3: a server left running', 'forks-daemon.sh', 'finished', complete],
    ['R9: limits in its prose and on stderr', 'talks-about-limits.sh', 'finished', complete],
  ]
  it.each(rows)('%s (%s)', async (_name, script, ending, promise) => {
    const worked = await kit.command(script)
    expect(worked.ended).toMatchObject({ ending, promise })
    expectNothingLeft(worked)
  })

  it('a COMPLETE with exit code 1 counts, and the code is told', async () => {
    expect((await kit.command('complete-then-exit-1.sh')).ended).toMatchObject({
      promise: complete,
      exit_code: 1,
    })
  })

  it('P3: COMPLETE, then a tag that says another thing and does not count: COMPLETE, and one warning quotes it', async () => {
    const command = `cat > /dev/null; echo '<promise>COMPLETE</promise>'; echo '<promise>BLOCKED: no key</promise>'; echo Bye.`
    const { ended, signals } = await kit.work('command', { options: { command } })
    expect(ended).toMatchObject({ promise: complete })
    const warnings = signals.filter(({ type }) => type === 'warning')
    expect(warnings).toEqual([
      expect.objectContaining({ message: expect.stringContaining('<promise>BLOCKED: no key</promise>') }),
    ])
  })

  it('F11: of one that crashed without a complaint the last line comes first', async () => {
    const command = 'printf "I begin\\nno room left\\n"; exit 3'
    const { ended } = await kit.work('command', { options: { command } })
    expect(ended).toMatchObject({ ending: 'crash', last_words: 'no room left' })
  })

  it('a COMPLETE counts although a pipe of its own has lost its reader', async () => {
    for (const command of [
      agentPath('broken-pipe.sh'),
      `${agentPath('broken-pipe.sh')}; exit $?`,
      diesOfPipe,
    ]) {
      const { ended } = await kit.work('command', { options: { command } })
      expect(ended).toMatchObject({ promise: complete, exit_code: 141 })
      expect(ended).not.toHaveProperty('signal')
    }
  })

  it('R1: a promise does not stand when the agent dies by any other signal, seen by a shell or not', async () => {
    for (const name of ['HUP', 'INT', 'ABRT', 'KILL', 'SEGV', 'TERM']) {
      for (const command of [
        diesOfPipe.replace('PIPE', name),
        `sh -c '${diesOfPipe.replace('PIPE', name)}'; exit $?`,
      ]) {
        const { ended } = await kit.work('command', { options: { command } })
        expect(ended).toMatchObject({ ending: 'crash', promise: none, signal: `SIG${name}` })
      }
    }
  })

  it('R1: the signal it died by is told', async () => {
    expect((await kit.command('dies-mid-line.sh')).ended).toMatchObject({ signal: 'SIGKILL' })
  })

  it('P12: its last words are told', async () => {
    expect((await kit.command('asks-and-stops.sh')).ended.last_words).toBe('Should I use tabs or spaces?')
  })

  it('R3: what it left running is reported', async () => {
    const { signals } = await kit.command('forks-daemon.sh')
    expect(signals).toContainEqual({
      type: 'warning',
      message: expect.stringContaining('left 1 of its processes'),
    })
  })

  it('a program that does not exist is missing', async () => {
    const { ended } = await kit.work('command', { options: { command: 'no-such-agent-program' } })
    expect(ended).toMatchObject({ ending: 'missing', exit_code: 127 })
    expect((await kit.work('claude', { options: { env: { PATH: kit.cwd } } })).ended.ending).toBe('missing')
    expect((await kit.work('no-such-agent')).ended.ending).toBe('missing')
  })

  it('R14: a work tree that is gone is not a missing agent', async () => {
    const { ended } = await kit.command('works.sh', { task: { cwd: `${kit.cwd}/gone` } })
    expect(ended.ending).toBe('crash')
    expect(ended.last_words).toContain('gone')
  })

  it('pass-through arguments arrive as they are', async () => {
    const { transcript } = await kit.work('command', {
      options: { command: 'printf "[%s]"', passThrough: ['a b', '$HOME', "it's"] },
    })
    expect(transcript.toString()).toBe("[a b][$HOME][it's]")
  })

  it.runIf(process.platform === 'linux')(
    'R4: what it left without a sign whose it is stays alive, and is told',
    async () => {
      const tool = 'echo $$ > pid; exec tail -f /dev/null'
      const command = `env -i setsid sh -c '${tool}' > /dev/null 2>&1 & until [ -s pid ]; do sleep 0.02; done; echo '<promise>COMPLETE</promise>'`
      const worked = await kit.work('command', { options: { command } })
      const pid = Number(readFileSync(join(kit.cwd, 'pid'), 'utf8'))
      process.kill(pid)
      expect(worked.ended).toMatchObject({ ending: 'finished', promise: complete, survivors: [] })
      expect(worked.signals).toContainEqual({
        type: 'warning',
        message: expect.stringContaining(`end it: kill ${pid}`) as string,
      })
    },
  )

  it('R17: its own TMPDIR is gone afterwards', async () => {
    const worked = await kit.command('fills-temp.sh')
    expect(worked.transcript.toString()).toContain('temp=')
    expectNothingLeft(worked)
  })
})

describe('R8: a command whose provider refuses it', () => {
  const rows: [string, AgentEnding][] = [
    ['Error: 429 Too Many Requests', 'limit'],
    ['rate limit reached', 'limit'],
    ["You've hit your usage limit. Try again at 3:45 PM.", 'limit'],
    ['You’ve hit your limit · resets 10pm (UTC)', 'limit'],
    ['Claude AI usage limit reached|1795013191', 'limit'],
    ["openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached'}}", 'limit'],
    [
      'RateLimitError: 429\n    at APIError.generate (/a/b.js:1:2)\n  status: 429,\n}\n\nNode.js v20',
      'limit',
    ],
    ['[API Error: You have exhausted your daily quota on this model.]', 'limit'],
    ['Quota exceeded. Please try again in 5 hours.', 'limit'],
    ['quota exceeded for model gpt-5; retry after 20s', 'limit'],
    ['HTTP 529 overloaded_error', 'overloaded'],
    ['The model is overloaded. Please try again later.', 'overloaded'],
    ['Error: connect ECONNREFUSED 160.79.104.10:443', 'offline'],
    ['getaddrinfo ENOTFOUND api.anthropic.com', 'offline'],
    ['curl: (6) Could not resolve host: api.openai.com', 'offline'],
    ['Not logged in. Please run /login', 'auth'],
    ['Error code: 401 - Incorrect API key provided: sk-x', 'auth'],
  ]
  it.each(rows)('%s: not a crash', async (words, ending) => {
    const env = { AGENT_WORDS: words }
    for (const command of [
      'printf "I begin\\n"; printf "%s\\n" "$AGENT_WORDS" >&2; exit 1',
      'echo "$AGENT_WORDS"; exit 1',
    ]) {
      const { ended } = await kit.work('command', { options: { command, agentEnv: env } })
      expect(ended).toMatchObject({ ending, promise: none, exit_code: 1 })
      expect(ended.last_words).toContain(words.split('|')[0])
    }
  })

  it.each([
    ['a test of its own', 'AssertionError: expected status 429 to be 200'],
    ['a test by its name', ' FAIL  test/rate-limit.test.ts > rate limit reached'],
    ['the source of a test', "   12|   throw new Error('rate limit reached')"],
    ['a server of its own', 'Error: connect ECONNREFUSED 127.0.0.1:5432'],
    ['a page of its own', 'Error: you are not logged in'],
    ['a full disk', 'cp: error writing: Disk quota exceeded'],
    ['long before its end', `rate limit reached${'\nbuilding'.repeat(9)}\nno space left`],
  ])('R9: the words of %s are a crash', async (_name, words) => {
    const { ended } = await kit.work('command', {
      options: { command: 'echo "$AGENT_WORDS" >&2; exit 1', agentEnv: { AGENT_WORDS: words } },
    })
    expect(ended).toMatchObject({ ending: 'crash', promise: none })
  })

  it('R9: nor do they count after a promise, or without an error', async () => {
    const limited = 'echo "rate limit reached" >&2'
    const ends = async (command: string): Promise<unknown> =>
      (await kit.work('command', { options: { command } })).ended
    expect(await ends(`echo '<promise>COMPLETE</promise>'; ${limited}; exit 1`)).toMatchObject({
      ending: 'crash',
      promise: complete,
    })
    expect(await ends(`echo '<promise>COMPLETE</promise>'; exit 75`)).toMatchObject({ promise: complete })
    expect(await ends(limited)).toMatchObject({ ending: 'finished', promise: none })
  })

  it('it says so itself with exit code 75, and its reason when', async () => {
    const ends = async (command: string): Promise<Worked['ended']> =>
      (await kit.work('command', { options: { command } })).ended
    const ended = await ends('echo "the house is full; try again in 2 hours" >&2; exit 75')
    expect(ended).toMatchObject({ ending: 'limit', last_words: 'the house is full; try again in 2 hours' })
    expect(Math.round(((ended.resets_at_ms ?? 0) - Date.now()) / 3_600_000)).toBe(2)
    expect((await ends('exit 75')).ending).toBe('limit')
    expect((await ends('echo "fetch failed" >&2; exit 75')).ending).toBe('offline')
  })
})

describe('an agent that ralph has to end has no verdict', () => {
  it('R2: timeout, INT and TERM ignored, stdout held by a child', async () => {
    const worked = await kit.command('ignores-term.sh', { task: { timeoutMs: 1000 } })
    expect(worked.ended).toMatchObject({ ending: 'timeout', promise: none })
    expectNothingLeft(worked)
  })

  it('R16: neither output nor work', async () => {
    const worked = await kit.command('hangs.sh', { task: { idleTimeoutMs: 400 } })
    expect(worked.ended).toMatchObject({ ending: 'idle', promise: none })
    expectNothingLeft(worked)
  })

  it('a trickle is not idle, but ends with its time', async () => {
    const worked = await kit.command('trickles.mjs', { task: { idleTimeoutMs: 1000, timeoutMs: 2500 } })
    expect(worked.ended).toMatchObject({ ending: 'timeout', promise: none })
  })

  it('R4: a tool in a session of its own ends with it', async () => {
    const worked = await kit.command('own-session.sh', { onSignal: stopAt('tool ready') })
    expect(worked.ended).toMatchObject({ ending: 'stopped', promise: none })
    expectNothingLeft(worked)
  })

  it('R18: COMPLETE in answer to the stop does not count', async () => {
    const worked = await kit.command('completes-when-stopped.sh', { onSignal: stopAt('ready') })
    expect(worked.ended).toMatchObject({ ending: 'stopped', promise: none })
    expect(worked.transcript.toString()).toContain('COMPLETE')
  })

  it('the budget is named as the reason', async () => {
    const worked = await kit.command('hangs.sh', { onSignal: stopAt('thinking', 'budget') })
    expect(worked.ended.ending).toBe('budget')
  })

  it('a stop before the start starts nothing', async () => {
    kit.stop.abort('stopped')
    const { ended, signals } = await kit.command('works.sh')
    expect(ended.ending).toBe('stopped')
    expect(signals).toEqual([])
  })
})

describe('an agent with a protocol', () => {
  const rows: [string, string, AgentEnding, unknown][] = [
    ['P2: words of a sub-agent and of tools', 'claude-sub-agent.mjs', 'finished', none],
    ['P4: the token is not in the last message', 'claude-works.mjs', 'finished', complete],
    ['P5: noise and a tool result of 20 MB', 'claude-noisy.mjs', 'finished', complete],
    ['P12: a question by its own tool', 'claude-asks.mjs', 'question', none],
    ['P14: no model call', 'claude-no-turn.mjs', 'no_turn', none],
    ['R10: an error result with exit code 0', 'claude-error-result.mjs', 'crash', none],
    ['R10: no result at all', 'claude-no-result.mjs', 'crash', none],
    ['R8: overloaded', 'claude-overloaded-once.mjs', 'overloaded', none],
    ['R8: offline', 'claude-offline-then-back.mjs', 'offline', none],
    ['R16: a 401 that it would retry for minutes', 'claude-retries-401.mjs', 'auth', none],
    ['an unknown model', 'claude-unknown-model.mjs', 'model', none],
    ['a refused permission', 'claude-refused.mjs', 'refused_permission', none],
  ]
  it.each(rows)('%s (%s)', async (_name, script, ending, promise) => {
    const worked = await kit.claude(script)
    expect(worked.ended).toMatchObject({ ending, promise })
    expectNothingLeft(worked)
  })

  it('R10: the reason of a turn that was cut off is never what the assistant said', async () => {
    const { ended } = await kit.claude('claude-no-result.mjs')
    expect(ended.last_words).toBe('it ended in the middle of its turn')
  })

  it('R8: a limit tells when it ends', async () => {
    const { ended } = await kit.claude('claude-limited-once.mjs', {
      options: { agentEnv: { AGENT_RESET_SECONDS: '7200' } },
    })
    expect(ended.ending).toBe('limit')
    const inMs = (ended.resets_at_ms ?? 0) - Date.now()
    expect(inMs).toBeGreaterThan(7000_000)
    expect(inMs).toBeLessThanOrEqual(7202_000)
  })

  it('R8: time that ran out while it waited for its provider is not the story’s fault', async () => {
    const { ended } = await kit.claude('claude-retries-for-ever.mjs', { task: { timeoutMs: 1500 } })
    expect(ended).toMatchObject({ ending: 'overloaded', promise: none })
  })

  it('R15: the first result ends the turn, though the process stays and speaks again', async () => {
    const worked = await kit.claude('claude-lingers.mjs', { options: { turnGraceMs: 200 } })
    expect(worked.ended).toMatchObject({ ending: 'finished', promise: complete })
    expectNothingLeft(worked)
  })

  it('R15: a stop after the result does not take the verdict away', async () => {
    const worked = await kit.claude('claude-lingers.mjs', {
      options: { turnGraceMs: 60_000 },
      onSignal: (signal) => {
        // The figures come with the result; the stop comes right after it.
        if (signal.type === 'usage') setImmediate(() => kit.stop.abort('stopped'))
      },
    })
    expect(worked.ended).toMatchObject({ ending: 'finished', promise: complete })
  })

  it('R18: a good result in answer to the stop does not count', async () => {
    const worked = await kit.claude('claude-completes-when-stopped.mjs', { onSignal: stopAt('working') })
    expect(worked.ended).toMatchObject({ ending: 'stopped', promise: none, exit_code: 0 })
    expect(worked.transcript.toString()).toContain('COMPLETE')
  })

  it('session, model, tool, words and figures are told', async () => {
    const { ended, signals } = await kit.claude('claude-works.mjs')
    expect(signals).toContainEqual({ type: 'session', sessionId: 'session-1' })
    expect(signals).toContainEqual({ type: 'tool', name: 'Write', input: 'work/story-1.txt' })
    expect(signals).toContainEqual({ type: 'message', text: 'Done.\n<promise>COMPLETE</promise>' })
    expect(signals[0]).toMatchObject({ type: 'started', pidStarted: expect.stringMatching(/^\d+$/) })
    const usage = {
      input_tokens: 100,
      output_tokens: 20,
      cache_read_tokens: 30,
      cache_creation_tokens: 4,
      cost_usd: 0.0127,
    }
    expect(ended).toMatchObject({ session_id: 'session-1', model: 'claude-test', usage })
  })
})

describe('P5: a flood', () => {
  it('20 MB of output: every byte is in the transcript, the events stay few', async () => {
    const { ended, signals, transcript } = await kit.command('floods.mjs', {
      options: { agentEnv: { AGENT_MEGABYTES: '20' } },
    })
    expect(ended.promise).toEqual(complete)
    expect(transcript.length).toBe(20 * 1024 * 1024 + '\n<promise>COMPLETE</promise>\n'.length)
    const messages = signals.filter((signal) => signal.type === 'message')
    expect(messages.length).toBeLessThan(2100)
    const longest = 4096 + '… 999999 lines left out\n'.length
    expect(messages.every((signal) => signal.text.length <= longest)).toBe(true)
    expect(messages.at(-1)?.text).toContain('COMPLETE')
  })
})

function expectNothingLeft({ ended, alive, temporary }: Worked): void {
  expect(ended.survivors).toEqual([])
  expect(alive).toEqual([])
  expect(temporary).toEqual([])
}

function stopAt(words: string, reason = 'stopped'): (signal: { type: string; text?: string }) => void {
  return (signal) => {
    if (signal.type === 'message' && signal.text?.includes(words) === true) kit.stop.abort(reason)
  }
}
