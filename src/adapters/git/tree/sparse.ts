// Sparse checkouts: paths that are in the index and not in the work tree. An attempt that wrote one leaves it absent again.
import { lstatNow } from './files.ts'
import type { Git } from '../git.ts'

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
