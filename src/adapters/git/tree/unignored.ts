// Files that are not ignored any more, and may be secrets: in no later commit, but a revert brings them back.
import { mkdir, writeFile } from 'node:fs/promises'
import * as z from 'zod'
import { contentsOf, idOf, replaceFile, writeBlobs } from './exact-bytes.ts'
import { lstatNow, onDisk } from './files.ts'
import { named } from '../git.ts'
import { openAbove } from './owner-access.ts'
import { moveRefs, readRef } from '../refs/refs.ts'
import { listed } from '../attempt/reunite.ts'
import { outermost } from '../submodules/submodule.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { commitTree, treeOf } from './tree.ts'

export const unignoredSchema = z.record(z.string(), z.object({ id: z.string(), mode: z.number() }))
type Unignored = z.infer<typeof unignoredSchema>

/** Kept, the smallest first, and how many are not. `length`: of this repository's object names. */
export async function rememberUnignored(
  store: Store,
  paths: readonly string[],
  length: number,
  earlier: Snapshot | undefined,
): Promise<Pick<Snapshot, 'unignored' | 'unkept'>> {
  const { worktree } = store.git
  const files = paths
    .map((path) => ({ path, stat: lstatNow(worktree, path) }))
    .flatMap(({ path, stat }) => (stat?.isFile() === true ? [{ path, stat }] : []))
    .sort((one, other) => one.stat.size - other.stat.size)
  if (files.length === 0) return {}
  let bytes = 0
  const cut = files.findIndex(({ stat }, at) => (bytes += stat.size) > mostBytes || at >= mostFiles)
  const kept = cut < 0 ? files : files.slice(0, cut)
  const unignored = Object.fromEntries(
    kept.map(({ path, stat }) => [path, { id: idOf(worktree, path, length), mode: stat.mode & 0o777 }]),
  )
  await hold(store, unignored)
  const unkept = files.slice(kept.length).map(({ path }) => path)
  if (unkept.length > 0 && unkept.length !== earlier?.unkept) {
    const message = `${unkept.length} of the files that are no longer ignored are not kept (ralph keeps ${mostFiles} files and ${mostBytes / 1e6} MB of them): what an attempt does to them, no revert undoes. Commit them or ignore them again: ${listed(unkept)}`
    await outermost(store).note({ type: 'warning', code: 'unignored', message })
  }
  return { unignored, ...(unkept.length > 0 && { unkept: unkept.length }) }
}

/** What stands there now is held, too, and named. */
export async function putBackUnignored(
  store: Store,
  { unignored = {} }: Snapshot,
  stays: (path: string) => boolean,
): Promise<void> {
  const { git } = store
  const wrong = Object.entries(unignored).filter(
    ([path, { id }]) => !stays(path) && idNow(store, path, id.length) !== id,
  )
  if (wrong.length === 0) return
  const now: Unignored = {}
  for (const [path, { id: known }] of wrong) {
    const id = idNow(store, path, known.length)
    if (id !== undefined) now[path] = { id, mode: 0o600 }
  }
  await hold(store, now)
  const contents = await contentsOf(
    git,
    wrong.map(([, { id }]) => id),
  )
  const told: string[] = []
  for (const [path, { id, mode }] of wrong) {
    const content = contents.get(id)
    // A folder in its place is the agent's, and is reverted as such.
    if (content === undefined || lstatNow(git.worktree, path)?.isDirectory() === true) continue
    openAbove(git.worktree, [path])
    if (lstatNow(git.worktree, path) === undefined) {
      await mkdir(onDisk(git.worktree, path.replace(/\/?[^/]*$/, '')), { recursive: true })
      await writeFile(onDisk(git.worktree, path), content, { mode, flag: 'wx', flush: true })
    } else await replaceFile(git.worktree, path, content, mode)
    const held = now[path]
    const theirs = held === undefined ? '' : `; what was there: git cat-file blob ${held.id}`
    told.push(
      `${named(path)}, which is no longer ignored, was ${held === undefined ? 'deleted' : 'changed'} and is back${theirs}`,
    )
  }
  if (told.length > mostLines)
    told.splice(
      mostLines,
      told.length,
      `so were ${told.length - mostLines} more files that are no longer ignored; what was in their places is under ${store.refs}/unignored`,
    )
  for (const message of told) await outermost(store).note({ type: 'warning', code: 'unignored', message })
}

function idNow({ git }: Store, path: string, length: number): string | undefined {
  const stat = lstatNow(git.worktree, path)
  return stat?.isFile() === true ? idOf(git.worktree, path, length) : undefined
}

async function hold(store: Store, files: Unignored): Promise<void> {
  const { git } = store
  const paths = Object.keys(files)
  if (paths.length === 0) return
  await writeBlobs(git, paths)
  const ids = [...new Set(Object.values(files).map(({ id }) => id))].sort()
  const tree = await git.line(['mktree'], { input: ids.map((id) => `100644 blob ${id}\t${id}\n`).join('') })
  const ref = `${store.refs}/unignored`
  const before = await readRef(git, ref)
  if (before !== undefined && (await treeOf(git, before)) === tree) return
  const commit = await commitTree(git, tree, [before], 'files that are no longer ignored')
  await moveRefs(git, 'unignored', [`update ${ref} ${commit}`])
}

const mostLines = 10
const mostFiles = 2_000
const mostBytes = 20e6
