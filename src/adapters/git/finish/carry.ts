// From the loop's own work tree into the user's checkout: everything the first time, and only the rest after an earlier cleanup.
import { join } from 'node:path'
import type { Carried, Head } from '../../../core/git-facts.ts'
import { shellWord } from '../../../core/shell-word.ts'
import {
  mergeTrees,
  moveFirst,
  refuseOverwrite,
  tryMerge,
  uncommitted,
  type Bringing,
} from '../landing/apply.ts'
import { lstatNow } from '../tree/files.ts'
import { shown, type Git, type Repository } from '../git.ts'
import { originName } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import { scanTree } from '../tree/scan.ts'
import { changedPaths, commitTree, isAncestor, joined, treeOf } from '../tree/tree.ts'

interface Carry {
  readonly trees: { readonly from: string; readonly to: string }
  /** A commit that holds it all, for the next time. */
  readonly commit: string
  /** Carried earlier, and not as it was carried any more: the user's. */
  readonly left: readonly string[]
  /** The user had brought the work there by a merge. */
  readonly isMerged: boolean
}

/** Refuses, with nothing touched, what would overwrite a change of the user's. */
export async function planCarry(
  store: Store,
  home: Repository,
  head: Head & { readonly commit: string },
  from: { readonly initial: string; readonly tip: string; readonly earlier: Carried | undefined },
): Promise<Carry> {
  const { git, brought = [] } = store
  const there = git.at(home)
  const isBrought = (path: string): boolean =>
    brought.some((folder) => path.startsWith(`${Buffer.from(folder).toString('latin1')}/`))
  const index = join(store.folder, 'home-index')
  const treeWith = async (paths: readonly string[]): Promise<string> => {
    await there.run(['read-tree', head.commit], { index })
    const files = await there.list(['ls-files', '--cached', '--others', '-z'], { index })
    const input = joined([...new Set([...files.filter(isBrought), ...paths])])
    if (input.length > 0)
      await there.run(['update-index', '--add', '--remove', '-z', '--stdin'], { index, input })
    return await there.line(['write-tree'], { index })
  }
  const earlier = from.earlier?.commit
  const carried = earlier === undefined ? [] : await changedPaths(git, `${earlier}^1`, earlier)
  // A file that is exactly what ralph brought is no change of the user's, committed or not.
  const asCarried = earlier === undefined ? [] : await unchangedSince(there, carried, earlier, treeWith)
  const ours = await treeWith(asCarried)
  const began = earlier === undefined ? from.initial : `${earlier}^2`
  // Merged by hand: there is nothing left to carry.
  const isMerged = await isAncestor(git, from.tip, head.commit)
  const base = await git.line(['rev-parse', `${isMerged ? from.tip : began}^{tree}`])
  const bringing = {
    change: store.change,
    original: originName(head),
    typed: there.typed,
  }
  const isRalphs = new Set(asCarried)
  const left = carried.filter((path) => !isRalphs.has(path) && !isBrought(path))
  if (left.length > 0) {
    const rest = new Set(await changedPaths(git, base, from.tip))
    const { changed, deleted, untracked, staged } = await scanTree(there)
    const dirty = new Set([...changed, ...deleted, ...untracked, ...staged])
    const inTheWay = left.filter((path) => rest.has(path) && dirty.has(path))
    if (inTheWay.length > 0) throw uncommitted(there, inTheWay, moveFirst(bringing))
  }
  const theirs = await treeOf(git, from.tip)
  // The user's own plan, in no commit: git's merge would refuse it, too.
  const { conflicts } = brought.length === 0 ? { conflicts: [] } : await tryMerge(git, base, ours, theirs)
  const own = conflicts.filter(isBrought)
  if (own.length > 0) {
    const isTracked = new Set(await there.list(['ls-tree', '-r', '-z', '--name-only', head.commit]))
    if (own.length === conflicts.length && own.every((path) => !isTracked.has(path)))
      throw uncommitted(there, own, takeOver(own, git.worktree, there.worktree, bringing))
  }
  const to = await mergeTrees(git, base, ours, theirs, bringing)
  await refuseOverwrite(there, ours, to, (path) => isRalphs.has(path) || isBrought(path), bringing)
  const commit = await commitTree(git, to, [head.commit, from.tip], 'carried into the checkout')
  return { trees: { from: ours, to }, commit, left, isMerged }
}

/** Yours stays beside it: nothing else has it. */
function takeOver(paths: readonly string[], from: string, to: string, { change }: Bringing): string {
  const commands = paths.map((path) => {
    const mine = shellWord(join(to, shown(path)))
    return `mv ${mine} ${shellWord(`${join(to, shown(path))}.mine`)} && cp ${shellWord(join(from, shown(path)))} ${mine}`
  })
  return `The cleanup has touched nothing. You and the loop changed the same lines. Take the loop's file, and keep a copy of yours: ${commands.join(' && ')}; then ralph finish ${change} --cleanup again.`
}

async function unchangedSince(
  there: Git,
  carried: readonly string[],
  commit: string,
  treeWith: (paths: readonly string[]) => Promise<string>,
): Promise<string[]> {
  const plain = carried.filter((path) => {
    const stat = lstatNow(there.worktree, path)
    return stat === undefined || stat.isFile() || stat.isSymbolicLink()
  })
  const changed = new Set(await changedPaths(there, await treeWith(plain), commit))
  return plain.filter((path) => !changed.has(path))
}
