// Temp folders that can be found after a crash: a run's own, where agents leave megabytes, and those of one deed of a process.
import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { mountsBelow } from '../files/mounts.ts'
import { once } from '../../core/once.ts'
import { processIdentity } from './table.ts'

export function makeTemp(runId: string, env: NodeJS.ProcessEnv): string {
  return mkdtempSync(join(tempBase(env), prefixOf(runId)))
}

/** Whether it is gone. Never rejects: what an agent left there decides nothing. What is older than the folder was moved there, and is not ralph's to delete. */
export async function removeTemp(folder: string): Promise<boolean> {
  if (movedInto(folder).length > 0 || mountsBelow(folder).length > 0) return false
  if (await removed(folder)) return true
  // Caches of package managers are read-only down to their folders.
  await open(folder)
  return removed(folder)
}

/** For one that holds what is nowhere else: out of the reach of whatever clears temp folders away. Its name now. */
export function setApart(folder: string): string {
  const to = join(dirname(folder), `kept-${basename(folder)}`)
  try {
    renameSync(folder, to)
    return to
  } catch {
    return folder
  }
}

/** What lies in a temp folder and was there before it, by the time of its birth: a move within a disk keeps that. The outermost, of the first thousands. */
export function movedInto(folder: string): readonly string[] {
  const found: string[] = []
  let looks = 0
  const look = (inside: string, sinceNs: bigint): void => {
    for (const entry of readdirSync(inside, { withFileTypes: true })) {
      looks += 1
      if (looks > mostLooks) return
      const path = join(inside, entry.name)
      const { birthtimeNs, nlink } = lstatSync(path, { bigint: true })
      // A file that has another name, as in the cache of a package manager, is not lost with this one.
      const isOnly = entry.isDirectory() || nlink === 1n
      if (birthtimeNs !== 0n && birthtimeNs < sinceNs && isOnly) found.push(path)
      else if (entry.isDirectory()) look(path, sinceNs)
    }
  }
  try {
    const stats = lstatSync(folder, { bigint: true })
    if (stats.isDirectory()) look(folder, stats.birthtimeNs)
  } catch {
    // Closed to ralph, or gone meanwhile: whoever removes it sees that, too.
  }
  return found
}

const mostLooks = 5_000

/** Whatever is left of the run's, now that nothing of it is alive. */
export async function removeTemps(runId: string, env: NodeJS.ProcessEnv): Promise<void> {
  for (const folder of await tempsOf(runId, env)) await removeTemp(folder)
}

export async function tempsOf(runId: string, env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const base = tempBase(env)
  const names = await readdir(base).catch(() => [])
  return names.filter((name) => name.startsWith(prefixOf(runId))).map((name) => join(base, name))
}

/** For one deed, in a folder outside of ralph's own: a look writes nothing there, and a loop may sweep it. */
export async function inScratch<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tempBase(process.env), scratch().own))
  try {
    return await work(folder)
  } finally {
    await removeTemp(folder)
  }
}

/** For a file that each deed writes anew; while scratch is kept it is the same one again, and none has to be made and removed. */
export async function inScratchFile<T>(work: (file: string) => Promise<T>): Promise<T> {
  if (!isKept) return await inScratch((folder) => work(join(folder, 'file')))
  const spare = spares.pop()
  const file =
    spare !== undefined && existsSync(dirname(spare))
      ? spare
      : join(mkdtempSync(join(tempBase(process.env), scratch().own)), 'file')
  try {
    return await work(file)
  } finally {
    // Whoever kept it may have ended meanwhile.
    if (isKept) spares.push(file)
    else await removeTemp(dirname(file))
  }
}

/** One that all read and nobody writes: made once for as long as scratch is kept. Undefined while it is not. */
export function keptFile(name: string, bytes: Uint8Array): string | undefined {
  if (!isKept) return undefined
  const known = kept.get(name)
  if (known !== undefined && existsSync(known)) return known
  const file = join(realpathSync(mkdtempSync(join(tempBase(process.env), scratch().own))), name)
  writeFileSync(file, bytes, { mode: 0o400 })
  kept.set(name, file)
  return file
}

/** For as long as a loop goes on; afterwards nothing of it is left. */
export async function keepScratch(isWanted: boolean): Promise<void> {
  isKept = isWanted
  if (isWanted) return
  const files = [...spares.splice(0), ...kept.values()]
  kept.clear()
  for (const file of files) await removeTemp(dirname(file))
}

let isKept = false
const spares: string[] = []
const kept = new Map<string, string>()

/** What processes that were killed have left. */
export async function removeScratch(): Promise<void> {
  const base = tempBase(process.env)
  const names = await readdir(base).catch(() => [])
  for (const name of names) {
    const [, pid, started] = name.startsWith(scratch().here) ? (/-(\d+)-(\w+)-\w+$/.exec(name) ?? []) : []
    if (pid !== undefined && started !== startOf(Number(pid))) await removeTemp(join(base, name))
  }
}

/** Of this machine and container only: pids of another one tell nothing. */
const scratch = once(() => {
  const room = process.platform === 'linux' ? readlinkSync('/proc/self/ns/pid') : ''
  const here = `ralph-scratch-${short(`${hostname()} ${room}`)}-`
  return { here, own: `${here}${process.pid}-${startOf(process.pid)}-` }
})

function startOf(pid: number): string {
  return short(processIdentity(pid))
}

function short(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}

async function removed(folder: string): Promise<boolean> {
  return removedNow(folder) || removedInTime(folder)
}

function removedNow(folder: string): boolean {
  try {
    // Behind a link lies what is not ralph's.
    if (!lstatSync(folder).isDirectory()) return false
    const found = fewIn(folder, 16)
    if (found === undefined) return false
    for (const { path, isFolder } of found.toReversed())
      if (isFolder) rmdirSync(path)
      else unlinkSync(path)
    rmdirSync(folder)
    return true
  } catch {
    return false
  }
}

interface Found {
  readonly path: string
  readonly isFolder: boolean
}

/** All that a folder holds, folders before what is in them; undefined where it is more. A few at once: through Node's threads that takes ten times as long. */
function fewIn(folder: string, most: number): Found[] | undefined {
  const found: Found[] = []
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const [path, isFolder] = [join(folder, entry.name), entry.isDirectory()]
    found.push({ path, isFolder })
    // Such as the empty ones that a cage has made for its mounts.
    const inside = isFolder ? fewIn(path, most - found.length) : []
    if (inside === undefined) return undefined
    found.push(...inside)
    if (found.length > most) return undefined
  }
  return found
}

function removedInTime(folder: string): Promise<boolean> {
  return rm(folder, { recursive: true, force: true, maxRetries: 3 }).then(
    () => true,
    () => false,
  )
}

async function open(folder: string): Promise<void> {
  // A link is no folder here: what it points to is not ralph's.
  const isFolder = await lstat(folder)
    .then((stat) => stat.isDirectory())
    .catch(() => false)
  if (!isFolder) return
  await chmod(folder, 0o700).catch(() => undefined)
  for (const name of await readdir(folder).catch(() => [])) await open(join(folder, name))
}

export function tempBase(env: NodeJS.ProcessEnv): string {
  // One that is not there, cannot be written, is relative to the work tree, or lies in one, is no place for it.
  const wished = [env['TMPDIR'] ?? '', tmpdir(), '/tmp']
  return (
    wished.find((folder) => isAbsolute(folder) && isWritable(folder) && !isInWorkTree(folder)) ?? tmpdir()
  )
}

/** There git would take what ralph puts in it for somebody's change. */
function isInWorkTree(folder: string): boolean {
  const known = inWorkTree.get(folder)
  if (known !== undefined) return known
  const up = dirname(folder)
  const isIn =
    basename(folder) !== '.git' && (existsSync(join(folder, '.git')) || (up !== folder && isInWorkTree(up)))
  inWorkTree.set(folder, isIn)
  return isIn
}

const inWorkTree = new Map<string, boolean>()

export function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Short: sockets of tools are made in there, and their paths end at 108 bytes. */
function prefixOf(runId: string): string {
  return `ralph-${runId.replaceAll(/[^\w-]/g, '').slice(0, 13)}-`
}
