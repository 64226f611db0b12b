// Which run a `loop` or `resume` means, and whether it begins, begins anew, goes on, or is done already.
import { isPaused } from '../adapters/files/wish-files.ts'
import { wayOut } from '../adapters/git/start/lost-record.ts'
import { headRef } from '../adapters/git/formats/ref-files.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { taskPattern } from '../adapters/openspec/project.ts'
import { readTracked, trackedFiles } from '../adapters/openspec/tracked.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import { storyStatus } from '../core/story.ts'
import { parseTasks } from '../core/tasks.ts'
import { damagedRun } from './damage.ts'
import { isDoneAtHome } from './plan-now.ts'
import { changeFolder } from './plan.ts'
import { hasDied, isDead, isRunning, knownRuns, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { landedHere, landedWords, parkedHere } from './whereabouts.ts'

export type Mode = 'start' | 'fresh' | 'resume'

/** `ralph resume` alone means the run that can be gone on with, however many changes are open. */
export async function runToResume(site: Site): Promise<string | undefined> {
  const runs = await knownRuns(site)
  const unfinished = runs.filter((run) => run.state.status !== 'done')
  const left = unfinished.length > 0 ? unfinished : await withMore(site, runs)
  if (left.length === 1) return left[0]?.change
  const paused = left.filter((run) => isRunning(run) && isPaused(run.paths.pause))
  if (paused.length === 1) return paused[0]?.change
  const here = left.find((run) => headRef(site.git) === `refs/heads/ralph/${run.change}`)
  if (here !== undefined) return here.change
  try {
    return (await changeFolder(site, undefined)).name
  } catch (error) {
    if (!(error instanceof RalphError) || error.code !== 'change_ambiguous') throw error
    const [first] = left
    if (first !== undefined)
      throw new RalphError('change_ambiguous', `There are ${left.length} runs to resume: ${namesOf(left)}.`, {
        hint: `Name the one you mean, e.g. \`ralph resume ${first.change}\`.`,
      })
    const kept = runs.find((run) => run.state.choice !== 'cleanup')
    throw new RalphError(
      'nothing_to_resume',
      runs.length === 0
        ? 'There is no run to resume.'
        : `There is no run left to resume: ${namesOf(runs)} ${runs.length === 1 ? 'is' : 'are'} done.`,
      {
        hint: `${kept === undefined ? '' : `Bring its work to your branch: ralph finish ${kept.change}. `}What is open: ralph list`,
      },
    )
  }
}

function namesOf(runs: readonly KnownRun[]): string {
  return runs.map((run) => run.change).join(', ')
}

/** Done, and their plans have got new stories since. */
async function withMore(site: Site, runs: readonly KnownRun[]): Promise<readonly KnownRun[]> {
  const has = await Promise.all(
    runs.map(async (run) => !(await isFinishedAway(site, run)) && hasMore(site, run, undefined)),
  )
  return runs.filter((_, at) => has[at])
}

/** A run that is done, and whose change was archived after it: there is no folder any more, but an answer. */
export async function isFinishedAway(site: Site, run: KnownRun): Promise<boolean> {
  if (run.damage !== undefined || run.state.status !== 'done') return false
  // Never committed but on the loop's branch, and the user stands elsewhere.
  if (hasOpen(await planOnBranch(site, run))) return false
  return changeFolder(site, run.change).then(
    () => false,
    (error: unknown) => {
      if (error instanceof RalphError && error.code === 'change_not_found') return true
      throw error
    },
  )
}

export async function modeOf(
  run: KnownRun,
  wish: 'loop' | 'resume',
  config: Config,
  site: Site,
  feedback: string | undefined,
): Promise<Mode | 'done already'> {
  const { state, change } = run
  const hasRun = state.phase !== 'idle'
  if (run.damage !== undefined) {
    if (wish === 'loop' && config.fresh) return 'fresh'
    throw await damagedRun(site, run)
  }
  if (wish === 'resume') {
    if (!hasRun) {
      const hint = (await wayOut(site.git, change)) || `Start one: ralph loop ${change}`
      throw new RalphError('nothing_to_resume', `There is no run of ${change} to continue.`, {
        hint,
      })
    }
    if (state.status !== 'done') return (await isDoneAtHome(site, run)) ? 'done already' : 'resume'
    return (await hasMore(site, run, feedback)) ? 'resume' : 'done already'
  }
  if (config.fresh) return 'fresh'
  if (!hasRun) return 'start'
  if (state.status === 'done' && !(await hasBranch(site, change))) {
    // Nothing to do is no reason to put the earlier run away.
    const isPlanned = config.done !== 'manual' && state.settings?.done_criteria === 'tasks'
    return isPlanned && !(await hasMore(site, run, feedback)) ? 'done already' : 'start'
  }
  // Its user has taken the work and said so: the next loop is another run.
  const isFinished = state.choice === 'cleanup' && state.settings?.checkpoint === 'branch' && !isDead(run)
  if (isFinished && !(await hasBranch(site, change))) return 'start'
  const landed = isDead(run) ? undefined : await landedHere(site, run)
  if (landed !== undefined)
    throw new RalphError('unfinished_run', `${change} ${landedWords(landed)}.`, {
      hint: `Is there more to do? ${landed.is_pulled ? '' : 'First: ralph queue pull\n'}Start over (the earlier run is archived): ralph loop ${change} --fresh`,
    })
  // What the queue waits for comes first: the run alone would not land it.
  const parked = isDead(run) ? undefined : await parkedHere(site, run)
  if (parked !== undefined)
    throw new RalphError(
      'unfinished_run',
      `${change} is ${parked.waits === true ? '' : 'parked '}in the merge queue: ${parked.why}.`,
      { hint: `Nothing was touched. ${parked.hint}` },
    )
  const what =
    state.status === 'done'
      ? `a finished run of ${change}, kept on the branch ralph/${change}`
      : `an unfinished run of ${change} (${hasDied(run) ? 'died' : state.status})`
  throw new RalphError('unfinished_run', `There is ${what}.`, {
    hint:
      state.status === 'done'
        ? `Finish it: ralph finish ${change} --cleanup\nStart over (the earlier run is archived): ralph loop ${change} --fresh`
        : `Continue it: ralph resume ${change}\nStart over (the earlier run is archived): ralph loop ${change} --fresh`,
  })
}

/** A done run goes on when its plan has got new open stories, or a manual one new words. */
async function hasMore(site: Site, run: KnownRun, feedback: string | undefined): Promise<boolean> {
  const { settings, stories } = run.state
  if (settings?.done_criteria === 'manual') return feedback !== undefined
  if (stories.some((story) => story.status === 'open')) return true
  const elsewhere = await planOnBranch(site, run)
  if (elsewhere !== undefined) return hasOpen(elsewhere)
  const { root, folder } = await changeFolder(site, run.change)
  const files = await trackedFiles(folder, await taskPattern(root, folder, site.env), site.git.worktree)
  const plan = parseTasks(await readTracked(files))
  return plan.stories.some((story) => storyStatus(story) === 'open')
}

function hasOpen(text: string | undefined): boolean {
  if (text === undefined) return false
  return parseTasks([{ file: 'tasks.md', text }]).stories.some((story) => storyStatus(story) === 'open')
}

/** The plan of the run where its branch is not checked out: the one in the work tree has none of its ticks. */
async function planOnBranch({ git }: Site, { change, state }: KnownRun): Promise<string | undefined> {
  const ref = `refs/heads/ralph/${change}`
  if (state.home !== undefined || !state.tasksFile) return undefined
  if (headRef(git) === ref) return undefined
  const { out, code } = await git.run(['cat-file', 'blob', `${ref}:${state.tasksFile}`], { accept: [1, 128] })
  return code === 0 ? Buffer.from(out, 'latin1').toString('utf8') : undefined
}

/** The run's own name and place: the branch that the user stands on now may not even have the change. */
export async function resumedFolder(home: Site, run: KnownRun): Promise<{ name: string; folder: string }> {
  if (run.state.phase === 'idle') return changeFolder(home, run.change)
  return { name: run.change, folder: changeDirOf(run.state.root, run.change) }
}

async function hasBranch(site: Site, change: string): Promise<boolean> {
  const ref = `refs/heads/ralph/${change}`
  return (await readRef(site.git, ref)) !== undefined
}

/** Half an attempt of another change lies in this tree: it would be taken for the user's own work. */
export async function refuseLeftover(here: Site, change: string): Promise<void> {
  const runs = await knownRuns(here)
  const left = runs.find(
    (run) => run.change !== change && run.state.worktree === here.git.worktree && needsRepair(run),
  )
  if (left === undefined) return
  throw new RalphError(
    'repository_state',
    `The loop of ${left.change} died in this work tree, and what its agent left there is not cleaned up yet.`,
    {
      hint: `Nothing was touched. First: ralph resume ${left.change}, or ralph finish ${left.change} --cleanup (or --keep). Or run this change in its own folder: ralph loop ${change} --worktree`,
    },
  )
}
