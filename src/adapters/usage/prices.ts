// What tokens cost, from a price table that ships with the program; a model it does not know is unpriced, never free.
import type * as Prices from '@pydantic/genai-prices'
import type { UsageFigures } from '../../core/usage.ts'
import { tokensUsed } from '../../core/usage.ts'

/** For refusing --max-cost: Claude Code reports its own cost, whatever the model. */
export async function canPrice(model: string | undefined, agent?: string): Promise<boolean> {
  if (agent === 'claude') return true
  return model !== undefined && (await costUsd(model, oneToken)) !== undefined
}

/**
 * Of many answers together. Long requests cost more by the token (Claude Sonnet: twice as much from 200,000 on), but a turn is
 * hundreds of short ones: without their sizes the plain price is nearest to the truth.
 */
export async function turnCostUsd(model: string, figures: UsageFigures): Promise<number | undefined> {
  const input = figures.input_tokens + figures.cache_read_tokens + figures.cache_creation_tokens
  const answers = Math.max(1, Math.ceil(input / shortRequestTokens))
  const cost = await costUsd(model, {
    input_tokens: figures.input_tokens / answers,
    output_tokens: figures.output_tokens / answers,
    cache_read_tokens: figures.cache_read_tokens / answers,
    cache_creation_tokens: figures.cache_creation_tokens / answers,
  })
  return cost === undefined ? undefined : cost * answers
}

const shortRequestTokens = 100_000

/** Of one answer. Undefined: unpriced. No network. */
export async function costUsd(model: string, figures: UsageFigures): Promise<number | undefined> {
  if (model === '') return undefined
  const { calcPrice } = await (prices ??= import('@pydantic/genai-prices'))
  const usage = {
    // The table's input contains the cached tokens, ours does not.
    input_tokens: figures.input_tokens + figures.cache_read_tokens + figures.cache_creation_tokens,
    output_tokens: figures.output_tokens,
    cache_read_tokens: figures.cache_read_tokens,
    cache_write_tokens: figures.cache_creation_tokens,
  }
  const known = found.get(model)
  if (known !== undefined) return calcPrice(usage, known.name, { provider: known.provider })?.total_price
  // OpenCode writes `provider/model`; the table has both kinds of names.
  for (const name of [model, model.slice(model.indexOf('/') + 1)]) {
    const price = calcPrice(usage, name)
    if (price === null) continue
    found.set(model, { name, provider: { ...price.provider, models: [price.model] } })
    return price.total_price
  }
  return undefined
}

/** The agent's own figure. OpenCode writes 0 for a model whose price it does not know: tokens that cost nothing are unpriced. */
export function ownCost(figures: UsageFigures | undefined): number | undefined {
  const isUnknown = figures?.cost_usd === 0 && tokensUsed(figures) > 0
  return isUnknown ? undefined : figures?.cost_usd
}

/** 830 kB of table: loaded only where a price is asked for. */
let prices: Promise<typeof Prices> | undefined

/** Looking a model up goes through the whole table, 0.7 ms each time; a session has thousands of answers. */
const found = new Map<string, { readonly name: string; readonly provider: Prices.Provider }>()

/** The agent's own figure where a record has one; undefined as soon as one record cannot be priced. */
export async function costOfRecords(
  records: readonly { readonly model: string; readonly figures: UsageFigures }[],
  /** Of records that do not name theirs. */
  otherwise: string | undefined,
): Promise<number | undefined> {
  let total: number | undefined
  for (const { model, figures } of records) {
    // Claude Code writes its own notices as answers of a model called <synthetic>, with no tokens.
    if (tokensUsed(figures) === 0) continue
    const cost = ownCost(figures) ?? (await costUsd(model || (otherwise ?? ''), figures))
    if (cost === undefined) return undefined
    total = (total ?? 0) + cost
  }
  return total
}

const oneToken: UsageFigures = {
  input_tokens: 1,
  output_tokens: 1,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
}
