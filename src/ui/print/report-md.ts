// The report as Markdown, for a pull request or a wiki.
import type { RunReport } from '../../core/report.ts'
import {
  aboutOf,
  countsOf,
  filesLines,
  iterationsTable,
  notesOf,
  reasonOf,
  stateOf,
  storiesTable,
  storyLabel,
  verdictKinds,
  whenOf,
} from './report-words.ts'
import type { Cell, Table } from './report-words.ts'
import { symbolOf } from '../vocabulary.ts'
import { clean, clip, oneLine } from './text.ts'

export function reportMarkdown(report: RunReport): string {
  const { totals } = report
  const [state, meaning] = stateOf(report)
  const reason = reasonOf(report)
  const facts = [...whenOf(report), ...aboutOf(report)].map(([name, words]) => `${name}: ${inline(words)}`)
  const notes = [...facts, ...notesOf(report).map(([name, words]) => `${name}: ${words}`)]
  return [
    `# ralph: ${inline(report.change_id)}`,
    '',
    `${symbolOf(meaning)} **${state}**: ${countsOf(report)}`,
    ...(reason === '' ? [] : ['', paragraph(reason)]),
    '',
    ...notes.map((line) => `- ${line}`),
    '',
    '## Stories',
    '',
    ...table(storiesTable(report)),
    '',
    ...filesSection(report),
    ...(totals.iterations > 0 ? ['## Attempts', '', ...table(iterationsTable(report)), ''] : []),
  ].join('\n')
}

function filesSection(report: RunReport): readonly string[] {
  const lines = report.stories.flatMap((story) =>
    filesLines(story, report).map((words) => `- ${inline(storyLabel(story))}: ${inline(words)}`),
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
  return oneLine(text).replaceAll(/[\\`*_[\]<#|~&]/g, (sign) => `\\${sign}`)
}
