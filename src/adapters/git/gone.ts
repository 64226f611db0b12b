// Files of the user's that an attempt took away or set back: which they are, and the command that brings each back.
import type { GoneFile } from '../../core/event.ts'
import type { GitMemory } from '../../core/git-memory.ts'
import { quoted } from '../process/shell-word.ts'
import { lstatNow } from './files.ts'
import { named, shown, type Git } from './git.ts'
import { readRef } from './refs.ts'
import type { Store } from './store.ts'
import type { Snapshot } from './snapshot.ts'
import { orEmpty, treeChanges } from './tree.ts'

/** Files that were in no commit when the loop began, or came beside an attempt since, and that this attempt removed or set back. */
export async function goneFiles(store: Store, snapshot: Snapshot, tree: string): Promise<GoneFile[]> {
  const { git } = store
  const { origin, initial } = store.memory()
  if (tree === snapshot.tree || origin === undefined || initial === undefined) return []
  const before = await orEmpty(git, origin.commit)
  const own = (await treeChanges(git, before, initial)).filter(({ to }) => to !== undefined)
  const missing = own.length === 0 ? [] : await lackedBy(git, before, tree, own)
  // Told once: what an earlier story took away is in the list already.
  const lacked = new Set(missing.length === 0 ? [] : await lackedBy(git, before, snapshot.tree, own))
  const isOwn = new Set(own.map(({ path }) => path))
  const since = (await goneSince(store, snapshot, tree)).filter((path) => !isOwn.has(path))
  const found = [...missing.filter((path) => !lacked.has(path)), ...since]
  // As they were before this attempt: they may have been edited since the loop began.
  return found.map((path) => goneFile(snapshot.commit, path))
}

/** What this attempt removed, and no attempt had made: it came while the gates ran, or between two attempts. */
async function goneSince(store: Store, snapshot: Snapshot, tree: string): Promise<string[]> {
  const { git } = store
  const { initial = '', later } = store.memory()
  const removed = (await treeChanges(git, snapshot.tree, tree)).filter(({ to }) => to === undefined)
  if (removed.length === 0 || later.length === 0) return []
  const came = new Set<string>()
  for (const [at, { n, commit }] of later.entries()) {
    const kept = n === undefined ? undefined : await readRef(git, `${store.refs}/attempts/${n}`)
    const earlier = kept ?? later[at - 1]?.commit ?? initial
    for (const { path, from } of await treeChanges(git, earlier, commit))
      if (from === undefined) came.add(path)
  }
  return removed.map(({ path }) => path).filter((path) => came.has(path))
}

function goneFile(commit: string, path: string): GoneFile {
  return { path: named(path), restore: restoreCommand(commit, path) }
}

/** Paths that the tree has not, or has as they were committed. */
async function lackedBy(
  git: Git,
  committed: string,
  tree: string,
  own: readonly { readonly path: string }[],
): Promise<string[]> {
  const changes = await treeChanges(git, committed, tree)
  const there = new Set(changes.filter(({ to }) => to !== undefined).map(({ path }) => path))
  return own.map(({ path }) => path).filter((path) => !there.has(path))
}

/** Of an earlier run: files that were in no commit when it began, and that the work tree has not, or has as they were committed. */
export async function leftInArchive(git: Git, { origin, initial }: GitMemory): Promise<GoneFile[]> {
  if (origin === undefined || initial === undefined) return []
  const before = await orEmpty(git, origin.commit)
  const own = (await treeChanges(git, before, initial)).filter(({ to }) => to !== undefined)
  const there = own.filter(
    ({ path, from }) => from !== undefined && lstatNow(git.worktree, path) !== undefined,
  )
  const changed =
    there.length === 0
      ? []
      : await git.list([
          'diff',
          '--name-only',
          '-z',
          before,
          '--',
          ...there.map(({ path }) => `:(top,literal)${path}`),
        ])
  const missing = own.filter(
    ({ path, from }) =>
      lstatNow(git.worktree, path) === undefined || (from !== undefined && !changed.includes(path)),
  )
  return missing.map(({ path }) => goneFile(initial, path))
}

/** Works as typed, from any folder of the work tree. */
export function restoreCommand(commit: string, path: string): string {
  return `git restore --source=${commit} -- ${topPath(path)}`
}

/** As a word of a git command, from any folder of the work tree. */
export function topPath(path: string): string {
  // What follows `:/` is read as more magic unless it is a letter, a digit or a dot.
  const magic = /[*?[\\]|^[!-\-/:-@[-`{-~]/.test(path) ? ':(top,literal)' : ':/'
  return shellName(`${magic}${path}`)
}

/** Spelled out where a terminal, or a line of output, would not show the bytes as they are. */
export function shellName(path: string): string {
  const text = shown(path)
  if (!/[\p{Cc}\uFFFD]|\s\s|\s$/u.test(text)) return quoted(text)
  const bytes = path.replace(
    /[^!-~]|['\\]/g,
    (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return `$'${bytes}'`
}
