// Token and cost figures: how they add up, and when a budget says stop.

/** `input_tokens` never contains cached ones: agents that report them together (Codex, Gemini) are split on reading. */
export interface UsageFigures {
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_creation_tokens: number
  /** The agent's own figure; absent when it gave none ("unpriced" is never 0). */
  cost_usd?: number | undefined
}

export const noUsage: UsageFigures = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
}

/** What a budget counts: cached tokens made an earlier tool's totals 18 times too big. */
export function tokensUsed(figures: UsageFigures): number {
  return figures.input_tokens + figures.output_tokens
}

/** The cost is the sum of the known ones, and absent when none is known. */
export function addUsage(figures: Iterable<UsageFigures>): UsageFigures {
  const total = { ...noUsage }
  for (const part of figures) {
    total.input_tokens += part.input_tokens
    total.output_tokens += part.output_tokens
    total.cache_read_tokens += part.cache_read_tokens
    total.cache_creation_tokens += part.cache_creation_tokens
    if (part.cost_usd !== undefined) total.cost_usd = (total.cost_usd ?? 0) + part.cost_usd
  }
  return total
}

/** Whether two measurements of the same turn differ by more than a fifth of the larger. */
export function disagrees(one: UsageFigures, other: UsageFigures): boolean {
  const [a, b] = [tokensUsed(one), tokensUsed(other)]
  return Math.abs(a - b) > 0.2 * Math.max(a, b)
}

// --- budgets ----------------------------------------------------------------------------------------------------

export interface BudgetLimits {
  readonly max_tokens?: number | undefined
  readonly max_cost_usd?: number | undefined
}

interface SpentIteration {
  readonly tokens_used: number
  readonly cost_usd?: number | undefined
}

/**
 * Before a spawn: the reason not to start another iteration, in one sentence; empty when the budget allows it.
 * The forecast is the mean of this run's iterations that used any, so the first one always starts.
 */
export function overshoots(limits: BudgetLimits, iterations: readonly SpentIteration[]): string {
  const tokens = iterations.map((iteration) => iteration.tokens_used)
  return (
    overshoot('--max-tokens', limits.max_tokens, tokens, (value) => `${Math.round(value)} tokens`) ||
    (limits.max_cost_usd !== undefined && isUnpriced(iterations)
      ? `--max-cost cannot be kept: ${sum(tokens)} tokens are used, and their price is not known`
      : overshoot('--max-cost', limits.max_cost_usd, costs(iterations), (value) => `$${value.toFixed(2)}`))
  )
}

function isUnpriced(iterations: readonly SpentIteration[]): boolean {
  const used = iterations.filter((iteration) => iteration.tokens_used > 0)
  return used.length > 0 && used.every((iteration) => iteration.cost_usd === undefined)
}

/** What came without a price is taken at the mean price of the rest: for a limit a guess is better than nothing, and 0 is worse. */
function costs(iterations: readonly SpentIteration[]): readonly number[] {
  const priced = iterations.filter((iteration) => iteration.cost_usd !== undefined)
  const tokens = sum(priced.map((iteration) => iteration.tokens_used))
  const perToken = tokens === 0 ? 0 : sum(priced.map((iteration) => iteration.cost_usd ?? 0)) / tokens
  return iterations.map((iteration) => iteration.cost_usd ?? iteration.tokens_used * perToken)
}

/** During a run, at each usage event: a tenth over the limit ends the agent, whatever it is doing. `open` is the running turn so far. */
export function exceedsHardLimit(
  limits: BudgetLimits,
  iterations: readonly SpentIteration[],
  open: UsageFigures,
): boolean {
  const all = [...iterations, { tokens_used: tokensUsed(open), cost_usd: open.cost_usd }]
  const tokens = sum(all.map((iteration) => iteration.tokens_used))
  const cost = sum(costs(all))
  const isPast = (used: number, max: number | undefined): boolean => max !== undefined && used >= max * 1.1
  return isPast(tokens, limits.max_tokens) || isPast(cost, limits.max_cost_usd)
}

function overshoot(
  flag: string,
  max: number | undefined,
  history: readonly number[],
  show: (value: number) => string,
): string {
  if (max === undefined) return ''
  const used = sum(history)
  if (used >= max) return `${flag} is used up: ${show(used)} of ${show(max)}`
  const positive = history.filter((value) => value > 0)
  const forecast = positive.length === 0 ? 0 : sum(positive) / positive.length
  if (used + forecast <= max) return ''
  return `${flag} would be broken: ${show(used)} used, the next iteration takes about ${show(forecast)}, the limit is ${show(max)}`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
