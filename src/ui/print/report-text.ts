// The report for a terminal: stories with their attempts below them.
import type { AttemptReport, RunReport, StoryReport } from '../../core/report.ts'
import { verdictName } from '../vocabulary.ts'
import {
  aboutOf,
  costWord,
  filesWord,
  inOrder,
  notesOf,
  stateWord,
  storyLabel,
  timeWord,
  verdictKind,
  verdictKinds,
} from './report-words.ts'
import { clip, duration, excerpt, oneLine, plural, tokenWord, tokenWords, widthOf } from './text.ts'

export function reportText(report: RunReport, columns: number): string {
  const { totals } = report
  const figures = [
    plural(totals.iterations, 'iteration'),
    tokenWords(totals),
    costWord(totals),
    duration(totals.duration_ms),
  ].filter((word) => word !== '-')
  const verdicts = inOrder(report).map(([, { verdict }]) => verdictName(verdict).length)
  const verdictWidth = Math.max(0, ...verdicts)
  const lines = [
    `${oneLine(report.change_id)}: ${report.status}${report.reason === '' ? '' : `, ${oneLine(report.reason)}`}`,
    `${String(report.stories_done)}/${String(report.stories_total)} stories, ${figures.join(', ')}`,
    ...aboutOf(report).map(([name, words]) => `${name.padEnd(7)} ${oneLine(words)}`),
    ...notesOf(report),
    ...report.stories.flatMap((story) => [
      '',
      storyLine(story, columns),
      ...story.attempts.map((attempt) => attemptLine(attempt, verdictWidth)),
      ...(filesWord(story) === '' ? [] : [`       ${oneLine(filesWord(story))}`]),
    ]),
  ]
  return `${lines.map((line) => clip(line, columns)).join('\n')}\n`
}

function storyLine(story: StoryReport, columns: number): string {
  const figures = `${tokenWords(story)}  ${costWord(story)}  ${timeWord(story)}`
  const state = stateWord(story)
  const name = clip(oneLine(storyLabel(story)), Math.max(12, columns - figures.length - state.length - 6))
  const gap = Math.max(2, columns - widthOf(name) - state.length - figures.length - 4)
  return `${name}  ${state}${' '.repeat(gap)}${figures}`
}

function attemptLine(attempt: AttemptReport, verdictWidth: number): string {
  const { sign } = verdictKinds[verdictKind(attempt.verdict)]
  const words = [
    `#${String(attempt.n)}`.padStart(6),
    sign,
    verdictName(attempt.verdict).padEnd(verdictWidth),
    tokenWord(attempt).padStart(7),
    costWord(attempt).padStart(8),
    duration(attempt.duration_ms).padStart(8),
    excerpt(attempt.reason, 400),
  ]
  return words.join(' ').trimEnd()
}
