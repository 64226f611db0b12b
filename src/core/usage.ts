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
  readonly tokens_estimated?: boolean | undefined
  readonly cost_usd?: number | undefined
}

/**
 * Before a spawn: the reason not to start another iteration, in one sentence; empty when the budget allows it.
 * The forecast is the mean of this run's iterations that used any, so the first one always starts. It is made of measured figures
 * alone: an estimate ends a run only where it has reached the limit itself.
 */
export function overshoots(limits: BudgetLimits, iterations: readonly SpentIteration[]): string {
  if (!isLimited(limits)) return ''
  const spent = (used: readonly number[]): readonly Spent[] =>
    used.map((value, at) => ({ value, isGuess: iterations[at]?.tokens_estimated === true }))
  const tokens = iterations.map((iteration) => iteration.tokens_used)
  return (
    overshoot('--max-tokens', limits.max_tokens, spent(tokens), (value) => `${Math.round(value)} tokens`) ||
    (limits.max_cost_usd !== undefined && isUnpriced(iterations)
      ? `--max-cost cannot be kept: ${sum(tokens)} tokens are used, and their price is not known`
      : overshoot(
          '--max-cost',
          limits.max_cost_usd,
          spent(costs(iterations)),
          (value) => `$${value.toFixed(2)}`,
        ))
  )
}

/** Adding up a long run for nobody would make each iteration dearer than the one before. */
function isLimited({ max_tokens, max_cost_usd }: BudgetLimits): boolean {
  return max_tokens !== undefined || max_cost_usd !== undefined
}

interface Spent {
  readonly value: number
  readonly isGuess: boolean
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
  if (!isLimited(limits)) return false
  const all = [...iterations, { tokens_used: tokensUsed(open), cost_usd: open.cost_usd }]
  const tokens = sum(all.map((iteration) => iteration.tokens_used))
  const cost = sum(costs(all))
  const isPast = (used: number, max: number | undefined): boolean => max !== undefined && used >= max * 1.1
  return isPast(tokens, limits.max_tokens) || isPast(cost, limits.max_cost_usd)
}

function overshoot(
  flag: string,
  max: number | undefined,
  history: readonly Spent[],
  show: (value: number) => string,
): string {
  if (max === undefined) return ''
  const used = sum(history.map(({ value }) => value))
  if (used >= max) return `${flag} is used up: ${show(used)} of ${show(max)}`
  const measured = history.filter(({ value, isGuess }) => value > 0 && !isGuess).map(({ value }) => value)
  const forecast = measured.length === 0 ? 0 : sum(measured) / measured.length
  if (sum(measured) + forecast <= max) return ''
  return `the next attempt would exceed ${flag}: ${show(used)} of ${show(max)} are used, an attempt takes about ${show(forecast)}`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
