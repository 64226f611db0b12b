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
import { fileMark, isMissing } from '../files/whole.ts'
import { bytesOf, textOf } from './bytes.ts'
import type { Git } from './git.ts'
import { picture, type RefMap } from './ref-picture.ts'

/** Without remote-tracking refs and ralph's own. */
export const usualKinds = [
  'refs/heads',
  'refs/tags',
  'refs/notes',
  'refs/replace',
  'refs/stash',
  'refs/bisect',
  'refs/rewritten',
]

/** Each work tree has its own. */
const ofWorkTree = new Set(['refs/bisect', 'refs/rewritten'])

/** As `for-each-ref` lists them, symbolic ones apart. Undefined: ask git. */
export function listRefs(git: Git, kinds: readonly string[]): RefMap | undefined {
  if (isElsewhere(git)) return undefined
  const loose = new Map<string, string>()
  // First these: whoever packs writes the packed one before the loose one goes.
  for (const kind of kinds) collectLoose(ofWorkTree.has(kind) ? git.gitDir : git.gitCommonDir, kind, loose)
  const over = new Map([...loose].map(([name, hash]) => [textOf(name), hash]))
  return picture(packedUnder(git, kinds), over)
}

/** Empty when it is not there. Undefined: ask git, for it is no plain one. */
export function findRef(git: Git, name: string): string | undefined {
  if (isElsewhere(git)) return undefined
  const bytes = bytesOf(name).toString('latin1')
  const loose = readLoose(join(git.gitCommonDir, bytes))
  return loose === '' ? undefined : (loose ?? packedRefs(git).get(bytes) ?? '')
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

function isElsewhere(git: Git): boolean {
  return existsSync(join(git.gitCommonDir, 'reftable'))
}

/** By names in bytes (latin1); with an empty hash what only looks like a ref, or is a symbolic one. */
function collectLoose(root: string, name: string, into: Map<string, string>): void {
  const place = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name, 'latin1')])
  const kind = lstatSync(place, { throwIfNoEntry: false })
  if (kind === undefined) return
  if (!kind.isDirectory()) {
    const hash = readLoose(place)
    if (hash !== undefined) into.set(name, hash)
    return
  }
  for (const entry of entriesOf(place)) {
    const inner = `${name}/${entry.name.toString('latin1')}`
    if (!isRefName(inner)) continue
    if (entry.isDirectory()) collectLoose(root, inner, into)
    else {
      const hash = readLoose(Buffer.concat([place, Buffer.from('/'), entry.name]))
      if (hash !== undefined) into.set(inner, hash)
    }
  }
}

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
function readLoose(place: string | Buffer): string | undefined {
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

/** By name in bytes; read again only when git has replaced the file. */
function packedRefs(git: Git): ReadonlyMap<string, string> {
  return readPacked(git).refs
}

interface Packed {
  readonly mark: string
  readonly refs: ReadonlyMap<string, string>
  /** By kinds. */
  readonly under: Map<string, RefMap>
}

function packedUnder(git: Git, kinds: readonly string[]): RefMap {
  const { refs, under } = readPacked(git)
  const known = under.get(kinds.join())
  if (known !== undefined) return known
  const isMeant = (name: string): boolean =>
    kinds.some((kind) => name === kind || name.startsWith(`${kind}/`))
  const found = [...refs]
    .filter(([name]) => isMeant(name))
    .map(([name, hash]) => [textOf(name), hash] as const)
  const all: RefMap = Object.fromEntries(found)
  under.set(kinds.join(), all)
  return all
}

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
  const read = { mark, refs, under: new Map<string, RefMap>() }
  packed.set(file, read)
  return read
}

const packed = new Map<string, Packed>()
