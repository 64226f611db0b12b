// Back to exactly the snapshot: refs, HEAD, half-done operations, files, index; in this order, each step repeatable.
import { join } from 'node:path'
import { applyTrees } from '../landing/apply.ts'
import { findEdits, staying, tellEdits, tellCommitted } from './edits-since-death.ts'
import { keepLate, noteLateCommit } from './late-edits.ts'
import { mendGitDirs, removeNewGitDirs } from '../submodules/git-dirs.ts'
import { installIndex, takeFrom } from '../formats/index-file.ts'
import { mendRepository } from '../guard/mend.ts'
import { endOperations } from '../start/operations.ts'
import { moveRefs, readRef, readRefs } from '../refs/refs.ts'
import { revertTree } from './revert.ts'
import { timeName, type Store } from '../store.ts'
import { attemptTree } from '../attempt/attempt-tree.ts'
import { keepSubmodules } from '../submodules/keep-submodules.ts'
import { settleGates } from '../attempt/settle.ts'
import { bareNames, requireSnapshot, type Snapshot } from './snapshot.ts'
import { noteStaged } from '../attempt/staged.ts'
import { storeOf, submoduleAt } from '../submodules/submodule.ts'
import { restoreSubmodules } from '../submodules/submodules.ts'
import { lookAgain } from './taken-out.ts'
import { putBackSwept } from '../attempt/lost-ignored.ts'
import { leaveFor } from '../refs/users-own.ts'
import { indexTheirs, theirCommits, type TheirCommits } from '../refs/their-commits.ts'
import { commitTree, treeChanges, treeOf, treeOfIndex } from '../tree/tree.ts'

/** `holder`: the ref that has the tree as it is now. Resolves with what stayed, since in a repair the user's does. */
export async function restoreSnapshot(
  store: Store,
  snapshot: Snapshot,
  holder: string,
): Promise<readonly string[]> {
  await lookAgain(store)
  try {
    return await store.git.forgiving(() => restoreWhole(store, snapshot, holder))
  } finally {
    await lookAgain(store)
  }
}

async function restoreWhole(store: Store, snapshot: Snapshot, holder: string): Promise<readonly string[]> {
  const { git } = store
  await mendGitDirs(store, snapshot)
  const claims = await findEdits(store, snapshot)
  await tellEdits(store, snapshot, claims, holder)
  const { attempt = 0 } = store.memory()
  await mendRepository(store, snapshot, attempt)
  await settleGates(store, snapshot)
  // Before the files change: what is in one of them is kept with the attempt.
  await noteStaged(store, { next: indexFile(store, snapshot), snapshot })
  const refs = await readRefs(git)
  const aside = (name: string): string =>
    `${store.refs}/moved/${timeName(store)}/${name.replace(/^refs\//, '')}`
  const { ref, commit } = snapshot.head
  const tip = ref === undefined ? undefined : refs.all[ref]
  await noteLateCommit(store, snapshot, refs)
  const theirs = await theirCommits(store, snapshot, tip)
  const committed = new Set(theirs?.stay)
  await tellCommitted(store, snapshot, [...committed])
  const stays = staying(store, claims)
  const back =
    ref === undefined || tip === commit || theirs !== undefined
      ? []
      : [
          ...(tip ? [`update ${aside(ref)} ${tip}`] : []),
          // Whoever moves it in this very moment is asked to begin again, not overruled.
          tip === undefined
            ? `create ${ref} ${commit}`
            : commit
              ? `update ${ref} ${commit} ${tip}`
              : `delete ${ref} ${tip}`,
        ]
  if (refs.head.ref !== ref || (ref === undefined && refs.head.commit !== commit))
    await leaveFor(store, snapshot.head, 'restore')
  await moveRefs(git, 'restore', back)
  await endOperations(git.gitDir)
  await revertTree(
    store,
    snapshot,
    (path) => committed.has(path) || stays(path),
    (paths) => keepLate(store, snapshot, paths),
    () => heldBy(store, snapshot, [`${store.refs}/attempts/${attempt}`, holder]),
  )
  await putBackSwept(store, snapshot, attempt)
  await mendGitDirs(store, snapshot)
  await removeNewGitDirs(store, snapshot)
  await restoreSubmodules(store, snapshot)
  let kept = theirs
  await installIndex(git, indexFile(store, snapshot), async () => {
    kept = await settleLate(store, snapshot, aside, theirs)
  })
  if (kept !== undefined) await indexTheirs(git, kept)
  return [...bareNames(claims.theirs), ...(kept?.stay ?? [])]
}

/**
 * With the index's lock in hand: a `git commit` of the user's that was open in an editor has had it until now, and its commit has
 * come since. Its files are undone already: on the user's own branch they come back, off the loop's it goes like any that is made
 * during an attempt, and is named.
 */
async function settleLate(
  store: Store,
  snapshot: Snapshot,
  aside: (name: string) => string,
  known: TheirCommits | undefined,
): Promise<TheirCommits | undefined> {
  const { git, folder } = store
  const { ref, commit } = snapshot.head
  if (commit === undefined || store.outer !== undefined || store.absence?.() !== undefined) return known
  const now = await readRefs(git)
  if (ref === undefined) {
    await noteLateCommit(store, snapshot, now)
    if (now.head.ref !== undefined || now.head.commit !== commit)
      await leaveFor(store, snapshot.head, 'restore')
    return known
  }
  const tip = now.all[ref]
  if (tip === undefined || tip === (known?.tip ?? commit)) return known
  await noteLateCommit(store, snapshot, now)
  const theirs = await theirCommits(store, snapshot, tip)
  if (theirs === undefined) {
    await moveRefs(git, 'restore', [`update ${aside(ref)} ${tip}`, `update ${ref} ${commit} ${tip}`])
    return undefined
  }
  const index = join(folder, 'late-index')
  await git.run(['read-tree', snapshot.tree], { index })
  await takeFrom(git, index, tip, theirs.stay)
  await applyTrees(git, folder, snapshot.tree, await treeOfIndex(git, index), store.protectedPaths)
  return theirs
}

/** Whether a path that the snapshot has not is in one of these refs. */
async function heldBy(
  { git }: Store,
  snapshot: Snapshot,
  refs: readonly string[],
): Promise<(path: string) => boolean> {
  const held = new Set<string>()
  for (const ref of new Set(refs)) {
    const commit = await readRef(git, ref)
    if (commit === undefined) continue
    for (const { path, to } of await treeChanges(git, snapshot.tree, await treeOf(git, commit)))
      if (to !== undefined) held.add(path)
  }
  return (path) => held.has(path)
}

function indexFile(store: Store, snapshot: Snapshot): string | undefined {
  if (snapshot.own_index === 'none') return undefined
  return join(store.folder, snapshot.own_index ?? snapshot.index)
}

/** A revert that a kill cut off: what was changed since is in no attempt, so it is kept apart before anything else goes. */
export async function restoreFound(store: Store, snapshot: Snapshot): Promise<void> {
  const holder = `${store.refs}/moved/${timeName(store)}/work-tree`
  const { theirs, doubtful } = await findEdits(store, snapshot)
  if (theirs.length + doubtful.length > 0) {
    const { tree } = await attemptTree(store, snapshot, true)
    const commit = await commitTree(store.git, tree, [snapshot.commit], 'found after the loop had died')
    await moveRefs(store.git, 'repair', [`update ${holder} ${commit}`])
  }
  const { attempt } = store.memory()
  if (attempt !== undefined) await keepSubmodules(store, attempt, snapshot)
  await restoreSnapshot(store, snapshot, holder)
}

/** Where the attempt is kept that is being reverted. */
export function keptAs(store: Store): string {
  const { openAttempt } = store.memory()
  return openAttempt === undefined ? `${store.refs}/checkpoint` : `${store.refs}/attempts/${openAttempt}`
}

export async function isAsLeft(store: Store, seen?: Snapshot): Promise<boolean> {
  const { saved, isKept } = store.memory()
  // It had been saved before the crash, or by the repair: nothing waits for what the tree is now.
  if (saved !== undefined && isKept !== true) return true
  const snapshot = seen ?? (await requireSnapshot(store))
  if (!(await findEdits(store, snapshot)).isSlight) return false
  const { ref } = snapshot.head
  const tip = ref === undefined ? undefined : (await readRefs(store.git)).all[ref]
  if ((await theirCommits(store, snapshot, tip)) !== undefined) return false
  for (const submodule of snapshot.submodules ?? []) {
    const isThere = submoduleAt(store.git, submodule.path) !== undefined
    if (isThere && !(await isAsLeft(storeOf(store, submodule), submodule.snapshot))) return false
  }
  return true
}
