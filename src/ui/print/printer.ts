// What every way of showing a loop has in common.
import type { LoopEvent } from '../../core/event.ts'

export interface Printer {
  /** In order, never throws; a reader that went away is noticed by the stream's own error event. */
  tell(event: LoopEvent): void
  /** Takes whatever moves off the screen while a question is asked; the next event brings it back. */
  pause(): void
  /** Leaves the terminal as it was found; may be called more than once. */
  readonly close: () => void
}

/** Of a loop that is looked at elsewhere. */
export const silent: Printer = { tell: () => undefined, pause: () => undefined, close: () => undefined }
