// The work tree between the end of an attempt and its checkpoint: is it still what was judged, and is the work still there?
import type { Judged } from '../../../core/loop.ts'
import { lossOf, moverOf } from '../../../core/ownership-tree.ts'
import type { TreeState } from '../../../ports.ts'
import { named } from '../git.ts'
import { treeJustKept } from './just-kept.ts'
import { attemptIndex, attemptTree } from './attempt-tree.ts'
import { keptOut } from '../tree/kept-out.ts'
import { readLedger } from '../refs/ledger.ts'
import { mendRepository } from '../guard/mend.ts'
import { holdsFile } from '../formats/objects.ts'
import { putBackOpened } from '../tree/owner-access.ts'
import { placeOf, readRefs, type Refs } from '../refs/refs.ts'
import { othersStashes, takenBy } from './reunite.ts'
import type { Scan } from '../tree/scan.ts'
import type { Store } from '../store.ts'
import { requireSnapshot, type Snapshot } from '../revert/snapshot.ts'
import { readStashLog } from '../stash/stash-list.ts'
import { changedPaths, isAncestor, treeChanges, writeTree } from '../tree/tree.ts'

export async function lookAt(store: Store, since: string): Promise<TreeState> {
  const snapshot = await requireSnapshot(store)
  await mend(store, snapshot)
  const { tree, opened } = await attemptTree(store, snapshot)
  putBackOpened(opened)
  if (tree === since) return { tree, stirred: [], lost: undefined }
  const changes = await treeChanges(store.git, since, tree)
  const [stirred, made] = [changes, changes.filter(({ from }) => from === undefined)].map((paths) =>
    paths.map(({ path }) => named(path)),
  ) as [string[], string[]]
  const refs = await readRefs(store.git)
  return { tree, stirred, made, lost: await lossIn(store, snapshot, since, tree, refs) }
}

/** Nothing is mended for it: the agent is alive, and its attempt not kept. */
export async function watchMade(store: Store): Promise<() => Promise<string[]>> {
  const snapshot = await requireSnapshot(store)
  const picture = async (): Promise<string> => {
    const { tree, opened } = await attemptTree(store, snapshot)
    putBackOpened(opened)
    return tree
  }
  const before = await picture()
  return async () => {
    const changes = await treeChanges(store.git, before, await picture())
    return changes.filter(({ from }) => from === undefined).map(({ path }) => named(path))
  }
}

/** What to save: the tree as it is, or, with a reason, none. The attempt's index holds it. */
export async function treeToSave(
  store: Store,
  snapshot: Snapshot,
  judged: Judged | undefined,
): Promise<{ tree: string; refs: Refs; refused?: TreeState }> {
  const known = await treeAsKept(store, snapshot, judged)
  if (known !== undefined) return known
  await mend(store, snapshot)
  const [{ tree }, refs] = [await attemptTree(store, snapshot), await readRefs(store.git)]
  if (judged === undefined || tree === judged.tree) return { tree, refs }
  if (!judged.isBinding) {
    const isElsewhere =
      refs.head.ref !== snapshot.head.ref || refs.all['refs/stash'] !== snapshot.refs['refs/stash']
    const lost =
      isElsewhere || tree === snapshot.tree
        ? await lossIn(store, snapshot, judged.tree, tree, refs)
        : undefined
    return { tree, refs, ...(lost !== undefined && { refused: { tree, stirred: [], lost } }) }
  }
  const ticked = Buffer.from(judged.mayDiffer).toString('latin1')
  const stirred = await changedPaths(store.git, judged.tree, tree)
  if (stirred.every((path) => path === ticked)) return { tree, refs }
  const lost = await lossIn(store, snapshot, judged.tree, tree, refs)
  return { tree, refs, refused: { tree, stirred: stirred.map(named), lost } }
}

/**
 * Without gates nobody but ralph had to write since the attempt was kept, and its processes are gone: what was kept is saved, with the
 * boxes that ralph has ticked. What a person writes in this moment is found before the next agent, as any edit between two attempts.
 */
async function treeAsKept(
  store: Store,
  snapshot: Snapshot,
  judged: Judged | undefined,
): Promise<{ tree: string; refs: Refs } | undefined> {
  const { git } = store
  const { attempt: n = 0, keptHead } = store.memory()
  const index = attemptIndex(store)
  const ticked = Buffer.from(judged?.mayDiffer ?? '').toString('latin1')
  const tree = treeJustKept(store, { base: snapshot.commit, n, index, but: ticked })
  if (tree === undefined || judged === undefined || judged.isBinding || judged.tree !== tree) return undefined
  const refs = await readRefs(git)
  const isMoved =
    refs.head.ref !== snapshot.head.ref || ![snapshot.head.commit, keptHead].includes(refs.head.commit)
  if (isMoved || refs.all['refs/stash'] !== snapshot.refs['refs/stash']) return undefined
  if (ticked === '') return { tree, refs }
  const isExempt = keptOut(store, snapshot)
  if (isExempt(ticked) || !holdsFile(git, tree, ticked)) return undefined
  const scan = { ...nothing, changed: [ticked] }
  return { tree: (await writeTree(git, index, scan, isExempt, 'none')).tree, refs }
}

const nothing: Scan = {
  changed: [],
  deleted: [],
  untracked: [],
  ignored: [],
  staged: [],
  unmerged: [],
  isBlind: false,
}

/** The gates have run since, with what the attempt wrote. */
async function mend(store: Store, snapshot: Snapshot): Promise<void> {
  const { attempt = 0 } = store.memory()
  await mendRepository(store, snapshot, attempt)
}

async function lossIn(
  store: Store,
  snapshot: Snapshot,
  since: string,
  tree: string,
  { head }: Refs,
): Promise<string | undefined> {
  const { git } = store
  const { attempt = 0 } = store.memory()
  const ledger = await readLedger(store, attempt)
  const isMoved =
    head.ref !== snapshot.head.ref ||
    (head.commit !== snapshot.head.commit &&
      snapshot.head.commit !== undefined &&
      !(head.commit !== undefined && (await isAncestor(git, snapshot.head.commit, head.commit))))
  const others = othersStashes(snapshot, head, await readStashLog(git), ledger)
  const taken = await Promise.all(others.map((entry) => takenBy(git, entry, tree)))
  const [did, still] = await Promise.all([
    changedPaths(git, snapshot.tree, since),
    changedPaths(git, snapshot.tree, tree),
  ])
  const isStill = new Set(still)
  const commands = ledger.commands.filter(({ worktree }) => worktree === git.worktree)
  return lossOf({
    ...(isMoved && {
      head: {
        to: placeOf(head),
        by: moverOf(snapshot.head, head, { ...ledger, commands }),
        isRewritten: head.ref === snapshot.head.ref && head.ref !== undefined,
      },
    }),
    stashed: others.filter((_, at) => (taken[at] ?? []).length > 0).map(({ message }) => message),
    isUndone: did.length > 0 && did.every((path) => !isStill.has(path)),
  })
}
