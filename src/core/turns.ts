// When each turn of an agent ran, to the millisecond where the journal knows it, and in which session: whose tokens are whose.
import type { IterationRecord, LoopEvent } from './event.ts'
import { epochMs } from './stamp.ts'

export interface Turn {
  readonly story_id: string
  /** The agent's own name for it; empty where it has none. */
  readonly session_id: string
  readonly fromMs: number
  readonly toMs: number
}

export function turnsOf(
  iterations: readonly Pick<IterationRecord, 'n' | 'story_id' | 'started' | 'ended'>[],
  events: readonly LoopEvent[],
): readonly Turn[] {
  const sessions = new Map<number, string>()
  const ends = new Map<number, Extract<LoopEvent, { type: 'agent.ended' }>>()
  for (const event of events) {
    if (event.type === 'agent.session') sessions.set(event.n, event.session_id)
    if (event.type === 'agent.ended') ends.set(event.n, event)
  }
  return iterations.map(({ n, story_id, started, ended }) => {
    const end = ends.get(n)
    const session_id = end?.session_id ?? sessions.get(n) ?? ''
    // Stamps are whole seconds; a turn that died with ralph has nothing better.
    const [fromMs, toMs] =
      end === undefined || end.duration_ms === 0
        ? [epochMs(started), epochMs(ended) + 999]
        : [end.now_ms - end.duration_ms, end.now_ms]
    return { story_id, session_id, fromMs, toMs }
  })
}

interface Answer {
  readonly sessionId: string
  readonly parentSessionId: string
  readonly timeMs: number
}

/**
 * The story that an answer was given for; empty for one outside of all turns. A session says more than a time, but a user may
 * go on with it later.
 */
export function storyFinder(turns: readonly Turn[]): (answer: Answer) => string {
  return ({ sessionId, parentSessionId, timeMs }) => {
    const near = turns.filter((turn) => timeMs >= turn.fromMs - slackMs && timeMs <= turn.toMs + slackMs)
    const own = near.filter(({ session_id: id }) => id !== '' && (id === sessionId || id === parentSessionId))
    const among = own.length > 0 ? own : near.filter((turn) => timeMs >= turn.fromMs)
    const within = among.findLast((turn) => timeMs >= turn.fromMs && timeMs <= turn.toMs)
    return (within ?? among.at(-1))?.story_id ?? ''
  }
}

/** Whether any of these answers may be one of the turn's: what it used is counted with them then. */
export function isCovered(
  { fromMs, toMs }: Pick<Turn, 'fromMs' | 'toMs'>,
  answers: readonly Answer[],
): boolean {
  return answers.some(({ timeMs }) => timeMs >= fromMs - slackMs && timeMs <= toMs + slackMs)
}

/** An agent's clock and ours are read at different moments. */
const slackMs = 1000
