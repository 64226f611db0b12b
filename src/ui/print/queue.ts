// The merge queue for people: a line for each event in a pipe, a table on a terminal, and where everything stands at the end.
// Long because the words of an event and those of the end have to agree: a state that one names the other names, too.
import { setTimeout as delay } from 'node:timers/promises'
import { firstNames } from '../../core/first-names.ts'
import { cameWords } from '../../core/queue.ts'
import type { QueueEvent } from '../../core/queue-event.ts'
import type { QueueReport } from '../app.ts'
import type { Output, Paint } from '../io.ts'
import { doneState, inColourOf, mark, symbolOf } from '../vocabulary.ts'
import { gatelessWords, setUpWords } from './header.ts'
import { folded, wrapWords } from './layout.ts'
import type { Sheet } from './layout.ts'
import { queueColumns, queueCost, queueCounts, queueRows, queueWidths } from './queue-rows.ts'
import type { QueueRow, QueueWidths } from './queue-rows.ts'
import { stepLines } from './step-lines.ts'
import type { Step } from './step-lines.ts'
import { clean, clip, plural, widthOf } from './text.ts'

/** Empty where there is nothing to say. */
export function queueLine(event: QueueEvent): string {
  const said = wordsOf(event)
  return said === '' ? '' : `${event.time.slice(11, 19)} ${clean(said)}\n`
}

function wordsOf(event: QueueEvent): string {
  switch (event.type) {
    case 'queue.opened':
      return [
        [`queue → ${event.target}, ${event.jobs} at once`, ...provenWords(event)].join('; '),
        ...openedWords(event),
      ].join('\n')
    case 'queue.halted':
      return `! halted: ${event.why}`
    case 'entry.added':
      return `○ ${event.change}: added${event.after.length === 0 ? '' : `, after ${event.after.join(', ')}`}`
    case 'entry.removed':
      return `  ${event.change}: removed from the queue${event.why === undefined ? '' : `: ${event.why}`}`
    case 'gates.dropped':
      return `! ${event.change}: no longer a gate of it: ${event.gates.join(' | ')} (--verify names others)`
    case 'entry.first':
      return `  ${event.change}: goes first`
    case 'entry.retried':
      return `○ ${event.change}: was parked, is tried again`
    case 'entry.ordered':
      return `  ${event.change}: comes after ${event.after.join(', ')}`
    case 'entry.waiting':
      return `○ ${event.change}: ${event.why}`
    case 'entry.parked':
      return `! ${event.change}: parked: ${event.why}`
    case 'loop.spawned':
      return `▸ ${event.change}: its loop runs`
    case 'tree.set_up':
      return `  ${event.change}: ${event.for === 'landing' ? 'to land it, ' : ''}${setUpWords(event)}`
    case 'refs.held':
      return event.told.map((line) => `! ${event.change}: ${line}`).join('\n')
    case 'loop.ended':
      if (event.is_short) return `○ ${event.change}: its share of the budget is used up`
      return doneLine(event, 'its loop is done')
    case 'candidate.began':
      return `▸ ${event.change}: merging`
    case 'candidate.conflicted':
      return event.said === undefined
        ? `✕ ${event.change}: conflict in ${event.paths.join(', ')}; an agent merges both sides`
        : `✕ ${event.change}: its plan no longer fits the specs that landed (${event.said}); an agent brings it up to date`
    case 'candidate.regenerated':
      return `✓ ${event.change}: regenerated: ${event.paths.join(', ')}`
    case 'resolution.judged':
      return event.problems.length === 0
        ? `✓ ${event.change}: both sides are merged${event.beside === undefined ? '' : `; also changed: ${event.beside.join(', ')}`}`
        : `✕ ${event.change}: not yet: ${event.problems.join('; ')}`
    case 'candidate.built':
      return ''
    case 'candidate.gated':
      return event.outcome === 'passed'
        ? `✓ ${event.change}: gate passed: ${event.gate}${event.ran_no_tests ? ' (0 tests ran)' : ''}${event.flaky ? ' (it failed once, and passed when it ran again)' : ''}`
        : `✕ ${event.change}: gate ${event.outcome === 'failed' ? 'failed' : 'could not run'}: ${event.gate}`
    case 'base.moved':
      return event.came === undefined
        ? `▸ ${event.change}: the target or ralph/${event.change} moved meanwhile, so it is merged again`
        : `▸ ${event.change}: ${clean(cameWords(event.came))}; it is merged and tested again with that`
    case 'landing.began':
    case 'target.followed':
      return ''
    case 'entry.unlanded':
      return `! ${event.change}: ${event.why}`
    case 'queue.rebuilt':
      return `! the queue's journal was gone: from git, ${event.landed.map((each) => each.change).join(', ')} landed on ${event.target}; what else was in the queue is not known`
    case 'landed':
      return doneLine(event, `landed as ${event.commit.slice(0, 7)}`)
  }
}

/** As every other look calls it. */
function doneLine(
  { change, warnings = [] }: { readonly change: string; readonly warnings?: readonly string[] | undefined },
  what: string,
): string {
  const [, meaning] = doneState(warnings)
  return `${symbolOf(meaning)} ${change}: ${what}${warnings.length === 0 ? '' : `, but ${warnings.join('; ')}`}`
}

/** What there is to know before it begins, also where a table shows no lines. */
export function openedWords({ uncommitted, left = [] }: Opened): readonly string[] {
  return [
    ...uncommittedWords(uncommitted),
    ...(left.length === 0
      ? []
      : [
          `  ${left.map(clean).join(', ')}: in the queue, not named, left as ${left.length === 1 ? 'it is' : 'they are'}; with all of them: ralph up`,
        ]),
  ]
}

type Opened = Extract<QueueEvent, { type: 'queue.opened' }>

/** Who commits it meanwhile has the same boxes twice, and the two do not merge. */
export function uncommittedWords(changes: readonly string[] = []): readonly string[] {
  const [they, them, it] =
    changes.length === 1 ? ['the plan is', 'lands', 'it'] : ['the plans are', 'land', 'them']
  return changes.length === 0
    ? []
    : [
        `! ${changes.map(clean).join(', ')}: ${they} not committed and ${them} with the work; leave ${it} as ${it === 'it' ? 'it is' : 'they are'} until ralph queue pull`,
      ]
}

/** What all have to pass; what only some have to is named with them. */
function provenWords({ proven = [], gate_found: found }: Opened): readonly string[] {
  if (found !== undefined) return [gatelessWords(found)]
  const all = [...new Set(proven.flatMap(({ gates }) => gates))]
  if (all.length === 0) return []
  const named = all.map((gate) => {
    const by = proven.filter(({ gates }) => gates.includes(gate)).map(({ change }) => change)
    return by.length === proven.length ? gate : `${gate} (${by.join(', ')})`
  })
  const without = proven.filter(({ gates }) => gates.length === 0).map(({ change }) => change)
  return [
    `gates: ${named.join(' | ')}`,
    ...(without.length === 0 ? [] : [`${gatelessWords('')} for ${without.join(', ')}`]),
  ]
}

export interface Board {
  close(): Promise<void>
}

/** Redrawn in place, once a second, until it is closed; in a pipe only when something has changed. */
export function queueBoard(
  out: Output,
  paint: Paint,
  look: () => Promise<QueueReport>,
  now: () => number,
  /** How many rows the cursor was moved down by what was typed, since the last time. */
  typed: () => number,
): Board {
  const closed = new AbortController()
  let height = 0
  let last = ''
  const erased = (rows: number): string => (height === 0 ? '' : `\r\u001b[${height + rows}A\u001b[J`)
  const draw = async (): Promise<void> => {
    const columns = out.columns ?? Number.POSITIVE_INFINITY
    const rows = boardRows(await look(), paint, columns, now())
    const text = `${rows.join('\n')}\n`
    const below = typed()
    if (text === last && below === 0) return
    last = text
    // What does not fit would be drawn again above itself.
    const shown = rows.slice(0, Math.max(1, (out.rows ?? rows.length + 1) - 1))
    out.write(`${erased(below)}${shown.join('\n')}\n`)
    height = out.isTTY === true ? shown.length : 0
  }
  const drawing = (async () => {
    while (!closed.signal.aborted) {
      await draw()
      await delay(1000, undefined, { signal: closed.signal }).catch(() => undefined)
    }
    if (height > 0) out.write(erased(typed()))
  })()
  return {
    close: () => {
      closed.abort()
      return drawing
    },
  }
}

function cellsOf(row: QueueRow, widths: QueueWidths): string {
  return queueColumns
    .filter((column) => widths[column] > 0)
    .map((column) => {
      const text = clip(row[column], widths[column])
      return `${text}${' '.repeat(widths[column] - widthOf(text))}`
    })
    .join('  ')
}

const heading: QueueRow = {
  change: 'change',
  state: 'state',
  stories: 'stories',
  attempt: 'attempt',
  elapsed: 'elapsed',
  cost: 'cost',
  why: 'why',
  hint: '',
  meaning: 'open',
}

function headLine(report: QueueReport): string {
  return [`Queue for ${report.target}`, queueCounts(report), queueCost(report)]
    .filter((part) => part !== '')
    .join('   ')
}

/** For the live table: a line for each change, whatever there is to say. */
function boardRows(report: QueueReport, paint: Paint, columns: number, now: number): readonly string[] {
  const rows = queueRows(report, now)
  const widths = queueWidths(rows)
  const room = columns - 1
  const halted = report.halted === undefined ? [] : [clip(`! halted: ${clean(report.halted)}`, room)]
  return [
    paint.bold(clip(headLine(report), room)),
    ...halted,
    paint.dim(clip(`  ${cellsOf(heading, widths)}  why`, room)),
    ...rows.map((row) => {
      const text = `${cellsOf(row, widths)}  ${row.why}`.trimEnd()
      return `${mark(row.meaning, paint)} ${clip(text, room - 2)}`
    }),
  ]
}

/** Narrower than this a reason is read more easily on lines of its own. */
const leastRoom = 30

/** Where everything stands: each reason whole, and what to type. */
export function queueText(report: QueueReport, sheet: Sheet, now: number, isPulled = false): string {
  const { paint } = sheet
  const behind = report.take !== undefined && !isPulled ? `   your ${report.target} is not updated yet` : ''
  if (report.entries.length === 0) return 'The queue is empty. Fill it: ralph up, or ralph queue add <change>'
  const rows = queueRows(report, now)
  const widths = queueWidths(rows)
  const width = sheet.columns === undefined ? Infinity : sheet.columns - 1
  const left = 4 + widthOf(cellsOf(heading, widths))
  const isBeside = width - left >= leastRoom
  const indented = (text: string, style = (each: string) => each): readonly string[] =>
    text === '' ? [] : wrapWords(text, width - 4).map((line) => `    ${style(line)}`)
  // What is to be typed is indented, and copied whole: it is on a line of its own.
  const hinted = (text: string): readonly string[] =>
    text.split('\n').flatMap((line) => (line.startsWith(' ') ? [`    ${line}`] : indented(line, paint.dim)))
  const lines = rows.flatMap((row) => {
    const [first = '', ...more] = isBeside ? wrapWords(row.why, width - left) : []
    const cells = `${mark(row.meaning, paint)} ${cellsOf(row, widths)}  ${first}`.trimEnd()
    return [
      cells,
      ...more.map((line) => `${' '.repeat(left)}${line}`),
      ...(isBeside ? [] : indented(row.why)),
      ...hinted(row.hint),
    ]
  })
  const halted =
    report.halted === undefined
      ? []
      : folded(
          `halted${report.alive ? '' : ' when ralph up looked last'}: ${clean(report.halted)}`,
          sheet.columns,
          '  ',
        )
          .split('\n')
          .map((line, at) => (at === 0 ? `${inColourOf('human', '!', paint)} ${line.slice(2)}` : line))
  return [
    folded(`${headLine(report)}${behind}`, sheet.columns),
    ...halted,
    paint.dim(
      `  ${cellsOf(heading, widths)}${isBeside && rows.some(({ why }) => why !== '') ? '  why' : ''}`.trimEnd(),
    ),
    ...lines,
  ].join('\n')
}

/** Who works on it, and what to type next. */
export function queueNext(report: QueueReport, sheet: Sheet): readonly string[] {
  if (report.entries.length === 0) return []
  if (report.alive) return ['ralph up is at work; ralph queue --watch follows it']
  const isOpen = report.entries.some(({ state }) => !['landed', 'parked', 'removed'].includes(state))
  const isParked = report.entries.some(({ state }) => state === 'parked')
  const also = isParked ? '; what is parked is tried again, too, and costs again' : ''
  // What it says to that comes first: until then a pull may be refused.
  if (report.halted !== undefined) return []
  const steps: readonly Step[] = [
    ...(isOpen ? ([['next', clean(report.up ?? 'ralph up'), `it is not running now${also}`]] as const) : []),
    ...(report.take === undefined
      ? []
      : ([['next', clean(report.take), `${report.target} is updated to what has landed`]] as const)),
  ]
  return stepLines(steps, { indent: 2, column: 9 }, sheet)
}

/** What landed needs them no longer, and git removes only those without work of the user's own; a branch once the target has all of it. */
function folderLines({ entries, take }: QueueReport, sheet: Sheet): readonly string[] {
  const left = entries.flatMap(({ leftover_tree: tree, leftover_files: only = [] }) =>
    tree === undefined ? [] : [{ tree: clean(tree), only }],
  )
  const trees = left.filter(({ only }) => only.length === 0).map(({ tree }) => tree)
  // Git deletes what it ignores without asking.
  const held = left.flatMap(({ tree, only }): Step[] =>
    only.length === 0 ? [] : [['', `cd ${tree}`, `only there: ${firstNames(only.map(clean))}`]],
  )
  const branches = entries
    .filter(({ leftover_branch: isLeft }) => isLeft === true && take === undefined)
    .map(({ branch }) => clean(branch))
  const what = [
    ...(trees.length === 0 ? [] : [plural(trees.length, 'folder')]),
    ...(branches.length === 0 ? [] : [plural(branches.length, 'branch', 'branches')]),
  ]
  const kept =
    held.length === 0
      ? []
      : [
          `Before you remove ${held.length === 1 ? 'this folder' : 'these folders'}, move what you need out of ${held.length === 1 ? 'it' : 'them'}:`,
          ...stepLines(held, { indent: 2, column: 2 }, sheet),
        ]
  if (what.length === 0) return kept
  const commands = [
    ...trees.map((tree) => `git worktree remove ${tree}`),
    ...branches.map((branch) => `git branch -D ${branch}`),
  ]
  return [
    `${what.join(' and ')} of what landed can go:`,
    ...stepLines(
      commands.map((command) => ['', command, ''] as const),
      { indent: 2, column: 2 },
      sheet,
    ),
    ...kept,
  ]
}

export function upSummary(
  report: QueueReport,
  sheet: Sheet,
  {
    now,
    isStopped,
    isPulled,
    gateFound,
  }: {
    readonly now: number
    readonly isStopped: boolean
    /** The checkout follows at once. */
    readonly isPulled: boolean
    /** Where no gate has proven what landed, and that was not said before. */
    readonly gateFound?: string | undefined
  },
): string {
  const running = report.entries.filter(({ state }) => state === 'running' || state === 'resolving')
  const names = running.map(({ change }) => clean(change)).join(', ')
  const where = report.held === undefined ? '' : ` (it is ${clean(report.held)})`
  const sentences = [
    ...(gateFound === undefined ? [] : [`! ${gatelessWords(gateFound)}`]),
    ...(report.take !== undefined && !isPulled
      ? [
          `What landed is on refs/ralph-landed/${report.target}; your ${report.target} is not changed${where}.${report.halted === undefined ? ` Take it: ${clean(report.take)}` : ''}`,
        ]
      : []),
    ...(isStopped && running.length === 0 && report.entries.some(({ state }) => state !== 'landed')
      ? ['Stopped. Nothing is running; continue with: ralph up']
      : []),
    ...(isStopped && running.length > 0
      ? [
          `Stopped. ${plural(running.length, 'loop continues', 'loops continue')}: ${names}. To continue: ralph up; to stop ${running.length === 1 ? 'it' : 'them'} as well: ralph stop --all`,
        ]
      : []),
  ]
  return [
    '',
    queueText(report, sheet, now, isPulled),
    ...(sentences.length === 0 ? [] : ['']),
    ...sentences.map((text) => folded(text, sheet.columns)),
    ...folderLines(report, sheet),
    '',
  ].join('\n')
}
