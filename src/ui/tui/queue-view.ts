// The merge queue's screen as it is drawn: the table, what is to say of the chosen change, and the keys.
import { queueColumns, queueCost, queueCounts, queueRows, queueWidths } from '../print/queue-rows.ts'
import type { QueueRow, QueueWidths } from '../print/queue-rows.ts'
import { wrapWords } from '../print/layout.ts'
import { oneLine } from '../print/text.ts'
import { keyLine, sign, spinner, styleFor, viewOf } from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { chosenEntry, hasLoop } from './queue.ts'
import type { QueueScreen } from './queue.ts'
import { bold, cellsOf, clipLine, dim, fitLine, harmless, line, sides, span } from './spans.ts'
import type { Line } from './spans.ts'

export function queueView(screen: QueueScreen, world: World, says: string, hasList: boolean): View {
  const { columns, rows: height } = world.size
  const rule = line(` ${'─'.repeat(columns - 2)}`, dim)
  const about = aboutLines(screen, world)
  const room = height - 1 - 4 - (about.length === 0 ? 0 : about.length + 1)
  const { heading, body, at } = tableLines(screen, world)
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), body.length - (room - heading.length)))
  const part = [...heading, ...body.slice(first, first + room - heading.length)]
  const filling = Array.from({ length: Math.max(0, room - part.length) }, (): Line => [])
  return viewOf(
    [
      headLine(screen, world),
      rule,
      ...part,
      ...filling,
      ...(about.length === 0 ? [] : [rule, ...about]),
      rule,
      footLine(screen, columns, says, hasList),
    ],
    world.size,
  )
}

function headLine({ report }: QueueScreen, { size, place }: World): Line {
  const target = report === undefined || report.target === '' ? '' : `  → ${oneLine(harmless(report.target))}`
  const left = [span(' ralph queue', bold), span(target)]
  const placed = [...left, span(`  ${place}`, dim)]
  if (report === undefined) return clipLine(placed, size.columns)
  const counts = line(`${queueCounts(report)} `)
  const right = [...counts, span(queueCost(report) === '' ? '' : `  ${queueCost(report)} `)]
  const fits = (...parts: readonly Line[]): boolean =>
    parts.reduce((sum, part) => sum + cellsOf(part), 2) <= size.columns
  if (fits(placed, right)) return sides(placed, right, size.columns)
  return sides(left, fits(left, right) ? right : counts, size.columns)
}

/** The least wanted first. */
const droppable: readonly (typeof queueColumns)[number][] = ['cost', 'attempt', 'elapsed', 'stories']
/** For the sign of the chosen row, that of its state, and a gap behind each column. */
const margin = 5
const leastWhy = 12

/** On a small screen some columns give way, so that one sees why something waits. */
function fittingWidths(all: QueueWidths, columns: number): QueueWidths {
  const used = (gone: ReadonlySet<string>): number =>
    queueColumns.reduce(
      (sum, column) => sum + (all[column] > 0 && !gone.has(column) ? all[column] + 2 : 0),
      margin,
    )
  const gone = new Set<string>()
  for (const column of droppable) if (used(gone) + leastWhy > columns - 1) gone.add(column)
  const widthIn = (column: keyof QueueWidths): number => (gone.has(column) ? 0 : all[column])
  return {
    change: all.change,
    state: all.state,
    stories: widthIn('stories'),
    attempt: widthIn('attempt'),
    elapsed: widthIn('elapsed'),
    cost: widthIn('cost'),
  }
}

function tableLines(
  screen: QueueScreen,
  { size, nowMs, frame }: World,
): { readonly heading: readonly Line[]; readonly body: readonly Line[]; readonly at: number } {
  const { report } = screen
  if (report === undefined)
    return { heading: [], body: [line(` ${spinner(frame)} Reading the queue…`, dim)], at: 0 }
  if (report.entries.length === 0)
    return {
      heading: [],
      body: [line(' The queue is empty.'), line(' Fill it with: ralph up, or ralph queue add <change>', dim)],
      at: 0,
    }
  const rows = queueRows(report, nowMs).map((row) => (size.columns < 100 ? shortState(row) : row))
  const widths = fittingWidths(queueWidths(rows), size.columns)
  const chosen = chosenEntry(screen)
  const shown = queueColumns.filter((column) => widths[column] > 0)
  return {
    heading: [
      clipLine(
        [
          span('     ', dim),
          ...shown.flatMap((column) => [...fitLine(line(column, dim), widths[column]), span('  ')]),
          span('why', dim),
        ],
        size.columns - 1,
      ),
    ],
    body: rows.map((row, at) =>
      rowLine(row, report.entries[at]?.change === chosen?.change, widths, size.columns),
    ),
    at: report.entries.findIndex(({ change }) => change === chosen?.change),
  }
}

/** Which commit it is, the result says. */
function shortState(row: QueueRow): QueueRow {
  return { ...row, state: row.state.split(' ')[0] ?? row.state }
}

function rowLine(row: QueueRow, isAt: boolean, widths: QueueWidths, columns: number): Line {
  const style = (column: (typeof queueColumns)[number]): Parameters<typeof line>[1] =>
    column === 'state' ? styleFor(row.meaning) : column === 'change' && isAt ? bold : {}
  const cells: Line = [
    span(isAt ? ' › ' : '   ', bold),
    ...sign(row.meaning),
    span(' '),
    ...queueColumns.flatMap((column) =>
      widths[column] === 0
        ? []
        : [...fitLine(line(oneLine(harmless(row[column])), style(column)), widths[column]), span('  ')],
    ),
  ]
  const why = line(oneLine(harmless(row.why)), dim)
  return cellsOf(cells) >= columns - 1
    ? clipLine(cells, columns - 1)
    : clipLine([...cells, ...why], columns - 1)
}

/** What has no room in a row: why the queue halted, the whole reason of the chosen change, and what to type. */
function aboutLines(screen: QueueScreen, { size, nowMs }: World): readonly Line[] {
  const { report } = screen
  // As in plain lines: a command that is to be copied is not broken.
  const wrapped = (text: string, head: Line): readonly Line[] =>
    text === ''
      ? []
      : wrapWords(oneLine(harmless(text)), size.columns - 5).map((part, at) =>
          at === 0 ? [...head, span(part)] : line(`   ${part}`),
        )
  if (screen.problem !== '') return wrapped(screen.problem, line(' ! ', styleFor('human')))
  if (report === undefined) return []
  const chosen = chosenEntry(screen)
  const row = queueRows(report, nowMs).find(({ change }) => change === chosen?.change)
  const halted =
    report.halted === undefined ? [] : wrapped(`halted: ${report.halted}`, line(' ! ', styleFor('human')))
  const isOpen = report.entries.some(({ state }) => !['landed', 'parked'].includes(state))
  const own = row === undefined || row.why === '' ? '' : `${row.change}: ${row.why}`
  return [
    ...halted,
    ...wrapped(own, line('   ')),
    ...(row === undefined ? [] : wrapped(shortHint(row), line('   '))),
    ...(report.alive || report.take === undefined
      ? []
      : wrapped(`${report.take}: ${report.target} is updated to what has landed`, line('   '))),
    ...(report.alive || screen.isOwn || !isOpen
      ? []
      : wrapped('It is not running now; continue with: ralph up', line('   '))),
  ].slice(0, Math.max(2, Math.floor(size.rows / 3)))
}

/** Lines to type have no room here, and cannot be copied from a frame. */
function shortHint({ change, hint }: QueueRow): string {
  return hint.includes('\n') ? `What to type: ralph status ${change}` : hint
}

function footLine(screen: QueueScreen, columns: number, says: string, hasList: boolean): Line {
  if (says !== '') return clipLine(line(` ${says}`, styleFor('waiting')), columns)
  const row = chosenEntry(screen)
  const own: readonly KeyHint[] =
    row === undefined || !hasLoop(row)
      ? []
      : [['enter', row.state === 'running' || row.state === 'resolving' ? 'join it' : 'look at its run']]
  const list: readonly KeyHint[] = hasList ? [['esc', 'all changes']] : []
  return keyLine(
    [...own, ...list, ['q', screen.isOwn ? 'stop ralph up; its loops continue' : 'quit'], ['?', 'keys']],
    columns,
  )
}
