// What git does not see of a work tree: pipes, sockets and devices, and folders nested deeper than a path can be long.
import { named, type Git } from '../git.ts'
import { holdsExempt } from './hidden-by-agent.ts'
import { placeIn } from './files.ts'
import { listingOf } from './listing.ts'
import { removePath } from './remove.ts'
import type { Store } from '../store.ts'
import { exempt } from './scan.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { joined } from './tree.ts'

export interface Unseen {
  readonly special: readonly string[]
  /** The first folder of each that is beyond reach; `a/b/`. */
  readonly deep: readonly string[]
  /** Folders without anything in them, ignored ones too; `a/b/`. */
  readonly empty: readonly string[]
  /** Folders, submodules too, that hold a repository of their own; `a/b/`. */
  readonly repositories: readonly string[]
}

/** Repositories of others and what must stay out are not looked into. */
export function findUnseen(
  { worktree }: Pick<Git, 'worktree'>,
  isExempt: (path: string) => boolean = () => false,
): Unseen {
  const special: string[] = []
  const deep: string[] = []
  const empty: string[] = []
  const repositories: string[] = []
  const root = Buffer.byteLength(worktree) + 1
  const nowMs = Date.now()
  const visit = (folder: string): void => {
    const listing = listingOf(folder === '' ? worktree : placeIn(worktree, folder.slice(0, -1)), nowMs)
    if (listing === undefined) return
    if (folder !== '' && listing.isRepository) return void repositories.push(folder)
    if (listing.isEmpty) empty.push(folder)
    for (const name of listing.special) if (!isExempt(`${folder}${name}`)) special.push(`${folder}${name}`)
    for (const name of listing.folders) {
      const path = `${folder}${name}`
      if (path === '.git' || isExempt(`${path}/`)) continue
      if (root + path.length > farthest) deep.push(`${path}/`)
      else visit(`${path}/`)
    }
  }
  visit('')
  return { special, deep, empty, repositories }
}

/** Before git looks: a revert that meets a path beyond reach can do nothing about it. What was there at the checkpoint stays. */
export async function removeDeep(
  store: Store,
  snapshot: Snapshot,
  folders: readonly string[],
): Promise<void> {
  const { deep } = findUnseen(store.git, exempt(store.protectedPaths, snapshot.ignored))
  const known = new Set(folders.map((folder) => `${folder}/`))
  const isOld = (top: string): boolean =>
    known.has(top) ||
    holdsExempt(store, snapshot, top) ||
    [...snapshot.special, ...snapshot.deep].some((path) => path.startsWith(top))
  const tops = deep.flatMap((path) => above(path).find((top) => !isOld(top)) ?? [])
  for (const top of new Set(tops)) await removePath(store.git.worktree, top)
}

/** Once the checkpoint's own ignore rules are back: ignored ones stay. Returns what is there now. */
export async function removeSpecial(
  store: Store,
  snapshot: Snapshot,
  stays: (path: string) => boolean,
): Promise<Unseen> {
  const { git } = store
  const found = findUnseen(git)
  const isExempt = exempt(store.protectedPaths, snapshot.ignored)
  const before = new Set(snapshot.special)
  const fresh = found.special.filter((path) => !isExempt(path) && !before.has(path) && !stays(path))
  if (fresh.length === 0) return found
  const ignored = await ignoredOf(git, fresh)
  for (const path of fresh) if (!ignored.has(path)) await removePath(git.worktree, path)
  return findUnseen(git)
}

/** For the attempt that made them: git holds nothing of it. */
export function deepWarnings(store: Store, snapshot: Snapshot): string[] {
  const { deep } = findUnseen(store.git, exempt(store.protectedPaths, snapshot.ignored))
  const fresh = deep.filter((path) => !snapshot.deep.includes(path))
  const tops = [...new Set(fresh.map((path) => path.split('/').slice(0, 3).join('/')))]
  return tops.map((top) => `what is in ${named(top)}/… is nested too deeply; it could not be saved`)
}

async function ignoredOf(git: Git, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set()
  // The command refuses literal names; behind `./` none has a special meaning.
  const input = joined(paths.map((path) => `./${path}`))
  const asked = await git.run(['--no-literal-pathspecs', 'check-ignore', '--no-index', '-z', '--stdin'], {
    input,
    accept: [1],
  })
  return new Set(asked.out.split('\0').map((path) => path.slice(2)))
}

/** `a/`, `a/b/` … of `a/b/c/`, the outer first. */
function above(path: string): string[] {
  return [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index + 1))
}

/** Of 4,096 bytes; the rest is for the names of files. */
const farthest = 3_700
