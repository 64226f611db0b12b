// Refs of ralph's own on everything that others point to, so that an agent that deletes and prunes destroys nothing.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Git } from '../git.ts'
import { mayDiffer, type RefMap } from './ref-picture.ts'
import { moveRefs, refsUnder } from './refs.ts'
import { syncAll } from '../formats/sync.ts'
import type { Store } from '../store.ts'
import { stashEntries } from '../stash/stash-list.ts'

/** Returns a mark of what is pinned now; costs nothing when that was pinned already. */
export async function pinTips(
  store: Store,
  refs: RefMap,
  stashLog: string,
  earlier:
    | { readonly refs: RefMap; readonly stash_log: string; readonly pinned: string | undefined }
    | undefined,
): Promise<string> {
  if (earlier !== undefined && earlier.stash_log === stashLog && isSameToPin(store, earlier.refs, refs))
    if (earlier.pinned !== undefined) return earlier.pinned
  const foreign = Object.entries(refs).filter(([name]) => name !== ownBranch(store))
  const tips = [...foreign.map(([, hash]) => hash), ...stashEntries(stashLog).map(({ hash }) => hash)]
  const wanted = [...new Set(tips)].sort()
  const pinned = createHash('sha1').update(wanted.join()).digest('hex')
  if (pinned === earlier?.pinned) return pinned
  const there = await readPins(store)
  const isThere = new Set(there)
  const isWanted = new Set(wanted)
  const fresh = wanted.filter((hash) => !isThere.has(hash))
  const rest = there.filter((hash) => !isWanted.has(hash)).map((hash) => `delete ${store.refs}/pins/${hash}`)
  const write = (hashes: readonly string[]): Promise<void> =>
    writePins(store, [
      // Zeros: it must be new.
      ...hashes.map((hash) => `update ${store.refs}/pins/${hash} ${hash} ${'0'.repeat(hash.length)}`),
      ...rest,
    ])
  // All or nothing: only where git refuses is there one to look for whose object is gone.
  await write(fresh).catch(async (error: unknown) => {
    const missing = await missingObjects(store.git, fresh)
    if (missing.size === 0) throw error
    await write(fresh.filter((hash) => !missing.has(hash)))
  })
  return pinned
}

/** The loop's own branch apart. */
export function isSameToPin(store: Store, before: RefMap, now: RefMap): boolean {
  const names = [...mayDiffer(before, now)].filter((name) => before[name] !== now[name])
  return names.every((name) => name === ownBranch(store))
}

function ownBranch(store: Store): string {
  return `refs/heads/ralph/${store.change}`
}

export async function unpin(store: Store): Promise<void> {
  const there = await readPins(store)
  await writePins(
    store,
    there.map((hash) => `delete ${store.refs}/pins/${hash}`),
  )
}

/** Which of these the repository does not hold (any more): a ref to one of them would fail. */
export async function missingObjects(git: Git, hashes: readonly string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set()
  const out = await git.line(['cat-file', '--batch-check=%(objectname)'], { input: `${hashes.join('\n')}\n` })
  const lost = out.split('\n').filter((line) => line.endsWith(' missing'))
  return new Set(lost.map((line) => line.split(' ')[0] ?? ''))
}

async function readPins(store: Store): Promise<string[]> {
  const folder = `${store.refs}/pins`
  return Object.keys(await refsUnder(store.git, [folder])).map((name) => name.slice(folder.length + 1))
}

/** There may be thousands of tags: those are not synced one by one. */
async function writePins(store: Store, commands: readonly string[]): Promise<void> {
  if (commands.length <= 64) return await moveRefs(store.git, 'pin', commands)
  const how = ['-c', 'core.fsync=none', 'update-ref', '--stdin']
  await store.git.run(how, { input: `${commands.join('\n')}\n` })
  await syncAll(
    store.git,
    commands.map((command) => join(store.git.gitCommonDir, command.split(' ')[1] ?? '')),
  )
}
