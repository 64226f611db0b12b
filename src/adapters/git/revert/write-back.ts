// Files of a checkpoint, written by git, with the line ends that they had: its settings may say otherwise. The size in the index tells.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { entryAt, hashAt, parseIndex, sizeAt } from '../formats/index-bytes.ts'
import type { Git } from '../git.ts'
import { contentsOf, forgetSizes, mostBytes, replaceFile } from '../tree/exact-bytes.ts'
import { beyondFolders, lstatNow, onDisk } from '../tree/files.ts'
import { openAbove } from '../tree/owner-access.ts'
import { recordStats } from '../tree/racy-entries.ts'
import { joined } from '../tree/tree.ts'
import { checkOutWhole } from '../tree/whole-files.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from './snapshot.ts'

interface Recorded {
  readonly path: string
  readonly size: number
  readonly id: string
}

/** `take`: what moves those out of the way that nobody has written since the look at them. */
export async function writeBack(
  store: Store,
  index: string,
  paths: readonly string[],
  take: (paths: readonly string[]) => void,
): Promise<void> {
  if (paths.length === 0) return
  const { git } = store
  const recorded = recordedSizes(index, paths)
  openAbove(git.worktree, paths)
  const isBeyond = beyondFolders(git.worktree)
  const isBlocked = new Set(
    paths.filter((path) => isBeyond(path) || lstatNow(git.worktree, path)?.isDirectory() === true),
  )
  const free = paths.filter((path) => !isBlocked.has(path))
  const byGit: string[] = []
  // Git reads the attempt's attributes as long as they are there.
  const isRule = (path: string): boolean => /(?:^|\/)\.gitattributes$/i.test(path)
  for (const some of [free.filter(isRule), free.filter((path) => !isRule(path))]) {
    if (some.length === 0) continue
    const { whole, inPlace } = await checkOutWhole(store, index, some, {
      take: () => take(some),
      mend: (drafts) => putBackLineEnds(git, drafts, recorded),
      more: ['--index'],
    })
    recordStats(index, whole)
    byGit.push(...inPlace)
  }
  // By force only where something else is in the way.
  if (isBlocked.size > 0) {
    const args = ['checkout-index', '--ignore-skip-worktree-bits', '--index', '--quiet', '--force']
    await git.run([...args, '-z', '--stdin'], { index, input: joined([...isBlocked]) })
    byGit.push(...isBlocked)
  }
  const isByGit = new Set(byGit)
  const other = recorded.filter(({ path }) => isByGit.has(path))
  await forgetSizes(git, index, await putBackLineEnds(git, git.worktree, other))
}

/** Those that git has looked at. Of an index that is not of the plain kind: none. */
function recordedSizes(index: string, paths: readonly string[]): readonly Recorded[] {
  const parsed = paths.length === 0 ? undefined : parseIndex(readFileSync(index))
  if (parsed === undefined) return []
  return paths.flatMap((path) => {
    const nth = entryAt(parsed, path)
    const size = nth === undefined ? 0 : sizeAt(parsed, nth)
    return nth === undefined || size === 0 ? [] : [{ path, size, id: hashAt(parsed, nth) }]
  })
}

/** Of files that git has written just now, in this folder. Which lines of a mixed one ended how, nobody knows: it stays as git writes it. */
async function putBackLineEnds(git: Git, folder: string, recorded: readonly Recorded[]): Promise<string[]> {
  const other = recorded.filter((each) => each.size <= mostBytes && isOther(folder, each))
  const contents = await contentsOf(
    git,
    other.map(({ id }) => id),
  )
  const back: string[] = []
  for (const { path, size, id } of other) {
    const content = contents.get(id)
    if (content?.length !== size || !isSameText(readFileSync(onDisk(folder, path)), content)) continue
    await replaceFile(folder, path, content)
    back.push(path)
  }
  return back
}

/** In indexes of the user's own: git calls a file changed that is not as long as it was. */
export async function forgetOtherSizes(
  { git, folder }: Store,
  { own_index: own = 'none' }: Snapshot,
  paths: readonly string[],
): Promise<void> {
  for (const index of [own, 'user-index'].map((name) => join(folder, name))) {
    if (!existsSync(index)) continue
    const other = recordedSizes(index, paths).filter((each) => isOther(git.worktree, each))
    await forgetSizes(
      git,
      index,
      other.map(({ path }) => path),
    )
  }
}

function isOther(folder: string, { path, size }: Recorded): boolean {
  const stats = lstatNow(folder, path)
  return stats?.isFile() === true && stats.size !== size
}

function isSameText(written: Buffer, content: Buffer): boolean {
  return written.toString('latin1').replaceAll('\r\n', '\n') === content.toString('latin1')
}
