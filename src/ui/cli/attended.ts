// A loop that a person follows from another process (the screens): how the two talk until it has begun. From then on it needs nobody.
import { once } from 'node:events'

/** Of the loop, to whoever has started it. */
export type FromLoop =
  | { readonly began: string }
  /** A start that may surprise: the answer is a `FromStarter`. */
  | { readonly confirm: string }

export interface FromStarter {
  readonly agrees: boolean
}

/** Nobody answers any more: then nothing is begun. */
export async function agreesElsewhere(what: string): Promise<boolean> {
  if (!process.connected) return false
  const gone = new AbortController()
  const answered = once(process, 'message', { signal: gone.signal }).then(
    ([answer]) => (answer as FromStarter).agrees,
    () => false,
  )
  const onGone = (): void => gone.abort()
  process.once('disconnect', onGone)
  say({ confirm: what })
  const agrees = await answered
  process.off('disconnect', onGone)
  return agrees
}

/** Whoever has started it may go now. */
export function tellBegan(change: string): void {
  say({ began: change }, () => {
    if (process.connected) process.disconnect()
  })
}

/** One that has gone meanwhile hears nothing, and the loop needs no answer. */
function say(message: FromLoop, then: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, then)
}
