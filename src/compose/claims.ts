// Whether the next agent gets ralph's own tools: a prompt that is only shown has to say the same as the one that is sent.
import { installedAgents } from '../adapters/agents/installed.ts'
import { offered } from '../adapters/agents/offered.ts'
import type { Config } from '../config/options.ts'

type Wishes = Pick<Config, 'agent' | 'agent_args' | 'agent_command' | 'claims'>

export function offersClaims(
  agent: string | undefined,
  { agent: named, agent_args, claims }: Wishes,
): boolean {
  const flagsFor = named?.[0]
  return (
    claims > 0 &&
    agent !== undefined &&
    offered(agent, { passThrough: agent_args, ...(flagsFor !== undefined && { flagsFor }) }) !== 'not'
  )
}

/** The first that would be asked. */
export function firstAgent(
  { agent, agent_command: command }: Wishes,
  env: NodeJS.ProcessEnv,
): string | undefined {
  return agent?.[0] ?? (command === undefined ? installedAgents(env)[0] : 'command')
}
