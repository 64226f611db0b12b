// Token and cost figures: how they add up, and when a budget says stop.
import { z } from 'zod'

/** `input_tokens` never contains cached ones: agents that report them together (Codex, Gemini) are split on reading. */
export const usageSchema = z.object({
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cache_read_tokens: z.number().int().nonnegative(),
  cache_creation_tokens: z.number().int().nonnegative(),
  /** The agent's own figure; absent when it gave none ("unpriced" is never 0). */
  cost_usd: z.number().nonnegative().optional(),
})
export type UsageFigures = z.infer<typeof usageSchema>

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
  const sum = { ...noUsage }
  for (const part of figures) {
    sum.input_tokens += part.input_tokens
    sum.output_tokens += part.output_tokens
    sum.cache_read_tokens += part.cache_read_tokens
    sum.cache_creation_tokens += part.cache_creation_tokens
    if (part.cost_usd !== undefined) sum.cost_usd = (sum.cost_usd ?? 0) + part.cost_usd
  }
  return sum
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

export interface Spent {
  readonly tokens: number
  readonly cost_usd: number
}

interface SpentIteration {
  readonly tokens_used: number
  readonly cost_usd?: number | undefined
}

export interface Overshoot {
  readonly limit: 'max_tokens' | 'max_cost_usd'
  readonly used: number
  /** What the next iteration is expected to use: the mean of this run's iterations that used any. */
  readonly forecast: number
  readonly max: number
}

/** The reason not to start another iteration, in one sentence; empty when the budget allows it. */
export function overshoots(limits: BudgetLimits, iterations: readonly SpentIteration[]): string {
  const over = wouldOvershoot(spentBy(iterations), iterations, limits)
  return over === undefined ? '' : describeOvershoot(over)
}

export function spentBy(iterations: readonly SpentIteration[]): Spent {
  return {
    tokens: iterations.reduce((sum, iteration) => sum + iteration.tokens_used, 0),
    cost_usd: iterations.reduce((sum, iteration) => sum + (iteration.cost_usd ?? 0), 0),
  }
}

/** Before a spawn: the limit that the next iteration would break, if its kind so far is anything to go by. */
export function wouldOvershoot(
  spent: Spent,
  iterations: readonly SpentIteration[],
  limits: BudgetLimits,
): Overshoot | undefined {
  const checks = [
    {
      limit: 'max_tokens',
      used: spent.tokens,
      max: limits.max_tokens,
      history: iterations.map((iteration) => iteration.tokens_used),
    },
    {
      limit: 'max_cost_usd',
      used: spent.cost_usd,
      max: limits.max_cost_usd,
      history: iterations.map((iteration) => iteration.cost_usd ?? 0),
    },
  ] as const
  for (const { limit, used, max, history } of checks) {
    if (max === undefined) continue
    const forecast = meanOfPositive(history)
    if (used >= max || used + forecast > max) return { limit, used, forecast, max }
  }
  return undefined
}

/** During a run: a tenth over the limit ends the agent, whatever it is doing. `spent` includes the open iteration. */
export function isPastHardStop(spent: Spent, limits: BudgetLimits): boolean {
  const past = (used: number, max: number | undefined): boolean => max !== undefined && used >= max * 1.1
  return past(spent.tokens, limits.max_tokens) || past(spent.cost_usd, limits.max_cost_usd)
}

export function describeOvershoot(over: Overshoot): string {
  const [flag, show] =
    over.limit === 'max_tokens'
      ? (['--max-tokens', (value: number) => `${Math.round(value)} tokens`] as const)
      : (['--max-cost', (value: number) => `$${value.toFixed(2)}`] as const)
  if (over.used >= over.max) return `${flag} is used up: ${show(over.used)} of ${show(over.max)}`
  return `${flag} would be broken: ${show(over.used)} used, the next iteration takes about ${show(over.forecast)}, the limit is ${show(over.max)}`
}

function meanOfPositive(values: readonly number[]): number {
  const positive = values.filter((value) => value > 0)
  return positive.length === 0 ? 0 : positive.reduce((sum, value) => sum + value, 0) / positive.length
}
