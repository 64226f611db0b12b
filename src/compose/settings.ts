// From what the user set to what the loop needs: defaults that depend on others are worked out here.
import { installedAgents } from '../adapters/agents/installed.ts'
import { onPath } from '../adapters/process/on-path.ts'
import { canPrice } from '../adapters/usage/prices.ts'
import type { StoryWishes } from '../config/option.ts'
import type { Config } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { Settings } from '../core/event.ts'
import type { UpRequest } from '../ui/app.ts'

export interface Resolved {
  readonly doneCriteria: 'tasks' | 'manual'
  readonly title: string
  readonly isTerminal: boolean
  readonly needsAgent: boolean
  /** Of the run that is resumed. */
  readonly earlierAgents?: readonly string[] | undefined
  readonly change: string
  /** Ids of its stories. */
  readonly stories: readonly string[]
}

export async function loopSettings(
  config: Config,
  env: NodeJS.ProcessEnv,
  resolved: Resolved,
): Promise<Settings> {
  const agents = resolved.needsAgent
    ? chooseAgents(config, env)
    : [...(config.agent ?? resolved.earlierAgents ?? ['command'])]
  // A model is named for the first of the chain; the next would not know it.
  const isFirst = config.agent === undefined || config.agent[0] === agents[0]
  const model = isFirst ? config.model : undefined
  const own = storySettings(config.stories, resolved, isFirst)
  for (const each of [model, ...Object.values(own ?? {}).flatMap((story) => story.model ?? [])])
    await refuseUnpriced(config, agents, each)
  return {
    max_retries: config.max_retries,
    ...(config.max_iterations !== undefined && { max_iterations: config.max_iterations }),
    stall_threshold: config.stall_threshold ?? config.max_retries + 2,
    done_criteria: resolved.doneCriteria,
    task: config.task ?? resolved.title,
    iteration_timeout_min: config.iteration_timeout,
    idle_timeout_min: config.idle_timeout,
    limit_wait_min: config.limit_wait,
    gates: [...config.verify],
    ...(own !== undefined && { story_settings: own }),
    stories: [...config.story],
    agents,
    ...(model !== undefined && { model }),
    checkpoint: config.checkpoint,
    on_complete: config.on_complete ?? (resolved.isTerminal ? 'ask' : 'keep'),
    ...(config.max_tokens !== undefined && { max_tokens: config.max_tokens }),
    ...(config.max_cost !== undefined && { max_cost_usd: config.max_cost }),
    claims: config.claims,
    ...(config.sandbox !== 'off' && { sandbox: config.sandbox }),
  }
}

/** What the file says of `2` holds for that story of every change, what it says of `add-login/2` for that one alone, and wins. */
function storySettings(
  wishes: StoryWishes,
  { change, stories }: Pick<Resolved, 'change' | 'stories'>,
  isFirst: boolean,
): Settings['story_settings'] {
  const unknown = Object.keys(wishes).find(
    (key) => key.startsWith(`${change}/`) && !stories.includes(key.slice(change.length + 1)),
  )
  if (unknown !== undefined) {
    throw new RalphError('config', `The settings name the story ${unknown}, and there is no such story.`, {
      hint: `Nothing was touched. The stories of ${change}: ${stories.join(', ')}. Change it below \`stories:\` in ralph.yaml.`,
    })
  }
  const found = stories.flatMap((id) => {
    const [all, one] = [wishes[id], wishes[`${change}/${id}`]]
    if (all === undefined && one === undefined) return []
    const model = isFirst ? (one?.model ?? all?.model) : undefined
    const gates = [...(one?.verify ?? all?.verify ?? [])]
    return [[id, { gates, ...(model !== undefined && { model }) }] as const]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

/** What a program of the user's uses is known where it runs one of the known agents, or by wt-usage: else a limit in tokens holds up nothing. */
export function unmeasured(
  { agents, max_tokens: most }: Settings,
  env: NodeJS.ProcessEnv,
): readonly string[] {
  if (most === undefined || !agents.includes('command') || onPath('wt-usage', env) !== undefined) return []
  return [
    '--max-tokens may hold up nothing: ralph knows the tokens of your own program only where it runs claude, codex, gemini or opencode. --max-iterations N always holds',
  ]
}

/** A gate for a story that is not there holds nothing up: perhaps it was meant for another id. */
export function strangeStories(
  wishes: StoryWishes,
  change: string,
  stories: readonly string[],
): readonly string[] {
  const strange = Object.keys(wishes).filter((key) => !key.includes('/') && !stories.includes(key))
  return strange.length === 0
    ? []
    : [
        `the settings for story ${strange.join(', ')} are not used: the stories of ${change} are ${stories.join(', ') || 'none'}`,
      ]
}

/** Of the named ones those that can run, in their order; else the first that is installed. */
export function chooseAgents(
  config: Pick<Config, 'agent' | 'agent_command'>,
  env: NodeJS.ProcessEnv,
): string[] {
  const named = config.agent
  if (config.agent_command !== undefined && named === undefined) return ['command']
  const installed: readonly string[] = installedAgents(env)
  if (named === undefined) {
    const first = installed[0]
    if (first !== undefined) return [first]
    throw new RalphError(
      'agent_missing',
      'None of the coding agents claude, codex, opencode and gemini is on PATH.',
      {
        hint: 'Install one, or name any program: --agent-command "my-agent". To see the loop at work without one: --agent demo.',
      },
    )
  }
  const needsCommand = named.find((agent) => agent === 'command' || agent === 'acp')
  if (needsCommand !== undefined && config.agent_command === undefined) {
    throw new RalphError('usage', `--agent ${needsCommand} needs --agent-command CMD: the program to run.`, {
      hint: `For example: --agent ${needsCommand} --agent-command "gemini --acp"`,
    })
  }
  const there = new Set<string>(['command', 'acp', 'demo', ...installed])
  const runnable = named.filter((agent) => there.has(agent))
  if (runnable.length === 0) {
    throw new RalphError('agent_missing', `${named.join(', ')}: not on PATH.`, {
      hint: 'Install it, or name another one; ralph doctor lists what is there.',
    })
  }
  return runnable
}

/** For many changes at once, before any of them begins: each of their loops would refuse it. */
export async function refuseUnmeasured(config: UpRequest['agents'], env: NodeJS.ProcessEnv): Promise<void> {
  if (config.max_cost === undefined) return
  const models = Object.values(config.stories).flatMap(({ model }) => model ?? [])
  const agents = chooseAgents(config, env)
  for (const model of [config.model, ...models]) await refuseUnpriced(config, agents, model)
}

/** A cost limit that nobody can measure would be no limit at all. */
async function refuseUnpriced(
  config: Pick<Config, 'max_cost'>,
  agents: readonly string[],
  chosen: string | undefined,
): Promise<void> {
  if (config.max_cost === undefined) return
  for (const agent of agents) {
    const model = agent === agents[0] ? chosen : undefined
    if (agent === 'claude' || (await canPrice(model, agent))) continue
    throw new RalphError(
      'budget',
      `--max-cost cannot be kept with ${agent}: its model ${model ?? '(its default)'} has no known price.`,
      { hint: 'Use --max-tokens instead, or name a model with a known price by --model.' },
    )
  }
}
