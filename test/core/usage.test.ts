// How figures add up, and when a budget stops a loop.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { UsageFigures } from '../../src/core/usage.ts'
import {
  addUsage,
  describeOvershoot,
  disagrees,
  isPastHardStop,
  noUsage,
  overshoots,
  tokensUsed,
  wouldOvershoot,
} from '../../src/core/usage.ts'

const figures = (input: number, output: number, cost?: number): UsageFigures => ({
  ...noUsage,
  input_tokens: input,
  output_tokens: output,
  ...(cost !== undefined && { cost_usd: cost }),
})

describe('adding up', () => {
  test('cached tokens are no part of the tokens used', () => {
    expect(tokensUsed({ ...figures(10, 5), cache_read_tokens: 9000, cache_creation_tokens: 700 })).toBe(15)
  })

  test('the cost of unpriced figures stays absent, it is never 0', () => {
    expect(addUsage([figures(1, 1), figures(2, 2)])).not.toHaveProperty('cost_usd')
    expect(addUsage([figures(1, 1, 0.25), figures(2, 2)]).cost_usd).toBe(0.25)
    expect(addUsage([])).toEqual(noUsage)
  })

  test('sources disagree when they are more than a fifth apart', () => {
    expect(disagrees(figures(100, 0), figures(80, 0))).toBe(false)
    expect(disagrees(figures(100, 0), figures(79, 0))).toBe(true)
    expect(disagrees(noUsage, noUsage)).toBe(false)
  })
})

describe('budgets', () => {
  const iteration = (tokens_used: number, cost_usd?: number) => ({
    tokens_used,
    ...(cost_usd !== undefined && { cost_usd }),
  })

  test('the spawn that would overshoot is not started', () => {
    const history = [iteration(400), iteration(0), iteration(200)]
    expect(wouldOvershoot({ tokens: 600, cost_usd: 0 }, history, { max_tokens: 900 })).toBeUndefined()
    expect(wouldOvershoot({ tokens: 600, cost_usd: 0 }, history, { max_tokens: 899 })).toEqual({
      limit: 'max_tokens',
      used: 600,
      forecast: 300,
      max: 899,
    })
  })

  test('the first iteration starts under any limit, because nothing is known of it', () => {
    expect(
      wouldOvershoot({ tokens: 0, cost_usd: 0 }, [], { max_tokens: 1, max_cost_usd: 0.01 }),
    ).toBeUndefined()
  })

  test('a used-up budget stops even when this run has no history', () => {
    expect(wouldOvershoot({ tokens: 0, cost_usd: 5 }, [], { max_cost_usd: 5 })?.limit).toBe('max_cost_usd')
  })

  test('the cost forecast counts only priced iterations', () => {
    const history = [iteration(10, 2), iteration(10)]
    expect(wouldOvershoot({ tokens: 20, cost_usd: 2 }, history, { max_cost_usd: 3.5 })?.forecast).toBe(2)
  })

  test('a running agent is ended at 110 % of the limit, not before', () => {
    expect(isPastHardStop({ tokens: 1099, cost_usd: 0 }, { max_tokens: 1000 })).toBe(false)
    expect(isPastHardStop({ tokens: 1100, cost_usd: 0 }, { max_tokens: 1000 })).toBe(true)
    expect(isPastHardStop({ tokens: 9e9, cost_usd: 2.3 }, { max_cost_usd: 2 })).toBe(true)
    expect(isPastHardStop({ tokens: 9e9, cost_usd: 9e9 }, {})).toBe(false)
  })

  test('property: a loop of equal iterations never spends more than its limit, and stops when one more would break it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 1000 }), fc.integer({ min: 1, max: 20_000 }), (each, max) => {
        const history: { tokens_used: number }[] = []
        const spent = (): number => history.length * each
        while (!wouldOvershoot({ tokens: spent(), cost_usd: 0 }, history, { max_tokens: max })) {
          history.push({ tokens_used: each })
        }
        // The first is started blindly: it alone may be larger than the limit.
        expect(spent() <= max || history.length === 1).toBe(true)
        expect(spent() + each).toBeGreaterThan(max)
      }),
      { verbose: true },
    )
  })

  test('a run is judged by the sum of its iterations', () => {
    expect(overshoots({ max_tokens: 100 }, [iteration(40), iteration(40)])).toContain(
      '--max-tokens would be broken',
    )
    expect(overshoots({ max_tokens: 120 }, [iteration(40), iteration(40)])).toBe('')
    expect(overshoots({ max_cost_usd: 1 }, [iteration(40, 0.5), iteration(40, 0.5)])).toContain('used up')
  })

  test('the reason names the flag, what was used, the forecast and the limit', () => {
    expect(describeOvershoot({ limit: 'max_tokens', used: 600, forecast: 300, max: 899 })).toBe(
      '--max-tokens would be broken: 600 tokens used, the next iteration takes about 300 tokens, the limit is 899 tokens',
    )
    expect(describeOvershoot({ limit: 'max_cost_usd', used: 5, forecast: 1, max: 5 })).toBe(
      '--max-cost is used up: $5.00 of $5.00',
    )
  })
})
