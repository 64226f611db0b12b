// How figures add up, and when a budget stops a loop.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { UsageFigures } from '../../src/core/usage.ts'
import {
  addUsage,
  disagrees,
  exceedsHardLimit,
  noUsage,
  overshoots,
  tokensUsed,
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
    expect(overshoots({ max_tokens: 900 }, history)).toBe('')
    expect(overshoots({ max_tokens: 899 }, history)).toBe(
      'the next attempt would exceed --max-tokens: 600 tokens of 899 tokens are used, an attempt takes about 300 tokens',
    )
  })

  test('B1: an estimate alone stops nothing before it has reached the limit itself', () => {
    const guess = (tokens: number, cost?: number) => ({ ...iteration(tokens, cost), tokens_estimated: true })
    expect(overshoots({ max_tokens: 40_000 }, [guess(25_595)])).toBe('')
    expect(overshoots({ max_tokens: 40_000 }, [guess(25_595), iteration(10_000)])).toBe('')
    expect(overshoots({ max_tokens: 40_000 }, [guess(25_595), guess(14_405)])).toContain('is used up')
    expect(overshoots({ max_tokens: 40_000 }, [guess(100), iteration(20_001)])).toContain('would exceed')
    expect(overshoots({ max_cost_usd: 1 }, [guess(9, 0.7)])).toBe('')
    expect(overshoots({ max_cost_usd: 1 }, [guess(9, 0.7), guess(9, 0.3)])).toContain('is used up')
  })

  test('the first iteration starts under any limit, because nothing is known of it', () => {
    expect(overshoots({ max_tokens: 1, max_cost_usd: 0.01 }, [])).toBe('')
  })

  test('a used-up budget says so', () => {
    expect(overshoots({ max_cost_usd: 1 }, [iteration(40, 0.5), iteration(40, 0.5)])).toBe(
      '--max-cost is used up: $1.00 of $1.00',
    )
  })

  test('an iteration without a price is taken at the mean price of the others, never as free', () => {
    expect(overshoots({ max_cost_usd: 5 }, [iteration(10, 2), iteration(10)])).toBe(
      'the next attempt would exceed --max-cost: $4.00 of $5.00 are used, an attempt takes about $2.00',
    )
    expect(exceedsHardLimit({ max_cost_usd: 5 }, [iteration(10, 2)], figures(17, 0))).toBe(false)
    expect(exceedsHardLimit({ max_cost_usd: 5 }, [iteration(10, 2)], figures(18, 0))).toBe(true)
  })

  test('a limit in dollars with tokens that nobody can price is no limit: it says so', () => {
    expect(overshoots({ max_cost_usd: 5 }, [iteration(0), iteration(10)])).toBe(
      '--max-cost cannot be kept: 10 tokens are used, and their price is not known',
    )
    expect(overshoots({ max_cost_usd: 5 }, [iteration(0)])).toBe('')
  })

  test('a running agent is ended at 110 % of the limit, not before', () => {
    const past = [iteration(600, 1)]
    expect(exceedsHardLimit({ max_tokens: 1000 }, past, figures(400, 99))).toBe(false)
    expect(exceedsHardLimit({ max_tokens: 1000 }, past, figures(400, 100))).toBe(true)
    expect(exceedsHardLimit({ max_cost_usd: 2 }, past, figures(9e9, 0, 1.1))).toBe(false)
    expect(exceedsHardLimit({ max_cost_usd: 2 }, past, figures(1, 0, 1.3))).toBe(true)
    expect(exceedsHardLimit({}, past, figures(9e9, 9e9, 9e9))).toBe(false)
  })

  test('property: a loop of equal iterations stays within its limit and stops when one more would break it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 1000 }), fc.integer({ min: 1, max: 20_000 }), (each, max) => {
        const history: { tokens_used: number }[] = []
        while (overshoots({ max_tokens: max }, history) === '') history.push({ tokens_used: each })
        const spent = history.length * each
        // The first is started blindly: it alone may be larger than the limit.
        expect(spent <= max || history.length === 1).toBe(true)
        expect(spent + each).toBeGreaterThan(max)
      }),
      { verbose: true },
    )
  })
})
