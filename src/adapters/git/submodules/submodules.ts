// Submodules that are checked out: each is looked at, recorded and restored by the same code as the repository around it.
import { relative } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { compareAliases, putBackAliases, readAliases } from '../refs/aliases.ts'
import { attemptMoves } from '../attempt/attempts.ts'
import { insistOnConversions } from '../tree/conversions.ts'
import { shown, type Git } from '../git.ts'
import { mendRepository } from '../guard/mend.ts'
import { operationsInProgress } from '../start/operations.ts'
import { outwaitLocks } from '../guard/stale-locks.ts'
import { missingObjects } from '../refs/pins.ts'
import { compareRefs, madeAgain, moveRefs, readRefs } from '../refs/refs.ts'
import { restoreSnapshot } from '../revert/restore.ts'
import { timeName, type Store } from '../store.ts'
import {
  composeSnapshot,
  gitlinksOf,
  treeFolders,
  type Snapshot,
  type Submodule,
} from '../revert/snapshot.ts'
import { putBackStashes, readStashLog, stashEntries } from '../stash/stash-list.ts'
import { fullState, stagedTree, storeIndexes, type FullState } from '../stash/stash-state.ts'
import { nameInside, storeInside, storeOf, submoduleAt, writeLink, type CheckedOut } from './submodule.ts'
import { changedPaths, commitTree } from '../tree/tree.ts'

/** What was seen of one submodule, and of those inside it. */
export interface Inside extends CheckedOut {
  readonly store: Store
  readonly state: FullState
  readonly staged: string
  readonly inside: readonly Inside[]
  /** Of the last checkpoint, if it is the same repository. */
  readonly known: Snapshot | undefined
}

/** Only objects and private copies of indexes are written. */
export async function lookInside(
  store: Store,
  gitlinks: readonly string[],
  earlier: Snapshot | undefined,
): Promise<Inside[]> {
  const found = gitlinks.flatMap((path) => submoduleAt(store.git, path) ?? [])
  const seen: Inside[] = []
  for (let at = 0; at < found.length; at += atOnce) {
    const some = found.slice(at, at + atOnce)
    seen.push(...(await Promise.all(some.map((submodule) => lookInto(store, submodule, earlier)))))
  }
  return seen
}

/** Each asks git five things side by side. */
const atOnce = 4

async function lookInto(store: Store, submodule: CheckedOut, earlier: Snapshot | undefined): Promise<Inside> {
  const inner = storeInside(store, submodule.path, submodule.repository)
  const known = earlier?.submodules?.find(
    ({ path, link }) => path === submodule.path && link === submodule.link,
  )?.snapshot
  refuseHalfDone(inner)
  if (known !== undefined) await insistOnConversions(inner, known)
  const state = await fullState(inner, known)
  const [staged, folders] = await Promise.all([stagedTree(inner), treeFolders(inner.git, state.tree)])
  const inside = await lookInside(inner, gitlinksOf(folders), known)
  return { ...submodule, store: inner, state, staged, inside, known }
}

export function isInsideSame(inside: readonly Inside[], earlier: Snapshot | undefined): boolean {
  const submodules = earlier?.submodules ?? []
  if (inside.length !== submodules.length) return false
  return inside.every(({ known, state, staged, inside: inner }) => {
    if (known === undefined) return false
    const { head } = state.observed.refs
    const isHere = known.tree === state.tree && known.staged === staged
    return (
      isHere && known.head.ref === head.ref && known.head.commit === head.commit && isInsideSame(inner, known)
    )
  })
}

/** Of two checkpoints. */
export function isSameInside(one: Snapshot, other: Snapshot): boolean {
  const commits = ({ submodules = [] }: Snapshot): string =>
    submodules
      .map(
        ({ path, snapshot }) => `${path} ${snapshot.commit} ${snapshot.head.ref ?? ''}\n${commits(snapshot)}`,
      )
      .join('\n')
  return commits(one) === commits(other)
}

/** The part of a snapshot that is about submodules. */
export async function captureSubmodules(
  store: Store,
  gitlinks: readonly string[],
  earlier: Snapshot | undefined,
  seen?: readonly Inside[],
): Promise<Pick<Snapshot, 'gitlinks' | 'submodules' | 'submodule_settings'>> {
  const submodules: Submodule[] = []
  for (const inside of seen ?? (await lookInside(store, gitlinks, earlier)))
    submodules.push(await capture(inside))
  const settings =
    submodules.length === 0 ? {} : { submodule_settings: await readSubmoduleSettings(store.git) }
  return { gitlinks: [...gitlinks], submodules, ...settings }
}

async function capture({ path, link, store, state, staged, known, inside }: Inside): Promise<Submodule> {
  const { git } = store
  const { head } = state.observed.refs
  const isSame = known?.tree === state.tree && known.staged === staged && known.head.commit === head.commit
  const commit = isSame ? known.commit : await commitState(store, state, staged, known)
  if (known === undefined) {
    await moveRefs(git, 'archive', await attemptMoves(git, nameInside(store.change), timeName(store)))
    // After `git mv`: that setting is put back with the others that an agent changes.
    const place = relative(git.gitDir, git.worktree)
    const setting = ['config', '--local', 'core.worktree']
    // Written only where it is another: a kill in the middle of it would leave the settings locked.
    if (link !== null && (await git.line(setting, { accept: [1] })) !== place)
      await git.run([...setting, place])
  }
  if (!isSame) await moveRefs(git, 'checkpoint', [`update ${store.refs}/checkpoint ${commit}`])
  const indexes = await storeIndexes(store, commit)
  const fresh = known === undefined ? await sinceRecorded(store, path, state.tree) : []
  const parts = { commit, tree: state.tree, ...indexes, earlier: known, inside, fresh }
  return { path, link, snapshot: { ...(await composeSnapshot(store, state.observed, parts)), staged } }
}

/** Uncommitted for the repository around it: an agent of an earlier run may have committed in there what its user had not. */
async function sinceRecorded({ git, outer }: Store, path: string, tree: string): Promise<string[]> {
  if (outer === undefined) return []
  const { pending, origin } = outer.memory()
  const { commit } = (pending?.operation.op === 'start' ? pending.operation.origin : origin) ?? {}
  if (commit === undefined) return []
  const ask = ['rev-parse', '--verify', '--quiet']
  const recorded = await outer.git.line([...ask, `${commit}:${shown(path)}`], { accept: [1] })
  const known = recorded === '' ? '' : await git.line([...ask, `${recorded}^{commit}`], { accept: [1, 128] })
  return known === '' ? [] : await changedPaths(git, known, tree)
}

/** Holds the files, what is staged, HEAD, and the checkpoint before it: no gc takes any of them. */
async function commitState(
  { git, change }: Store,
  { tree, observed }: FullState,
  staged: string,
  known: Snapshot | undefined,
): Promise<string> {
  const head = observed.refs.head.commit
  const index = await commitTree(git, staged, [head], `staged, as the loop of ${change} found it`)
  return await commitTree(git, tree, [head, index, known?.commit], `as the loop of ${change} found it`)
}

/** After the work tree around them: their folders are there. Each step can be done again. */
export async function restoreSubmodules(store: Store, outer: Snapshot): Promise<void> {
  const { attempt = 0 } = store.memory()
  for (const { path, link, snapshot } of outer.submodules ?? []) {
    const inner = storeOf(store, { path, link })
    await writeLink(inner, link)
    await mendRepository(inner, snapshot, attempt)
    await putBackRefs(inner, snapshot)
    await restoreSnapshot(inner, snapshot, `${inner.refs}/attempts/${attempt}`)
  }
  await putBackSettings(store, outer)
}

/** What `git submodule deinit` took out of them. */
async function putBackSettings({ git }: Store, { submodule_settings: before }: Snapshot): Promise<void> {
  if (before === undefined) return
  const keys = new Set((await readSubmoduleSettings(git)).map((setting) => setting.split('\n')[0]))
  for (const setting of before) {
    const [key = '', ...value] = shown(setting).split('\n')
    if (!keys.has(key)) await git.run(['config', '--local', '--add', key, value.join('\n')])
  }
}

async function readSubmoduleSettings(git: Git): Promise<string[]> {
  return await git.list(['config', '--local', '-z', '--get-regexp', '^submodule\\.'], { accept: [1] })
}

/** Where the agent left them is kept under `moved/`. */
async function putBackRefs(store: Store, snapshot: Snapshot): Promise<void> {
  const { git } = store
  const [now, aliases, log] = await Promise.all([
    readRefs(git, true),
    readAliases(git, true),
    readStashLog(git),
  ])
  const { moved, deleted, created } = compareRefs(snapshot.refs, now.all)
  const [were, are] = [snapshot.stash_log, log].map((text) => stashEntries(text).map(({ hash }) => hash))
  const dropped = were?.filter((hash) => are?.includes(hash) !== true) ?? []
  const fresh = are?.filter((hash) => were?.includes(hash) !== true) ?? []
  const gone = await missingObjects(git, [...[...moved, ...deleted].map(({ from }) => from), ...dropped])
  const aside = (name: string): string =>
    `${store.refs}/moved/${timeName(store)}/${name.replace(/^refs\//, '')}`
  // Apart from the rest: a branch `a/b` makes room for a branch `a`.
  await moveRefs(git, 'restore', [
    ...[...moved, ...created].map(({ name, to }) => `update ${aside(name)} ${to}`),
    ...fresh.map((hash) => `update ${aside(`stash/${hash.slice(0, 12)}`)} ${hash}`),
    ...created.map(({ name, to }) => `delete ${name} ${to}`),
  ])
  await moveRefs(git, 'restore', [
    ...moved
      .filter(({ from }) => !gone.has(from))
      .map(({ name, from, to }) => `update ${name} ${from} ${to}`),
    ...(await Promise.all(deleted.filter(({ from }) => !gone.has(from)).map((each) => madeAgain(git, each)))),
  ])
  await putBackAliases(git, compareAliases(snapshot, { aliases, refs: now.all }))
  await putBackStashes(git, snapshot.stash_log, {
    back: dropped.filter((hash) => !gone.has(hash)),
    away: fresh,
  })
}

/** Before a recovery: what a killed git has locked in them is free again. */
export async function outwaitInside(
  store: Store,
  snapshot: Snapshot | undefined,
  waitMs: number,
): Promise<void> {
  for (const submodule of snapshot?.submodules ?? []) {
    const inner = storeOf(store, submodule)
    await outwaitLocks(inner, waitMs)
    await outwaitInside(inner, submodule.snapshot, waitMs)
  }
}

function refuseHalfDone({ git }: Store): void {
  const halfDone = operationsInProgress(git.gitDir)
  if (halfDone.length === 0) return
  throw new RalphError(
    'repository_state',
    `a ${halfDone.join(' and a ')} is in progress in the submodule ${git.worktree}`,
    {
      hint: 'Finish it or abort it there (`git status` says how), then type the command again. Nothing was touched.',
    },
  )
}
