// What is staged and in no file: kept under a ref, and told with the command that stages it again, before ralph puts another index in its place.
import { join } from 'node:path'
import { dropFlags } from '../tree/flags.ts'
import type { Git } from '../git.ts'
import { copyIndex, installIndex, realIndex } from '../formats/index-file.ts'
import { missingObjects } from '../refs/pins.ts'
import { moveRefs, readRef, readRefs } from '../refs/refs.ts'
import { topPath } from './lost-files.ts'
import { listed } from './reunite.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { timeName, type Store } from '../store.ts'
import { outermost } from '../submodules/submodule.ts'
import { syncLoose } from '../formats/sync.ts'
import { commitTree, indexMark, joined, orEmpty, treeOfIndex } from '../tree/tree.ts'
import { distrustIn } from '../tree/racy-entries.ts'

export interface StagedEntry {
  readonly path: string
  /** Six zeros where it is staged that the file is gone. */
  readonly mode: string
  readonly blob: string
}

interface Replacing {
  /** The index that comes; undefined: none. */
  readonly next: string | undefined
  /** Of the last checkpoint, whose indexes ralph has written. */
  readonly snapshot?: Snapshot | undefined
  /** Further indexes that hold nothing new. */
  readonly seen?: readonly string[]
}

/** Of a person's or an agent's: nobody can tell, so nobody is blamed. Returns what to say. */
export async function keepStaged(store: Store, replacing: Replacing): Promise<string[]> {
  const entries = await stagedOnly(store, replacing)
  return entries.length === 0 ? [] : [await hold(store, entries)]
}

/** The same, said at once. */
export async function noteStaged(store: Store, replacing: Replacing): Promise<readonly StagedEntry[]> {
  const entries = await stagedOnly(store, replacing)
  if (entries.length > 0)
    await outermost(store).note({ type: 'warning', code: 'staged', message: await hold(store, entries) })
  return entries
}

/** At a cleanup: what was staged before the loop, is in no file of its start, and is not staged in the index that comes. Returns what to say. */
export async function keepNotGivenBack(
  store: Store,
  { own, next, began, initial }: { own: string; next: string; began: string; initial: string },
): Promise<string[]> {
  const { git } = store
  const there = await treeOfIndex(git, next).catch(() => began)
  const [had = [], ...others] = await Promise.all(
    [began, initial, there].map(async (tree) => (await differing(git, own, tree)) ?? []),
  )
  const news = others.map((entries) => new Set(entries.map(({ path }) => path)))
  const left = had.filter((entry) => hasVersion(entry) && news.every((paths) => paths.has(entry.path)))
  const gone = await prunedVersions(git, left)
  const entries = left.filter(({ blob }) => !gone.has(blob))
  return entries.length === 0 ? [] : [await hold(store, entries)]
}

/** Puts it in place once it is noted what was staged; where somebody stages in this very moment, that as well. */
export async function replaceIndex(store: Store, replacing: Replacing): Promise<void> {
  let looked: string | undefined
  const look = async (): Promise<void> => {
    const mark = indexMark(realIndex(store.git))
    if (mark === looked) return
    looked = mark
    await noteStaged(store, replacing)
  }
  await look()
  await installIndex(store.git, replacing.next, look)
}

async function stagedOnly(store: Store, { next, snapshot, seen = [] }: Replacing): Promise<StagedEntry[]> {
  const { git, folder } = store
  const mark = indexMark(realIndex(git))
  const names = [snapshot?.index, snapshot?.own_index]
  const own = names.flatMap((name) => (name === undefined || name === 'none' ? [] : [join(folder, name)]))
  const written = [...(next === undefined ? [] : [next]), ...own, ...seen]
  if (mark !== '' && written.some((index) => indexMark(index) === mark)) return []
  const index = join(folder, 'staged-index')
  if (!(await copyIndex(git, realIndex(git), index))) return []
  let left: readonly StagedEntry[] | undefined
  for (const known of knownTrees(store, written, snapshot)) {
    for (const tree of await known()) {
      const staged = await differing(git, index, tree)
      if (staged === undefined) continue
      const isOther = new Set(staged.map(({ path }) => path))
      left = (left ?? staged).filter((entry) => isOther.has(entry.path) && hasVersion(entry))
      if (left.length === 0) return []
    }
  }
  // Not an index, or nothing to compare it with.
  if (left === undefined) return []
  await dropFlags(git, index)
  distrustIn(
    index,
    left.map(({ path }) => path),
  )
  await git.run(['update-index', '-q', '--refresh'], { index, accept: [1] })
  const inFile = new Set(await git.list(['diff-files', '--name-only', '-z'], { index }))
  const only = left.filter(({ path }) => inFile.has(path))
  const gone = await prunedVersions(git, only)
  return only.filter(({ blob }) => !gone.has(blob))
}

/** Where an entry may come from without being news; asked one after the other, for mostly the first answers. */
function knownTrees(
  { git, refs, memory }: Store,
  indexes: readonly string[],
  snapshot: Snapshot | undefined,
): (() => Promise<readonly string[]>)[] {
  return [
    async () => [await orEmpty(git, snapshot?.tree)],
    async () => {
      const { commit } = (await readRefs(git)).head
      return commit === undefined ? [] : [commit]
    },
    async () => {
      const trees = await Promise.all(indexes.map((index) => treeOfIndex(git, index).catch(() => '')))
      return trees.filter((tree) => tree !== '')
    },
    // What the agent left, and what it had committed.
    async () => {
      const kept = await readRef(git, `${refs}/attempts/${memory().attempt ?? 0}`)
      return kept === undefined ? [] : (await git.line(['rev-list', '--parents', '-n1', kept])).split(' ')
    },
  ]
}

/** No deletion, and no submodule, whose commit is in a repository of its own. */
function hasVersion({ mode }: StagedEntry): boolean {
  return !/^(0{6}|160000)$/.test(mode)
}

/** Which staged versions the repository does not hold any more. */
export async function prunedVersions(git: Git, entries: readonly StagedEntry[]): Promise<Set<string>> {
  return await missingObjects(
    git,
    entries.filter(hasVersion).map(({ blob }) => blob),
  )
}

/** What the index has otherwise than this tree, but for what `git add -N` only announces; undefined where git cannot say. */
export async function differing(git: Git, index: string, tree: string): Promise<StagedEntry[] | undefined> {
  const how = ['--cached', '--ita-invisible-in-index', '--raw', '--no-renames', '--no-abbrev', '-z']
  const { out, code } = await git.run(['diff-index', ...how, tree], { index, accept: [128] })
  if (code !== 0) return undefined
  const fields = out.split('\0')
  const entries: StagedEntry[] = []
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode = '', , blob = '', state = ''] = fields[at]?.split(' ') ?? []
    if (!state.startsWith('U')) entries.push({ path: fields[at + 1] ?? '', mode, blob })
  }
  return entries
}

/** These entries in another index, whatever it has there. */
export async function stageIn(git: Git, index: string, entries: readonly StagedEntry[]): Promise<void> {
  if (entries.length === 0) return
  const lines = entries.map(({ path, mode, blob }) => `${mode} ${blob}\t${path}`)
  await git.run(['update-index', '--replace', '-z', '--index-info'], { index, input: joined(lines) })
}

async function hold(store: Store, entries: readonly StagedEntry[]): Promise<string> {
  const { git } = store
  const { head } = await readRefs(git)
  const index = join(store.folder, 'staged-index')
  await git.run(['read-tree', head.commit ?? '--empty'], { index })
  await stageIn(git, index, entries)
  await syncLoose(git)
  const commit = await commitTree(git, await treeOfIndex(git, index), [head.commit], 'staged, and in no file')
  const ref = `${store.refs}/index/${timeName(store)}-${commit.slice(0, 7)}`
  await moveRefs(git, 'staged', [`update ${ref} ${commit}`])
  const paths = entries.map(({ path }) => path)
  const command = `${git.typed} restore --staged --source=${ref} -- ${paths.slice(0, 10).map(topPath).join(' ')}`
  const rest = paths.length > 10 ? `; the others: git diff --name-only ${ref}^ ${ref}` : ''
  return `staged, but not so in the files: ${listed(paths)}; it is kept, and this stages it again: ${command}${rest}`
}
