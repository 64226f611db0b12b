// Puts an attempt's work together with what a switch of HEAD or a sweep by git has taken out of the work tree.
import { firstNames } from '../../../core/first-names.ts'
import type { GoneFile } from '../../../core/event.ts'
import { ownerOfStash, type Ledger } from '../../../core/ownership.ts'
import { isSweptBy, judgeTree, moverOf, type HeadMove } from '../../../core/ownership-tree.ts'
import { mkdir } from '../../files/now.ts'
import { applyTrees, tryMerge } from '../landing/apply.ts'
import { putBackBytes } from '../tree/exact-bytes.ts'
import { lstatIfThere, onDisk } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import { goneFiles, restoreCommand } from './lost-files.ts'
import { putBackModes } from '../tree/modes.ts'
import type { Head } from '../../../core/git-facts.ts'
import { placeOf, shortName, type Refs } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { stashEntries, type StashEntry } from '../stash/stash-list.ts'
import { changedPaths, emptyTree, orEmpty, treeOf } from '../tree/tree.ts'

/** What an attempt left, before anything of it is put back. */
export interface Left {
  readonly head: Head
  /** HEAD holds the commit that the attempt began at. */
  readonly isOnTop: boolean
  readonly tree: string
  /** Who moved HEAD, if anybody did. */
  readonly move?: HeadMove
  readonly isSwept: boolean
  /** Entries of others than the agent, made in this work tree while it worked. */
  readonly stashes: readonly StashEntry[]
}

export interface Reunion {
  /** The tree to be written; absent when it stays as it is. */
  readonly to?: string
  readonly refused: string | undefined
  readonly gone: readonly GoneFile[]
  /** For a person: what was put together, and why. */
  readonly warnings: readonly string[]
}

export const apart: Reunion = { refused: undefined, gone: [], warnings: [] }

export function leftBehind(
  store: Store,
  snapshot: Snapshot,
  ledger: Ledger,
  { now, log, tree, isOnTop }: { now: Refs; log: string; tree: string; isOnTop: boolean },
): Left {
  const { head } = now
  const isMoved = head.ref !== snapshot.head.ref || head.commit !== snapshot.head.commit
  const commands = ledger.commands.filter(({ worktree }) => worktree === store.git.worktree)
  const own = commands.filter(({ by }) => by === 'agent')
  return {
    head,
    isOnTop,
    tree,
    ...(isMoved && {
      move: {
        to: placeOf(head),
        by: moverOf(snapshot.head, head, { ...ledger, commands }),
        isRewritten: head.ref === snapshot.head.ref && head.ref !== undefined && !isOnTop,
      },
    }),
    // Where no command was seen, moving HEAD says what was done.
    isSwept: own.length === 0 ? isMoved && !isOnTop : isSweptBy(own),
    stashes: othersStashes(snapshot, head, log, ledger),
  }
}

/** Made in this work tree since the checkpoint, by nobody's git that was watched. Other work trees share the list. */
export function othersStashes(snapshot: Snapshot, head: Head, log: string, ledger: Ledger): StashEntry[] {
  const known = new Set(stashEntries(snapshot.stash_log).map(({ hash }) => hash))
  const places = [snapshot.head, head].map(({ ref }) => (ref === undefined ? '(no branch)' : shortName(ref)))
  return stashEntries(log).filter(
    ({ hash, message }) =>
      !known.has(hash) &&
      ownerOfStash(hash, ledger) === 'user' &&
      places.some((place) => /^(WIP on|On) /.test(message) && message.includes(`n ${place}:`)),
  )
}

/** Writes nothing but objects. */
export async function planReunion(store: Store, snapshot: Snapshot, left: Left): Promise<Reunion> {
  const { git } = store
  const isAway = left.move !== undefined && !left.isOnTop
  const taken = await Promise.all(left.stashes.map((entry) => takenBy(git, entry, left.tree)))
  const compared =
    isAway || left.isSwept
      ? await compare(git, snapshot, left)
      : { base: snapshot.tree, missing: [], rewritten: [] }
  const judgement = judgeTree({
    ...(isAway && { left: left.move }),
    isRootless: compared.base === undefined,
    isSwept: left.isSwept,
    missing: compared.missing,
    rewritten: compared.rewritten,
    stashed: taken.flat(),
  })
  if (judgement.do === 'fail') {
    const entry = left.stashes.find((_, at) => (taken[at] ?? []).length > 0)
    const where =
      entry && `; they are in the entry "${entry.message}": git stash apply ${entry.hash.slice(0, 12)}`
    return { ...apart, refused: `${judgement.why}${where ?? ''}` }
  }
  if (judgement.do === 'take' || compared.base === undefined)
    return { ...apart, gone: await goneFiles(store, snapshot, left.tree) }
  const { tree, conflicts } = await tryMerge(git, compared.base, snapshot.tree, left.tree)
  if (conflicts.length > 0) {
    const refused = `${judgement.why}; its work cannot be merged with the files that were there before, both changed ${listed(conflicts)}`
    return { ...apart, refused }
  }
  const gone = await goneFiles(store, snapshot, tree)
  if (tree === left.tree) return { ...apart, gone }
  const back = await changedPaths(git, left.tree, tree)
  return {
    to: tree,
    refused: undefined,
    gone,
    warnings: [`${judgement.why}; what that took out of the work tree is back in it: ${listed(back)}`],
  }
}

/** The tree of the commit that was worked from (none: the history is a new one), and what became of the checkpoint's files since. */
async function compare(
  git: Git,
  snapshot: Snapshot,
  { head, tree }: Left,
): Promise<{ base: string | undefined; missing: readonly string[]; rewritten: readonly string[] }> {
  const commit = await workedFrom(git, snapshot, head.commit)
  const base = await treeOf(git, await orEmpty(git, commit))
  const [own, theirs, apart] = await Promise.all([
    changedPaths(git, base, snapshot.tree),
    changedPaths(git, base, tree),
    changedPaths(git, snapshot.tree, tree),
  ])
  const isTheirs = new Set(theirs)
  const isApart = new Set(apart)
  return {
    base: commit === undefined ? undefined : base,
    missing: own.filter((path) => !isTheirs.has(path)),
    rewritten: own.filter((path) => isTheirs.has(path) && isApart.has(path)),
  }
}

/** Idempotent. What comes back has the bytes and the permissions that it had; empty folders are there again. Returns what to tell. */
export async function reunite(store: Store, snapshot: Snapshot, from: string, to: string): Promise<string[]> {
  const { git } = store
  const [changed, others] = await Promise.all([
    changedPaths(git, from, to),
    changedPaths(git, snapshot.tree, to),
  ])
  const late = await applyTrees(git, store.folder, from, to, store.protectedPaths)
  const isOther = new Set([...others, ...late])
  const back = new Set(changed.filter((path) => !isOther.has(path)))
  const only = <T>(of: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(of).filter(([path]) => back.has(path)))
  const came = { ...snapshot, own: [], modes: only(snapshot.modes), bytes: only(snapshot.bytes) }
  await putBackBytes(store, came, () => false)
  putBackModes(git, came, () => false)
  for (const folder of snapshot.empty) {
    if ((await lstatIfThere(git.worktree, folder.slice(0, -1))) === undefined)
      await mkdir(onDisk(git.worktree, folder), { recursive: true })
  }
  return lateTold(late)
}

/**
 * The newest commit in its history that was there before the attempt; undefined when there is none. Not the merge base:
 * of a branch that had commits of its own, these are no part of the agent's work.
 */
export async function workedFrom(
  git: Git,
  snapshot: Snapshot,
  commit: string | undefined,
  areRemotesKnown = true,
): Promise<string | undefined> {
  if (commit === undefined) return undefined
  const known = [snapshot.commit, snapshot.head.commit, ...Object.values(snapshot.refs)]
  const input = [
    commit,
    ...[...new Set(known)].filter((hash) => hash !== undefined).map((hash) => `^${hash}`),
    '',
  ].join('\n')
  const args = ['rev-list', '--boundary', '--ignore-missing', '--stdin']
  if (areRemotesKnown) args.push('--not', '--remotes')
  const lines = (await git.line(args, { input })).split('\n').filter((line) => line !== '')
  if (lines.length === 0) return commit
  const boundary = lines.filter((line) => line.startsWith('-')).map((line) => line.slice(1))
  if (boundary.length === 1) return boundary[0]
  return (await git.line(['merge-base', snapshot.commit, commit], { accept: [1] })) || undefined
}

/** What a stash entry holds and the tree has no longer. */
export async function takenBy(git: Git, { hash }: StashEntry, tree: string): Promise<string[]> {
  const untracked = await git.line(['rev-parse', '--verify', '--quiet', `${hash}^3`], { accept: [1] })
  const pairs = [[`${hash}^1`, hash], ...(untracked === '' ? [] : [[await emptyTree(git), untracked]])]
  const lost: string[] = []
  for (const [before = '', held = ''] of pairs) {
    const there = new Set(await changedPaths(git, before, tree))
    lost.push(...(await changedPaths(git, before, held)).filter((path) => !there.has(path)))
  }
  return lost
}

/** Written by the user between the look and the change that was about to follow; `holder` has what was to be there. */
export function lateTold(late: readonly string[], holder?: { ref: string; typed: string }): string[] {
  if (late.length === 0) return []
  const isOne = late.length === 1
  const told = `in the same moment ${listed(late)} ${isOne ? 'was saved, and stays as it is' : 'were saved, and stay as they are'}`
  if (holder === undefined) return [told]
  const instead = late.slice(0, 10).map((path) => restoreCommand(holder.ref, path, holder.typed))
  return [`${told}; what was to be there is in ${holder.ref}, to take that instead: ${instead.join(' && ')}`]
}

/** Ten of them at most. */
export function listed(paths: readonly string[]): string {
  return firstNames(paths.map(named), 10)
}
