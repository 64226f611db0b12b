// `ralph usage` and `ralph report`: what the agents used, from their session files and from the run's own history.
import { usageSince } from '../adapters/usage/usage-since.ts'
import type { NotedTurn } from '../adapters/usage/usage-since.ts'
import type { IterationRecord, LoopEvent } from '../core/event.ts'
import { runReport } from '../core/report.ts'
import type { RunHistory, RunReport, RunWork } from '../core/report.ts'
import type { LoopState } from '../core/state.ts'
import { turnsOf } from '../core/turns.ts'
import type { UsageFigures } from '../core/usage.ts'
import type { UsageSummary } from '../core/usage-summary.ts'
import { doubtsOf } from '../core/weakness.ts'
import type { LandedWork, UsageRequest } from '../ui/app.ts'
import { requireRun } from './choose.ts'
import { runsBefore } from './earlier.ts'
import { deathIn } from './reports.ts'
import { isDead, isRunning, knownRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { landedHere, parkedHere } from './whereabouts.ts'
import { mergedByHand, runWork } from './work-files.ts'

export async function usageOf(site: Site, request: UsageRequest): Promise<UsageSummary> {
  const runs = await knownRuns(site)
  const worktrees = [...new Set([site.git.worktree, ...runs.flatMap((run) => run.state.worktree ?? [])])]
  const past = (await Promise.all(runs.map((run) => pastTurns(site, run)))).flat()
  const own = runs.flatMap((run) =>
    notedTurns(run.change, run.state, run.recall('agent.session', 'agent.ended')),
  )
  const { since, by } = request
  const turns = [...past, ...own]
  const summary = await usageSince({ worktrees, env: site.env, clock: site.clock, since, by, turns })
  const from = Date.parse(summary.since)
  const unreported = runs
    .flatMap((run) => run.state.iterations)
    .filter((each) => each.tokens_used === 0 && Date.parse(each.ended) >= from).length
  return unreported === 0 ? summary : { ...summary, unreported }
}

/** Of the runs that later ones have replaced. */
async function pastTurns(site: Site, run: KnownRun): Promise<readonly NotedTurn[]> {
  const { earlierRuns, pastState } = await import('./earlier.ts')
  const states = await Promise.all((await earlierRuns(site, run)).map((past) => pastState(run, past)))
  return states.flatMap((state) => notedTurns(run.change, state, []))
}

function notedTurns(change: string, state: LoopState, events: readonly LoopEvent[]): readonly NotedTurn[] {
  return turnsOf(state.iterations, events).map((turn, at) => {
    const record = state.iterations[at]
    return {
      ...turn,
      story_id: storyOf(change, state, turn.story_id),
      agent: record?.agent ?? '',
      model: state.settings?.model ?? '',
      ...(record !== undefined && record.tokens_estimated !== true && { figures: figuresOf(record) }),
    }
  })
}

function figuresOf(record: IterationRecord): UsageFigures {
  const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_usd } = record
  return {
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_creation_tokens,
    ...(cost_usd !== undefined && { cost_usd }),
  }
}

/** Each change has a story 1. */
function storyOf(change: string, state: LoopState, id: string): string {
  const title = state.stories.find((story) => story.id === id)?.title ?? ''
  return `${change}/${title.startsWith(id) ? title : `${id} ${title}`.trimEnd()}`
}

export async function reportOf(site: Site, change: string | undefined): Promise<RunReport> {
  const run = await requireRun(site, change)
  const { state } = run
  const { settings } = state
  const program = run.recall('loop.started').at(-1)?.agent_program
  const { died_at: died } = await deathIn(site, run)
  const parked = await parkedHere(site, run)
  const landed = isRunning(run) ? undefined : await landedHere(site, run)
  return runReport({
    change_id: state.changeId,
    // Not recorded yet: the journal of a loop that was killed has no end.
    status: isDead(run) ? 'stopped' : state.status,
    ...(died !== undefined && { died_at: died }),
    ...(parked !== undefined && { parked }),
    reason: state.outcome?.reason ?? '',
    ...(state.outcome?.stopReason !== undefined && { stop_reason: state.outcome.stopReason }),
    warnings: doubtsOf(state),
    tests_changed: state.testsChanged,
    stories: state.stories,
    ...(isRunning(run) &&
      state.phase !== 'idle' &&
      state.current !== undefined && { current: { n: state.current.n, story_id: state.current.storyId } }),
    ...(settings !== undefined && {
      about: {
        agents: settings.agents,
        ...(program !== undefined && { agent_program: program }),
        model: settings.model ?? '',
        gates: settings.gates,
        branch: state.branch ?? '',
        original_branch: state.originalBranch ?? '',
        ...(await workPlace(site, run, landed)),
      },
    }),
    ...(await workOf(site, run, landed)),
  })
}

/** With the runs that a merge of the queue's goes on with. */
async function workOf(
  site: Site,
  run: KnownRun,
  landed: LandedWork | undefined,
): Promise<RunWork & Pick<RunHistory, 'earlier'>> {
  const [work, before] = await Promise.all([runWork(site.git, run), runsBefore(site, run)])
  const earlier = await Promise.all(
    before.map(async ({ number, past }) => ({
      ...(await runWork(site.git, { recall: past.recall, state: past })),
      number,
    })),
  )
  const hand = landed === undefined ? [] : await mergedByHand(site.git, run, landed)
  return {
    ...work,
    by_hand: [...(work.by_hand ?? []), ...hand],
    ...(earlier.length > 0 && { earlier }),
  }
}

/** Where the work is, where that is not on its branch alone. */
async function workPlace(
  site: Site,
  run: KnownRun,
  landed: LandedWork | undefined,
): Promise<{ work?: string }> {
  const { branch, choice, git, originalBranch } = run.state
  if (isRunning(run)) return {}
  if (landed !== undefined)
    return {
      work: `landed on ${landed.target} as ${landed.commit.slice(0, 7)}${landed.is_pulled ? '' : `; your ${landed.target} is not updated yet`}`,
    }
  if (git.lastCheckpoint === undefined && git.cleaned === undefined)
    return { work: 'nothing was started; the repository is not changed' }
  if (branch === originalBranch) return {}
  const { where } = await (await import('./whereabouts.ts')).whereabouts(site, run)
  const place = originalBranch === '' ? 'a detached HEAD' : originalBranch
  if (where?.is_gone)
    return {
      work: where.is_merged
        ? `merged into ${place}; ${branch} is deleted`
        : `was on ${branch}, which is gone (deleted or renamed); its last checkpoint is ${(git.lastCheckpoint ?? '').slice(0, 12)}`,
    }
  if (choice !== 'cleanup' || where?.cleaned_at === undefined) return {}
  if (where.is_nothing) return { work: `nothing was saved; ${place} is as it was left` }
  if (where.squashed !== undefined)
    return { work: `one commit on ${where.squashed_on || place}, ${where.squashed}` }
  const at = where.cleaned_at.slice(11, 19)
  if (where.away !== undefined)
    return {
      work: `brought to ${place} by the cleanup at ${at}, and not there any more; its commits are kept as ${where.away.kept}`,
    }
  if (where.brought_on !== undefined)
    return {
      work: `on ${where.brought_on || 'a detached HEAD'}; brought to ${place} by the cleanup at ${at}`,
    }
  return {
    work: `on ${place}${where.uncommitted === false ? '' : ', uncommitted'}, since the cleanup at ${at}`,
  }
}
