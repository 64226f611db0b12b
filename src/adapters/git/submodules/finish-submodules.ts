// The end of a run, in the submodules: what is said of them, and ralph's own refs put away; files, index and HEAD stay as they are.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { lstatNow } from '../tree/files.ts'
import { named, shown } from '../git.ts'
import { dropMirrors } from './git-dirs.ts'
import { unpin } from '../refs/pins.ts'
import { moveRefs } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { refsInside, storeOf, submoduleAt } from './submodule.ts'

/** At the end of a run: the last state stays under a name of its own, the work as it is. */
export async function releaseSubmodules(
  store: Store,
  snapshot: Snapshot | undefined,
  time: string,
): Promise<void> {
  for (const { path, link, snapshot: inner } of snapshot?.submodules ?? []) {
    if (lstatNow(store.git.worktree, path)?.isDirectory() !== true) continue
    const inside = storeOf(store, { path, link })
    await releaseSubmodules(inside, inner, time)
    await moveRefs(inside.git, 'archive', [
      `update ${inside.refs}/archive/${time} ${inner.commit}`,
      `delete ${inside.refs}/checkpoint`,
    ])
    await unpin(inside)
  }
  await rm(join(store.folder, 'submodules'), { recursive: true, force: true })
  if (store.outer === undefined) dropMirrors(store)
}

/** For the summary: a person would not look for it there. */
export async function toldInside(store: Store, snapshot: Snapshot | undefined): Promise<string[]> {
  const dirty = await uncommittedInside(store, snapshot, '')
  return dirty.length === 0
    ? []
    : [
        `uncommitted work is in the ${dirty.length === 1 ? 'submodule' : 'submodules'} ${dirty.map(named).join(', ')}`,
      ]
}

async function uncommittedInside(
  store: Store,
  snapshot: Snapshot | undefined,
  prefix: string,
): Promise<string[]> {
  const found: string[] = []
  for (const submodule of snapshot?.submodules ?? []) {
    const { path, snapshot: inner } = submodule
    if (submoduleAt(store.git, path) === undefined) continue
    const inside = storeOf(store, submodule)
    const head = await inside.git.line(['rev-parse', '--verify', '--quiet', 'HEAD^{tree}'], { accept: [1] })
    if (head !== inner.tree) found.push(`${prefix}${path}`)
    found.push(...(await uncommittedInside(inside, inner, `${prefix}${path}/`)))
  }
  return found
}

/** From a work tree of the loop's own: its commits become part of the user's submodule, which itself stays where it is. */
export async function carryInside(store: Store, paths: readonly string[]): Promise<string[]> {
  const { git, home, change } = store
  if (home === undefined) return []
  const told: string[] = []
  for (const path of paths) {
    const [from, to] = [submoduleAt(git, path), submoduleAt(home, path)]
    if (from === undefined) continue
    const place = join(git.worktree, shown(path))
    if (to === undefined) {
      told.push(`the submodule ${named(path)} was filled in the loop's work tree: ${place}`)
      continue
    }
    const ref = `${refsInside(change)}/carried`
    const head = await git.into(from.repository).line(['rev-parse', 'HEAD'])
    await git
      .into(to.repository)
      .run([
        'fetch',
        '--quiet',
        '--no-tags',
        '--no-recurse-submodules',
        from.repository.gitDir,
        `+HEAD:${ref}`,
      ])
    told.push(
      `the submodule ${named(path)} is where you left it; the loop's is ${head.slice(0, 12)}: git -C ${shown(path)} checkout ${head.slice(0, 12)}`,
    )
  }
  return told
}
