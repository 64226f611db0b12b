// The tree of a few changed files, written without a git process: only where git would take their bytes as they are.
import {
  existsSync,
  lstatSync,
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
  distrusted,
  entryOf,
  hashIn,
  hashOf,
  modeIn,
  parseIndex,
  timeIn,
  treesIn,
  type IndexBytes,
  type NewObject,
} from './index-bytes.ts'
import { isLoose, isShared, looseFile, readLoose, writeObjects } from './objects.ts'
import { allSettings, readSettings } from './settings.ts'
import { syncNamed } from './sync.ts'

type Entry = IndexBytes['entries'][number]

/** Whose the objects may be that are there already; see `writeTree`. */
export type Others = 'any' | 'named' | 'none'

/** Beyond these git is faster, or as fast. */
const most = { paths: 64, bytes: 1024 * 1024, index: 512 * 1024, trees: 64, doubtful: 16 }

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
  const before = readIndex(index)
  if (stats === undefined || before === undefined || !(await isTakenAsItIs(git, before, present)))
    return undefined

  const read = readFiles(git, before, present)
  if (read === undefined) return undefined
  const changes = new Map<string, Entry | undefined>(deleted.map((path) => [path, undefined]))
  for (const { entry } of read) changes.set(entry.path, entry)
  const { entries } = before
  const checked = withoutDoubt(git, entries, changes, Math.floor(stats.mtimeMs / 1000))
  const after = checked && changeIndex({ ...before, entries: checked }, changes)
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
  writeFileSync(temporary, after.bytes)
  // Of before the files were read, and of before the clock's last tick: what was written since then is looked at again.
  const seconds = Math.floor(startedMs - tickMs) / 1000
  utimesSync(temporary, seconds, seconds)
  renameSync(temporary, index)
  return after.tree
}

function isThere(git: Git, { kind, hash, body }: NewObject): boolean {
  const found = readLoose(git, hash)
  return found?.kind === kind && found.body.equals(body)
}

/** The tree of an index in which nothing has changed since that was written; undefined where git has to be asked. */
export function knownTree(git: Git, index: string): string | undefined {
  const read = readIndex(index)
  if (read?.root === undefined || read.root.count !== read.entries.length) return undefined
  const trees = treesIn(read.root)
  return trees.length <= most.trees && trees.every((hash) => hash !== '' && isLoose(git, hash))
    ? read.root.hash
    : undefined
}

/** As `ls-files -s -v` lists them. */
export function plainEntries(index: string): string[] | undefined {
  return readIndex(index)?.entries.map(
    (entry) => `H ${modeIn(entry).toString(8).padStart(6, '0')} ${hashIn(entry)} 0\t${entry.path}`,
  )
}

function readIndex(index: string): IndexBytes | undefined {
  const stats = statSync(index, { throwIfNoEntry: false })
  return stats === undefined || stats.size > most.index ? undefined : parseIndex(readFileSync(index))
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
  if (index.entries.some(({ path }) => path.endsWith('.gitattributes'))) return false
  if (systemAttributes.some((file) => existsSync(file))) return false
  return !mayConvert({ git, env }, conversions, [...new Set(paths.flatMap((path) => above(path)))])
}

/** Where git has been built to look for those of the machine, beside /etc. */
const systemAttributes = ['/usr/local/etc', '/opt/homebrew/etc', '/opt/local/etc'].map((folder) =>
  join(folder, 'gitattributes'),
)

function readFiles(
  git: Git,
  { entries }: IndexBytes,
  paths: readonly string[],
): readonly { readonly entry: Entry; readonly blob: NewObject }[] | undefined {
  const isBeyond = beyondFolders(git.worktree)
  const submodules = new Set(entries.filter((entry) => modeIn(entry) === 0o160000).map(({ path }) => path))
  const read: { entry: Entry; blob: NewObject }[] = []
  let left = most.bytes
  for (const path of paths) {
    if (isBeyond(path) || [path, ...above(path)].some((each) => submodules.has(each))) return undefined
    const found = readAtRest(git, path, left)
    if (found === undefined) return undefined
    const { stats, body } = found
    left -= body.length
    const blob = { kind: 'blob', hash: hashOf('blob', body), body } as const
    read.push({ entry: entryOf(path, stats, blob.hash), blob })
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
 * which will be another. As git does, each of them is compared, and what differs is marked. Undefined where they are many.
 */
function withoutDoubt(
  git: Git,
  entries: readonly Entry[],
  changes: ReadonlyMap<string, unknown>,
  indexSeconds: number,
): readonly Entry[] | undefined {
  const doubtful = entries.filter((entry) => timeIn(entry) >= indexSeconds && !changes.has(entry.path))
  if (doubtful.length === 0) return entries
  if (doubtful.length > most.doubtful) return undefined
  const differing = new Set(doubtful.filter((entry) => !isAsIn(git, entry)))
  return entries.map((entry) => (differing.has(entry) ? distrusted(entry) : entry))
}

function isAsIn(git: Git, entry: Entry): boolean {
  const body = readAtRest(git, entry.path, most.bytes)?.body
  return body !== undefined && hashOf('blob', body) === hashIn(entry)
}

/** Where all objects are files of their own it can be seen. */
function hasLost(git: Git, entries: readonly Entry[]): boolean {
  const objects = join(git.gitCommonDir, 'objects')
  const isElsewhere =
    existsSync(join(objects, 'info', 'alternates')) ||
    (ifThereNow(() => readdirSync(join(objects, 'pack'))) ?? []).some((name) => name.endsWith('.idx'))
  return !isElsewhere && entries.some((entry) => modeIn(entry) !== 0o160000 && !isLoose(git, hashIn(entry)))
}
