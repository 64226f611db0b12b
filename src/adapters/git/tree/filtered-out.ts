// What a filter of the user's leaves out of git is held before ralph writes the files anew.
import { rememberBytes } from './exact-bytes.ts'
import { treeFolders } from '../revert/snapshot.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'

/** Those of the paths that git would not bring back as they are on disk. `isNew`: not as at the checkpoint. `index` holds `tree`. */
export async function holdStripped(
  store: Store,
  snapshot: Pick<Snapshot, 'bytes' | 'conversions'>,
  tree: string,
  index: string,
  paths: readonly string[],
): Promise<{ path: string; id: string; isNew: boolean }[]> {
  if (paths.length === 0) return []
  const folders = await treeFolders(store.git, tree)
  const held = await rememberBytes(store, {
    paths: paths.filter((path) => !path.endsWith('/')),
    folders: folders.map(({ path }) => path),
    index,
    conversions: snapshot.conversions ?? [],
    earlier: snapshot.bytes,
  })
  return Object.entries(held)
    .filter(([, { held: isHeld }]) => isHeld)
    .map(([path, { id }]) => ({ path, id, isNew: snapshot.bytes[path]?.id !== id }))
}
