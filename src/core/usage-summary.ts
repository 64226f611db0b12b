// Adds up the answers of a span of time for `ralph usage`: the fields of wt-usage, a cost, and a breakdown.
import type { UsageFigures } from './usage.ts'
import { addUsage, tokensUsed } from './usage.ts'

export type UsageGroup = 'agent' | 'model' | 'story' | 'day'

/** One answer of a model; `figures.cost_usd` is absent where it has no price. Empty words mean: not known. */
export interface UsedAnswer extends Readonly<Record<UsageGroup, string>> {
  readonly figures: UsageFigures
}

interface UsageSums {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_tokens: number
  readonly cache_creation_tokens: number
  /** Input and output. */
  readonly api_tokens: number
  /** With the cached ones. */
  readonly total_tokens: number
  /** Of the answers that have a price; absent when none has. */
  readonly estimated_cost_usd?: number
}

export interface UsageSummary extends UsageSums {
  readonly period: 'custom' | 'today' | 'week'
  readonly since: string
  readonly until?: string
  /** Their tokens are in the sums, their cost is not. */
  readonly unpriced_models: readonly string[]
  readonly by?: UsageGroup
  /** Largest first; days in their order. */
  readonly breakdown?: readonly ({ readonly name: string } & UsageSums)[]
  /** Attempts of the span that no tokens are known of; absent where there is none. */
  readonly unreported?: number
  /** Why a source could not be read. */
  readonly skipped: readonly string[]
}

export interface UsageSpan extends Pick<UsageSummary, 'period' | 'since' | 'skipped'> {
  readonly until?: string | undefined
  readonly by?: UsageGroup | undefined
}

export function summarizeUsage(answers: readonly UsedAnswer[], span: UsageSpan): UsageSummary {
  const unpriced = answers.filter((answer) => answer.figures.cost_usd === undefined && hasTokens(answer))
  return {
    period: span.period,
    since: span.since,
    ...(span.until !== undefined && { until: span.until }),
    ...sums(answers),
    unpriced_models: [...new Set(unpriced.map((answer) => answer.model || 'unknown'))].sort(),
    ...(span.by !== undefined && { by: span.by, breakdown: breakdown(answers, span.by) }),
    skipped: span.skipped,
  }
}

function hasTokens(answer: UsedAnswer): boolean {
  return sums([answer]).total_tokens > 0
}

function sums(answers: readonly UsedAnswer[]): UsageSums {
  const { cost_usd, ...counts } = addUsage(answers.map((answer) => answer.figures))
  const api = tokensUsed(counts)
  return {
    ...counts,
    api_tokens: api,
    total_tokens: api + counts.cache_read_tokens + counts.cache_creation_tokens,
    ...(cost_usd !== undefined && { estimated_cost_usd: cost_usd }),
  }
}

function breakdown(answers: readonly UsedAnswer[], by: UsageGroup): NonNullable<UsageSummary['breakdown']> {
  const groups = new Map<string, UsedAnswer[]>()
  for (const answer of answers) {
    const name = answer[by] || (by === 'story' ? 'outside any loop' : 'unknown')
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [answer])
    else group.push(answer)
  }
  const rows = [...groups]
    .map(([name, group]) => ({ name, ...sums(group) }))
    .filter((row) => row.total_tokens > 0)
  return by === 'day'
    ? rows.sort((a, b) => (a.name < b.name ? -1 : 1))
    : rows.sort((a, b) => b.api_tokens - a.api_tokens)
}
