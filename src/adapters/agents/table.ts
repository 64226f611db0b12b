// Every agent that ralph can run, by its name.
import { acp } from './acp.ts'
import { claude } from './claude.ts'
import { codex } from './codex.ts'
import { command } from './command.ts'
import { demo } from './demo.ts'
import { gemini } from './gemini.ts'
import type { AgentKind } from './kind.ts'
import { opencode } from './opencode.ts'

export const agentKinds = { claude, codex, opencode, gemini, command, acp, demo } satisfies Record<
  string,
  AgentKind
>
export type AgentName = keyof typeof agentKinds

export function agentKind(name: string): AgentKind | undefined {
  return Object.entries(agentKinds).find(([known]) => known === name)?.[1]
}
