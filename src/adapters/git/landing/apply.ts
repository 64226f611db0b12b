// Carries a difference of two trees into a work tree that may hold other changes: all of it, or nothing.
import { readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { again, RalphError } from '../../../core/error.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { above, beyondFolders, canRead, diskMark, lstatNow, onDisk } from '../tree/files.ts'
import { notBroughtBack } from '../tree/exact-bytes.ts'
import { hiddenEdits, showCommand } from '../tree/flags.ts'
import { named, type Git } from '../git.ts'
import { putBackModes, readModes } from '../tree/modes.ts'
import { openAbove, putBackOpened } from '../tree/owner-access.ts'
import type { TreeChange } from '../formats/objects.ts'
import { removePath } from '../tree/remove.ts'
import { exempt, scanTree } from '../tree/scan.ts'
import { syncPaths } from '../formats/sync.ts'
import { changedPaths, commitTree, joined, treeChanges, treeOfIndex } from '../tree/tree.ts'

/** Where a cleanup brings the work, for what is said when it cannot. */
export interface Bringing {
  readonly change: string
  /** The original branch; on none, the commit where the user stands. */
  readonly original: string
  /** How the user calls git there. */
  readonly typed: string
}

/** The tree of a three-way merge; throws `finish_conflict` when it is not clean. Nothing but objects is written. */
export async function mergeTrees(
  git: Git,
  base: string,
  ours: string,
  theirs: string,
  { change, original, typed }: Bringing,
): Promise<string> {
  const { tree, conflicts } = await tryMerge(git, base, ours, theirs)
  if (conflicts.length === 0) return tree
  throw conflict(
    `${original} and the loop changed the same lines`,
    conflicts,
    `The cleanup has touched nothing. Merge by hand: ${goTo(original, typed)} && ${typed} merge ralph/${change}; resolve, commit, then ralph finish ${change} --cleanup ends the run.`,
  )
}

/** A branch or a full hash. */
export function goTo(original: string, typed: string): string {
  const isCommit = /^[0-9a-f]{40,64}$/.test(original)
  return `${typed} switch ${isCommit ? `--detach ${original.slice(0, 12)}` : shellWord(original)}`
}

/** With conflicts the tree is not to be used. */
export async function tryMerge(
  git: Git,
  base: string,
  ours: string,
  theirs: string,
): Promise<{ tree: string; conflicts: readonly string[] }> {
  if (ours === base) return { tree: theirs, conflicts: [] }
  if (theirs === base) return { tree: ours, conflicts: [] }
  // Made-up history: git 2.38 cannot be told the base, it has to find it.
  const root = await commitTree(git, base, [], 'base')
  const [one, other] = [
    await commitTree(git, ours, [root], 'ours'),
    await commitTree(git, theirs, [root], 'theirs'),
  ]
  const args = ['merge-tree', '--write-tree', '-z', '--name-only', '--no-messages', one, other]
  const { out, code } = await git.run(args, { accept: [1] })
  const [tree = '', ...conflicts] = out.split('\0').filter((item) => item !== '')
  // A file in the place of a folder is told under a name that git makes up: `d~<commit>`.
  const madeUp = new RegExp(`~(?:${one}|${other})`)
  return {
    tree,
    conflicts: code === 0 ? [] : [...new Set(conflicts.map((path) => path.replace(madeUp, '')))],
  }
}

/** Refuses if one of the paths holds something that is not in `from`: it would be overwritten. */
export async function refuseOverwrite(
  git: Git,
  from: string,
  to: string,
  isExpected: (path: string) => boolean,
  bringing: Bringing,
): Promise<void> {
  const [changes, scan] = await Promise.all([treeChanges(git, from, to), scanTree(git)])
  const dirty = new Set(
    [...scan.changed, ...scan.deleted, ...scan.untracked, ...scan.staged].filter((path) => !isExpected(path)),
  )
  const hidden = await hiddenEdits(git, new Set(changes.map(({ path }) => path)))
  const inHiding = hidden.filter((path) => !isExpected(path))
  if (inHiding.length > 0) throw uncommitted(git, inHiding, showFirst(git, inHiding, bringing))
  const filled = changes.filter((each) => isLeft(each) && isFilled(git, each.path)).map(({ path }) => path)
  for (const path of filled) dirty.add(path)
  const taken = takenPlaces(git, changes).filter((path) => !isExpected(path))
  // One that is gone from the tree stays in its folder, as with `git checkout`.
  const inTheWay = changes
    .filter(({ path, to: now }) => now !== undefined || !filled.includes(path))
    .map(({ path }) => path)
    .filter((path) => [path, ...above(path)].some((each) => dirty.has(each) || dirty.has(`${each}/`)))
    .concat(taken)
  const links = changes.filter((each) => each.from === '160000' && each.to === '160000')
  const there = new Set<string>()
  for (const { path } of links.filter((each) => inTheWay.includes(each.path)))
    if (await isCheckedOut(git, to, path)) there.add(path)
  const left = [...new Set(inTheWay)].filter((path) => !there.has(path))
  if (left.length > 0) throw uncommitted(git, left, moveFirst(bringing))
}

/** A submodule that is at its commit already: `git switch` leaves it there, and nothing is written into it. */
async function isCheckedOut(git: Git, tree: string, path: string): Promise<boolean> {
  const [entry, { out: head }] = await Promise.all([
    git.line(['rev-parse', `${tree}:${path}`]),
    git.run(['rev-parse', 'HEAD'], { inside: onDisk(git.worktree, path).toString(), accept: [128] }),
  ])
  return head.trim() === entry
}

/** What is in no tree, as is what git ignores, and lies where a new path, or one of its folders, has to be. */
export function takenPlaces({ worktree }: Git, changes: readonly TreeChange[]): string[] {
  const known = new Set(changes.filter(({ from }) => from !== undefined).map(({ path }) => path))
  const taken = changes
    .filter(({ path, from }) => from === undefined && !above(path).some((folder) => known.has(folder)))
    .flatMap(({ path }) => [
      ...(lstatNow(worktree, path) === undefined ? [] : [path]),
      ...above(path).filter((folder) => lstatNow(worktree, folder)?.isDirectory() === false),
    ])
  return [...new Set(taken)]
}

export function uncommitted(git: Git, paths: readonly string[], hint: string): RalphError {
  return conflict(`uncommitted changes in ${git.worktree} are in the way`, paths, hint)
}

/**
 * Idempotent: writes and removes exactly the paths that differ, whatever state a kill left them in. Returns those that are not as
 * in `to` then: somebody has written them since the look, and they stay as they are.
 */
export async function applyTrees(
  git: Git,
  folder: string,
  from: string,
  to: string,
  globs: readonly string[],
): Promise<string[]> {
  const isExempt = exempt(globs, [])
  const planned = (await treeChanges(git, from, to)).filter(({ path }) => !isExempt(path))
  const index = join(folder, 'apply-index')
  const lateNow = await watchLate(git, index, { from, to }, planned)
  await git.run(['read-tree', to], { index })
  // No git from here to the removal: the moment in which an edit could be missed is as short as can be.
  const late = lateNow()
  const changes = planned.filter(
    ({ path }) => !late.some((each) => [each, ...above(each)].includes(path) || above(path).includes(each)),
  )
  const modes = readModes(
    git,
    changes.map(({ path }) => path),
    true,
  )
  const opened = openAbove(
    git.worktree,
    changes.map(({ path }) => path),
  )
  for (const each of changes) {
    if (each.to === undefined && !(isLeft(each) && isFilled(git, each.path)))
      await removePath(git.worktree, each.path)
    else if (each.to !== undefined && lstatNow(git.worktree, each.path)?.isDirectory() === false)
      unlinkSync(onDisk(git.worktree, each.path))
  }
  const paths = changes.filter(({ to: now }) => now !== undefined).map(({ path }) => path)
  // Not by force: a file that somebody has made in this very moment stays.
  if (paths.length > 0)
    await git.run(['checkout-index', '--ignore-skip-worktree-bits', '--quiet', '-z', '--stdin'], {
      index,
      input: joined(paths),
      accept: [1],
    })
  const missing = paths.filter((path) => lstatNow(git.worktree, path) === undefined)
  if (missing.length > 0)
    throw new RalphError(
      'checkpoint_failed',
      `git could not write ${missing.slice(0, 5).map(named).join(', ')}`,
      { hint: `Is the disk full, or a folder not writable? Fix that, then ${again}.` },
    )
  await syncPaths(git, paths)
  putBackModes(git, { modes: withExecution(modes, changes), own: [] }, () => false)
  const other = await otherThan(git, folder, index, to, changes)
  putBackOpened(opened)
  return [...late, ...other]
}

/** Of what was written or removed just now. */
async function otherThan(
  git: Git,
  folder: string,
  index: string,
  to: string,
  changes: readonly TreeChange[],
): Promise<string[]> {
  const isBeyond = beyondFolders(git.worktree)
  const isThere = ({ path }: TreeChange): boolean =>
    lstatNow(git.worktree, path)?.isDirectory() === false && !isBeyond(path)
  const made = changes.filter((each) => each.to === undefined && isThere(each)).map(({ path }) => path)
  const paths = changes.filter((each) => !['160000', undefined].includes(each.to)).map(({ path }) => path)
  if (paths.length === 0) return made
  const isFile = (path: string): boolean => lstatNow(git.worktree, path)?.isFile() === true
  const differing = async (): Promise<string[]> => {
    const input = joined(paths.filter((path) => canRead(git.worktree, path)))
    await git.run(['update-index', '--add', '--replace', '-z', '--stdin'], { index, input })
    const isOther = new Set(await changedPaths(git, to, await treeOfIndex(git, index)))
    return paths.filter((path) => isOther.has(path))
  }
  // Git converts files on both ways: only what it would not write so is another's.
  const doubtful = await differing().catch(() => paths.filter(isFile))
  await git.run(['read-tree', to], { index })
  const isOther = new Set(await notBroughtBack({ git, folder }, index, doubtful))
  return [...made, ...doubtful.filter((path) => isOther.has(path) || !isFile(path))]
}

/** Looks for files that hold what neither tree has. What it returns tells them, with those that were written since. */
async function watchLate(
  git: Git,
  index: string,
  { from, to }: { readonly from: string; readonly to: string },
  changes: readonly TreeChange[],
): Promise<() => string[]> {
  const files = changes
    .filter((each) => each.from !== '160000' && each.to !== '160000')
    .map(({ path }) => path)
  const isBeyond = beyondFolders(git.worktree)
  const marks = new Map(files.map((path) => [path, diskMark(git.worktree, path)]))
  const there = files.filter((path) => !isBeyond(path) && canRead(git.worktree, path))
  await git.run(['read-tree', from], { index })
  await git.run(['update-index', '--add', '--replace', '-z', '--stdin'], { index, input: joined(there) })
  const tree = await treeOfIndex(git, index)
  const isOther = new Set(await changedPaths(git, from, tree))
  const isNew = new Set(await changedPaths(git, to, tree))
  return () => {
    const isBeyondNow = beyondFolders(git.worktree)
    return files.filter((path) => {
      const mark = diskMark(git.worktree, path)
      if (mark === '') return false
      return isBeyondNow(path) || mark !== marks.get(path) || (isOther.has(path) && isNew.has(path))
    })
  }
}

/** A private file stays one; of its permissions git knows only whether it is a program. */
function withExecution(
  modes: Readonly<Record<string, number>>,
  changes: readonly TreeChange[],
): Record<string, number> {
  return Object.fromEntries(
    changes.flatMap(({ path, from, to }) => {
      const mode = modes[path]
      if (mode === undefined) return []
      if (from === to) return [[path, mode]]
      return [[path, to === '100755' ? mode | ((mode & 0o444) >> 2) : mode & 0o666]]
    }),
  )
}

/** A submodule before, and none after. */
function isLeft({ from, to }: TreeChange): boolean {
  return from === '160000' && to !== from
}

/** What lies in it is not in `from`. */
function isFilled(git: Git, path: string): boolean {
  const folder = onDisk(git.worktree, path)
  return lstatNow(git.worktree, path)?.isDirectory() === true && readdirSync(folder).length > 0
}

export function moveFirst({ change, typed }: Bringing): string {
  return `The cleanup has touched nothing. Commit these changes or stash them (${typed} stash -u; ignored files by hand), then ralph finish ${change} --cleanup again.`
}

/** They are behind a flag of git's: `git status` does not list them, and `git stash` does not take them. */
function showFirst({ worktree }: Git, paths: readonly string[], { change, typed }: Bringing): string {
  const show = showCommand(paths, `git -C ${shellWord(worktree)}`)
  return `The cleanup has touched nothing. assume-unchanged or skip-worktree hides them; show them to git: \`${show}\`, commit them or stash them (${typed} stash), then ralph finish ${change} --cleanup again.`
}

export function conflict(what: string, paths: readonly string[], hint: string): RalphError {
  const names = paths.slice(0, 10).map(named).join(', ')
  return new RalphError('finish_conflict', `${what}: ${names}`, {
    hint,
  })
}
