// Refs as git keeps them in files, read without a process; where it keeps them otherwise (reftable), nothing is found here and git is asked.
import { existsSync, lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { RefName } from '../../../core/git-facts.ts'
import { fileMark } from '../../files/whole.ts'
import { bytesOf, textOf } from './bytes.ts'
import type { Git } from '../git.ts'
import { picture, type RefMap } from '../refs/ref-picture.ts'
import {
  collectLoose,
  entriesOf,
  hashesIn,
  isRefName,
  placeOf,
  readLoose,
  readTarget,
  refIn,
  type Folder,
} from './loose-refs.ts'

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
  const loose = entriesOf(join(git.gitCommonDir, 'refs'))
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
  // First these: whoever packs writes the packed one before the loose one goes.
  const loose = looseFolders(git, kinds, isThorough)
  const { refs, pictures } = readPacked(git)
  const known = pictures.get(kinds.join()) ?? newPicture(refs, loose, kinds)
  pictures.set(kinds.join(), known)
  const over = new Map<string, string>()
  // Of thousands of folders few are others than before.
  for (const name of new Set([...known.loose.keys(), ...loose.keys()])) {
    const [was, now] = [known.loose.get(name), loose.get(name)]
    if (was === now) continue
    const [before, after] = [hashesIn(was), hashesIn(now)]
    for (const [ref, hash] of after) if (before.get(ref) !== hash) over.set(textOf(ref), hash)
    for (const ref of before.keys()) if (!after.has(ref)) over.set(textOf(ref), refs.get(ref) ?? '')
  }
  return picture(known.base, over)
}

/** Other names for a ref, with what each leads to. Undefined: ask git. */
export function listAliases(git: Git, isThorough: boolean): RefMap | undefined {
  const loose = looseFolders(git, kindsIn(git) ?? [], isThorough)
  const aliases = [...loose.values()].flatMap(({ odd }) =>
    odd.flatMap((name) => {
      const target = readTarget(placeOf(rootOf(git, kindOf(name)), name))
      return target === undefined ? [] : [[textOf(name), target]]
    }),
  )
  return isElsewhere(git) ? undefined : Object.fromEntries(aliases)
}

/** Of branches and tags that a git was about to write, as paths. */
export function refLocks(git: Git): string[] {
  return [...looseFolders(git, ['refs/heads', 'refs/tags'], false).values()].flatMap(({ locks }) => locks)
}

/** Empty when it is not there. Undefined: ask git, for it is no plain one. */
export function findRef(git: Git, name: string): string | undefined {
  if (isElsewhere(git)) return undefined
  const bytes = bytesOf(name)
  const loose = readLoose(placeOf(git.gitCommonDir, bytes.toString('latin1')))
  return loose === '' ? undefined : (loose ?? readPacked(git).refs.get(bytes.toString('latin1')) ?? '')
}

/** The file of a ref that holds neither a commit nor another name: git lets nobody make, move or delete such a ref. */
export function brokenRef(git: Git, name: string): string | undefined {
  if (isElsewhere(git)) return undefined
  const place = placeOf(git.gitCommonDir, bytesOf(name).toString('latin1'))
  const stats = lstatSync(place, { throwIfNoEntry: false })
  const isBroken =
    stats?.isFile() === true && readLoose(place, stats) === '' && readTarget(place) === undefined
  return isBroken ? join(git.gitCommonDir, name) : undefined
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

/**
 * Whoever switches to another branch while git looks at the files has shown it those of both: then it looks again. A switch holds the
 * lock of the index until its files are there, and moves HEAD last. A lock that stays is waited for only for a while.
 */
export async function steadily<T>({ gitDir }: Pick<Git, 'gitDir'>, look: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 3000
  for (let looks = 1; ; looks += 1) {
    const head = headText(gitDir)
    const seen = await look()
    // However long a look takes: one that saw two branches would take the files of the other for deleted.
    const hasMoved = headText(gitDir) !== head && looks < mostLooks
    const isLocked = existsSync(join(gitDir, 'index.lock')) && performance.now() < deadline
    if (!hasMoved && !isLocked) return seen
    await pause(20)
  }
}

/** Nobody switches in each of so many, unless to keep it from an end. */
const mostLooks = 100

function isElsewhere(git: Git): boolean {
  return existsSync(join(git.gitCommonDir, 'reftable'))
}

function looseFolders(git: Git, kinds: readonly string[], isThorough: boolean): Map<string, Folder> {
  const found = new Map<string, Folder>()
  for (const kind of kinds) collectLoose(rootOf(git, kind), kind, found, isThorough)
  return found
}

interface Packed {
  readonly mark: string
  /** By name in bytes. */
  readonly refs: ReadonlyMap<string, string>
  readonly kinds: ReadonlySet<string>
  /** By kinds. */
  readonly pictures: Map<string, Picture>
}

/** All refs as they were found first, and the folders of those that were loose then. */
interface Picture {
  readonly base: RefMap
  readonly loose: ReadonlyMap<string, Folder>
}

function newPicture(packedOnes: Packed['refs'], loose: Picture['loose'], kinds: readonly string[]): Picture {
  const isMeant = ([name]: readonly [string, string]): boolean =>
    kinds.some((kind) => name === kind || name.startsWith(`${kind}/`))
  const inFiles = [...loose.values()].flatMap((folder) => [...hashesIn(folder)])
  const all = new Map([...[...packedOnes].filter(isMeant), ...inFiles])
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
