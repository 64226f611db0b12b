// The state to come back to, in full: tree, HEAD, index, refs, stashes, ignored paths and empty folders.
// Long because its parts are looked up in one place: one that is missing here is one that a revert forgets.
import { statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { drop, readdir } from '../../files/now.ts'
import { mountsBelow } from '../../files/mounts.ts'
import { fileMark, readRecord, writeDurably } from '../../files/whole.ts'
import { RalphError } from '../../../core/error.ts'
import { headOf, type Head, type RefName } from '../../../core/git-facts.ts'
import { readAliases } from '../refs/aliases.ts'
import { globalSettings } from '../tree/conversions.ts'
import { exactBytesSchema, rememberBytes } from '../tree/exact-bytes.ts'
import { above, lstatNow, placeIn } from '../tree/files.ts'
import { listingOf } from '../tree/listing.ts'
import type { Git } from '../git.ts'
import { forgetOthers, rememberGuarded } from '../guard/guarded.ts'
import { findObeyed, guardedFileSchema } from '../guard/guarded-files.ts'
import { findWaysOut } from '../guard/ways-out.ts'
import { mirrorGitDirs } from '../submodules/git-dirs.ts'
import { copyDurably, isSameIndex, realIndex } from '../formats/index-file.ts'
import { linkedNames } from '../formats/linked-trees.ts'
import { filesInside, keptOut } from '../tree/kept-out.ts'
import { wayOut } from '../start/lost-record.ts'
import { readFolderModes, readModes } from '../tree/modes.ts'
import { rememberPlaces } from './moved-files.ts'
import { learnFolders, treeFoldersNow, type TreeFolder } from '../formats/objects.ts'
import { isSameToPin, pinTips } from '../refs/pins.ts'
import { baseFile, withBase, withRef, writeBase } from '../refs/ref-picture.ts'
import { rememberUnignored, unignoredSchema } from '../tree/unignored.ts'
import type { Refs } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import { exempt, type Scan } from '../tree/scan.ts'
import type { Settings } from '../formats/settings.ts'
import { presentOutside } from '../tree/sparse.ts'
import { storeOf } from '../submodules/submodule.ts'
import { captureSubmodules, type Inside } from '../submodules/submodules.ts'
import { changedPaths, entryPath, indexEntries } from '../tree/tree.ts'
import type { Unseen } from '../tree/unseen.ts'

/** Earlier versions wrote an empty text where there was none. */
const maybeText = z
  .string()
  .optional()
  .transform((text) => text || undefined)

const refMapSchema = z.record(z.string(), z.string()).readonly()

const submoduleSchema = z.object({
  /** From the root of the repository that holds it. */
  path: z.string(),
  /** Bytes of its `.git` file; null where that is the git directory itself. */
  link: z.string().nullable(),
  get snapshot() {
    return snapshotSchema
  },
})

const snapshotSchema = z.object({
  /** Holds the whole tree: tracked and untracked, not ignored. */
  commit: z.string(),
  tree: z.string(),
  head: z.preprocess(
    headOf,
    z.custom<Head>((head) => head !== undefined),
  ),
  /** Index of `tree`, a file in the private folder. */
  index: z.string(),
  /** The user's own index, where it differs from `index` (stash); `none`: there was none. */
  own_index: maybeText,
  /** Of a record on the disk those that differ from `refs_base`; with an empty hash what is not there any more. */
  refs: refMapSchema,
  /** A file beside it, for it is long and seldom changes. */
  refs_base: z.string().optional(),
  /** Other names for a ref, by what they lead to; see aliases.ts. */
  aliases: refMapSchema.optional(),
  stash_log: z.string(),
  /** Names in `.git/worktrees`. */
  worktrees: z.array(z.string()).optional(),
  /** Settings, hooks and info/ of the git directory; see guarded-files.ts. */
  guarded: z.record(z.string(), guardedFileSchema).optional(),
  /** Links in places of the git directory that git writes to; see ways-out.ts. */
  ways_out: z.record(z.string(), z.string()).optional(),
  /** The setting `core.hooksPath`. */
  hooks_path: maybeText,
  /** In the work tree, what the user's git runs or reads as settings; see `findObeyed`. */
  included: z.array(z.string()).default([]),
  obeyed: z.record(z.string(), z.string()).default({}),
  /** The setting `core.excludesFile`. */
  excludes_file: maybeText,
  ignored: z.array(z.string()),
  /** Of folders among these, their files; see kept-out.ts. */
  inside: z.record(z.string(), z.array(z.string())).optional(),
  /** Of `ignored`: what tells each of them from all others, wherever it lies; see moved-files.ts. */
  places: z.record(z.string(), z.string()).optional(),
  empty: z.array(z.string()),
  /** What git does not see; see unseen.ts. */
  special: z.array(z.string()).default([]),
  deep: z.array(z.string()).default([]),
  /** See mounted.ts; earlier versions did not look. */
  mounts: z.array(z.string()).optional(),
  /** In a sparse checkout: what is there although it is left out. */
  outside: z.array(z.string()).optional(),
  /** Folders with tracked files that hold a repository of their own. */
  nested: z.array(z.string()),
  /** A mark of the hashes under refs/ralph/<change>/pins. */
  pinned: maybeText,
  /** Permission bits that git would not bring back. */
  modes: z.record(z.string(), z.number()).default({}),
  /** Uncommitted at the start, or made or changed by the loop: what of them git does not keep is kept here. */
  own: z.array(z.string()).default([]),
  /** Of those that git converts. */
  bytes: exactBytesSchema.default({}),
  unignored: unignoredSchema.optional(),
  unkept: z.number().optional(),
  /** Repositories of others in the work tree, with a slash at the end. */
  repositories: z.array(z.string()).optional(),
  /** Settings of the run's start that decide what is converted, and a mark of the files that hold the user's own. */
  conversions: z.array(z.tuple([z.string(), z.string()])).optional(),
  global_settings: maybeText,
  /** Of the folders of `tree` and the empty ones; see `readFolderModes`. */
  folder_modes: z.record(z.string(), z.number()).optional(),
  /** Tree of what is staged; of submodules only. */
  staged: z.string().optional(),
  /** Every submodule that `tree` names, checked out or not. */
  gitlinks: z.array(z.string()).default([]),
  /** Those that are checked out. */
  get submodules() {
    return z.array(submoduleSchema).optional()
  },
  /** Settings `submodule.*` of the repository, where one is checked out. */
  submodule_settings: z.array(z.string()).optional(),
  /** Git directories of submodules, from the repository's own; see git-dirs.ts. */
  git_dirs: z.array(z.string()).optional(),
})
export type Snapshot = z.infer<typeof snapshotSchema>
export type Submodule = z.infer<typeof submoduleSchema>

/** What was seen of the work tree when the snapshot was taken. */
export interface Observed {
  readonly refs: Refs
  readonly stashLog: string
  readonly scan: Scan
  /** Of the whole tree, with what is ignored. */
  readonly unseen: Unseen
  readonly empty: readonly string[]
  readonly settings: Settings
}

interface SnapshotParts {
  readonly commit: string
  readonly tree: string
  readonly index: string
  readonly ownIndex?: string
  readonly earlier: Snapshot | undefined
  /** Paths that became part of the checkpoint just now. */
  readonly fresh?: readonly string[]
  /** What was seen of the submodules, if they were looked into already. */
  readonly inside?: readonly Inside[]
}

export async function saveSnapshot(store: Store, observed: Observed, what: SnapshotParts): Promise<Snapshot> {
  const snapshot = await composeSnapshot(store, observed, what)
  await writeSnapshot(store, snapshot, what.earlier)
  await sweep(store, snapshot)
  return snapshot
}

/** Of one repository and, in it, of its submodules; nothing is written but objects, refs of ralph's own and private copies of indexes. */
export async function composeSnapshot(
  store: Store,
  observed: Observed,
  what: SnapshotParts,
): Promise<Snapshot> {
  const wasKeptOut = keptOut({ protectedPaths: [] }, what.earlier)
  const [guarded, pinned, folders] = await Promise.all([
    rememberGuarded(store, observed.settings.hooksPath),
    pinTips(store, observed.refs.all, observed.stashLog, what.earlier),
    treeFolders(store.git, what.tree),
  ])
  const { earlier } = what
  // A repository whose files are in the checkpoint is the loop's doing.
  const inTree = new Set(folders.map(({ path }) => `${path}/`))
  const repositories = observed.scan.untracked.filter((path) => path.endsWith('/') && !inTree.has(path))
  const stillOut = [
    ...repositories,
    ...observed.scan.untracked.filter((path) => !path.endsWith('/') && wasKeptOut(path)),
  ]
  const ignored = [...new Set([...observed.scan.ignored, ...stillOut])]
  const unignored = await rememberUnignored(
    store,
    stillOut.filter((path) => !path.endsWith('/')),
    what.tree.length,
    earlier,
  )
  const isExempt = exempt(store.protectedPaths, ignored)
  const isRalphs = exempt(store.protectedPaths, [])
  const own = ownFiles(store, earlier?.own ?? [], [
    ...observed.scan.changed,
    ...observed.scan.untracked,
    ...observed.scan.staged,
    ...(what.fresh ?? []),
  ])
  // What a story makes git ignore stays part of the checkpoint.
  const isEmpty = new Set(observed.unseen.empty)
  const isStillEmpty = (path: string): boolean =>
    isEmpty.has(path) ||
    // Or makes a repository of: nobody looks into those.
    (observed.unseen.repositories.some((folder) => path.startsWith(folder)) &&
      listingOf(placeIn(store.git.worktree, path.slice(0, -1)))?.isEmpty === true)
  const empty = [...new Set([...observed.empty, ...(earlier?.empty ?? []).filter(isStillEmpty)])]
  // Those of the start, for as long as the run goes on.
  const conversions =
    earlier?.conversions ?? observed.settings.conversions.map(([key, value]) => [key, value])
  return {
    commit: what.commit,
    tree: what.tree,
    head: observed.refs.head,
    index: what.index,
    own_index: what.ownIndex,
    refs: observed.refs.all,
    aliases: await readAliases(store.git),
    stash_log: observed.stashLog,
    worktrees: linkedNames(store.git.gitCommonDir),
    guarded,
    ways_out: findWaysOut(store.git),
    hooks_path: observed.settings.hooksPath,
    included: [...observed.settings.included],
    obeyed: findObeyed(store.git, observed.settings.hooksPath, observed.settings.included),
    excludes_file: observed.settings.excludesFile,
    ignored,
    inside: filesInside(store.git, ignored),
    // ralph's own state file is another one every time.
    places: rememberPlaces(
      store.git,
      ignored.filter((path) => !isRalphs(path)),
      folders.map(({ path }) => path),
    ),
    empty,
    special: observed.unseen.special.filter((path) => !isExempt(path)),
    deep: observed.unseen.deep.filter((path) => !isExempt(path)),
    mounts: mountsBelow(store.git.worktree),
    ...(observed.settings.isSparse && {
      outside: await presentOutside(store.git, join(store.folder, what.index)),
    }),
    pinned,
    own,
    modes: await modesFor(store, observed, own, earlier),
    bytes: await bytesOf(store, own, folders, what.index, conversions, earlier),
    ...unignored,
    repositories,
    conversions,
    global_settings: earlier?.global_settings ?? globalSettings(store),
    folder_modes: readFolderModes(store.git, folderNames(folders, empty)),
    nested: nestedNow(store, observed, what, folders),
    ...(await captureSubmodules(store, gitlinksOf(folders), what.earlier, what.inside)),
  }
}

async function writeSnapshot(store: Store, snapshot: Snapshot, earlier: Snapshot | undefined): Promise<void> {
  const git_dirs = await mirrorGitDirs(store, snapshot, earlier)
  const file = recordOf(store)
  const refs = await writeBase(store.folder, snapshot.refs)
  const text = JSON.stringify({ ...snapshot, ...refs, git_dirs })
  const known = records.get(file)
  // After a checkpoint of ralph's own the next look mostly finds just what was written with it.
  const isWritten = known?.text === text && known.mark === fileMark(file)
  if (!isWritten) await writeDurably(file, text)
  else touch(file)
  records.set(file, { mark: fileMark(file), snapshot: { ...snapshot, git_dirs }, text })
}

/**
 * Its time is that of the attempt's beginning: locks and objects are told by it. By the clock of the disk, which is up to
 * 10 ms behind the computer's: only a change of the file itself (ctime) tells what it says.
 */
function touch(file: string): void {
  utimesSync(file, new Date(), new Date())
  // Cut off, not rounded: it must not be later than what is written next.
  const now = new Date(Math.floor(statSync(file).ctimeMs))
  utimesSync(file, now, now)
}

/** What only the snapshot before had use for. */
async function sweep(store: Store, snapshot: Snapshot): Promise<void> {
  const used = new Set([snapshot.index, snapshot.own_index, baseFile(snapshot.refs)])
  for (const file of await readdir(store.folder)) {
    if (/^(index|refs)-/.test(file) && !used.has(file)) await drop(join(store.folder, file))
  }
  if (snapshot.guarded !== undefined) await forgetOthers(store, snapshot.guarded)
  for (const submodule of snapshot.submodules ?? [])
    await sweep(storeOf(store, submodule), submodule.snapshot)
}

async function modesFor(
  { git }: Store,
  { settings }: Observed,
  own: readonly string[],
  earlier: Snapshot | undefined,
): Promise<Record<string, number>> {
  // Private files that are committed: looked for once.
  const tracked = async (): Promise<string[]> => (await indexEntries(git)).map(entryPath)
  const others = earlier === undefined ? await tracked() : Object.keys(earlier.modes)
  if (settings.fileMode) return readModes(git, [...own, ...others], false)
  return readModes(git, [...(await tracked()), ...own], true)
}

/** Those that are files still. */
function ownFiles({ git }: Store, earlier: readonly string[], seen: readonly string[]): string[] {
  const paths = new Set([...earlier, ...seen.filter((path) => !path.endsWith('/'))])
  return [...paths].filter((path) => lstatNow(git.worktree, path)?.isFile() === true)
}

async function bytesOf(
  store: Store,
  paths: readonly string[],
  folders: readonly TreeFolder[],
  index: string,
  conversions: NonNullable<Snapshot['conversions']>,
  earlier: Snapshot | undefined,
): Promise<Snapshot['bytes']> {
  return await rememberBytes(store, {
    paths,
    folders: folders.map(({ path }) => path),
    index: join(store.folder, index),
    conversions,
    earlier: earlier?.bytes ?? {},
  })
}

/** After a checkpoint on the branch: the same surroundings, until `ensure` looks again. */
export async function advanceSnapshot(
  store: Store,
  head: { readonly ref: RefName; readonly commit: string },
  tree: string,
  refs: Refs,
): Promise<void> {
  const earlier = await requireSnapshot(store)
  const index = `index-${head.commit}`
  const all = withRef(refs.all, head.ref, head.commit)
  const pinned = isSameToPin(store, earlier.refs, all) ? earlier.pinned : undefined
  const [changed, folders] = await Promise.all([
    changedPaths(store.git, earlier.tree, tree),
    treeFolders(store.git, tree),
  ])
  const own = ownFiles(store, earlier.own, changed)
  const modes = readModes(store.git, own, false)
  const bytes = await bytesOf(store, own, folders, index, earlier.conversions ?? [], earlier)
  const folder_modes = readFolderModes(store.git, folderNames(folders, earlier.empty))
  const inside = await captureSubmodules(store, gitlinksOf(folders), earlier)
  const surroundings = {
    index,
    own_index: undefined,
    refs: all,
    pinned,
    own,
    modes,
    bytes,
    folder_modes,
    ...inside,
  }
  const snapshot: Snapshot = { ...earlier, commit: head.commit, tree, head, ...surroundings }
  await writeSnapshot(store, snapshot, earlier)
}

/** Read again only when somebody has written it. */
export async function loadSnapshot(store: Pick<Store, 'folder'>): Promise<Snapshot | undefined> {
  const file = recordOf(store)
  const mark = fileMark(file)
  const known = records.get(file)
  if (mark !== '' && known?.mark === mark) return known.snapshot
  const record = await readRecord(file, snapshotSchema)
  const refs = record === undefined ? undefined : await withBase(store.folder, record, refMapSchema)
  // Half a record is none.
  if (record === undefined || refs === undefined) return undefined
  const snapshot = { ...record, refs }
  records.set(file, { mark, snapshot })
  return snapshot
}

/** `text`: as this process has written it. */
const records = new Map<string, { mark: string; snapshot: Snapshot; text?: string }>()

function recordOf({ folder }: Pick<Store, 'folder'>): string {
  return join(folder, 'snapshot.json')
}

export async function requireSnapshot(store: Store): Promise<Snapshot> {
  const snapshot = await loadSnapshot(store)
  if (snapshot !== undefined) return snapshot
  const { checkpoint } = store.memory()
  const asked = ['cat-file', '-e', checkpoint ?? 'HEAD']
  if (checkpoint !== undefined && (await store.git.run(asked, { accept: [1, 128] })).code !== 0) {
    throw new RalphError(
      'checkpoint_failed',
      `${store.git.gitCommonDir} is not the git directory that the loop began with: its last checkpoint, ${checkpoint.slice(0, 12)}, is not in it`,
      {
        hint: `It was replaced or emptied. The files of the work tree are as they were left. If the old one was moved away, move this one aside and that one back, then type: ralph resume ${store.change}`,
      },
    )
  }
  throw new RalphError(
    'checkpoint_failed',
    `the record of the last checkpoint of ${store.change} is missing`,
    {
      hint:
        (await wayOut(store.git, store.change)) || `Start over with \`ralph loop ${store.change} --fresh\`.`,
    },
  )
}

/** A copy of the repository's index under a name of its own, for the snapshot of this commit. */
export async function snapshotIndex(
  store: Store,
  commit: string,
  from = realIndex(store.git),
): Promise<string> {
  const name = `index-${commit}`
  const copy = join(store.folder, name)
  if (!isSameIndex(from, copy)) await copyDurably(store.git, from, copy)
  return name
}

/** The folders of a tree, the outer before the inner. */
export async function treeFolders(git: Git, tree: string): Promise<readonly TreeFolder[]> {
  return (
    treeFoldersNow(git, tree) ??
    learnFolders(tree, await git.list(['ls-tree', '-r', '-d', '-z', '--full-tree', tree]))
  )
}

export function gitlinksOf(folders: readonly TreeFolder[]): string[] {
  return folders.filter(({ isSubmodule }) => isSubmodule).map(({ path }) => path)
}

/** `git status` is blind to a `.git` in a folder that has tracked files, and to files in an empty submodule (`sub/`). */
export function nestedRepositories(git: Git, folders: readonly TreeFolder[]): string[] {
  const found = folders.filter(({ path }) => lstatNow(git.worktree, `${path}/.git`) !== undefined)
  return found.map(({ path, isSubmodule }) => (isSubmodule ? `${path}/` : path))
}

/** Of an attempt that is open nobody knows yet whether what it made stays. */
function nestedNow(
  store: Store,
  { unseen }: Observed,
  { tree, earlier }: SnapshotParts,
  folders: readonly TreeFolder[],
): string[] {
  const isOpen = store.memory().openAttempt !== undefined
  if (earlier?.tree !== tree || (!isOpen && unseen.repositories.length > 0))
    return nestedRepositories(store.git, folders)
  const isThere = (path: string): boolean =>
    lstatNow(store.git.worktree, `${path.replace(/\/$/, '')}/.git`) !== undefined
  return isOpen ? earlier.nested : earlier.nested.filter(isThere)
}

/** Those of a tree, the empty ones, and what nothing but these lies in; the outer before the inner. */
export function folderNames(folders: readonly TreeFolder[], empty: readonly string[]): string[] {
  const around = bareNames(empty).flatMap((path) => [...above(path).reverse(), path])
  return [...new Set([...folders.map(({ path }) => path), ...around])]
}

/** Without the slash at their end. */
export function bareNames(folders: readonly string[]): string[] {
  return folders.map((folder) => folder.replace(/\/$/, ''))
}
