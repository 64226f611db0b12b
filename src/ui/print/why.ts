// The decisions of a run, each with the rule that made it and what the rule looked at.
import type { Decisions } from '../app.ts'
import type { Paint } from '../io.ts'
import { earlierLines } from './earlier.ts'
import { clip, clockTime, oneLine } from './text.ts'

export function whyText(
  { change_id: change, decisions, earlier_runs: earlier }: Decisions,
  paint: Paint,
): string {
  if (decisions.length === 0) return `no decision of a loop on ${oneLine(change)} is on record`
  const lines = decisions.map(({ time, n, decision, rule, inputs }) => {
    const where = n === undefined ? '' : ` iteration ${String(n)}`
    const facts = Object.entries(inputs).map(
      ([name, value]) => `${name}=${clip(oneLine(factText(value)), 100)}`,
    )
    return [
      `${paint.dim(clockTime(time) + where)} ${paint.bold(oneLine(decision))}`,
      `  rule: ${oneLine(rule)}`,
      ...(facts.length === 0 ? [] : [paint.dim(`  from: ${facts.join(', ')}`)]),
    ].join('\n')
  })
  return [...lines, ...earlierLines(earlier, paint)].join('\n')
}

function factText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none')
}
