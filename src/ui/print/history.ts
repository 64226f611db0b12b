// Every iteration of a run as a table, what each story took, and what went into attempts that were not kept.
import { countAttempts, runReport } from '../../core/report.ts'
import type { RunReport } from '../../core/report.ts'
import type { History } from '../app.ts'
import type { Paint } from '../io.ts'
import { verdictName, verdictWord } from '../vocabulary.ts'
import { earlierLines } from './earlier.ts'
import { costWord, notesOf, timeWord } from './report-words.ts'
import { table } from './table.ts'
import { clockTime, duration, excerpt, plural, tokenWord, tokenWords } from './text.ts'

export function historyText(
  { change_id: change, iterations, earlier_runs: earlier }: History,
  paint: Paint,
): string {
  if (iterations.length === 0)
    return [`no iteration of ${change} has ended yet`, ...earlierLines(earlier, paint)].join('\n')
  const rows = iterations.map((iteration) => [
    String(iteration.n),
    clockTime(iteration.started),
    iteration.story_id,
    String(iteration.attempt),
    { text: verdictName(iteration.verdict), paint: () => verdictWord(iteration.verdict, paint) },
    duration(iteration.duration_ms),
    tokenWord({ ...iteration, tokens: iteration.tokens_used }),
    costWord({ cost_usd: iteration.cost_usd, tokens: iteration.tokens_used }),
    { text: excerpt(iteration.reason, 70), paint: paint.dim },
  ])
  const report = runReport({ change_id: change, status: 'stopped', reason: '', stories: [], iterations })
  return [
    table(['n', 'at', 'story', 'attempt', 'verdict', 'took', 'tokens', 'cost', 'reason'], rows, paint),
    ...(report.stories.length > 1 ? ['', storyTable(report, paint), ''] : []),
    totalLine(report),
    ...notesOf(report),
    ...earlierLines(earlier, paint),
  ].join('\n')
}

function storyTable(report: RunReport, paint: Paint): string {
  const rows = report.stories.map((story) => [
    story.story_id,
    String(countAttempts(story.attempts)),
    timeWord(story),
    tokenWord(story),
    costWord(story),
    story.not_kept.iterations === 0
      ? '-'
      : [tokenWords(story.not_kept), costWord(story.not_kept)].filter((word) => word !== '-').join(', '),
  ])
  return table(['story', 'attempts', 'took', 'tokens', 'cost', 'not kept'], rows, paint)
}

function totalLine({ totals }: RunReport): string {
  const figures = [
    plural(totals.iterations, 'iteration'),
    duration(totals.duration_ms),
    tokenWords(totals),
    costWord(totals),
  ]
  return figures.filter((word) => word !== '-').join(', ')
}
