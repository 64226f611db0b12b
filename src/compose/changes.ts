// list, show, prompt and learnings: what a change says, without a loop.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ifThere } from '../adapters/files/whole.ts'
import { headRef } from '../adapters/git/formats/ref-files.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { changeDirOf, listChanges, resolveChange } from '../adapters/openspec/changes.ts'
import { readLearnings } from '../adapters/openspec/learnings.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import { waitingFields } from '../core/state-snapshot.ts'
import { feedbackFor } from '../core/notes.ts'
import { toldFailure } from '../core/baseline.ts'
import { doubtsOf } from '../core/weakness.ts'
import { manualStory, storyStatus } from '../core/story.ts'
import type { ChangeDetail } from '../core/change.ts'
import type { ChangeList, Observe } from '../ui/app.ts'
import { requireRun } from './choose.ts'
import { damagedStatus } from './damage.ts'
import { storiesNow } from './plan-now.ts'
import { findRootOf } from './root.ts'
import { hasDied, isDead, isRunning, knownRun, pathsOf, runNames } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { landedHere, parkedHere } from './whereabouts.ts'

export async function listAll(site: Site): Promise<ChangeList> {
  const root = await findRootOf(site).catch(ifNoPlans)
  const changes = root instanceof RalphError ? [] : await listChanges(root, site.env)
  const away = await plansAway(site, new Set(changes.map(({ name }) => name)))
  if (root instanceof RalphError && away.length === 0) throw root
  const branch = headRef(site.git)?.replace(/^refs\/heads\//, '')
  return {
    // With reftable the file names none.
    ...(branch !== undefined && branch !== '.invalid' && { checked_out: branch }),
    changes: await Promise.all(
      [...changes, ...away].map(async ({ problem, ...summary }) => {
        const { status, unknown, done, tasks, branch, ...now } = await statusOf(site, summary.name)
        const problems = [problem, unknown].filter((each) => each !== '')
        // Of one that cannot be read nobody knows.
        const edited =
          problem === '' && !(root instanceof RalphError)
            ? await ifThere(stat(join(changeDirOf(root, summary.name), 'tasks.md')))
            : undefined
        return {
          ...summary,
          status,
          ...now,
          ...(done !== undefined && done !== summary.stories_done && { loop_stories_done: done }),
          ...(tasks !== undefined && tasks !== summary.tasks_done && { loop_tasks_done: tasks }),
          ...(branch !== undefined && { loop_branch: branch }),
          ...(edited !== undefined && { edited_at: site.clock.stamp(edited.mtimeMs) }),
          ...(problems.length > 0 && { problem: problems.join('; ') }),
        }
      }),
    ),
  }
}

/** There may still be runs whose plans are on their branches. */
function ifNoPlans(error: unknown): RalphError {
  if (error instanceof RalphError && error.code === 'openspec_missing') return error
  throw error
}

type Summary = Awaited<ReturnType<typeof listChanges>>[number] & Pick<Listed, 'plan_on'>

/** A plan that was not committed before its loop is on the loop's branch alone: elsewhere the change would look lost. */
async function plansAway(site: Site, here: ReadonlySet<string>): Promise<readonly Summary[]> {
  const names = runNames(site).filter((name) => !here.has(name))
  const found = await Promise.all(
    names.map(async (name): Promise<Summary[]> => {
      const run = await knownRun(site, name).catch(() => undefined)
      const branch = run === undefined ? undefined : await planAway(site, run)
      if (run === undefined || branch === undefined) return []
      const { stories } = run.state
      const sum = (count: (story: (typeof stories)[number]) => number): number =>
        stories.reduce((total, story) => total + count(story), 0)
      const summary = {
        name,
        title: name,
        stories_done: 0,
        stories_total: stories.length,
        stories_open: sum(({ status }) => (status === 'open' ? 1 : 0)),
        tasks_done: sum((story) => story.tasks_done),
        tasks_total: sum((story) => story.tasks_total),
        problem: '',
      }
      return [{ ...summary, plan_on: branch }]
    }),
  )
  return found.flat()
}

/** The branch that has the plan of a change which this checkout has not; undefined where its work is here, or its branch gone. */
async function planAway(site: Site, run: KnownRun): Promise<string | undefined> {
  const branch = run.state.phase === 'idle' ? undefined : await branchElsewhere(site, run)
  if (branch === undefined || (await landedHere(site, run))?.is_pulled) return undefined
  const asked = ['merge-base', '--is-ancestor', `refs/heads/${branch}`, 'HEAD']
  return (await site.git.run(asked, { accept: [1, 128] })).code === 0 ? undefined : branch
}

type Listed = ChangeList['changes'][number]

/** One run that cannot be read must not hide the others. */
async function statusOf(
  site: Site,
  name: string,
): Promise<
  {
    status: Listed['status']
    unknown: string
    done?: number
    tasks?: number
    branch?: string
  } & Pick<
    Listed,
    | 'stop_reason'
    | 'waiting_for'
    | 'pause_requested'
    | 'died_at'
    | 'orphan_pids'
    | 'landed'
    | 'parked'
    | 'warnings'
  >
> {
  try {
    const run = await knownRun(site, name)
    if (run.damage !== undefined) {
      const { status, problem } = await damagedStatus(site, run)
      return { status, unknown: problem ?? '' }
    }
    const seen = run.state.phase === 'idle' ? ('' as const) : run.state.status
    // Only looking: the truth about a dead loop without putting it in order.
    const done = seen === '' ? 0 : (await storiesNow(site, run)).done
    const branch = seen === '' ? undefined : await branchElsewhere(site, run)
    const landed = branch === undefined ? undefined : await landedHere(site, run)
    const parked = await parkedHere(site, run)
    const { stopReason } = (isRunning(run) ? undefined : run.state.outcome) ?? {}
    // Who has ticked the box has still to resume it.
    const isYours = stopReason === 'human' && run.state.choice !== 'cleanup'
    const warnings = doubtsOf(run.state)
    const { waiting_for: waitingFor, pause_requested: isPaused } = isRunning(run)
      ? waitingFields(run.state)
      : {}
    return {
      status: isDead(run) ? 'stopped' : seen,
      unknown: '',
      ...(stopReason !== undefined && { stop_reason: stopReason }),
      ...(waitingFor !== undefined && { waiting_for: waitingFor }),
      ...(isPaused && { pause_requested: isPaused }),
      ...(hasDied(run) && (await (await import('./reports.ts')).deathIn(site, run))),
      // Brought to the user's branch, or gone: then only the boxes there count.
      ...(seen !== '' &&
        (branch !== undefined || isRunning(run) || isYours) && { done, tasks: run.state.tasksDone }),
      ...(branch !== undefined && { branch }),
      ...(landed !== undefined && { landed }),
      ...(parked !== undefined && { parked }),
      ...(warnings.length > 0 && { warnings }),
    }
  } catch (error) {
    if (error instanceof RalphError && error.code === 'journal_unreadable')
      return { status: '', unknown: error.message }
    throw error
  }
}

async function branchElsewhere({ git }: Site, { state }: KnownRun): Promise<string | undefined> {
  const { branch, originalBranch, choice } = state
  if (branch === undefined || branch === originalBranch || choice === 'cleanup') return undefined
  const ref = `refs/heads/${branch}`
  return headRef(git) !== ref && (await readRef(git, ref)) !== undefined ? branch : undefined
}

export async function showOne(site: Site, change: string | undefined): Promise<ChangeDetail> {
  const { showChange } = await import('../adapters/openspec/show.ts')
  try {
    const root = await findRootOf(site)
    const name = await resolveChange(root, change, site.env)
    return await showChange(root, name, site.env, site.git.worktree)
  } catch (error) {
    const isMissing =
      error instanceof RalphError && ['change_not_found', 'openspec_missing'].includes(error.code)
    const known = change !== undefined && runNames(site).includes(change)
    const branch = isMissing && known ? await planAway(site, await knownRun(site, change)) : undefined
    if (branch === undefined) throw error
    throw new RalphError('change_not_found', `The plan of ${change} is on ${branch}, not in this checkout.`, {
      hint: `See it: git switch ${branch}\nBring it here, with its work: ralph finish ${change} --cleanup`,
    })
  }
}

export async function promptFor(
  site: Site,
  { change, storyId }: Parameters<Observe['prompt']>[0],
  config: Config,
): Promise<{ change_id: string; prompt: string }> {
  const { openChange, refuseUnknownName } = await import('./plan.ts')
  const { firstAgent, offersClaims } = await import('./claims.ts')
  const { readKept, settingsFile } = await import('./run-settings.ts')
  const found = await openChange(site, change, config)
  const run = await knownRun(site, found.name)
  if (found.doneCriteria === 'manual' && run.state.phase === 'idle')
    refuseUnknownName(found.name, changeDirOf(found.root, found.name))
  // A run that can go on does so with the words of its start.
  const isOpen = run.state.phase !== 'idle' && run.state.status !== 'done'
  const kept = isOpen ? await readKept(settingsFile(run)) : undefined
  const words = kept === undefined ? config.prompt_append : kept.entries['prompt_append']?.value
  const { prompt_append: now, ...rest } = config
  const opened =
    words === now
      ? found
      : await openChange(site, found.name, {
          ...rest,
          ...(typeof words === 'string' && { prompt_append: words }),
        })
  const { plan } = opened
  const told = (id: string): { previousFailure?: string } => {
    const previousFailure = toldFailure(run.state, id)
    return previousFailure === undefined ? {} : { previousFailure }
  }
  const feedback = feedbackFor(run.state)
  const { settings } = run.state
  const isOffered =
    isOpen && settings !== undefined
      ? offersClaims(settings.agents[0], { ...config, claims: settings.claims ?? 0 })
      : offersClaims(firstAgent(config, site.env), config)
  if (opened.doneCriteria === 'manual') {
    const said = {
      ...told(manualStory),
      ...(feedback !== undefined && { feedback }),
      offersClaims: isOffered,
    }
    const prompt = await opened.spec.prompt({ storyId: manualStory, attempt: 1, attempts: 1, ...said })
    return { change_id: opened.name, prompt }
  }
  const story =
    storyId === undefined
      ? plan.stories.find((candidate) => storyStatus(candidate) === 'open')
      : plan.stories.find((candidate) => candidate.id === storyId)
  if (story === undefined) {
    throw new RalphError(
      'usage',
      storyId === undefined ? `${opened.name} has no open story.` : `${opened.name} has no story ${storyId}.`,
      {
        hint: `Its stories: ${plan.stories.map((each) => each.id).join(', ')}. Name one: ralph prompt ${opened.name} --story ID`,
      },
    )
  }
  const prompt = await opened.spec.prompt({
    storyId: story.id,
    attempt: attemptsUsed(run.state, story.id) + 1,
    attempts: retriesOf(run, config) + 1,
    ...told(story.id),
    ...(feedback !== undefined && { feedback }),
    offersClaims: isOffered,
  })
  return { change_id: opened.name, prompt }
}

/** A story that used up its retries gets them anew with `ralph resume`; a run that is done has no next iteration. */
function attemptsUsed({ status, outcome, retries }: KnownRun['state'], storyId: string): number {
  const isAnew = status === 'done' || (outcome?.stopReason === 'retries' && outcome.storyId === storyId)
  return isAnew ? 0 : (retries[storyId] ?? 0)
}

export async function learningsOf(
  site: Site,
  change: string | undefined,
): Promise<{ path: string; text: string }> {
  const name = change ?? (await requireRun(site, undefined)).change
  const path = pathsOf(site, name).learnings
  return { path, text: await readLearnings(path) }
}

/** An unfinished run goes on with its own number of retries. */
function retriesOf({ state }: KnownRun, config: Config): number {
  const own = state.status === 'done' ? undefined : state.settings?.max_retries
  return own ?? config.max_retries
}
