// `--dry-run`: the preflight, the plan and the prompts; spawns and changes nothing.
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { refuseReadOnly } from '../adapters/git/start/preflight.ts'
import { RalphError } from '../core/error.ts'
import type { Settings } from '../core/event.ts'
import { allGates } from '../core/limits.ts'
import { initialState } from '../core/state.ts'
import { planRead } from '../engine/record.ts'
import type { DryRun, Observe } from '../ui/app.ts'
import { refuseMissingAgent } from './agent-program.ts'
import { billingOf, gateToOffer, hasWork, manualWords, nothingAnew, programName } from './beforehand.ts'
import { checkpointsFor } from './checkpoints.ts'
import { offersClaims } from './claims.ts'
import { refuseUnagreed } from './config-trust.ts'
import { damagedRun } from './damage.ts'
import { blindGates } from '../core/blind-gate.ts'
import { openTargets, refuseMissingGates } from './gate-programs.ts'
import { modeOf, refuseLeftover } from './mode.ts'
import { refuseRunning } from './open-run.ts'
import { checked, openChange, refuseInvalid, refuseUnknownName, refuseUnknownStories } from './plan.ts'
import { loopSettings, strangeStories, unmeasured } from './settings.ts'
import { refuseUncommitted } from './uncommitted.ts'
import { knownRun } from './site.ts'
import type { Site } from './site.ts'

export async function dryRun(
  site: Site,
  { change: name, settings: loaded, acceptsConfig }: Parameters<Observe['plan']>[0],
): Promise<DryRun> {
  const { config, files } = loaded
  if (!acceptsConfig) await refuseUnagreed(site.git.gitCommonDir, files)
  const change = await openChange(site, name, config)
  if (change.doneCriteria === 'manual' && config.done === undefined && config.task === undefined)
    refuseUnknownName(change.name, changeDirOf(change.root, change.name))
  if (config.require_valid) await refuseInvalid(change)
  const run = await knownRun(site, change.name)
  if (run.damage !== undefined && !config.fresh) throw await damagedRun(site, run)
  /** What a start would be refused for, though its plan can be told. The first one is what it would say. */
  const refusals: RalphError[] = []
  const note = (error: unknown): void => {
    if (!(error instanceof RalphError)) throw error
    refusals.push(error)
  }
  let judges = false
  const hasOwnTree = config.worktree !== undefined
  try {
    refuseRunning(site, change.name, !hasOwnTree)
    refuseReadOnly(site.git)
    if (!hasOwnTree) await refuseLeftover(site, change.name)
    const mode = await modeOf(run, 'loop', config, site, undefined)
    const isAnew = mode === 'fresh' && run.state.startedAt !== undefined
    if (isAnew && !hasWork(change)) nothingAnew(change, run.state)
    else judges = mode !== 'done already'
  } catch (error) {
    note(error)
  }
  const ids = change.plan.stories.map(({ id }) => id)
  const settle = (needsAgent: boolean): Promise<Settings> =>
    loopSettings(config, site.env, {
      doneCriteria: change.doneCriteria,
      title: change.title,
      isTerminal: site.isTerminal && !config.json,
      needsAgent,
      change: change.name,
      stories: ids,
    })
  let agents: readonly string[] | undefined
  const settings = await settle(hasWork(change)).catch((error: unknown) => {
    if (!(error instanceof RalphError) || error.code !== 'agent_missing') throw error
    note(error)
    agents = []
    return settle(false)
  })
  refuseUnknownStories(change, settings.stories)
  if (hasWork(change))
    await refuseMissingGates(allGates(settings), { cwd: site.git.worktree, env: site.env }).catch(note)
  if (hasWork(change) && hasOwnTree)
    await refuseUncommitted(site.git, {
      agent: config.agent_command,
      gates: allGates(settings),
      brought: changeDirOf(change.root, change.name),
    }).catch(note)
  if (hasWork(change))
    await refuseMissingAgent(config, settings, { cwd: site.git.worktree, env: site.env }).catch(note)
  const checkpoints = checkpointsFor(site, {
    change: change.name,
    strategy: settings.checkpoint,
    gates: allGates(settings),
    stream: {
      state: initialState(change.name),
      tell: () => Promise.reject(new TypeError('a dry run writes nothing')),
    },
  })
  // Where an earlier run is in the way: as it would be without that one.
  const preflight = await checkpoints
    .preflight(config.fresh || refusals.length > 0 ? 'fresh' : 'start')
    .catch((error: unknown) => Promise.reject(refusals[0] ?? error))
  const { stories: summaries } = planRead(change.plan, { settings, stories: [] })
  const wanted = summaries.filter(
    (story) => settings.stories.length === 0 || settings.stories.includes(story.id),
  )
  const open = wanted.filter((story) => story.status === 'open')
  const attempts = settings.max_retries + 1
  const stories = []
  for (const story of open) {
    const own = settings.story_settings?.[story.id]
    stories.push({
      ...story,
      ...(own !== undefined && { own_gates: own.gates }),
      ...(own?.model !== undefined && { model: own.model }),
      prompt: await change.spec.prompt({
        storyId: story.id,
        attempt: 1,
        attempts,
        offersClaims: offersClaims(settings.agents[0], config),
      }),
    })
  }
  const [refused] = refusals
  const unplanned =
    change.doneCriteria === 'manual' && config.done === undefined ? [manualWords(change.name, settings)] : []
  return {
    change_id: change.name,
    branch: preflight.branch,
    original_branch: preflight.originalBranch,
    worktree: site.git.worktree,
    own_worktree: hasOwnTree,
    done_criteria: change.doneCriteria,
    agents: agents ?? settings.agents,
    ...programName(config),
    billing: billingOf(agents ?? settings.agents, site.env, config),
    gates: settings.gates,
    gate_offered: settings.gates.length > 0 ? '' : await gateToOffer(site.git.worktree),
    on_complete: settings.on_complete,
    stories_total: summaries.length,
    ...(judges &&
      settings.gates.length > 0 &&
      wanted.every(({ status }) => status === 'done') && { gates_only: true as const }),
    ...(refused !== undefined && {
      refused: { message: refused.message, hint: refused.hint, exit_code: refused.exitCode },
    }),
    max_retries: settings.max_retries,
    max_iterations:
      settings.max_iterations ?? (settings.done_criteria === 'manual' ? 10 : open.length * attempts),
    warnings: [
      ...change.warnings,
      ...unmeasured(settings, site.env),
      ...strangeStories(config.stories, change.name, ids),
      ...unplanned,
      ...(hasWork(change) ? openTargets(allGates(settings), site.git.worktree) : []),
      ...blindGates(allGates(settings)),
      ...(await checked(change)),
      ...preflight.warnings,
    ],
    stories,
  }
}
