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
import { manualStory, storyStatus } from '../core/story.ts'
import type { ChangeDetail } from '../core/change.ts'
import type { ChangeList, Observe } from '../ui/app.ts'
import { requireRun } from './choose.ts'
import { damagedStatus } from './damage.ts'
import { storiesNow } from './plan-now.ts'
import { findRootOf } from './root.ts'
import { hasDied, isDead, isRunning, knownRun, pathsOf } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { landedHere, parkedHere } from './whereabouts.ts'

export async function listAll(site: Site): Promise<ChangeList> {
  const root = await findRootOf(site)
  const changes = await listChanges(root, site.env)
  const branch = headRef(site.git)?.replace(/^refs\/heads\//, '')
  return {
    // With reftable the file names none.
    ...(branch !== undefined && branch !== '.invalid' && { checked_out: branch }),
    changes: await Promise.all(
      changes.map(async ({ problem, ...summary }) => {
        const { status, unknown, done, branch, ...now } = await statusOf(site, summary.name)
        const problems = [problem, unknown].filter((each) => each !== '')
        // Of one that cannot be read nobody knows.
        const edited =
          problem === '' ? await ifThere(stat(join(changeDirOf(root, summary.name), 'tasks.md'))) : undefined
        return {
          ...summary,
          status,
          ...now,
          ...(done !== undefined && done !== summary.stories_done && { loop_stories_done: done }),
          ...(branch !== undefined && { loop_branch: branch }),
          ...(edited !== undefined && { edited_at: site.clock.stamp(edited.mtimeMs) }),
          ...(problems.length > 0 && { problem: problems.join('; ') }),
        }
      }),
    ),
  }
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
    branch?: string
  } & Pick<Listed, 'waiting_for' | 'died_at' | 'orphan_pids' | 'landed' | 'parked'>
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
    const { waiting_for: waitingFor } = isRunning(run) ? waitingFields(run.state) : {}
    return {
      status: isDead(run) ? 'stopped' : seen,
      unknown: '',
      ...(waitingFor !== undefined && { waiting_for: waitingFor }),
      ...(hasDied(run) && (await (await import('./reports.ts')).deathIn(site, run))),
      // Brought to the user's branch, or gone: then only the boxes there count.
      ...(seen !== '' && (branch !== undefined || isRunning(run)) && { done }),
      ...(branch !== undefined && { branch }),
      ...(landed !== undefined && { landed }),
      ...(parked !== undefined && { parked }),
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
  const root = await findRootOf(site)
  return showChange(root, await resolveChange(root, change, site.env), site.env, site.git.worktree)
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
