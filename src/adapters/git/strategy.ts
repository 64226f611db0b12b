// What both strategies do alike: how an attempt is kept, saved or reverted, and how a crash in the middle of that is settled.
import { hintingSafely } from './landing/safe-to-type.ts'
import type { GitMemory, Pending } from '../../core/git-memory.ts'
import type { Judged } from '../../core/loop.ts'
import type { Checkpoints, KeptAttempt, Recovered, SavedCheckpoint } from '../../ports.ts'
import { tellAside } from './guard/refused-settings.ts'
import type { Author } from './formats/author.ts'
import { putBrokenAside } from './formats/damaged-objects.ts'
import { named } from './git.ts'
import { goneFiles } from './attempt/lost-files.ts'
import { tellObeyed } from './guard/guarded.ts'
import { tellHidden } from './tree/hidden-by-agent.ts'
import { forgetLook } from './attempt/just-kept.ts'
import { beforeRef, keepAttempt } from './attempt/keep.ts'
import { tellSwept } from './submodules/keep-submodules.ts'
import { isPackDue, packLoose } from './formats/pack.ts'
import { explainRefusals } from './tree/permissions.ts'
import { moveRefs, readRefs, type Refs } from './refs/refs.ts'
import { refuseMounted } from './revert/mounted.ts'
import { isAsLeft, keptAs, restoreFound, restoreSnapshot } from './revert/restore.ts'
import { lookAt, treeToSave, watchMade } from './attempt/saving.ts'
import { settled, settleGates } from './attempt/settle.ts'
import { loadSnapshot, requireSnapshot, type Snapshot } from './revert/snapshot.ts'
import { outwaitLocks, patienceMs } from './guard/stale-locks.ts'
import { mendStashes } from './stash/stash-list.ts'
import { openStore, savedBefore, type CheckpointDeps, type Store } from './store.ts'
import { isSameInside, outwaitInside } from './submodules/submodules.ts'
import { passLoose, syncPaths } from './formats/sync.ts'
import { changedPaths, commitTree, orEmpty, treeOf } from './tree/tree.ts'
import { putHiddenBack, withoutHidden } from './attempt/trial.ts'
import { watch } from './refs/watch.ts'

type First<M extends keyof Checkpoints> = (
  store: Store,
  ...args: Parameters<Checkpoints[M]>
) => ReturnType<Checkpoints[M]>

/** What the next checkpoint stands on, and what makes it one once the tree is a commit. */
export interface SavePlan {
  readonly parents: readonly (string | undefined)[]
  readonly author?: Author | undefined
  /** Commits of others that may not be part of it: they are named. */
  readonly beside: GitMemory['beside']
  /** What there is to say of where HEAD was. */
  readonly headBack?: string
  readonly complete: (commit: string, tree: string) => Promise<void>
}

interface Strategy {
  readonly preflight: First<'preflight'>
  readonly start: First<'start'>
  readonly ensure: First<'ensure'>
  readonly finish: First<'finish'>
  planSave(store: Store, storyId: string, snapshot: Snapshot, refs: Refs): Promise<SavePlan>
  /** Completes or undoes what a crash cut off, and says what became of it. */
  redo(store: Store, pending: Pending): Promise<string | Recovered>
}

export function checkpointsBy(strategy: Strategy, deps: CheckpointDeps): Checkpoints {
  const store = openStore(deps)
  const sinceMs = Date.now()
  let attempts = 0
  const pack = async (): Promise<void> => {
    // It can wait: whatever hinders it is git's to name where it hinders more.
    if (isPackDue(attempts)) await packLoose(store.git, sinceMs).catch(() => undefined)
    attempts += 1
  }
  return explainRefusals(store, {
    preflight: (mode) => strategy.preflight(store, mode),
    start: (mode) => strategy.start(store, mode),
    ensure: async (storyId, byHand) => {
      await pack()
      const ensured = await strategy.ensure(store, storyId, byHand)
      passLoose(store.git)
      return ensured
    },
    watch: (by, n) => {
      forgetLook(store)
      return watch(store, by, n)
    },
    keep: (n, mayBeSaved = false) => keep(store, n, mayBeSaved),
    // For a line on the screen: what hinders it hinders the revert, which says so.
    changed: (n) => changedBy(store, n).catch(() => []),
    made: () => watchMade(store),
    look: (since) => lookAt(store, since),
    without: (n) => withoutHidden(store, n),
    save: (storyId, message, judged, about) => save(strategy, store, storyId, message, judged, about),
    isAsLeft: () => store.git.forgiving(() => isAsLeft(store)),
    restore: () => restore(store),
    finish: (choice, message) => hintingSafely(store.git, () => strategy.finish(store, choice, message)),
    recover: () => recover(strategy, store),
  })
}

export async function keep(store: Store, n: number, mayBeSaved: boolean): Promise<KeptAttempt> {
  const snapshot = await requireSnapshot(store)
  refuseMounted(store, snapshot)
  const operation = { op: 'keep', n, commit: snapshot.commit, now_ms: store.clock.now() } as const
  return await store.operate(operation, () => keepAttempt(store, n, snapshot, mayBeSaved))
}

/** Without what the user committed meanwhile, where that stays. */
async function changedBy(store: Store, n: number): Promise<readonly string[]> {
  const { git } = store
  const { tree, head } = await requireSnapshot(store)
  const kept = await treeOf(git, `${store.refs}/attempts/${n}`)
  const [changed, now] = await Promise.all([changedPaths(git, tree, kept), readRefs(git)])
  if (now.head.commit === head.commit || now.head.commit === undefined) return changed.map(named)
  const before = await orEmpty(git, head.commit)
  const [committed, others] = await Promise.all([
    changedPaths(git, before, now.head.commit),
    changedPaths(git, kept, now.head.commit),
  ])
  const stays = new Set(committed.filter((path) => !others.includes(path)))
  return changed.filter((path) => !stays.has(path)).map(named)
}

async function save(
  strategy: Strategy,
  store: Store,
  storyId: string,
  message: string,
  judged: Judged | undefined,
  about = '',
): Promise<SavedCheckpoint> {
  const again = await savedBefore(store, message)
  if (again !== undefined) return again
  const snapshot = await requireSnapshot(store)
  refuseMounted(store, snapshot)
  const { attempt = 0 } = store.memory()
  const { tree, refs, refused } = await treeToSave(store, snapshot, judged)
  if (refused !== undefined) return { commit: snapshot.commit, changed: false, refused }
  const { parents, author, beside, headBack, complete } = await strategy.planSave(
    store,
    storyId,
    snapshot,
    refs,
  )
  // What the gates did to the user's files is no deed of the agent's, and kept with no attempt.
  const gone = judged?.isBinding === true ? await goneFiles(store, snapshot, tree) : []
  if (gone.length > 0) await moveRefs(store.git, 'archive', [beforeRef(store, snapshot)])
  const saved = await store.operate({ op: 'save', story: storyId, message }, async () => {
    await settleGates(store, snapshot)
    const text = about === '' ? message : `${message}\n\n${about}`
    const [commit] = await Promise.all([
      commitTree(store.git, tree, parents, text, author),
      // What the agent wrote: a tree that a power cut empties later would look like the user's edit of what is done.
      syncPaths(store.git, await changedPaths(store.git, snapshot.tree, tree)),
    ])
    await complete(commit, tree)
    const changed = tree !== snapshot.tree || !isSameInside(snapshot, await requireSnapshot(store))
    return { commit, changed, ...(gone.length > 0 && { gone }) }
  })
  await tellSwept(store, snapshot, await loadSnapshot(store))
  await tellAside(store, 'saved')
  await settled(store, beside, saved.commit)
  await tellObeyed(store, snapshot, attempt)
  await tellHidden(store, snapshot, { n: attempt, hasGates: judged?.isBinding === true })
  if (headBack !== undefined) await store.note({ type: 'warning', code: 'head_back', message: headBack })
  return saved
}

export async function restore(store: Store): Promise<{ commit: string; stays: readonly string[] }> {
  const snapshot = await requireSnapshot(store)
  refuseMounted(store, snapshot)
  const { beside, attempt } = store.memory()
  const holder = keptAs(store)
  const stays = await store.operate({ op: 'restore', commit: snapshot.commit }, async () => {
    const left = await restoreSnapshot(store, snapshot, holder)
    // Before it has ended: after a kill here nobody else would say it.
    await tellAside(store, 'reverted')
    await settled(store, [...beside, ...(store.memory().pending?.beside ?? [])], snapshot.commit)
    return left
  })
  if (attempt !== undefined) await tellObeyed(store, snapshot, attempt)
  return { commit: snapshot.commit, stays: stays.map(named) }
}

async function recover(strategy: Strategy, store: Store): Promise<Recovered> {
  await outwaitLocks(store, patienceMs)
  await putHiddenBack(store)
  const snapshot = await loadSnapshot(store)
  await outwaitInside(store, snapshot, patienceMs)
  await putBrokenAside(store, snapshot)
  await mendStashes(store.git)
  const { pending, beside } = store.memory()
  if (pending === undefined) return {}
  if (snapshot !== undefined) refuseMounted(store, snapshot)
  const what = await redo(strategy, store, pending, beside)
  await store.note({ type: 'git.ended', op: pending.operation.op })
  return typeof what === 'string' ? { said: what } : what
}

async function redo(
  strategy: Strategy,
  store: Store,
  pending: Pending,
  beside: GitMemory['beside'],
): Promise<string | Recovered> {
  const { operation } = pending
  if (operation.op === 'keep') {
    // What a kill cut off is reverted, never saved: nothing has to be put together for it.
    await keepAttempt(store, operation.n, await requireSnapshot(store), false)
    return `attempt ${operation.n} was kept`
  }
  if (operation.op !== 'restore') return await strategy.redo(store, pending)
  const found = await requireSnapshot(store)
  await store.git.forgiving(() => restoreFound(store, found))
  await tellAside(store, 'reverted')
  await settled(store, [...beside, ...pending.beside], (await requireSnapshot(store)).commit)
  return 'the revert to the last checkpoint was completed'
}

/** Nothing of it had begun to count. */
export async function drop(store: Store, { operation }: Pending, what: string): Promise<string> {
  await store.step(operation.op, { did: 'undone' })
  return `an unfinished ${what} was dropped; the work tree is as it was`
}
