// Entries of an index that git would trust too early: it compares whole seconds, and of two changes in one second only the mtime, which
// anybody can put back. Such a file is compared byte by byte, whatever kind of index it is.
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempBase } from '../process/temp.ts'
import type { Git } from './git.ts'

/** A look through an index, the repository's own unless one is named; it stays as it is. */
export async function lookThrough<T>(
  git: Git,
  index: string | undefined,
  look: (index: string | undefined) => Promise<T>,
): Promise<T> {
  const file = index ?? join(git.gitDir, 'index')
  const doubted = withoutYoung(file, () => true)
  if (doubted === undefined) return await look(index)
  const folder = mkdtempSync(join(tempBase(process.env), 'ralph-index-'))
  try {
    const copy = join(folder, 'index')
    write(copy, doubted)
    return await look(copy)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** In a private index: git would say of these that it has them already. */
export function distrustIn(index: string, paths: readonly string[]): void {
  const wanted = new Set(paths)
  const doubted = wanted.size === 0 ? undefined : withoutYoung(index, (path) => wanted.has(path))
  if (doubted === undefined) return
  write(`${index}.tmp`, doubted)
  renameSync(`${index}.tmp`, index)
}

interface Doubted {
  readonly bytes: Buffer
  readonly mtimeMs: number
}

function write(file: string, { bytes, mtimeMs }: Doubted): void {
  writeFileSync(file, bytes, { mode: 0o600 })
  // By its time git tells what else it has to compare.
  const seconds = Math.floor(mtimeMs) / 1000
  utimesSync(file, seconds, seconds)
}

/** Undefined where there is none of them. */
function withoutYoung(index: string, isWanted: (path: string) => boolean): Doubted | undefined {
  const stats = statSync(index, { throwIfNoEntry: false })
  if (stats?.isFile() !== true) return undefined
  const { mtimeMs } = stats
  const bytes = distrustYoung(readFileSync(index), Math.floor(mtimeMs / 1000), isWanted)
  return bytes && { bytes, mtimeMs }
}

/** What git writes after it has looked at a file may be a moment younger. */
const slackSeconds = 1

/** The bytes of an index of this time, in which no entry as young as it is trusted. Undefined where there is none, or it is no index. */
export function distrustYoung(
  bytes: Buffer,
  seconds: number,
  isWanted: (path: string) => boolean = () => true,
): Buffer | undefined {
  const kind = kinds.find(({ length }) => isWhole(bytes, length))
  if (kind === undefined) return undefined
  const { length, name } = kind
  const young: number[] = []
  walk(bytes, length, (at, path) => {
    const isFileOrLink = [0o10, 0o12].includes(bytes.readUInt32BE(at + 24) >> 12)
    const isYoung = bytes.readUInt32BE(at) >= seconds - slackSeconds
    if (isYoung && isFileOrLink && bytes.readUInt32BE(at + 36) !== 0 && isWanted(path())) young.push(at)
  })
  if (young.length === 0) return undefined
  const copy = Buffer.from(bytes)
  // As git itself marks them.
  for (const at of young) copy.writeUInt32BE(0, at + 36)
  const end = copy.length - length
  // All zeros: `index.skipHash`.
  if (copy.subarray(end).some((byte) => byte !== 0))
    createHash(name).update(copy.subarray(0, end)).digest().copy(copy, end)
  return copy
}

const kinds = [
  { name: 'sha1', length: 20 },
  { name: 'sha256', length: 32 },
] as const

/** Whether entries and extensions fill it exactly, with hashes of this length. */
function isWhole(bytes: Buffer, hashLength: number): boolean {
  const end = bytes.length - hashLength
  if (end < 12 || bytes.toString('latin1', 0, 4) !== 'DIRC') return false
  if (![2, 3, 4].includes(bytes.readUInt32BE(4))) return false
  let at = walk(bytes, hashLength, () => undefined)
  while (at !== undefined && at + 8 <= end) at += 8 + bytes.readUInt32BE(at + 4)
  return at === end
}

/** Returns where the entries end; undefined where they do not fit. */
function walk(
  bytes: Buffer,
  hashLength: number,
  visit: (at: number, path: () => string) => void,
): number | undefined {
  const isPacked = bytes.readUInt32BE(4) === 4
  const end = bytes.length - hashLength
  let at = 12
  let before = ''
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const flagsAt = at + 40 + hashLength
    if (flagsAt + 4 > end) return undefined
    const isLong = (bytes.readUInt16BE(flagsAt) & 0x4000) !== 0
    let nameAt = flagsAt + (isLong ? 4 : 2)
    let kept = ''
    if (isPacked) {
      // How much of the name before goes, in seven bits at a time.
      let byte = bytes[nameAt++] ?? 0
      let cut = byte & 0x7f
      while ((byte & 0x80) !== 0 && nameAt < end) {
        byte = bytes[nameAt++] ?? 0
        cut = (cut + 1) * 128 + (byte & 0x7f)
      }
      kept = before.slice(0, Math.max(0, before.length - cut))
    }
    const nameEnd = bytes.indexOf(0, nameAt)
    if (nameEnd < 0 || nameEnd >= end) return undefined
    const first = nameAt
    const path = (): string => kept + bytes.toString('latin1', first, nameEnd)
    if (isPacked) before = path()
    visit(at, path)
    at = isPacked ? nameEnd + 1 : at + ((nameEnd - at + 8) & ~7)
  }
  return at
}
