// `ralph loop` and `ralph resume`: everything that has to be settled before the first event, in the order of contract 4.
// Long because the order is the point: it is read from top to bottom.
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createAgents } from '../adapters/agents/agents.ts'
import { accountOf } from '../adapters/agents/installed.ts'
import { loginLedger, loginsFolder, loopIdOf } from '../adapters/files/logins.ts'
import { gateLogIn, reserveFile } from '../adapters/files/paths.ts'
import { diskReserve } from '../adapters/files/reserve.ts'
import { refuseReadOnly } from '../adapters/git/start/preflight.ts'
import { shellGates } from '../adapters/process/gates.ts'
import { measureUsage } from '../adapters/usage/measure.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import type { Settings } from '../core/event.ts'
import { tickedByHand } from '../core/beginning.ts'
import { allGates } from '../core/limits.ts'
import { limitsOf } from '../core/resource-limits.ts'
import { lastingWarnings } from '../core/outcome.ts'
import { planRead } from '../engine/record.ts'
import type { Checkpoints, PreflightReport } from '../ports.ts'
import type { LoopEnd, LoopRequest } from '../ui/app.ts'
import { refuseMissingAgent } from './agent-program.ts'
import { archiveRun, begunAgain, begunAnew } from './archive.ts'
import {
  agentView,
  billingOf,
  confirmUnplanned,
  doubleLogin,
  gateFound,
  hasWork,
  nothingAnew,
  openspecWords,
  spentBy,
  programName,
} from './beforehand.ts'
import { watchBudget } from './budget-watch.ts'
import { cagingOf, firstUncaged } from './cage.ts'
import { checkpointsFor } from './checkpoints.ts'
import { agree, refuseUnagreed } from './config-trust.ts'
import { openRun, refuseRunning } from './open-run.ts'
import { isParkedHere, landedHere, landedWords } from './whereabouts.ts'
import type { OpenRun } from './open-run.ts'
import { isFinishedAway, modeOf, refuseLeftover, resumedFolder, runToResume } from './mode.ts'
import { notifications } from './notify.ts'
import { changeFolder, checkBeside, openChange, refuseInvalid, refuseUnknownStories } from './plan.ts'
import type { OpenedChange } from './plan.ts'
import { blindGates } from '../core/blind-gate.ts'
import { absentTargets, openTargets, refuseMissingGates } from './gate-programs.ts'
import { liftPause } from './wishes.ts'
import { enterTree, repairRun } from './recovery.ts'
import { rootOf } from './root.ts'
import { streamOf } from './run-engine.ts'
import { keepSettings, refuseNewTree, resumedSettings, startedSettings } from './run-settings.ts'
import { runSession } from './session.ts'
import { loopSettings, strangeStories, unmeasured } from './settings.ts'
import { endUnknown, explained } from './damage.ts'
import { desktopFor } from './desktop.ts'
import { knownRun } from './site.ts'
import type { Site } from './site.ts'
import { finishHeld } from './finish.ts'
import { refuseUncommitted } from './uncommitted.ts'
import { unarchived, wrapUpOf } from './wrap-up.ts'
import { headText } from '../adapters/git/formats/ref-files.ts'
import { backToPlace, checkOutRunBranch } from './run-branch.ts'
import { enterWorktree } from './worktree.ts'

interface Prepared {
  readonly change: OpenedChange
  readonly settings: Settings
  /** Stories that were open when the run before ended, and are ticked now. */
  readonly byHand: readonly string[]
  readonly checkpoints: Checkpoints
  readonly preflight: PreflightReport
}

export async function runLoop(
  here: Site,
  request: LoopRequest,
  wish: 'loop' | 'resume',
  feedback?: string,
): Promise<LoopEnd> {
  const { config } = request.settings
  const wanted = request.change ?? (wish === 'resume' ? await runToResume(here) : undefined)
  // Only the name is of use after the lock: what else is known by now may be somebody else's past.
  const { name } =
    wish === 'resume' && wanted !== undefined
      ? await resumedFolder(here, await knownRun(here, wanted))
      : await changeFolder(here, wanted)
  const before = wish === 'resume' ? await knownRun(here, name) : undefined
  if (before !== undefined) refuseNewTree(before, request.settings)
  const lifted = before && (await liftPause(here, before, request, feedback))
  if (lifted !== undefined) return lifted
  refuseRunning(here, name, config.worktree === undefined)
  refuseReadOnly(here.git)
  const runId = randomUUID()
  return openRun(here, name, { purpose: 'loop', runId, isHosted: request.isHosted }, async (held) => {
    if (wish === 'resume' && (await isFinishedAway(here, held.run)))
      return alreadyDone(here, held, config, '')
    return runHeld(here, held, { ...request, wish, runId, ...(feedback !== undefined && { feedback }) })
  })
}

async function runHeld(
  here: Site,
  held: OpenRun,
  request: LoopRequest & {
    readonly wish: 'loop' | 'resume'
    readonly runId: string
    readonly feedback?: string
  },
): Promise<LoopEnd> {
  const { wish, runId, feedback } = request
  // Of a loop that had ended by itself.
  rmSync(held.run.paths.stop, { force: true })
  const asked = request.settings.config
  const name = held.run.change
  const { folder } = wish === 'resume' ? await resumedFolder(here, held.run) : await changeFolder(here, name)
  const common = here.git.gitCommonDir
  const refuse = async ({ files }: LoadedConfig): Promise<void> => {
    if (wish === 'loop' && !request.acceptsConfig) await refuseUnagreed(common, files)
  }
  // Before anything is put in order: a loop that is refused has touched nothing.
  await refuse(request.settings)
  const early = wish === 'resume' ? await keptWish(held.run, request, common) : asked
  const earlier = early === undefined ? undefined : await cagingOf(early, here.env, here.git)
  if (asked.worktree === undefined) await refuseLeftover(here, name)
  if (wish === 'loop') {
    await modeOf(held.run, wish, asked, here, feedback)
    await confirmUnplanned(here, name, folder, request)
  }
  const named: string[] = []
  const undone: string[] = []
  const stood = headText(here.git.gitDir)
  const recovered = await repairRun(held, (message, code) => {
    here.warn(message)
    if (asked.json) named.push(message)
    if (lastingWarnings.has(code)) undone.push(message)
  })
  // The agent of a dead loop may have written the file that was read; the repair has put it back, or knows whose it is.
  const loaded = recovered === '' ? request.settings : await request.settings.again()
  if (recovered !== '') await refuse(loaded)
  if (wish === 'loop' && recovered !== '') await backToPlace(here, name, stood)
  const { run } = held
  const mode = await modeOf(run, wish, asked, here, feedback)
  const { config, kept, warnings } =
    wish === 'resume'
      ? await resumedSettings(run, loaded, common, request.acceptsConfig)
      : startedSettings(loaded)
  if (mode === 'done already') return alreadyDone(here, held, config, recovered)
  const caging =
    earlier === undefined || recovered !== '' ? await cagingOf(config, here.env, here.git) : earlier
  const entered = await enterWorktree(here, run, config, folder, mode, caging, request.onSettingUp)
  const { site, home, brought } = entered
  const cages = caging(site.git, name)
  const limits = limitsOf(config)
  const isAttended = home.isTerminal || request.isAttended === true
  const reserve = diskReserve(reserveFile(site.git.gitDir))
  const stream = streamOf(here, held, { isNew: mode !== 'resume', spend: reserve.spend })
  const prepare = async (): Promise<Prepared> => {
    await held.enter(site)
    if (mode === 'resume') await checkOutRunBranch(site, run)
    const isPinned = mode === 'resume' && !request.acceptsConfig
    const change = await openChange(site, name, config, {
      ...(kept.tasks_pattern !== undefined && { pattern: kept.tasks_pattern }),
      ...(isPinned && run.state.phase !== 'idle' && { root: rootOf(site, run.state) }),
    })
    if (config.require_valid) await refuseInvalid(change)
    const settings = await loopSettings(config, site.env, {
      doneCriteria: change.doneCriteria,
      title: change.title,
      isTerminal: isAttended && !config.json,
      // A finished list spawns no agent, so none need be there.
      needsAgent: hasWork(change),
      ...(mode === 'resume' && { earlierAgents: run.state.settings?.agents }),
      change: change.name,
      stories: change.plan.stories.map(({ id }) => id),
    })
    refuseUnknownStories(change, settings.stories)
    const byHand =
      mode === 'resume' || run.state.phase === 'idle'
        ? []
        : tickedByHand(run.state, planRead(change.plan, { stories: [] }).stories)
    // With nothing to do, too: what is ticked counts once they pass.
    if (hasWork(change) || byHand.length > 0 || mode !== 'resume')
      await refuseMissingGates(allGates(settings), { cwd: site.git.worktree, env: site.env })
    if ((hasWork(change) || mode !== 'resume') && site !== home)
      await refuseUncommitted(home.git, {
        agent: config.agent_command,
        gates: allGates(settings),
        tree: site.git.worktree,
        brought: folder,
      })
    if (hasWork(change)) await refuseMissingAgent(config, settings, { cwd: site.git.worktree, env: site.env })
    const checkpoints = checkpointsFor(site, {
      change: change.name,
      strategy: settings.checkpoint,
      gates: allGates(settings),
      stream,
      ...(site !== home && { home: home.git, brought }),
    })
    return { change, settings, byHand, checkpoints, preflight: await checkpoints.preflight(mode) }
  }
  const { change, settings, byHand, checkpoints, preflight } = await prepare().catch(
    async (error: unknown) => {
      await entered.leave()
      throw error
    },
  )
  if (mode === 'fresh' && run.state.startedAt !== undefined && !hasWork(change)) {
    await entered.leave()
    await stream.close()
    const why = nothingAnew(change, run.state)
    return { exitCode: 0, note: recovered === '' ? why : `${recovered}; ${why}` }
  }
  held.beat()
  try {
    await reserve.fill()
    // An unread journal is no history; it is archived before the first line of the new one.
    if (run.damage !== undefined) {
      const ended = await endUnknown(run)
      if (ended.length > 0)
        site.warn(`the agent of the earlier run was still running and has been ended (${ended.join(', ')})`)
    }
    const archived = mode === 'resume' ? '' : await archiveRun(site, run)
    const anew =
      archived === ''
        ? await begunAgain(site, run, preflight)
        : mode === 'fresh'
          ? await begunAnew(site, run, archived, preflight)
          : []
    await keepSettings(run, { ...kept, tasks_pattern: change.tasksPattern })
    if (mode !== 'resume' || request.acceptsConfig) await agree(common, loaded.files)
    const usage = measureUsage({
      worktree: site.git.worktree,
      // The agent's own surroundings: they say where its session files are.
      env: { ...site.env, ...config.agent_env },
      clock: site.clock,
      loopStarted: stream.state.startedAt ?? site.clock.stamp(),
      source: config.usage,
    })
    const agents = createAgents({
      ...(request.room !== undefined && { room: request.room }),
      ...(config.agent_command !== undefined && { command: config.agent_command }),
      passThrough: config.agent_args,
      ...(config.agent?.[0] !== undefined && { flagsFor: config.agent[0] }),
      agentEnv: config.agent_env,
      noApiKey: config.no_api_key,
      env: site.env,
      graceMs: 3_000,
      gitDirs: [site.git.gitDir, site.git.gitCommonDir],
      ...(cages.agent !== undefined && { cage: cages.agent }),
      ...(limits !== undefined && { limits }),
    })
    const desktop = desktopFor({ ...site, isTerminal: isAttended }, name, config)
    const exitCode = await runSession({
      site,
      change: change.name,
      runId,
      worktree: site.git.worktree,
      ports: {
        spec: change.spec,
        checkpoints,
        agent: watchBudget(agents, usage, site.clock, settings),
        gates: shellGates({
          cwd: site.git.worktree,
          env: site.env,
          timeoutMs: settings.iteration_timeout_min * 60_000,
          absent: absentTargets(allGates(settings), site.git.worktree),
          hasOwnTemp: site !== home,
          ...(cages.gates !== undefined && { cage: cages.gates }),
          ...(limits !== undefined && { limits }),
        }),
        usage,
        logins: loginLedger({
          folder: loginsFolder(site.env),
          accountOf: (agent) => accountOf(agent, agentView(site.env, config)),
          loop: { id: loopIdOf(run.paths.journal), change: name, worktree: site.git.worktree },
          clock: site.clock,
          identity: site.identity,
        }),
        clock: site.clock,
        human: desktop.human(request.human),
        wrapUp: wrapUpOf(site, change, config, home, checkBeside(change, stream)),
        mode,
        transcript: (n) => join(run.paths.transcripts, `${n}.log`),
        gateLog: (n, byHand) => gateLogIn(run.paths.transcripts, n, byHand),
        explain: (error) => explained(site, home, run, error),
      },
      stream,
      started: {
        resumed: mode === 'resume',
        settings,
        root: change.root,
        tasks_file: change.tasksFile,
        original_branch: preflight.originalBranch,
        branch: preflight.branch,
        ...(preflight.uncommitted && { uncommitted: preflight.uncommitted }),
        ...(site !== home && { home: home.git.worktree, brought: [...brought] }),
        ...(entered.setUp !== undefined && { set_up: entered.setUp }),
        ...(feedback !== undefined && { feedback }),
        ...(mode !== 'resume' && !hasWork(change) && byHand.length === 0 && { nothing_to_do: true as const }),
        openspec: openspecWords(site.env),
        billing: billingOf(settings.agents, site.env, config),
        ...programName(config),
        ...firstUncaged(common, settings),
        ...(mode !== 'resume' && (await gateFound(site, settings))),
        ...(mode === 'resume' && { spent: spentBy(stream.state, run.recall('gate.ended')) }),
        ...(undone.length > 0 && { undone }),
        ...(byHand.length > 0 && { by_hand: [...byHand] }),
        ...((await isParkedHere(home, change.name)) && { parked: true as const }),
      },
      earlier: anew.slice(0, 1),
      repaired: named,
      warnings: [
        recovered,
        ...anew.slice(1),
        ...entered.notes,
        ...warnings,
        ...(hasWork(change) ? openTargets(allGates(settings), site.git.worktree) : []),
        ...blindGates(allGates(settings)),
        ...change.warnings,
        ...(hasWork(change) ? unmeasured(settings, site.env) : []),
        ...strangeStories(
          config.stories,
          change.name,
          change.plan.stories.map(({ id }) => id),
        ),
        ...preflight.warnings,
        mode === 'resume' ? '' : unarchived(change, config, site.env),
        ...(config.agent ?? [])
          .filter((agent) => !settings.agents.includes(agent))
          .map((agent) => `${agent} is not on PATH: the chain continues without it`),
        ...settings.agents.map((agent) => doubleLogin(agent, site.env, config)),
      ],
      tell: request.tell,
      onRunning: request.onRunning,
      reserve,
      atEnd: notifications(config, site, desktop),
    })
    await entered.settled()
    return { exitCode }
  } finally {
    change.check?.stop()
    await reserve.close()
    await stream.close()
  }
}

/** As its start was, unless the flags of now name another. Undefined where that is not known: it is refused later, with its reason. */
async function keptWish(
  run: OpenRun['run'],
  request: LoopRequest,
  common: string,
): Promise<Config | undefined> {
  return await resumedSettings(run, request.settings, common, request.acceptsConfig).then(
    ({ config }) => config,
    () => undefined,
  )
}

/** "Already done: exit 0, `--on-complete` applies." */
async function alreadyDone(site: Site, held: OpenRun, config: Config, recovered: string): Promise<LoopEnd> {
  const { change, state } = held.run
  // Also where nothing is left to do: a loop that was killed after its last word has left its locks.
  await enterTree(held)
  const wish = config.on_complete
  const landed = await landedHere(site, held.run)
  const said =
    landed !== undefined
      ? `it ${landedWords(landed)}`
      : (wish === 'cleanup' || wish === 'keep') && state.choice !== 'cleanup'
        ? (await finishHeld(site, held, wish)).message
        : ''
  // Where the work is now nothing of ralph's runs.
  const unasked = state.status === 'done' || state.settings === undefined ? [] : allGates(state.settings)
  const asks =
    unasked.length === 0
      ? ''
      : `no gate has judged what you ticked since, so run them: ${unasked.join(' && ')}`
  const more = [recovered, said, asks].filter((part) => part !== '').join('; ')
  const next = `Is there more to do? Add open boxes (- [ ]) to its plan, then: ralph loop ${change}`
  const isOver = state.choice === 'cleanup' && state.settings?.done_criteria === 'tasks'
  return {
    exitCode: 0,
    note: `${change} is done already${more === '' ? `.${isOver ? ` ${next}` : ''}` : `; ${more}`}`,
  }
}
