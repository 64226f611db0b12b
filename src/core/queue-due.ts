// What is due in the merge queue now: loops to start, conflicts to resolve, changes to land; and how it ends.
// Long because the rules decide for the same entries: who reads one reads the others, too.
import type { SetUpDone } from './event.ts'
import { afterColon, killedExit, signalExits } from './outcome.ts'
import type { parkedFor, QueueBody } from './queue-event.ts'
import { mostMoves, isBusy, type Entry, type EntryState, type QueueState } from './queue.ts'
import { shellWord } from './shell-word.ts'

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
  /** What its run has said that makes its "done" worth less. */
  readonly weakened?: readonly string[]
  /** Of its branch. */
  readonly tip?: string
  /** Of its work tree, as it is typed in a shell. */
  readonly folder?: string
  /** Its branch holds what was asked for: both sides of a conflict. */
  readonly isMerge?: boolean
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
  const ofRun = facts.run === undefined ? {} : { run: facts.run }
  return [{ do: 'tell', event: { ...event, cost_usd: facts.costUsd, ...ofRun } }]
}

/** Parked for a run that somebody has gone on with since: how that one ended. Undefined where nobody has. */
export function parkedSince(
  { change, parkedRun, unresolved }: Entry,
  facts: Pick<LoopFacts, 'loop' | 'run' | 'exitCode' | 'reason'>,
): Pick<Entry, 'why' | 'hint'> | undefined {
  if (parkedRun === undefined || parkedRun === facts.run || unresolved !== undefined) return undefined
  if (facts.loop !== 'ended') return undefined
  return facts.exitCode === 0
    ? { why: 'its loop is done now', hint: `To land it: ralph land ${change}` }
    : { why: endWords(facts), hint: wayOut(change, facts.exitCode) }
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

/** Stopped, killed or at a limit while no queue was there: who types `ralph up` wants it to go on. */
function goesOn({ isLeft }: Entry, facts: LoopFacts): boolean {
  return isLeft === true && isForUp(facts)
}

function isForUp({ loop, exitCode = 0 }: LoopFacts): boolean {
  return loop === 'ended' && (isStop(exitCode) || exitCode === 6 || exitCode === killedExit)
}

function isStop(exitCode: number): boolean {
  return Object.values<number>(signalExits).includes(exitCode)
}

function endWords({
  exitCode = 0,
  reason = 'its loop failed',
}: Pick<LoopFacts, 'exitCode' | 'reason'>): string {
  if (exitCode === killedExit) return 'its loop was killed'
  return isStop(exitCode) ? 'its loop was stopped' : afterColon(reason.replace(/\.$/, ''))
}

/** Tries of one conflict, then a person looks at it. */
export const mostTries = 2

function resolveSteps(state: QueueState, entry: Entry, all: QueueFacts): readonly QueueStep[] {
  const { change, conflict, tries } = entry
  if (conflict === undefined) return []
  const facts = all.loops.get(change)
  if (!conflict.isBegun || (facts !== undefined && isUnbegun(entry, facts))) {
    if (tries > mostTries) {
      const why = conflict.problems.join('; ') || `${mostTries} tries used`
      return [{ do: 'tell', event: conflictParked(change, conflict.paths, why, facts) }]
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
      {
        do: 'tell',
        event: parked(change, 'limit', `${bothChanged(conflict.paths)}; the budget is used up`, hint),
      },
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
    `${bothChanged(conflict.paths)}; ${facts.loop === 'ended' ? endWords(facts) : 'its loop was killed'}`,
    `To let an agent try again: ralph queue retry ${change}. To do it yourself:\n${byHand(change, conflict.paths, facts.folder)}`,
  )
  return [{ do: 'tell', event: { ...event, cost_usd: facts.costUsd } }]
}

function conflictParked(
  change: string,
  paths: readonly string[],
  why: string,
  facts: LoopFacts | undefined,
): QueueBody {
  return parked(
    change,
    'failed',
    `${bothChanged(paths)}; no merge of both was accepted: ${paths.length === 1 ? why.replaceAll(`${paths[0]} has`, 'it has') : why}`,
    byHand(change, paths, facts?.folder, { isWhole: !why.includes('conflict markers') }),
  )
}

/** Of a change whose name stands before it. */
export function bothChanged(paths: readonly string[]): string {
  return `it and what landed both changed ${paths.join(', ')}`
}

/** Git has both sides in one commit already: there is nothing to merge any more, only files to put right. */
export function byHand(
  change: string,
  paths: readonly string[],
  folder: string | undefined,
  {
    isWhole = false,
    again = `ralph queue retry ${change}`,
  }: {
    /** Somebody may find it right as it is. */
    readonly isWhole?: boolean
    readonly again?: string
  } = {},
): string {
  const files = `${paths.join(', ') || 'what is wrong'} in ${folder ?? `a checkout of ralph/${change}`}`
  return [
    `1. Edit ${files} so that both changes are in ${paths.length > 1 ? 'them' : 'it'}${isWhole ? ' (or leave it, if it is right as it is)' : ''}.`,
    '2. Look for markers that are left; there must be none:',
    ...(folder === undefined ? [] : [`  cd ${folder}`]),
    '  git grep -n "^<<<<<<<"',
    '3. Commit it, and give it back to the queue:',
    // Whatever else is changed there is not of the merge; `git add` refuses all of them where one is deleted already.
    `  git update-index --add --remove -- ${paths.map(shellWord).join(' ')} &&`,
    '  git commit --allow-empty -m "Both sides"',
    `  ${again}`,
  ].join('\n')
}

/** Each side is green alone: what fails is there only once they are together. */
export function gateSteps(
  change: string,
  {
    gate,
    folder,
    from,
    log,
  }: {
    readonly gate: string
    readonly folder: string | undefined
    /** What it was merged with, by names. */
    readonly from: readonly string[]
    readonly log: string
  },
): string {
  const typed = (text: string): readonly string[] => text.split('\n').map((line) => `  ${line}`)
  return [
    `Its output: ${log}. To read it: ralph logs ${change} --gate`,
    `1. Merge what landed in ${folder ?? `a checkout of ralph/${change}`}, and see the gate fail there:`,
    ...(folder === undefined ? [] : [`  cd ${folder}`]),
    ...from.map((name) => `  git merge --no-edit ${shellWord(name)}`),
    ...typed(gate),
    '2. Fix it there, commit it, and give it back to the queue:',
    `  ralph queue retry ${change}`,
  ].join('\n')
}

function isDone({ loop, exitCode }: LoopFacts): boolean {
  return loop === 'ended' && exitCode === 0
}

function endedWith(
  change: string,
  { costUsd, tip, weakened = [] }: LoopFacts,
): Extract<QueueBody, { type: 'loop.ended' }> {
  return {
    type: 'loop.ended',
    change,
    cost_usd: costUsd,
    ...(tip !== undefined && { tip }),
    ...(weakened.length > 0 && { warnings: [...weakened] }),
  }
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
  // Whatever its loop said of it: it lands as somebody has left it, or is refused.
  if (facts.isMerge === true && facts.loop !== 'running') return endedWith(change, facts)
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
export function comesAfter(state: QueueState, { after, target }: Entry): string {
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

/** Begins what an entry says that waits for the disk. */
export const noRoom = 'waits for room on the disk'

/** An entry as it is now: without a queue at work its journal says how things stood when it ended. */
export function seenEntry(
  entry: Entry,
  facts: LoopFacts,
  isAlive: boolean,
  /** What it waits for now, by `comesAfter`. */
  after: string,
): Pick<Entry, 'state' | 'why' | 'hint'> {
  const { state, why, hint } = entry
  if (state === 'parked') return { state, why, hint, ...parkedSince(entry, facts) }
  if (isAlive || ['landed', 'removed'].includes(state)) return { state, why, hint }
  if (state === 'running' || (state === 'resolving' && entry.conflict?.isBegun === true)) {
    if (facts.loop === 'running') return { state, why: 'continues; ralph up lands it', hint: '' }
    if (facts.loop === 'dead') return { state: 'waiting', why: 'its loop was killed', hint: '' }
    const exitCode = facts.exitCode ?? 0
    if (facts.loop === 'ended' && exitCode !== 0 && state === 'running') {
      return isForUp(facts)
        ? { state: 'waiting', why: endWords(facts), hint: '' }
        : { state: 'parked', why: endWords(facts), hint: wayOut(entry.change, exitCode) }
    }
    if (facts.loop === 'ended' && isStop(exitCode))
      return { state: 'waiting', why: endWords(facts), hint: '' }
    if (facts.loop === 'none') return { state: 'waiting', why: 'its loop has not begun', hint: '' }
  }
  // Somebody moves what it is to land on: only a person knows who.
  if (state === 'done' && entry.moves >= mostMoves) return { state, why, hint }
  const isAfter = (state === 'waiting' || state === 'done') && after !== ''
  return {
    state: state === 'waiting' || entry.unresolved !== undefined ? 'waiting' : 'done',
    // The last one gave up for want of it, and the next one would.
    why: isAfter ? after : why.startsWith(noRoom) ? `${why}; then: ralph up` : 'waits for ralph up',
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
