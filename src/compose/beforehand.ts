// What a user should know before a loop spends anything: who pays, which gates there could be, what a manual loop does.
import { basename } from 'node:path'
import { loginOf } from '../adapters/agents/installed.ts'
import { verificationCommands } from '../adapters/openspec/verification.ts'
import { onPath } from '../adapters/process/on-path.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { Settings } from '../core/event.ts'
import { totalCostUsd, totalTokens } from '../core/state.ts'
import type { LoopState } from '../core/state.ts'
import { storyStatus } from '../core/story.ts'
import type { LoopRequest } from '../ui/app.ts'
import { isUnplanned } from './plan.ts'
import type { OpenedChange } from './plan.ts'
import type { Site } from './site.ts'

export function hasWork({ doneCriteria, plan }: Pick<OpenedChange, 'doneCriteria' | 'plan'>): boolean {
  return doneCriteria === 'manual' || plan.stories.some((story) => storyStatus(story) === 'open')
}

/** Nothing to do is no reason to put an earlier run away. What was ticked since it ended is its user's word alone until the gates have judged it. */
export function nothingAnew(
  { name, tasksFile, plan }: Pick<OpenedChange, 'name' | 'tasksFile' | 'plan'>,
  { status }: LoopState,
): string {
  const what =
    plan.tasksDone === plan.tasksTotal
      ? `Every box in ${tasksFile} is ticked; open those to be done again: - [ ].`
      : `No story of ${name} is open, so there is nothing to start over.`
  const why = `${what} The earlier run stays as it is.`
  if (status === 'done') return `${why} See: ralph status ${name}`
  throw new RalphError('unfinished_run', why, {
    hint: `It is not done. Continue it: ralph resume ${name}`,
  })
}

/** As the agent will see it: with its own variables, and without the keys that are hidden from it. */
export function agentView(
  env: NodeJS.ProcessEnv,
  config: Pick<Config, 'agent_env' | 'no_api_key'>,
): NodeJS.ProcessEnv {
  const known = { ...env, ...config.agent_env }
  if (!config.no_api_key) return known
  return Object.fromEntries(Object.entries(known).filter(([key]) => !/_(?:API_KEY|AUTH_TOKEN)$/.test(key)))
}

/** For the banner; any program of the user's own is the user's own business. */
export function billingOf(
  agents: readonly string[],
  env: NodeJS.ProcessEnv,
  config: Pick<Config, 'agent_env' | 'no_api_key'>,
): Record<string, string> {
  const named = agents.filter((agent) => agent !== 'command' && agent !== 'acp')
  const seen = agentView(env, config)
  return Object.fromEntries(
    named.map((agent) => {
      const { is, how } = loginOf(agent, seen)
      return [agent, is === 'found' ? how : is === 'none' ? 'no login found' : 'unknown']
    }),
  )
}

/** Of a program of the user's own, as far as its command line tells. */
export function programName({ agent_command: command }: Pick<Config, 'agent_command'>): {
  agent_program?: string
} {
  const [word] = /^[\w@%+:,./-]+/.exec(command?.trim() ?? '') ?? []
  const name = word === undefined || word.endsWith('/') ? undefined : basename(word)
  // Of a line for the shell its first word says little.
  return name === undefined ||
    /^(?:cat|echo|cd|export|set|if|for|while|until|test|sh|bash|env|exec)$/.test(name)
    ? {}
    : { agent_program: name }
}

/** R12: a key in the environment bills a user who has a subscription as well. A key alone is a set-up like any other. */
export function doubleLogin(agent: string, env: NodeJS.ProcessEnv, config: Config): string {
  if (config.no_api_key) return ''
  const { how } = loginOf(agent, agentView(env, config))
  if (!how.startsWith('API key')) return ''
  const without = loginOf(agent, agentView(env, { ...config, no_api_key: true }))
  return without.is === 'found'
    ? `${agent} will be billed by ${how}, although there is a ${without.how}; --no-api-key uses that instead`
    : ''
}

/** The project's own command that would make the best gate; empty where none is found. */
export async function gateToOffer(worktree: string): Promise<string> {
  const found = await verificationCommands(worktree)
  return found.find((command) => /\btest\b|^pytest/.test(command)) ?? found[0] ?? ''
}

/** As a user can type it. */
export function openspecWords(env: NodeJS.ProcessEnv): string {
  return onPath('openspec', env) === undefined ? 'npx @fission-ai/openspec' : 'openspec'
}

/** A loop without a plan is one that few expect: what is asked, how often, how to end it. */
export function manualWords(
  change: string,
  { task, max_iterations: most = 10 }: Pick<Settings, 'task' | 'max_iterations'>,
): string {
  const times = most === 1 ? 'once' : `up to ${most} times`
  return `${change} has no tasks.md, so the agent is asked ${times} to do "${task}", until you say that it is done. Stop it with Ctrl-C or ralph stop ${change}.`
}

/** Before this loop of it. */
export function spentBy(
  state: LoopState,
  gates: readonly { readonly duration_ms: number }[],
): { tokens: number; cost_usd?: number; duration_ms: number } {
  const cost = totalCostUsd(state)
  return {
    tokens: totalTokens(state),
    ...(cost !== undefined && { cost_usd: cost }),
    // An iteration's own time is the agent's.
    duration_ms: [...state.iterations, ...gates].reduce((sum, { duration_ms: ms }) => sum + ms, 0),
  }
}

/** The demo's word is all that it has. */
export async function gateFound(
  site: Site,
  { gates, agents }: Pick<Settings, 'gates' | 'agents'>,
): Promise<{ gate_found?: string }> {
  if (gates.length > 0 || agents.every((agent) => agent === 'demo')) return {}
  return { gate_found: await gateToOffer(site.git.worktree) }
}

/** B4: whoever has just made a change and types `ralph loop` expects no agent that is asked ten times for its title. */
export async function confirmUnplanned(
  here: Site,
  name: string,
  folder: string,
  request: LoopRequest,
): Promise<void> {
  const { config } = request.settings
  // Who says "manual", or says what to do, knows what comes.
  if (config.done !== undefined || config.task !== undefined) return
  const unplanned = await isUnplanned(here, name, folder)
  if (unplanned === undefined) return
  const wish = { task: unplanned.title, max_iterations: config.max_iterations }
  if (await request.confirm(manualWords(name, wish))) return
  throw new RalphError('no_tasks', 'Not started.', {
    hint: `Nothing was touched. Write ${unplanned.tasksFile} first (see ralph help loop), or start it with --done manual.`,
  })
}
