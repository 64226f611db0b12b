// The report's figures, added up by hand from the history in report-history.ts.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runReport } from '../../src/core/report.ts'
import { epochMs } from '../../src/core/stamp.ts'
import { history, iteration } from './report-history.ts'
import { countsOf, stateWord } from '../../src/ui/print/report-words.ts'

describe('runReport', () => {
  const report = runReport(history)

  test('the whole run: tokens, cost, time with and without waits', () => {
    expect(report).toMatchObject({
      stories_done: 2,
      stories_total: 4,
      started: '2026-02-09T14:00:00+01:00',
      ended: '2026-02-09T15:44:00+01:00',
      wall_ms: 104 * 60_000,
      totals: { iterations: 8, tokens: 200_500, duration_ms: 80 * 60_000, unpriced: 1, estimated: 1 },
    })
    expect(report.totals.cost_usd).toBeCloseTo(0.61 + 0.4 + 0.55 + 0.3 + 0.9 + 0.004, 10)
  })

  test('what attempts cost that were not kept', () => {
    expect(report.not_kept).toMatchObject({ iterations: 6, tokens: 120_500 })
    expect(report.not_kept.cost_usd).toBeCloseTo(0.4 + 0.3 + 0.9 + 0.004, 10)
    expect(report.stories.map((story) => story.not_kept.tokens)).toEqual([0, 43_000, 77_500, 0])
  })

  test('each story with its attempts, in the order of the plan', () => {
    expect(
      report.stories.map((story) => [
        story.story_id,
        story.tokens,
        story.attempts.map((attempt) => attempt.n),
      ]),
    ).toEqual([
      ['1', 42_000, [1]],
      ['2', 81_000, [2, 3, 4, 5]],
      ['3', 77_500, [6, 7, 8]],
      ['4', 0, []],
    ])
    expect(report.stories[0]?.attempts[0]).toMatchObject({
      from_ms: 0,
      to_ms: 540_000,
      kept: true,
      commits: 1,
    })
  })

  test('an attempt that is under way is told with its story, and counts', () => {
    const running = runReport({ ...history, status: 'running', current: { n: 9, story_id: '3' } })
    const [, , third] = running.stories
    expect(third === undefined ? '' : stateWord(third)).toBe('running, #9')
    expect(countsOf(running)).toContain(`, ${String(history.iterations.length + 1)} attempts`)
  })

  test('an unpriced run has no cost at all, rather than 0', () => {
    const unpriced = runReport({ ...history, iterations: [iteration(1, '1', 1, 'complete', [0, 1], 10)] })
    expect(unpriced.totals).not.toHaveProperty('cost_usd')
    expect(unpriced.totals.unpriced).toBe(1)
  })

  test('a story that is no longer in the plan keeps its history', () => {
    const gone = runReport({ ...history, stories: [] })
    expect(gone.stories.map((story) => [story.story_id, story.status])).toEqual([
      ['1', ''],
      ['2', ''],
      ['3', ''],
    ])
  })

  test('a clock that was set back turns no bar around', () => {
    const back = iteration(2, '1', 2, 'complete', [30, 31], 10, { ended: '2026-02-09T13:00:00+01:00' })
    const [, second] =
      runReport({ ...history, iterations: [iteration(1, '1', 1, 'failed', [0, 1], 1), back] }).stories[0]
        ?.attempts ?? []
    expect(second).toMatchObject({ from_ms: 1_800_000, to_ms: 1_800_000 })
  })

  test('the whole is never shorter than its attempts, whose stamps are whole seconds', () => {
    const quick = iteration(1, '1', 1, 'failed', [0, 0], 1, { duration_ms: 98 })
    expect(runReport({ ...history, iterations: [quick] })).toMatchObject({ wall_ms: 98 })
  })

  test('a run without iterations is a report, too', () => {
    expect(runReport({ ...history, iterations: [] })).toMatchObject({
      started: '',
      wall_ms: 0,
      totals: { iterations: 0 },
    })
  })

  test('property: no token is lost or counted twice between stories and totals', () => {
    const record = fc
      .tuple(
        fc.constantFrom('1', '2', 'gone'),
        fc.constantFrom('complete' as const, 'failed' as const, 'limit' as const),
        fc.nat(100_000),
      )
      .map(([story, verdict, tokens]) => iteration(1, story, 1, verdict, [0, 1], tokens))
    fc.assert(
      fc.property(fc.array(record), (iterations) => {
        const { stories, totals, not_kept } = runReport({ ...history, iterations })
        const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
        expect(sum(stories.map((story) => story.tokens))).toBe(totals.tokens)
        expect(sum(stories.map((story) => story.not_kept.tokens))).toBe(not_kept.tokens)
        expect(sum(iterations.map((entry) => entry.tokens_used))).toBe(totals.tokens)
      }),
      { verbose: true },
    )
  })
})

describe('epochMs', () => {
  test('property: agrees with the clock of the language for every second and offset', () => {
    const pad = (value: number): string => String(Math.abs(value)).padStart(2, '0')
    fc.assert(
      fc.property(
        fc.date({ min: new Date('1971-01-02'), max: new Date('2199-12-30'), noInvalidDate: true }),
        fc.integer({ min: -14 * 60, max: 14 * 60 }),
        (date, offset) => {
          const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, 19)
          const zone = `${offset < 0 ? '-' : '+'}${pad(Math.trunc(offset / 60))}:${pad(offset % 60)}`
          expect(epochMs(local + zone)).toBe(Date.parse(local + zone))
        },
      ),
      { verbose: true },
    )
  })

  test('what is no stamp is 0, not NaN', () => {
    expect(['', 'soon', '2026-02-09'].map(epochMs)).toEqual([0, 0, 0])
    expect(epochMs('2026-02-09T09:00:00.250Z')).toBe(Date.parse('2026-02-09T09:00:00Z'))
  })
})
