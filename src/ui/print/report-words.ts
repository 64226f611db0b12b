// The words that all forms of the report share, so that they say the same.
import type { RunReport, Spending } from '../../core/report.ts'
import type { Verdict } from '../../core/event.ts'
import { duration, plural, tokens, usd } from './text.ts'

/** What a reader sees first of a verdict: five kinds, each with a sign that does without colour. */
export const verdictKinds = {
  kept: { sign: '✓', meaning: 'kept' },
  failed: { sign: '✕', meaning: 'failed, or a gate did' },
  broken: { sign: '!', meaning: 'no promise, timeout, crash' },
  limit: { sign: '…', meaning: 'the provider’s limit' },
  stopped: { sign: '■', meaning: 'stopped' },
} as const
export type VerdictKind = keyof typeof verdictKinds

const kindOf: Readonly<Record<Verdict, VerdictKind>> = {
  complete: 'kept',
  partial: 'kept',
  progress: 'kept',
  kept: 'kept',
  failed: 'failed',
  gate_failed: 'failed',
  none: 'broken',
  timeout: 'broken',
  idle: 'broken',
  crash: 'broken',
  fatal: 'broken',
  error: 'broken',
  limit: 'limit',
  interrupted: 'stopped',
  budget: 'stopped',
}

export function verdictKind(verdict: Verdict): VerdictKind {
  return kindOf[verdict]
}

export function verdictWord(verdict: Verdict): string {
  return verdict === 'none' ? 'no promise' : verdict.replaceAll('_', ' ')
}

/** Unpriced is never $0.00, and nothing used is. */
export function costWord({
  cost_usd: cost,
  tokens: used,
}: {
  readonly cost_usd?: number | undefined
  readonly tokens: number
}): string {
  if (cost !== undefined) return usd(cost)
  return used > 0 ? 'unpriced' : '-'
}

export function timeWord(spent: Spending): string {
  return spent.iterations === 0 ? '-' : duration(spent.duration_ms)
}

export function tokenWord(attempt: { readonly tokens: number; readonly tokens_estimated: boolean }): string {
  return `${attempt.tokens_estimated ? '~' : ''}${tokens(attempt.tokens)}`
}

type Part = Omit<Spending, 'cost_usd'> & { readonly cost_usd?: number | undefined }

/** "2 of 5 iterations were not kept: 1.2k tokens (34%), $0.10, 4m 05s"; empty when all were. */
export function notKeptWords(whole: Pick<Spending, 'iterations' | 'tokens'>, part: Part): string {
  if (part.iterations === 0) return ''
  const share = whole.tokens > 0 ? ` (${String(Math.round((100 * part.tokens) / whole.tokens))}%)` : ''
  const were = part.iterations === 1 ? 'was' : 'were'
  const figures = [`${tokens(part.tokens)} tokens${share}`, costWord(part), duration(part.duration_ms)]
  return `${String(part.iterations)} of ${plural(whole.iterations, 'iteration')} ${were} not kept: ${figures.filter((word) => word !== '-').join(', ')}`
}

/** What the figures leave out or guess. */
export function caveats({ totals }: RunReport): readonly string[] {
  return [
    ...(totals.estimated > 0
      ? [`~ tokens of ${plural(totals.estimated, 'iteration')} are estimated from the size of session files`]
      : []),
    ...(totals.unpriced > 0
      ? [`the cost of ${plural(totals.unpriced, 'iteration')} is not known and not in the sum`]
      : []),
  ]
}
