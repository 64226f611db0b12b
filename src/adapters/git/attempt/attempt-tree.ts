// The work tree as an attempt left it, as a git tree: what git sees, what the attempt forced on it, and what its own ignore rules hide.
import { join } from 'node:path'
import { whole } from '../../files/now.ts'
import { addRaw, cannotConvert } from '../tree/exact-bytes.ts'
import { lstatNow } from '../tree/files.ts'
import { dropFlags } from '../tree/flags.ts'
import { copyIndex, isSameIndex, realIndex } from '../formats/index-file.ts'
import type { Others } from '../formats/plain-tree.ts'
import { filesWithin, hiddenByAgent } from '../tree/hidden-by-agent.ts'
import { keptOut } from '../tree/kept-out.ts'
import type { Opened } from '../tree/owner-access.ts'
import { exempt } from '../tree/scan.ts'
import { indexMark, joined, treeOfIndex, writeTree } from '../tree/tree.ts'
import { openFiles, scanOpened } from '../tree/unreadable.ts'
import { findMoved } from '../revert/moved-files.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'

/** The index of the attempt stays: a checkpoint of the same tree starts from it. */
export async function attemptTree(
  store: Store,
  snapshot: Snapshot,
  /** What git cannot convert is taken as it is on disk: for what is kept, not for a checkpoint. */
  mayBeRaw = false,
  /** Asked while git looks. */
  others: () => Promise<Others> = () => Promise.resolve('any'),
): Promise<AttemptTree> {
  if (!mayBeRaw) return await treeNow(store, snapshot, false, others)
  return await store.git.forgiving(async (failed) => {
    const { unfit, ...found } = await treeNow(store, snapshot, true, others)
    return { ...found, unfit: unfit || failed() }
  })
}

interface AttemptTree {
  readonly tree: string
  readonly nested: readonly string[]
  readonly special: readonly string[]
  readonly ignored: readonly string[]
  readonly opened: readonly Opened[]
  /** Files that are not what the index had. */
  readonly paths: readonly string[]
  readonly deleted: readonly string[]
  /** What git said to files that it could not convert; empty where it could. */
  readonly unfit: string
}

async function treeNow(
  store: Store,
  snapshot: Snapshot,
  mayBeRaw: boolean,
  others: () => Promise<Others>,
): Promise<AttemptTree> {
  const index = attemptIndex(store)
  const { openAttempt = 0 } = store.memory()
  const mark = (): string => `${snapshot.commit} ${openAttempt} ${indexMark(index)}`
  // What was looked at before in this attempt need not be read again.
  if (seenBefore.get(index) !== mark()) {
    await copyIndex(store.git, join(store.folder, snapshot.index), index)
    await dropFlags(store.git, index)
  }
  const isExempt = keptOut(store, snapshot)
  const forced = await addForced(store, snapshot, index, isExempt)
  const [scanning, asked] = [scanOpened(store.git, { index }), others()]
  await whole([scanning, asked])
  const [scan, which] = [await scanning, await asked]
  const opened = openFiles(store.git, scan, isExempt)
  const changed = [...scan.changed, ...scan.untracked, ...forced]
  let unfit = ''
  const written = await writeTree(store.git, index, scan, isExempt, which).catch(async (error: unknown) => {
    unfit = mayBeRaw ? cannotConvert(error) : ''
    if (unfit === '') throw error
    const raw = await addRaw(
      store.git,
      snapshot,
      index,
      changed.filter((path) => !isExempt(path)),
    )
    return await writeTree(store.git, index, scan, (path) => isExempt(path) || raw.has(path))
  })
  if (written.nested.length + written.special.length === 0) seenBefore.set(index, mark())
  return {
    ...written,
    ignored: scan.ignored,
    opened,
    paths: changed,
    deleted: scan.deleted,
    unfit,
  }
}

/** What the attempt made and gave to git against the ignore rules (`git add -f`) is work. What was there before, and ignored, stays out. */
async function addForced(
  { git, folder }: Store,
  snapshot: Snapshot,
  index: string,
  isExempt: (path: string) => boolean,
): Promise<string[]> {
  const before = join(folder, snapshot.own_index ?? snapshot.index)
  if (isSameIndex(realIndex(git), before)) return []
  // An agent may have broken it: then it names nothing.
  const tracked = await git.list(['ls-files', '-z', '--cached', '--ignored', '--exclude-standard'], {
    accept: [128],
  })
  const forced = tracked.filter((path) => !isExempt(path) && lstatNow(git.worktree, path)?.isFile() === true)
  if (forced.length > 0)
    await git.run(['update-index', '--add', '-z', '--stdin'], { index, input: joined(forced) })
  return forced
}

/** Indexes of attempts that hold what was seen of a plain tree. */
const seenBefore = new Map<string, string>()

/** For the attempt alone: whether a checkpoint takes them is up to the ignore rules that it takes. */
export async function withHidden(
  store: Store,
  snapshot: Snapshot,
  tree: string,
  ignored: readonly string[],
  /** Ignored before: a revert puts it back, and an attempt has no business with it. */
  moved = findMoved(store, snapshot, ignored),
): Promise<{ tree: string; left: readonly string[] }> {
  const hidden = await hiddenByAgent(store, snapshot, ignored)
  const before = moved.map(({ now, isFolder }) => (isFolder ? `${now}/` : now))
  const isExempt = exempt(store.protectedPaths, [...snapshot.ignored, ...before])
  const { files, left } = await filesWithin(store.git, hidden, isExempt)
  if (files.length === 0) return { tree, left }
  const index = join(store.folder, 'hidden-index')
  await copyIndex(store.git, attemptIndex(store), index)
  await store.git.run(['update-index', '--add', '--replace', '-z', '--stdin'], {
    index,
    input: joined(files),
  })
  return { tree: await treeOfIndex(store.git, index), left }
}

export function attemptIndex(store: Store): string {
  return join(store.folder, 'attempt-index')
}
