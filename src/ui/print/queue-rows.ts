// The changes of the merge queue as rows of words, for the table of a terminal, the screen and the end alike.
import type { EntryState } from '../../core/queue.ts'
import type { QueueReport } from '../app.ts'
import { doneState } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { waits } from './status.ts'
import { clean, clockTime, duration, shortHash, usd, widthOf } from './text.ts'

const meanings: Readonly<Record<EntryState, Meaning>> = {
  waiting: 'open',
  running: 'working',
  // Only what has landed is at its end.
  done: 'open',
  merging: 'working',
  gating: 'working',
  resolving: 'working',
  landed: 'done',
  parked: 'human',
  removed: 'open',
}

/** One change in words, each for a column of its own; empty where there is nothing to say. */
export interface QueueRow {
  readonly change: string
  readonly state: string
  readonly meaning: Meaning
  /** Done, of all; as list and status count them. */
  readonly stories: string
  readonly attempt: string
  readonly elapsed: string
  readonly cost: string
  readonly why: string
  readonly hint: string
}

export function queueRows({ target, entries }: QueueReport, nowMs: number): readonly QueueRow[] {
  return entries.map((entry) => {
    const { state, landed, stories_done: done, stories_total: total, waiting_for: waiting } = entry
    const isBusy = state === 'running' || state === 'resolving'
    const until = entry.waiting_until === undefined ? '' : `, until ${clockTime(entry.waiting_until)}`
    return {
      change: clean(entry.change),
      state: state === 'landed' && landed !== '' ? `landed ${shortHash(landed)}` : stateWord(state),
      meaning:
        isBusy && waiting !== undefined
          ? 'waiting'
          : state === 'landed'
            ? doneState(entry.warnings)[1]
            : meanings[state],
      stories: total === 0 ? '' : `${String(done)}/${String(total)}`,
      attempt: isBusy && entry.attempt > 0 ? String(entry.attempt) : '',
      elapsed: isBusy && entry.started_at !== '' ? seconds(busyMs(entry, nowMs)) : '',
      cost: entry.cost_usd === 0 ? '' : usd(entry.cost_usd),
      why: clean(
        [
          // The heading names the one that all others go to.
          ...(['', target].includes(entry.target) ? [] : [`→ ${entry.target}`]),
          isBusy && waiting !== undefined
            ? `waits for ${waits[waiting]}${until}`
            : state === 'done' && entry.why === ''
              ? 'not landed yet'
              : entry.why,
          ...entry.warnings.map((words) => (doneState([words])[1] === 'doubt' ? `! ${words}` : words)),
        ]
          .filter((each) => each !== '')
          .join('; '),
      ),
      hint: clean(entry.hint ?? ''),
    }
  })
}

/** The time parked or stopped is not in it. */
function busyMs(
  { worked_ms: worked, working_since: since }: QueueReport['entries'][number],
  nowMs: number,
): number {
  return worked + (since === undefined ? 0 : nowMs - Date.parse(since))
}

function stateWord(state: EntryState): string {
  return state === 'gating' ? 'testing' : state
}

/** A clock that ticks in whole seconds is easier to read. */
function seconds(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1000))
  return whole < 60 ? `${String(whole)} s` : duration(whole * 1000)
}

export const queueColumns = ['change', 'state', 'stories', 'attempt', 'elapsed', 'cost'] as const
export type QueueWidths = Readonly<Record<(typeof queueColumns)[number], number>>

/** Wide enough for all rows and their heading; 0 for a column in which nothing stands. */
export function queueWidths(rows: readonly QueueRow[]): QueueWidths {
  const widthIn = (column: (typeof queueColumns)[number]): number => {
    const most = Math.max(0, ...rows.map((row) => widthOf(row[column])))
    return most === 0 ? 0 : Math.max(most, column.length)
  }
  return {
    change: Math.min(30, widthIn('change')),
    state: widthIn('state'),
    stories: widthIn('stories'),
    attempt: widthIn('attempt'),
    elapsed: widthIn('elapsed'),
    cost: widthIn('cost'),
  }
}

/** "3 of 6 landed, 2 running, 1 parked". */
export function queueCounts({ entries }: QueueReport): string {
  const count = (...states: EntryState[]): number =>
    entries.filter(({ state }) => states.includes(state)).length
  const parts = (
    [
      ['running', count('running')],
      ['merging', count('merging')],
      ['testing', count('gating')],
      ['resolving', count('resolving')],
      ['done', count('done')],
      ['waiting', count('waiting')],
      ['parked', count('parked')],
    ] as const
  ).flatMap(([word, n]) => (n === 0 ? [] : [`${String(n)} ${word}`]))
  return [`${String(count('landed'))} of ${String(entries.length)} landed`, ...parts].join(', ')
}

/** What it has cost, of what it may; empty where nothing is known. */
export function queueCost({ entries, max_cost_usd: most }: QueueReport): string {
  const cost = entries.reduce((sum, entry) => sum + entry.cost_usd, 0)
  if (cost === 0 && most === undefined) return ''
  return `${usd(cost)}${most === undefined ? '' : ` of ${usd(most)}`}`
}
