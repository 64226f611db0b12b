// Refs that are files of their own, folder by folder: what was read is kept, and read again where it may have changed.
import { lstatSync, readFileSync, readdirSync, readlinkSync, type Dirent, type Stats } from 'node:fs'
import type { RefName } from '../../../core/git-facts.ts'
import { isMissing, isResting, restingMark } from '../../files/whole.ts'
import { textOf } from './bytes.ts'

/** A folder of refs as it was read. One that is the same object has the same in it. */
export interface Folder {
  readonly folders: readonly string[]
  readonly files: readonly LooseFile[]
  /** Of the files, by name: symbolic ones, and what only looks like a ref. */
  readonly odd: readonly string[]
  readonly locks: readonly string[]
}

/** By its name in bytes (latin1); with an empty hash one that is odd, with none one that is gone. */
interface LooseFile {
  readonly name: string
  readonly hash: string | undefined
  readonly mark: FileMark | undefined
}

type FileMark = Readonly<Record<'ino' | 'size' | 'mtimeMs' | 'ctimeMs', number>>

/** As long as they have this mark, nothing came or went. */
const folders = new Map<string, { readonly mark: string; readonly folder: Folder }>()

/** Into `found`, by their names; a kind that is one ref counts as a folder with that in it. */
export function collectLoose(
  root: string,
  name: string,
  found: Map<string, Folder>,
  isThorough: boolean,
): void {
  const place = placeOf(root, name)
  const stats = lstatSync(place, { bigint: true, throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isDirectory()) {
    found.set(name, { ...emptyFolder, ...withOdd([{ name, hash: readLoose(place), mark: undefined }]) })
    return
  }
  const key = `${root}/${name}`
  const known = folders.get(key)
  const mark = restingMark(stats)
  const isSame = mark !== '' && known?.mark === mark
  const folder = isSame
    ? isThorough
      ? lookAgain(root, known.folder)
      : known.folder
    : readFolder(root, name, known?.folder)
  folders.set(key, { mark, folder })
  found.set(name, folder)
  for (const inner of folder.folders) collectLoose(root, inner, found, isThorough)
}

function readFolder(root: string, name: string, known: Folder | undefined): Folder {
  const before = new Map(known?.files.map((file) => [file.name, file]))
  const entries = entriesOf(placeOf(root, name))
  const inner = (entry: Dirent<Buffer>): string => `${name}/${entry.name.toString('latin1')}`
  const [inside, files] = [true, false].map((isFolder) =>
    entries.filter((entry) => entry.isDirectory() === isFolder).map(inner),
  )
  const refs = files?.filter(isRefName).map((file) => looseFile(root, file, before.get(file))) ?? []
  const locks = files?.filter((file) => file.endsWith('.lock')).map((file) => `${root}/${textOf(file)}`)
  const now = { ...withOdd(refs), folders: inside?.filter(isRefName) ?? [], locks: locks ?? [] }
  const isKnown = (['files', 'folders', 'locks'] as const).every((what) => isSame(known?.[what], now[what]))
  return isKnown && known !== undefined ? known : now
}

function isSame(one: readonly unknown[] | undefined, other: readonly unknown[]): boolean {
  return one?.length === other.length && other.every((each, at) => each === one[at])
}

/** Nothing came or went, but what is there may have been written to. */
function lookAgain(root: string, known: Folder): Folder {
  const files = known.files.map((file) => looseFile(root, file.name, file))
  return isSame(known.files, files) ? known : { ...known, ...withOdd(files) }
}

const emptyFolder: Folder = { folders: [], files: [], odd: [], locks: [] }

function withOdd(files: readonly LooseFile[]): Pick<Folder, 'files' | 'odd'> {
  return { files, odd: files.filter(({ hash }) => hash === '').map(({ name }) => name) }
}

function looseFile(root: string, name: string, before: LooseFile | undefined): LooseFile {
  const file = placeOf(root, name)
  const stats = lstatSync(file, { throwIfNoEntry: false })
  const known = before?.mark
  const isSame =
    known !== undefined &&
    stats !== undefined &&
    known.ctimeMs === stats.ctimeMs &&
    known.mtimeMs === stats.mtimeMs &&
    known.ino === stats.ino &&
    known.size === stats.size
  if (before !== undefined && isSame) return before
  const rests = stats?.isFile() === true && isResting(stats.ctimeMs)
  const hash = readLoose(file, stats)
  if (!rests && before !== undefined && known === undefined && before.hash === hash) return before
  const { ino = 0, size = 0, mtimeMs = 0, ctimeMs = 0 } = stats ?? {}
  return { name, hash, mark: rests ? { ino, size, mtimeMs, ctimeMs } : undefined }
}

export function hashesIn(folder: Folder | undefined): ReadonlyMap<string, string> {
  const hashes = new Map<string, string>()
  for (const { name, hash } of folder?.files ?? []) if (hash !== undefined) hashes.set(name, hash)
  return hashes
}

/** A name may have bytes that are no text. */
export function placeOf(root: string, name: string): string | Buffer {
  // oxlint-disable-next-line no-control-regex -- every other byte
  if (/^[\x00-\x7f]*$/.test(name)) return `${root}/${name}`
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, 'latin1')])
}

export function entriesOf(place: string | Buffer): Dirent<Buffer>[] {
  try {
    return readdirSync(place, { withFileTypes: true, encoding: 'buffer' })
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** As `git check-ref-format` has it. */
export function isRefName(name: string): boolean {
  // oxlint-disable-next-line no-control-regex -- names of refs have none
  return !/(^|\/)\.|\.\.|\/\/|^\/|\/$|\.lock($|\/)|[\x00-\x20\x7f~^:?*[\\]|@\{|\.$/.test(name)
}

/** Undefined where there is none; empty for a symbolic one and for what is no ref. */
export function readLoose(place: string | Buffer, stats?: Stats): string | undefined {
  try {
    const kind = stats ?? lstatSync(place, { throwIfNoEntry: false })
    if (kind === undefined || kind.isDirectory()) return undefined
    if (kind.isSymbolicLink() && readlinkSync(place).startsWith('refs/')) return ''
    if (!kind.isFile() && !kind.isSymbolicLink()) return ''
    const found = /^([0-9a-f]{40}(?:[0-9a-f]{24})?)(?:\s|$)/.exec(readFileSync(place, 'latin1'))?.[1] ?? ''
    return /^0+$/.test(found) ? '' : found
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Of a symbolic ref, also where it is a link; undefined for others. */
export function readTarget(place: string | Buffer): RefName | undefined {
  try {
    const isLink = lstatSync(place).isSymbolicLink()
    const link = isLink ? readlinkSync(place, 'latin1') : ''
    return refIn(link.startsWith('refs/') ? `ref: ${link}` : readFileSync(place, 'latin1').trim())
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export function refIn(head: string): RefName | undefined {
  const ref = /^ref: refs\/(.*)$/.exec(head)?.[1]
  return ref === undefined ? undefined : `refs/${textOf(ref)}`
}
