// What is in a folder besides plain files: read once, and again only when the folder itself has changed.
import { readdirSync, type Dirent, type Stats } from 'node:fs'
import { isResting } from '../../files/whole.ts'
import { statsOf } from './owner-access.ts'

/** Names in bytes (latin1). */
interface Listing {
  readonly folders: readonly string[]
  /** Pipes, sockets and devices. */
  readonly special: readonly string[]
  readonly isEmpty: boolean
  readonly isRepository: boolean
}

/** None where it cannot be looked into, or has gone. */
export function listingOf(place: Buffer | string, nowMs = Date.now()): Listing | undefined {
  const key = typeof place === 'string' ? place : place.toString('latin1')
  const stats = statsOf(place)
  const known = listings.get(key)
  if (stats !== undefined && known !== undefined && isSame(known, stats)) return known.listing
  listings.delete(key)
  const entries = entriesOf(place)
  const listing = entries && listed(entries)
  if (stats?.isDirectory() === true && listing !== undefined && isLeft(stats, nowMs)) {
    const { ino, mtimeMs, ctimeMs } = stats
    if (listings.size >= mostFolders) listings.clear()
    listings.set(key, { ino, mtimeMs, ctimeMs, listing })
  }
  return listing
}

interface Known extends Pick<Stats, 'ino' | 'mtimeMs' | 'ctimeMs'> {
  readonly listing: Listing
}

/** A name that comes, goes or stands for something else changes its folder. By their places. */
const listings = new Map<string, Known>()

const mostFolders = 50_000

function isSame(known: Known, stats: Stats): boolean {
  return known.ino === stats.ino && known.mtimeMs === stats.mtimeMs && known.ctimeMs === stats.ctimeMs
}

/** What changes it later changes its time as well: two changes in one tick of a clock would look like one. Windows does not keep that time everywhere. */
function isLeft({ mtimeMs, ctimeMs }: Stats, nowMs: number): boolean {
  return process.platform !== 'win32' && isResting(Math.max(mtimeMs, ctimeMs), nowMs)
}

function listed(entries: readonly Dirent<Buffer>[]): Listing {
  const folders: string[] = []
  const special: string[] = []
  let isRepository = false
  for (const entry of entries) {
    const isFolder = entry.isDirectory()
    // Most are plain files, and nobody asks for their names.
    if (!isFolder && entry.isFile() && !isGit(entry.name)) continue
    const name = entry.name.toString('latin1')
    if (name === '.git') isRepository = true
    if (isFolder) folders.push(name)
    else if (!entry.isFile() && !entry.isSymbolicLink()) special.push(name)
  }
  return { folders, special, isEmpty: entries.length === 0, isRepository }
}

function isGit(name: Buffer): boolean {
  return name.length === 4 && name.toString('latin1') === '.git'
}

function entriesOf(place: Buffer | string): Dirent<Buffer>[] | undefined {
  try {
    return readdirSync(place, { withFileTypes: true, encoding: 'buffer' })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (['EACCES', 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(code)) return undefined
    throw error
  }
}
