// The report as Markdown, for a pull request or a wiki.
import type { RunReport } from '../../core/report.ts'
import {
  aboutOf,
  costWord,
  filesWord,
  iterationsTable,
  notesOf,
  storiesTable,
  storyLabel,
  verdictKinds,
} from './report-words.ts'
import type { Cell, Table } from './report-words.ts'
import { clean, clip, duration, oneLine, plural, tokenWords } from './text.ts'

export function reportMarkdown(report: RunReport): string {
  const { totals } = report
  const figures = [
    `${String(report.stories_done)} of ${plural(report.stories_total, 'story', 'stories')} done`,
    plural(totals.iterations, 'iteration'),
    tokenWords(totals),
    costWord(totals),
    `${duration(totals.duration_ms)} of agent time in ${duration(report.wall_ms)}`,
  ].filter((word) => word !== '-')
  const notes = [...aboutOf(report).map(([name, words]) => `${name}: ${inline(words)}`), ...notesOf(report)]
  return [
    `# ralph: ${inline(report.change_id)}`,
    '',
    `**${report.status}**${report.reason === '' ? '' : `: ${paragraph(report.reason)}`}`,
    '',
    `${figures.join(' · ')}${report.started === '' ? '' : ` · ${report.started} to ${report.ended}`}`,
    ...(notes.length > 0 ? ['', ...notes.map((line) => `- ${line}`)] : []),
    '',
    '## Stories',
    '',
    ...table(storiesTable(report)),
    '',
    ...filesSection(report),
    ...(totals.iterations > 0 ? ['## Attempts', '', ...table(iterationsTable(report)), ''] : []),
  ].join('\n')
}

function filesSection({ stories }: RunReport): readonly string[] {
  const lines = stories.flatMap((story) =>
    filesWord(story) === '' ? [] : [`- ${inline(storyLabel(story))}: ${inline(filesWord(story))}`],
  )
  return lines.length === 0 ? [] : ['## Files', '', ...lines, '']
}

function table({ heads, rows }: Table): readonly string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const sides = heads.map((_, column) => (rows[0]?.[column]?.isNumber === true ? '---:' : '---'))
  return [
    line(heads.map((head) => head.toLowerCase())),
    `|${sides.join('|')}|`,
    ...rows.map((cells) => line(cells.map(cellText))),
  ]
}

function cellText({ text, kind, isLong, isNumber }: Cell): string {
  if (kind !== undefined) return `${verdictKinds[kind].sign} ${text}`
  if (isNumber === true) return text
  return isLong === true ? paragraph(text) : inline(text)
}

/** Its lines below one another; of a long one its beginning and its end, where the cause is. */
function paragraph(text: string): string {
  const lines = clean(text)
    .split('\n')
    .filter((line) => line.trim() !== '')
  const left = lines.length - first - last
  const shown =
    left <= 1
      ? lines
      : [...lines.slice(0, first), `… ${String(left)} lines …`, ...lines.slice(lines.length - last)]
  return shown.map((line) => inline(clip(line, longest))).join('<br>')
}

const first = 3
const last = 5
const longest = 400

/** An agent's reason must not start a table column, a link, an image or markup of its own. */
function inline(text: string): string {
  return oneLine(text).replaceAll(/[\\`*_{}[\]<>()#!|~&]/g, (sign) => `\\${sign}`)
}
