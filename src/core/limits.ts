// Agents that cannot be asked now: until when, who takes over, and whom to wait for.
import type { AgentEnding, Settings } from './event.ts'
import type { StartedState } from './state.ts'

/** The preferred agent that is not known to be at its limit or unable to run. */
export function pickAgent(state: StartedState): string | undefined {
  return state.settings.agents.find((agent) => untilOf(state, agent) <= state.nowMs)
}

/** Of all that can run at some time, the one that can first; none when the whole chain is out. */
export function firstBack(state: StartedState): { agent: string; untilMs: number } | undefined {
  const agents = state.settings.agents.map((agent) => ({ agent, untilMs: untilOf(state, agent) }))
  return agents
    .filter(({ untilMs }) => untilMs !== Number.POSITIVE_INFINITY)
    .toSorted((a, b) => a.untilMs - b.untilMs)[0]
}

export function untilOf(state: StartedState, agent: string): number {
  return state.limitedUntilMs[agent] ?? 0
}

/**
 * When a limited agent is asked again. The provider's word counts, but not a time that is past, that no limit takes, or that
 * has been waited for in vain: a clock may be wrong, and asking again at once would go on for ever.
 */
export function askAgainMs(
  state: StartedState,
  agent: string,
  ending: AgentEnding,
  resetsAtMs: number | undefined,
): number {
  const { nowMs, waits } = state
  if (resetsAtMs === undefined || !isPlausible(resetsAtMs, nowMs)) return nowMs + backoffMs(ending, waits)
  const isAgain = waits > 0 && state.limitedUntilMs[agent] !== undefined
  return isAgain ? Math.max(resetsAtMs, nowMs + backoffMs(ending, waits - 1)) : resetsAtMs
}

/** Also false for what is no number. */
function isPlausible(resetsAtMs: number, nowMs: number): boolean {
  return resetsAtMs > nowMs && resetsAtMs <= nowMs + longestLimitMs
}

/** The longest window that a provider counts in is a month. */
export const longestLimitMs = 32 * 86_400_000

/** When to ask again if the provider did not say: doubling from 5 s (a limit: 60 s), at most 5 (15) minutes. */
function backoffMs(ending: AgentEnding, waits: number): number {
  const [first, most] = ending === 'limit' ? [60_000, 900_000] : [5_000, 300_000]
  return Math.min(most, first * 2 ** Math.min(waits, 16))
}

/** `--model` is meant for the first agent of a chain; the others do not know its names. A story may have its own. */
export function modelOf(
  settings: Pick<Settings, 'agents' | 'model' | 'story_settings'> | undefined,
  agent: string,
  storyId?: string,
): string | undefined {
  if (settings?.agents[0] !== agent) return undefined
  const own = storyId === undefined ? undefined : settings.story_settings?.[storyId]
  return own?.model ?? settings.model
}

/** What has to pass before this story counts: the gates of all, then its own. */
export function gatesOf(
  { gates, story_settings: stories }: Pick<Settings, 'gates' | 'story_settings'>,
  storyId: string,
): readonly string[] {
  return [...new Set([...gates, ...(stories?.[storyId]?.gates ?? [])])]
}

/** Of whatever story. */
export function allGates({
  gates,
  story_settings: stories = {},
}: Pick<Settings, 'gates' | 'story_settings'>): readonly string[] {
  return [...new Set([...gates, ...Object.values(stories).flatMap((each) => each.gates)])]
}
