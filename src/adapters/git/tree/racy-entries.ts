// Racy entries of an index (git's own word), which git would trust too early: it compares whole seconds, and of two changes in one second only the mtime, which
// anybody can put back. Such a file is compared byte by byte, whatever kind of index it is.
import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync, renameSync, statSync, utimesSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { join } from 'node:path'
import { writeOver } from '../../files/whole.ts'
import { inScratchFile } from '../../process/temp.ts'
import type { Git } from '../git.ts'
import { isSplit, makeWhole } from '../formats/index-file.ts'
import { writeStats } from '../formats/index-bytes.ts'
import { borrowFile, giveBack } from '../formats/large-buffers.ts'

/** A look through an index, the repository's own unless one is named; it stays as it is. */
export async function lookThrough<T>(
  git: Git,
  index: string | undefined,
  look: (index: string | undefined) => Promise<T>,
): Promise<T> {
  const file = index ?? join(git.gitDir, 'index')
  const isTwo = index === undefined && isSplit(file, git.gitDir)
  const doubted = isTwo ? undefined : withoutRacy(file)
  if (doubted === undefined && !isTwo) return await look(index)
  return await inScratchFile(async (copy) => {
    if (doubted === undefined) return await lookThrough(git, await wholeCopy(git, file, copy), look)
    write(copy, doubted)
    giveBack(doubted.bytes)
    return await look(copy)
  })
}

async function wholeCopy(git: Git, index: string, copy: string): Promise<string> {
  const { mtimeMs } = statSync(index)
  copyFileSync(index, copy)
  await makeWhole(git, copy)
  write(copy, { bytes: readFileSync(copy), mtimeMs })
  return copy
}

/** In a private index: git would say of these that it has them already. */
export function distrustIn(index: string, paths: readonly string[]): void {
  const wanted = new Set(paths)
  const doubted = wanted.size === 0 ? undefined : withoutRacy(index, (path) => wanted.has(path))
  if (doubted === undefined) return
  write(`${index}.tmp`, doubted)
  giveBack(doubted.bytes)
  renameSync(`${index}.tmp`, index)
}

/** In a private index: what git may go by of files that hold what it has, as long as nobody writes them. */
export function recordStats(index: string, stats: ReadonlyMap<string, BigIntStats>): void {
  if (stats.size === 0) return
  const bytes = borrowFile(index)
  const isKnown = kinds.some(({ name, length }) => {
    const found: [at: number, stats: BigIntStats][] = []
    const meet = (at: number, path: () => string): void => {
      const seen = stats.get(path())
      if (seen !== undefined) found.push([at, seen])
    }
    if (!meetEntries(bytes, { hashLength: length, since: 0, meet })) return false
    for (const [at, seen] of found) writeStats(bytes, at, seen)
    sign(bytes, name, length)
    return true
  })
  if (isKnown) {
    // It may become the repository's own, which others read.
    writeOver(`${index}.tmp`, bytes, statSync(index).mode & 0o777)
    renameSync(`${index}.tmp`, index)
  }
  giveBack(bytes)
}

interface Doubted {
  /** Borrowed. */
  readonly bytes: Buffer
  readonly mtimeMs: number
}

function write(file: string, { bytes, mtimeMs }: Doubted): void {
  writeOver(file, bytes, 0o600)
  // By its time git tells what else it has to compare.
  const seconds = Math.floor(mtimeMs) / 1000
  utimesSync(file, seconds, seconds)
}

/** Undefined where there is none of them. */
function withoutRacy(index: string, isWanted?: (path: string) => boolean): Doubted | undefined {
  const stats = statSync(index, { throwIfNoEntry: false })
  if (stats?.isFile() !== true) return undefined
  const { mtimeMs } = stats
  const borrowed = borrowFile(index)
  const bytes = distrustRacy(borrowed, Math.floor(mtimeMs / 1000), isWanted)
  if (bytes === undefined) giveBack(borrowed)
  return bytes && { bytes, mtimeMs }
}

/** What git writes after it has looked at a file may be a moment younger. */
const slackSeconds = 1

/**
 * The bytes of an index of this time, changed so that no racy entry is trusted. Undefined, and nothing changed, where there is
 * none, or it is no index.
 */
export function distrustRacy(
  bytes: Buffer,
  seconds: number,
  isWanted?: (path: string) => boolean,
): Buffer | undefined {
  for (const { length, name } of kinds) {
    const racy = racyIn(bytes, length, seconds - slackSeconds, isWanted)
    if (racy === undefined) continue
    if (racy.length === 0) return undefined
    // As git itself marks them.
    for (const at of racy) bytes.writeUInt32BE(0, at + 36)
    sign(bytes, name, length)
    return bytes
  }
  return undefined
}

function sign(bytes: Buffer, name: string, length: number): void {
  const end = bytes.length - length
  // All zeros: `index.skipHash`.
  if (bytes.subarray(end).some((byte) => byte !== 0))
    createHash(name).update(bytes.subarray(0, end)).digest().copy(bytes, end)
}

const kinds = [
  { name: 'sha1', length: 20 },
  { name: 'sha256', length: 32 },
] as const

/** Where the entries of files and links are that git may trust, of this second or later; undefined where it is no index of hashes of this length. */
function racyIn(
  bytes: Buffer,
  hashLength: number,
  since: number,
  isWanted: ((path: string) => boolean) | undefined,
): readonly number[] | undefined {
  const racy: number[] = []
  const meet = (at: number, path: () => string): void => {
    if (isTrusted(bytes, at) && (isWanted === undefined || isWanted(path()))) racy.push(at)
  }
  return meetEntries(bytes, { hashLength, since, meet }) ? racy : undefined
}

/** False where entries and extensions, with hashes of this length, do not fill it exactly. */
function meetEntries(bytes: Buffer, pass: Pass): boolean {
  const end = bytes.length - pass.hashLength
  if (end < 12 || bytes.toString('latin1', 0, 4) !== 'DIRC') return false
  const version = bytes.readUInt32BE(4)
  if (![2, 3, 4].includes(version)) return false
  let at = (version === 4 ? passShort : passWhole)(bytes, end, pass)
  while (at + 8 <= end) at += 8 + bytes.readUInt32BE(at + 4)
  return at === end
}

interface Pass {
  readonly hashLength: number
  readonly since: number
  /** An entry of this second or later. */
  readonly meet: (at: number, path: () => string) => void
}

/** Returns where the entries end, or NaN. There may be 100,000 of them, at every look: it makes nothing for an entry, and is short, so that V8 compiles it. */
function passWhole(bytes: Buffer, end: number, { hashLength, since, meet }: Pass): number {
  let at = 12
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const flagsAt = at + 40 + hashLength
    if (flagsAt + 4 > end) return Number.NaN
    const flags = bytes.readUInt16BE(flagsAt)
    const nameAt = flagsAt + ((flags & 0x4000) === 0 ? 2 : 4)
    const nameEnd = endOfName(bytes, nameAt, flags & 0xfff)
    if (nameEnd < nameAt || nameEnd >= end) return Number.NaN
    if (bytes.readUInt32BE(at) >= since) meet(at, () => bytes.toString('latin1', nameAt, nameEnd))
    at += (nameEnd - at + 8) & ~7
  }
  return at
}

/** As `passWhole`, of the fourth version, in which a name begins as the one before it. */
function passShort(bytes: Buffer, end: number, { hashLength, since, meet }: Pass): number {
  let at = 12
  let before = ''
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const flagsAt = at + 40 + hashLength
    if (flagsAt + 4 > end) return Number.NaN
    const flags = bytes.readUInt16BE(flagsAt)
    let nameAt = flagsAt + ((flags & 0x4000) === 0 ? 2 : 4)
    // How much of the name before goes, in seven bits at a time.
    let byte = bytes[nameAt++] ?? 0
    let cut = byte & 0x7f
    while ((byte & 0x80) !== 0 && nameAt < end) {
      byte = bytes[nameAt++] ?? 0
      cut = (cut + 1) * 128 + (byte & 0x7f)
    }
    const kept = before.slice(0, Math.max(0, before.length - cut))
    const nameEnd = endOfName(bytes, nameAt, (flags & 0xfff) - kept.length)
    if (nameEnd < nameAt || nameEnd >= end) return Number.NaN
    const path = kept + bytes.toString('latin1', nameAt, nameEnd)
    if (bytes.readUInt32BE(at) >= since) meet(at, () => path)
    before = path
    at = nameEnd + 1
  }
  return at
}

/** How long a name is, up to 4,095, is in the flags. */
function endOfName(bytes: Buffer, nameAt: number, length: number): number {
  return bytes[nameAt + length] === 0 ? nameAt + length : bytes.indexOf(0, nameAt)
}

function isTrusted(bytes: Buffer, at: number): boolean {
  return [0o10, 0o12].includes(bytes.readUInt32BE(at + 24) >> 12) && bytes.readUInt32BE(at + 36) !== 0
}
