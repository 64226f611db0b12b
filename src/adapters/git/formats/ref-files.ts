// Refs as git keeps them in files, read without a process; where it keeps them otherwise (reftable), nothing is found here and git is asked.
import {
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  statSync,
  type Dirent,
} from 'node:fs'
import { join } from 'node:path'
import type { RefName } from '../../../core/git-facts.ts'
import { fileMark, isMissing, restingMark } from '../../files/whole.ts'
import { bytesOf, textOf } from './bytes.ts'
import type { Git } from '../git.ts'
import { picture, type RefMap } from '../refs/ref-picture.ts'

/** Git's own and the merge queue's, where an agent that makes one leaves something behind. */
const usualKinds = [
  'refs/heads',
  'refs/tags',
  'refs/notes',
  'refs/replace',
  'refs/stash',
  'refs/bisect',
  'refs/rewritten',
  'refs/ralph-landed',
]

/** Where a fetch writes, what is ralph's, and what each work tree has for itself. */
const notMeant = new Set(['refs/remotes', 'refs/prefetch', 'refs/ralph', 'refs/worktree'])

export function isUsual(name: string): boolean {
  return usualKinds.some((kind) => name === kind || name.startsWith(`${kind}/`))
}

export function isMeant(name: string): boolean {
  return !notMeant.has(kindOf(name))
}

/** With those that only this repository has (`refs/backup`, say). Undefined: ask git. */
export function kindsIn(git: Git): readonly string[] | undefined {
  if (isElsewhere(git)) return undefined
  const loose = entriesOf(Buffer.from(join(git.gitCommonDir, 'refs')))
    .map((entry) => `refs/${entry.name.toString('latin1')}`)
    .filter(isRefName)
  const others = [...loose, ...readPacked(git).kinds].filter((kind) => isMeant(kind) && !isUsual(kind))
  return [...usualKinds, ...[...new Set(others)].toSorted()]
}

function kindOf(name: string): string {
  return /^refs\/[^/]+/.exec(name)?.[0] ?? name
}

/** Each work tree has its own. */
const ofWorkTree = new Set(['refs/bisect', 'refs/rewritten'])

function rootOf({ gitDir, gitCommonDir }: Git, kind: string): string {
  return ofWorkTree.has(kind) ? gitDir : gitCommonDir
}

/**
 * As `for-each-ref` lists them, symbolic ones apart. Undefined: ask git. `isThorough`: also what was written into a ref's file itself,
 * which git never does.
 */
export function listRefs(git: Git, kinds: readonly string[], isThorough: boolean): RefMap | undefined {
  if (isElsewhere(git)) return undefined
  const loose = new Map<string, string>()
  // First these: whoever packs writes the packed one before the loose one goes.
  const note: Note = (name, hash) => loose.set(name, hash)
  for (const kind of kinds) collectLoose(rootOf(git, kind), kind, note, isThorough)
  const { refs, pictures } = readPacked(git)
  const known = pictures.get(kinds.join()) ?? newPicture(refs, loose, kinds)
  pictures.set(kinds.join(), known)
  const over = new Map<string, string>()
  for (const [name, hash] of loose) if (known.loose.get(name) !== hash) over.set(textOf(name), hash)
  for (const name of known.loose.keys()) if (!loose.has(name)) over.set(textOf(name), refs.get(name) ?? '')
  return picture(known.base, over)
}

/** Other names for a ref, with what each leads to. Undefined: ask git. */
export function listAliases(git: Git, isThorough: boolean): RefMap | undefined {
  const found: string[] = []
  // Of thousands few are: nothing is made for the others.
  const note: Note = (name, hash) => hash === '' && found.push(name)
  for (const kind of kindsIn(git) ?? []) collectLoose(rootOf(git, kind), kind, note, isThorough)
  const aliases = found.flatMap((name) => {
    const place = Buffer.from(`${rootOf(git, kindOf(name))}/`)
    const target = readTarget(Buffer.concat([place, Buffer.from(name, 'latin1')]))
    return target === undefined ? [] : [[textOf(name), target]]
  })
  return isElsewhere(git) ? undefined : Object.fromEntries(aliases)
}

/** Empty when it is not there. Undefined: ask git, for it is no plain one. */
export function findRef(git: Git, name: string): string | undefined {
  if (isElsewhere(git)) return undefined
  const bytes = bytesOf(name)
  const loose = readLoose(Buffer.concat([Buffer.from(`${git.gitCommonDir}/`), bytes]))
  return loose === '' ? undefined : (loose ?? readPacked(git).refs.get(bytes.toString('latin1')) ?? '')
}

/** What HEAD says, in bytes (latin1); `ref: …` also where it is a link, as old repositories and `core.preferSymlinkRefs` have it. Empty when it is gone. */
export function headText(gitDir: string): string {
  const file = join(gitDir, 'HEAD')
  const stats = lstatSync(file, { throwIfNoEntry: false })
  const target = stats?.isSymbolicLink() === true ? readlinkSync(file, 'latin1') : ''
  if (target.startsWith('refs/')) return `ref: ${target}`
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true
    ? readFileSync(file, 'latin1').trim()
    : ''
}

/** The ref that HEAD stands for; undefined where that is a commit. */
export function headRef({ gitDir }: Pick<Git, 'gitDir'>): RefName | undefined {
  return refIn(headText(gitDir))
}

export function refIn(head: string): RefName | undefined {
  const ref = /^ref: refs\/(.*)$/.exec(head)?.[1]
  return ref === undefined ? undefined : `refs/${textOf(ref)}`
}

function isElsewhere(git: Git): boolean {
  return existsSync(join(git.gitCommonDir, 'reftable'))
}

/** By names in bytes (latin1); with an empty hash what only looks like a ref, or is a symbolic one. */
type Note = (name: string, hash: string) => unknown

function collectLoose(root: string, name: string, note: Note, isThorough: boolean): void {
  const place = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, 'latin1')])
  const stats = lstatSync(place, { bigint: true, throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isDirectory()) {
    const hash = readLoose(place)
    if (hash !== undefined) note(name, hash)
    return
  }
  const key = place.toString('latin1')
  const known = folders.get(key)
  const mark = restingMark(stats)
  const isSame = mark !== '' && known?.mark === mark
  if (!isSame || isThorough) {
    const before = new Map(known?.files.map((file) => [file.name, file]))
    const entries = entriesOf(place).filter((entry) => isRefName(`${name}/${entry.name.toString('latin1')}`))
    const inner = (entry: Dirent<Buffer>): string => `${name}/${entry.name.toString('latin1')}`
    const files = entries.filter((entry) => !entry.isDirectory())
    folders.set(key, {
      mark,
      folders: entries.filter((entry) => entry.isDirectory()).map(inner),
      files: files.map((entry) => {
        const file = Buffer.concat([place, Buffer.from('/'), entry.name])
        return looseFile(file, inner(entry), before.get(inner(entry)))
      }),
    })
  }
  for (const { name: inner, hash } of folders.get(key)?.files ?? []) if (hash !== undefined) note(inner, hash)
  for (const inner of folders.get(key)?.folders ?? []) collectLoose(root, inner, note, isThorough)
}

/** What was read, and when that need not be read again. */
interface LooseFile {
  readonly name: string
  readonly hash: string | undefined
  readonly mark: string
}

function looseFile(file: Buffer, name: string, before: LooseFile | undefined): LooseFile {
  const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false })
  const mark = stats?.isFile() === true ? restingMark(stats) : ''
  return mark !== '' && before?.mark === mark ? before : { name, hash: readLoose(file), mark }
}

const folders = new Map<
  string,
  { readonly mark: string; readonly folders: readonly string[]; readonly files: readonly LooseFile[] }
>()

function entriesOf(place: Buffer): Dirent<Buffer>[] {
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
function readLoose(place: Buffer): string | undefined {
  try {
    const kind = lstatSync(place, { throwIfNoEntry: false })
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
function readTarget(place: Buffer): RefName | undefined {
  try {
    const isLink = lstatSync(place).isSymbolicLink()
    const link = isLink ? readlinkSync(place, 'latin1') : ''
    return refIn(link.startsWith('refs/') ? `ref: ${link}` : readFileSync(place, 'latin1').trim())
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

interface Packed {
  readonly mark: string
  /** By name in bytes. */
  readonly refs: ReadonlyMap<string, string>
  readonly kinds: ReadonlySet<string>
  /** By kinds: all refs as they were found first, and which of them were loose then. */
  readonly pictures: Map<string, { readonly base: RefMap; readonly loose: ReadonlyMap<string, string> }>
}

function newPicture(
  packedOnes: Packed['refs'],
  loose: ReadonlyMap<string, string>,
  kinds: readonly string[],
): { base: RefMap; loose: ReadonlyMap<string, string> } {
  const isMeant = ([name]: readonly [string, string]): boolean =>
    kinds.some((kind) => name === kind || name.startsWith(`${kind}/`))
  const all = new Map([...[...packedOnes].filter(isMeant), ...loose])
  const found = [...all].filter(([, hash]) => hash !== '')
  return { base: Object.fromEntries(found.map(([name, hash]) => [textOf(name), hash])), loose }
}

/** Read again only when git has replaced the file. */
function readPacked(git: Git): Packed {
  const file = join(git.gitCommonDir, 'packed-refs')
  const mark = fileMark(file)
  const known = packed.get(file)
  if (known?.mark === mark) return known
  const refs = new Map<string, string>()
  for (const line of mark === '' ? [] : readFileSync(file, 'latin1').split('\n')) {
    const found = /^([0-9a-f]{40}(?:[0-9a-f]{24})?) (\S.*)$/.exec(line)
    if (found !== null) refs.set(found[2] ?? '', found[1] ?? '')
  }
  const kinds = new Set([...refs.keys()].map(kindOf))
  const read: Packed = { mark, refs, kinds, pictures: new Map() }
  packed.set(file, read)
  return read
}

const packed = new Map<string, Packed>()
