// What a command has at hand while it is performed.
import type { EventBody } from '../core/event.ts'
import type { StartedState } from '../core/state.ts'
import type { Ports } from './run.ts'

export interface Context {
  readonly ports: Ports
  readonly tell: (body: EventBody) => Promise<void>
  readonly state: () => StartedState
  /** Whether this run has touched the repository. */
  readonly begun: () => boolean
  readonly begin: () => Promise<void>
  readonly stopping: AbortSignal
  /** Resolves once no pause is asked for any more, or the loop is to stop. */
  readonly unpaused: () => Promise<void>
  /** Resolves at this time, when the loop is to stop, or, with true, when a human does not want to wait. */
  readonly waited: (untilMs: number) => Promise<boolean>
  /** Ends the completion question: a stop that led to it must not answer it, the next one does. */
  readonly question: AbortSignal
  readonly agentStop: () => AbortSignal
}
