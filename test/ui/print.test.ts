// What a loop looks like in a pipe and as NDJSON.
import { describe, expect, it } from 'vitest'
import { publicEventSchema, publicEventTypes } from '../../src/core/event.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import { jsonPrinter } from '../../src/ui/print/json.ts'
import { plainPrinter } from '../../src/ui/print/plain.ts'
import { terminalPrinter } from '../../src/ui/print/terminal.ts'
import { complete, event, iteration, script, started } from './events.ts'
import { Sink } from './fake-app.ts'

function plain(events: readonly LoopEvent[], env: NodeJS.ProcessEnv = {}): { out: string; err: string } {
  const stdout = new Sink()
  const stderr = new Sink()
  const printer = plainPrinter({ stdout, stderr, env })
  for (const each of events) printer.tell(each)
  printer.close()
  return { out: stdout.text, err: stderr.text }
}

describe('plain lines', () => {
  it('contract 10: in a pipe there is not one escape byte or control character, whatever agents and titles hold', () => {
    const { out, err } = plain(script)
    expect(out + err).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F]/)
  })

  it('read like a log: story, attempt, gate, verdict with reason, checkpoint, tokens, duration', () => {
    const { out, err } = plain(script)
    expect(out.trimEnd().split('\n')).toEqual([
      '14:03:22 loop add-login on branch ralph/add-login (from main), agent claude, 1 gate',
      '14:03:22 story 1/2: 1 Model',
      '14:03:22   attempt 1/4 (iteration 1/8, claude)',
      '14:03:22     I will start. (+2 lines)',
      '14:03:22     Edit src/a.ts',
      '14:03:22   gate: npm test',
      '14:03:22   gate failed with exit 1: npm test (3.2 s): not ok 2 - login',
      '14:03:22   restored 1a2b3c4 (what was undone: ralph diff 1)',
      '14:03:22   gate failed: npm test (+1 line) (1m 01s, 12.3k tokens, $0.25)',
      '14:03:22   waiting for claude (limit) until 15:00:00; ralph stop works meanwhile',
      '14:03:22   saved 1a2b3c4 checkpoint: 1',
      '14:03:22   done (1m 01s, ~12.3k tokens)',
      '14:03:22 the loop is over (done); now: where its work goes',
      'done: every story is complete',
      '  2/2 stories, 5/5 tasks (2 iterations, 2m 02s, 24.7k tokens, $0.50)',
      '  the work is on branch ralph/add-login; this loop has changed nothing on main',
      '  next: ralph finish add-login --cleanup  bring it to main, uncommitted',
    ])
    expect(err).toBe('warning: wt-usage failed, using an estimate\n')
  })

  it('the next command after exit 6 fits what was in the way', () => {
    const next = (stop_reason: 'limit' | 'auth' | 'missing' | 'model'): string =>
      plain([event(started), event({ ...complete, status: 'stopped', exit_code: 6, stop_reason })]).out
    expect(next('limit')).toContain('ralph resume add-login  once the limit is over')
    expect(next('auth')).toContain('ralph resume add-login  once its login or its bill is settled')
    expect(next('missing')).toContain(
      'ralph resume add-login  once the agent is installed; or with --agent NAME',
    )
    expect(next('model')).toContain('ralph resume add-login --model NAME  with a model that the agent knows')
  })

  it('a stop during a wait or a gate does not speak of an agent', () => {
    const { out } = plain([event({ type: 'stop.requested', signal: 'SIGTERM' })])
    expect(out).toContain('stopping (SIGTERM): whatever runs is being ended; once more forces')
  })

  it('R12: the banner says who pays where that is known, and nothing where it is not', () => {
    const banner = (bill: string): string => plain([event({ ...started, billing: { claude: bill } })]).out
    expect(banner('subscription login')).toContain('agent claude (subscription login), 1 gate')
    expect(banner('unknown')).toContain('agent claude, 1 gate')
  })

  it('U5: a loop that halts names the reason, where the work is and the command to go on with', () => {
    const { out, err } = plain([
      event(started),
      event({
        type: 'iteration.ended',
        iteration: iteration({ n: 4, verdict: 'failed', reason: 'no tests', attempt_ref: 'r' }),
      }),
      event({
        type: 'error',
        code: 'retries',
        message: 'story 1 failed 4 times',
        hint: 'see ralph attempts',
      }),
      event({
        ...complete,
        status: 'stuck',
        exit_code: 3,
        reason: 'story 1 used up its retries',
        stop_reason: 'retries',
      }),
    ])
    expect(err).toBe('error: story 1 failed 4 times (see ralph attempts)\n')
    expect(out).toContain('stuck: story 1 used up its retries\n')
    expect(out).toContain('next: ralph diff 4')
    expect(out).toContain('next: ralph resume add-login')
    expect(out).not.toContain('finish')
  })

  it.each([
    [{ max_cost_usd: 1 }, '--max-cost is used up: $1.20 of $1.00', {}, '--max-cost USD'],
    [{ max_tokens: 9 }, '--max-tokens is used up: 10 tokens of 9 tokens', {}, '--max-tokens N'],
    [
      { max_tokens: 9, max_cost_usd: 1 },
      'the next attempt would exceed --max-cost',
      {},
      '--max-cost USD --max-tokens N',
    ],
    [{ max_cost_usd: 1 }, '--max-cost cannot be kept', { cost_usd: undefined }, '--max-tokens N'],
  ])('U5: stopped by %j (%s): the next command names what helps', (limits, reason, totals, flags) => {
    const { out } = plain([
      event({ ...started, settings: { ...started.settings, ...limits } }),
      event({
        ...complete,
        status: 'stopped',
        exit_code: 6,
        reason,
        stop_reason: 'budget',
        totals: { ...complete.totals, ...totals },
      }),
    ])
    expect(out).toContain(`next: ralph resume add-login ${flags}  go on with a larger budget\n`)
  })

  it('the end uses the words of the finished checkpoint where there are some', () => {
    const { out } = plain([
      event(started),
      event({ type: 'checkpoint.saved', message: 'initial state', commit: 'c'.repeat(40), changed: true }),
      event({
        type: 'loop.finished',
        choice: 'cleanup',
        ok: true,
        message: 'back on main with 3 files changed',
      }),
      event({ ...complete, choice: 'cleanup' }),
    ])
    expect(out).toContain('  back on main with 3 files changed\n  next: git status')
  })

  it('G13: a cleanup that could not be done is not called done', () => {
    const { out } = plain([
      event(started),
      event({ type: 'checkpoint.saved', message: 'initial state', commit: 'c'.repeat(40), changed: true }),
      event({ type: 'loop.finished', choice: 'cleanup', ok: false, message: 'main has moved' }),
      event({ ...complete, choice: 'cleanup' }),
    ])
    expect(out).toContain(
      'the work is on branch ralph/add-login; this loop has changed nothing on main\n  next: ralph finish add-login --cleanup',
    )
    expect(out).not.toContain('uncommitted\n  next: git status')
  })

  it('R13: an estimate of nothing is not shown as a figure', () => {
    const ended = iteration({ tokens_used: 0, tokens_estimated: true })
    expect(plain([event({ type: 'iteration.ended', iteration: ended })]).out).toBe(
      '14:03:22   done (1m 01s, tokens unknown)\n',
    )
  })

  it('FORCE_COLOR colours a pipe, NO_COLOR wins over it', () => {
    expect(plain(script, { FORCE_COLOR: '1' }).out).toContain('\u001B[')
    expect(plain(script, { FORCE_COLOR: '1', NO_COLOR: '1' }).out).not.toContain('\u001B[')
  })
})

describe('a flood of talk', () => {
  class Writes extends Sink {
    readonly chunks: string[]
    constructor(chunks: string[]) {
      super()
      this.chunks = chunks
    }
    override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
      this.chunks.push(chunk.toString())
      super._write(chunk, encoding, done)
    }
  }
  const talk = Array.from({ length: 100 }, (_, n) =>
    event({ type: 'agent.tool', n: 1, name: 'Edit', input: `file-${n}` }),
  )
  const warning = event({ type: 'warning', code: 'agent', message: 'a line was not read' })

  it.each(['plain', 'json', 'terminal'] as const)('is one write per tick, in order: %s', async (kind) => {
    const chunks: string[] = []
    const [stdout, stderr] = [new Writes(chunks), new Writes(chunks)]
    const io = { stdout, stderr, env: {} }
    const printer =
      kind === 'plain'
        ? plainPrinter(io)
        : kind === 'json'
          ? jsonPrinter(stdout, stderr)
          : terminalPrinter({ ...io, now: () => 0 })
    chunks.length = 0
    for (const each of talk) printer.tell(each)
    printer.tell(warning)
    for (const each of talk) printer.tell(each)
    await Promise.resolve()
    const isTalk = (chunk: string): boolean => chunk.includes('file-')
    expect(chunks.filter(isTalk)).toHaveLength(2)
    expect(chunks.findIndex((chunk) => chunk.includes('not read'))).toBeGreaterThan(0)
    expect(chunks.filter(isTalk).map((chunk) => chunk.match(/file-\d+/g))).toEqual(
      [0, 1].map(() => talk.map((_, n) => `file-${n}`)),
    )
    expect(chunks.findLastIndex(isTalk)).toBeGreaterThan(
      chunks.findIndex((chunk) => chunk.includes('not read')),
    )
    const before = chunks.length
    for (const each of talk) printer.tell(each)
    printer.close()
    expect(chunks.slice(before).filter(isTalk)).toHaveLength(1)
  })
})

describe('--json', () => {
  it('contract 9: stdout holds the public events, one valid object per line, in order, and nothing else', () => {
    const stdout = new Sink()
    const stderr = new Sink()
    const printer = jsonPrinter(stdout, stderr)
    for (const each of script) printer.tell(each)
    const lines = stdout.text.trimEnd().split('\n')
    const parsed = lines.map((line) => publicEventSchema.parse(JSON.parse(line)))
    expect(parsed.map(({ type }) => type)).toEqual(
      script.map(({ type }) => type).filter((type) => publicEventTypes.includes(type)),
    )
    expect(parsed.at(-1)?.type).toBe('complete')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      v: 1,
      seq: 1,
      time: expect.any(String),
      change_id: 'add-login',
    })
    expect(stderr.text).toBe('warning: wt-usage failed, using an estimate\n')
  })
})
