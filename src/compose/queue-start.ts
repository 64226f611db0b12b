// What a loop would be refused for, asked once for all of a queue before anything is queued: each of them would be parked for it.
import { changeDirOf } from '../adapters/openspec/changes.ts'
import { isOver } from '../core/queue.ts'
import type { QueueState } from '../core/queue.ts'
import { RalphError } from '../core/error.ts'
import type { UpPlan, UpWish } from '../ui/app.ts'
import { refuseMissingAgent } from './agent-program.ts'
import { billingOf, programName } from './beforehand.ts'
import { refuseMissingGates } from './gate-programs.ts'
import { loopFacts } from './queue-facts.ts'
import { findRootOf } from './root.ts'
import { chooseAgents, refuseUnmeasured } from './settings.ts'
import type { Site } from './site.ts'
import { refuseUncommitted } from './uncommitted.ts'

/** With the exit codes of a loop. A run that goes on has settings of its own, which have passed this. */
export async function refuseStart(site: Site, request: UpWish, then: QueueState): Promise<void> {
  const { agents: config, gates } = request
  const place = { cwd: site.git.worktree, env: site.env }
  const open = then.entries.filter((entry) => !isOver(entry)).map(({ change }) => change)
  if (open.length > 0) await refuseMissingGates(gates, place)
  const begins = await beginning(site, open)
  if (begins.length === 0) return
  const agents = chooseAgents(config, site.env)
  const all = [...gates, ...Object.values(config.stories).flatMap(({ verify }) => verify ?? [])]
  await refuseMissingGates(all, place)
  await refuseMissingAgent(config, { agents }, place)
  await refuseUnmeasured(config, site.env)
  const root = await findRootOf(site)
  for (const change of begins)
    await refuseUncommitted(site.git, {
      agent: config.agent_command,
      gates: all,
      brought: changeDirOf(root, change),
    })
}

async function beginning(site: Site, changes: readonly string[]): Promise<readonly string[]> {
  const facts = await Promise.all(changes.map((change) => loopFacts(site, change)))
  return changes.filter((_, at) => facts[at]?.loop === 'none')
}

/** For a dry run: who would work, and whether it may start. */
export async function startWords(
  site: Site,
  request: UpWish,
  then: QueueState,
): Promise<Pick<UpPlan, 'agents' | 'agent_program' | 'billing' | 'limits' | 'refused'>> {
  const { agents: config } = request
  const said = (error: unknown): RalphError => {
    if (error instanceof RalphError) return error
    throw error
  }
  const refused = await refuseStart(site, request, then).then(() => undefined, said)
  let agents: readonly string[] = []
  try {
    agents = chooseAgents(config, site.env)
  } catch (error) {
    said(error)
  }
  return {
    agents,
    ...programName(config),
    billing: billingOf(agents, site.env, config),
    limits: {
      max_retries: config.max_retries,
      ...(config.max_iterations !== undefined && { max_iterations: config.max_iterations }),
      ...(config.max_tokens !== undefined && { max_tokens: config.max_tokens }),
      ...(request.maxCostUsd !== undefined && { max_cost_usd: request.maxCostUsd }),
    },
    ...(refused !== undefined && {
      refused: { message: refused.message, hint: refused.hint, exit_code: refused.exitCode },
    }),
  }
}
