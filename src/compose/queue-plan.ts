// What `ralph up` is to do, before anything is touched: which changes, into which branch, in which order; refused where that makes no sense.
// Long because it is one list of refusals: what makes no sense is said before anything is touched, or not at all.
import { relative } from 'node:path'
import { inspectLock } from '../adapters/files/lock.ts'
import { queuePaths } from '../adapters/files/queue-files.ts'
import { textOf } from '../adapters/git/formats/bytes.ts'
import { hasLandedOn, targetRefs } from '../adapters/git/landing/landing.ts'
import { readRefs, shortName } from '../adapters/git/refs/refs.ts'
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { rewrittenRequirements, saidDependencies } from '../adapters/openspec/dependencies.ts'
import { archivedNames } from '../adapters/openspec/guard.ts'
import { RalphError } from '../core/error.ts'
import { nearest } from '../core/nearest.ts'
import { dueNow, findCycle, inOrder } from '../core/queue-due.ts'
import type { LoopFacts, QueueStep } from '../core/queue-due.ts'
import type { QueueBody } from '../core/queue-event.ts'
import { isOver } from '../core/queue.ts'
import type { Entry, QueueState } from '../core/queue.ts'
import type { UpPlan, UpWish } from '../ui/app.ts'
import { provenBy } from '../engine/queue-base.ts'
import { gateFound } from './beforehand.ts'
import { storiesNow } from './plan-now.ts'
import { hasLanded, isPlannedAgain, loopFacts, lowDisk, openChanges } from './queue-facts.ts'
import { startWords } from './queue-start.ts'
import { queueNow, withBodies } from './queue-state.ts'
import { findRootOf } from './root.ts'
import { isRunning, knownRun } from './site.ts'
import type { Site } from './site.ts'
import { upHere } from './up-here.ts'

interface Plan {
  /** As the queue stood when it was asked. */
  readonly before: QueueState
  /** What the queue is told first. */
  readonly opening: (state: QueueState) => readonly QueueBody[]
  /** In the queue, and not asked for: they stay as they are. */
  readonly left: readonly string[]
}

export async function planUp(site: Site, request: UpWish): Promise<Plan> {
  const target = await targetFor(site, request.into, ['ralph up', ...request.changes].join(' '))
  const open = await openChanges(site)
  const before = await queueNow(site.git)
  const of = (name: string): Entry | undefined => before.entries.find(({ change }) => change === name)
  if (request.into !== undefined) refuseElsewhere(before, request.changes, target)
  // In a checkout that is not updated yet they look as if they were open.
  const landed = new Set(before.entries.flatMap(({ change, state }) => (state === 'landed' ? [change] : [])))
  for (const name of landed)
    if (open.includes(name) && (await isPlannedAgain(site, name))) landed.delete(name)
  const named: string[] = []
  for (const name of new Set(request.changes))
    if (!(await hasLanded(site, name, target)) || (await isPlannedAgain(site, name))) named.push(name)
  const names =
    request.changes.length > 0
      ? named
      : open.filter((name) => !landed.has(name) && of(name)?.isTakenBack === undefined)
  for (const name of names) if (!open.includes(name)) throw unknownChange(name, open)
  const isIdle = names.length === 0 && landed.size === 0 && request.changes.length === 0
  if (isIdle && before.entries.every(isOver))
    throw new RalphError('no_tasks', 'There is no open change in openspec/changes.', {
      hint: 'Nothing was touched. `ralph list` shows all changes.',
    })
  /** Not added anew. */
  const stays = (entry: Entry): boolean => {
    const isHere = request.into === undefined || entry.target === target
    return !isOver(entry) || (entry.state === 'parked' && isHere)
  }
  const known = new Map(before.entries.filter(stays).map((entry) => [entry.change, entry.after]))
  const archived = (await archivedNames(changeDirOf(await findRootOf(site), 'archive'))).map((name) =>
    name.replace(/^\d{4}-\d\d-\d\d-/, ''),
  )
  const isThere = async (change: string): Promise<boolean> => {
    const done = of(change)?.landed
    if (done !== undefined && (await hasLandedOn(site.git, target, done.commit))) return true
    return archived.includes(change) || (await hasLanded(site, change, target))
  }
  const after = await dependencies(site, names, open, request.after, known, isThere)
  const asked = (state: QueueState): readonly QueueBody[] =>
    names.flatMap((change): QueueBody[] => {
      const entry = state.entries.find((each) => each.change === change)
      const earlier = after.get(change) ?? []
      const { gates } = request
      if (entry === undefined || !stays(entry))
        return [
          { type: 'entry.added', change, after: [...earlier], target, gates: [...gates] },
          ...droppedBy(request, entry),
        ]
      const more = earlier.filter((each) => !entry.after.includes(each))
      return [
        ...droppedBy(request, entry),
        ...(more.length > 0 ? [{ type: 'entry.ordered' as const, change, after: more }] : []),
        ...(entry.state === 'parked' ? [{ type: 'entry.retried' as const, change }] : []),
      ]
    })
  const left = request.changes.length === 0 ? [] : await notAsked(site, before, request.changes, after)
  const opened = await openedFor(site, request, { target, before, asked: asked(before), left })
  return { before, opening: (state) => [opened, ...asked(state)], left }
}

/** What the named ones wait for is asked for, too; a loop that runs is under way already. */
async function notAsked(
  site: Site,
  { entries }: QueueState,
  names: readonly string[],
  after: ReadonlyMap<string, readonly string[]>,
): Promise<readonly string[]> {
  const asked = new Set(names)
  for (const name of asked) for (const earlier of after.get(name) ?? []) asked.add(earlier)
  const others = entries.filter(
    ({ change, state }) => state !== 'landed' && state !== 'removed' && !asked.has(change),
  )
  const runs = await Promise.all(others.map(({ change }) => knownRun(site, change)))
  return others.flatMap(({ change }, at) => {
    const run = runs[at]
    return run !== undefined && isRunning(run) ? [] : [change]
  })
}

/** Who types `--verify` anew for a change says what it has to pass, besides what its own loop had. */
export function droppedBy(
  { gates, namesGates }: Pick<UpWish, 'gates' | 'namesGates'>,
  entry: Entry | undefined,
): readonly QueueBody[] {
  const dropped = namesGates ? (entry?.given ?? []).filter((gate) => !gates.includes(gate)) : []
  return entry === undefined || dropped.length === 0
    ? []
    : [{ type: 'gates.dropped', change: entry.change, gates: dropped }]
}

/** Each change that is to run or to land is named with the gates that will really run. */
export async function openedFor(
  site: Site,
  request: UpWish,
  {
    target,
    before,
    asked,
    only,
    left = [],
  }: {
    readonly target: string
    readonly before: QueueState
    readonly asked: readonly QueueBody[]
    readonly only?: string
    readonly left?: readonly string[]
  },
): Promise<QueueOpened> {
  const opened: QueueOpened = {
    type: 'queue.opened',
    target,
    jobs: only === undefined ? request.jobs : 1,
    land: request.land,
    lands: request.lands,
    gates: [...request.gates],
    ...(only === undefined && request.maxCostUsd !== undefined && { max_cost_usd: request.maxCostUsd }),
  }
  const then = withBodies(before, [opened, ...asked])
  const open = inOrder(then).filter(
    (entry) =>
      entry.state !== 'landed' &&
      entry.state !== 'parked' &&
      [undefined, entry.change].includes(only) &&
      !left.includes(entry.change),
  )
  const proven = await Promise.all(
    open.map(async ({ change }) => ({ change, gates: [...(await gatesNow(site, then, change))] })),
  )
  const agents = [...(request.agents.agent ?? ['command'])]
  const isGateless = proven.length > 0 && proven.every(({ gates }) => gates.length === 0)
  const uncommitted = await uncommittedPlans(
    site,
    open.map(({ change }) => change),
  )
  return {
    ...opened,
    proven,
    ...(isGateless && (await gateFound(site, { gates: [], agents }))),
    ...(uncommitted.length > 0 && { uncommitted }),
    ...(left.length > 0 && { left: [...left] }),
  }
}

async function uncommittedPlans(site: Site, changes: readonly string[]): Promise<string[]> {
  const root = await findRootOf(site)
  const folders = new Map(
    changes.map((change) => [change, relative(site.git.worktree, changeDirOf(root, change))]),
  )
  const inside = [...folders].filter(([, folder]) => !folder.startsWith('..'))
  if (inside.length === 0) return []
  const { out } = await site.git.run([
    'status',
    '--porcelain',
    '-z',
    '--untracked-files=all',
    '--',
    ...inside.map(([, folder]) => folder),
  ])
  const paths = textOf(out)
  return inside.flatMap(([change, folder]) => (paths.includes(` ${folder}/`) ? [change] : []))
}

type QueueOpened = Extract<QueueBody, { type: 'queue.opened' }>

async function gatesNow(site: Site, state: QueueState, change: string): Promise<readonly string[]> {
  return provenBy(state, change, (await knownRun(site, change)).state.settings?.gates ?? [])
}

/** `ralph up --dry-run`: the same plan, and what would be due first. Touches nothing. */
export async function dryUp(site: Site, request: UpWish): Promise<UpPlan> {
  const { before, opening, left } = await planUp(site, request)
  const { held } = inspectLock(queuePaths(site.git.gitCommonDir).lock, site.identity)
  if (held === 'alive' || held === 'elsewhere') throw alreadyRunning(site)
  const bodies = opening(before)
  const state = withBodies(before, bodies)
  const entries = inOrder(state).filter(
    ({ change, state: now }) => now !== 'landed' && !left.includes(change),
  )
  const loops = new Map<string, LoopFacts>()
  for (const { change, unresolved } of entries)
    loops.set(change, await loopFacts(site, change, unresolved?.marked))
  const steps = dueNow({ ...state, entries }, { loops, likelyUsd: 0, hold: lowDisk(site) })
  const { target, jobs, land, lands, gate_found: offered, uncommitted } = bodies[0] as QueueOpened
  return {
    target,
    jobs,
    land: lands ? land : 'no',
    gates: request.gates,
    ...(await startWords(site, request, state)),
    ...(offered !== undefined && { gate_offered: offered }),
    ...(uncommitted !== undefined && { uncommitted }),
    changes: await Promise.all(
      entries.map(async (entry) => {
        const { change, after } = entry
        const run = await knownRun(site, change)
        const { done, total } = await storiesNow(site, run)
        return {
          change,
          ...doesFirst(entry, steps),
          after,
          target: entry.target,
          gates: await gatesNow(site, state, change),
          stories_done: done,
          stories_total: total,
        }
      }),
    ),
  }
}

/** What becomes of one at once; of one that waits or stays as it is: why. */
function doesFirst(
  { change, state, why, unresolved }: Entry,
  steps: readonly QueueStep[],
): Pick<UpPlan['changes'][number], 'does' | 'why'> {
  const step = steps.find((each) =>
    each.do === 'tell' ? 'change' in each.event && each.event.change === change : each.change === change,
  )
  const event = step?.do === 'tell' ? step.event : undefined
  if (event?.type === 'entry.waiting') return { does: 'wait', why: event.why }
  if (event?.type === 'entry.parked' || event?.type === 'entry.removed')
    return { does: 'leave', why: event.why ?? '' }
  if (state === 'parked') return { does: 'leave', why }
  if (step?.do === 'spawn') return { does: step.how === 'loop' ? 'run' : 'resume', why: '' }
  if (state === 'resolving') return { does: 'resolve', why: '' }
  if (event?.type === 'loop.spawned' || (state === 'running' && event === undefined))
    return { does: 'adopt', why: '' }
  if (state === 'waiting' && event === undefined) return { does: 'wait', why }
  // Nobody has looked yet at what was made of both sides.
  return { does: unresolved === undefined ? 'land' : 'judge', why: '' }
}

export function alreadyRunning(site: Site): RalphError {
  const held = inspectLock(queuePaths(site.git.gitCommonDir).lock, site.identity)
  const pid = held.held === 'alive' ? ` (pid ${held.owner.pid})` : ''
  return new RalphError('locked', `Another \`ralph up\` runs in this repository${pid}.`, {
    hint: 'Nothing was touched. `ralph queue --watch` shows it, `ralph queue add <change>` gives it more to do.',
  })
}

/** What is under way for one branch does not turn to another. */
export function refuseElsewhere({ entries }: QueueState, names: readonly string[], target: string): void {
  for (const entry of entries)
    if (names.includes(entry.change) && !isOver(entry) && entry.target !== '' && entry.target !== target)
      throw new RalphError(
        'usage',
        `${entry.change} is in the queue for ${entry.target}, not for ${target}.`,
        {
          hint: `Nothing was touched. Take it out first: ralph queue remove ${entry.change}`,
        },
      )
}

export async function targetFor(site: Site, into: string | undefined, typed: string): Promise<string> {
  if (into?.startsWith('ralph/') === true)
    throw new RalphError('usage', `${into} is a branch that a loop works on: nothing lands there.`, {
      hint: 'Nothing was touched. Name another one: --into main',
    })
  const target = into ?? (await currentBranch(site, typed))
  // Refuses one that is not there, before anything is written down.
  await targetRefs(site.git, target)
  return target
}

async function currentBranch(site: Site, typed: string): Promise<string> {
  const { head } = await readRefs(site.git)
  if (head.ref !== undefined && !head.ref.startsWith('refs/heads/ralph/')) return shortName(head.ref)
  const where =
    head.ref === undefined
      ? 'You are on no branch (HEAD is detached)'
      : `You are on ${shortName(head.ref)}, ralph's own branch`
  const there = await upHere(site, typed)
  throw new RalphError('usage', `${where}: nothing can land there.`, {
    hint:
      there === typed
        ? 'Nothing was touched. First go to your branch (git switch main), or name it: --into main'
        : `Nothing was touched. This is the folder of a loop. From your own checkout: ${there}`,
  })
}

export function unknownChange(name: string, open: readonly string[]): RalphError {
  const near = nearest(name, open)
  return new RalphError('change_not_found', `There is no open change ${name}.`, {
    hint: `Nothing was touched. ${near === undefined ? '`ralph list` shows all changes.' : `Did you mean ${near}?`}`,
  })
}

/** By `--after later:earlier`, by what a change says of itself, and where two rewrite the same requirement, in the order of their names. */
async function dependencies(
  site: Site,
  names: readonly string[],
  open: readonly string[],
  pairs: readonly string[],
  /** Of those that are in the queue and stay there. */
  known: ReadonlyMap<string, readonly string[]>,
  isOver: (change: string) => Promise<boolean>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const root = await findRootOf(site)
  const after = new Map(known)
  const wait = (later: string, earlier: string): void =>
    void after.set(later, [...new Set([...(after.get(later) ?? []), earlier])])
  for (const pair of pairs) {
    const [later = '', earlier = '', ...rest] = pair.split(':')
    if (later === '' || earlier === '' || rest.length > 0)
      throw new RalphError('usage', `--after ${pair} is not of the form later:earlier.`, {
        hint: 'For example: --after b:a (b begins when a has landed).',
      })
    const others = [later, earlier].filter((name) => !names.includes(name) && !known.has(name))
    for (const name of others)
      if (!(await isOver(name)))
        throw open.includes(name)
          ? notAmong(`--after ${pair} names ${name}`, names, name)
          : unknownChange(name, open)
    if (others.length === 0) wait(later, earlier)
  }
  for (const name of names)
    for (const other of await saidDependencies(root, name)) {
      if (names.includes(other)) wait(name, other)
      else if (!(await isOver(other))) throw notAmong(`${name} depends on ${other}`, names, other)
    }
  const rewriting = new Map<string, string>()
  for (const name of names)
    for (const requirement of rewrittenRequirements(root, name)) {
      const earlier = rewriting.get(requirement)
      // What was said of them counts more.
      if (earlier !== undefined && earlier !== name && !(after.get(earlier) ?? []).includes(name))
        wait(name, earlier)
      rewriting.set(requirement, name)
    }
  const cycle = findCycle(after)
  if (cycle === undefined) return after
  throw new RalphError('usage', `These wait for one another: ${cycle.join(' → ')}.`, {
    hint: 'Nothing was touched. Leave one of these dependencies out.',
  })
}

function notAmong(said: string, names: readonly string[], other: string): RalphError {
  return new RalphError('usage', `${said}, which is not among the changes to run.`, {
    hint: `Nothing was touched. Run it too: ralph up ${[...names, other].join(' ')}`,
  })
}
