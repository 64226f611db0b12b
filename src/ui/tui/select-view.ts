// The first screen as it is drawn: a row for each change, and the keys.
import { keepsWork } from '../../core/report.ts'
import { clip, duration, oneLine, plural, since, usd, widthOf } from '../print/text.ts'
import { verdictName, workedMs } from '../vocabulary.ts'
import { editorLine, typedText } from './editor.ts'
import { bar, keyLine, sign, spinner, styleFor, viewOf } from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { chosen, shownRows } from './select.ts'
import type { SelectRow, SelectScreen } from './select.ts'
import { bold, cellsOf, clipLine, dim, fitLine, harmless, line, sides, span } from './spans.ts'
import type { Line } from './spans.ts'
import { wrapSpans } from './wrap.ts'

export function selectView(screen: SelectScreen, world: World, says: string): View {
  const { columns, rows: height } = world.size
  const rule = line(` ${'─'.repeat(columns - 2)}`, dim)
  const shown = shownRows(screen)
  const body = bodyLines(screen, shown, world)
  const room = height - 1 - 4
  const at = shown.findIndex(({ name }) => name === chosen(screen)?.name)
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), body.length - room))
  const part = body.slice(first, first + room)
  const filling = Array.from({ length: Math.max(0, room - part.length) }, (): Line => [])
  return viewOf(
    [headLine(screen, world), rule, ...part, ...filling, rule, footLine(screen, columns, says)],
    world.size,
  )
}

function headLine(screen: SelectScreen, { size, place }: World): Line {
  const branch = oneLine(harmless(screen.branch))
  const left = [span(' ralph', bold), span(`  ${place}`, dim), span(branch === '' ? '' : `  ${branch}`)]
  if (screen.isFiltering) {
    const right = [span('/ ', bold), ...editorLine(screen.filter, 20), span(' ')]
    return sides(left, right, size.columns)
  }
  const words = typedText(screen.filter)
  return sides(
    left,
    line(words === '' ? '/ filter ' : `/ ${words} `, words === '' ? dim : bold),
    size.columns,
  )
}

function bodyLines(screen: SelectScreen, shown: readonly SelectRow[], world: World): readonly Line[] {
  const { columns } = world.size
  if (screen.problem !== '')
    return wrapSpans(line(screen.problem), columns - 2, line(' ! ', styleFor('human')), '   ')
  if (screen.rows === undefined) return [line(` ${spinner(world.frame)} Reading the changes…`, dim)]
  if (screen.rows.length === 0)
    return [
      line(' There are no changes under openspec/changes yet.'),
      line(' Write one: openspec/changes/<name>/tasks.md', dim),
      line('   ## 1. A story', dim),
      line('   - [ ] 1.1 A task', dim),
    ]
  if (shown.length === 0)
    return [line(` No change has "${typedText(screen.filter)}" in its name. Esc shows all.`, dim)]
  const at = chosen(screen)
  const widths = {
    name: Math.min(mostName(columns), Math.max(...shown.map(({ name }) => widthOf(oneLine(name))))),
    word: Math.min(18, Math.max(...shown.map(({ word }) => widthOf(word)))),
    count: Math.max(...shown.map((row) => widthOf(countWords(row)))),
    when: Math.max(...shown.map((row) => widthOf(whenWords(row, world.nowMs)))),
  }
  return shown.map((row) => rowLine(row, row.name === at?.name, widths, world))
}

/** The rest of a row has to have room, too. */
function mostName(columns: number): number {
  return columns < 76 ? 18 : columns < 110 ? 30 : 60
}

function countWords({ storiesDone, storiesTotal }: SelectRow): string {
  return storiesTotal === 0 ? '' : `${String(storiesDone)}/${plural(storiesTotal, 'story', 'stories')}`
}

interface Widths {
  readonly name: number
  readonly word: number
  readonly count: number
  readonly when: number
}

function rowLine(row: SelectRow, isAt: boolean, widths: Widths, { size, nowMs }: World): Line {
  const { columns } = size
  const cells: Line = [
    span(isAt ? ' › ' : '   ', bold),
    ...fitLine(line(oneLine(harmless(row.name)), isAt ? bold : {}), widths.name),
    span('  '),
    ...sign(row.meaning),
    ...fitLine(line(` ${row.word}`, styleFor(row.meaning)), widths.word + 2),
    span(' '),
    ...fitLine(line(countWords(row)), widths.count),
    ...(columns >= 76 ? [span('  '), ...barOf(row)] : []),
    span('  '),
  ]
  const when = line(whenWords(row, nowMs), dim)
  const room = columns - 1 - cellsOf(cells) - widths.when - 3
  if (room < leastTitle) return clipLine([...cells, ...when], columns - 1)
  // A plan without a proposal is called by its folder's name.
  const title = row.title === row.name ? '' : clip(oneLine(harmless(row.title)), room)
  return [...cells, ...fitLine(when, widths.when), span(`   ${title}`)]
}

/** Of nothing there is no part. */
function barOf({ storiesDone, storiesTotal }: SelectRow): Line {
  return storiesTotal === 0 ? fitLine([], barCells) : bar(storiesDone, storiesTotal, barCells)
}

const barCells = 10

/** Of less than this nobody sees what it is. */
const leastTitle = 16

function whenWords(row: SelectRow, nowMs: number): string {
  const { report } = row
  const parts: string[] = []
  if (row.isRunning && report !== undefined) {
    const ms = Math.max(0, Math.floor(workedMs(report, nowMs) / 1000) * 1000)
    parts.push(ms === 0 ? '0 s' : duration(ms))
    if (report.cost_usd !== undefined && report.cost_usd > 0) parts.push(usd(report.cost_usd))
    if (report.where?.home !== undefined) parts.push('worktree')
  } else if (row.hasRun && report?.updated_at !== undefined) {
    parts.push(`${roughly(since(report.updated_at, nowMs))} ago`)
    const last = report.iterations.at(-1)
    // Only what went wrong with it: any other word would read as the state of the run.
    const isWrong = last !== undefined && !keepsWork[last.verdict] && last.verdict !== 'interrupted'
    if (row.isHalted && isWrong) parts.push(verdictName(last.verdict))
  } else if (!row.hasRun && row.editedAt !== undefined)
    parts.push(`edited ${roughly(since(row.editedAt, nowMs))} ago`)
  if (row.problem !== '') parts.push(clip(oneLine(harmless(row.problem)), 60))
  return parts.join('   ')
}

/** 3m 05s is 3 min, 26h 10m is 1 day. */
function roughly(exact: string): string {
  const hours = /^(\d+)h/.exec(exact)?.[1]
  if (hours !== undefined) {
    const days = Math.floor(Number(hours) / 24)
    return days > 0 ? plural(days, 'day') : `${hours} h`
  }
  const minutes = /^(\d+)m(?!s)/.exec(exact)?.[1]
  return minutes === undefined ? 'a moment' : `${minutes} min`
}

function footLine(screen: SelectScreen, columns: number, says: string): Line {
  if (screen.isFiltering)
    return keyLine(
      [
        ['enter', 'keep the filter'],
        ['esc', 'show all'],
      ],
      columns,
    )
  if (says !== '') return clipLine(line(` ${says}`, styleFor('waiting')), columns)
  const row = chosen(screen)
  const own: readonly KeyHint[] =
    row === undefined
      ? []
      : row.isRunning
        ? [['enter', 'join it']]
        : [
            ['enter', 'open'],
            ['r', row.isHalted ? 'resume' : 'run'],
            ...(row.hasRun ? ([['l', 'last run']] as const) : []),
          ]
  const all: readonly KeyHint[] = typedText(screen.filter) === '' ? [] : [['esc', 'show all']]
  const queue: readonly KeyHint[] = screen.hasQueue === true ? [['u', 'queue']] : []
  return keyLine([...own, ...queue, ['/', 'filter'], ...all, ['q', 'quit'], ['?', 'keys']], columns)
}
