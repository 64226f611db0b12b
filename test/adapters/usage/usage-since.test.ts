// `ralph usage`: wt-usage's fields from the agents' own files, for this project only.
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canPrice, costUsd } from '../../../src/adapters/usage/prices.ts'
import { usageSince } from '../../../src/adapters/usage/usage-since.ts'
import { encode } from '../../../src/adapters/usage/claude-sessions.ts'
import { RalphError } from '../../../src/core/error.ts'
import { turnsOf } from '../../../src/core/turns.ts'
import { noUsage } from '../../../src/core/usage.ts'
import type { UsageGroup } from '../../../src/core/usage-summary.ts'
import type { UsageFigures } from '../../../src/core/usage.ts'
import type { Clock } from '../../../src/ports.ts'
import { usageText } from '../../../src/ui/print/report-usage.ts'
import { sandbox, session } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'

let box: Sandbox
beforeEach(async () => {
  box = await sandbox()
  await box.place('claude/main.jsonl', join(box.claudeFolder, `${session}.jsonl`))
  await box.place('claude/subagent.jsonl', join(box.claudeFolder, session, 'subagents', 'agent-1.jsonl'))
  await box.place('claude/foreign.jsonl', join(box.claudeFolder, 'foreign.jsonl'))
  await box.place(
    'codex/rollout-parent.jsonl',
    join(
      box.home,
      '.codex/sessions/2026/02/09/rollout-2026-02-09T09-00-00-01a1e08b-0000-7000-8000-00000000000a.jsonl',
    ),
  )
})
afterEach(() => box.remove())

/** UTC, so that days do not depend on the machine's zone. */
const clock: Clock = {
  now: () => Date.parse('2026-02-09T12:00:00Z'),
  monotonic: () => 0,
  stamp: (ms) => `${new Date(ms ?? clock.now()).toISOString().slice(0, 19)}+00:00`,
  until: () => Promise.resolve(),
  after: () => () => undefined,
}

function usage(options: { since?: string; until?: string; by?: UsageGroup; figures?: UsageFigures } = {}) {
  return usageSince({
    worktrees: [box.worktree],
    env: box.env,
    clock,
    since: options.since ?? '2026-02-09T09:00:00Z',
    until: options.until,
    by: options.by,
    turns: turnsOf(
      [
        { n: 1, started: '2026-02-09T09:01:00+00:00', ended: '2026-02-09T09:01:30+00:00', story_id: '1' },
        { n: 2, started: '2026-02-09T10:02:00+01:00', ended: '2026-02-09T10:03:00+01:00', story_id: '2' },
        // No session file has an answer of that hour.
        { n: 3, started: '2026-02-09T11:20:00+00:00', ended: '2026-02-09T11:21:00+00:00', story_id: '3' },
      ],
      [],
    ).map((turn) => ({ ...turn, agent: 'my-agent', model: 'house', figures: options.figures })),
  })
}

describe('usageSince', () => {
  test('has the fields of wt-usage, Claude Code and Codex added, another project left out', async () => {
    expect(await usage()).toMatchObject({
      period: 'custom',
      since: '2026-02-09T09:00:00+00:00',
      input_tokens: 1540 + 2700,
      output_tokens: 125 + 153,
      cache_read_tokens: 600 + 600,
      cache_creation_tokens: 90,
      api_tokens: 1665 + 2853,
      total_tokens: 1665 + 2853 + 1200 + 90,
      unpriced_models: [],
      skipped: [],
    })
  })

  test('a turn that no session file knows counts with what was noted of it; one that they know counts once', async () => {
    const [input_tokens, output_tokens] = [7000, 77]
    const figures = {
      input_tokens,
      output_tokens,
      cache_read_tokens: 5,
      cache_creation_tokens: 0,
      cost_usd: 0.5,
    }
    const [without, noted] = [await usage(), await usage({ figures, by: 'story' })]
    expect(noted.input_tokens - without.input_tokens).toBe(7000)
    expect(noted.output_tokens - without.output_tokens).toBe(77)
    expect((noted.estimated_cost_usd ?? 0) - (without.estimated_cost_usd ?? 0)).toBeCloseTo(0.5, 8)
    expect(noted.breakdown?.find(({ name }) => name === '3')?.api_tokens).toBe(7077)
    const before = await usage({ figures, until: '2026-02-09T11:00:00Z' })
    expect(before.input_tokens).toBe(without.input_tokens)
  })

  test('counts what lies before `until` and not before `since`', async () => {
    const all = await usage({ since: '2026-02-09T07:00:00Z', until: '2026-02-09T08:30:00Z' })
    expect(all).toMatchObject({ input_tokens: 7000, output_tokens: 700, until: '2026-02-09T08:30:00+00:00' })
    expect((await usage({ since: '2026-02-09T10:00:00Z' })).total_tokens).toBe(0)
  })

  test('breaks down by agent, model, story and day', async () => {
    const shares = async (by: UsageGroup) =>
      (await usage({ by })).breakdown?.map((row) => [row.name, row.api_tokens] as const)
    expect(await shares('agent')).toEqual([
      ['codex', 2853],
      ['claude', 1665],
    ])
    expect(await shares('model')).toEqual([
      ['gpt-5-codex', 2853],
      ['claude-sonnet-4-5', 1445],
      ['claude-haiku-4-5', 220],
    ])
    // 09:01 is story 1 (Codex 1050, Claude 1100), 09:02 to 09:03 story 2.
    expect(await shares('story')).toEqual([
      ['2', 1803 + 300 + 45 + 220],
      ['1', 1050 + 1100],
    ])
    expect(await shares('day')).toEqual([['2026-02-09', 4518]])
  })

  test('a session that began in a folder below the work tree counts, one of a neighbour with its name as a prefix does not', async () => {
    const line = (cwd: string) =>
      `{"type":"assistant","cwd":"${cwd}","timestamp":"2026-02-09T11:00:00Z","message":{"id":"${cwd}","model":"m","usage":{"input_tokens":11,"output_tokens":1}}}\n`
    const projects = join(box.home, '.claude', 'projects')
    for (const folder of [join(box.worktree, 'packages'), `${box.worktree}-2`]) {
      await box.write(join(projects, encode(folder), 's.jsonl'), line(folder))
    }
    expect(await usage({ since: '2026-02-09T10:30:00Z' })).toMatchObject({
      api_tokens: 12,
      unpriced_models: ['m'],
    })
  })

  test('today and a day begin at local midnight, the week on its Monday', async () => {
    const monday = new Date(clock.now())
    monday.setHours(0, 0, 0, 0)
    expect(await usage({ since: 'today' })).toMatchObject({
      period: 'today',
      since: clock.stamp(monday.getTime()),
    })
    monday.setDate(monday.getDate() - ((monday.getDay() + 6) % 7))
    expect(monday.getDay()).toBe(1)
    expect((await usage({ since: '2026-02-09' })).since).toBe(clock.stamp(new Date(2026, 1, 9).getTime()))
    expect(await usage({ since: 'week' })).toMatchObject({
      period: 'week',
      since: clock.stamp(monday.getTime()),
    })
  })

  test('F39: yesterday is its midnight; 2h, 7d and 30m count back from now', async () => {
    const midnight = new Date(clock.now())
    midnight.setHours(0, 0, 0, 0)
    midnight.setDate(midnight.getDate() - 1)
    expect((await usage({ since: 'yesterday' })).since).toBe(clock.stamp(midnight.getTime()))
    for (const [word, ms] of [
      ['30m', 1_800_000],
      ['2h', 7_200_000],
      ['7d', 604_800_000],
    ] as const)
      expect((await usage({ since: word })).since).toBe(clock.stamp(clock.now() - ms))
  })

  test('a word that is no time is refused with an example', async () => {
    await expect(usage({ since: 'yesterdayish' })).rejects.toThrow(RalphError)
    await expect(usage({ since: 'yesterdayish' })).rejects.toMatchObject({ exitCode: 2, code: 'usage' })
  })
})

describe('usageText', () => {
  test('shows the rows and a bar for each part, none wider than the terminal', async () => {
    const text = usageText(await usage({ by: 'model' }), 60)
    expect(text).toMatch(/input \+ output +4,518 {2}what --max-tokens counts/)
    expect(text).toMatch(/gpt-5-codex {8}█+ {4}2\.9k {2}<\$0\.01/)
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(60)
    const [largest, , smallest] = text.split('By model')[1]?.match(/[█▏▎▍▌▋▊▉]+/g) ?? []
    expect(largest?.length).toBeGreaterThan((smallest?.length ?? 99) * 4)
  })

  test('an unpriced model says so and never costs $0.00', async () => {
    const line = `{"cwd":"${box.worktree}","timestamp":"2026-02-09T11:00:00Z","message":{"id":"x","model":"stub-model","usage":{"input_tokens":11,"output_tokens":1}}}\n`
    await box.write(join(box.claudeFolder, 'stub.jsonl'), line)
    const text = usageText(await usage({ since: '2026-02-09T10:30:00Z', by: 'model' }), 80)
    expect(text).toContain('not in the cost (unpriced): stub-model')
    expect(text).not.toContain('$0.00')
  })
})

describe('prices', () => {
  const million = { ...noUsage, input_tokens: 1000, output_tokens: 1000 }
  test.each([
    ['claude-sonnet-4-5-20250929', true],
    ['gpt-5-codex', true],
    ['anthropic/claude-sonnet-4-5', true],
    ['stub-model', false],
    ['stub/stub-model', false],
    ['', false],
  ])('%s can be priced: %s', async (model, isPriced) => {
    expect(await canPrice(model)).toBe(isPriced)
    expect((await costUsd(model, million)) === undefined).toBe(!isPriced)
  })

  test('Claude Code reports its own cost, so any model of it will do', async () => {
    expect(await canPrice('opus', 'claude')).toBe(true)
    expect(await canPrice(undefined, 'codex')).toBe(false)
  })

  test('cached tokens have their own price', async () => {
    const figures = {
      input_tokens: 1000,
      output_tokens: 100,
      cache_read_tokens: 600,
      cache_creation_tokens: 90,
    }
    expect(await costUsd('claude-sonnet-4-5', figures)).toBeCloseTo((3000 + 1500 + 180 + 337.5) / 1e6, 10)
  })
})
