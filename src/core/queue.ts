// The merge queue as a pure function: entries, what they wait for, and what is due next; all of it derived from the queue's own events.
// Long because events, state and what is due are read together: a rule of the queue is all three.
import * as z from 'zod'
import { setUpSchema } from './event.ts'
import type { SetUpDone } from './event.ts'
import { once } from './once.ts'
import { signalExits } from './outcome.ts'

/** Why an entry is parked, by what has to happen before it can go on. */
const parkedFor = ['failed', 'human', 'limit'] as const

const change = z.string().min(1)
const hash = z.string().regex(/^[0-9a-f]{40,64}$/)

const bodies = () =>
  z.discriminatedUnion('type', [
    z.object({
      type: z.literal('queue.opened'),
      target: z.string(),
      jobs: z.number().int().positive(),
      land: z.enum(['squash', 'merge']),
      lands: z.boolean(),
      max_cost_usd: z.number().positive().optional(),
    }),
    z.object({
      type: z.literal('entry.added'),
      change,
      after: z.array(change),
      /** Where it lands; undefined: where the queue was opened for. */
      target: z.string().optional(),
    }),
    /** `why`: where nobody has asked for it. */
    z.object({ type: z.literal('entry.removed'), change, why: z.string().optional() }),
    /** Before all others that can run. */
    z.object({ type: z.literal('entry.first'), change }),
    z.object({ type: z.literal('entry.retried'), change }),
    /** In the queue already: what it comes after besides. */
    z.object({ type: z.literal('entry.ordered'), change, after: z.array(change) }),
    z.object({ type: z.literal('entry.waiting'), change, why: z.string() }),
    z.object({
      type: z.literal('entry.parked'),
      change,
      for: z.enum(parkedFor),
      why: z.string(),
      hint: z.string(),
      /** Of its loop, where that has ended. */
      cost_usd: z.number().nonnegative().optional(),
    }),
    z.object({
      type: z.literal('loop.spawned'),
      change,
      /** Undefined: it was running already, and is adopted. */
      base: hash.optional(),
      /** From 1; no two loops that run at once have the same one. */
      slot: z.number().int().positive(),
      /** The run that was there before: where there is no other one yet, the loop has not begun. */
      over: z.string().optional(),
      reserved_usd: z.number().optional(),
      /** The most that its run may cost, with what it has cost before: nobody spends what another one has reserved. */
      max_cost_usd: z.number().optional(),
    }),
    z.object({
      type: z.literal('loop.ended'),
      change,
      cost_usd: z.number().nonnegative(),
      tip: hash.optional(),
      /** Its share of the budget is used up: it goes on where more is left. */
      is_short: z.boolean().optional(),
    }),
    z.object({ type: z.literal('candidate.began'), change, base: hash, tip: hash }),
    z.object({
      type: z.literal('candidate.conflicted'),
      change,
      base: hash,
      tip: hash,
      paths: z.array(z.string()),
      /** Both sides with git's markers between them; where an agent begins to put them together. */
      marked: hash,
      /** Without markers: what landed changed the specs that its plan rewrites, and OpenSpec said this. */
      said: z.string().optional(),
      /** Files that a command makes anew, before and after the agent. */
      generated: z.array(z.string()).optional(),
      /** Of the change's own loop: they count, too, for what comes of it. */
      gates: z.array(z.string()).optional(),
    }),
    /** The work tree of its loop, or the one that merges are tried in, is ready. */
    z.object({
      type: z.literal('tree.set_up'),
      change,
      for: z.enum(['loop', 'landing']),
      /** Of a loop: told once for each. */
      run: z.string().optional(),
      ...setUpSchema.shape,
    }),
    /** Generated files that both sides changed, made anew by the user's command. */
    z.object({ type: z.literal('candidate.regenerated'), change, paths: z.array(z.string()) }),
    /** What is wrong with how an agent put both sides together; none: it goes on. */
    z.object({
      type: z.literal('resolution.judged'),
      change,
      problems: z.array(z.string()),
      /** Of the branch that was judged. */
      tip: hash.optional(),
      /** Files that had no conflict and were changed all the same. */
      beside: z.array(z.string()).optional(),
      cost_usd: z.number().nonnegative().optional(),
    }),
    z.object({ type: z.literal('candidate.built'), change, base: hash, tip: hash, commit: hash }),
    z.object({
      type: z.literal('candidate.gated'),
      change,
      commit: hash,
      gate: z.string(),
      outcome: z.enum(['passed', 'failed', 'could_not_run']),
      /** It failed at first, and passed when it ran again. */
      flaky: z.boolean().optional(),
    }),
    /** Somebody else moved the target or the change's branch: built again. */
    z.object({ type: z.literal('base.moved'), change, to: hash }),
    z.object({
      type: z.literal('landing.began'),
      change,
      commit: hash,
      onto: hash.optional(),
      /** Where the target itself stood. */
      home: hash.optional(),
    }),
    z.object({ type: z.literal('landed'), change, commit: hash }),
    /** The branch itself has what landed. */
    z.object({ type: z.literal('target.followed'), target: z.string(), commit: hash }),
    /** It had landed, and somebody has set the target back since. Never in the journal: git's history is asked each time. */
    z.object({ type: z.literal('entry.unlanded'), change, why: z.string(), hint: z.string() }),
    /** The journal was lost: what has landed was read from git. */
    z.object({
      type: z.literal('queue.rebuilt'),
      target: z.string(),
      commit: hash,
      landed: z.array(z.object({ change, commit: hash, tip: hash })),
    }),
    /** Nobody's fault: what is on the target does not pass its own gates, or cannot be put together with what landed. */
    z.object({ type: z.literal('queue.halted'), why: z.string(), hint: z.string() }),
  ])

export const queueEventSchema = once(() =>
  z.intersection(z.object({ v: z.literal(1), seq: z.number().int().positive(), time: z.string() }), bodies()),
)
export type QueueBody = z.infer<ReturnType<typeof bodies>>
export type QueueEvent = QueueBody & { readonly v: 1; readonly seq: number; readonly time: string }

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
  /** Gates that it has passed. */
  readonly passed: readonly string[]
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
  /** How often in a row somebody moved the target while it was gated. */
  readonly moves: number
  readonly candidate?: Candidate
  /** What an agent is to put together. */
  readonly conflict?: Conflict
  /** Files to be made anew whenever it is built: both sides changed them. */
  readonly generated: readonly string[]
  /** Parked because nobody could. */
  readonly hadConflict?: true
  /** The last one that no accepted resolution has ended: a branch that stands on its markers never lands. */
  readonly unresolved?: Conflict
  /** Of its branch, as it was when what an agent had made of a conflict was refused. */
  readonly refused?: string
  /** Of its own loop, before an agent was asked to resolve a conflict. */
  readonly gates: readonly string[]
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
        halted: undefined,
        // Whoever opens it anew wants those that waited for a target to stand still to be tried again.
        entries: state.entries.map((entry) => ({
          ...entry,
          target: entry.target || event.target,
          spawns: 0,
          moves: 0,
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
  const { begun: _, ...known }: LandedOn = state.landed[target] ?? {}
  const { type, commit } = event
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
    isLanding: false,
  }
}

function changed(entry: Entry, event: OfEntry, { entries, target }: QueueState): Entry {
  // What was under way when it was taken out brings it back only by having landed.
  if (entry.state === 'removed' && event.type !== 'landed') return entry
  const { candidate, conflict, parkedFor: _, isTakenBack: __, isLeft: ___, over: ____, ...plain } = entry
  const quiet = { ...plain, why: '', hint: '' }
  switch (event.type) {
    case 'entry.removed':
      // A loop that runs goes on, and may spend what it was given.
      return { ...quiet, state: 'removed' }
    case 'entry.first':
      return { ...entry, place: Math.min(0, ...entries.map(({ place }) => place)) - 1 }
    case 'entry.retried':
      return {
        ...quiet,
        // After a conflict the branch is tried again as somebody has left it.
        state: entry.hadConflict === true ? 'done' : 'waiting',
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
        ...(conflict !== undefined && { hadConflict: true as const }),
        parkedFor: event.for,
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
        costUsd: costAfter(entry, event.cost_usd),
      }
    case 'candidate.began':
      return { ...quiet, state: 'merging' }
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
        gates: [...new Set([...entry.gates, ...(event.gates ?? [])])],
        conflict: begins,
        unresolved: begins,
      }
    }
    case 'candidate.regenerated':
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
        candidate: { commit: event.commit, base: event.base, tip: event.tip, passed: [] },
      }
    case 'candidate.gated':
      return candidate === undefined || event.outcome !== 'passed'
        ? entry
        : { ...entry, candidate: { ...candidate, passed: [...candidate.passed, event.gate] } }
    case 'base.moved':
      return {
        ...quiet,
        state: 'done',
        moves: entry.moves + 1,
        isLanding: false,
        ...(entry.moves + 1 >= mostMoves && {
          why: `waits: its target or its branch was moved ${mostMoves} times while it was gated`,
          hint: 'When nothing else moves them: ralph up',
        }),
      }
    case 'landing.began':
      return { ...entry, isLanding: true }
    case 'landed':
      return {
        ...settled(quiet),
        state: 'landed',
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

/** How the loop of an entry stands, as its own journal and lock tell it. */
export interface LoopFacts {
  /** It has a work tree of its own, or would get one: a loop in the user's checkout is none of the queue's business. */
  readonly isApart: boolean
  /** Of a run that was finished in the user's checkout: what it still has for the queue to do. */
  readonly left?: 'uncommitted' | 'nothing'
  readonly loop: 'none' | 'running' | 'dead' | 'ended'
  /** Its name: each start gives another one. */
  readonly run?: string
  /** Its new work tree was made ready so. */
  readonly setUp?: SetUpDone
  /** Of one that has ended. */
  readonly exitCode?: number
  readonly reason?: string
  /** It has ended because it may not cost more. */
  readonly isShort?: boolean
  readonly costUsd: number
  /** Of its branch. */
  readonly tip?: string
}

export interface QueueFacts {
  readonly loops: ReadonlyMap<string, LoopFacts>
  /** What one more loop is likely to cost, from the queue's own history; 0 where nothing is known. */
  readonly likelyUsd: number
  /** Why no further loop may be started now (a login at its limit, a full disk); empty where one may. */
  readonly hold: string
}

export type QueueStep =
  | { readonly do: 'tell'; readonly event: QueueBody }
  | {
      readonly do: 'spawn'
      readonly change: string
      readonly how: 'loop' | 'resume'
      readonly slot: number
      readonly money?: Money
    }
  /** An agent puts both sides of a conflict together, in the change's own work tree; the same one again where something was wrong. */
  | { readonly do: 'resolve'; readonly change: string; readonly slot: number; readonly money?: Money }
  | { readonly do: 'judge'; readonly change: string }
  | { readonly do: 'land'; readonly change: string }

/** Of a budget for all: what is set aside for a loop, and with that the most that its run may cost. */
export interface Money {
  readonly reservedUsd: number
  readonly maxCostUsd: number
}

/** Ports that loops side by side may use without asking one another: far from those that systems hand out. */
const firstPort = 20_000
const portsEach = 100

/** What tells work in one place from that beside it; 0 is the tree that merges are tried in. */
export function slotVariables(slot: number): Readonly<Record<string, string>> {
  return { RALPH_SLOT: String(slot), RALPH_PORT_BASE: String(firstPort + slot * portsEach) }
}

/** A loop that dies again and again is looked at by a person. */
export const mostSpawns = 3
/** A target that moves under every candidate is somebody at work. */
const mostMoves = 3

/** What is due now, all of it; empty where everything waits for what is under way, or has ended. */
export function dueNow(state: QueueState, facts: QueueFacts): readonly QueueStep[] {
  const ordered = inOrder(state)
  return [
    ...ordered.flatMap((entry) => (entry.state === 'running' ? loopSteps(entry, facts) : [])),
    ...ordered.flatMap((entry) => (entry.state === 'resolving' ? resolveSteps(state, entry, facts) : [])),
    ...spawnSteps(state, ordered, facts),
    ...landSteps(state, ordered),
  ]
}

export function inOrder({ entries }: QueueState): readonly Entry[] {
  return entries.filter(({ state }) => state !== 'removed').toSorted((a, b) => a.place - b.place)
}

function loopSteps(entry: Entry, { loops }: QueueFacts): readonly QueueStep[] {
  const { change } = entry
  const facts = loops.get(change)
  if (facts?.setUp !== undefined && facts.run !== undefined && facts.run !== entry.readyRun)
    return [
      { do: 'tell', event: { type: 'tree.set_up', change, for: 'loop', run: facts.run, ...facts.setUp } },
    ]
  if (facts === undefined || facts.loop === 'running') return []
  const place = { slot: entry.slot, ...moneyOf(entry) }
  if (isUnbegun(entry, facts) && entry.spawns < mostSpawns)
    return [{ do: 'spawn', change, how: 'resume', ...place }]
  if (isDone(facts)) return [{ do: 'tell', event: endedWith(change, facts) }]
  if (isShort(entry, facts)) return [{ do: 'tell', event: { ...endedWith(change, facts), is_short: true } }]
  if (goesOn(entry, facts)) return [{ do: 'spawn', change, how: 'resume', ...place }]
  const isDead = facts.loop === 'dead' || facts.loop === 'none'
  if (isDead && entry.spawns < mostSpawns)
    return [{ do: 'spawn', change, how: facts.loop === 'dead' ? 'resume' : 'loop', ...place }]
  const why = isDead ? `its loop was killed ${entry.spawns} times` : endWords(facts)
  const event = parked(change, forOf(facts.exitCode), why, wayOut(change, facts.exitCode))
  return [{ do: 'tell', event: { ...event, cost_usd: facts.costUsd } }]
}

/** The queue was killed before it could start the loop that it had written down: what is there is the run before that. */
function isUnbegun({ over }: Entry, { loop, run }: LoopFacts): boolean {
  return over !== undefined && over === run && loop !== 'running' && loop !== 'none'
}

/** By the share of the budget that the queue gave it: what others leave of theirs is for it, too. */
function isShort({ maxCostUsd }: Entry, facts: LoopFacts): boolean {
  return maxCostUsd !== undefined && facts.loop === 'ended' && facts.isShort === true
}

/** What it was given already: it goes on with that. */
function moneyOf({ reservedUsd, maxCostUsd }: Entry): { readonly money?: Money } {
  return maxCostUsd === undefined ? {} : { money: { reservedUsd, maxCostUsd } }
}

/** Stopped or at a limit while no queue was there: who types `ralph up` wants it to go on. */
function goesOn({ isLeft }: Entry, { loop, exitCode = 0 }: LoopFacts): boolean {
  return isLeft === true && loop === 'ended' && (isStop(exitCode) || exitCode === 6)
}

function isStop(exitCode: number): boolean {
  return Object.values<number>(signalExits).includes(exitCode)
}

function endWords({ exitCode = 0, reason = 'its loop failed' }: LoopFacts): string {
  return isStop(exitCode) ? 'its loop was stopped' : reason
}

/** Tries of one conflict, then a person looks at it. */
const mostTries = 2

function resolveSteps(state: QueueState, entry: Entry, all: QueueFacts): readonly QueueStep[] {
  const { change, conflict, tries } = entry
  if (conflict === undefined) return []
  const paths = conflict.paths.join(', ')
  const facts = all.loops.get(change)
  if (!conflict.isBegun || (facts !== undefined && isUnbegun(entry, facts))) {
    if (tries > mostTries) {
      const why = conflict.problems.join('; ') || `${mostTries} tries used`
      return [{ do: 'tell', event: conflictParked(change, paths, why) }]
    }
    const taken = new Set(
      state.entries.filter((each) => each !== entry && isBusy(each)).map(({ slot }) => slot),
    )
    const asked = { do: 'resolve', change, slot: freeSlot(taken) } as const
    if (state.maxCostUsd === undefined) return [asked]
    const free = freeUsd(state)
    const places = Math.max(1, state.jobs - taken.size)
    const { money = shareOf(entry, { free, places, ofRun: 0, likelyUsd: 0 }) } =
      entry.reservedUsd > 0 ? moneyOf(entry) : {}
    if (money !== undefined) return [{ ...asked, money }]
    const hint = `With more (--max-cost) it goes on: ralph up ${change}`
    return [
      { do: 'tell', event: parked(change, 'limit', `conflict in ${paths}: the budget is used up`, hint) },
    ]
  }
  if (facts === undefined || facts.loop === 'running') return []
  if (facts.loop === 'ended' && (facts.exitCode === 5 || facts.exitCode === 0))
    return [{ do: 'judge', change }]
  if (goesOn(entry, facts) || (facts.loop === 'dead' && entry.spawns < mostSpawns))
    return [{ do: 'spawn', change, how: 'resume', slot: entry.slot, ...moneyOf(entry) }]
  const event = parked(
    change,
    facts.loop === 'ended' ? forOf(facts.exitCode) : 'failed',
    `conflict in ${paths}: ${facts.loop === 'ended' ? endWords(facts) : 'its loop was killed'}`,
    `To let an agent try again: ralph queue retry ${change}. To do it yourself, merge by hand on ralph/${change} and commit there before that`,
  )
  return [{ do: 'tell', event: { ...event, cost_usd: facts.costUsd } }]
}

function conflictParked(change: string, paths: string, why: string): QueueBody {
  return parked(
    change,
    'failed',
    `conflict in ${paths}: ${why}`,
    `Merge by hand on ralph/${change} and commit there (if it is right as it is, an empty commit is enough), then: ralph queue retry ${change}`,
  )
}

function isBusy({ state, conflict }: Entry): boolean {
  return state === 'running' || (state === 'resolving' && conflict?.isBegun === true)
}

function isDone({ loop, exitCode }: LoopFacts): boolean {
  return loop === 'ended' && exitCode === 0
}

function endedWith(change: string, { costUsd, tip }: LoopFacts): Extract<QueueBody, { type: 'loop.ended' }> {
  return { type: 'loop.ended', change, cost_usd: costUsd, ...(tip !== undefined && { tip }) }
}

function forOf(exitCode: number | undefined): (typeof parkedFor)[number] {
  if (exitCode === 6) return 'limit'
  return exitCode === 5 || isStop(exitCode ?? 0) ? 'human' : 'failed'
}

function wayOut(change: string, exitCode = 1): string {
  const again = `ralph queue retry ${change}`
  if (isStop(exitCode)) return `To continue it: ${again}`
  if (exitCode === 6) return `When that is over: ${again}`
  return exitCode === 5
    ? `ralph status ${change} shows what only you can do; then: ${again}`
    : `ralph why ${change} shows what happened; to try it again: ${again}`
}

export function parked(
  change: string,
  what: (typeof parkedFor)[number],
  why: string,
  hint: string,
): Extract<QueueBody, { type: 'entry.parked' }> {
  return { type: 'entry.parked', change, for: what, why, hint }
}

function spawnSteps(state: QueueState, ordered: readonly Entry[], facts: QueueFacts): readonly QueueStep[] {
  const taken = new Set(ordered.filter(isBusy).map(({ slot }) => slot))
  let free = freeUsd(state)
  const waiting = ordered.filter((entry) => entry.state === 'waiting')
  return waiting.flatMap((entry, at): QueueStep[] => {
    const { change } = entry
    const found = facts.loops.get(change)
    const places = Math.max(1, Math.min(state.jobs - taken.size, waiting.length - at))
    const ofRun = found?.costUsd ?? 0
    const money =
      state.maxCostUsd === undefined
        ? undefined
        : shareOf(entry, { free, places, ofRun, likelyUsd: facts.likelyUsd })
    const isPoor = state.maxCostUsd !== undefined && money === undefined
    const why = waitsFor(state, entry, { hold: facts.hold, isFull: taken.size >= state.jobs, isPoor })
    const before = found === undefined ? undefined : asFound(change, found)
    const isBlocked = why !== '' && (before === undefined || entry.after.length > 0)
    if (isBlocked)
      return why === entry.why ? [] : [{ do: 'tell', event: { type: 'entry.waiting', change, why } }]
    if (before !== undefined && before.type !== 'loop.spawned') return [{ do: 'tell', event: before }]
    const slot = freeSlot(taken)
    taken.add(slot)
    if (before !== undefined) return [{ do: 'tell', event: { ...before, slot } }]
    free -= money?.reservedUsd ?? 0
    const how = (found?.loop ?? 'none') === 'none' ? 'loop' : 'resume'
    return [{ do: 'spawn', change, how, slot, ...(money !== undefined && { money }) }]
  })
}

/**
 * As much as falls to it of what is free, and at least what one usually takes: all that run can spend theirs, and together not more than
 * the budget. Undefined: too little is left.
 */
function shareOf(
  { shortUsd = 0 }: Entry,
  { free, places, ofRun, likelyUsd }: { free: number; places: number; ofRun: number; likelyUsd: number },
): Money | undefined {
  if (free <= 0 || free < likelyUsd) return undefined
  const reservedUsd = Math.max(likelyUsd, Math.floor((free / places) * 10_000) / 10_000)
  if (reservedUsd === 0) return undefined
  const maxCostUsd = ofRun + reservedUsd
  // With no more than it had it would end at once again.
  return maxCostUsd <= shortUsd ? undefined : { reservedUsd, maxCostUsd }
}

/** What somebody has done already: a loop that runs is adopted, one that is done is landed, one in the user's checkout is left alone. */
function asFound(change: string, facts: LoopFacts): QueueBody | undefined {
  if (facts.loop === 'none') return undefined
  if (facts.left === 'nothing')
    return { type: 'entry.removed', change, why: 'its work is in your checkout, and no story of it is open' }
  if (!facts.isApart) return ownRun(change, facts)
  if (isDone(facts)) return endedWith(change, facts)
  return facts.loop === 'running' ? { type: 'loop.spawned', change, slot: 1 } : undefined
}

/** Each with what brings it on. */
function ownRun(change: string, facts: LoopFacts): QueueBody {
  const again = `ralph queue retry ${change}`
  const [why, hint] =
    facts.left === 'uncommitted'
      ? ['its work is in your own checkout, uncommitted', `Commit it, then: ${again}`]
      : isDone(facts)
        ? ['its run is done in your own checkout, not in a worktree', `Land it: ralph land ${change}`]
        : [
            'its run is in your own checkout, not in a worktree',
            `Finish it there (ralph status ${change}), then: ${again}`,
          ]
  return parked(change, 'human', why, hint)
}

function freeSlot(taken: ReadonlySet<number>): number {
  let slot = 1
  while (taken.has(slot)) slot += 1
  return slot
}

function waitsFor(
  state: QueueState,
  entry: Entry,
  facts: { readonly hold: string; readonly isFull: boolean; readonly isPoor: boolean },
): string {
  if (state.halted !== undefined) return `the queue has halted: ${state.halted.why}`
  const earlier = comesAfter(state, entry)
  if (earlier !== '') return earlier
  if (facts.hold !== '') return facts.hold
  if (facts.isFull) return state.jobs === 1 ? 'waits for the one that runs' : 'waits for a free place'
  if (facts.isPoor) return 'waits: the budget is used up'
  return ''
}

/** Which of those that it depends on has not landed where it lands; empty where all have. */
function comesAfter(state: QueueState, { after, target }: Entry): string {
  for (const name of after) {
    const other = state.entries.find((each) => each.change === name)
    if (other === undefined) continue
    if (other.state === 'landed') {
      if (other.target === target) continue
      return `waits for ${name}, which has landed on ${other.target}, not on ${target}`
    }
    if (other.state === 'removed') return `waits for ${name}, which was removed from the queue`
    return other.state === 'parked' ? `waits for ${name}, which is parked` : `waits for ${name}`
  }
  return ''
}

/** Of the budget for all: what is neither spent nor reserved. */
export function freeUsd({ entries, maxCostUsd }: QueueState): number {
  if (maxCostUsd === undefined) return Number.POSITIVE_INFINITY
  const now = entries.filter(({ isPast }) => isPast !== true)
  return maxCostUsd - now.reduce((sum, { costUsd, reservedUsd }) => sum + costUsd + reservedUsd, 0)
}

const landing: ReadonlySet<EntryState> = new Set(['merging', 'gating'])

/** One at a time; one that was begun before goes on first. */
function landSteps(state: QueueState, ordered: readonly Entry[]): readonly QueueStep[] {
  if (!state.lands || state.halted !== undefined) return []
  const done = ordered
    .filter((entry) => entry.state === 'done' && entry.moves < mostMoves)
    .map((entry) => ({ entry, why: comesAfter(state, entry) }))
  const due = ordered.find((entry) => landing.has(entry.state)) ?? done.find(({ why }) => why === '')?.entry
  // Its loop had begun before somebody said what it comes after.
  const waiting = done.filter(({ entry, why }) => why !== '' && why !== entry.why)
  return [
    ...waiting.map(({ entry: { change }, why }): QueueStep => ({
      do: 'tell',
      event: { type: 'entry.waiting', change, why },
    })),
    ...(due === undefined ? [] : [{ do: 'land', change: due.change } as const]),
  ]
}

/** Nothing is under way, and nothing will be without somebody's help. */
export function queueExit(state: QueueState): number {
  const open = inOrder(state).filter(
    (entry) => entry.state !== 'landed' && !(entry.state === 'done' && !state.lands),
  )
  if (open.length === 0) return 0
  if (state.halted !== undefined) return 5
  const parkedOnes = open.filter((entry) => entry.state === 'parked')
  if (parkedOnes.some((entry) => entry.parkedFor === 'failed')) return 3
  if (parkedOnes.length === 0) return open.some(({ why }) => why.includes('budget')) ? 6 : 3
  return parkedOnes.some((entry) => entry.parkedFor === 'limit') ? 6 : 5
}

// --- what a look shows ---------------------------------------------------------------------------------------------

/** An entry as it is now: without a queue at work its journal says how things stood when it ended. */
export function seenEntry(
  entry: Entry,
  facts: LoopFacts,
  isAlive: boolean,
): Pick<Entry, 'state' | 'why' | 'hint'> {
  const { state, why, hint } = entry
  if (isAlive || ['landed', 'parked', 'removed'].includes(state)) return { state, why, hint }
  if (state === 'running' || (state === 'resolving' && entry.conflict?.isBegun === true)) {
    if (facts.loop === 'running') return { state, why: 'continues; ralph up lands it', hint: '' }
    if (facts.loop === 'dead') return { state: 'waiting', why: 'its loop was killed', hint: '' }
    const exitCode = facts.exitCode ?? 0
    if (facts.loop === 'ended' && exitCode !== 0 && state === 'running') {
      const isForUp = isStop(exitCode) || exitCode === 6
      return isForUp
        ? { state: 'waiting', why: endWords(facts), hint: '' }
        : { state: 'parked', why: endWords(facts), hint: wayOut(entry.change, exitCode) }
    }
    if (facts.loop === 'ended' && isStop(exitCode))
      return { state: 'waiting', why: endWords(facts), hint: '' }
    if (facts.loop === 'none') return { state: 'waiting', why: 'its loop has not begun', hint: '' }
  }
  // What it is to come after has not landed: that has not changed since.
  const isAfter = (state === 'waiting' || state === 'done') && entry.after.length > 0 && why !== ''
  return {
    state: state === 'waiting' || entry.unresolved !== undefined ? 'waiting' : 'done',
    why: isAfter ? why : 'waits for ralph up',
    hint: '',
  }
}

// --- dependencies ------------------------------------------------------------------------------------------------

/** A name in a circle of dependencies, with the circle; undefined where there is none. */
export function findCycle(after: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>()
  const visit = (name: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    if (done.has(name)) return undefined
    for (const other of after.get(name) ?? []) {
      const found = visit(other, [...path, name])
      if (found !== undefined) return found
    }
    done.add(name)
    return undefined
  }
  for (const name of after.keys()) {
    const found = visit(name, [])
    if (found !== undefined) return found
  }
  return undefined
}
