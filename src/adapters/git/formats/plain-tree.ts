// The tree of a few changed files, written without a git process: only where git would take their bytes as they are.
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs'
import { join } from 'node:path'
import { readNow } from '../../files/now.ts'
import { ifThereNow, markOf } from '../../files/whole.ts'
import { mayConvert } from '../tree/conversions.ts'
import { above, beyondFolders, onDisk } from '../tree/files.ts'
import type { Git } from '../git.ts'
import {
  changeIndex,
  countIn,
  distrust,
  entryAt,
  entryOf,
  hashAt,
  hashOf,
  modeAt,
  parseIndex,
  pathAt,
  treesIn,
  youngIn,
  type IndexBytes,
  type NewObject,
} from './index-bytes.ts'
import { borrowFile, giveBack } from './large-buffers.ts'
import { isLoose, isShared, looseFile, readLoose, writeObjects } from './objects.ts'
import { allSettings, readSettings } from './settings.ts'
import { syncNamed } from './sync.ts'

/** Whose the objects may be that are there already; see `writeTree`. */
export type Others = 'any' | 'named' | 'none'

/** Beyond these git is faster, or as fast. */
const most = {
  paths: 64,
  bytes: 1024 * 1024,
  index: 64 * 1024 * 1024,
  listed: 512 * 1024,
  unknown: 10_000,
  trees: 64,
  doubtful: 16,
}

/**
 * Brings the index (a private one) up to these files of the work tree, and writes the tree that it holds then; objects are durable when it
 * resolves. Undefined where git has to be asked: nothing but objects was written then.
 */
export async function writePlainTree(
  git: Git,
  index: string,
  { present, deleted }: { readonly present: readonly string[]; readonly deleted: readonly string[] },
  others: Others = 'any',
): Promise<string | undefined> {
  const paths = [...present, ...deleted]
  if (paths.length > most.paths || !paths.every(isPlainName) || isShared(git)) return undefined
  const startedMs = Date.now()
  const stats = statSync(index, { throwIfNoEntry: false })
  if (stats === undefined || stats.size > most.index) return undefined
  const bytes = borrowFile(index)
  try {
    const before = parseIndex(bytes)
    const times = { startedMs, indexSeconds: Math.floor(stats.mtimeMs / 1000) }
    return before && (await writeChanged(git, index, before, { present, deleted, others, ...times }))
  } finally {
    giveBack(bytes)
  }
}

interface Asked {
  readonly present: readonly string[]
  readonly deleted: readonly string[]
  readonly others: Others
  readonly startedMs: number
  readonly indexSeconds: number
}

async function writeChanged(
  git: Git,
  index: string,
  before: IndexBytes,
  { present, deleted, others, startedMs, indexSeconds }: Asked,
): Promise<string | undefined> {
  if (!(await isTakenAsItIs(git, before, present))) return undefined
  // All of its trees would have to be made.
  if ((before.root?.folders ?? []).length === 0 && countIn(before) > most.unknown) return undefined

  const read = readFiles(git, before, present)
  if (read === undefined) return undefined
  const changes = new Map<string, Buffer | undefined>(deleted.map((path) => [path, undefined]))
  for (const { path, entry } of read) changes.set(path, entry)
  if (!dropDoubt(git, before, changes, indexSeconds)) return undefined
  const after = changeIndex(before, changes)
  if (after === undefined || after.trees.length > most.trees) return undefined
  // Git refuses to name what is not there.
  if (others !== 'none' && hasLost(git, after.kept)) return undefined

  const objects = [...read.map(({ blob }) => blob), ...after.trees]
  // What only has its name, after a power cut, is written anew.
  const there = new Set(objects.filter((object) => isThere(git, object)))
  if (others === 'named')
    await syncNamed(
      git,
      [...there].map(({ hash }) => looseFile(git, hash)),
    )
  if (
    !(await writeObjects(
      git,
      objects.filter((object) => !there.has(object)),
    ))
  )
    return undefined
  const temporary = `${index}.tmp`
  writePieces(temporary, after.pieces)
  // Of before the files were read, and of before the clock's last tick: what was written since then is looked at again.
  const seconds = Math.floor(startedMs - tickMs) / 1000
  utimesSync(temporary, seconds, seconds)
  renameSync(temporary, index)
  return after.tree
}

function writePieces(file: string, pieces: readonly Buffer[]): void {
  const handle = openSync(file, 'w')
  try {
    for (const piece of pieces) writeFileSync(handle, piece)
  } finally {
    closeSync(handle)
    pieces.forEach(giveBack)
  }
}

function isThere(git: Git, { kind, hash, body }: NewObject): boolean {
  const found = isLoose(git, hash) ? readLoose(git, hash) : undefined
  return found?.kind === kind && found.body.equals(body)
}

/** The tree of an index in which nothing has changed since that was written; undefined where git has to be asked. */
export function knownTree(git: Git, index: string): string | undefined {
  const read = readSmall(index)
  if (read?.root === undefined || read.root.count !== countIn(read)) return undefined
  const trees = treesIn(read.root)
  return trees.length <= most.trees && trees.every((hash) => hash !== '' && isLoose(git, hash))
    ? trees[0]
    : undefined
}

/** As `ls-files -s -v` lists them. */
export function plainEntries(file: string): string[] | undefined {
  const index = readSmall(file)
  if (index === undefined) return undefined
  const line = (nth: number): string =>
    `H ${modeAt(index, nth).toString(8).padStart(6, '0')} ${hashAt(index, nth)} 0\t${pathAt(index, nth)}`
  return Array.from({ length: countIn(index) }, (_, nth) => line(nth))
}

function readSmall(index: string): IndexBytes | undefined {
  const stats = statSync(index, { throwIfNoEntry: false })
  return stats === undefined || stats.size > most.listed ? undefined : parseIndex(readFileSync(index))
}

/** A clock that times files may stand still for so long. */
const tickMs = 20

/** What git checks more closely (case, look-alikes of `.git`) is left to it. */
function isPlainName(path: string): boolean {
  return /^[\x20-\x7e]+$/.test(path) && !/\\|:|(^|\/)(\.git|git~|\.\.?(\/|$))|\/\/|\/$|^\//i.test(path)
}

/** No filter, no line ends, no other modes, no other names. */
async function isTakenAsItIs(git: Git, index: IndexBytes, paths: readonly string[]): Promise<boolean> {
  const env = git.env()
  const all = await allSettings(git)
  const { fileMode, links, conversions, isSparse } = await readSettings(git)
  const isOn = (key: string): boolean =>
    all.some((setting) => setting.key === key && !/^(false|no|off|0)$/i.test(setting.value))
  const isOwnKind = all.some(({ key }) => /^(attr\.|extensions\.(?!worktreeconfig$|partialclone$))/.test(key))
  if (!fileMode || !links || isSparse || isOwnKind || isOn('core.ignorecase')) return false
  if (index.bytes.includes('.gitattributes\0')) return false
  if (systemAttributes.some((file) => existsSync(file))) return false
  return !mayConvert({ git, env }, conversions, [...new Set(paths.flatMap((path) => above(path)))])
}

/** Where git has been built to look for those of the machine, beside /etc. */
const systemAttributes = ['/usr/local/etc', '/opt/homebrew/etc', '/opt/local/etc'].map((folder) =>
  join(folder, 'gitattributes'),
)

function readFiles(
  git: Git,
  index: IndexBytes,
  paths: readonly string[],
): readonly { readonly path: string; readonly entry: Buffer; readonly blob: NewObject }[] | undefined {
  const isBeyond = beyondFolders(git.worktree)
  const isSubmodule = (path: string): boolean => {
    const nth = entryAt(index, path)
    return nth !== undefined && modeAt(index, nth) === 0o160000
  }
  const read: { path: string; entry: Buffer; blob: NewObject }[] = []
  let left = most.bytes
  for (const path of paths) {
    if (isBeyond(path) || [path, ...above(path)].some(isSubmodule)) return undefined
    const found = readAtRest(git, path, left)
    if (found === undefined) return undefined
    const { stats, body } = found
    left -= body.length
    const blob = { kind: 'blob', hash: hashOf('blob', body), body } as const
    read.push({ path, entry: entryOf(path, stats, blob.hash), blob })
  }
  return read
}

/** A regular file that nobody writes to meanwhile; undefined for any other. */
function readAtRest(git: Git, path: string, upTo: number): { stats: BigIntStats; body: Buffer } | undefined {
  const file = onDisk(git.worktree, path)
  try {
    const stats = lstatSync(file, { bigint: true })
    if (!stats.isFile() || stats.size > upTo) return undefined
    const body = readNow(file)
    const after = lstatSync(file, { bigint: true })
    const isAtRest = markOf(after) === markOf(stats) && after.mode === stats.mode
    return isAtRest && BigInt(body.length) === stats.size ? { stats, body } : undefined
  } catch {
    // Gone, or closed to ralph: git says it in its own words.
    return undefined
  }
}

/**
 * An entry as young as its index may stand for a file that was changed since, in the same second: git sees that by the time of the index,
 * which will be another. As git does, each of them is compared, and what differs is marked. False where they are many.
 */
function dropDoubt(
  git: Git,
  index: IndexBytes,
  changes: ReadonlyMap<string, unknown>,
  indexSeconds: number,
): boolean {
  const doubtful = youngIn(index, indexSeconds).filter((nth) => !changes.has(pathAt(index, nth)))
  if (doubtful.length > most.doubtful) return false
  for (const nth of doubtful) if (!isAsIn(git, index, nth)) distrust(index, nth)
  return true
}

function isAsIn(git: Git, index: IndexBytes, nth: number): boolean {
  const body = readAtRest(git, pathAt(index, nth), most.bytes)?.body
  return body !== undefined && hashOf('blob', body) === hashAt(index, nth)
}

/** Where all objects are files of their own it can be seen. */
function hasLost(git: Git, hashes: readonly string[]): boolean {
  const objects = join(git.gitCommonDir, 'objects')
  const isElsewhere =
    existsSync(join(objects, 'info', 'alternates')) ||
    (ifThereNow(() => readdirSync(join(objects, 'pack'))) ?? []).some((name) => name.endsWith('.idx'))
  return !isElsewhere && hashes.some((hash) => !isLoose(git, hash))
}
