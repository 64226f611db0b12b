// The first change to the repository: from where the user stands to `ralph/<change>`, files untouched.
// Long because each step of a start stands beside what redoes or undoes it after a kill.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { mkdir, rename } from '../../files/now.ts'
import { readIfThere, syncFiles } from '../../files/whole.ts'
import { RalphError } from '../../../core/error.ts'
import type { Head, RefName } from '../../../core/git-facts.ts'
import type { PreflightReport } from '../../../ports.ts'
import { attemptMoves } from '../attempt/attempts.ts'
import { checkOut } from '../tree/check-out.ts'
import { dropFlags, refuseHiddenEdits } from '../tree/flags.ts'
import { copyDurably, copyIndex, installIndex, realIndex } from '../formats/index-file.ts'
import type { Git } from '../git.ts'
import { putAway, wayOut } from './lost-record.ts'
import { nameYou, nobody } from '../formats/author.ts'
import { ownPathsNow } from '../formats/objects.ts'
import { isOfPlan } from '../tree/plan-path.ts'
import { storedOrigin, storeOrigin } from './starting-point.ts'
import {
  doubtful,
  refuseAlias,
  refuseClash,
  refuseName,
  refuseNewAlias,
  refuseReadOnly,
  refuseState,
} from './preflight.ts'
import { moveRefs, originName, readRefs, refsUnder, setHead, shortName, type Refs } from '../refs/refs.ts'
import { ofChange, timeName, type Store } from '../store.ts'
import { exempt, scanTree } from '../tree/scan.ts'
import { observe } from '../revert/observe.ts'
import { saveSnapshot } from '../revert/snapshot.ts'
import { differing, replaceIndex, stageIn } from '../attempt/staged.ts'
import { notePart } from './own-part.ts'
import { startingPoint } from './starting-point.ts'
import { refuseLockFiles } from '../guard/stale-locks.ts'
import { commitTree, orEmpty, treeOf, treeOfIndex, writeTree } from '../tree/tree.ts'

export type StartMode = 'start' | 'fresh' | 'resume'

export async function preflightBranch(store: Store, wish: StartMode): Promise<PreflightReport> {
  const { git, change } = store
  refuseName(change)
  refuseReadOnly(git)
  await refuseLockFiles(git, change)
  const [refs, scan] = await Promise.all([readRefs(git), scanTree(git)])
  const memory = store.memory()
  refuseClash(git, refs, change)
  const branch = `ralph/${change}`
  // A run that was killed before its first checkpoint, or settled by a cleanup, goes on from where the user stands.
  if (wish === 'resume' && memory.checkpoint !== undefined) {
    // What an attempt left that was cut off is found without that index.
    if (memory.openAttempt === undefined) await refuseHiddenEdits(git)
    if (memory.openAttempt === undefined && memory.origin !== undefined)
      await refuseNewAlias(git, memory.origin, {
        code: 'repository_state',
        again: `ralph resume ${change}`,
      })
    return {
      worktree: git.worktree,
      originalBranch: memory.origin === undefined ? '' : originName(memory.origin),
      branch,
      warnings: [],
    }
  }
  const mode = await modeNow(store, refs, wish)
  const origin = await originOf(store, refs, mode)
  await refuseState(git, scan, change)
  await refuseAlias(git, origin.ref)
  const isLost = mode === 'fresh' && (await knownOrigin(store)) === undefined
  const earlier = isLost ? await putAway(git, change) : ''
  const warnings = [
    ...(earlier === '' ? [] : [earlier]),
    ...(origin.commit === undefined
      ? [
          `${originName(origin)} has no commit yet, so there is nothing to come back to; first run: git add --all && git commit -m "start"`,
        ]
      : []),
    ...((await store.author()) === undefined ? [`${nobody}; yours: ${nameYou}`] : []),
    ...(await doubtful(git, scan, store.protectedPaths)),
  ]
  const own = [...scan.changed, ...scan.deleted, ...scan.untracked, ...scan.staged].filter(
    (path) => !isOfPlan(change, path) && !store.protectedPaths.includes(path),
  )
  return {
    worktree: git.worktree,
    originalBranch: originName(origin),
    branch,
    uncommitted: origin.commit === undefined ? 0 : new Set(own).size,
    warnings,
  }
}

export async function startBranch(store: Store, wish: StartMode): Promise<{ commit: string }> {
  if (wish === 'resume') {
    const { checkpoint } = store.memory()
    if (checkpoint !== undefined) return { commit: checkpoint }
  }
  const { git } = store
  await mkdir(store.folder, { recursive: true })
  const observed = await observe(store)
  const mode = await modeNow(store, observed.refs, wish)
  const origin = await originOf(store, observed.refs, mode)
  const previous = observed.refs.all[branchOf(store)]
  const time = timeName(store)
  const undo = await undoing(store, observed.refs.head)
  const made = store.operate({ op: 'start', origin, previous, time }, async () => {
    await storeOrigin(store, origin)
    const index = join(store.folder, 'start-index')
    const isAgain = observed.refs.head.ref === branchOf(store)
    if (isAgain) await keepStaging(store, origin)
    const staged = await saveUserIndex(store, index, {
      head: observed.refs.head.commit,
      isStaged: observed.scan.staged.length > 0,
      name: isAgain ? 'index-before' : 'user-index',
    })
    const nested = observed.scan.untracked.filter((path) => path.endsWith('/'))
    const isExempt = exempt(store.protectedPaths, [...observed.scan.ignored, ...nested])
    const { tree } = await writeTree(git, index, observed.scan, isExempt)
    const isEmpty = tree === (await treeOf(git, await orEmpty(git, observed.refs.head.commit)))
    const message = `initial state\n\n${isEmpty ? 'empty\n\n' : ''}${ofChange(store)}`
    const commit = await commitTree(git, tree, [observed.refs.head.commit], message, await store.author())
    await syncFiles([index])
    await rename(index, join(store.folder, `index-${commit}`))
    const part = await notePart(store, {
      initial: commit,
      origin: origin.commit,
      head: observed.refs.head.commit,
      isSame: mode === 'resume',
    })
    await store.step('start', { did: 'checkpoint', commit })
    await moveRefs(git, 'start', [
      `update ${branchOf(store)} ${commit} ${previous || '0'.repeat(commit.length)}`,
      `update ${store.refs}/checkpoint ${commit}`,
      ...(previous ? [`update ${store.refs}/archive/${time} ${previous}`] : []),
      ...(staged ? [`update ${store.refs}/index/${time} ${staged}`] : []),
      ...part,
      ...(mode === 'resume' ? [] : await attemptMoves(git, store.change, time)),
    ])
    await setHead(git, { ref: branchOf(store), commit }, 'start')
    await completeStart(store, commit, tree)
    return { commit }
  })
  return await made.catch(undo)
}

/** A fresh start that was killed before its first checkpoint goes on as one: the branch is still that of the run before. */
async function modeNow(store: Store, refs: Refs, mode: StartMode): Promise<StartMode> {
  const isCutOff = mode === 'resume' && refs.all[branchOf(store)] !== undefined
  return isCutOff && (await storedOrigin(store)) !== undefined ? 'fresh' : mode
}

/** A start that fails half-way leaves the repository as it was: HEAD, index and refs; or it is said that it could not. */
async function undoing(store: Store, head: Head): Promise<(error: unknown) => Promise<never>> {
  const { git } = store
  const index = join(store.folder, 'index-before')
  const [before, hadIndex] = await Promise.all([loopRefs(store), copyIndex(git, realIndex(git), index)])
  return async (error) => {
    try {
      const now = await readRefs(git)
      if (now.head.ref !== head.ref || (head.ref === undefined && now.head.commit !== head.commit))
        await setHead(git, head, 'undo start')
      if (!(await isSameFile(realIndex(git), index))) await installIndex(git, hadIndex ? index : undefined)
      await moveRefs(git, 'undo start', backTo(before, await loopRefs(store)))
    } catch (cause) {
      throw halfStarted(store, error, cause)
    }
    // A journal that takes no more says so itself, and a recovery finds nothing left to undo.
    await store
      .step('start', { did: 'undone' })
      .then(() => store.note({ type: 'git.ended', op: 'start' }))
      .catch(() => undefined)
    throw error
  }
}

/** From here on only the next command can help: it completes the start, or undoes it. */
function halfStarted({ change }: Store, error: unknown, cause: unknown): unknown {
  if (!(error instanceof RalphError)) return error
  return new RalphError('checkpoint_failed', error.message, {
    hint: `The start is half done: HEAD or the index may be those of ralph/${change} already. Your files are untouched, and what you had staged is saved. ${error.hint}`,
    cause,
  })
}

async function loopRefs({ git, change, refs }: Store): Promise<ReadonlyMap<string, string>> {
  return new Map(Object.entries(await refsUnder(git, [`refs/heads/ralph/${change}`, refs])))
}

function backTo(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): string[] {
  const made = [...now].filter(([name]) => !before.has(name)).map(([name, hash]) => `delete ${name} ${hash}`)
  const changed = [...before].filter(([name, hash]) => now.get(name) !== hash)
  return [...made, ...changed.map(([name, hash]) => `update ${name} ${hash}`)]
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([readIfThere(one), readIfThere(other)])
  return a === undefined || b === undefined ? a === b : a.equals(b)
}

/** Before HEAD moved nothing of the user's had changed: undone. After: completed. */
export async function redoStart(
  store: Store,
  previous: string | undefined,
  commit: string | undefined,
): Promise<string> {
  const { git } = store
  const refs = await readRefs(git)
  const tip = refs.all[branchOf(store)]
  if (commit !== undefined && tip === commit && refs.head.ref === branchOf(store)) {
    await completeStart(store, commit, await treeOf(git, commit))
    return 'the start of the loop was completed'
  }
  const isIntact = commit === undefined || tip !== commit || (await isInTree(store, commit))
  if (!isIntact && (await git.run(['status', '--porcelain', '-z', '--ignore-submodules=dirty'])).out === '') {
    const branch = `ralph/${store.change}`
    const left = await checkOut(git, ['--no-recurse-submodules', branch], branch, store.change)
    await completeStart(store, commit, await treeOf(git, commit))
    return `the start of the loop was completed; you had left ralph/${store.change}, where your uncommitted files are, and are back on it${left === '' ? '' : `; ${left}`}`
  }
  const holder = `${store.refs}/archive/${timeName(store)}`
  if (!isIntact) await moveRefs(git, 'undo start', [`update ${holder} ${commit}`])
  if (tip !== previous)
    await moveRefs(git, 'undo start', [
      previous ? `update ${branchOf(store)} ${previous}` : `delete ${branchOf(store)}`,
    ])
  await store.step('start', { did: 'undone' })
  return isIntact
    ? 'an unfinished start was undone; the repository is as it was'
    : `an unfinished start was undone; the files have changed since: as they were at the start they are kept as ${holder}`
}

/** Not so when the user has switched to another branch since: what was uncommitted stays behind on this one. */
async function isInTree(store: Store, commit: string): Promise<boolean> {
  const { changed, deleted } = await scanTree(store.git, { index: join(store.folder, `index-${commit}`) })
  return changed.length + deleted.length === 0
}

async function completeStart(store: Store, commit: string, tree: string): Promise<void> {
  const index = `index-${commit}`
  const next = join(store.folder, index)
  // What was staged at the start is saved; a start that is completed later may find more.
  const seen = ['user-index', 'index-before'].map((name) => join(store.folder, name))
  await replaceIndex(store, { next, seen })
  const fresh = ownPathsNow(store.git, commit) ?? (await ownPaths(store.git, commit))
  await saveSnapshot(store, await observe(store), {
    commit,
    tree,
    index,
    earlier: undefined,
    fresh,
  })
}

/** What the commit changes. */
async function ownPaths(git: Git, commit: string): Promise<string[]> {
  const how = ['-r', '-z', '--root', '--no-renames', '--no-commit-id', '--name-only']
  return await git.list(['diff-tree', ...how, commit])
}

/** Two copies: one, of this name, to give back at cleanup, one to work with. Returns a commit of what was staged, if anything was. */
async function saveUserIndex(
  store: Store,
  index: string,
  { head, isStaged, name }: { head: string | undefined; isStaged: boolean; name: string },
): Promise<string | undefined> {
  const { git } = store
  const own = join(store.folder, name)
  if (!(await copyDurably(git, realIndex(git), own))) {
    await git.run(['read-tree', '--empty'], { index })
    return undefined
  }
  await copyIndex(git, own, index)
  // A flag would hide an agent's edits from every later scan.
  await dropFlags(git, index)
  if (!isStaged) return undefined
  return await commitTree(git, await treeOfIndex(git, own), [head], 'staged before the loop')
}

/** A new run from the earlier run's branch: the index there is ralph's. What the user had staged before that run, and since, is given back. */
async function keepStaging({ git, folder }: Store, { commit }: Head): Promise<void> {
  const own = join(folder, 'user-index')
  if (!existsSync(own)) await git.run(['read-tree', commit ?? '--empty'], { index: own })
  await stageIn(git, own, (await differing(git, realIndex(git), 'HEAD')) ?? [])
  await syncFiles([own])
}

async function originOf(store: Store, refs: Refs, mode: StartMode): Promise<Head> {
  const { change, git, home } = store
  // In a work tree of its own the loop starts detached; the work is for the branch of the user's checkout.
  const { ref } = home === undefined ? refs.head : (await startingPoint(git.at(home), change)).head
  const { commit } = refs.head
  if (refs.all[branchOf(store)] !== undefined && mode !== 'fresh') {
    const isRecorded = (await knownOrigin(store)) !== undefined
    throw new RalphError(
      'branch_exists',
      `the branch ralph/${change} exists${isRecorded ? ': an earlier run was kept or not finished' : ', and ralph has no record of a run here'}`,
      {
        hint: !isRecorded
          ? await wayOut(git, change, { isApart: home !== undefined })
          : `Continue with \`ralph resume ${change}\`, or start over with \`ralph loop ${change} --fresh\` (its commits are archived).`,
      },
    )
  }
  const { carried } = store.memory()
  // Gone on with after a cleanup: the tree stands at the loop's own tip, the work is still for where the user stood.
  if (carried !== undefined) return carried.origin
  if (ref === undefined && commit !== undefined) return { commit }
  if (ref !== undefined && !ref.startsWith('refs/heads/ralph/')) return { ref, commit }
  const isOwn = ref === branchOf(store)
  const known = isOwn ? await knownOrigin(store) : undefined
  if (known !== undefined) return known
  throw new RalphError('repository_state', `you are still on ${shortName(ref ?? 'HEAD')}`, {
    hint: `Nothing was touched. ${isOwn ? await wayOut(git, change) : await wayHome(git, change)}`,
  })
}

/** Off the branch of another change. */
async function wayHome(git: Store['git'], change: string): Promise<string> {
  const { head, beside } = await startingPoint(git, change)
  const home = beside === undefined || head.ref === undefined ? 'YOUR-BRANCH' : shortName(head.ref)
  return `First: git switch ${home}`
}

async function knownOrigin(store: Store): Promise<Head | undefined> {
  return store.memory().origin ?? (await storedOrigin(store))
}

function branchOf(store: Store): RefName {
  return `refs/heads/ralph/${store.change}`
}
