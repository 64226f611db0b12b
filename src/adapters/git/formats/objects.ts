// Loose objects, read and written in git's own format: what is asked for in every story would cost a process each time.
// Whatever is not loose, or cannot be read, is answered with undefined: then git is asked.
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync, inflateSync } from 'node:zlib'
import { inFolder, rename, rm, sync, whole } from '../../files/now.ts'
import { syncFiles } from '../../files/whole.ts'
import type { Author } from './author.ts'
import { ownEmail, type Git } from '../git.ts'
import { knowSynced } from './sync.ts'

interface TreeEntry {
  readonly mode: string
  /** In bytes (latin1). */
  readonly name: string
  readonly hash: string
}

export interface TreeFolder {
  readonly path: string
  readonly isSubmodule: boolean
}

/** Of a commit or a tree. */
export function treeOfNow(git: Git, hash: string): string | undefined {
  const found = readLoose(git, hash)
  if (found?.kind === 'tree') return hash
  return found?.kind === 'commit' ? /^tree ([0-9a-f]+)\n/.exec(found.body.toString('latin1'))?.[1] : undefined
}

export interface TreeChange {
  readonly path: string
  /** Modes before and after; undefined where there is no such file. */
  readonly from: string | undefined
  readonly to: string | undefined
}

/** What differs between two trees or commits, in git's order; a rename is two of them. */
export function treeChangesNow(git: Git, from: string, to: string): readonly TreeChange[] | undefined {
  const pair = `${from} ${to}`
  const known = changesOf.get(pair)
  if (known !== undefined) return known
  const [before, after] = [treeOfNow(git, from), treeOfNow(git, to)]
  if (before === undefined || after === undefined) return undefined
  const changes: TreeChange[] = []
  if (!collectChanges(git, before, after, '', changes)) return undefined
  changes.sort((one, other) => (one.path < other.path ? -1 : 1))
  if (changesOf.size >= mostPairs) changesOf.clear()
  if (changes.length <= mostChanges) changesOf.set(pair, changes)
  return changes
}

/** By both hashes, so never stale: of one attempt it is asked many times. */
const changesOf = new Map<string, readonly TreeChange[]>()
const [mostPairs, mostChanges] = [16, 200]

/** What a commit with one parent changes. */
export function ownPathsNow(git: Git, commit: string): string[] | undefined {
  const found = readLoose(git, commit)
  const head = found?.kind === 'commit' ? found.body.toString('latin1').split('\n\n', 1)[0] : undefined
  const [parent, more] = [...(head ?? '').matchAll(/^parent ([0-9a-f]+)$/gm)].map(([, hash]) => hash)
  if (parent === undefined || more !== undefined) return undefined
  return treeChangesNow(git, parent, commit)?.map(({ path }) => path)
}

/** Whether a file of that path is in the tree; false also where a tree on the way is not loose. */
export function holdsFile(git: Git, tree: string, path: string): boolean {
  const [name, ...rest] = path.split('/')
  const entry = readTree(git, tree)?.find((each) => each.name === name)
  if (entry === undefined) return false
  if (rest.length === 0) return entry.mode.startsWith('100')
  return entry.mode === folder && holdsFile(git, entry.hash, rest.join('/'))
}

/** The folders of a tree, the outer before the inner. */
export function treeFoldersNow(git: Git, tree: string): readonly TreeFolder[] | undefined {
  const known = foldersBelow.get(tree)
  if (known !== undefined) return known
  const entries = readTree(git, tree)
  if (entries === undefined) return undefined
  const found: TreeFolder[] = []
  for (const { mode, name, hash } of entries) {
    if (mode === gitlink) found.push({ path: name, isSubmodule: true })
    if (mode !== folder) continue
    const below = treeFoldersNow(git, hash)
    if (below === undefined) return undefined
    found.push(
      { path: name, isSubmodule: false },
      ...below.map((each) => ({ ...each, path: `${name}/${each.path}` })),
    )
  }
  rememberFolders(tree, found)
  return found
}

/** As `ls-tree -r -d -z` told them: the next tree shares most of its folders with this one. */
export function learnFolders(tree: string, entries: readonly string[]): readonly TreeFolder[] {
  const below = new Map<string, TreeFolder[]>([['', []]])
  const hashes = new Map([['', tree]])
  for (const entry of entries) {
    const [mode = '', , hash = ''] = entry.split(/[ \t]/, 3)
    const path = entry.slice(entry.indexOf('\t') + 1)
    const isSubmodule = mode === gitlink
    if (!isSubmodule) {
      below.set(path, [])
      hashes.set(path, hash)
    }
    below.get('')?.push({ path, isSubmodule })
    for (let cut = path.indexOf('/'); cut >= 0; cut = path.indexOf('/', cut + 1))
      below.get(path.slice(0, cut))?.push({ path: path.slice(cut + 1), isSubmodule })
  }
  for (const [path, hash] of hashes) rememberFolders(hash, below.get(path) ?? [])
  return below.get('') ?? []
}

/** As `writeObject`. */
export async function writeCommit(
  git: Git,
  tree: string,
  parents: readonly string[],
  message: string,
  { nowMs, author }: { readonly nowMs: number; readonly author?: Author | undefined },
): Promise<string | undefined> {
  const when = `${Math.floor(nowMs / 1000)} ${timeZone(nowMs)}`
  const [by, written] = [author ?? { name: 'ralph', email: ownEmail }, `ralph <${ownEmail}> ${when}`]
  const lines = [`tree ${tree}`, ...new Set(parents.map((parent) => `parent ${parent}`))]
  lines.push(`author ${by.name} <${by.email}> ${when}`, `committer ${written}`)
  return await writeObject(git, 'commit', Buffer.from(`${lines.join('\n')}\n\n${message}\n`))
}

/** A commit, durable with all that was written before it when it resolves; undefined where the repository has rules of its own for new files. */
export async function writeObject(git: Git, kind: 'commit', body: Buffer): Promise<string | undefined> {
  if (isShared(git)) return undefined
  // As long as the name of its tree.
  const hash = createHash(body.indexOf('\n') > 'tree '.length + 40 ? 'sha256' : 'sha1')
    .update(`${kind} ${body.length}\0`)
    .update(body)
    .digest('hex')
  if (!(await writeObjects(git, [{ kind, hash, body }]))) return undefined
  const folders = [...unsynced]
  unsynced.clear()
  await syncFiles(folders)
  return hash
}

/** Their bytes are on the disk when it resolves, their names with the next commit: until then nobody needs them. False where that could not be. */
export async function writeObjects(
  git: Git,
  wanted: readonly { readonly kind: string; readonly hash: string; readonly body: Buffer }[],
): Promise<boolean> {
  const written: { temporary: string; hash: string; handle: number }[] = []
  try {
    for (const { kind, hash, body } of wanted) {
      const place = folderOf(git, hash)
      const temporary = `${place}/tmp_obj_${randomBytes(6).toString('hex')}`
      const handle = inFolder(place, () => openSync(temporary, 'wx', 0o444))
      written.push({ temporary, hash, handle })
      writeFileSync(handle, deflateSync(Buffer.concat([Buffer.from(`${kind} ${body.length}\0`), body])))
    }
    // Beside each other: the disk takes them in one go.
    await whole(written.map(({ handle }) => sync(handle)))
    for (const { temporary, hash } of written) {
      await rename(temporary, looseFile(git, hash))
      unsynced.add(folderOf(git, hash))
    }
    knowSynced(
      git,
      written.map(({ hash }) => looseFile(git, hash)),
    )
    return true
  } catch {
    // Git says it in its own words.
    for (const { temporary } of written) await rm(temporary, { force: true }).catch(() => undefined)
    return false
  } finally {
    for (const { handle } of written) closeSync(handle)
  }
}

/** Folders with new names. */
const unsynced = new Set<string>()

/** Its files have modes that only git knows. */
export function isShared(git: Git): boolean {
  const stats = statSync(join(git.gitCommonDir, 'objects'), { throwIfNoEntry: false })
  return ((stats?.mode ?? 0) & 0o2000) !== 0
}

const folder = '40000'
const gitlink = '160000'

export function isLoose(git: Git, hash: string): boolean {
  return existsSync(looseFile(git, hash))
}

export function looseFile(git: Git, hash: string): string {
  return `${folderOf(git, hash)}/${hash.slice(2)}`
}

function folderOf(git: Git, hash: string): string {
  return `${git.gitCommonDir}/objects/${hash.slice(0, 2)}`
}

export function readLoose(git: Git, hash: string): { kind: string; body: Buffer } | undefined {
  try {
    const whole = inflateSync(readFileSync(looseFile(git, hash)))
    const end = whole.indexOf(0)
    return { kind: whole.toString('latin1', 0, whole.indexOf(' ')), body: whole.subarray(end + 1) }
  } catch {
    return undefined
  }
}

function readTree(git: Git, hash: string): readonly TreeEntry[] | undefined {
  const known = trees.get(hash)
  if (known !== undefined) return known
  const found = readLoose(git, hash)
  if (found?.kind !== 'tree') return undefined
  const { body } = found
  const entries: TreeEntry[] = []
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(' ', at)
    const end = body.indexOf(0, space)
    const next = end + 1 + hash.length / 2
    entries.push({
      mode: body.toString('latin1', at, space),
      name: body.toString('latin1', space + 1, end),
      hash: body.toString('hex', end + 1, next),
    })
    at = next
  }
  if (treesHeld > 5_000) {
    trees.clear()
    treesHeld = 0
  }
  trees.set(hash, entries)
  treesHeld += entries.length
  return entries
}

/** False where a tree is not loose. Undefined stands for no tree. */
function collectChanges(
  git: Git,
  older: string | undefined,
  newer: string | undefined,
  prefix: string,
  into: TreeChange[],
): boolean {
  const before = older === undefined ? [] : readTree(git, older)
  const after = newer === undefined ? [] : readTree(git, newer)
  if (before === undefined || after === undefined) return false
  const others = new Map(after.map((entry) => [entry.name, entry]))
  const pairs = before.map((entry): [TreeEntry, TreeEntry | undefined] => {
    const other = others.get(entry.name)
    others.delete(entry.name)
    return [entry, other]
  })
  for (const [old, now] of [...pairs, ...[...others.values()].map((entry) => [undefined, entry] as const)]) {
    if (old?.hash === now?.hash && old?.mode === now?.mode) continue
    const path = `${prefix}${old?.name ?? now?.name ?? ''}`
    const [from, to] = [fileMode(old), fileMode(now)]
    if (from !== undefined || to !== undefined) into.push({ path, from, to })
    const within = (entry: TreeEntry | undefined): string | undefined =>
      entry?.mode === folder ? entry.hash : undefined
    if (within(old) === undefined && within(now) === undefined) continue
    if (!collectChanges(git, within(old), within(now), `${path}/`, into)) return false
  }
  return true
}

function fileMode(entry: TreeEntry | undefined): string | undefined {
  return entry?.mode === folder ? undefined : entry?.mode
}

/** By hash, so never stale. */
const trees = new Map<string, readonly TreeEntry[]>()
let treesHeld = 0
const foldersBelow = new Map<string, readonly TreeFolder[]>()
let foldersHeld = 0

function rememberFolders(tree: string, folders: readonly TreeFolder[]): void {
  if (foldersHeld > 20_000) {
    foldersBelow.clear()
    foldersHeld = 0
  }
  foldersBelow.set(tree, folders)
  foldersHeld += folders.length
}

export function timeZone(nowMs: number): string {
  const minutes = -new Date(nowMs).getTimezoneOffset()
  const digits = (value: number): string => `${Math.floor(value)}`.padStart(2, '0')
  return `${minutes < 0 ? '-' : '+'}${digits(Math.abs(minutes) / 60)}${digits(Math.abs(minutes) % 60)}`
}
