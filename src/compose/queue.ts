// The merge queue of a repository: one supervisor at a time, loops as processes of their own, and what anybody may ask of it meanwhile.
// Long because it is one list: what a user can ask of the queue, each with its refusals.
import { safeToType } from '../adapters/git/landing/safe-to-type.ts'
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
import { carryHome, hasAllOf, isIn, landedRef, wasIn } from '../adapters/git/landing/landing.ts'
import { heldWhere } from '../adapters/git/landing/held.ts'
import { followLanded, outOfTheWay } from '../adapters/git/landing/follow.ts'
import { shown } from '../adapters/git/git.ts'
import { readRef, readRefs, shortName } from '../adapters/git/refs/refs.ts'
import { isAncestor } from '../adapters/git/tree/tree.ts'
import { reapByMarker } from '../adapters/process/reap.ts'
import { RalphError } from '../core/error.ts'
import { limitsOf } from '../core/resource-limits.ts'
import { nearest } from '../core/nearest.ts'
import { comesAfter, inOrder, seenEntry } from '../core/queue-due.ts'
import { isOver, isOwnLanding, replayQueue } from '../core/queue.ts'
import type { Conflict, Entry, QueueState } from '../core/queue.ts'
import type { QueueBody } from '../core/queue-event.ts'
import { totalCostUsd } from '../core/state.ts'
import type { LoopState } from '../core/state.ts'
import { waitingFields } from '../core/state-snapshot.ts'
import { doubtsOf, joined } from '../core/weakness.ts'
import { createQueue } from '../engine/queue.ts'
import type { Queue, QueueReader } from '../engine/queue.ts'
import type { QueueReport, QueueWish, Said, UpRequest } from '../ui/app.ts'
import { workedMs } from '../ui/vocabulary.ts'
import { sayDone, sayRefused } from './control.ts'
import { cagingOf } from './cage.ts'
import { refuseMissingGates } from './gate-programs.ts'
import { landingMark, landingOf } from './landing.ts'
import { refuseStart } from './queue-start.ts'
import { gitSays, isKept, queueNow, withBodies } from './queue-state.ts'
import { refuseConflict, refuseUnlanded } from './queue-entry.ts'
import { hasLanded, isPlannedAgain, loopFacts, lowDisk, openChanges } from './queue-facts.ts'
import {
  alreadyRunning,
  droppedBy,
  openedFor,
  planUp,
  refuseElsewhere,
  targetFor,
  unknownChange,
} from './queue-plan.ts'
import { flagsOfRun } from './run-settings.ts'
import { inTree } from './open-run.ts'
import { planNow, storiesNow } from './plan-now.ts'
import { isRunning, isTree, knownRun, knownRuns } from './site.ts'
import type { Site } from './site.ts'
import { stopLoop } from './stop.ts'
import { upHere } from './up-here.ts'
import { onlyIn } from './whereabouts.ts'

/** Runs the queue until nothing is left to do, or `stop`: its loops go on then. */
export async function up(site: Site, request: UpRequest): Promise<number> {
  const { before, opening, left } = await planUp(site, request)
  await refuseStart(site, request, withBodies(before, opening(before)))
  const others = new Set(left)
  const tell: UpRequest['tell'] = (event, state) => {
    // Somebody wants it by now.
    if (event.type === 'entry.added' || event.type === 'entry.retried') others.delete(event.change)
    request.tell(event, state)
  }
  return await withQueue(site, { ...request, tell }, async (queue, landing) => {
    for (const body of opening(queue.state)) queue.tell(body)
    try {
      return await queue.run(request.stop, (change) => !others.has(change))
    } finally {
      await landing.close()
    }
  })
}

/** One change whose loop is done, without the others. */
export async function landNow(site: Site, change: string, request: UpRequest): Promise<number> {
  const run = await knownRun(site, change)
  if (run.state.phase === 'idle') throw await notRun(site, change)
  await refuseConflict(site, run)
  if (run.state.status !== 'done' && !isRunning(run)) await refuseUnlanded(site, run)
  if (run.state.status !== 'done' || isRunning(run) || run.damage !== undefined)
    throw new RalphError('nothing_to_resume', `${change} is not done, so there is nothing to land.`, {
      hint: `Nothing was touched. \`ralph status ${change}\` shows where it stands.`,
    })
  const target = await targetFor(site, request.into, `ralph land ${change}`)
  if (await hasLanded(site, change, target)) return 0
  if (request.into !== undefined) refuseElsewhere(await queueNow(site.git), [change], target)
  await refuseMissingGates(request.gates, { cwd: site.git.worktree, env: site.env })
  return await withQueue(site, request, async (queue, landing) => {
    const asked: readonly QueueBody[] = [
      { type: 'entry.added', change, after: [], target, gates: [...request.gates] },
      ...droppedBy(
        request,
        queue.state.entries.find((entry) => entry.change === change),
      ),
    ]
    const opened = await openedFor(site, request, { target, before: queue.state, asked, only: change })
    for (const body of [opened, ...asked]) queue.tell(body)
    const { state: now } = queue.state.entries.find((entry) => entry.change === change) ?? {}
    // One that is being resolved is judged first.
    if (now === 'waiting' || now === 'running')
      queue.tell({ type: 'loop.ended', change, cost_usd: totalCostUsd(run.state) ?? 0 })
    try {
      return await queue.run(request.stop, (each) => each === change)
    } finally {
      await landing.close()
    }
  })
}

async function notRun(site: Site, change: string): Promise<RalphError> {
  const open = await openChanges(site)
  if (!open.includes(change)) return unknownChange(change, open)
  return new RalphError('nothing_to_resume', `${change} has not run yet, so there is nothing to land.`, {
    hint: `Nothing was touched. Run it and land it: ralph up ${change}`,
  })
}

async function withQueue<T>(
  site: Site,
  request: UpRequest,
  work: (queue: Queue, landing: ReturnType<typeof landingOf>) => Promise<T>,
): Promise<T> {
  const caging = await cagingOf(request.kept, site.env, site.git)
  const paths = queuePaths(site.git.gitCommonDir)
  const lock = await lockOf(site, paths)
  if (lock === undefined) throw alreadyRunning(site)
  try {
    const journal = openQueueJournal(paths)
    try {
      const landing = landingOf(site, {
        land: request.land,
        setUp: request.setUp,
        onSetUp: (change, done) => queue.tell({ type: 'tree.set_up', change, for: 'landing', ...done }),
        onHeld: (change, told) => queue.tell({ type: 'refs.held', change, told: [...told] }),
        regenerate: request.regenerate,
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
              return await request.start(change, isAnew ? 'anew' : how, {
                ...at,
                gates: queue.state.entries.find((entry) => entry.change === change)?.given ?? [],
              })
            },
            resolve: async (change, conflict, { target, ...at }) =>
              request.start(change, 'resolve', {
                base: conflict.marked,
                ...at,
                text: await resolveTask(site, change, target, conflict),
                flags: await flagsOfRun(await knownRun(site, change), request.flags),
              }),
            tryAgain: (change, problems, at) =>
              request.start(change, 'resume', { base: '', ...at, text: `Not yet: ${problems.join('; ')}.` }),
            accept: async (change) => void (await sayDone(site, change, true)),
            refuse: (change, problems) => sayRefused(site, change, problems),
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
    '--format=%(trailers:key=Ralph-Change,valueonly,separator=%x20)%x09%s',
    `${fork}..${base}`,
    '--',
    ...paths,
  ])
  const landed = log
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => `- ${line.trim().replace('\t', ' ')}`)
  const proposals = await git.line([
    'ls-tree',
    '-r',
    '--name-only',
    '--full-tree',
    base,
    '--',
    'openspec/changes',
  ])
  const named = new Set(log.split('\n').flatMap((line) => (line.split('\t')[0] ?? '').trim().split(' ')))
  // In the archive its folder begins with a date.
  const documents = proposals
    .split('\n')
    .filter((path) =>
      named.has(/\/(?:\d{4}-\d\d-\d\d-)?([^/]+)\/(?:proposal|tasks)\.md$/.exec(path)?.[1] ?? '/'),
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

// --- what anybody may ask ----------------------------------------------------------------------------------------

export async function queueReport(site: Site, isWhole: boolean): Promise<QueueReport> {
  const paths = queuePaths(site.git.gitCommonDir)
  const state = await queueNow(site.git)
  const [own, landed] = await Promise.all([
    state.target === '' ? undefined : readRef(site.git, `refs/heads/${state.target}`),
    state.target === '' ? undefined : readRef(site.git, landedRef(state.target)),
  ])
  const lock = inspectLock(paths.lock, site.identity)
  const alive = lock.held === 'alive' || lock.held === 'elsewhere'
  const entries = await Promise.all(
    inOrder(state).map((entry) => entryReport(site, { queue: state, entry, isAlive: alive, isWhole })),
  )
  const isThere = landed === undefined || (own !== undefined && (await hasAllOf(site.git, own, landed)))
  // Then a pull would refuse.
  const isApart =
    !isThere &&
    own !== undefined &&
    (!(await isAncestor(site.git, own, landed)) ||
      (await isSetBack(site, state, { target: state.target, landed })))
  const held = isThere ? '' : await heldWhere(site.git, state.target)
  const here = await upHere(site, 'ralph up')
  return {
    target: state.target,
    target_commit: own ?? '',
    landed_commit: landed ?? '',
    ...(!isThere && {
      take: isApart
        ? await safeToType(site.git, `${site.git.typed} merge ${landedRef(state.target)}`)
        : 'ralph queue pull',
    }),
    ...(held !== '' && { held }),
    alive,
    ...(here !== 'ralph up' && { up: here }),
    ...(state.halted !== undefined && {
      halted: `${state.halted.why}. ${await safeToType(site.git, state.halted.hint)}`,
    }),
    ...(state.maxCostUsd !== undefined && { max_cost_usd: state.maxCostUsd }),
    entries,
  }
}

async function entryReport(
  site: Site,
  { queue, entry, isAlive, isWhole }: { queue: QueueState; entry: Entry; isAlive: boolean; isWhole: boolean },
): Promise<QueueReport['entries'][number]> {
  const run = await knownRun(site, entry.change)
  const { state } = run
  const facts = await loopFacts(site, entry.change)
  const seen = seenEntry(entry, facts, isAlive, comesAfter(queue, entry))
  // A new loop begins: what is there is still the run before that.
  const isBefore = seen.state === 'running' && facts.loop === 'none'
  const ofPlan = isBefore ? await planNow(site, entry.change) : undefined
  const stories = ofPlan ?? (await storiesNow(site, run))
  const left = seen.state === 'landed' ? leftTree(state) : undefined
  const only = left === undefined || !isWhole ? [] : await onlyIn(site.git, { change: entry.change, ...left })
  const { waiting_for: waits, waiting_until: until } = isRunning(run) ? waitingFields(state) : {}
  return {
    change: entry.change,
    state: seen.state,
    why: seen.why === '' && seen.state === 'resolving' ? conflictWords(entry) : seen.why,
    after: entry.after,
    stories_done: stories.done,
    stories_total: stories.total,
    cost_usd: entry.earlierUsd + (totalCostUsd(state) ?? 0),
    branch: `ralph/${entry.change}`,
    candidate: entry.candidate?.commit ?? '',
    landed: entry.landed?.commit ?? '',
    warnings: entry.state === 'landed' ? entry.warnings : joined(entry.warnings, doubtsOf(state)),
    target: entry.target,
    attempt: state.phase === 'idle' || isBefore ? 0 : (state.current?.attempt ?? 0),
    started_at: state.phase === 'idle' || isBefore ? '' : state.startedAt,
    worked_ms: workedMs({ iterations: state.iterations }),
    ...(state.current !== undefined && { working_since: state.current.started }),
    ...(waits !== undefined && { waiting_for: waits }),
    ...(until !== undefined && { waiting_until: until }),
    ...(seen.hint !== '' && { hint: seen.hint }),
    ...(left !== undefined && only !== undefined && { leftover_tree: left.folder }),
    ...(only !== undefined && only.length > 0 && { leftover_files: only }),
    ...(seen.state === 'landed' &&
      facts.tip !== undefined &&
      facts.tip === entry.landed?.tip && { leftover_branch: true }),
  }
}

function leftTree({ home, worktree: folder }: LoopState): { folder: string; home: string } | undefined {
  return home === undefined || folder === undefined || !isTree(folder) ? undefined : { folder, home }
}

function conflictWords({ conflict }: Entry): string {
  return conflict === undefined ? '' : `conflict in ${conflict.paths.join(', ')}; an agent merges both sides`
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
    ...(where === 'here' &&
      what !== 'remove' && {
        next: upNext(state, what, change, await upHere(site, 'ralph up')),
      }),
    data: { change, asked: what },
  }
}

/** Without a name it tries, and pays for, every other parked one, too. */
function upNext({ entries }: QueueState, what: QueueWish, change: string, up: string): string {
  const others = entries.filter((each) => each.state === 'parked' && each.change !== change)
  return what !== 'retry' || others.length === 0
    ? up
    : `${up} ${change}   this one; ${up}   all that are parked, too`
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
    entries.flatMap((entry) => (entry.state === 'removed' ? [] : [entry.change])),
  )
  const isLanded = entries.some((entry) => entry.change === change && entry.landed !== undefined)
  if (isLanded) return hasLandedError(change)
  const way = open.includes(change)
    ? `Add it: ralph queue add ${change}`
    : near === undefined
      ? '`ralph queue` shows what is.'
      : `Did you mean ${near}?`
  return new RalphError('change_not_found', `${change} is not in the queue.`, {
    hint: `Nothing was touched. ${way}`,
  })
}

/** What landed was on the branch before, and was taken off it. */
async function isSetBack(
  { git }: Site,
  state: QueueState,
  { target, landed }: { readonly target: string; readonly landed: string },
): Promise<boolean> {
  const { home } = state.landed[target] ?? {}
  return (
    (home !== undefined && !(await isIn(git, home, `refs/heads/${target}`))) ||
    (await wasIn(git, target, landed))
  )
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
  if (own !== undefined && (await hasAllOf(site.git, own, landed)))
    return { message: `${target} has all that landed.`, data: { pulled: false } }
  if (own === undefined || !(await isAncestor(site.git, own, landed)))
    throw new RalphError('finish_conflict', `${target} has commits that are not in what landed.`, {
      hint: `Nothing was touched. Merge: ${site.git.typed} merge ${landedRef(target)}`,
    })
  if (await isSetBack(site, state, { target, landed }))
    throw new RalphError(
      'finish_conflict',
      `${target} was reset or rewritten: what landed holds commits that it had and has no longer.`,
      {
        hint: `Nothing was touched. To bring them back: ${site.git.typed} merge ${landedRef(target)}. If not: ${site.git.typed} update-ref ${landedRef(target)} refs/heads/${target}`,
      },
    )
  const replaced: string[] = []
  if (head.ref !== `refs/heads/${target}`) {
    const why = await carryHome(site.git, target, landed)
    if (why !== '')
      throw new RalphError('finish_conflict', `${target} could not follow: ${why}.`, {
        hint: 'Nothing was touched. Type the command there, or when that is over.',
      })
  } else {
    const { inTheWay, said, plans } = await inTree(
      site,
      site.git,
      { change: '(queue)', again: 'ralph queue pull' },
      () => followLanded(site.git, landed),
    )
    if (inTheWay.length > 0 || said !== '')
      throw new RalphError(
        'finish_conflict',
        inTheWay.length === 0
          ? said.replace(/^(error|fatal): /, '')
          : `Uncommitted work of yours is in the way: ${inTheWay.map(shown).join(', ')}`,
        {
          hint:
            inTheWay.length === 0
              ? 'Nothing was touched. When that is over, type the command again.'
              : await outOfTheWay(site.git, inTheWay),
        },
      )
    for (const { path, at, isArchived } of plans)
      replaced.push(
        `${path} was uncommitted, as its loop began with it: it is ${isArchived === true ? 'archived' : 'what landed'} now (as it was: ${site.git.typed} show ${at.slice(0, 12)}:${path}).`,
      )
  }
  await tellQueue(site, { type: 'target.followed', target, commit: landed })
  return {
    message: [`${target} is at ${landed.slice(0, 7)}: all that landed is there.`, ...replaced].join('\n'),
    data: { pulled: true, commit: landed },
  }
}

/** One that does not answer (it is suspended, or hangs) is killed where that is asked for, with the gates that it leaves behind. */
async function stopSupervisor(
  { git, identity }: Site,
  { pid, pid_started: started }: { readonly pid: number; readonly pid_started: string },
  force: boolean,
): Promise<void> {
  const isGone = async (patienceMs: number): Promise<boolean> => {
    const deadline = performance.now() + patienceMs
    while (identity.isAlive(pid, started) && performance.now() < deadline) await delay(50)
    return !identity.isAlive(pid, started)
  }
  process.kill(pid, 'SIGTERM')
  if (await isGone(force ? 5_000 : 30_000)) return
  if (!force)
    throw new RalphError('internal', `ralph up (pid ${pid}) has been asked to stop, and is still there.`, {
      hint: 'Nothing is lost. To kill it, and all loops: ralph stop --all --force',
    })
  process.kill(pid, 'SIGKILL')
  await isGone(30_000)
  await reapByMarker(landingMark(git.gitCommonDir))
}

/** The supervisor first, so that it starts nothing more; then each loop that runs. */
export async function stopAll(site: Site, force: boolean): Promise<Said> {
  const { lock } = queuePaths(site.git.gitCommonDir)
  const held = inspectLock(lock, site.identity)
  if (held.held === 'alive') await stopSupervisor(site, held.owner, force)
  const running = (await knownRuns(site)).filter(isRunning).map(({ change }) => change)
  const said: string[] = []
  for (const change of running) said.push((await stopLoop(site, { change, force })).message)
  const isQueue = held.held === 'alive'
  return {
    message: [...(isQueue ? ['Stopped: ralph up.'] : []), ...said].join('\n') || 'No loop is running here.',
    ...((isQueue || running.length > 0) && {
      next: isQueue ? await upHere(site, 'ralph up') : 'ralph resume <change>',
    }),
    data: { stopped: running, queue: isQueue },
  }
}
