// Why an attempt's work may not count, or be none of a checkpoint's: on other branches, in other work trees, half merged, in repositories of others.
import { existsSync, readFileSync } from 'node:fs'
import type { Ledger } from '../../../core/ownership.ts'
import { isSweptBy } from '../../../core/ownership-tree.ts'
import { lstatNow, onDisk } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import { inside, type MadeTree } from './made-trees.ts'
import type { MovedFile } from '../revert/moved-files.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { changedPaths, isAncestor } from '../tree/tree.ts'

/** Ticks in the plan alone are none. */
export async function hasWork(git: Git, before: string, after: string): Promise<boolean> {
  if (before === after) return false
  return (await changedPaths(git, before, after)).some((path) => !/(^|\/)tasks\.md$/.test(path))
}

/** Why a promise of a work tree without work does not count: the work is on no branch, or in another work tree. See work-left-out.ts for the rest. */
export async function workElsewhere(
  { git }: Store,
  snapshot: Snapshot,
  trees: readonly MadeTree[],
  ledger: Ledger,
): Promise<string> {
  for (const hash of strayCommits(snapshot, ledger)) {
    const asked = await git.run(['rev-parse', '--verify', '--quiet', `${hash}^{tree}`], { accept: [1, 128] })
    if (
      asked.code === 0 &&
      asked.out.trim() !== snapshot.tree &&
      !(await isAncestor(git, hash, snapshot.commit))
    )
      return `the work is in the commit ${hash.slice(0, 12)}, which is on no branch, and not in the work tree of the loop (${git.worktree}), where it has to be`
  }
  for (const tree of trees) {
    const { out } = await inside(git, tree).run(['status', '--porcelain'], { accept: [128] })
    if (out !== '')
      return `the work is in the work tree ${tree.folder}, and not in that of the loop (${git.worktree}), where it has to be`
  }
  return ''
}

/** Why half a merge is no work that is done: files that still have both sides in them. One that was put right and not added is fine. */
export async function conflictsIn(git: Git): Promise<string> {
  const entries = await git.list(['ls-files', '--unmerged', '-z'])
  const paths = [...new Set(entries.map((entry) => entry.slice(entry.indexOf('\t') + 1)))]
  const left = paths.filter((path) => {
    const isFile = lstatNow(git.worktree, path)?.isFile() === true
    return isFile && /^<{7}( |$)/m.test(readFileSync(onDisk(git.worktree, path)).toString('latin1'))
  })
  return left.length === 0
    ? ''
    : `a merge was left with conflicts in ${left.slice(0, 5).map(named).join(', ')}`
}

/** Made on a detached HEAD, or on a branch that is gone again; what was made on the loop's own branch is not meant. */
export function strayCommits({ head, refs }: Snapshot, { writes }: Ledger): string[] {
  const made = writes.flatMap(({ by, ref, to }) =>
    by === 'agent' && to !== undefined && /^(HEAD$|refs\/heads\/)/.test(ref) ? [to] : [],
  )
  if (made.length === 0) return []
  const known = new Set([
    ...Object.values(refs),
    head.commit,
    ...writes.filter(({ ref }) => ref === head.ref).map(({ to }) => to),
  ])
  return [...new Set(made)].filter((hash) => !known.has(hash))
}

/** No part of a checkpoint: only their absence can be told, or where they are now. A revert says itself what it puts back. */
export function lostRepositories(
  { git }: Store,
  { repositories = [], nested }: Snapshot,
  moved: readonly MovedFile[],
  mayBeSaved: boolean,
): string[] {
  const isMoved = (path: string): boolean => moved.some(({ was }) => path === `${was}/`)
  const gone = repositories.filter((path) => isMoved(path) || !existsSync(onDisk(git.worktree, path)))
  // Where files of the checkpoint lie around it the revert brings those back; submodules have their own words.
  const within = nested.filter((path) => !path.endsWith('/')).map((path) => `${path}/`)
  const emptied = [...repositories, ...within].filter(
    (path) => !gone.includes(path) && !existsSync(onDisk(git.worktree, `${path}.git`)),
  )
  const bare = emptied.map(
    (path) =>
      `the repository ${named(path)} lost its .git while the attempt ran: its history is not part of a checkpoint, and ralph cannot bring it back`,
  )
  const whole = gone.flatMap((path) => {
    const found = moved.find(({ was }) => path === `${was}/` || path.startsWith(`${was}/`))
    if (found === undefined)
      return [
        `the repository ${named(path)} disappeared while the attempt ran, and was not found elsewhere in the work tree; it is not part of a checkpoint`,
      ]
    const now = `${found.now}${path.slice(found.was.length)}`
    return mayBeSaved
      ? [`the repository ${named(path)} was moved to ${named(now)} while the attempt ran`]
      : []
  })
  return [...bare, ...whole]
}

/** What an agent does outside of the loop's own tree is no part of a checkpoint either. */
export function sweptHome({ home }: Store, { commands }: Ledger): string[] {
  const there = commands.filter(({ worktree }) => home !== undefined && worktree === home.worktree)
  if (home === undefined || !isSweptBy(there)) return []
  const typed = there.map(({ argv }) => `git ${argv.join(' ')}`).slice(0, 5)
  return [
    `the agent ran git in your own checkout, ${home.worktree} (${typed.join('; ')}): uncommitted files there may be gone, and ralph has no copy`,
  ]
}
