// Stash entries that were there at the checkpoint and are not in the list any more: not by the agent or a gate, so nothing is put back, but nothing is lost.
import { missingObjects } from '../refs/pins.ts'
import { moveRefs, refsUnder } from '../refs/refs.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { madeByRalph, readStashLog, stashEntries } from './stash-list.ts'

export function droppedRef(store: Store, n: number, hash: string): string {
  return `${droppedRefs(store, n)}/${hash.slice(0, 12)}`
}

function droppedRefs({ refs }: Store, n: number): string {
  return `${refs}/moved/${n}/before/stash`
}

export function droppedWords(hash: string): string {
  return `a stash entry was dropped while the loop ran, not by the agent; if that was not you: git stash store ${hash}`
}

/** Of those that went since the attempt was kept; called before the checkpoint's pins go. */
export async function keepDropped(store: Store, snapshot: Snapshot): Promise<void> {
  const { git } = store
  const left = new Set(stashEntries(await readStashLog(git)).map(({ hash }) => hash))
  const missing = stashEntries(snapshot.stash_log).filter(({ hash }) => !left.has(hash))
  if (missing.length === 0) return
  const { attempt: n = 0 } = store.memory()
  const hashes = missing.map(({ hash }) => hash)
  const [lost, told] = await Promise.all([
    missingObjects(git, hashes),
    refsUnder(git, [droppedRefs(store, n)]),
  ])
  const there = hashes.filter((hash) => !lost.has(hash))
  const own = await madeByRalph(git, there)
  const fresh = there.filter((hash) => !own.has(hash) && told[droppedRef(store, n, hash)] === undefined)
  await moveRefs(
    git,
    'dropped',
    fresh.map((hash) => `update ${droppedRef(store, n, hash)} ${hash}`),
  )
  for (const hash of fresh) await store.note({ type: 'warning', code: 'beside', message: droppedWords(hash) })
}
