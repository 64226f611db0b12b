// `ralph usage` for a person: the figures of wt-usage in words, then bars for the breakdown.
import type { UsageSummary } from '../../core/usage-summary.ts'
import { clip, oneLine, plural, tokens, usd, widthOf } from './text.ts'

export function usageText(summary: UsageSummary, columns: number): string {
  const { unpriced_models: unpriced, skipped, unreported = 0 } = summary
  // Nothing known is not nothing used.
  const isUnknown = summary.total_tokens === 0
  const number = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  const rows: readonly (readonly [name: string, value: string, note?: string])[] = [
    ['input', number(summary.input_tokens)],
    ['output', number(summary.output_tokens)],
    ['input + output', number(summary.api_tokens), 'what --max-tokens counts'],
    ['read from cache', number(summary.cache_read_tokens)],
    ['written to cache', number(summary.cache_creation_tokens)],
    ['all tokens', number(summary.total_tokens)],
    ['estimated cost', costText(summary.estimated_cost_usd, summary.total_tokens)],
  ]
  const width = Math.max(...rows.map(([, value]) => value.length))
  return [
    `${periods[summary.period]}${spanWords(summary)}`,
    ...(isUnknown
      ? []
      : rows.map(
          ([name, value, note]) =>
            `  ${name.padEnd(18)}${value.padStart(width)}${note === undefined ? '' : `  ${note}`}`,
        )),
    ...(isUnknown && unreported === 0 ? ['  no agent has answered in this project since then'] : []),
    ...(unreported === 0 ? [] : [`  ${plural(unreported, 'attempt')} reported no tokens`]),
    ...(unpriced.length > 0 ? [`  not in the cost (unpriced): ${unpriced.map(oneLine).join(', ')}`] : []),
    ...bars(summary, columns),
    ...skipped.map((reason) => `skipped: ${oneLine(reason)}`),
    '',
  ].join('\n')
}

const periods = { today: 'Usage today', week: 'Usage this week', custom: 'Usage' }

function spanWords({ since, until }: UsageSummary): string {
  const words = (stamp: string): string => stamp.slice(0, 16).replace('T', ' ')
  return `, since ${words(since)}${until === undefined ? '' : `, until ${words(until)}`}`
}

function bars({ by, breakdown }: UsageSummary, columns: number): readonly string[] {
  if (by === undefined || breakdown === undefined || breakdown.length === 0) return []
  const names = breakdown.map((row) => clip(oneLine(row.name), Math.max(8, Math.floor(columns / 2))))
  const nameWidth = Math.max(...names.map(widthOf))
  const largest = Math.max(...breakdown.map((row) => row.api_tokens), 1)
  // Name, two gaps of two, tokens in 7, cost in 9.
  const barWidth = Math.max(4, Math.min(48, columns - nameWidth - 24))
  return [
    '',
    `By ${by} (input + output)`,
    ...breakdown.map((row, index) => {
      const name = names[index] ?? ''
      const bar = barOf(row.api_tokens / largest, barWidth)
      const cost = costText(row.estimated_cost_usd, row.total_tokens)
      return `  ${name}${' '.repeat(nameWidth - widthOf(name))}  ${bar} ${tokens(row.api_tokens).padStart(7)}  ${cost}`
    }),
  ]
}

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** What is not nothing shows at least the thinnest bar. */
function barOf(share: number, width: number): string {
  const parts = share > 0 ? Math.max(1, Math.round(share * width * 8)) : 0
  const bar = '█'.repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? '')
  return bar.padEnd(width)
}

function costText(cost: number | undefined, total: number): string {
  if (cost === undefined) return total === 0 ? '$0.00' : 'unpriced'
  return usd(cost)
}
