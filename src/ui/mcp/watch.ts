// Looks at the loops while a client wants to hear of changes, and says which of them have changed.
import { setTimeout as delay } from 'node:timers/promises'
import type { LoopSeen } from '../app.ts'

/** Journals are read from where the last look ended: one that finds nothing new reads no byte. */
const lookMs = 500

/** `tell` is waited for: a client that does not read hears of many changes as one. A look that fails says nothing, and the next one may do. */
export async function watchLoops(
  look: () => Promise<readonly LoopSeen[] | undefined>,
  tell: (changes: readonly string[], isOtherList: boolean) => Promise<void>,
  { stop, onFirst }: { readonly stop: AbortSignal; readonly onFirst: () => void },
): Promise<void> {
  let before: ReadonlyMap<string, string> | undefined
  while (!stop.aborted) {
    const seen = await look()
    const now = seen === undefined ? before : pictured(seen)
    if (before !== undefined && now !== undefined) {
      const names = new Set([...before.keys(), ...now.keys()])
      const changed = [...names].filter((name) => before?.get(name) !== now.get(name))
      const isOtherList = [...names].some((name) => before?.has(name) !== now.has(name))
      if (changed.length > 0) await tell(changed, isOtherList)
    }
    before = now
    onFirst()
    await delay(lookMs, undefined, { signal: stop }).catch(() => undefined)
  }
}

/** A file that is only written again has not changed. */
function pictured(loops: readonly LoopSeen[]): ReadonlyMap<string, string> {
  const pictures = new Map<string, string>()
  for (const { updated_at: _, ...loop } of loops)
    pictures.set(loop.change_id, `${pictures.get(loop.change_id) ?? ''}${JSON.stringify(loop)}`)
  return pictures
}
