// The very bytes of uncommitted files where git would bring back others: kept as blobs of their own, written back by a revert.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { RalphError } from '../../../core/error.ts'
import { convertedPaths, isLargeFile, mayConvert, type Conversions } from './conversions.ts'
import { lstatNow, onDisk } from './files.ts'
import { named, type Git } from '../git.ts'
import { openAbove } from './owner-access.ts'
import { moveRefs, readRef } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { commitTree, emptyTree, entryPath, indexEntries, joined } from './tree.ts'

const exactSchema = z.object({
  /** Of the bytes on disk, unconverted. */
  id: z.string(),
  /** What git holds of them. */
  blob: z.string(),
  /** The attributes of the path when this was found out. */
  how: z.string(),
  /** Whether the bytes are a blob of their own; otherwise git's checkout brings them back. */
  held: z.boolean(),
})
export const exactBytesSchema = z.record(z.string(), exactSchema)
type ExactBytes = z.infer<typeof exactBytesSchema>

/** Of those of the paths that git converts. A repository without conversions costs no process. */
export async function rememberBytes(
  store: Store,
  what: {
    readonly paths: readonly string[]
    readonly folders: readonly string[]
    /** Of the checkpoint's tree. */
    readonly index: string
    readonly conversions: Conversions
    readonly earlier: ExactBytes
  },
): Promise<ExactBytes> {
  const { git } = store
  if (!mayConvert(store, what.conversions, what.folders)) return {}
  const files = what.paths.filter((path) => isFile(git.worktree, path))
  const converted = await convertedPaths(git, what.conversions, files)
  if (converted.size === 0) return {}
  const blobs = await blobsOf(git, what.index)
  const found: ExactBytes = {}
  const fresh: string[] = []
  for (const [path, how] of converted) {
    const blob = blobs.get(path)
    const id = blob === undefined ? undefined : idOf(git.worktree, path, blob.length)
    if (blob === undefined || id === undefined) continue
    const known = what.earlier[path]
    const isKnown = known?.id === id && known.blob === blob && known.how === how
    found[path] = isKnown ? known : { id, blob, how, held: false }
    if (!isKnown && !isLargeFile(how)) fresh.push(path)
  }
  const lossy = new Set(await notBroughtBack(store, what.index, fresh))
  const bytes = Object.fromEntries(
    Object.entries(found).map(([path, exact]) => [path, lossy.has(path) ? { ...exact, held: true } : exact]),
  )
  await hold(store, bytes, [...lossy], what.earlier)
  return bytes
}

/** Whether the file is what was remembered of it, whatever git makes of that now. */
export function isExact(git: Git, { bytes }: Snapshot, path: string): boolean {
  const id = bytes[path]?.id
  return id !== undefined && isFile(git.worktree, path) && idOf(git.worktree, path, id.length) === id
}

/** After git has brought back what it holds. */
export async function putBackBytes(
  store: Store,
  snapshot: Snapshot,
  stays: (path: string) => boolean,
): Promise<void> {
  const { git } = store
  const bytes = snapshot.bytes
  const wrong = (): string[] =>
    Object.entries(bytes)
      .filter(([path, { id }]) => isFile(git.worktree, path) && idOf(git.worktree, path, id.length) !== id)
      .filter(([path]) => !stays(path))
      .map(([path]) => path)
  const first = wrong()
  if (first.length === 0) return
  openAbove(git.worktree, first)
  const plain = first.filter((path) => bytes[path]?.held === false)
  // Git saw no difference, so it has not written them yet.
  if (plain.length > 0) {
    const index = join(store.folder, snapshot.index)
    await git.run(['checkout-index', '--force', '--quiet', '-z', '--stdin'], { index, input: joined(plain) })
  }
  const held = first.filter((path) => bytes[path]?.held === true)
  const contents = await contentsOf(
    git,
    held.map((path) => bytes[path]?.id ?? ''),
  )
  for (const path of held) {
    const content = contents.get(bytes[path]?.id ?? '')
    if (content !== undefined) await replaceFile(git.worktree, path, content)
  }
  await forgetSizes(git, join(store.folder, snapshot.index), held)
  const left = wrong()
  if (left.length === 0) return
  await store.note({
    type: 'warning',
    code: 'converted',
    message: `git's conversions do not restore the exact bytes of ${left.slice(0, 10).map(named).join(', ')}: they are as git checks them out`,
  })
}

/** Git calls a file changed whose size is not the one in the index, without a look at what its filter makes of it. */
export async function forgetSizes(git: Git, index: string, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  const wanted = new Set(paths)
  const entries = (await indexEntries(git, index)).filter((entry) => wanted.has(entryPath(entry)))
  if (entries.length === 0) return
  const input = joined(entries.map((entry) => entry.slice(2)))
  await git.run(['update-index', '-z', '--index-info'], { index, input })
}

/** Which of these a checkout would not bring back as they are: tried, beside the work tree, because nothing else is sure. */
export async function notBroughtBack(
  store: Pick<Store, 'git' | 'folder'>,
  index: string,
  paths: readonly string[],
): Promise<string[]> {
  if (paths.length === 0) return []
  const { worktree } = store.git
  const folder = join(store.folder, 'tried')
  await rm(folder, { recursive: true, force: true })
  const args = ['checkout-index', '--force', '--quiet', `--prefix=${folder}/`, '-z', '--stdin']
  // A filter that fails brings nothing back.
  await store.git.run(args, { index, input: joined(paths), accept: [1, 128] })
  const isBack = (path: string): boolean =>
    isFile(folder, path) && idOf(folder, path, 40) === idOf(worktree, path, 40)
  const lossy = paths.filter((path) => isFile(worktree, path) && !isBack(path))
  await rm(folder, { recursive: true, force: true })
  return lossy
}

/** One commit after the other under one ref: what was held once stays. */
async function hold(
  store: Store,
  bytes: ExactBytes,
  fresh: readonly string[],
  earlier: ExactBytes,
): Promise<void> {
  const { git } = store
  const isOwn = ({ id, blob, held }: ExactBytes[string]): boolean => held && id !== blob
  const written = fresh.filter((path) => bytes[path] !== undefined && isOwn(bytes[path]))
  if (written.length === 0) return
  await writeBlobs(git, written)
  const ids = [...Object.values(earlier), ...Object.values(bytes)].filter(isOwn).map(({ id }) => id)
  const entries = [...new Set(ids)].sort().map((id) => `100644 blob ${id}\t${id}\n`)
  const tree = await git.line(['mktree', '--missing'], { input: entries.join('') })
  const ref = `${store.refs}/bytes`
  const before = await readRef(git, ref)
  const commit = await commitTree(git, tree, [before], 'bytes that git would convert')
  await moveRefs(git, 'bytes', [`update ${ref} ${commit}`])
}

/** What git says of an encoding that does not fit the file; empty where it failed for another reason. */
export function cannotConvert(error: unknown): string {
  return misfitsIn(error instanceof RalphError ? error.message : '')[0] ?? ''
}

export function misfitsIn(words: string): string[] {
  return words.match(/(?:BOM is (?:required|prohibited) in|failed to encode) '[^\n]*/g) ?? []
}

/** Those of the paths that git would convert on their way into the index, as they are on disk instead. */
export async function addRaw(
  git: Git,
  { conversions = [] }: Pick<Snapshot, 'conversions'>,
  index: string,
  paths: readonly string[],
): Promise<ReadonlySet<string>> {
  const files = paths.filter((path) => lstatNow(git.worktree, path)?.isFile() === true)
  const raw = [...(await convertedPaths(git, conversions, files)).keys()]
  await writeBlobs(git, raw)
  const { length } = await emptyTree(git)
  const entries = raw.map((path) => {
    const isExecutable = ((lstatNow(git.worktree, path)?.mode ?? 0) & 0o100) !== 0
    return `${isExecutable ? '100755' : '100644'} ${idOf(git.worktree, path, length)}\t${path}`
  })
  await git.run(['update-index', '--replace', '-z', '--index-info'], { index, input: joined(entries) })
  return new Set(raw)
}

export async function writeBlobs(git: Git, paths: readonly string[]): Promise<void> {
  const args = ['hash-object', '-w', '--no-filters']
  // Behind `./` no name is taken for a quoted one; one with a line break cannot be listed.
  const listed = paths.filter((path) => !path.includes('\n'))
  const input = Buffer.from(listed.map((path) => `./${path}\n`).join(''), 'latin1')
  if (listed.length > 0) await git.run([...args, '--stdin-paths'], { input })
  for (const path of paths.filter((each) => each.includes('\n')))
    await git.run([...args, '--stdin'], { input: readFileSync(onDisk(git.worktree, path)) })
}

export async function contentsOf(git: Git, ids: readonly string[]): Promise<Map<string, Buffer>> {
  const contents = new Map<string, Buffer>()
  if (ids.length === 0) return contents
  const { out } = await git.run(['cat-file', '--batch'], { input: `${[...new Set(ids)].join('\n')}\n` })
  for (let at = 0; at < out.length;) {
    const end = out.indexOf('\n', at)
    const [id = '', , size] = out.slice(at, end).split(' ')
    at = end + 1
    if (size === undefined) continue
    contents.set(id, Buffer.from(out.slice(at, at + Number(size)), 'latin1'))
    at += Number(size) + 1
  }
  return contents
}

/** A new file under the old name: the old one may be read-only, or have a second name elsewhere. */
export async function replaceFile(
  folder: string,
  path: string,
  content: Buffer,
  mode = (lstatNow(folder, path)?.mode ?? 0o644) & 0o777,
): Promise<void> {
  const place = onDisk(folder, path)
  await unlink(place)
  await writeFile(place, content, { mode, flag: 'wx', flush: true })
}

async function blobsOf(git: Git, index: string): Promise<Map<string, string>> {
  const entries = await indexEntries(git, index)
  return new Map(entries.map((entry) => [entryPath(entry), entry.split(' ')[2] ?? '']))
}

/** Beyond this size nobody hashes them twice at every checkpoint. */
export const mostBytes = 50e6

function isFile(worktree: string, path: string): boolean {
  const stat = lstatNow(worktree, path)
  return stat?.isFile() === true && stat.size <= mostBytes
}

/** The name that git would give to these bytes, in a repository whose names have this length. */
export function idOf(worktree: string, path: string, length: number): string {
  const content = readFileSync(onDisk(worktree, path))
  return createHash(length === 40 ? 'sha1' : 'sha256')
    .update(`blob ${content.length}\0`)
    .update(content)
    .digest('hex')
}
