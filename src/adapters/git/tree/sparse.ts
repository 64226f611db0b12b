// Sparse checkouts: paths that are in the index and not in the work tree. An attempt that wrote one leaves it absent again.
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { firstNames } from '../../../core/first-names.ts'
import { putBackBytes } from './exact-bytes.ts'
import { lstatNow } from './files.ts'
import { leftOutSince } from './flags.ts'
import { isSameIndex, realIndex } from '../formats/index-file.ts'
import { named, type Git } from '../git.ts'
import { putBackModes } from './modes.ts'
import { openAbove } from './owner-access.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { outermost } from '../submodules/submodule.ts'
import { entryPath, indexEntries, joined } from './tree.ts'

/**
 * What `sparse-checkout` or `skip-worktree` has left out of the work tree while attempt `n` ran, by whoever's hand, is not deleted: once
 * the settings are back it is there again, as it was when it went, and git sees it. An index that git cannot read leaves nothing out.
 */
export async function bringBackLeftOut(store: Store, snapshot: Snapshot, n: number): Promise<void> {
  const { git } = store
  const index = join(store.folder, snapshot.index)
  const own = join(store.folder, snapshot.own_index ?? snapshot.index)
  if (isSameIndex(realIndex(git), own)) return
  const left = await leftOutSince(git, index).catch((error: unknown) => {
    if (error instanceof RalphError && error.code === 'git_failed') return []
    throw error
  })
  if (left.length === 0) return
  const [now, then, held] = await Promise.all([realIndex(git), own, index].map((file) => versions(git, file)))
  // Git leaves out only what its index holds; what that had before the attempt may have been edited since by its user.
  const isOld = (path: string): boolean => now?.get(path) === then?.get(path)
  const old = left.filter((path) => isOld(path) && held?.has(path) === true)
  const fresh = left.filter((path) => !isOld(path))
  const back = [...old, ...fresh]
  if (back.length === 0) return
  openAbove(git.worktree, back)
  await writeOut(git, index, old)
  await writeOut(git, realIndex(git), fresh)
  const isOther = (path: string): boolean => !old.includes(path)
  await putBackBytes(store, snapshot, isOther)
  putBackModes(git, { modes: snapshot.modes, own: [] }, isOther)
  await git.run(['update-index', '--no-skip-worktree', '-z', '--stdin'], { input: joined(back) })
  const files = back.length === 1 ? 'a file was' : `${back.length} files were`
  const message = `${files} left out of the work tree while #${n} ran (git sparse-checkout, or skip-worktree), not deleted: back are ${firstNames(back.map(named))}. After the loop the checkout can be sparse again`
  await outermost(store).note({ type: 'warning', code: 'left_out', message })
}

async function versions(git: Git, index: string): Promise<Map<string, string>> {
  const entries = await indexEntries(git, index)
  return new Map(entries.map((entry) => [entryPath(entry), entry.slice(2, entry.indexOf('\t'))]))
}

/** Not by force: what somebody has made there meanwhile stays. */
async function writeOut(git: Git, index: string, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  const args = ['checkout-index', '--ignore-skip-worktree-bits', '--quiet', '-z', '--stdin']
  await git.run(args, { index, input: joined(paths), accept: [1] })
}

/** Of the index, those that git leaves out of the work tree and that are there all the same. */
export async function presentOutside(git: Git, index: string): Promise<string[]> {
  return (await outside(git, index)).filter((path) => lstatNow(git.worktree, path) !== undefined)
}

/** What belongs out of the work tree: asked before git looks, which forgets the mark of a file that it finds. `present` were there at the checkpoint. */
export async function absentPaths(
  git: Git,
  index: string,
  present: readonly string[] | undefined,
): Promise<Set<string>> {
  // No sparse checkout: no process.
  if (present === undefined) return new Set()
  const there = new Set(present)
  return new Set((await outside(git, index)).filter((path) => !there.has(path)))
}

async function outside(git: Git, index: string): Promise<string[]> {
  // Otherwise git forgets the mark of every file that is there.
  const asked = ['-c', 'sparse.expectFilesOutsideOfPatterns=true', 'ls-files', '-t', '-z']
  const entries = await git.list(asked, { index })
  return entries.filter((entry) => entry.startsWith('S ')).map((entry) => entry.slice(2))
}
