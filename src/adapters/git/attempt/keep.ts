// Keeps what an attempt left, whole and under refs, and puts every ref back that its agent moved or deleted.
// Long because an attempt is kept in one go: each step needs what the one before it found.
import { join } from 'node:path'
import { once } from '../../../core/once.ts'
import { ownerOfOperation } from '../../../core/ownership.ts'
import { headWords } from '../../../core/ownership-tree.ts'
import type { KeptAttempt } from '../../../ports.ts'
import { putBackAliases, readAliases } from '../refs/aliases.ts'
import { conflictsIn, hasWork, strayCommits, workElsewhere } from '../refs/work-elsewhere.ts'
import { named, shown, type Git } from '../git.ts'
import { mendGitDirs } from '../submodules/git-dirs.ts'
import { takeFrom } from '../formats/index-file.ts'
import { steadily } from '../formats/ref-files.ts'
import { rememberLook } from './just-kept.ts'
import { attemptIndex, attemptTree, withHidden } from './attempt-tree.ts'
import { keptWords } from './kept-words.ts'
import { keptOut, lookAtKeptOut } from '../tree/kept-out.ts'
import { leftOut } from '../refs/work-left-out.ts'
import { mendRepository } from '../guard/mend.ts'
import { privateAgain } from '../tree/modes.ts'
import { autostashes, endOperations, halfDoneFolder, operationsInProgress } from '../start/operations.ts'
import { putBackOpened } from '../tree/owner-access.ts'
import { readLedger } from '../refs/ledger.ts'
import { missingObjects } from '../refs/pins.ts'
import type { Others } from '../formats/plain-tree.ts'
import { findMoved } from '../revert/moved-files.ts'
import { whyUnfit } from '../tree/required-filters.ts'
import { moveRefs, readRef, readRefs, type RefChanges, type Refs } from '../refs/refs.ts'
import { undoRefs } from '../refs/undo-refs.ts'
import { apart, leftBehind, planReunion, reunite } from './reunite.ts'
import type { Store } from '../store.ts'
import { exempt } from '../tree/scan.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { holdStripped } from '../tree/filtered-out.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { droppedRef } from '../stash/dropped.ts'
import { planStashes, putBackBeside, putBackStashes, readStashLog } from '../stash/stash-list.ts'
import { outwaitLocks } from '../guard/stale-locks.ts'
import { madeTrees, removeTrees } from '../refs/made-trees.ts'
import { keepSubmodules } from '../submodules/keep-submodules.ts'
import { changedPaths, commitTree, isAncestor, treeOf } from '../tree/tree.ts'
import { findSwept, sweptGone, sweptRef, tellLostIgnored } from './lost-ignored.ts'
import { besideRef, leaveFor } from '../refs/users-own.ts'
import { earlierValues, leftWhereItStands, planRefs } from '../refs/whose-refs.ts'

/** Idempotent: a second run of the same number finds the refs in place and adds only what is new. */
export async function keepAttempt(
  store: Store,
  n: number,
  snapshot: Snapshot,
  mayBeSaved: boolean,
): Promise<KeptAttempt> {
  return await store.git.forgiving(() => keepWhole(store, n, snapshot, mayBeSaved))
}

async function keepWhole(
  store: Store,
  n: number,
  snapshot: Snapshot,
  mayBeSaved: boolean,
): Promise<KeptAttempt> {
  const { git } = store
  const ref = `${store.refs}/attempts/${n}`
  await mendGitDirs(store, snapshot)
  const mended = await mendRepository(store, snapshot, n)
  const inside = await keepSubmodules(store, n, snapshot, mayBeSaved)
  const locks = await outwaitLocks(store, 3000)
  const [seenTree, seenRefs] = await steadily(git, async () => {
    const looked = once(() => lookAtRefs(store, n, snapshot))
    const others = async (): Promise<Others> => ((await looked()).isStill ? 'named' : 'any')
    return [await attemptTree(store, snapshot, true, others), await looked()] as const
  })
  const { tree: seen, nested, special, ignored, opened, paths, deleted, unfit } = seenTree
  const { ledger, besideBack, now, log, earlier, stashed, beside, stashes, were, strays, gone, plan } =
    seenRefs
  const { own: all, aliases } = plan
  // One that cannot come back must not keep the others away.
  const changes = {
    ...all,
    moved: all.moved.filter(({ from }) => !gone.has(from)),
    deleted: all.deleted.filter(({ from }) => !gone.has(from)),
  }
  const begun = operationsInProgress(git.gitDir)
  const stripped = unfit === '' ? await keepBytes(store, snapshot, seen, paths) : []
  const elsewhere = findMoved(store, snapshot, [...paths, ...ignored])
  const { tree, left } = await withHidden(store, snapshot, seen, ignored, elsewhere)
  putBackOpened(opened)
  const { head } = now
  const headMoved = head.commit !== undefined && head.commit !== snapshot.head.commit
  const onTop =
    headMoved &&
    (snapshot.head.commit === undefined || (await isAncestor(git, snapshot.head.commit, head.commit)))
      ? head.commit
      : undefined
  const descends = onTop !== undefined
  // The agent's own commits stay reachable whatever it did; so does the state that the attempt began with.
  const heads = descends ? [onTop, snapshot.commit] : [snapshot.commit, headMoved ? head.commit : undefined]
  const isPlain = descends && snapshot.commit === snapshot.head.commit
  const parents = earlier !== undefined ? [earlier] : isPlain ? heads.slice(0, 1) : heads
  // Asked again after the revert: there is nothing new, and nothing must lie on top of the attempt.
  const isKept = earlier !== undefined && (tree === snapshot.tree || (await treeOf(git, earlier)) === tree)
  const commit = isKept
    ? earlier
    : await commitTree(
        git,
        earlier === undefined ? tree : await withEarlier(store, snapshot, tree, earlier),
        parents,
        `attempt ${n}\n\nRalph-Base: ${snapshot.commit}`,
      )
  const out = lookAtKeptOut(store, snapshot, paths, elsewhere)
  await tellLostIgnored(store, snapshot, elsewhere)
  const commits = await madeCommits(git, snapshot, now, changes)
  const found = leftBehind(store, snapshot, ledger, { now, log, tree: seen, isOnTop: !headMoved || descends })
  const trees = await madeTrees(git, snapshot, ledger)
  const planned = mayBeSaved ? await planReunion(store, snapshot, found) : apart
  const why = mayBeSaved ? await whyNot() : ''
  const reunion = why === '' ? planned : { ...apart, refused: why }

  async function whyNot(): Promise<string> {
    const conflicts = begun.length > 0 ? await conflictsIn(git) : ''
    if (conflicts !== '') return conflicts
    const unfitting = inside.refused || (await whyUnfit(store, attemptIndex(store), { paths, unfit }))
    if (unfitting !== '') return unfitting
    if (out.refused !== '') return out.refused
    const left = await leftOut(git, snapshot, {
      tree: planned.to ?? seen,
      head: head.commit,
      refs: changes,
      stashes: stashes.made,
      ledger,
    })
    const isIdle = !headMoved && !inside.isChanged && !(await hasWork(git, snapshot.tree, seen))
    return left === '' && isIdle ? await workElsewhere(store, snapshot, trees, ledger) : left
  }

  const swept = await findSwept(
    store,
    snapshot,
    [...commits, ...changes.created.map(({ to }) => to), ...stashes.made.map(({ hash }) => hash)],
    ledger,
  )
  const leaked = descends ? await leakedPaths(store, snapshot, onTop, paths) : []
  // Without this step a checkpoint has the tree alone: what is in a branch's history gets pushed.
  if (descends && leaked.length === 0) await store.step('keep', { did: 'head', commit: onTop })
  for (const hash of beside) await store.step('keep', { did: 'beside', n, hash })
  const moved = `${store.refs}/moved/${n}`
  const aside = (name: string): string => `${moved}/${name.replace(/^refs\//, '')}`
  const pins = [
    ...were.map(({ name, from }) => [aside(`before/${name.replace(/^refs\//, '')}`), from] as const),
    ...stashes.gone.map((hash) => [droppedRef(store, n, hash), hash] as const),
    ...beside.map((hash) => [besideRef(store, n, hash), hash] as const),
    ...swept.map(({ commit: hash }) => [sweptRef(store, n, hash), hash] as const),
    ...strays.map((hash) => [aside(`commits/${hash.slice(0, 12)}`), hash] as const),
  ]
  await moveRefs(git, `attempt ${n}`, [
    `update ${ref} ${commit}`,
    ...(reunion.gone.length > 0 ? [beforeRef(store, snapshot)] : []),
    ...[...changes.moved, ...changes.created].map(({ name, to }) => `update ${aside(name)} ${to}`),
    ...stashes.made.map(({ hash }) => `update ${aside(`stash/${hash.slice(0, 12)}`)} ${hash}`),
    ...stashed.map((hash) => `update ${aside(`autostash/${hash.slice(0, 12)}`)} ${hash}`),
    ...trees.map(({ name, head }) => `update ${aside(`worktrees/${name}`)} ${head}`),
    ...pins.filter(([, hash]) => !gone.has(hash)).map(([name, hash]) => `update ${name} ${hash}`),
  ])
  if (head.ref !== snapshot.head.ref || head.ref === undefined)
    await leaveFor(store, snapshot.head, `after attempt ${n}`)
  const halfDone = { names: begun, by: ownerOfOperation(git.worktree, ledger), aside: halfDoneFolder(store) }
  await endOperations(git.gitDir, halfDone.aside)
  const standing = await removeTrees(git, trees)
  const away = changes.created.filter(({ name }) => !standing.some(({ branch }) => branch === name))
  const undone = await undoRefs(git, { ...changes, created: away }, `refs/heads/ralph/${store.change}`)
  await putBackAliases(git, aliases.own)
  await putBackStashes(git, snapshot.stash_log, {
    back: stashes.dropped.filter((hash) => !gone.has(hash)),
    away: stashes.made.map(({ hash }) => hash),
  })

  const united = reunion.to ?? seen
  const late = reunion.to === undefined ? [] : await reunite(store, snapshot, seen, reunion.to)
  if (mayBeSaved && (found.isSwept || ledger.switches.length > 0))
    await privateAgain(store.git, snapshot, united)
  const isRewritten = await anyRewritten(git, changes)
  const told = await keptWords(store, snapshot, {
    ref,
    moved,
    mayBeSaved,
    plan,
    changes: { ...changes, created: away },
    undone,
    gone,
    were,
    stashes,
    besideBack,
    halfDone,
    trees,
    standing,
    inside: inside.warnings,
    returned:
      reunion.warnings.length === 0 &&
      found.move !== undefined &&
      (!found.isOnTop || now.head.ref !== snapshot.head.ref)
        ? [
            `${headWords(found.move, 'agent')}; ${found.move.isRewritten === true ? 'its commits are as they were' : 'HEAD is back'}`,
          ]
        : reunion.warnings,
    late,
    mended,
    leaked,
    locks,
    nested,
    special,
    bytes: mayBeSaved ? out.warnings : stripped,
    elsewhere,
    ledger,
    left,
  })
  const isPlainWork = united === seen && nested.length + special.length + snapshot.gitlinks.length === 0
  if (isPlainWork)
    rememberLook(store, {
      mayBeSaved,
      base: snapshot.commit,
      n,
      tree: seen,
      index: attemptIndex(store),
      paths: [...paths, ...deleted],
    })
  return {
    ref,
    commit,
    commits,
    changed: united !== snapshot.tree || inside.isChanged,
    historyRewritten: isRewritten,
    ...told,
    tree: united,
    refused: reunion.refused,
    isElsewhere: !found.isOnTop && reunion.to === undefined,
    gone: [...reunion.gone, ...sweptGone(git, swept)],
  }
}

/** While git looks at the files: neither changes what the other sees. */
async function lookAtRefs(store: Store, n: number, snapshot: Snapshot) {
  const { git } = store
  const ledger = await readLedger(store, n)
  const besideBack = await putBackBeside(store, ledger)
  const [now, log, earlier, stashed] = await Promise.all([
    readRefs(git, true),
    readStashLog(git),
    readRef(git, `${store.refs}/attempts/${n}`),
    autostashes(git.gitDir),
  ])
  // Every file of a ref has just been looked at.
  const plan = planRefs(store, snapshot, now.all, await readAliases(git), ledger)
  const { own, others } = plan
  const beside = await leftWhereItStands(git, snapshot, now, ledger)
  const stashes = planStashes(snapshot.stash_log, log, ledger)
  const were = await earlierValues(git, others)
  const strays = strayCommits(snapshot, ledger)
  const gone = await missingObjects(git, [
    ...[...own.moved, ...own.deleted, ...were].map(({ from }) => from),
    ...stashes.dropped,
    ...stashes.gone,
    ...beside,
    ...strays,
  ])
  // Nothing but files: no object can count that the tree does not name.
  const isStill =
    now.head.commit === snapshot.head.commit &&
    [own, others].every(({ moved, created, deleted }) => [moved, created, deleted].every(isEmpty)) &&
    [beside, strays, stashed].every(isEmpty) &&
    [stashes.made, stashes.dropped, stashes.gone].every(isEmpty) &&
    [ledger.writes, ledger.switches, ledger.trees].every(isEmpty)
  return {
    ledger,
    besideBack,
    now,
    log,
    earlier,
    stashed,
    plan,
    beside,
    stashes,
    were,
    strays,
    gone,
    isStill,
  }
}

/** In stash mode no later checkpoint leads back to it. */
export function beforeRef({ refs }: Store, { commit }: Snapshot): string {
  return `update ${refs}/archive/before-${commit.slice(0, 12)} ${commit}`
}

function isEmpty({ length }: { readonly length: number }): boolean {
  return length === 0
}

/** Of an attempt, too, all bytes are kept, also those that a filter of the user's leaves out of git. */
async function keepBytes(
  store: Store,
  snapshot: Snapshot,
  tree: string,
  paths: readonly string[],
): Promise<string[]> {
  const held = await holdStripped(store, snapshot, tree, attemptIndex(store), paths)
  return held
    .filter(({ isNew }) => isNew)
    .map(
      ({ path, id }) =>
        `git's filters leave a part of ${named(path)} out; as the attempt left it: git cat-file blob ${id} > ${shellWord(shown(path))}`,
    )
}

/** Kept again by a repair, maybe after its revert: what was undone already stays in it, whole files as they were then. */
async function withEarlier(store: Store, snapshot: Snapshot, tree: string, earlier: string): Promise<string> {
  const { git } = store
  const now = new Set(await changedPaths(git, snapshot.tree, tree))
  const undone = (await changedPaths(git, snapshot.tree, earlier)).filter((path) => !now.has(path))
  if (undone.length === 0) return tree
  const index = join(store.folder, 'earlier-index')
  await git.run(['read-tree', tree], { index })
  await takeFrom(git, index, earlier, undone)
  return await git.line(['write-tree'], { index })
}

/** Ignored at the checkpoint, and in a commit now. */
async function leakedPaths(
  store: Store,
  snapshot: Snapshot,
  head: string,
  seen: readonly string[],
): Promise<string[]> {
  if (snapshot.head.ref?.startsWith('refs/heads/ralph/') !== true) return []
  const isExempt = exempt(store.protectedPaths, snapshot.ignored)
  const args = ['log', '-z', '-m', '--format=', '--name-only', '--no-renames', '--diff-filter=A']
  const added = await store.git.list([...args, `${snapshot.commit}..${head}`])
  const isOut = keptOut(store, snapshot)
  const isWork = new Set(seen.filter((path) => !isOut(path)))
  return [...new Set(added.filter((path) => isExempt(path) && !isWork.has(path)))]
}

async function madeCommits(git: Git, snapshot: Snapshot, now: Refs, changes: RefChanges): Promise<string[]> {
  const tips = [now.head.commit, ...changes.moved.map(({ to }) => to), ...changes.created.map(({ to }) => to)]
  if (tips.every((tip) => tip === undefined || tip === snapshot.commit)) return []
  const known = new Set([...Object.values(snapshot.refs), snapshot.commit])
  const fresh = tips.filter((tip) => tip !== undefined && !known.has(tip))
  if (fresh.length === 0) return []
  const input = `${[...fresh, ...[...known].map((hash) => `^${hash}`)].join('\n')}\n`
  const out = await git.line(['rev-list', '--reverse', '--topo-order', '--ignore-missing', '--stdin'], {
    input,
  })
  return out.split('\n').filter((hash) => hash !== '')
}

async function anyRewritten(git: Git, changes: RefChanges): Promise<boolean> {
  const branches = changes.moved.filter(({ name }) => name.startsWith('refs/heads/'))
  for (const { from, to } of branches) if (!(await isAncestor(git, from, to))) return true
  return false
}
