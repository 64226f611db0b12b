// `ralph loop` and `ralph resume`: everything that has to be settled before the first event, in the order of contract 4.
import { mkdir, rename, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createAgents } from '../adapters/agents/agents.ts'
import { billing } from '../adapters/agents/installed.ts'
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { taskPattern } from '../adapters/openspec/project.ts'
import { readTracked, trackedFiles } from '../adapters/openspec/tracked.ts'
import { fileJournal } from '../adapters/files/journal.ts'
import { archiveAttempts } from '../adapters/git/attempts.ts'
import { shellGates } from '../adapters/process/gates.ts'
import { measureUsage } from '../adapters/usage/measure.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { EventBody, Settings } from '../core/event.ts'
import { initialState } from '../core/state.ts'
import { storyStatus } from '../core/story.ts'
import { parseTasks } from '../core/tasks.ts'
import type { Checkpoints, PreflightReport } from '../ports.ts'
import type { LoopEnd, LoopRequest } from '../ui/app.ts'
import { watchBudget } from './budget-watch.ts'
import { checkpointsFor } from './checkpoints.ts'
import { notifications } from './notify.ts'
import { changeFolder, openChange } from './plan.ts'
import type { OpenedChange } from './plan.ts'
import { recoverDead } from './recovery.ts'
import { keepFlags, resumedConfig } from './run-flags.ts'
import { acquireLocks, refuseRunning, runSession } from './session.ts'
import { keepBudget, loopSettings } from './settings.ts'
import { isRunning, knownRun, knownRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { finishRun } from './control.ts'
import { unarchived, wrapUpOf } from './wrap-up.ts'
import { standOnBranch } from './stand.ts'
import { enterWorktree } from './worktree.ts'

type Mode = 'start' | 'fresh' | 'resume'

interface Prepared {
  readonly change: OpenedChange
  readonly settings: Settings
  readonly checkpoints: Checkpoints
  readonly preflight: PreflightReport
}

export async function runLoop(
  home: Site,
  request: LoopRequest,
  wish: 'loop' | 'resume',
  feedback?: string,
): Promise<LoopEnd> {
  const asked = request.settings.config
  const wanted = request.change ?? (wish === 'resume' ? await onlyUnfinished(home) : undefined)
  const archived = wish === 'resume' ? await finishedAway(home, wanted) : undefined
  if (archived !== undefined) return alreadyDone(home, archived, asked)
  const { name, folder } =
    wish === 'resume' ? await resumedFolder(home, wanted) : await changeFolder(home, wanted)
  await refuseRunning(home, name, asked.worktree === undefined)
  const recovered = await recoverDead(home, await knownRun(home, name))
  const run = await knownRun(home, name)
  const config = wish === 'resume' ? await resumedConfig(run, request.settings) : asked
  const mode = await modeOf(run, wish, asked, home, feedback)
  if (mode === 'done already') return alreadyDone(home, run, config)
  const { site, brought, leave } = await enterWorktree(home, run, config, folder, mode)
  if (mode === 'resume') await standOnBranch(site, run)
  const journal = fileJournal(run.paths.journal)
  let tell: (body: EventBody) => Promise<void> = () => Promise.reject(new TypeError('no engine is bound'))
  const prepare = async (): Promise<Prepared> => {
    const change = await openChange(site, name, config, { validate: true })
    const budget = mode === 'resume' ? run.state.settings : undefined
    const settings = await loopSettings(keepBudget(config, budget), site.env, {
      doneCriteria: change.doneCriteria,
      title: change.title,
      isTerminal: home.isTerminal && !config.json,
      // A finished list spawns no agent, so none need be there.
      needsAgent:
        change.doneCriteria === 'manual' ||
        change.plan.stories.some((story) => storyStatus(story) === 'open'),
    })
    refuseUnknownStories(change, settings.stories)
    const checkpoints = checkpointsFor(site, {
      change: change.name,
      strategy: settings.checkpoint,
      writeAhead: (body) => tell(body),
      history: () => journal.read(),
      ...(site !== home && { home: home.git, brought }),
    })
    return { change, settings, checkpoints, preflight: await checkpoints.preflight(mode) }
  }
  const { change, settings, checkpoints, preflight } = await prepare().catch(async (error: unknown) => {
    await leave()
    throw error
  })
  const release = await acquireLocks(site, change.name, site.git.worktree, site.git.gitDir)
  try {
    if (mode !== 'resume') await archiveRun(site, run)
    await keepFlags(run, request.settings, mode === 'resume')
    const from =
      mode === 'resume'
        ? { state: run.state, seq: run.events.at(-1)?.seq ?? 0 }
        : { state: initialState(change.name), seq: 0 }
    const loopStarted = from.state.startedAt === '' ? site.clock.stamp() : from.state.startedAt
    const usage = measureUsage({
      worktree: site.git.worktree,
      // The agent's own surroundings: they say where its session files are.
      env: { ...site.env, ...config.agent_env },
      clock: site.clock,
      loopStarted,
      source: config.usage,
    })
    const agents = createAgents({
      ...(config.agent_command !== undefined && { command: config.agent_command }),
      ...(config.model !== undefined && { model: config.model }),
      passThrough: config.agent_args,
      agentEnv: config.agent_env,
      noApiKey: config.no_api_key,
      env: site.env,
      graceMs: 3_000,
    })
    const exitCode = await runSession({
      site,
      change: change.name,
      worktree: site.git.worktree,
      ports: {
        spec: change.spec,
        checkpoints,
        agent: watchBudget(agents, usage, site.clock, settings),
        gates: shellGates({ cwd: site.git.worktree, env: site.env }),
        usage,
        journal,
        clock: site.clock,
        human: request.human,
        wrapUp: wrapUpOf(site, change, config, home),
        mode,
        transcript: (n) => join(run.paths.transcripts, `${n}.log`),
      },
      from,
      started: {
        resumed: mode === 'resume',
        settings,
        root: change.root,
        tasks_file: change.tasksFile,
        original_branch: preflight.originalBranch,
        branch: preflight.branch,
        ...(site !== home && { home: home.git.worktree, brought: [...brought] }),
        ...(feedback !== undefined && { feedback }),
      },
      warnings: [
        recovered,
        ...change.warnings,
        ...preflight.warnings,
        mode === 'resume' ? '' : unarchived(change, config),
        ...settings.agents.map((agent) => bill(agent, site.env, config)),
      ],
      tell: request.tell,
      readerGone: request.readerGone,
      onTell: (engineTell) => {
        tell = engineTell
      },
      atEnd: notifications(config, site),
    })
    return { exitCode }
  } finally {
    await journal.close()
    await release()
  }
}

/** `ralph resume` alone means the run that can be gone on with, however many changes are open. */
async function onlyUnfinished(site: Site): Promise<string | undefined> {
  const runs = (await knownRuns(site)).filter((run) => run.state.status !== 'done')
  return runs.length === 1 ? runs[0]?.change : undefined
}

/** A run that is done, and whose change was archived after it: there is no folder any more, but an answer. */
async function finishedAway(site: Site, change: string | undefined): Promise<KnownRun | undefined> {
  if (change === undefined) return undefined
  const run = (await knownRuns(site)).find((each) => each.change === change)
  if (run === undefined || run.state.status !== 'done' || isRunning(run)) return undefined
  const isThere = await changeFolder(site, change).then(
    () => true,
    (error: unknown) => {
      if (error instanceof RalphError && error.code === 'change_not_found') return false
      throw error
    },
  )
  return isThere ? undefined : run
}

/** R12: a key in the environment bills a user who may have a subscription. */
function bill(agent: string, env: NodeJS.ProcessEnv, config: Config): string {
  if (config.no_api_key) return ''
  const how = billing(agent, { ...env, ...config.agent_env })
  return how.startsWith('API key')
    ? `${agent} will be billed by ${how}; --no-api-key uses its login instead`
    : ''
}

async function modeOf(
  run: KnownRun,
  wish: 'loop' | 'resume',
  config: Config,
  site: Site,
  feedback: string | undefined,
): Promise<Mode | 'done already'> {
  const { state, change } = run
  const hasRun = state.phase !== 'idle'
  if (wish === 'resume') {
    if (!hasRun) {
      const hint = (await hasBranch(site, change))
        ? `The branch ralph/${change} is there, but not the record of its run (a clone?). Start anew: ralph loop ${change} --fresh; its commits are archived.`
        : `Start one: ralph loop ${change}`
      throw new RalphError('nothing_to_resume', `There is no run of ${change} to go on with.`, {
        hint,
        exitCode: 2,
      })
    }
    return state.status === 'done' && !(await hasMore(site, run, feedback)) ? 'done already' : 'resume'
  }
  if (config.fresh) return 'fresh'
  if (!hasRun) return 'start'
  if (state.status === 'done' && !(await hasBranch(site, change))) return 'start'
  const what =
    state.status === 'done'
      ? `a finished run, kept on the branch ralph/${change}`
      : `an unfinished run (${state.status})`
  throw new RalphError('unfinished_run', `There is ${what} of ${change}.`, {
    hint:
      state.status === 'done'
        ? `Settle it: ralph finish ${change} --cleanup (or ralph resume ${change} --on-complete cleanup). Start anew: ralph loop ${change} --fresh; the earlier run is archived.`
        : `Go on with it: ralph resume ${change}. Start anew: ralph loop ${change} --fresh; the earlier run is archived.`,
    exitCode: 2,
  })
}

/** A done run goes on when its plan has got new open stories, or a manual one new words. */
async function hasMore(site: Site, run: KnownRun, feedback: string | undefined): Promise<boolean> {
  const { settings, stories } = run.state
  if (settings?.done_criteria === 'manual') return feedback !== undefined
  if (stories.some((story) => story.status === 'open')) return true
  const { root, folder } = await changeFolder(site, run.change)
  const files = await trackedFiles(folder, await taskPattern(root, folder, site.env), site.git.worktree)
  const plan = parseTasks(await readTracked(files))
  return plan.stories.some((story) => storyStatus(story) === 'open')
}

/** The run's own name and place: the branch that the user stands on now may not even have the change. */
async function resumedFolder(
  home: Site,
  wanted: string | undefined,
): Promise<{ name: string; folder: string }> {
  const run = wanted === undefined ? undefined : await knownRun(home, wanted)
  if (run === undefined || run.state.phase === 'idle') return changeFolder(home, wanted)
  return { name: run.change, folder: changeDirOf(run.state.root, run.change) }
}

async function hasBranch(site: Site, change: string): Promise<boolean> {
  const ref = `refs/heads/ralph/${change}`
  return (await site.git.run(['rev-parse', '--verify', '--quiet', ref], { accept: [1] })).code === 0
}

/** "Already done: exit 0, `--on-complete` applies." */
async function alreadyDone(site: Site, run: KnownRun, config: Config): Promise<LoopEnd> {
  const wish = config.on_complete
  if ((wish === 'cleanup' || wish === 'keep') && run.state.choice !== 'cleanup')
    return {
      exitCode: 0,
      note: `${run.change} is done already; ${(await finishRun(site, run.change, wish)).message}`,
    }
  return { exitCode: 0, note: `${run.change} is done already.` }
}

function refuseUnknownStories(change: OpenedChange, wanted: readonly string[]): void {
  const known = change.plan.stories.map((story) => story.id)
  const unknown = wanted.find((id) => !known.includes(id))
  if (unknown === undefined) return
  throw new RalphError('usage', `${change.name} has no story ${unknown}.`, {
    hint: `Its stories: ${known.join(', ')}. See: ralph show ${change.name}`,
    exitCode: 2,
  })
}

/** The earlier run moves into the archive, whole; the learnings stay. */
async function archiveRun(site: Site, run: KnownRun): Promise<void> {
  if (run.state.phase === 'idle') return
  const time = run.state.startedAt.replaceAll(':', '')
  const to = join(run.paths.archive, time)
  await mkdir(to, { recursive: true, mode: 0o700 })
  await archiveAttempts(site.git, run.change, time)
  const stay = new Set(['archive', 'learnings.md', 'lock.json'])
  for (const name of await readdir(run.paths.root)) {
    if (!stay.has(name) && !name.startsWith('lock.json'))
      await rename(join(run.paths.root, name), join(to, name))
  }
}
