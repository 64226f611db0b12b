// The merge queue of a repository: one supervisor at a time, loops as processes of their own, and what anybody may ask of it meanwhile.
// Long because it is one list: what a user can ask of the queue, each with its refusals.
import { existsSync, statfsSync } from 'node:fs'
import { relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileLock, inspectLock } from '../adapters/files/lock.ts'
import {
  openQueueJournal,
  queuePaths,
  readQueueJournal,
  takeWishes,
  wish,
} from '../adapters/files/queue-files.ts'
import type { QueuePaths } from '../adapters/files/queue-files.ts'
import {
  carryHome,
  hasLandedOn,
  heldWhere,
  isIn,
  landedByGit,
  landedRef,
  targetRefs,
  wasIn,
} from '../adapters/git/landing/landing.ts'
import { followLanded } from '../adapters/git/landing/follow.ts'
import { shown } from '../adapters/git/git.ts'
import { shellWord } from '../adapters/process/shell-word.ts'
import { readRef, readRefs, shortName } from '../adapters/git/refs/refs.ts'
import { isAncestor } from '../adapters/git/tree/tree.ts'
import { changeDirOf, listChanges } from '../adapters/openspec/changes.ts'
import { rewrittenRequirements, saidDependencies } from '../adapters/openspec/dependencies.ts'
import { archivedNames } from '../adapters/openspec/guard.ts'
import { RalphError } from '../core/error.ts'
import { limitsOf } from '../core/resource-limits.ts'
import { nearest } from '../core/nearest.ts'
import { findCycle, inOrder, seenEntry } from '../core/queue-due.ts'
import { isOver, isOwnLanding, replayQueue } from '../core/queue.ts'
import type { Conflict, Entry, QueueState } from '../core/queue.ts'
import type { LoopFacts } from '../core/queue-due.ts'
import type { QueueBody } from '../core/queue-event.ts'
import { totalCostUsd } from '../core/state.ts'
import { waitingFields } from '../core/state-snapshot.ts'
import { createQueue } from '../engine/queue.ts'
import type { Queue, QueueReader } from '../engine/queue.ts'
import type { QueueReport, QueueWish, Said, UpRequest } from '../ui/app.ts'
import { gateFound } from './beforehand.ts'
import { sayDone } from './control.ts'
import { landedWork } from './landed.ts'
import { cagingOf } from './cage.ts'
import { landingOf } from './landing.ts'
import { gitSays, isKept, queueNow } from './queue-state.ts'
import { folderOf, refuseConflict } from './queue-entry.ts'
import { storiesNow } from './plan-now.ts'
import { findRootOf } from './root.ts'
import { isDead, isRunning, isTree, knownRun, knownRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { refuseUnmeasured } from './settings.ts'
import { stopLoop } from './stop.ts'

/** Runs the queue until nothing is left to do, or `stop`: its loops go on then. */
export async function up(site: Site, request: UpRequest): Promise<number> {
  const target = await targetFor(site, request.into)
  const open = await openChanges(site)
  const before = await queueNow(site.git)
  const of = (name: string): Entry | undefined => before.entries.find(({ change }) => change === name)
  if (request.into !== undefined) refuseElsewhere(before, request.changes, target)
  // In a checkout that is not updated yet they look as if they were open.
  const landed = new Set(before.entries.flatMap(({ change, state }) => (state === 'landed' ? [change] : [])))
  for (const name of landed)
    if (open.includes(name) && (await isPlannedAgain(site, name))) landed.delete(name)
  const named: string[] = []
  for (const name of request.changes)
    if (!(await hasLanded(site, name, target)) || (await isPlannedAgain(site, name))) named.push(name)
  const names =
    request.changes.length > 0
      ? named
      : open.filter((name) => !landed.has(name) && of(name)?.isTakenBack === undefined)
  for (const name of names) if (!open.includes(name)) throw unknownChange(name, open)
  if (names.length === 0 && landed.size === 0 && !before.entries.some(({ state }) => state === 'waiting'))
    throw new RalphError('no_tasks', 'There is no open change in openspec/changes.', {
      hint: 'Nothing was touched. `ralph list` shows all changes.',
    })
  const there = new Set<string>()
  for (const { change, landed: done } of before.entries)
    if (done !== undefined && (await hasLandedOn(site.git, target, done.commit))) there.add(change)
  /** Not added anew. */
  const stays = (entry: Entry): boolean => {
    const isHere = request.into === undefined || entry.target === target
    return !isOver(entry) || (entry.state === 'parked' && isHere)
  }
  const known = new Map(before.entries.filter(stays).map((entry) => [entry.change, entry.after]))
  const after = await dependencies(site, names, request.after, known, (change) => there.has(change))
  if (names.length > 0) await refuseUnmeasured(request.agents, site.env)
  return await withQueue(site, request, async (queue, landing) => {
    queue.tell({
      type: 'queue.opened',
      target,
      jobs: request.jobs,
      land: request.land,
      lands: request.lands,
      ...(request.maxCostUsd !== undefined && { max_cost_usd: request.maxCostUsd }),
      ...(names.length > 0 &&
        (await gateFound(site, {
          gates: [...request.gates],
          agents: [...(request.agents.agent ?? ['command'])],
        }))),
    })
    for (const name of names) {
      const entry = queue.state.entries.find(({ change }) => change === name)
      const earlier = after.get(name) ?? []
      if (entry === undefined || !stays(entry)) {
        queue.tell({ type: 'entry.added', change: name, after: [...earlier], target })
        continue
      }
      const more = earlier.filter((each) => !entry.after.includes(each))
      if (more.length > 0) queue.tell({ type: 'entry.ordered', change: name, after: more })
      if (entry.state === 'parked') queue.tell({ type: 'entry.retried', change: name })
    }
    try {
      return await queue.run(request.stop)
    } finally {
      await landing.close()
    }
  })
}

/** One change whose loop is done, without the others. */
export async function landNow(site: Site, change: string, request: UpRequest): Promise<number> {
  const run = await knownRun(site, change)
  if (run.state.phase === 'idle') throw await notRun(site, change)
  await refuseConflict(site.git, run)
  if (run.state.status !== 'done' || isRunning(run) || run.damage !== undefined)
    throw new RalphError('nothing_to_resume', `${change} is not done, so there is nothing to land.`, {
      hint: `Nothing was touched. \`ralph status ${change}\` shows where it stands.`,
    })
  const target = await targetFor(site, request.into)
  if (await hasLanded(site, change, target)) return 0
  if (request.into !== undefined) refuseElsewhere(await queueNow(site.git), [change], target)
  return await withQueue(site, request, async (queue, landing) => {
    queue.tell({ type: 'queue.opened', target, jobs: 1, land: request.land, lands: true })
    queue.tell({ type: 'entry.added', change, after: [], target })
    const { state: now } = queue.state.entries.find((entry) => entry.change === change) ?? {}
    // One that is being resolved is judged first.
    if (now === 'waiting' || now === 'running')
      queue.tell({ type: 'loop.ended', change, cost_usd: totalCostUsd(run.state) ?? 0 })
    try {
      return await queue.run(request.stop, change)
    } finally {
      await landing.close()
    }
  })
}

/** What is under way for one branch does not turn to another. */
function refuseElsewhere({ entries }: QueueState, names: readonly string[], target: string): void {
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

async function notRun(site: Site, change: string): Promise<RalphError> {
  const open = await openChanges(site)
  if (!open.includes(change)) return unknownChange(change, open)
  return new RalphError('nothing_to_resume', `${change} has not run yet, so there is nothing to land.`, {
    hint: `Nothing was touched. Run it and land it: ralph up ${change}`,
  })
}

async function hasLanded(site: Site, change: string, target?: string): Promise<boolean> {
  const work = await landedWork(site, await knownRun(site, change))
  return work !== undefined && (target === undefined || work.target === target)
}

/** The checkout has what its last run has landed, and a plan of this name that is another one. */
async function isPlannedAgain(site: Site, change: string): Promise<boolean> {
  const { git } = site
  const { state } = await knownRun(site, change)
  if (state.status !== 'done') return false
  const landed = (await landedByGit(git, ['HEAD'])).find((each) => each.change === change)
  if (landed === undefined || landed.run !== state.runId) return false
  const folder = changeDirOf(await findRootOf(site), change)
  if (!existsSync(folder)) return false
  // An archived plan is there no longer: whatever has its name is a new one.
  if (
    (await git.line(['ls-tree', '--full-tree', landed.commit, '--', relative(git.worktree, folder)])) === ''
  )
    return true
  return (await git.run(['diff', '--quiet', landed.commit, '--', folder], { accept: [1] })).code === 1
}

async function withQueue<T>(
  site: Site,
  request: UpRequest,
  work: (queue: Queue, landing: ReturnType<typeof landingOf>) => Promise<T>,
): Promise<T> {
  const caging = await cagingOf(request.kept, site.env, site.git.worktree)
  const paths = queuePaths(site.git.gitCommonDir)
  const lock = await lockOf(site, paths)
  if (lock === undefined) throw alreadyRunning(site, paths)
  try {
    const journal = openQueueJournal(paths)
    try {
      const landing = landingOf(site, {
        land: request.land,
        setUp: request.setUp,
        onSetUp: (change, done) => queue.tell({ type: 'tree.set_up', change, for: 'landing', ...done }),
        regenerate: request.regenerate,
        gates: request.gates,
        timeoutMs: request.gateTimeoutMs,
        caging,
        limits: limitsOf(request.kept),
      })
      const readers: readonly QueueReader[] = [request.tell]
      const queue = createQueue(
        {
          append: (event) => journal.append(event),
          stamp: () => site.clock.stamp(),
          wishes: (take) => takeWishes(paths, take),
          loops: {
            facts: (change, marked) => loopFacts(site, change, marked),
            start: async (change, how, at) => {
              const isAnew = how === 'loop' && (await isPlannedAgain(site, change))
              return await request.start(change, isAnew ? 'anew' : how, at)
            },
            resolve: async (change, conflict, { target, ...at }) =>
              request.start(change, 'resolve', {
                base: conflict.marked,
                ...at,
                text: await resolveTask(site, change, target, conflict),
              }),
            tryAgain: (change, problems, at) =>
              request.start(change, 'resume', { base: '', ...at, text: `Not yet: ${problems.join('; ')}.` }),
            accept: async (change) => void (await sayDone(site, change, true)),
            hold: () => Promise.resolve(lowDisk(site)),
          },
          landing,
          pulse: (stop) => delay(pulseMs, undefined, { signal: stop }).catch(() => undefined),
        },
        replayQueue(readQueueJournal(paths)),
        readers,
      )
      for (const body of await gitSays(site.git, queue.state))
        if (isKept(body)) queue.tell(body)
        else queue.note(body)
      return await work(queue, landing)
    } finally {
      journal.close()
    }
  } finally {
    await lock.release()
  }
}

/** Undefined where somebody has it. */
async function lockOf(
  site: Site,
  paths: QueuePaths,
): Promise<Awaited<ReturnType<ReturnType<typeof fileLock>['acquire']>> | undefined> {
  const owner = {
    change: '(queue)',
    purpose: 'loop' as const,
    worktree: site.git.worktree,
    since: site.clock.stamp(),
  }
  return await fileLock(paths.lock, owner, site.identity)
    .acquire()
    .catch((error: unknown) => {
      if (error instanceof RalphError && error.code === 'locked') return undefined
      throw error
    })
}

/** By the supervisor that is running, else here and now; whether there is one. */
async function tellQueue(site: Site, body: QueueBody): Promise<'by ralph up' | 'here'> {
  const paths = queuePaths(site.git.gitCommonDir)
  const lock = await lockOf(site, paths)
  if (lock === undefined) {
    wish(paths, body)
    return 'by ralph up'
  }
  try {
    const state = replayQueue(readQueueJournal(paths))
    const journal = openQueueJournal(paths)
    const bodies = [...(await gitSays(site.git, state)).filter(isKept), body]
    for (const [at, each] of bodies.entries())
      journal.append({ v: 1, seq: state.seq + 1 + at, time: site.clock.stamp(), ...each })
    journal.close()
    return 'here'
  } finally {
    await lock.release()
  }
}

/** A loop ends once in minutes; a wish is answered within a moment. */
const pulseMs = 250

function alreadyRunning(site: Site, paths: QueuePaths): RalphError {
  const held = inspectLock(paths.lock, site.identity)
  const pid = held.held === 'alive' ? ` (pid ${held.owner.pid})` : ''
  return new RalphError('locked', `Another \`ralph up\` runs in this repository${pid}.`, {
    hint: 'Nothing was touched. `ralph queue --watch` shows it, `ralph queue add <change>` gives it more to do.',
  })
}

/** What an agent is asked for: both proposals, and what will be looked at. */
async function resolveTask(
  site: Site,
  change: string,
  target: string,
  { base, tip, paths, said }: Conflict,
): Promise<string> {
  const { git } = site
  if (said !== undefined)
    return [
      `Bring the plan up to date with what landed (${paths.join(', ')})`,
      `Bring the plan of ${change} up to date with the specs. Other changes have landed on ${target} since it was written, and \`openspec archive\` refuses it now: ${said}`,
      `Edit only ${paths.join(', ')}: take over what openspec/specs has by now and this change is not about, and keep what the change is for (openspec/changes/${change}/proposal.md). You may edit these files although they are part of the plan. Try it with \`openspec validate ${change} --strict\`; do not archive. Do not work on anything else.`,
    ].join('\n')
  const fork = await git.line(['merge-base', base, tip])
  const log = await git.line([
    'log',
    '--format=%(trailers:key=Ralph-Change,valueonly,separator=%x20) %s',
    `${fork}..${base}`,
    '--',
    ...paths,
  ])
  const landed = log
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => `- ${line.trim()}`)
  const proposals = await git.line([
    'ls-tree',
    '-r',
    '--name-only',
    '--full-tree',
    base,
    '--',
    'openspec/changes',
  ])
  const named = new Set(log.split('\n').map((line) => line.trim().split(' ')[0] ?? ''))
  const documents = proposals
    .split('\n')
    .filter(
      (path) =>
        /\/(proposal|tasks)\.md$/.test(path) && [...named].some((name) => name !== '' && path.includes(name)),
    )
  return [
    // The first line is the title of its story, wherever that is shown.
    `Merge with what landed (${paths.join(', ')})`,
    `Put two changes together. This work tree is a merge of ${target} into ralph/${change}, with git's conflict markers in: ${paths.join(', ')}.`,
    `Read what this change is for (openspec/changes/${change}/proposal.md and tasks.md), and what landed on ${target} meanwhile:`,
    ...landed,
    ...(documents.length === 0 ? [] : [`Its plans: ${documents.join(', ')}.`]),
    'Resolve every conflict so that both changes do what they are for. Keep what both sides need: a file that ends up as only one of the sides is refused. Remove all markers. Change no test that has no conflict. Run the tests. Do not work on anything else.',
  ].join('\n')
}

async function loopFacts(site: Site, change: string, marked?: string): Promise<LoopFacts> {
  const run = await knownRun(site, change)
  const { state } = run
  const tip = await readRef(site.git, `refs/heads/ralph/${change}`)
  const common = {
    isApart: state.phase === 'idle' || state.home !== undefined,
    costUsd: totalCostUsd(state) ?? 0,
    ...(state.phase !== 'idle' && { run: state.runId }),
    ...(state.phase !== 'idle' && state.setUp !== undefined && { setUp: state.setUp }),
    ...(tip !== undefined && { tip }),
    ...folderOf(run),
    ...(marked !== undefined && { isMerge: await isIn(site.git, marked, `refs/heads/ralph/${change}`) }),
  }
  if (isRunning(run)) return { ...common, loop: 'running' }
  if (run.damage !== undefined) return { ...common, loop: 'ended', exitCode: 1, reason: run.damage }
  if (state.phase === 'idle') return { ...common, loop: 'none' }
  if (isDead(run)) return { ...common, loop: 'dead' }
  if (await isPlannedAgain(site, change)) return { ...common, isApart: true, loop: 'none' }
  const left = common.isApart || tip !== undefined ? undefined : await leftHere(site, run)
  if (left === 'stories') return { ...common, isApart: true, loop: 'none' }
  const { outcome } = state
  return {
    ...common,
    ...(left !== undefined && { left }),
    loop: 'ended',
    exitCode: state.status === 'done' ? 0 : (outcome?.exitCode ?? 1),
    reason: outcome?.reason ?? 'its loop failed',
    isShort: outcome?.stopReason === 'budget',
  }
}

/** Of a run that was finished in the user's checkout; undefined where it was not. */
async function leftHere(
  site: Site,
  { change, state }: KnownRun,
): Promise<'stories' | 'uncommitted' | 'nothing' | undefined> {
  const isTaken = state.choice === 'cleanup' && state.settings?.checkpoint === 'branch'
  if (state.status !== 'done' && !isTaken) return undefined
  const root = await findRootOf(site)
  const { out } = await site.git.run(['status', '--porcelain', '--', changeDirOf(root, change)])
  // Its ticks would be taken along into the new worktree, and what they stand for would not.
  if (out !== '') return 'uncommitted'
  return (await openChanges(site)).includes(change) ? 'stories' : 'nothing'
}

/** Room for one more work tree with what its gates make. */
const leastFreeBytes = 512 * 1024 * 1024

function lowDisk({ git }: Site): string {
  const { bavail, bsize } = statfsSync(git.gitCommonDir)
  const free = bavail * bsize
  if (free >= leastFreeBytes) return ''
  const mb = (bytes: number): string => `${Math.floor(bytes / 1024 / 1024)} MB`
  return `waits for room on the disk: ${mb(leastFreeBytes)} needed, ${mb(free)} free`
}

async function targetFor(site: Site, into: string | undefined): Promise<string> {
  if (into?.startsWith('ralph/') === true)
    throw new RalphError('usage', `${into} is a branch that a loop works on: nothing lands there.`, {
      hint: 'Nothing was touched. Name another one: --into main',
    })
  const target = into ?? (await currentBranch(site))
  // Refuses one that is not there, before anything is written down.
  await targetRefs(site.git, target)
  return target
}

async function currentBranch(site: Site): Promise<string> {
  const { head } = await readRefs(site.git)
  if (head.ref !== undefined && !head.ref.startsWith('refs/heads/ralph/')) return shortName(head.ref)
  const where =
    head.ref === undefined
      ? 'You are on no branch (HEAD is detached)'
      : `You are on ${shortName(head.ref)}, ralph's own branch`
  throw new RalphError('usage', `${where}: nothing can land there.`, {
    hint: 'Nothing was touched. First go to your branch (git switch main), or name it: --into main',
  })
}

async function openChanges(site: Site): Promise<readonly string[]> {
  const changes = await listChanges(await findRootOf(site), site.env)
  return changes
    .filter(({ tasks_done: done, tasks_total: total }) => total > 0 && done < total)
    .map(({ name }) => name)
}

function unknownChange(name: string, open: readonly string[]): RalphError {
  const near = nearest(name, open)
  return new RalphError('change_not_found', `There is no open change ${name}.`, {
    hint: `Nothing was touched. ${near === undefined ? '`ralph list` shows all changes.' : `Did you mean ${near}?`}`,
  })
}

/** By `--after later:earlier`, by what a change says of itself, and where two rewrite the same requirement, in the order of their names. */
async function dependencies(
  site: Site,
  names: readonly string[],
  pairs: readonly string[],
  /** Of those that are in the queue and stay there. */
  known: ReadonlyMap<string, readonly string[]>,
  isOver: (change: string) => boolean,
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
    const others = [later, earlier].filter((name) => !names.includes(name))
    for (const name of others) if (!isOver(name)) throw unknownChange(name, names)
    if (others.length === 0) wait(later, earlier)
  }
  const archived = await archivedNames(changeDirOf(root, names[0] ?? ''))
  for (const name of names)
    for (const other of await saidDependencies(root, name)) {
      if (isOver(other) || archived.some((entry) => entry.endsWith(`-${other}`))) continue
      if (!names.includes(other))
        throw new RalphError('usage', `${name} depends on ${other}, which is not among the changes to run.`, {
          hint: `Nothing was touched. Run it too: ralph up ${[...names, other].join(' ')}`,
        })
      wait(name, other)
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

// --- what anybody may ask ----------------------------------------------------------------------------------------

export async function queueReport(site: Site): Promise<QueueReport> {
  const paths = queuePaths(site.git.gitCommonDir)
  const state = await queueNow(site.git)
  const [own, landed] = await Promise.all([
    state.target === '' ? undefined : readRef(site.git, `refs/heads/${state.target}`),
    state.target === '' ? undefined : readRef(site.git, landedRef(state.target)),
  ])
  const lock = inspectLock(paths.lock, site.identity)
  const alive = lock.held === 'alive' || lock.held === 'elsewhere'
  const entries = await Promise.all(inOrder(state).map((entry) => entryReport(site, entry, alive)))
  const held = landed === undefined || landed === own ? '' : await heldWhere(site.git, state.target)
  return {
    target: state.target,
    target_commit: own ?? '',
    landed_commit: landed ?? '',
    ...(held !== '' && { held }),
    alive,
    ...(state.halted !== undefined && { halted: `${state.halted.why}. ${state.halted.hint}` }),
    ...(state.maxCostUsd !== undefined && { max_cost_usd: state.maxCostUsd }),
    entries,
  }
}

async function entryReport(
  site: Site,
  entry: Entry,
  isAlive: boolean,
): Promise<QueueReport['entries'][number]> {
  const run = await knownRun(site, entry.change)
  const { state } = run
  const seen = seenEntry(entry, await loopFacts(site, entry.change), isAlive)
  const stories = await storiesNow(site, run)
  const { waiting_for: waits, waiting_until: until } = isRunning(run) ? waitingFields(state) : {}
  return {
    change: entry.change,
    state: seen.state,
    why: seen.why,
    after: entry.after,
    stories_done: stories.done,
    stories_total: stories.total,
    cost_usd: entry.earlierUsd + (totalCostUsd(state) ?? 0),
    branch: `ralph/${entry.change}`,
    candidate: entry.candidate?.commit ?? '',
    landed: entry.landed?.commit ?? '',
    target: entry.target,
    attempt: state.phase === 'idle' ? 0 : (state.current?.attempt ?? 0),
    started_at: state.phase === 'idle' ? '' : state.startedAt,
    ...(waits !== undefined && { waiting_for: waits }),
    ...(until !== undefined && { waiting_until: until }),
    ...(seen.hint !== '' && { hint: seen.hint }),
    ...(seen.state === 'landed' &&
      state.home !== undefined &&
      isTree(state.worktree) && { leftover_tree: state.worktree }),
  }
}

export async function askQueue(site: Site, what: QueueWish, change: string): Promise<Said> {
  const state = await queueNow(site.git)
  const known = state.entries.find((entry) => entry.change === change && entry.state !== 'removed')
  if (what === 'add') {
    const open = await openChanges(site)
    if (!open.includes(change)) throw unknownChange(change, open)
    if ((await hasLanded(site, change)) && !(await isPlannedAgain(site, change))) throw hasLandedError(change)
    if (known !== undefined && !isOver(known))
      throw new RalphError('usage', `${change} is in the queue: it is ${known.state}.`, {
        hint: 'Nothing was touched. `ralph queue` shows all entries.',
      })
  } else if (known === undefined) throw notQueued(change, state, await openChanges(site))
  if (what === 'first' && known?.state === 'landed') throw hasLandedError(change)
  if (what === 'retry' && known?.state !== 'parked')
    throw new RalphError('usage', `${change} is not parked: it is ${known?.state ?? 'not there'}.`, {
      hint: 'Nothing was touched. `ralph queue` shows all entries.',
    })
  if (
    what === 'retry' &&
    known?.refused !== undefined &&
    (await readRef(site.git, `refs/heads/ralph/${change}`)) === known.refused
  )
    throw new RalphError(
      'usage',
      `What an agent made of the conflict of ${change} was refused, and nothing was committed on ralph/${change} since.`,
      { hint: `Nothing was touched. ${known.hint}` },
    )
  const body: QueueBody =
    what === 'add' ? { type: 'entry.added', change, after: [] } : { type: eventOf[what], change }
  const where = await tellQueue(site, body)
  return {
    message: `${saidOf[what]}: ${change}.`,
    ...(where === 'here' && what !== 'remove' && { next: 'ralph up' }),
    data: { change, asked: what },
  }
}

function hasLandedError(change: string): RalphError {
  return new RalphError('usage', `${change} has landed.`, {
    hint: `Nothing was touched. \`ralph status ${change}\` shows where.`,
  })
}

const eventOf = { remove: 'entry.removed', retry: 'entry.retried', first: 'entry.first' } as const

const saidOf: Readonly<Record<QueueWish, string>> = {
  add: 'Added to the queue',
  remove: 'Removed from the queue (its branch and its loop stay)',
  retry: 'To be tried again',
  first: 'Goes first now',
}

function notQueued(change: string, { entries }: QueueState, open: readonly string[]): RalphError {
  const near = nearest(
    change,
    entries.map((entry) => entry.change),
  )
  const way = open.includes(change)
    ? `Add it: ralph queue add ${change}`
    : near === undefined
      ? '`ralph queue` shows what is.'
      : `Did you mean ${near}?`
  return new RalphError('change_not_found', `${change} is not in the queue.`, {
    hint: `Nothing was touched. ${way}`,
  })
}

/** The user's own checkout follows what landed: only when told, and only where nothing uncommitted is in the way. */
export async function pullLanded(site: Site): Promise<Said> {
  const state = await queueNow(site.git)
  const { head } = await readRefs(site.git)
  const here = head.ref === undefined ? '' : shortName(head.ref)
  const target = state.landed[here] === undefined ? state.target : here
  const landed = target === '' ? undefined : await readRef(site.git, landedRef(target))
  if (landed !== undefined && !isOwnLanding(state, target, landed))
    throw new RalphError(
      'finish_conflict',
      `${landedRef(target)} was moved to ${landed.slice(0, 12)}, and the queue has not landed that.`,
      {
        hint: `Nothing was touched. Look at it: ${site.git.typed} log ${target}..${landedRef(target)}`,
      },
    )
  if (landed === undefined) return { message: 'Nothing has landed yet.', data: { pulled: false } }
  const own = await readRef(site.git, `refs/heads/${target}`)
  if (own === landed) return { message: `${target} has all that landed.`, data: { pulled: false } }
  if (own === undefined || !(await isAncestor(site.git, own, landed)))
    throw new RalphError('finish_conflict', `${target} has commits that are not in what landed.`, {
      hint: `Nothing was touched. Merge: ${site.git.typed} merge ${landedRef(target)}`,
    })
  const { home } = state.landed[target] ?? {}
  const isSetBack =
    (home !== undefined && !(await isIn(site.git, home, `refs/heads/${target}`))) ||
    (await wasIn(site.git, target, landed))
  if (isSetBack)
    throw new RalphError(
      'finish_conflict',
      `${target} was reset or rewritten: what landed holds commits that it had and has no longer.`,
      {
        hint: `Nothing was touched. To bring them back: ${site.git.typed} merge ${landedRef(target)}. If not: ${site.git.typed} update-ref ${landedRef(target)} refs/heads/${target}`,
      },
    )
  const replaced: string[] = []
  if (head.ref !== `refs/heads/${target}`) {
    const why = await carryHome(site.git, target)
    if (why !== '')
      throw new RalphError('finish_conflict', `${target} could not follow: ${why}.`, {
        hint: 'Nothing was touched. Type the command there, or when that is over.',
      })
  } else {
    const { inTheWay, said, plans } = await followLanded(site.git, landed)
    if (inTheWay.length > 0 || said !== '')
      throw new RalphError(
        'finish_conflict',
        inTheWay.length === 0
          ? said.replace(/^(error|fatal): /, '')
          : `Uncommitted work of yours is in the way: ${inTheWay.map(shown).join(', ')}`,
        {
          hint: `Nothing was touched. Put it aside: ${site.git.typed} stash push -u${inTheWay.length === 0 ? '' : ` -- ${inTheWay.map(shellWord).join(' ')}`}; then type the command again, and ${site.git.typed} stash pop brings it back.`,
        },
      )
    for (const { path, at } of plans)
      replaced.push(
        `${path} was uncommitted, as its loop began with it: it is what landed now (as it was: ${site.git.typed} show ${at.slice(0, 12)}:${path}).`,
      )
  }
  await tellQueue(site, { type: 'target.followed', target, commit: landed })
  return {
    message: [`${target} is at ${landed.slice(0, 7)}: all that landed is there.`, ...replaced].join('\n'),
    data: { pulled: true, commit: landed },
  }
}

/** The supervisor first, so that it starts nothing more; then each loop that runs. */
export async function stopAll(site: Site, force: boolean): Promise<Said> {
  const { lock } = queuePaths(site.git.gitCommonDir)
  const held = inspectLock(lock, site.identity)
  if (held.held === 'alive') {
    process.kill(held.owner.pid, 'SIGTERM')
    while (site.identity.isAlive(held.owner.pid, held.owner.pid_started)) await delay(50)
  }
  const running = (await knownRuns(site)).filter(isRunning).map(({ change }) => change)
  const said: string[] = []
  for (const change of running) said.push((await stopLoop(site, { change, force })).message)
  const isQueue = held.held === 'alive'
  return {
    message: [...(isQueue ? ['Stopped: ralph up.'] : []), ...said].join('\n') || 'No loop is running here.',
    ...((isQueue || running.length > 0) && { next: isQueue ? 'ralph up' : 'ralph resume <change>' }),
    data: { stopped: running, queue: isQueue },
  }
}
