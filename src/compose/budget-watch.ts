// An agent that is looked at while it works: most report only at their end, when it is too late to keep a budget.
import type { MeasuringUsage } from '../adapters/usage/measure.ts'
import type { Settings } from '../core/event.ts'
import { tokensUsed } from '../core/usage.ts'
import type { Agent, AgentSignal, Clock } from '../ports.ts'

const lookEveryMs = 5000

/** Tells what its session files say so far, every few seconds; without a budget nobody would listen. */
export function watchBudget(
  agent: Agent,
  usage: Pick<MeasuringUsage, 'soFar'>,
  clock: Clock,
  settings: Pick<Settings, 'max_tokens' | 'max_cost_usd'>,
): Agent {
  if (settings.max_tokens === undefined && settings.max_cost_usd === undefined) return agent
  return {
    ...agent,
    async work(task, stop, tell) {
      const over = new AbortController()
      let sessionId: string | undefined
      const hear = (signal: AgentSignal): void => {
        if (signal.type === 'session') sessionId = signal.sessionId
        tell(signal)
      }
      const look = async (): Promise<void> => {
        let told = 0
        while (!over.signal.aborted) {
          await clock.until(clock.now() + lookEveryMs, over.signal)
          const figures = await usage.soFar(task.agent, sessionId, task.model)
          if (figures === undefined || tokensUsed(figures) === told || over.signal.aborted) continue
          told = tokensUsed(figures)
          tell({ type: 'usage', ...figures, source: 'sessions' })
        }
      }
      const looking = look()
      try {
        return await agent.work(task, stop, hear)
      } finally {
        over.abort()
        await looking
      }
    },
  }
}
