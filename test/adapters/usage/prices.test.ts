// What tokens cost: the agent's own figure, else the table, and never 0 for a price that nobody knows.
import { describe, expect, test } from 'vitest'
import { canPrice, costOfRecords, costUsd, ownCost, turnCostUsd } from '../../../src/adapters/usage/prices.ts'
import { noUsage } from '../../../src/core/usage.ts'

const short = { ...noUsage, input_tokens: 100_000 }

describe('prices', () => {
  test('a known model has its list price, with or without its provider in front; an unknown one has none', async () => {
    expect(await costUsd('claude-sonnet-4-5', short)).toBeCloseTo(0.3)
    expect(await costUsd('anthropic/claude-sonnet-4-5', short)).toBeCloseTo(0.3)
    expect(await costUsd('house-model-7', short)).toBeUndefined()
    expect(await costUsd('', short)).toBeUndefined()
  })

  test('a long request costs more by the token; a turn of many short ones does not', async () => {
    const turn = { ...short, cache_read_tokens: 10_000_000, output_tokens: 5000 }
    // 0.1 M x $3 + 10 M x $0.30 + 5,000 x $15 by the million.
    expect(await turnCostUsd('claude-sonnet-4-5', turn)).toBeCloseTo(3.375)
    expect(await costUsd('claude-sonnet-4-5', turn)).toBeGreaterThan(6)
    expect(await turnCostUsd('claude-sonnet-4-5', short)).toBeCloseTo(0.3)
    expect(await turnCostUsd('house-model-7', turn)).toBeUndefined()
  })

  test('an agent that says 0 for tokens it used does not know the price', () => {
    expect(ownCost({ ...short, cost_usd: 0 })).toBeUndefined()
    expect(ownCost({ ...noUsage, cost_usd: 0 })).toBe(0)
    expect(ownCost({ ...short, cost_usd: 0.2 })).toBe(0.2)
    expect(ownCost(short)).toBeUndefined()
  })

  test('such an answer is priced by the table, and one that the table does not know leaves the whole unpriced', async () => {
    const free = (model: string) => ({ model, figures: { ...short, cost_usd: 0 } })
    expect(await costOfRecords([free('claude-sonnet-4-5')], undefined)).toBeCloseTo(0.3)
    expect(await costOfRecords([free('claude-sonnet-4-5'), free('house-model-7')], undefined)).toBeUndefined()
    expect(await costOfRecords([free('')], 'claude-sonnet-4-5')).toBeCloseTo(0.3)
  })

  test('--max-cost can be kept with Claude Code, which tells its cost, and with models of the table', async () => {
    expect(await canPrice(undefined, 'claude')).toBe(true)
    expect(await canPrice('gpt-5', 'codex')).toBe(true)
    expect(await canPrice(undefined, 'codex')).toBe(false)
    expect(await canPrice('house-model-7', 'command')).toBe(false)
  })
})
