// The state of the merge queue: entries, where they land and what they cost, all of it derived from the queue's own events.
// Long because each event of an entry stands beside the others: what one enters another leaves.
import { firstNames } from './first-names.ts'
import { type parkedFor, type QueueEvent } from './queue-event.ts'
import { afterGate, joined } from './weakness.ts'

export type EntryState =
  | 'waiting'
  | 'running'
  | 'done'
  | 'merging'
  | 'gating'
  | 'landed'
  | 'resolving'
  | 'parked'
  | 'removed'

interface Candidate {
  readonly commit: string
  readonly base: string
  readonly tip: string
}

export interface Conflict {
  readonly base: string
  readonly tip: string
  readonly paths: readonly string[]
  readonly marked: string
  /** What OpenSpec said where git found no conflict. */
  readonly said?: string
  /** Files that are made anew whatever an agent makes of them. */
  readonly generated: readonly string[]
  /** A loop works on it, or has. */
  readonly isBegun: boolean
  /** What was wrong with what an agent made of it last. */
  readonly problems: readonly string[]
}

export interface Entry {
  readonly change: string
  /** The branch that it lands on; empty until the queue is opened for one. */
  readonly target: string
  readonly after: readonly string[]
  /** The lowest goes first; entries are taken in the order in which they came. */
  readonly place: number
  readonly state: EntryState
  /** What it waits for, or why it is parked; empty where it goes on. */
  readonly why: string
  readonly hint: string
  readonly parkedFor?: (typeof parkedFor)[number]
  /** The run that it was parked for. */
  readonly parkedRun?: string
  /** How often its loop was started. */
  readonly spawns: number
  /** The run that was there before its loop was started last. */
  readonly over?: string
  /** Whose work tree was told to be set up. */
  readonly readyRun?: string
  /** Which place it has among those that run; 0 before its first. */
  readonly slot: number
  readonly reservedUsd: number
  /** Of its runs that have ended. */
  readonly costUsd: number
  /** Of those before the one at hand. */
  readonly earlierUsd: number
  /** The most that the run at hand may cost; `shortUsd`: it has ended by that. */
  readonly maxCostUsd?: number
  readonly shortUsd?: number
  /** It landed, or was taken out, before the queue was opened: no part of that budget. */
  readonly isPast?: true
  /** How often in a row somebody moved the target while it was gated, and the commits that came by that. */
  readonly moves: number
  readonly came?: readonly string[]
  readonly candidate?: Candidate
  /** What an agent is to put together. */
  readonly conflict?: Conflict
  /** Files to be made anew whenever it is built: both sides changed them. */
  readonly generated: readonly string[]
  /** The last one that no accepted resolution has ended: a branch that stands on its markers never lands. */
  readonly unresolved?: Conflict
  /** Of its branch, as it was when what an agent had made of a conflict was refused. */
  readonly refused?: string
  /** Of its own loop, before an agent was asked to resolve a conflict. */
  readonly gates: readonly string[]
  /** What makes its "done" worth less: of its run, and of the gates of its landing. */
  readonly warnings: readonly string[]
  /** That it was queued with, and each that has refused it: they hold until somebody names others. */
  readonly given: readonly string[]
  /** How often one was asked to. */
  readonly tries: number
  /** Its landing was begun: it may have happened. */
  readonly isLanding: boolean
  /** Its loop was under way when another queue ended: one that was stopped since goes on. */
  readonly isLeft?: true
  readonly landed?: Landed
  /** It had landed, and was taken off the target: only somebody's word lands it again. */
  readonly isTakenBack?: true
}

interface Landed {
  readonly commit: string
  readonly target: string
  /** Of its branch, when it landed. */
  readonly tip?: string
}

/** What the queue knows of a target. */
interface LandedOn {
  /** The last commit that landed, and one whose landing was begun, so that it may have. */
  readonly last?: string
  readonly begun?: string
  /** Where the branch itself was seen last. */
  readonly home?: string
}

export interface QueueState {
  readonly seq: number
  readonly target: string
  readonly jobs: number
  readonly land: 'squash' | 'merge'
  readonly lands: boolean
  readonly maxCostUsd: number | undefined
  /** For all that it runs and lands. */
  readonly gates: readonly string[]
  readonly entries: readonly Entry[]
  readonly landed: Readonly<Record<string, LandedOn>>
  readonly halted: { readonly why: string; readonly hint: string } | undefined
}

export const emptyQueue: QueueState = {
  seq: 0,
  target: '',
  jobs: 1,
  land: 'squash',
  lands: true,
  maxCostUsd: undefined,
  gates: [],
  entries: [],
  landed: {},
  halted: undefined,
}

export function evolveQueue(state: QueueState, event: QueueEvent): QueueState {
  const next = { ...state, seq: event.seq }
  switch (event.type) {
    case 'queue.opened':
      return {
        ...next,
        target: event.target,
        jobs: event.jobs,
        land: event.land,
        lands: event.lands,
        maxCostUsd: event.max_cost_usd,
        gates: event.gates ?? [],
        halted: undefined,
        // Whoever opens it anew wants those that waited for a target to stand still to be tried again.
        entries: state.entries.map((entry) => ({
          ...entry,
          target: entry.target || event.target,
          spawns: 0,
          moves: 0,
          ...(!isOver(entry) && { given: joined(entry.given, event.gates) }),
          ...(isBusy(entry) && { isLeft: true as const }),
          ...((entry.state === 'landed' || entry.state === 'removed') && { isPast: true as const }),
        })),
      }
    case 'queue.halted':
      return { ...next, halted: { why: event.why, hint: event.hint } }
    case 'entry.added':
      return { ...next, entries: added(state, event) }
    case 'target.followed':
      return {
        ...next,
        landed: { ...state.landed, [event.target]: { ...state.landed[event.target], home: event.commit } },
      }
    case 'queue.rebuilt':
      return {
        ...next,
        target: state.target === '' ? event.target : state.target,
        landed: { ...state.landed, [event.target]: { last: event.commit } },
        entries: [...state.entries, ...rebuilt(event)],
      }
    case 'entry.removed':
    case 'gates.dropped':
    case 'entry.first':
    case 'entry.retried':
    case 'entry.ordered':
    case 'entry.waiting':
    case 'entry.parked':
    case 'loop.spawned':
    case 'loop.ended':
    case 'candidate.began':
    case 'candidate.conflicted':
    case 'candidate.regenerated':
    case 'tree.set_up':
    case 'refs.held':
    case 'resolution.judged':
    case 'candidate.built':
    case 'candidate.gated':
    case 'base.moved':
    case 'landing.began':
    case 'landed':
    case 'entry.unlanded':
      return {
        ...next,
        landed: landedAfter(state, event),
        entries: state.entries.map((entry) =>
          entry.change === event.change ? changed(entry, event, state) : entry,
        ),
      }
  }
}

function landedAfter(state: QueueState, event: OfEntry): QueueState['landed'] {
  if (event.type !== 'landed' && event.type !== 'landing.began') return state.landed
  const target = targetOf(state, event.change)
  const { begun, ...known }: LandedOn = state.landed[target] ?? {}
  const { type, commit } = event
  // It was there already, by somebody else: what the queue has put there last is still that.
  if (type === 'landed' && known.last !== undefined && begun !== commit)
    return { ...state.landed, [target]: known }
  const home = type === 'landing.began' && event.home !== undefined ? { home: event.home } : {}
  const now = type === 'landed' ? { last: commit } : { begun: commit, ...home }
  return { ...state.landed, [target]: { ...known, ...now } }
}

/** Where this change lands. */
export function targetOf({ entries, target }: QueueState, change: string): string {
  return entries.find((entry) => entry.change === change)?.target || target
}

/** Whether the queue itself has put this on the target's ref. */
export function isOwnLanding({ landed }: QueueState, target: string, commit: string): boolean {
  return [landed[target]?.last, landed[target]?.begun].includes(commit)
}

type OfEntry = Exclude<
  QueueEvent,
  { type: 'queue.opened' | 'queue.halted' | 'queue.rebuilt' | 'target.followed' | 'entry.added' }
>

/** Added again, it begins anew, at the end; one that is under way goes on. */
function added(state: QueueState, event: Extract<QueueEvent, { type: 'entry.added' }>): readonly Entry[] {
  const { entries } = state
  const known = entries.find((entry) => entry.change === event.change)
  if (known !== undefined && !isOver(known)) return entries
  const entry: Entry = {
    ...blankEntry(event.change, event.target ?? state.target, event.seq),
    after: event.after,
    // What was refused once is not right because it was added again.
    ...(known?.refused !== undefined && { refused: known.refused }),
    ...(known?.unresolved !== undefined && { unresolved: known.unresolved }),
    gates: known?.gates ?? [],
    given: joined(known?.given ?? [], event.gates),
    ...(known !== undefined &&
      known.isPast !== true && {
        costUsd: known.costUsd,
        earlierUsd: known.state === 'landed' ? known.costUsd : known.earlierUsd,
      }),
  }
  return [...entries.filter((each) => each !== known), entry]
}

/** Nothing more happens to it by itself. */
export function isOver({ state }: Entry): boolean {
  return state === 'landed' || state === 'removed' || state === 'parked'
}

function rebuilt({ target, seq, landed }: Extract<QueueEvent, { type: 'queue.rebuilt' }>): readonly Entry[] {
  return landed.map(({ change: name, commit, tip }) => ({
    ...blankEntry(name, target, seq),
    state: 'landed',
    landed: { commit, target, tip },
  }))
}

function blankEntry(name: string, target: string, place: number): Entry {
  return {
    change: name,
    target,
    after: [],
    place,
    state: 'waiting',
    why: '',
    hint: '',
    spawns: 0,
    slot: 0,
    reservedUsd: 0,
    costUsd: 0,
    earlierUsd: 0,
    moves: 0,
    tries: 0,
    generated: [],
    gates: [],
    warnings: [],
    given: [],
    isLanding: false,
  }
}

function changed(entry: Entry, event: OfEntry, { entries, target, gates }: QueueState): Entry {
  // What was under way when it was taken out brings it back only by having landed.
  if (entry.state === 'removed' && event.type !== 'landed') return entry
  const {
    candidate,
    conflict,
    parkedFor: _,
    parkedRun: _____,
    isTakenBack: __,
    isLeft: ___,
    over: ____,
    ...plain
  } = entry
  const quiet = { ...plain, why: '', hint: '' }
  switch (event.type) {
    case 'entry.removed':
      // A loop that runs goes on, and may spend what it was given.
      return { ...quiet, state: 'removed' }
    case 'gates.dropped':
      return { ...entry, given: entry.given.filter((gate) => !event.gates.includes(gate)) }
    case 'entry.first':
      return { ...entry, place: Math.min(0, ...entries.map(({ place }) => place)) - 1 }
    case 'entry.retried':
      return {
        ...quiet,
        // After a conflict the branch is tried again as somebody has left it.
        state: entry.unresolved === undefined ? 'waiting' : 'done',
        spawns: 0,
        moves: 0,
        tries: 0,
        isLanding: false,
      }
    case 'entry.ordered':
      return { ...entry, after: [...new Set([...entry.after, ...event.after])] }
    case 'entry.waiting':
      return { ...entry, why: event.why }
    case 'entry.parked':
      return {
        ...plain,
        costUsd: costAfter(entry, event.cost_usd),
        state: 'parked',
        parkedFor: event.for,
        ...(event.run !== undefined && { parkedRun: event.run }),
        why: event.why,
        hint: event.hint,
        reservedUsd: 0,
        isLanding: false,
      }
    case 'loop.spawned':
      return {
        ...quiet,
        ...(conflict !== undefined && { conflict: { ...conflict, isBegun: true } }),
        state: conflict === undefined ? 'running' : 'resolving',
        given: joined(entry.given, gates),
        // Its run says again what still holds.
        ...(conflict === undefined && { warnings: [] }),
        slot: event.slot,
        spawns: entry.spawns + (event.base === undefined ? 0 : 1),
        ...(event.over !== undefined && { over: event.over }),
        reservedUsd: event.reserved_usd ?? 0,
        ...(event.max_cost_usd !== undefined && { maxCostUsd: event.max_cost_usd }),
      }
    case 'loop.ended':
      return {
        ...quiet,
        ...(event.is_short === true
          ? { state: 'waiting', ...(entry.maxCostUsd !== undefined && { shortUsd: entry.maxCostUsd }) }
          : { state: 'done' }),
        reservedUsd: 0,
        warnings: joined(entry.warnings, event.warnings),
        costUsd: costAfter(entry, event.cost_usd),
      }
    case 'candidate.began':
      return { ...quiet, state: 'merging', given: joined(entry.given, gates) }
    case 'candidate.conflicted': {
      const { base, tip, paths, marked, said, generated = entry.generated } = event
      const about = { base, tip, paths, marked, generated, ...(said !== undefined && { said }) }
      const begins: Conflict = { ...about, isBegun: false, problems: [] }
      return {
        ...quiet,
        state: 'resolving',
        spawns: 0,
        // An agent puts them together in a run of its own.
        earlierUsd: entry.costUsd,
        tries: entry.tries + 1,
        generated,
        gates: joined(entry.gates, event.gates),
        conflict: begins,
        unresolved: begins,
      }
    }
    case 'candidate.regenerated':
    case 'refs.held':
      return entry
    case 'tree.set_up':
      return event.run === undefined ? entry : { ...entry, readyRun: event.run }
    case 'resolution.judged':
      return event.problems.length === 0
        ? { ...settled(quiet), state: 'done', reservedUsd: 0, costUsd: costAfter(entry, event.cost_usd) }
        : {
            ...entry,
            tries: entry.tries + 1,
            ...(conflict !== undefined && {
              conflict: { ...conflict, isBegun: false, problems: event.problems },
            }),
            ...(event.tip !== undefined && { refused: event.tip }),
          }
    case 'candidate.built':
      return {
        ...quiet,
        state: 'gating',
        candidate: { commit: event.commit, base: event.base, tip: event.tip },
      }
    case 'candidate.gated':
      return event.outcome === 'passed'
        ? { ...entry, warnings: afterGate(entry.warnings, event.gate, event.ran_no_tests) }
        : { ...entry, given: joined(entry.given, [event.gate]) }
    case 'base.moved':
      return {
        ...quiet,
        state: 'done',
        moves: entry.moves + 1,
        came: joined(entry.came ?? [], event.came),
        isLanding: false,
        ...(entry.moves + 1 >= mostMoves && {
          why: `waits: its target or its branch was moved ${mostMoves} times while it was tested${event.came === undefined ? '' : `; ${cameWords(event.came)}`}`,
          hint: 'By you, or by a gate? When nothing moves them any more: ralph up',
        }),
      }
    case 'landing.began':
      return { ...entry, isLanding: true }
    case 'landed':
      return {
        ...settled(quiet),
        state: 'landed',
        warnings: event.warnings ?? [],
        ...(entry.came !== undefined && entry.came.length > 0 && { why: cameWords(entry.came) }),
        landed: {
          commit: event.commit,
          target: entry.target || target,
          ...(candidate !== undefined && { tip: candidate.tip }),
        },
        isLanding: false,
        moves: 0,
      }
    case 'entry.unlanded': {
      const { landed: ___, ...without } = plain
      const { why, hint } = event
      return { ...without, state: 'parked', parkedFor: 'human', why, hint, isTakenBack: true }
    }
  }
}

/** Of commits on a target: nobody's hook has reported them, and the next candidate has them in it. */
export function cameWords(came: readonly string[]): string {
  return `its target got ${firstNames(came, 3)} while its gates ran, not made by the queue`
}

/** Of all its runs, where the one at hand has cost this. */
function costAfter({ costUsd, earlierUsd }: Entry, ofRun: number | undefined): number {
  return ofRun === undefined ? costUsd : earlierUsd + ofRun
}

function settled(entry: Entry): Entry {
  const { unresolved: _, ...rest } = entry
  return rest
}

export function replayQueue(events: readonly QueueEvent[]): QueueState {
  return events.reduce(evolveQueue, emptyQueue)
}

// --- what is due -------------------------------------------------------------------------------------------------

/** A target that moves under every candidate is somebody at work. */
export const mostMoves = 3

export function isBusy({ state, conflict }: Entry): boolean {
  return state === 'running' || (state === 'resolving' && conflict?.isBegun === true)
}
