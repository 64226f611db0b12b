// Git's index as bytes: read, changed in a few entries and written again as git itself would, with the trees that it holds.
// Only the plain kind (version 2, SHA-1, no flags, no extension but the cached trees); of any other kind it is undefined, and git is asked.
import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'

interface IndexEntry {
  /** In bytes (latin1), as are all names here. */
  readonly path: string
  readonly bytes: Buffer
}

/** A folder whose tree is known, `count` entries long. */
interface CachedTree {
  readonly name: string
  /** -1: it has changed since its tree was written, and there is no hash. */
  readonly count: number
  readonly hash: string
  readonly folders: readonly CachedTree[]
}

export interface IndexBytes {
  readonly entries: readonly IndexEntry[]
  readonly root: CachedTree | undefined
}

/** An object that the new trees need, or one of them. */
export interface NewObject {
  readonly kind: 'blob' | 'tree'
  readonly hash: string
  readonly body: Buffer
}

const [headerLength, fixedLength, hashLength] = [12, 62, 20]

export function parseIndex(bytes: Buffer): IndexBytes | undefined {
  const end = bytes.length - hashLength
  if (end < headerLength || bytes.toString('latin1', 0, 4) !== 'DIRC' || bytes.readUInt32BE(4) !== 2)
    return undefined
  if (!createHash('sha1').update(bytes.subarray(0, end)).digest().equals(bytes.subarray(end)))
    return undefined
  const entries: IndexEntry[] = []
  let at = headerLength
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const flags = bytes.readUInt16BE(at + 60)
    // Assumed unchanged, intent to add, left out, or one side of a conflict.
    if ((flags & 0xf000) !== 0) return undefined
    const name = at + fixedLength
    const path = bytes.toString('latin1', name, bytes.indexOf(0, name))
    const next = at + lengthOf(path)
    entries.push({ path, bytes: bytes.subarray(at, next) })
    at = next
  }
  let root: CachedTree | undefined
  while (at < end) {
    if (bytes.toString('latin1', at, at + 4) !== 'TREE') return undefined
    const next = at + 8 + bytes.readUInt32BE(at + 4)
    root = parseTrees(bytes.subarray(at + 8, next))
    at = next
  }
  return at === end ? { entries, root } : undefined
}

export function modeIn({ bytes }: IndexEntry): number {
  return bytes.readUInt32BE(24)
}

export function hashIn({ bytes }: IndexEntry): string {
  return bytes.toString('hex', 40, 40 + hashLength)
}

/** Hashes; empty for one that is not known. */
export function treesIn({ hash, folders }: CachedTree): string[] {
  return [hash, ...folders.flatMap(treesIn)]
}

/** Seconds. */
export function timeIn({ bytes }: IndexEntry): number {
  return bytes.readUInt32BE(8)
}

/** What git looks at again, byte by byte, whatever its times say. */
export function distrusted({ path, bytes }: IndexEntry): IndexEntry {
  const copy = Buffer.from(bytes)
  copy.writeUInt32BE(0, 36)
  return { path, bytes: copy }
}

/** A regular file. */
export function entryOf(path: string, stats: BigIntStats, hash: string): IndexEntry {
  const bytes = Buffer.alloc(lengthOf(path))
  const isExecutable = (stats.mode & 0o100n) !== 0n
  const numbers = [
    stats.ctimeNs / 1_000_000_000n,
    stats.ctimeNs % 1_000_000_000n,
    stats.mtimeNs / 1_000_000_000n,
    stats.mtimeNs % 1_000_000_000n,
    stats.dev,
    stats.ino,
    isExecutable ? 0o100755n : 0o100644n,
    stats.uid,
    stats.gid,
    stats.size,
  ]
  for (const [at, number] of numbers.entries())
    bytes.writeUInt32BE(Number(BigInt.asUintN(32, number)), at * 4)
  bytes.write(hash, 40, 'hex')
  bytes.writeUInt16BE(Math.min(path.length, 0xfff), 60)
  bytes.write(path, fixedLength, 'latin1')
  return { path, bytes }
}

/**
 * With these entries in it, and without those that are undefined; and all trees that were not known. Undefined where a file and a folder
 * would have the same name.
 */
export function changeIndex(
  { entries, root }: IndexBytes,
  changes: ReadonlyMap<string, IndexEntry | undefined>,
): { bytes: Buffer; tree: string; trees: readonly NewObject[]; kept: readonly IndexEntry[] } | undefined {
  const added = [...changes.values()].filter((entry) => entry !== undefined)
  const kept = entries.filter(({ path }) => !changes.has(path))
  const all = [...kept, ...added].sort(({ path: one }, { path: other }) => (one < other ? -1 : 1))
  const names = new Set(all.map(({ path }) => path))
  if (added.some(({ path }) => foldersOf(path).some((folder) => names.has(folder)))) return undefined
  const folders = new Set(all.flatMap(({ path }) => foldersOf(path)))
  if (added.some(({ path }) => folders.has(path))) return undefined
  const touched = new Set(['', ...[...changes.keys()].flatMap((path) => foldersOf(path))])

  const trees: NewObject[] = []
  /** Entries in the folders that had to be read again. */
  const read: IndexEntry[] = []
  let at = 0
  const treeAt = (prefix: string, known: CachedTree | undefined, name: string): CachedTree => {
    if (known !== undefined && known.count >= 0 && !touched.has(prefix.slice(0, -1))) {
      at += known.count
      return known
    }
    const first = at
    const parts: Buffer[] = []
    const inner: CachedTree[] = []
    for (let entry = all[at]; entry?.path.startsWith(prefix) === true; entry = all[at]) {
      const cut = entry.path.indexOf('/', prefix.length)
      if (cut < 0) {
        parts.push(treeLine(modeIn(entry), entry.path.slice(prefix.length), entry.bytes.subarray(40, 60)))
        if (!changes.has(entry.path)) read.push(entry)
        at += 1
        continue
      }
      const below = entry.path.slice(prefix.length, cut)
      const tree = treeAt(
        entry.path.slice(0, cut + 1),
        known?.folders.find((each) => each.name === below),
        below,
      )
      inner.push(tree)
      parts.push(treeLine(0o40000, below, Buffer.from(tree.hash, 'hex')))
    }
    const body = Buffer.concat(parts)
    const hash = hashOf('tree', body)
    trees.push({ kind: 'tree', hash, body })
    return { name, count: at - first, hash, folders: inner.sort(byLength) }
  }
  const top = treeAt('', root, '')

  const header = Buffer.alloc(headerLength)
  header.write('DIRC', 'latin1')
  header.writeUInt32BE(2, 4)
  header.writeUInt32BE(all.length, 8)
  const cached = Buffer.concat(treeBytes(top))
  const extension = Buffer.alloc(8)
  extension.write('TREE', 'latin1')
  extension.writeUInt32BE(cached.length, 4)
  const bytes = Buffer.concat([header, ...all.map((entry) => entry.bytes), extension, cached])
  const sum = createHash('sha1').update(bytes).digest()
  return { bytes: Buffer.concat([bytes, sum]), tree: top.hash, trees, kept: read }
}

export function hashOf(kind: string, body: Buffer): string {
  return createHash('sha1').update(`${kind} ${body.length}\0`).update(body).digest('hex')
}

/** An entry is filled up with zeros, at least one. */
function lengthOf(path: string): number {
  return (fixedLength + path.length + 8) & ~7
}

function foldersOf(path: string): string[] {
  const folders: string[] = []
  for (let cut = path.indexOf('/'); cut >= 0; cut = path.indexOf('/', cut + 1))
    folders.push(path.slice(0, cut))
  return folders
}

function treeLine(mode: number, name: string, hash: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${mode.toString(8)} ${name}\0`, 'latin1'), hash])
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
    const hash = count < 0 ? '' : bytes.toString('hex', line + 1, at)
    return { name, count, hash, folders: Array.from({ length: inner }, read) }
  }
  return bytes.length === 0 ? undefined : read()
}

/** As git sorts them there. */
function byLength({ name: one }: CachedTree, { name: other }: CachedTree): number {
  return one.length - other.length || (one < other ? -1 : 1)
}

function treeBytes({ name, count, hash, folders }: CachedTree): Buffer[] {
  const line = Buffer.from(`${name}\0${count} ${folders.length}\n`, 'latin1')
  return [line, Buffer.from(hash, 'hex'), ...folders.flatMap(treeBytes)]
}
