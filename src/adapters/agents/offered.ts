// Which arguments an agent gets, and whether it can be offered ralph's own tools with them. Apart from what runs agents: a prompt is shown without that.
import { agentKind } from './table.ts'

interface Given {
  /** What stands after `--`. */
  readonly passThrough: readonly string[]
  /** Whom these are meant for: the first of a chain; all, if absent. */
  readonly flagsFor?: string
}

export function argumentsFor(agent: string, { flagsFor, passThrough }: Given): readonly string[] {
  return flagsFor === undefined || flagsFor === agent ? passThrough : []
}

export function offered(agent: string, given: Given): 'by file' | 'by word' | 'not' {
  return agentKind(agent)?.takesClaims?.(argumentsFor(agent, given)) ?? 'not'
}
