// Files that only the agent's own ignore rules hide: they were not there at the checkpoint, so an attempt holds them and a revert takes them away.
import { firstNames } from '../../../core/first-names.ts'
import { readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { onDisk } from './files.ts'
import { topPath } from '../attempt/lost-files.ts'
import { named, type Git } from '../git.ts'
import { looksSecret } from '../start/preflight.ts'
import { isOpen, openFolder, openToRead, placeOf, statsOf } from './owner-access.ts'
import type { Store } from '../store.ts'
import { readRef } from '../refs/refs.ts'
import { exempt, isCache, isInstalled, scanTree } from './scan.ts'
import { readSettings } from '../formats/settings.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { outermost } from '../submodules/submodule.ts'
import { changedPaths, joined } from './tree.ts'

/** Of the paths that are ignored now, those that no rule of the checkpoint's ignores. */
export async function hiddenByAgent(
  store: Store,
  snapshot: Snapshot,
  ignored: readonly string[],
): Promise<string[]> {
  const isKnown = exempt(store.protectedPaths, snapshot.ignored)
  const fresh = ignored.filter((path) => !isKnown(path))
  if (fresh.length === 0) return []
  // The command refuses literal names; behind `./` none has a special meaning.
  const command = ['--no-literal-pathspecs', 'check-ignore', '--no-index', '--verbose', '-z', '--stdin']
  const asked = await store.git.run(command, { input: joined(fresh.map((path) => `./${path}`)), accept: [1] })
  const fields = asked.out.split('\0')
  const rules = new Map<string, Promise<IsKnownRule>>()
  const hidden: string[] = []
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const [source = '', , pattern = '', path = ''] = fields.slice(at, at + 4)
    // A folder that ignored itself before goes on doing so.
    if (isKnown(source)) continue
    const known = rules.get(source) ?? rulesOf(store.git, snapshot, source)
    rules.set(source, known)
    if (!(await known)(pattern)) hidden.push(path.slice(2))
  }
  return hidden
}

interface HiddenWork {
  /** Held by the attempt, and nobody's settings or packages: the gates have to pass without these. */
  readonly tried: readonly string[]
  readonly untried: readonly string[]
}

/** What the new ignore rules of an attempt keep out of its checkpoint, while its gates can see it. `changed`: by the attempt. */
export async function hiddenWork(
  store: Store,
  snapshot: Snapshot,
  changed: readonly string[],
): Promise<HiddenWork> {
  if (!changed.some((path) => /(^|\/)\.gitignore$/.test(path))) return { tried: [], untried: [] }
  // What was part of the checkpoint before is hidden from nobody.
  const { ignored } = await scanTree(store.git, { index: join(store.folder, 'attempt-index'), ignored: true })
  const isKnown = exempt(store.protectedPaths, snapshot.ignored)
  const hidden = (await hiddenByAgent(store, snapshot, ignored)).filter(
    (path) => !isCache(path) && holdsAny(store.git, path, isKnown),
  )
  // The attempt was kept before the gates ran: what they made since is not among it.
  const isHeld = (path: string): boolean =>
    changed.some((each) => (path.endsWith('/') ? each.startsWith(path) : each === path))
  const isTried = (path: string): boolean =>
    isHeld(path) && !isInstalled(path) && !looksSecret(path.split('/').at(-1) ?? '')
  return { tried: hidden.filter(isTried), untried: hidden.filter((path) => !isTried(path)) }
}

/** Not a folder with empty ones only, or with ralph's own files. */
function holdsAny(git: Git, path: string, isKnown: (path: string) => boolean): boolean {
  if (!path.endsWith('/')) return !isKnown(path)
  const place = placeOf(git.worktree, path.slice(0, -1))
  if (!isOpen(place)) return true
  const entries = readdirSync(place, { withFileTypes: true, encoding: 'buffer' })
  return entries.some((entry) =>
    holdsAny(git, `${path}${entry.name.toString('latin1')}${entry.isDirectory() ? '/' : ''}`, isKnown),
  )
}

/** Of a checkpoint: told, for whoever works on. */
export async function tellHidden(
  store: Store,
  snapshot: Snapshot,
  { n, hasGates }: { readonly n: number; readonly hasGates: boolean },
): Promise<void> {
  const commit = await readRef(store.git, `${store.refs}/attempts/${n}`)
  if (commit === undefined) return
  const changed = await changedPaths(store.git, snapshot.tree, commit)
  const { tried, untried } = await hiddenWork(store, snapshot, changed)
  const hidden = [...tried, ...untried]
  if (hidden.length === 0) return
  const used = hasGates && untried.length > 0 ? `The gates may have used ${listed(untried)}; no` : 'No'
  const way = `attempt ${n} has them: ${store.git.typed} restore --source=${commit.slice(0, 12)} -- ${hidden.slice(0, 5).map(topPath).join(' ')}`
  const message = `attempt ${n} brought ignore rules and files that they hide: ${firstNames(hidden.map(named))}. ${used} checkpoint holds them; ${way}`
  await outermost(store).note({ type: 'warning', code: 'hidden_work', message })
}

function listed(paths: readonly string[]): string {
  return `${paths.slice(0, 3).map(named).join(', ')}${paths.length > 3 ? ' …' : ''}`
}

/** Whether something that must stay may lie in this folder: then it is not taken away as a whole. */
export function holdsExempt(store: Store, snapshot: Snapshot, folder: string): boolean {
  return [...snapshot.ignored, ...store.protectedPaths].some((path) => path.startsWith(folder))
}

/** All files in them, for the attempt; of what is beyond the limit or another user's only `left` says that it was there. */
export async function filesWithin(
  git: Git,
  paths: readonly string[],
  isExempt: (path: string) => boolean,
): Promise<{ files: string[]; left: string[] }> {
  const files: string[] = []
  const left: string[] = []
  let bytes = 0
  const add = async (path: string): Promise<boolean> => {
    if (isExempt(path) || isExempt(`${path}/`)) return true
    const stat = statsOf(placeOf(git.worktree, path))
    if (stat?.isDirectory() === true) {
      const place = placeOf(git.worktree, path)
      openFolder(place, stat)
      if (!isOpen(place)) return false
      const names = await readdir(place, { encoding: 'buffer' })
      const folder = path.endsWith('/') ? path : `${path}/`
      for (const name of names) {
        const text = name.toString('latin1')
        // A repository within is never taken apart.
        if (text === '.git' || !(await add(`${folder}${text}`))) return false
      }
      return true
    }
    if (stat === undefined || !(stat.isFile() || stat.isSymbolicLink())) return true
    if (stat.isFile() && !openToRead(onDisk(git.worktree, path), stat)) return false
    bytes += stat.size
    if (bytes > mostBytes || files.length >= mostFiles) return false
    files.push(path)
    return true
  }
  for (const path of paths) if (!(await add(path))) left.push(path)
  return { files, left }
}

type IsKnownRule = (pattern: string) => boolean

async function rulesOf(git: Git, snapshot: Snapshot, source: string): Promise<IsKnownRule> {
  // It has been put back by now.
  if (source.endsWith('info/exclude')) return () => true
  if (isAbsolute(source) || !/(^|\/)\.gitignore$/.test(source)) {
    const isSame = (await readSettings(git)).excludesFile === snapshot.excludes_file
    return () => isSame
  }
  return among((await git.run(['cat-file', 'blob', `${snapshot.tree}:${source}`], { accept: [128] })).out)
}

function among(text: string): IsKnownRule {
  const lines = new Set(text.split(/\r?\n/).map((line) => line.replace(/(?<!\\) +$/, '')))
  return (pattern) => lines.has(pattern)
}

const mostFiles = 2_000
const mostBytes = 20e6
