// What the reporting commands show, read off the journals: they compute, and never write a run's files.
import { join } from 'node:path'
import { inspectLock } from '../adapters/files/lock.ts'
import { stateFile } from '../adapters/files/paths.ts'
import { readStateFile } from '../adapters/files/state-reader.ts'
import { follow } from '../adapters/files/tail.ts'
import { RalphError } from '../core/error.ts'
import type { IterationRecord } from '../core/event.ts'
import { gateTimes } from '../core/hand-work.ts'
import { onwardFrom } from '../core/onward.ts'
import { hasMerge } from '../core/story.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import { doubtsOf } from '../core/weakness.ts'
import { decisionsOf, decisive, failedGateOf } from '../core/why.ts'
import type { FollowRequest, Told } from '../ports.ts'
import type { Decisions, History, StatusReport } from '../ui/app.ts'
import { chooseRun, requireRun } from './choose.ts'
import { archivedRuns, hasDied, isDead, isRunning, isSettled, isTree, knownRuns, pathsOf } from './site.ts'
import type { Knowing, KnownRun, Site } from './site.ts'
import { handWork, mergedByHand } from './work-files.ts'

/** `--watch` asks every second: `known` need not read everything each time. */
export async function statusOf(
  site: Site,
  change: string | undefined,
  known?: Knowing,
): Promise<readonly StatusReport[]> {
  const runs = await runsToShow(site, change, known)
  if (runs.length === 0) {
    const lost = await (await import('./damage.ts')).lostStatus(site, change)
    if (lost !== undefined) return [lost]
    if (change !== undefined) await requireRun(site, change)
  }
  return Promise.all(
    runs.map(async (run) => {
      const report = await reportOn(site, run)
      if (run.damage !== undefined || isRunning(run)) return report
      const { landedHere, parkedHere, planHere, safely, whereabouts } = await import('./whereabouts.ts')
      const [{ again = [], ...gone }, parked] = await Promise.all([
        goneTree(site, run),
        parkedHere(site, run),
      ])
      const told = { ...report, ...gone, ...(parked !== undefined && { parked }) }
      if (runs.length === 1) {
        const found = await whereabouts(site, run)
        const where = found.where && {
          ...found.where,
          ...(again.length > 0 && {
            tree_again: again,
            bring_here: await safely(site.git, `git merge --squash ralph/${run.change}`),
          }),
          ...onwardOf(run),
        }
        return { ...told, ...found, ...(where !== undefined && { where }) }
      }
      const isGone = await isTreeGone(site, run)
      const tree = isGone ? { is_tree_gone: true as const } : {}
      const landed = await landedHere(site, run)
      if (landed !== undefined) return { ...told, where: { landed, ...tree } }
      // Once the work was brought to this checkout, its boxes say what is done.
      const { git, home, worktree } = run.state
      const isHere = git.cleaned !== undefined && (home ?? worktree) === site.git.worktree
      const plan = isHere ? await planHere(site, run) : undefined
      return plan === undefined && !isGone
        ? told
        : { ...told, where: { ...(plan !== undefined && { plan }), ...tree } }
    }),
  )
}

/** Of a loop with a tree of its own, which may have been moved. */
async function isTreeGone({ git }: Site, { change, state }: KnownRun): Promise<boolean> {
  if (state.home === undefined || isTree(state.worktree)) return false
  const { loopTree } = await import('../adapters/git/start/worktrees.ts')
  return (await loopTree(git, change)) === undefined
}

/** Without what only git knows: cheap enough for whoever asks every second. */
export async function reportOn(site: Site, run: KnownRun): Promise<StatusReport> {
  if (run.damage !== undefined) return (await import('./damage.ts')).damagedStatus(site, run)
  const warnings = doubtsOf(run.state)
  const warned = warnings.length === 0 ? {} : { warnings }
  if (isRunning(run)) {
    // The talk of the agent is not in the journal: only the file of a living loop knows its last sign.
    const { branch, home, worktree } = run.state
    const file = await readStateFile(stateFile(worktree ?? site.git.worktree))
    return {
      ...(file?.change_id === run.change ? file : toStateFile(run.state)),
      alive: true,
      ...warned,
      ...(branch !== undefined && {
        where: { branch, ...(home !== undefined && { home, worktree }), ...busyWith(run) },
      }),
    }
  }
  return {
    ...toStateFile(run.state),
    // Not recorded yet, or where that was not possible.
    ...(isDead(run) && { status: 'stopped' as const }),
    alive: false,
    ...warned,
    ...(await deathIn(site, run)),
  }
}

function onwardOf({ state }: KnownRun): Pick<NonNullable<StatusReport['where']>, 'onward'> {
  if (state.phase === 'idle' || state.outcome === undefined || state.outcome.status === 'done') return {}
  const { stopReason, reason } = state.outcome
  const { label, command, why } = onwardFrom(state, stopReason, reason)
  return { onward: { command, why: `${label} ${why}` } }
}

/** As its journal has it: the state file of a living loop is for other programs. */
function busyWith({ state, recall }: KnownRun): Partial<NonNullable<StatusReport['where']>> {
  const usage = state.current?.usage
  const program = recall('loop.started').at(-1)?.agent_program
  return {
    phase: state.phase,
    ...(program !== undefined && { agent_program: program }),
    ...(usage !== undefined && {
      used_now: { tokens: usage.input_tokens + usage.output_tokens, cost_usd: usage.cost_usd ?? 0 },
    }),
  }
}

/** A change that exists may be followed before its first loop. */
export async function* followRun(
  site: Site,
  change: string | undefined,
  request: FollowRequest,
): AsyncGenerator<Told, void> {
  const chosen = (await chooseRun(site, change, 'running'))?.change ?? change
  const name = chosen ?? (await requireRun(site, change)).change
  const paths = pathsOf(site, name)
  const isRunningNow = (): boolean => isRunning({ lock: inspectLock(paths.lock, site.identity) })
  yield* follow(paths, name, isRunningNow, request)
}

/** What a death brings with it, the engine and every adapter, is loaded only for a loop that died. */
export async function deathIn(
  site: Site,
  run: KnownRun,
): Promise<Pick<StatusReport, 'died_at' | 'orphan_pids'>> {
  if (!hasDied(run)) return {}
  const { deathOf } = await import('./recovery.ts')
  const death = deathOf(run)
  if (death === undefined) return {}
  const stamp = site.clock.stamp(death.diedMs)
  // The last sign of life may be older than an iteration that had just begun.
  const ended = run.state.iterations.at(-1)?.ended ?? stamp
  return { died_at: stamp < ended ? ended : stamp, orphan_pids: [...death.orphans] }
}

/** A work tree that was removed: what the state file would say next cannot be done. */
async function goneTree(
  site: Site,
  run: KnownRun,
): Promise<Pick<StatusReport, 'problem'> & { readonly again?: readonly string[] }> {
  const { home, worktree } = run.state
  if (home === undefined || isTree(worktree) || isSettled(run)) return {}
  const { landedHere } = await import('./whereabouts.ts')
  if ((await landedHere(site, run)) !== undefined) return {}
  const { siteOf, TreeGone } = await import('./open-run.ts')
  return siteOf(site, run).then(
    () => ({}),
    (error: unknown) => {
      if (error instanceof TreeGone) return { problem: error.message, again: error.again }
      if (error instanceof RalphError) return { problem: error.message }
      throw error
    },
  )
}

async function runsToShow(
  site: Site,
  change: string | undefined,
  known?: Knowing,
): Promise<readonly KnownRun[]> {
  if (change === undefined) return knownRuns(site, known)
  const run = await chooseRun(site, change, 'any', known)
  return run === undefined ? [] : [run]
}

export async function historyOf(
  site: Site,
  change: string | undefined,
  which?: 'all' | number,
): Promise<History> {
  const run = await requireRun(site, change)
  const { landedHere, parkedHere } = await import('./whereabouts.ts')
  const parked = await parkedHere(site, run)
  const landed = isRunning(run) ? undefined : await landedHere(site, run)
  const byHand = [
    ...(await handWork(site.git, run)),
    ...(landed === undefined ? [] : await mergedByHand(site.git, run, landed)),
  ]
  const own = {
    change_id: run.change,
    ...(byHand.length > 0 && { by_hand: byHand }),
    ...(parked !== undefined && { parked }),
    iterations: await iterationsOf(site, run),
    stories: run.state.stories,
    gates_ms: gateTimes(run.recall('gate.ended', 'iteration.ended')),
    warnings: doubtsOf(run.state),
    earlier_runs: foldersOf(run),
  }
  const isMerge = hasMerge(run.state.stories)
  if (which === undefined && !isMerge) return own
  const { earlierRun, earlierRuns, pastState, runsBefore } = await import('./earlier.ts')
  const wanted =
    which === undefined
      ? await runsBefore(site, run)
      : which === 'all'
        ? await earlierRuns(site, run)
        : [await earlierRun(site, run, which)]
  if (wanted.length === 0) return own
  const runs = await Promise.all(
    wanted.map(async (past) => {
      const state = await pastState(run, past)
      const { iterations, stories, status, gates_ms, recall } = state
      const warnings = doubtsOf(state)
      const by_hand = await handWork(site.git, { recall })
      const hands = by_hand.length > 0 ? { by_hand } : {}
      return {
        number: past.number,
        name: past.name,
        status,
        iterations,
        stories,
        gates_ms,
        warnings,
        ...hands,
      }
    }),
  )
  return which === 'all' || which === undefined ? { ...own, runs } : { ...own, iterations: [], runs }
}

/** Of a damaged journal the state file knows more. */
export async function iterationsOf(site: Site, run: KnownRun): Promise<readonly IterationRecord[]> {
  if (run.damage === undefined) return run.state.iterations
  return (await (await import('./damage.ts')).damagedStatus(site, run)).iterations
}

export async function whyOf(site: Site, change: string | undefined, known?: Knowing): Promise<Decisions> {
  const run = await requireRun(site, change, known)
  return {
    change_id: run.change,
    /** When asked for: most want only the last word. */
    get decisions() {
      return decisionsOf(run.recall(...decisive))
    },
    get failed_gate() {
      return failedGate(run)
    },
    earlier_runs: foldersOf(run),
  }
}

function failedGate(run: KnownRun): Decisions['failed_gate'] {
  const last = run.state.iterations.at(-1)
  if (run.state.outcome?.stopReason === 'hand') {
    const byHand = failedGateOf(run.recall('gate.ended'), run.state.iterations.length)
    return byHand && { ...byHand, by_hand: run.state.byHand ?? [] }
  }
  if (last?.verdict !== 'gate_failed') return undefined
  const gate = failedGateOf(run.recall('gate.ended'), last.n)
  const baseline = run.state.baselines[gate?.command ?? '']
  return gate === undefined || baseline === undefined ? gate : { ...gate, baseline }
}

function foldersOf(run: KnownRun): readonly string[] {
  return archivedRuns(run).map((name) => join(run.paths.archive, name))
}
