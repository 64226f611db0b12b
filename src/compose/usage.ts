// `ralph usage` and `ralph report`: what the agents used, from their session files and from the run's own history.
import { usageSince } from '../adapters/usage/usage-since.ts'
import { runReport } from '../core/report.ts'
import { turnsOf } from '../core/turns.ts'
import type { UsageReport, UsageRequest } from '../ui/app.ts'
import { reportHtml } from '../ui/print/report-html.ts'
import { reportMarkdown } from '../ui/print/report-md.ts'
import { reportText } from '../ui/print/report-text.ts'
import { usageText } from '../ui/print/report-usage.ts'
import { must } from './choose.ts'
import { knownRuns } from './site.ts'
import type { Site } from './site.ts'

export async function usageReport(site: Site, request: UsageRequest): Promise<UsageReport> {
  const runs = await knownRuns(site)
  const worktrees = [...new Set([site.git.worktree, ...runs.map((run) => run.state.worktree)])]
  const summary = await usageSince({
    worktrees,
    env: site.env,
    clock: site.clock,
    since: request.since,
    by: request.by,
    turns: runs.flatMap((run) => turnsOf(run.state.iterations, run.events)),
  })
  return { json: { ...summary }, text: (columns) => usageText(summary, columns) }
}

export async function runReportAs(
  site: Site,
  change: string | undefined,
  format: 'md' | 'html' | 'json' | 'text',
  columns: number,
): Promise<string> {
  const { state } = await must(site, change)
  const report = runReport({
    change_id: state.changeId,
    status: state.status,
    reason: state.outcome?.reason ?? '',
    stories: state.stories,
    iterations: state.iterations,
  })
  switch (format) {
    case 'md':
      return reportMarkdown(report)
    case 'html':
      return reportHtml(report)
    case 'json':
      return `${JSON.stringify(report, null, 2)}\n`
    case 'text':
      return reportText(report, columns)
  }
}
