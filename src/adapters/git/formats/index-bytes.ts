// Git's index as bytes: read, changed in a few entries and written again as git itself would, with the trees that it holds.
// Only the plain kind (version 2, SHA-1, no flags, no extension but the cached trees); of any other kind it is undefined, and git is asked.
import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { borrow } from './large-buffers.ts'

/** In bytes (latin1), as are all names here. */
type Path = string

/** A folder whose tree is known, `count` entries long. */
interface CachedTree {
  readonly name: string
  /** -1: it has changed since its tree was written, and there is no hash. */
  readonly count: number
  /** In bytes, as it lies there. */
  readonly raw: string
  readonly folders: readonly CachedTree[]
}

export interface IndexBytes {
  readonly bytes: Buffer
  /** Where each entry begins, and where the last one ends: an object for each of 100,000 would cost more than all the rest. */
  readonly starts: Uint32Array
  readonly root: CachedTree | undefined
}

/** An object that the new trees need, or one of them. */
export interface NewObject {
  readonly kind: 'blob' | 'tree'
  readonly hash: string
  readonly body: Buffer
}

const [headerLength, fixedLength, hashLength, shortest] = [12, 62, 20, 64]

export function parseIndex(bytes: Buffer): IndexBytes | undefined {
  const end = bytes.length - hashLength
  if (end < headerLength || bytes.toString('latin1', 0, 4) !== 'DIRC' || bytes.readUInt32BE(4) !== 2)
    return undefined
  if (!createHash('sha1').update(bytes.subarray(0, end)).digest().equals(bytes.subarray(end)))
    return undefined
  const starts = startsIn(bytes, end)
  if (starts === undefined) return undefined
  let at = starts.at(-1) ?? headerLength
  let root: CachedTree | undefined
  while (at < end) {
    if (bytes.toString('latin1', at, at + 4) !== 'TREE') return undefined
    const next = at + 8 + bytes.readUInt32BE(at + 4)
    root = parseTrees(bytes.subarray(at + 8, next))
    at = next
  }
  return at === end ? { bytes, starts, root } : undefined
}

/** Undefined where one is assumed unchanged, to be added, left out, or one side of a conflict. Short, so that V8 compiles it. */
function startsIn(bytes: Buffer, end: number): Uint32Array | undefined {
  const count = bytes.readUInt32BE(8)
  if (count > (end - headerLength) / shortest) return undefined
  const starts = new Uint32Array(count + 1)
  let at = headerLength
  let seen = 0
  for (let nth = 0; nth < count; nth++) {
    starts[nth] = at
    const flags = ((bytes[at + 60] ?? 0) << 8) | (bytes[at + 61] ?? 0)
    seen |= flags
    const length = flags & 0xfff
    at += lengthOf(length < 0xfff ? length : bytes.indexOf(0, at + fixedLength) - at - fixedLength)
  }
  starts[count] = at
  return (seen & 0xf000) === 0 && at <= end ? starts : undefined
}

export function countIn({ starts }: IndexBytes): number {
  return starts.length - 1
}

export function pathAt({ bytes, starts }: IndexBytes, nth: number): Path {
  const name = (starts[nth] ?? 0) + fixedLength
  return bytes.toString('latin1', name, bytes.indexOf(0, name))
}

export function modeAt({ bytes, starts }: IndexBytes, nth: number): number {
  return bytes.readUInt32BE((starts[nth] ?? 0) + 24)
}

export function hashAt(index: IndexBytes, nth: number): string {
  return hexOf(rawHashAt(index, nth))
}

function rawHashAt({ bytes, starts }: IndexBytes, nth: number): string {
  const at = (starts[nth] ?? 0) + 40
  return bytes.toString('latin1', at, at + hashLength)
}

/** Of the file, when git looked at it last; 0: it has not. */
export function sizeAt({ bytes, starts }: IndexBytes, nth: number): number {
  return bytes.readUInt32BE((starts[nth] ?? 0) + 36)
}

/** The entry of this path; undefined where there is none. */
export function entryAt(index: IndexBytes, path: Path): number | undefined {
  const nth = firstFrom(index, path)
  return nth < countIn(index) && pathAt(index, nth) === path ? nth : undefined
}

/** The first entry whose path is this one, or comes behind it. */
function firstFrom(index: IndexBytes, path: Path): number {
  let [low, high] = [0, countIn(index)]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (pathAt(index, middle) < path) low = middle + 1
    else high = middle
  }
  return low
}

/** Entries of files that were written in this second or later. Short, so that V8 compiles it. */
export function youngIn({ bytes, starts }: IndexBytes, seconds: number): number[] {
  const found: number[] = []
  for (let nth = 0; nth < starts.length - 1; nth++)
    if (bytes.readUInt32BE((starts[nth] ?? 0) + 8) >= seconds) found.push(nth)
  return found
}

/** What git looks at again, byte by byte, whatever its times say. */
export function distrust({ bytes, starts }: IndexBytes, nth: number): void {
  bytes.writeUInt32BE(0, (starts[nth] ?? 0) + 36)
}

/** Hashes, its own first; empty for one that is not known. */
export function treesIn({ raw, folders }: CachedTree): string[] {
  return [hexOf(raw), ...folders.flatMap(treesIn)]
}

/** Of a regular file. */
export function entryOf(path: Path, stats: BigIntStats, hash: string): Buffer {
  const bytes = Buffer.alloc(lengthOf(path.length))
  writeStats(bytes, 0, stats)
  bytes.writeUInt32BE((stats.mode & 0o100n) === 0n ? 0o100644 : 0o100755, 24)
  bytes.write(hash, 40, 'hex')
  bytes.writeUInt16BE(Math.min(path.length, 0xfff), 60)
  bytes.write(path, fixedLength, 'latin1')
  return bytes
}

/** All that an entry of any kind has of its file, but for its mode, which is what git holds. */
export function writeStats(bytes: Buffer, entryAt: number, stats: BigIntStats): void {
  const numbers = [
    [0, stats.ctimeNs / 1_000_000_000n],
    [4, stats.ctimeNs % 1_000_000_000n],
    [8, stats.mtimeNs / 1_000_000_000n],
    [12, stats.mtimeNs % 1_000_000_000n],
    [16, stats.dev],
    [20, stats.ino],
    [28, stats.uid],
    [32, stats.gid],
    [36, stats.size],
  ] as const
  for (const [at, number] of numbers) bytes.writeUInt32BE(Number(BigInt.asUintN(32, number)), entryAt + at)
}

/**
 * With these entries in it, and without those that are undefined, the first piece borrowed; and all trees that were not known. Undefined where a file and a folder
 * would have the same name.
 */
export function changeIndex(
  before: IndexBytes,
  changes: ReadonlyMap<Path, Buffer | undefined>,
):
  | { pieces: readonly Buffer[]; tree: string; trees: readonly NewObject[]; kept: readonly string[] }
  | undefined {
  const all = withEntries(before, changes)
  if (all === undefined) return undefined
  for (const [path, entry] of changes) {
    const isFile = entry !== undefined
    if (isFile && foldersOf(path).some((folder) => entryAt(all, folder) !== undefined)) return undefined
    const inside = firstFrom(all, `${path}/`)
    if (isFile && inside < countIn(all) && pathAt(all, inside).startsWith(`${path}/`)) return undefined
  }
  const touched = new Set(['', ...[...changes.keys()].flatMap((path) => foldersOf(path))])

  const trees: NewObject[] = []
  /** Of the files in the folders that had to be read again. */
  const kept: string[] = []
  let at = 0
  const treeAt = (prefix: Path, known: CachedTree | undefined, name: string): CachedTree => {
    if (known !== undefined && known.count >= 0 && !touched.has(prefix.slice(0, -1))) {
      at += known.count
      return known
    }
    const first = at
    let lines = ''
    const inner: CachedTree[] = []
    const knownInside = new Map(known?.folders.map((each) => [each.name, each]))
    while (at < countIn(all)) {
      const path = pathAt(all, at)
      if (!path.startsWith(prefix)) break
      const cut = path.indexOf('/', prefix.length)
      if (cut < 0) {
        const mode = modeAt(all, at)
        const raw = rawHashAt(all, at)
        lines += `${mode.toString(8)} ${path.slice(prefix.length)}\0${raw}`
        if (mode !== 0o160000 && !changes.has(path)) kept.push(hexOf(raw))
        at += 1
        continue
      }
      const below = path.slice(prefix.length, cut)
      const tree = treeAt(path.slice(0, cut + 1), knownInside.get(below), below)
      inner.push(tree)
      lines += `40000 ${below}\0${tree.raw}`
    }
    const body = Buffer.from(lines, 'latin1')
    const hash = hashOf('tree', body)
    trees.push({ kind: 'tree', hash, body })
    const raw = Buffer.from(hash, 'hex').toString('latin1')
    return { name, count: at - first, raw, folders: inner.sort(byLength) }
  }
  const top = treeAt('', before.root, '')

  const cached = Buffer.from(treeText(top), 'latin1')
  const extension = Buffer.alloc(8)
  extension.write('TREE', 'latin1')
  extension.writeUInt32BE(cached.length, 4)
  const sum = createHash('sha1').update(all.bytes).update(extension).update(cached).digest()
  return { pieces: [all.bytes, extension, cached, sum], tree: hexOf(top.raw), trees, kept }
}

/** The header and all entries, in order; borrowed. */
function withEntries(
  before: IndexBytes,
  changes: ReadonlyMap<Path, Buffer | undefined>,
): IndexBytes | undefined {
  const parts: Buffer[] = [before.bytes.subarray(0, headerLength)]
  let [taken, count] = [0, countIn(before)]
  const takeUntil = (nth: number): void => {
    parts.push(before.bytes.subarray(before.starts[taken], before.starts[nth]))
    taken = nth
  }
  for (const [path, entry] of [...changes].sort(([one], [other]) => (one < other ? -1 : 1))) {
    takeUntil(firstFrom(before, path))
    if (entry !== undefined) parts.push(entry)
    if (entry !== undefined) count += 1
    if (entryAt(before, path) === undefined) continue
    taken += 1
    count -= 1
  }
  takeUntil(countIn(before))
  const bytes = borrow(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) at += part.copy(bytes, at)
  bytes.writeUInt32BE(count, 8)
  const starts = startsIn(bytes, bytes.length)
  return starts && { bytes, starts, root: undefined }
}

export function hashOf(kind: string, body: Buffer): string {
  return createHash('sha1').update(`${kind} ${body.length}\0`).update(body).digest('hex')
}

/** An entry is filled up with zeros, at least one. */
function lengthOf(nameLength: number): number {
  return (fixedLength + nameLength + 8) & ~7
}

function foldersOf(path: string): string[] {
  const folders: string[] = []
  for (let cut = path.indexOf('/'); cut >= 0; cut = path.indexOf('/', cut + 1))
    folders.push(path.slice(0, cut))
  return folders
}

function parseTrees(bytes: Buffer): CachedTree | undefined {
  let at = 0
  const read = (): CachedTree => {
    const end = bytes.indexOf(0, at)
    const line = bytes.indexOf(10, end)
    const name = bytes.toString('latin1', at, end)
    const [count = -1, inner = 0] = bytes
      .toString('latin1', end + 1, line)
      .split(' ')
      .map(Number)
    at = line + 1 + (count < 0 ? 0 : hashLength)
    const raw = bytes.toString('latin1', line + 1, at)
    return { name, count, raw, folders: Array.from({ length: inner }, read) }
  }
  return bytes.length === 0 ? undefined : read()
}

/** As git sorts them there. */
function byLength({ name: one }: CachedTree, { name: other }: CachedTree): number {
  return one.length - other.length || (one < other ? -1 : 1)
}

function treeText({ name, count, raw, folders }: CachedTree): string {
  return `${name}\0${count} ${folders.length}\n${raw}${folders.map(treeText).join('')}`
}

function hexOf(raw: string): string {
  return Buffer.from(raw, 'latin1').toString('hex')
}
