// Files that are whole or not there: writes that are durable by one rename, reads that tell "missing" from "unreadable".
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import type { BigIntStats, Stats } from 'node:fs'
import { inFolder, lstat, openRegular, readFile, rename, rm, sync, whole } from './now.ts'

/** Who may do what with a file, and whose it is. */
interface FileRights {
  readonly mode: number
  readonly uid?: number
  readonly gid?: number
}

export interface WriteOptions {
  /** Those of the file that it replaces where nothing else is asked: a 0600 file with a token in it stays 0600. */
  readonly rights?: FileRights
  /** The file to rename, on the same file system; beside it where nothing is said. */
  readonly by?: string
  /** It must be there: where it is gone, so is all that this file belongs to. */
  readonly makesNoFolder?: true
  /** It can be made again: after a power cut the old one will do, so its name is not synced. */
  readonly isCache?: true
  /** Done while its bytes reach the disk, and before it takes its place. */
  beside?(): Promise<void>
  /** Gives it its place in another way than by writing over what is there; a draft that is left over goes. */
  put?(draft: Buffer): void
}

/** Two loops of one process may write the same file at once. */
let drafts = 0

/** A link is replaced, not followed. */
export async function writeDurably(
  file: string | Buffer,
  content: string | Uint8Array,
  asked: WriteOptions = {},
): Promise<void> {
  const place = Buffer.from(file)
  const folder = place.subarray(0, Math.max(1, place.lastIndexOf('/')))
  const before = rightsOf(place)
  const rights = asked.rights === undefined ? before : { ...before, ...asked.rights }
  drafts += 1
  const temporary = Buffer.from(
    asked.by ?? Buffer.concat([place, Buffer.from(`.${process.pid}.${drafts}.tmp`)]),
  )
  try {
    const open = (): number => openSync(temporary, 'w', rights === undefined ? 0o666 : rights.mode & 0o700)
    const handle = asked.makesNoFolder === true ? open() : inFolder(folder, open)
    try {
      writeFileSync(handle, content)
      if (rights !== undefined) giveRights(handle, rights)
      await whole([sync(handle), asked.beside?.() ?? Promise.resolve()])
    } finally {
      closeSync(handle)
    }
    if (asked.put === undefined) await rename(temporary, place)
    else {
      asked.put(temporary)
      await rm(temporary, { force: true })
    }
  } catch (error) {
    // On a full disk its bytes are wanted back.
    await rm(temporary, { force: true }).catch(() => undefined)
    throw error
  }
  if (asked.isCache !== true) await syncFolder(folder)
}

/** For an exit that cannot wait; a write of the other kind may be under way. */
export function writeNow(file: string, content: string, mode: number): void {
  const temporary = `${file}.${process.pid}.now`
  const handle = openSync(temporary, 'w', mode)
  try {
    writeFileSync(handle, content)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  chmodSync(temporary, mode)
  renameSync(temporary, file)
}

/**
 * Over the bytes that are there, for what no crash has to outlive: to give blocks back and take others costs more than all the rest.
 */
export function writeOver(file: string, bytes: Buffer, mode: number): void {
  const handle = openRegular(file, constants.O_WRONLY | constants.O_CREAT, mode)
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(handle, bytes, at, bytes.length - at, at)
    if (fstatSync(handle).size > bytes.length) ftruncateSync(handle, bytes.length)
  } finally {
    closeSync(handle)
  }
}

/** Whether such a name is a file that was being written when its process was killed. */
export function isLeftover(name: string, of: string): boolean {
  return name.startsWith(`${of}.`) && /^\d+(?:(?:\.\d+)?\.(?:tmp|now))?$/.test(name.slice(of.length + 1))
}

/** A name is durable only when its folder is: after a power cut there is the old content or the new. */
export async function syncFolder(path: string | Buffer): Promise<void> {
  const handle = openSync(path, 'r')
  try {
    await sync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Regular files that are there; those that nobody may read stay as they are. */
export async function syncFiles(files: readonly (string | Buffer)[]): Promise<void> {
  for (let at = 0; at < files.length; at += 16)
    await Promise.all(files.slice(at, at + 16).map((file) => syncFile(file)))
}

async function syncFile(file: string | Buffer): Promise<void> {
  try {
    await syncFolder(file)
  } catch (error) {
    if (!isMissing(error) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
  }
}

/** The owner only where that is ours to say. */
function giveRights(handle: number, { mode, uid, gid }: FileRights): void {
  const { uid: ownUid, gid: ownGid } = fstatSync(handle)
  try {
    if ((uid ?? ownUid) !== ownUid || (gid ?? ownGid) !== ownGid)
      fchownSync(handle, uid ?? ownUid, gid ?? ownGid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
  }
  fchmodSync(handle, mode)
}

function rightsOf(place: Buffer): FileRights | undefined {
  const stats = statSync(place, { throwIfNoEntry: false })
  return stats?.isFile() === true ? { mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid } : undefined
}

/** ENOTDIR: its folder is a file now. */
export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** Undefined when it is not there; any other trouble throws. */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  // An error takes several times as long as a look, and most of what is asked for so is not there.
  return isAbsent(path) ? undefined : ifThere(readFile(path))
}

/** Whether that is certain: where it cannot be told, whoever reads it says why. */
export function isAbsent(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

/** A record of ralph's own, as its schema has it. What cannot be read as such is no absence: it throws. */
export async function readRecord<T>(
  path: string,
  schema: { parse(value: unknown): T },
): Promise<T | undefined> {
  const bytes = await readIfThere(path)
  return bytes === undefined ? undefined : schema.parse(JSON.parse(bytes.toString('utf8')))
}

export async function lstatIfThere(path: string): Promise<Stats | undefined> {
  return ifThere(lstat(path, { throwIfNoEntry: false }))
}

export async function ifThere<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export function ifThereNow<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** As long as it is the same, so is the file; empty where there is none. */
export function fileMark(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? '' : markOf(stats)
}

/** Empty while another change could still get the same time. */
export function restingMark(stats: BigIntStats): string {
  return isResting(Number(stats.ctimeNs) / 1e6) ? markOf(stats) : ''
}

/** Some file systems keep whole seconds, or two; where there is a part of a millisecond, the time is that of a tick, and the next is soon. */
export function isResting(ctimeMs: number, nowMs = Date.now()): boolean {
  return ctimeMs <= nowMs - (Number.isInteger(ctimeMs) ? 2500 : 250)
}

export function markOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
}
