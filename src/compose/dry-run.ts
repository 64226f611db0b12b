// `--dry-run`: the preflight, the plan and the prompts; spawns and changes nothing.
import { initialState } from '../core/state.ts'
import { planRead } from '../engine/record.ts'
import type { DryRun, Observe } from '../ui/app.ts'
import { checkpointsFor } from './checkpoints.ts'
import { refuseUnagreed } from './config-trust.ts'
import { damagedRun } from './damage.ts'
import { checked, openChange, refuseInvalid } from './plan.ts'
import { loopSettings } from './settings.ts'
import { knownRun } from './site.ts'
import type { Site } from './site.ts'

export async function dryRun(
  site: Site,
  { change: name, settings: loaded, acceptsConfig }: Parameters<Observe['plan']>[0],
): Promise<DryRun> {
  const { config, files } = loaded
  if (!acceptsConfig) await refuseUnagreed(site.git.gitCommonDir, files)
  const change = await openChange(site, name, config)
  if (config.require_valid) await refuseInvalid(change)
  const settings = await loopSettings(config, site.env, {
    doneCriteria: change.doneCriteria,
    title: change.title,
    isTerminal: false,
    needsAgent: false,
  })
  const run = await knownRun(site, change.name)
  if (run.damage !== '' && !config.fresh) throw await damagedRun(site, run)
  const checkpoints = checkpointsFor(site, {
    change: change.name,
    strategy: settings.checkpoint,
    gates: settings.gates,
    stream: {
      state: initialState(change.name),
      tell: () => Promise.reject(new TypeError('a dry run writes nothing')),
    },
  })
  const preflight = await checkpoints.preflight(config.fresh ? 'fresh' : 'start')
  const { stories: summaries } = planRead(change.plan, { settings, stories: [] })
  const wanted = summaries.filter(
    (story) => settings.stories.length === 0 || settings.stories.includes(story.id),
  )
  const open = wanted.filter((story) => story.status === 'open')
  const attempts = settings.max_retries + 1
  const stories = []
  for (const story of open) {
    stories.push({ ...story, prompt: await change.spec.prompt({ storyId: story.id, attempt: 1, attempts }) })
  }
  return {
    change_id: change.name,
    branch: preflight.branch,
    original_branch: preflight.originalBranch,
    worktree: site.git.worktree,
    agents: settings.agents,
    gates: settings.gates,
    max_retries: settings.max_retries,
    max_iterations:
      settings.max_iterations ?? (settings.done_criteria === 'manual' ? 10 : open.length * attempts),
    warnings: [...change.warnings, ...(await checked(change)), ...preflight.warnings],
    stories,
  }
}
