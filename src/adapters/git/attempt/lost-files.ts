// Files of the user's that an attempt took away, set back or wrote anew: which they are, and the command that brings each back.
import type { GoneFile } from '../../../core/event.ts'
import type { GitMemory } from '../../../core/git-memory.ts'
import { quoted } from '../../../core/shell-word.ts'
import { lstatNow } from '../tree/files.ts'
import { named, shown, type Git } from '../git.ts'
import { readRef, refsUnder } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { allTreeChanges, orEmpty, treeChanges } from '../tree/tree.ts'

/** Files that were in no commit when the loop began, or came beside an attempt since, and that this attempt removed, set back or wrote anew. */
export async function goneFiles(store: Store, snapshot: Snapshot, tree: string): Promise<GoneFile[]> {
  const { git } = store
  const { origin, initial } = store.memory()
  if (tree === snapshot.tree || origin === undefined || initial === undefined) return []
  const before = await orEmpty(git, origin.commit)
  const changes = (await treeChanges(git, before, initial)).filter(({ to }) => to !== undefined)
  const own = changes.map(({ path }) => ({ path, as: initial }))
  const missing = own.length === 0 ? [] : await lackedBy(git, before, tree, own)
  // Told once: what an earlier story took away is in the list already.
  const lacked = new Set(missing.length === 0 ? [] : await lackedBy(git, before, snapshot.tree, own))
  const isOwn = new Set(own.map(({ path }) => path))
  const since = (await goneSince(store, snapshot, tree)).filter((path) => !isOwn.has(path))
  const found = [...missing.filter((path) => !lacked.has(path)), ...since]
  // As they were before this attempt: they may have been edited since the loop began.
  return found.map((path) => goneFile(store.git, snapshot.commit, path))
}

/** What this attempt removed, and no attempt had left so: it came, or was edited, while the gates ran or between two attempts. */
async function goneSince(store: Store, snapshot: Snapshot, tree: string): Promise<string[]> {
  const { git } = store
  const { initial = '', later } = store.memory()
  const removed = (await treeChanges(git, snapshot.tree, tree)).filter(({ to }) => to === undefined)
  if (removed.length === 0 || later.length === 0) return []
  const came = new Set<string>()
  for (const [at, { n, commit }] of later.entries()) {
    const kept = n === undefined ? undefined : await readRef(git, `${store.refs}/attempts/${n}`)
    const earlier = kept ?? later[at - 1]?.commit ?? initial
    for (const { path, to } of await treeChanges(git, earlier, commit)) if (to !== undefined) came.add(path)
  }
  return removed.map(({ path }) => path).filter((path) => came.has(path))
}

/**
 * By what the run's refs hold, whatever was told on the way: the files that were in no commit when it began (`before`), or came or were
 * edited beside its attempts, and that its result has not, or has as they were committed, or with nothing of the user's. As each was last.
 */
export async function goneAtEnd(store: Store, before: string, tip: string): Promise<GoneFile[]> {
  const { git } = store
  const { initial, later } = store.memory()
  if (initial === undefined) return []
  const kept = await refsUnder(git, [`${store.refs}/attempts`])
  const pairs = later.map(({ n, commit }, at) => ({
    from: kept[`${store.refs}/attempts/${n}`] ?? later[at - 1]?.commit ?? initial,
    to: commit,
  }))
  const sources = [{ from: before, to: initial }, ...pairs]
  const had = new Map<string, string>()
  for (const [at, changes] of (await allTreeChanges(git, sources)).entries())
    for (const { path, to } of changes)
      if (to === undefined) had.delete(path)
      else had.set(path, sources[at]?.to ?? initial)
  const lacked = await lackedBy(
    git,
    before,
    tip,
    [...had].map(([path, as]) => ({ path, as })),
  )
  const found = await Promise.all(
    lacked.map(async (path) => {
      const commit = had.get(path) ?? initial
      // Its owner has set it back.
      const isOther = (await lackedBy(git, before, commit, [{ path, as: commit }])).length === 0
      return isOther ? [goneFile(git, commit, path)] : []
    }),
  )
  return found.flat()
}

function goneFile({ typed }: Git, commit: string, path: string): GoneFile {
  return { path: named(path), restore: restoreCommand(commit, path, typed) }
}

interface OwnFile {
  readonly path: string
  /** The commit that has it as its user left it. */
  readonly as: string
}

/** Paths that the tree has not, or has as they were committed, or without a line of what their user had written there. */
async function lackedBy(
  git: Git,
  committed: string,
  tree: string,
  own: readonly OwnFile[],
): Promise<string[]> {
  const changes = await treeChanges(git, committed, tree)
  const there = new Set(changes.filter(({ to }) => to !== undefined).map(({ path }) => path))
  const replaced = await replacedIn(
    git,
    committed,
    tree,
    own.filter(({ path }) => there.has(path)),
  )
  return own.map(({ path }) => path).filter((path) => !there.has(path) || replaced.has(path))
}

/** An edit is an agent's work; a file that was deleted and written again is as lost to its user as a deleted one. */
export async function replacedIn(
  git: Git,
  committed: string,
  tree: string,
  own: readonly OwnFile[],
): Promise<Set<string>> {
  const places = [...new Set(own.map(({ as }) => as))]
  const changed = await allTreeChanges(
    git,
    places.map((from) => ({ from, to: tree })),
  )
  const differs = new Map(places.map((as, at) => [as, new Set(changed[at]?.map(({ path }) => path))]))
  const edited = own.filter(({ path, as }) => differs.get(as)?.has(path) === true)
  const texts = await textsOf(
    git,
    edited.flatMap(({ path, as }) => [committed, as, tree].map((of) => `${of}:${path}`)),
  )
  const isReplaced = (_: OwnFile, at: number): boolean => {
    const [before = '', users, now] = texts.slice(at * 3, at * 3 + 3)
    if (users === undefined || now === undefined) return false
    const [old, there] = [linesOf(before), linesOf(now)]
    const written = [...linesOf(users)].filter((line) => !old.has(line))
    return written.length > 0 && !written.some((line) => there.has(line))
  }
  return new Set(edited.filter(isReplaced).map(({ path }) => path))
}

/** However they are indented, and whether a box is ticked or not: ralph ticks those itself. */
function linesOf(text: string): Set<string> {
  const lines = text.split('\n').map((line) => line.replace(/\[[ xX]\]/, '[]').trim())
  return new Set(lines.filter((line) => line !== ''))
}

/** Of each name (`<commit>:<path>`); undefined where there is no file, or one that is too long to compare. */
async function textsOf(git: Git, names: readonly string[]): Promise<(string | undefined)[]> {
  if (names.length === 0) return []
  const asked = (some: readonly string[]): Buffer =>
    Buffer.from(some.map((name) => `${name}\0`).join(''), 'latin1')
  const check = ['cat-file', '-z', '--batch-check=%(objecttype) %(objectsize)']
  const { out: sizes } = await git.run(check, { input: asked(names) })
  const isText: boolean[] = []
  for (let at = 0; isText.length < names.length;) {
    const missing = `${names[isText.length] ?? ''} missing\n`
    const isMissing = sizes.startsWith(missing, at)
    const end = isMissing ? at + missing.length : sizes.indexOf('\n', at) + 1
    const size = /^blob (\d+)\n$/.exec(sizes.slice(at, end))?.[1]
    isText.push(!isMissing && size !== undefined && Number(size) <= mostCompared)
    at = end
  }
  const few = names.filter((_, at) => isText[at])
  if (few.length === 0) return names.map(() => undefined)
  const { out } = await git.run(['cat-file', '-z', '--batch=%(objectsize)'], { input: asked(few) })
  let at = 0
  return isText.map((is) => {
    if (!is) return undefined
    const start = out.indexOf('\n', at) + 1
    const end = start + Number(out.slice(at, start))
    at = end + 1
    return out.slice(start, end)
  })
}

const mostCompared = 1e6

/** Of an earlier run: files of the user's that the work tree has not, or not as they had them. */
export async function leftInArchive(
  git: Git,
  memory: GitMemory,
  /** Those of before the run are with the user. */
  isBack: boolean,
): Promise<{ readonly before: GoneFile[]; readonly beside: GoneFile[] }> {
  return {
    before: isBack ? [] : await leftOfBefore(git, memory),
    beside: await leftOfBeside(git, memory),
  }
}

/** In no commit when the run began, and missing now, or as they were committed. */
async function leftOfBefore(git: Git, { origin, initial }: GitMemory): Promise<GoneFile[]> {
  if (origin === undefined || initial === undefined) return []
  const before = await orEmpty(git, origin.commit)
  const own = (await treeChanges(git, before, initial)).filter(({ to }) => to !== undefined)
  const there = own.filter(({ path, from }) => from !== undefined && isThere(git, path))
  const changed = await changedAgainst(git, before, there)
  const missing = own.filter(
    ({ path, from }) => !isThere(git, path) || (from !== undefined && !changed.includes(path)),
  )
  return missing.map(({ path }) => goneFile(git, initial, path))
}

/** Edited beside the loop, between two attempts, and so part of a checkpoint; as they were edited last. */
async function leftOfBeside(git: Git, { later }: GitMemory): Promise<GoneFile[]> {
  const left = new Map<string, string>()
  for (const { n, commit } of later) {
    if (n !== undefined) continue
    const parent = await git.line(['rev-parse', '--verify', `${commit}^`])
    const edits = (await treeChanges(git, parent, commit)).filter(({ to }) => to !== undefined)
    const there = edits.filter(({ path, from }) => from !== undefined && isThere(git, path))
    const changed = await changedAgainst(git, commit, there)
    for (const { path } of edits)
      if (!isThere(git, path) || changed.includes(path)) left.set(path, commit)
      else left.delete(path)
  }
  return [...left].map(([path, commit]) => goneFile(git, commit, path))
}

function isThere(git: Git, path: string): boolean {
  return lstatNow(git.worktree, path) !== undefined
}

async function changedAgainst(
  git: Git,
  commit: string,
  paths: readonly { readonly path: string }[],
): Promise<string[]> {
  if (paths.length === 0) return []
  const names = paths.map(({ path }) => path)
  return await git.list(['diff', '--name-only', '-z', commit, '--', ...names])
}

/** Works as typed, from any folder of the work tree. */
export function restoreCommand(commit: string, path: string, git: string): string {
  return `${git} restore --source=${commit} -- ${topPath(path)}`
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
