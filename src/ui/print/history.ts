// Every iteration of a run as a table.
import type { History } from '../app.ts'
import type { Paint } from '../io.ts'
import { verdictWord, verdictWords } from './describe.ts'
import { table } from './table.ts'
import { clockTime, duration, excerpt, plural, tokens, usd } from './text.ts'

export function historyText({ change_id: change, iterations }: History, paint: Paint): string {
  if (iterations.length === 0) return `no iteration of ${change} has ended yet`
  const rows = iterations.map((iteration) => [
    String(iteration.n),
    clockTime(iteration.started),
    iteration.story_id,
    String(iteration.attempt),
    { text: verdictWords[iteration.verdict], paint: () => verdictWord(iteration.verdict, paint) },
    duration(iteration.duration_ms),
    `${iteration.tokens_estimated ? '~' : ''}${tokens(iteration.tokens_used)}`,
    iteration.cost_usd === undefined ? '-' : usd(iteration.cost_usd),
    { text: excerpt(iteration.reason, 70), paint: paint.dim },
  ])
  const used = iterations.reduce((sum, iteration) => sum + iteration.tokens_used, 0)
  const took = iterations.reduce((sum, iteration) => sum + iteration.duration_ms, 0)
  const total = `${plural(iterations.length, 'iteration')}, ${duration(took)}, ${tokens(used)} tokens`
  return `${table(['n', 'at', 'story', 'attempt', 'verdict', 'took', 'tokens', 'cost', 'reason'], rows, paint)}\n${total}`
}
