// Checkpoints as commits on a branch of their own, `ralph/<change>`: the default strategy.
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import type { Operation, RefName } from '../../core/git-facts.ts'
import type { Pending } from '../../core/git-memory.ts'
import { ownerOfRef } from '../../core/ownership.ts'
import type { Checkpoints, Recovered } from '../../ports.ts'
import { adoptedSubject, adoptedWords, type Hand } from './attempt/adopted.ts'
import { tellAside } from './guard/refused-settings.ts'
import { finishBranch } from './finish/branch-finish.ts'
import { redoFinish } from './finish/finish-perform.ts'
import { preflightBranch, redoStart, startBranch } from './start/branch-start.ts'
import { insistOnConversions } from './tree/conversions.ts'
import { dropFlags, refuseHiddenEdits } from './tree/flags.ts'
import { copyIndex, installIndex, realIndex } from './formats/index-file.ts'
import { keptOut } from './tree/kept-out.ts'
import { tellSwept } from './submodules/keep-submodules.ts'
import { readLedger } from './refs/ledger.ts'
import { mendRepository } from './guard/mend.ts'
import { endOperations, refuseHalfDone } from './start/operations.ts'
import { headRef, steadily } from './formats/ref-files.ts'
import { moveRefs, placeOf, readRefs, shortName, type Refs } from './refs/refs.ts'
import { leaveFor } from './refs/users-own.ts'
import { moveBranch } from './finish/rename.ts'
import { nothingToResume, ofChange, timeName, type CheckpointDeps, type Store } from './store.ts'
import { scanTree } from './tree/scan.ts'
import { isDirty, isEdited, observe } from './revert/observe.ts'
import {
  advanceSnapshot,
  loadSnapshot,
  requireSnapshot,
  saveSnapshot,
  snapshotIndex,
  type Observed,
  type Snapshot,
} from './revert/snapshot.ts'
import { noteStaged, stageIn } from './attempt/staged.ts'
import { isInsideSame, lookInside } from './submodules/submodules.ts'
import { isOfPlan } from './tree/plan-path.ts'
import { commitTree, isAncestor, treeOf, treeOfIndex, writeTree } from './tree/tree.ts'
import { checkpointsBy, drop, keep, restore, type SavePlan } from './strategy.ts'

export function branchCheckpoints(deps: CheckpointDeps): Checkpoints {
  return checkpointsBy(
    {
      preflight: preflightBranch,
      start: startBranch,
      ensure: (store, storyId, byHand = false) => ensure(store, { storyId, byHand }, true),
      planSave,
      finish: async (store, choice, said) => {
        if (choice === 'cleanup' || choice === 'squash') await takePlan(store)
        return await finishBranch(store, choice, said)
      },
      redo,
    },
    deps,
  )
}

async function ensure(store: Store, about: Hand, mayRepair: boolean): Promise<{ commit: string }> {
  const { checkpoint, openAttempt } = store.memory()
  if (checkpoint === undefined) throw nothingToResume(store.change)
  await store.author()
  const earlier = await loadSnapshot(store)
  // Before git looks: it would obey what that attempt has left.
  if (openAttempt !== undefined) await mendRepository(store, await requireSnapshot(store), openAttempt)
  else if (earlier !== undefined) await insistOnConversions(store, earlier)
  const branch = branchRef(store)
  // On the loop's branch they would hide what is there from every look; elsewhere they are the user's.
  if (headRef(store.git) === branch) await dropFlags(store.git, realIndex(store.git))
  const observed = await observe(store)
  const inside = await lookInside(store, earlier?.gitlinks ?? [], earlier)
  const dirty =
    isDirty(store, observed, earlier) ||
    !isInsideSame(inside, earlier) ||
    (openAttempt !== undefined && earlier?.commit === checkpoint && (await isEdited(store, earlier)))
  if (observed.refs.head.ref === branch && observed.refs.head.commit === checkpoint && !dirty) {
    const index = await snapshotIndex(store, checkpoint)
    const tree = earlier?.commit === checkpoint ? earlier.tree : await treeOf(store.git, checkpoint)
    // The user may have switched to another branch since the look: what a revert goes by is the checkpoint's own.
    const copy = join(store.folder, index)
    const held = await treeOfIndex(store.git, copy).catch(() => '')
    if (held !== tree) await store.git.run(['read-tree', tree], { index: copy })
    await saveSnapshot(store, observed, { commit: checkpoint, tree, index, earlier, inside })
    return { commit: checkpoint }
  }
  if (!mayRepair) {
    throw new RalphError(
      'checkpoint_failed',
      `the work tree does not stay at the checkpoint of ${store.change}`,
      { hint: 'Something else is writing to it. End that, then `ralph resume`; nothing was lost.' },
    )
  }
  if (openAttempt !== undefined) {
    await keep(store, openAttempt, false)
    await restore(store)
  } else if (observed.refs.head.ref === branch) {
    await refuseHalfDone(store.git, 'repository_state', `\`ralph resume ${store.change}\``)
    if (!(await adopt(store, observed, about, checkpoint))) return await ensure(store, about, true)
  } else if (dirty) {
    throw new RalphError(
      'repository_state',
      `the loop works on ralph/${store.change}, but there are changes on ${place(observed)}`,
      {
        hint: `Commit or stash them, ${observed.refs.all[branch] === undefined ? '' : `\`${store.git.typed} switch ralph/${store.change}\`, `}then \`ralph resume ${store.change}\`.`,
      },
    )
  } else {
    await refuseHiddenEdits(store.git)
    await restore(store)
  }
  return await ensure(store, about, false)
}

/** Changed between two attempts, so by a person: taken into the checkpoint, never reverted. False: look again. */
async function adopt(store: Store, observed: Observed, about: Hand, checkpoint: string): Promise<boolean> {
  const { git } = store
  const tip = observed.refs.head.commit
  const earlier = await loadSnapshot(store)
  const index = join(store.folder, 'attempt-index')
  const tree = await steadily(git, async () => {
    await copyIndex(git, realIndex(git), index)
    return (await writeTree(git, index, observed.scan, keptOut(store, earlier))).tree
  })
  // Another branch has other files: those of it are nobody's change.
  if (headRef(git) !== branchRef(store)) return false
  await store.operate({ op: 'adopt', story: about.storyId, from: checkpoint, to: tip }, async () => {
    const isSame = tip !== undefined && tree === (await treeOf(git, tip))
    const commit = isSame
      ? tip
      : await commitTree(
          git,
          tree,
          [tip ?? checkpoint],
          `${adoptedSubject(about)}\n\n${ofChange(store)}`,
          await store.author(),
        )
    const isLost = tip !== undefined && !(await isAncestor(git, checkpoint, tip))
    if (isLost)
      await moveRefs(git, 'archive', [`update ${store.refs}/archive/${timeName(store)} ${checkpoint}`])
    await becomeCheckpoint(store, 'adopt', commit, tree, index)
  })
  const { checkpoint: now = checkpoint } = store.memory()
  const heads = { from: checkpoint, to: tip }
  const message = await adoptedWords(git, { from: checkpoint, to: now }, heads, about)
  await store.note({ type: 'warning', code: 'changes_adopted', message })
  return true
}

/** What a person did to the plan in the loop's own tree after its last attempt, such as a tick: it belongs to the work, and is brought with it. */
async function takePlan(store: Store): Promise<void> {
  const { git, change, home } = store
  const { checkpoint, openAttempt } = store.memory()
  const { head } = await readRefs(git)
  if (home === undefined || checkpoint === undefined || openAttempt !== undefined) return
  if (head.ref !== branchRef(store) || head.commit === undefined) return
  const index = join(store.folder, 'attempt-index')
  await git.run(['read-tree', head.commit], { index })
  const scan = await scanTree(git, { index })
  const isOther = (path: string): boolean => !isOfPlan(change, path)
  if ([...scan.changed, ...scan.untracked].every(isOther)) return
  await refuseHalfDone(git, 'finish_conflict', `\`ralph finish ${change}\` again`)
  const parent = head.commit
  await store.operate({ op: 'adopt', story: 'finish', from: checkpoint, to: parent }, async () => {
    const { tree } = await writeTree(git, index, { ...scan, deleted: [] }, isOther)
    const message = `the plan, changed by hand\n\n${ofChange(store)}`
    const commit = await commitTree(git, tree, [parent], message, await store.author())
    await becomeCheckpoint(store, 'adopt', commit, tree, index)
  })
}

async function planSave(store: Store, storyId: string, snapshot: Snapshot, refs: Refs): Promise<SavePlan> {
  const { keptHead = snapshot.commit, beside } = store.memory()
  const theirs = await commitBeside(store, snapshot, refs, keptHead)
  const isBack = refs.head.ref !== branchRef(store)
  return {
    parents: [keptHead, theirs],
    author: await store.author(),
    beside,
    ...(isBack && {
      headBack: `HEAD was switched to ${placeOf(refs.head)} before story ${storyId} was saved; no file had changed, and HEAD is back on ralph/${store.change}`,
    }),
    complete: (commit, tree) =>
      becomeCheckpoint(store, 'save', commit, tree, join(store.folder, 'attempt-index')),
  }
}

/** A commit that the user made here since the attempt ended: it stays in the history of the branch. Undefined when there is none. */
async function commitBeside(
  store: Store,
  { commit }: Snapshot,
  refs: Refs,
  kept: string,
): Promise<string | undefined> {
  const name = branchRef(store)
  const now = refs.all[name] ?? commit
  if (now === commit || (await isAncestor(store.git, now, kept))) return undefined
  const { attempt = 0 } = store.memory()
  const { owner } = ownerOfRef(store.change, { name, before: commit, now }, await readLedger(store, attempt))
  return owner === 'user' ? now : undefined
}

/** From the step on it can only be completed: the commit holds everything. */
async function becomeCheckpoint(
  store: Store,
  op: Operation['op'],
  commit: string,
  tree: string,
  index: string,
): Promise<void> {
  await snapshotIndex(store, commit, index)
  await store.step(op, { did: 'checkpoint', commit })
  await completeCheckpoint(store, op, commit, tree)
}

async function completeCheckpoint(
  store: Store,
  op: Operation['op'],
  commit: string,
  tree: string,
): Promise<void> {
  const { git } = store
  const refs = await readRefs(git)
  const branch = branchRef(store)
  const next = join(store.folder, `index-${commit}`)
  const staged = await noteStaged(store, { next, snapshot: await loadSnapshot(store) })
  // Between two attempts only a person stages: there it is staged again at the cleanup.
  if (op === 'adopt') await stageIn(git, join(store.folder, 'user-index'), staged)
  await moveRefs(git, 'checkpoint', [
    `update ${branch} ${commit}`,
    `update ${store.refs}/checkpoint ${commit}`,
  ])
  if (refs.head.ref !== branch) await leaveFor(store, { ref: branch, commit }, 'checkpoint')
  await endOperations(git.gitDir)
  await installIndex(git, next)
  await advanceSnapshot(store, { ref: branch, commit }, tree, refs)
}

async function redoSave(store: Store, op: Operation['op'], commit: string): Promise<void> {
  const before = await loadSnapshot(store)
  await completeCheckpoint(store, op, commit, await treeOf(store.git, commit))
  if (before !== undefined) await tellSwept(store, before, await loadSnapshot(store))
}

async function redo(store: Store, pending: Pending): Promise<string | Recovered> {
  const { operation, checkpoint: commit } = pending
  switch (operation.op) {
    case 'start':
      return await redoStart(store, operation.previous ?? '', commit)
    case 'save':
    case 'adopt':
      if (commit === undefined) return await drop(store, pending, 'checkpoint')
      await redoSave(store, operation.op, commit)
      await tellAside(store, 'saved')
      return `the checkpoint ${commit.slice(0, 12)} was completed`
    case 'finish':
      return 'index' in operation ? await redoFinish(store, operation) : {}
    case 'rename':
      if (await moveBranch(store, operation)) return 'the commits have the names of their stories now'
      return await drop(store, pending, 'rename')
    case 'take':
    case 'keep':
    case 'restore':
    case 'unknown':
      return {}
  }
}

function branchRef(store: Pick<Store, 'change'>): RefName {
  return `refs/heads/ralph/${store.change}`
}

function place({ refs }: Observed): string {
  return refs.head.ref === undefined ? 'a detached HEAD' : shortName(refs.head.ref)
}
