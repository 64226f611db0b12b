// `ralph finish`: the choice, carried out on a run in hand, and the user's word on settings that agents changed.
import { existsSync } from 'node:fs'
import { asSquash } from '../adapters/git/finish/finish-words.ts'
import { leftIn, removalWords } from '../adapters/git/finish/only-in-worktree.ts'
import type { Git } from '../adapters/git/git.ts'
import { hasNoCommits } from '../adapters/git/stash/stash.ts'
import { storiesBefore } from '../adapters/git/start/own-part.ts'
import { remoteOf } from '../adapters/git/formats/remote.ts'
import { readSettingsFile } from '../config/files.ts'
import { userFolder } from '../config/load.ts'
import { squashMessage } from '../core/commit-text.ts'
import { inOneLine, RalphError } from '../core/error.ts'
import { needsOption, onwardFrom } from '../core/onward.ts'
import { refusedByGate } from '../core/story.ts'
import type { FinishChoice } from '../ports.ts'
import type { Control, LandedWork, Said } from '../ui/app.ts'
import { openspecWords } from './beforehand.ts'
import { acceptGitSettings, hiddenPaths } from './checkpoints.ts'
import { agree, unagreed } from './config-trust.ts'
import { inOrder, withRun } from './control.ts'
import { finishedAlready } from './finished.ts'
import { stillGone } from './named-restores.ts'
import type { OpenRun } from './open-run.ts'
import { isPlanGone, planNow } from './plan-now.ts'
import { withEngine } from './run-engine.ts'
import { isTree, needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { landedHere, landedWords, refuseConflictHere } from './whereabouts.ts'

/** The choice, the user's word on what agents changed of config files and git's settings, or both. */
export async function finishOrAccept(
  site: Site,
  { change, choice, message: own, acceptsConfig }: Parameters<Control['finish']>[0],
): Promise<Said> {
  return withRun(site, change, async (held) => {
    const finished = choice === undefined ? undefined : await finishHeld(site, held, choice, own)
    if (!acceptsConfig && finished !== undefined) return finished
    await inOrder(site, held)
    const { run } = held
    const files = {
      project: await readSettingsFile(site.git.worktree),
      user: await readSettingsFile(userFolder(site.env)),
    }
    const doubtful = await unagreed(site.git.gitCommonDir, files)
    await agree(site.git.gitCommonDir, files)
    const taken = [
      ...doubtful.map((what) => what.replace(/, and you have not accepted that$/, ': agreed')),
      ...(await acceptGitSettings(site, run.change)),
    ]
    const message = taken.length === 0 ? `There was nothing to accept for ${run.change}.` : taken.join('\n')
    return {
      ...finished,
      message: finished === undefined ? message : `${finished.message}\n${message}`,
      data: { ...finished?.data, change_id: run.change, accepted: taken },
    }
  })
}

export async function finishHeld(
  site: Site,
  held: OpenRun,
  choice: Exclude<FinishChoice, 'later'>,
  own?: string,
): Promise<Said> {
  // Before a repair, which touches the work tree.
  if ((choice === 'squash' || choice === 'rename') && held.run.state.settings?.checkpoint === 'stash')
    throw hasNoCommits(held.run.change, choice)
  // One that was killed half-way is completed, whatever is asked for now.
  const isCompleted = held.run.state.git.pending?.operation.op === 'finish'
  // A squash is a cleanup whose work is committed, a rename a keep: that is what the run remembers.
  const kept = isCompleted || choice === 'squash' ? 'cleanup' : choice === 'rename' ? 'keep' : choice
  const landed = isCompleted || needsRepair(held.run) ? undefined : await landedHere(site, held.run)
  if (landed !== undefined) return await landedSaid(site, held.run, landed, choice)
  if (kept === 'cleanup' && !isCompleted) await refuseConflictHere(site, held.run)
  const already = await finishedAlready(site, held.run, choice)
  if (already !== '') {
    const { change, state } = held.run
    // A finish that was killed behind its last record has left its lock there.
    if (state.home !== undefined && isTree(state.worktree))
      await held.enterOwn().catch((error: unknown) => {
        if (!(error instanceof RalphError)) throw error
      })
    return {
      message: `${change} is finished already: ${already}.`,
      ...(state.status !== 'done' && !(await isPlanGone(site, held.run)) && { next: resumeOf(held.run) }),
      data: { change_id: change, choice, user_paths: [], loop_paths: [] },
    }
  }
  const there = await inOrder(site, held)
  const { run } = held
  const report = await withEngine(there, held, async (loop, ports) => {
    held.beat()
    try {
      const message = choice === 'squash' ? await squashText(run, own, run.state.root, there.git) : ''
      const done = await ports.checkpoints.finish(choice, message)
      // The repair has made it, and said so.
      const { commit } = isCompleted ? (run.recall('loop.finished').at(-1) ?? done) : done
      const finished = {
        ...done,
        ...(commit !== undefined && { commit }),
      }
      await loop.tell({
        type: 'loop.finished',
        choice: kept,
        ok: true,
        message: finished.message,
        ...(finished.commit !== undefined && { commit: finished.commit }),
        ...(finished.gone !== undefined && { gone: [...finished.gone] }),
      })
      const { gone, git } = loop.state
      // In the record are all of them, in what is told only those that a restore takes nothing from.
      const left = gone.length === 0 ? [] : await stillGone(site.git, gone, git.lastCheckpoint)
      return { ...finished, gone: left }
    } catch (thrown) {
      const error = choice === 'squash' && isOfCleanup(thrown) ? asSquash(thrown) : thrown
      // Remembered with its way out, so that a look at the run does not advise the same again.
      if (error instanceof RalphError && error.code === 'finish_conflict')
        await loop.tell({
          type: 'loop.finished',
          choice: kept,
          ok: false,
          message: inOneLine(error),
          ...(choice === 'squash' && { squash: true }),
        })
      throw error
    }
  })
  if (report.refused !== undefined) {
    const { why, hint } = report.refused
    throw new RalphError('git_failed', `Your git would not commit the work of ${run.change}: ${why}`, {
      hint,
    })
  }
  // A loop that died after its last story has not said so, but nothing is left to run.
  const plan = kept === 'cleanup' ? await planNow(site, run.change) : undefined
  const refused = refusedWords(run)
  const isDone =
    refused === '' && (run.state.status === 'done' || (run.state.home === undefined && plan?.open === 0))
  // A run that is not done is gone on with in its tree.
  const ownTree = run.state.home !== undefined && kept === 'cleanup' && isDone
  const onward = isDone ? await nextSteps(site, run, choice, plan?.open ?? 0) : []
  const removal = ownTree ? await removalOf(site, run) : []
  return {
    message: report.message + (choice === 'squash' ? partWords(run) : '') + refused,
    ...(onward.length + removal.length > 0 && { next: [...onward, ...removal].join('; ') }),
    ...(!isDone && {
      next: (await isPlanGone(site, run))
        ? `the change ${run.change} is not in openspec/changes any more; to continue it, bring its folder back, then ralph resume ${run.change}`
        : kept === 'cleanup' && run.state.settings?.checkpoint === 'branch' && run.state.home === undefined
          ? onwardOf(run)
          : resumeOf(run),
    }),
    ...(report.gone.length > 0 && { gone: report.gone }),
    data: {
      change_id: run.change,
      choice,
      user_paths: report.userPaths,
      loop_paths: report.loopPaths,
      ...(report.commit !== undefined && { commit: report.commit }),
      ...(report.gone.length > 0 && { gone: report.gone }),
    },
  }
}

/** Refused before the squash was planned, so in the words of a cleanup. */
function isOfCleanup(error: unknown): boolean {
  return error instanceof RalphError && error.hint.startsWith('The cleanup has touched nothing.')
}

/** Of a manual change nothing may be left but its user's word. */
function onwardOf({ change, state }: OpenRun['run']): string {
  const isAsked =
    state.settings?.done_criteria === 'manual' && state.iterations.at(-1)?.verdict === 'complete'
  return isAsked
    ? `ralph done ${change}   it is done; ralph resume ${change}   let the agent continue`
    : `${resumeOf({ change, state })}   run what is left, with the same agent and gates`
}

/** Without more of what was used up it would stop at once. */
function resumeOf({ change, state }: Pick<OpenRun['run'], 'change' | 'state'>): string {
  const { outcome } = state
  if (state.phase === 'idle' || outcome === undefined || !needsOption.has(outcome.stopReason))
    return `ralph resume ${change}`
  return onwardFrom(state, outcome.stopReason, outcome.reason).command
}

/** Nobody should take one commit for the whole change. */
function partWords({ state: { stories, settings } }: OpenRun['run']): string {
  const done = stories.filter(({ status }) => status === 'done').length
  const isWhole = done === stories.length || settings?.done_criteria === 'manual'
  return isWhole ? '' : `; it has ${done} of ${stories.length} stories`
}

/** A person may finish it all the same, and should know. */
function refusedWords({ state, recall }: OpenRun['run']): string {
  if (refusedByGate(state).length === 0) return ''
  const gate = recall('gate.ended').findLast((each) => each.outcome !== 'passed')
  const how = gate?.outcome === 'could_not_run' ? 'could not run' : 'failed'
  return `\nIt is not done: ${gate?.command.replaceAll(/\s+/g, ' ') ?? 'a gate'} ${how} on what was ticked by hand.`
}

/** Not removed by ralph: ignored files in it are in no commit. */
async function removalOf({ git }: Site, { change, state }: KnownRun): Promise<string[]> {
  const { home, worktree } = state
  if (home === undefined || worktree === undefined || !isTree(worktree)) return []
  const only = await leftIn(git, { change, folder: worktree, home }, hiddenPaths)
  return only === undefined ? [] : [removalWords(worktree, only)]
}

/** Brought a second time it would conflict with itself, and with the archive of its plan. */
async function landedSaid(site: Site, run: KnownRun, work: LandedWork, choice: FinishChoice): Promise<Said> {
  const onward = [...(work.is_pulled ? [] : ['ralph queue pull']), ...(await removalOf(site, run))]
  return {
    message: `Nothing to finish: ${run.change} ${landedWords(work)}. Its branch ralph/${run.change} stays.`,
    ...(onward.length > 0 && { next: onward.join('; ') }),
    data: { change_id: run.change, choice, user_paths: [], loop_paths: [], landed: work.commit },
  }
}

/** What people do with commits: they go to the others, and the change into OpenSpec's archive. */
async function nextSteps(
  { git, env }: Site,
  { change, state }: OpenRun['run'],
  choice: FinishChoice,
  open: number,
): Promise<readonly string[]> {
  if (choice === 'cleanup' || state.branch === state.originalBranch) return []
  const remote = await remoteOf(git)
  const push = choice === 'squash' ? 'git push' : `git push -u ${remote ?? ''} ralph/${change}`
  const { changeDirOf } = await import('../adapters/openspec/changes.ts')
  const isThere = state.root !== undefined && existsSync(changeDirOf(state.root, change))
  return [
    ...(remote === undefined ? [] : [push]),
    ...(choice === 'squash' && isThere && state.settings?.done_criteria === 'tasks'
      ? [open === 0 ? `${openspecWords(env)} archive ${change}` : `ralph loop ${change}   run what is open`]
      : []),
  ]
}

/** From the proposal's title, as it is below `root`, and the stories whose work was kept. */
export async function squashText(
  { change, state }: KnownRun,
  own: string | undefined,
  root = state.root,
  git?: Git,
): Promise<string> {
  const kept = state.iterations.filter(({ verdict }) => keeps.has(verdict))
  const earlier = git === undefined ? [] : await storiesBefore(git, change, state.git)
  const ids = new Set([...earlier, ...kept.map((iteration) => iteration.story_id)])
  const { readTitle } = await import('../adapters/openspec/changes.ts')
  return squashMessage({
    changeId: change,
    // Archived since, or not to be read: the name says what it is.
    title: inWords(root === undefined ? change : await readTitle(root, change).catch(() => change)),
    own,
    stories: state.settings?.done_criteria === 'manual' ? [] : state.stories.filter(({ id }) => ids.has(id)),
    agents: [...new Set(kept.map(({ agent }) => agent))],
  })
}

/** A proposal without a title has the change's name for one: `add-login` is no subject of a commit. */
function inWords(title: string): string {
  if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)+$/.test(title)) return title
  const words = title.replaceAll('-', ' ')
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

const keeps: ReadonlySet<string> = new Set(['complete', 'partial', 'progress', 'kept'])
