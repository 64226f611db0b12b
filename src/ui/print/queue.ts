// The merge queue for people: a line for each event in a pipe, a table on a terminal, and where everything stands at the end.
import { setTimeout as delay } from 'node:timers/promises'
import type { EntryState, QueueEvent } from '../../core/queue.ts'
import type { QueueReport } from '../app.ts'
import type { Output, Paint } from '../io.ts'
import { clean, duration } from './text.ts'

const marks: Readonly<Record<EntryState, string>> = {
  waiting: '○',
  running: '▸',
  done: '✓',
  merging: '▸',
  gating: '▸',
  resolving: '▸',
  landed: '✓',
  parked: '!',
  removed: ' ',
}

function painted(state: EntryState, paint: Paint): string {
  const mark = marks[state]
  if (state === 'landed' || state === 'done') return paint.green(mark)
  if (state === 'parked') return paint.magenta(mark)
  return state === 'waiting' ? paint.dim(mark) : paint.cyan(mark)
}

/** Empty where there is nothing to say. */
export function queueLine(event: QueueEvent): string {
  const said = wordsOf(event)
  return said === '' ? '' : `${event.time.slice(11, 19)} ${clean(said)}\n`
}

function wordsOf(event: QueueEvent): string {
  switch (event.type) {
    case 'queue.opened':
      return `queue → ${event.target}, ${event.jobs} at once`
    case 'queue.halted':
      return `! halted: ${event.why}`
    case 'entry.added':
      return `○ ${event.change}: added${event.after.length === 0 ? '' : `, after ${event.after.join(', ')}`}`
    case 'entry.removed':
      return `  ${event.change}: removed from the queue`
    case 'entry.first':
      return `  ${event.change}: goes first`
    case 'entry.retried':
      return `○ ${event.change}: tried again`
    case 'entry.waiting':
      return `○ ${event.change}: ${event.why}`
    case 'entry.parked':
      return `! ${event.change}: parked: ${event.why}`
    case 'loop.spawned':
      return `▸ ${event.change}: its loop runs`
    case 'loop.ended':
      return `✓ ${event.change}: its loop is done`
    case 'candidate.began':
      return `▸ ${event.change}: merging`
    case 'candidate.conflicted':
      return event.said === undefined
        ? `✕ ${event.change}: conflict in ${event.paths.join(', ')}; an agent puts both sides together`
        : `✕ ${event.change}: its plan does not go with the specs that landed (${event.said}); an agent brings it up to date`
    case 'candidate.regenerated':
      return `✓ ${event.change}: made anew: ${event.paths.join(', ')}`
    case 'resolution.judged':
      return event.problems.length === 0
        ? `✓ ${event.change}: both sides are put together${event.beside === undefined ? '' : `; changed beside the conflict: ${event.beside.join(', ')}`}`
        : `✕ ${event.change}: not yet: ${event.problems.join('; ')}`
    case 'candidate.built':
      return ''
    case 'candidate.gated':
      return event.outcome === 'passed'
        ? `✓ ${event.change}: ${event.gate}${event.flaky ? ' (failed once, passed when it ran again)' : ''}`
        : `✕ ${event.change}: ${event.gate} ${event.outcome === 'failed' ? 'failed' : 'could not run'}`
    case 'base.moved':
      return `▸ ${event.change}: somebody moved the target, so it is merged again`
    case 'landing.began':
    case 'target.followed':
      return ''
    case 'entry.unlanded':
      return `! ${event.change}: ${event.why}`
    case 'queue.rebuilt':
      return `! the queue's journal was gone: from git, ${event.landed.map((each) => each.change).join(', ')} landed on ${event.target}; what else was in the queue is not known`
    case 'landed':
      return `✓ ${event.change}: landed as ${event.commit.slice(0, 7)}`
  }
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
): Board {
  const closed = new AbortController()
  let height = 0
  let last = ''
  const draw = async (): Promise<void> => {
    const columns = out.columns ?? Number.POSITIVE_INFINITY
    const rows = boardRows(await look(), paint, columns, now())
    const text = `${rows.join('\n')}\n`
    if (text === last) return
    last = text
    // What does not fit would be drawn again above itself.
    const shown = rows.slice(0, Math.max(1, (out.rows ?? rows.length + 1) - 1))
    out.write(`${height === 0 ? '' : `\u001b[${height}A\u001b[J`}${shown.join('\n')}\n`)
    height = out.isTTY === true ? shown.length : 0
  }
  const drawing = (async () => {
    while (!closed.signal.aborted) {
      await draw()
      await delay(1000, undefined, { signal: closed.signal }).catch(() => undefined)
    }
    if (height > 0) out.write(`\u001b[${height}A\u001b[J`)
  })()
  return {
    close: () => {
      closed.abort()
      return drawing
    },
  }
}

function boardRows(report: QueueReport, paint: Paint, columns: number, now: number): readonly string[] {
  const { entries } = report
  const count = (state: EntryState): number => entries.filter((entry) => entry.state === state).length
  const cost = entries.reduce((sum, entry) => sum + entry.cost_usd, 0)
  const budget = report.max_cost_usd === undefined ? '' : ` of $${report.max_cost_usd}`
  const head = [
    `ralph up → ${report.target}`,
    `${count('landed')} of ${entries.length} landed`,
    `${count('running')} running`,
    ...(cost > 0 || budget !== '' ? [`$${cost.toFixed(2)}${budget}`] : []),
  ].join('   ')
  const width = Math.max(0, ...entries.map(({ change }) => change.length))
  const cut = (text: string): string =>
    text.length < columns ? text : `${text.slice(0, Math.max(0, columns - 2))}…`
  const halted = report.halted === undefined ? [] : [cut(`! halted: ${clean(report.halted)}`)]
  return [
    paint.bold(cut(head)),
    ...halted,
    ...entries.map((entry) => {
      const rest = [`${entry.change.padEnd(width)}  ${stateWords(entry).padEnd(14)}`, ...details(entry, now)]
      return `${painted(entry.state, paint)} ${cut(rest.join('  ').trimEnd()).slice(0, Number.isFinite(columns) ? columns - 3 : undefined)}`
    }),
  ]
}

type Row = QueueReport['entries'][number]

function stateWords({ state, landed }: Row): string {
  return landed === '' ? state : `landed ${landed.slice(0, 7)}`
}

function details(entry: Row, now: number): readonly string[] {
  const isBusy = entry.state === 'running' || entry.state === 'resolving'
  const stories = entry.stories_total === 0 ? [] : [`${entry.stories_done}/${entry.stories_total} stories`]
  const attempt = isBusy && entry.attempt > 0 ? [`#${entry.attempt}`] : []
  const elapsed = isBusy && entry.started_at !== '' ? [duration(now - Date.parse(entry.started_at))] : []
  const cost = entry.cost_usd === 0 ? [] : [`$${entry.cost_usd.toFixed(2)}`]
  return [...stories, ...attempt, ...elapsed, ...cost, ...(entry.why === '' ? [] : [clean(entry.why)])]
}

export function queueText(report: QueueReport, paint: Paint, now: number): string {
  if (report.entries.length === 0) return 'The queue is empty. Fill it: ralph up, or ralph queue add <change>'
  const width = Math.max(...report.entries.map(({ change }) => change.length))
  const rows = report.entries.flatMap((entry) => [
    `${painted(entry.state, paint)} ${[`${entry.change.padEnd(width)}  ${stateWords(entry).padEnd(14)}`, ...details(entry, now)].join('  ').trimEnd()}`,
    ...(entry.hint === undefined ? [] : [`    ${clean(entry.hint)}`]),
  ])
  const halted = report.halted === undefined ? [] : [`${paint.magenta('!')} halted: ${clean(report.halted)}`]
  return [`${report.alive ? 'running' : 'not running'}   → ${report.target}`, ...halted, ...rows].join('\n')
}

export function upSummary(
  report: QueueReport,
  paint: Paint,
  { now, isStopped }: { readonly now: number; readonly isStopped: boolean },
): string {
  const landed = report.entries.filter(({ state }) => state === 'landed').length
  const open = report.entries.length - landed
  const isBehind = report.landed_commit !== '' && report.landed_commit !== report.target_commit
  const lines = [
    '',
    queueText(report, paint, now),
    '',
    `${landed} of ${report.entries.length} landed${open === 0 ? '' : `, ${open} not`}.`,
    ...(isBehind
      ? [
          `They are on refs/ralph-landed/${report.target}; your ${report.target} is not changed${report.held === undefined ? '' : ` (it is ${clean(report.held)})`}. Take them: ralph queue pull`,
        ]
      : []),
    ...(isStopped
      ? [
          'Stopped. Loops that were running go on; `ralph up` takes them up again, `ralph stop --all` ends them.',
        ]
      : []),
  ]
  return `${lines.join('\n')}\n`
}
