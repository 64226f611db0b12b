// What people did between two attempts of a run, and whose work lies between two checkpoints: told by its events.
import type { LoopEvent } from './event.ts'

/** What of a journal tells it. */
export const workTypes = [
  'checkpoint.saved',
  'checkpoint.verified',
  'hand.checked',
  'iteration.started',
  'iteration.ended',
  'gate.ended',
] as const satisfies readonly LoopEvent['type'][]
type WorkEvent = Extract<LoopEvent, { type: (typeof workTypes)[number] }>

export interface HandWork {
  readonly time: string
  /** The last attempt before it; 0 where there was none. */
  readonly after: number
  /** Those that a person had ticked; where nothing was checked, the one that it was saved with. */
  readonly story_ids: readonly string[]
  /** What the gates say of those that were ticked. */
  readonly checked?: HandCheck
  /** The checkpoint that has it. */
  readonly commit: string
  readonly files: readonly string[]
  /** Those of `files` that it deleted; absent when there is none. */
  readonly deleted?: readonly string[]
}

export interface HandCheck {
  /** `none`: the story has no gate. */
  readonly gates: 'passed' | 'failed' | 'could_not_run' | 'none'
  /** One line, for people; empty where none failed. */
  readonly reason: string
  readonly gates_ms: number
}

/** From one checkpoint to the next. */
export interface Step {
  readonly from: string
  readonly to: string
}

export interface WorkSteps {
  /** Of an attempt: what was saved of it. */
  readonly attempts: readonly (Step & { readonly n: number })[]
  /** Whatever is not an attempt's; its files are not known yet. */
  readonly hands: readonly (Omit<HandWork, 'files' | 'deleted'> & { readonly steps: readonly Step[] })[]
}

export function workSteps(events: readonly WorkEvent[]): WorkSteps {
  const attempts: WorkSteps['attempts'][number][] = []
  const hands: WorkSteps['hands'][number][] = []
  let commit = ''
  let after = 0
  let steps: Step[] = []
  let gates: number[] = []
  let isOpen = false
  const settle = (time: string, ids: readonly string[], checked?: HandCheck): void => {
    if (checked !== undefined || steps.length > 0)
      hands.push({ time, after, story_ids: ids, ...(checked !== undefined && { checked }), commit, steps })
    steps = []
    gates = []
  }
  for (const event of events) {
    switch (event.type) {
      case 'checkpoint.saved':
        if (event.n !== undefined && commit !== '')
          attempts.push({ from: commit, to: event.commit, n: event.n })
        // Where a run begins, or goes on after a cleanup: what was there is its user's.
        commit = event.commit
        steps = []
        break
      case 'checkpoint.verified':
        if (commit !== '' && event.commit !== commit) steps.push({ from: commit, to: event.commit })
        commit = event.commit
        break
      case 'hand.checked':
        settle(event.time, event.story_ids, {
          gates:
            event.could_not_run === true
              ? 'could_not_run'
              : event.failed !== undefined
                ? 'failed'
                : gates.length === 0
                  ? 'none'
                  : 'passed',
          reason: event.failed ?? '',
          gates_ms: sum(gates),
        })
        break
      case 'iteration.started':
        settle(event.time, [event.story_id])
        after = event.n
        isOpen = true
        break
      case 'iteration.ended':
        isOpen = false
        gates = []
        break
      case 'gate.ended':
        if (!isOpen) gates.push(Math.round(event.duration_ms))
    }
  }
  return { attempts, hands }
}

/** The last gate that ran, where it judged what a person had ticked: no attempt was open, and none has begun since. */
export function lastHandGate(
  events: readonly LoopEvent[],
): Extract<WorkEvent, { type: 'gate.ended' }> | undefined {
  const at = events.findLastIndex(({ type }) => type === 'iteration.started' || type === 'iteration.ended')
  if (events[at]?.type === 'iteration.started') return undefined
  return events
    .slice(at + 1)
    .filter((event) => event.type === 'gate.ended')
    .findLast(({ claim }) => claim === undefined)
}

/** By iteration: an iteration's own time is the agent's, and with it that of the gates that it waited for. */
export function gateTimes(
  events: readonly (
    | Pick<Extract<WorkEvent, { type: 'gate.ended' }>, 'type' | 'n' | 'duration_ms' | 'claim'>
    | { readonly type: 'iteration.ended'; readonly iteration: { readonly n: number } }
  )[],
): ReadonlyMap<number, number> {
  const times = new Map<number, number>()
  const ended = new Set<number>()
  for (const event of events) {
    if (event.type === 'iteration.ended') ended.add(event.iteration.n)
    // After its end they judge what a person has ticked.
    if (event.type !== 'gate.ended' || event.claim !== undefined || ended.has(event.n)) continue
    times.set(event.n, (times.get(event.n) ?? 0) + Math.round(event.duration_ms))
  }
  return times
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}
