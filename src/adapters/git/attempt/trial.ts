// The gates once more, without the files that the attempt's own ignore rules hide: what no checkpoint holds must not be why they pass.
import { mkdir, rename, rm } from '../../files/now.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../../files/whole.ts'
import type { WithoutHidden } from '../../../ports.ts'
import { lstatNow, onDisk, parentOf } from '../tree/files.ts'
import { named } from '../git.ts'
import { filesWithin, hiddenWork } from '../tree/hidden-by-agent.ts'
import { renamed } from '../revert/moved-files.ts'
import { readRef } from '../refs/refs.ts'
import { keepApart } from '../revert/set-aside.ts'
import { requireSnapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { changedPaths } from '../tree/tree.ts'

/** Undefined where there are none to set aside, or they cannot be. */
export async function withoutHidden(store: Store, n: number): Promise<WithoutHidden | undefined> {
  const { git } = store
  const snapshot = await requireSnapshot(store)
  const kept = await readRef(git, `${store.refs}/attempts/${n}`)
  if (kept === undefined) return undefined
  const changed = await changedPaths(git, snapshot.tree, kept)
  const { tried } = await hiddenWork(store, snapshot, changed)
  if (tried.length === 0) return undefined
  const paths = tried.map((path) => path.replace(/\/$/, ''))
  await mkdir(folderOf(store), { recursive: true })
  // First: after a kill the next command puts them back by it.
  await writeDurably(listOf(store), JSON.stringify({ n, paths }), { rights: { mode: 0o600 } })
  for (const [at, path] of paths.entries()) {
    if (await renamed(store, path, Buffer.from(placeOf(store, at)))) continue
    await putHiddenBack(store)
    return undefined
  }
  return { paths: tried.map(named), back: () => putHiddenBack(store) }
}

/** Idempotent. What stands in the place of one by then stays: the gates, or somebody, have made it again. */
export async function putHiddenBack(store: Store): Promise<void> {
  const text = await readIfThere(listOf(store))
  if (text === undefined) return
  const { git } = store
  const { n, paths } = JSON.parse(text.toString()) as { n: number; paths: readonly string[] }
  for (const [at, path] of paths.entries()) {
    const from = placeOf(store, at)
    if (!existsSync(from)) continue
    if (lstatNow(git.worktree, path) === undefined) {
      if (parentOf(path) !== '') await mkdir(onDisk(git.worktree, parentOf(path)), { recursive: true })
      await rename(from, onDisk(git.worktree, path))
    } else if (await isHeld(store, n, at, path)) await rm(from, { recursive: true, force: true })
    else await keepApart(store, Buffer.from(from), path)
  }
  await rm(folderOf(store), { recursive: true, force: true })
}

/** Byte for byte, in the attempt. */
async function isHeld(store: Store, n: number, at: number, path: string): Promise<boolean> {
  const { git, refs } = store
  const { files, left } = await filesWithin({ ...git, worktree: folderOf(store) }, [String(at)], () => false)
  if (left.length > 0 || files.some((file) => file.includes('\n'))) return false
  const entries = await git.list(['ls-tree', '-r', '-z', '--full-tree', `${refs}/attempts/${n}`, '--', path])
  const blobs = new Map(
    entries.map((entry) => [entry.slice(entry.indexOf('\t') + 1), entry.split(/[ \t]/)[2]]),
  )
  const input = Buffer.concat(files.map((file) => Buffer.concat([onDisk(folderOf(store), file), lineEnd])))
  const ids = (await git.line(['hash-object', '--no-filters', '--stdin-paths'], { input })).split('\n')
  return files.every((file, i) => blobs.get(`${path}${file.slice(String(at).length)}`) === ids[i])
}

const lineEnd = Buffer.from('\n')

function folderOf({ folder }: Store): string {
  return join(folder, 'without')
}

function listOf(store: Store): string {
  return join(folderOf(store), 'paths.json')
}

function placeOf(store: Store, at: number): string {
  return join(folderOf(store), String(at))
}
