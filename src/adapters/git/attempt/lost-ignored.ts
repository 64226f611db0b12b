// Ignored files that are gone after an attempt: those that its git took (`stash --all`, `add -f` and a checkout) are held by what it made and put back, others are named.
import { firstNames } from '../../../core/first-names.ts'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { rm } from 'node:fs/promises'
import type { GoneFile } from '../../../core/event.ts'
import type { Ledger } from '../../../core/ownership.ts'
import { lstatNow, onDisk } from '../tree/files.ts'
import { named, type Git } from '../git.ts'
import { restoreCommand } from './lost-files.ts'
import { openAbove } from '../tree/owner-access.ts'
import { missingObjects } from '../refs/pins.ts'
import { moveRefs, refsUnder } from '../refs/refs.ts'
import { exempt, isCache, isInstalled } from '../tree/scan.ts'
import { listed } from './reunite.ts'
import type { MovedFile } from '../revert/moved-files.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'
import { outermost } from '../submodules/submodule.ts'
import { syncPaths } from '../formats/sync.ts'
import { joined } from '../tree/tree.ts'

interface Swept {
  /** Has them in its own tree. */
  readonly commit: string
  readonly paths: readonly string[]
}

/** Of what the attempt made, the newest last: commits that have files which were ignored at the checkpoint and are not there now. */
export async function findSwept(
  store: Store,
  snapshot: Snapshot,
  made: readonly (string | undefined)[],
  { writes }: Ledger,
): Promise<Swept[]> {
  const { git } = store
  const wrote = writes.flatMap(({ by, ref, to }) =>
    by === 'agent' && /^(HEAD$|refs\/(heads\/|stash$))/.test(ref) ? [to] : [],
  )
  const asTold = [...new Set([...wrote, ...made])].filter((tip) => tip !== undefined)
  if (asTold.length === 0 || snapshot.ignored.length === 0) return []
  const known = new Set([...Object.values(snapshot.refs), snapshot.commit, snapshot.head.commit])
  const tips = asTold.filter((tip) => !known.has(tip))
  if (tips.length === 0) return []
  // What `stash --all` has put away is in the third parent alone.
  const asked = tips.map((tip) => `${tip}^3^{commit}\n`).join('')
  const thirds = (await git.line(['cat-file', '--batch-check=%(objectname)'], { input: asked })).split('\n')
  const gone = await missingObjects(git, tips)
  const all = [...tips.filter((tip) => !gone.has(tip)), ...thirds.filter((line) => /^[0-9a-f]+$/.test(line))]
  const isLost = lostFrom(store, snapshot)
  // No checkpoint has them, so one of these has added them.
  const args = [
    'diff-tree',
    '--stdin',
    '-r',
    '-m',
    '--root',
    '--no-renames',
    '--diff-filter=A',
    '--name-only',
    '-z',
  ]
  const isAsked = new Set(all)
  const found = new Map<string, string>()
  let commit = ''
  for (const field of await git.list(args, { input: all.map((hash) => `${hash}\n`).join('') }))
    if (isAsked.has(field)) commit = field
    else if (isLost(field)) found.set(field, commit)
  return [...new Set(found.values())].map((holder) => ({
    commit: holder,
    paths: [...found].flatMap(([path, by]) => (by === holder ? [path] : [])),
  }))
}

/** For a checkpoint: it leaves them where they are. */
export function sweptGone(git: Git, swept: readonly Swept[]): GoneFile[] {
  return swept.flatMap(({ commit, paths }) =>
    paths.map((path) => ({
      path: named(path),
      restore: restoreCommand(commit.slice(0, 12), path, git.typed),
    })),
  )
}

/** Nothing else may hold it: a cleaning leaves it. */
export function sweptRef(store: Store, n: number, commit: string): string {
  return `${sweptRefs(store, n)}/${commit.slice(0, 12)}`
}

/** Only where nothing stands in their place. For their owner alone, for they may be secrets, and git forgets who might read them. */
export async function putBackSwept(store: Store, snapshot: Snapshot, n: number): Promise<void> {
  const { git } = store
  const isLost = lostFrom(store, snapshot)
  for (const [ref, commit] of Object.entries(await refsUnder(git, [sweptRefs(store, n)]))) {
    const paths = (await pathsIn(git, commit)).filter((path) => isLost(path))
    const index = join(store.folder, 'swept-index')
    openAbove(git.worktree, paths)
    await git.run(['read-tree', commit], { index })
    await git.run(['checkout-index', '--quiet', '-z', '--stdin'], {
      index,
      input: joined(paths),
      accept: [1, 128],
    })
    await rm(index, { force: true })
    const back = paths.filter((path) => !isLost(path))
    for (const path of back) {
      const stats = lstatNow(git.worktree, path)
      if (stats?.isFile() === true) chmodSync(onDisk(git.worktree, path), stats.mode & 0o700)
    }
    await syncPaths(git, back)
    const left = paths.filter((path) => isLost(path))
    await tell(store, commit, back, left)
    if (left.length === 0) await moveRefs(git, 'put back', [`delete ${ref} ${commit}`])
  }
}

async function tell(
  store: Store,
  commit: string,
  back: readonly string[],
  left: readonly string[],
): Promise<void> {
  const warn = (code: string, message: string): Promise<void> =>
    outermost(store).note({ type: 'warning', code, message })
  const few = (paths: readonly string[]): string => firstNames(paths.map(named))
  if (back.length > 0)
    await warn(
      'moved_back',
      `the agent's git deleted ignored files: ${few(back)}; they are back, readable only by you`,
    )
  const [first] = left
  if (first !== undefined)
    await warn(
      'set_aside',
      `the agent's git deleted ignored files: ${few(left)}; something is in the way, so they are not back. To get them back: ${restoreCommand(commit.slice(0, 12), first, store.git.typed)}`,
    )
}

function lostFrom(store: Store, snapshot: Snapshot): (path: string) => boolean {
  const wasIgnored = exempt([], snapshot.ignored)
  const isOwn = exempt(store.protectedPaths, [])
  return (path) => wasIgnored(path) && !isOwn(path) && lstatNow(store.git.worktree, path) === undefined
}

async function pathsIn(git: Git, commit: string): Promise<string[]> {
  return await git.list(['ls-tree', '-r', '-z', '--full-tree', '--name-only', commit])
}

function sweptRefs(store: Store, n: number): string {
  return `${store.refs}/moved/${n}/ignored`
}

/** No checkpoint has ignored files, so all that can be done is to name them. What a build makes again is not worth a line. */
export async function tellLostIgnored(
  store: Store,
  { ignored, inside = {}, places = {}, repositories = [], empty }: Snapshot,
  moved: readonly MovedFile[],
): Promise<void> {
  const { worktree } = store.git
  const isMoved = new Set(moved.map(({ was }) => was))
  // ralph writes its own again; nobody lost it, nor a folder that held nothing else.
  const isOwn = exempt(store.protectedPaths, [])
  const isLost = (path: string): boolean => {
    const bare = path.replace(/\/$/, '')
    if (isOwn(path) || (inside[path]?.every(isOwn) === true && inside[path].length > 0)) return false
    // Empty ones a checkpoint has.
    if (inside[path]?.length === 0 && empty.some((folder) => folder.startsWith(path))) return false
    if (isMoved.has(bare) || isCache(path) || isInstalled(path) || isMade(path)) return false
    const stats = lstatNow(worktree, bare)
    // A link in the place of a file has none of its bytes.
    if (stats === undefined || (stats.isSymbolicLink() && places[bare] !== undefined)) return true
    return inside[path]?.every((file) => lstatNow(worktree, file) === undefined) === true
  }
  // Of these another message tells: see `lostRepositories`.
  const isTold = (path: string): boolean =>
    repositories.includes(path) && lstatNow(worktree, `${path}.git`) === undefined
  const lost = ignored.filter((path) => isLost(path) && !isTold(path))
  if (lost.length === 0) return
  const message = `gone since the attempt began: ${listed(lost)}. It is in no checkpoint, for git does not look there`
  await outermost(store).note({ type: 'warning', code: 'set_aside', message })
}

/** What builds and tests write, by the usual names. */
function isMade(path: string): boolean {
  return /(^|\/)(dist|build|out|coverage|tmp|temp|\.cache|\.next|\.nuxt|\.turbo|\.parcel-cache|\.nyc_output)(\/|$)|\.(log|tmp|pid|lock|swp|pyc|o|class|tsbuildinfo)$|~$/.test(
    path,
  )
}
