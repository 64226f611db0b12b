// What a command has at hand while it is performed.
import type { EventBody } from '../core/event.ts'
import type { StartedState } from '../core/state.ts'
import type { OpenClaim } from './claim.ts'
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
  /** Resolves at this time or when the loop is to stop; `skipped` when a human does not want to wait, `free` when nobody has to. */
  readonly waited: (
    untilMs: number,
    freed: (stop: AbortSignal) => Promise<boolean>,
  ) => Promise<'over' | 'skipped' | 'free'>
  /** Ends the completion question: a stop that led to it must not answer it, the next one does. */
  readonly question: AbortSignal
  readonly agentStop: () => AbortSignal
  /** What `Checkpoints.watch` gave for the open iteration, and whether its agent is offered ralph's tools. */
  watched: { readonly n: number; readonly env: Readonly<Record<string, string>> } | undefined
  /** Those that the open iteration's agent has made and that are not judged yet, by their number. */
  readonly claims: Map<number, OpenClaim>
}
