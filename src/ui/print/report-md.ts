// The report as Markdown, for a pull request or a wiki.
import { countAttempts } from '../../core/report.ts'
import type { AttemptReport, RunReport, StoryReport } from '../../core/report.ts'
import {
  caveats,
  costWord,
  notKeptWords,
  timeWord,
  tokenWord,
  verdictKind,
  verdictKinds,
  verdictWord,
} from './report-words.ts'
import { duration, excerpt, oneLine, plural, tokens } from './text.ts'

export function reportMarkdown(report: RunReport): string {
  const { totals } = report
  const figures = [
    `${String(report.stories_done)} of ${plural(report.stories_total, 'story', 'stories')} done`,
    plural(totals.iterations, 'iteration'),
    `${tokens(totals.tokens)} tokens`,
    costWord(totals),
    `${duration(totals.duration_ms)} of agent time in ${duration(report.wall_ms)}`,
  ].filter((word) => word !== '-')
  const notes = [notKeptWords(totals, report.not_kept), ...caveats(report)].filter((line) => line !== '')
  return [
    `# ralph: ${inline(report.change_id)}`,
    '',
    `**${report.status}**${report.reason === '' ? '' : `: ${inline(report.reason)}`}`,
    '',
    `${figures.join(' · ')}${report.started === '' ? '' : ` · ${report.started} to ${report.ended}`}`,
    ...(notes.length > 0 ? ['', ...notes.map((line) => `- ${line}`)] : []),
    '',
    '## Stories',
    '',
    '| story | state | tasks | attempts | tokens | cost | not kept | time |',
    '|---|---|---:|---:|---:|---:|---:|---:|',
    ...report.stories.map(storyRow),
    '',
    ...(totals.iterations > 0
      ? [
          '## Iterations',
          '',
          '| # | story | attempt | verdict | tokens | cost | time | commits | reason |',
          '|---:|---|---:|---|---:|---:|---:|---:|---|',
          ...inOrder(report).map(([story, attempt]) => attemptRow(story, attempt)),
          '',
        ]
      : []),
  ].join('\n')
}

/** Every attempt with its story, as they happened. */
export function inOrder(report: RunReport): readonly (readonly [StoryReport, AttemptReport])[] {
  return report.stories
    .flatMap((story) => story.attempts.map((attempt) => [story, attempt] as const))
    .sort(([, a], [, b]) => a.n - b.n)
}

function storyRow(story: StoryReport): string {
  return row([
    inline(`${story.story_id} ${story.title}`),
    story.status || 'no longer planned',
    `${String(story.tasks_done)}/${String(story.tasks_total)}`,
    String(countAttempts(story.attempts)),
    tokens(story.tokens),
    costWord(story),
    story.not_kept.iterations === 0 ? '-' : `${tokens(story.not_kept.tokens)} (${costWord(story.not_kept)})`,
    timeWord(story),
  ])
}

function attemptRow(story: StoryReport, attempt: AttemptReport): string {
  return row([
    String(attempt.n),
    inline(story.story_id),
    String(attempt.attempt),
    `${verdictKinds[verdictKind(attempt.verdict)].sign} ${verdictWord(attempt.verdict)}`,
    tokenWord(attempt),
    costWord(attempt),
    duration(attempt.duration_ms),
    String(attempt.commits),
    inline(excerpt(attempt.reason, 120)),
  ])
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

/** An agent's reason must not start a table column, a link, an image or markup of its own. */
function inline(text: string): string {
  return oneLine(text).replaceAll(/[\\`*_{}[\]<>()#!|~&]/g, (sign) => `\\${sign}`)
}
