// Files of an index come into the work tree whole: git writes them beside it, and a link gives each its name. An editor that saves one in that very moment is not written over.
import { linkSync, mkdirSync, readlinkSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { inFolder } from '../../files/now.ts'
import { above, beyondFolders, onDisk, parentOf, placeIn } from './files.ts'
import type { Git } from '../git.ts'
import { exactStatsOf, statsOf } from './owner-access.ts'
import { joined } from './tree.ts'

interface Step {
  /** Once they are written, before any of them has its place: moves away what is there. */
  readonly take?: () => void
  /** On what git has written, in this folder. */
  readonly mend?: (drafts: string) => Promise<unknown>
  /** For those that git has to write in their place. */
  readonly more?: readonly string[]
}

interface Placed {
  /** As git has written them, whoever may have changed them since. */
  readonly whole: ReadonlyMap<string, BigIntStats>
  /** Written in their place: on another device, or one without links. */
  readonly inPlace: readonly string[]
}

/** Never over what is there: a file that somebody makes meanwhile stays. */
export async function checkOutWhole(
  { git, folder }: { readonly git: Git; readonly folder: string },
  index: string,
  paths: readonly string[],
  { take, mend, more = [] }: Step = {},
): Promise<Placed> {
  const args = ['checkout-index', '--ignore-skip-worktree-bits', '--quiet', '-z', '--stdin']
  const drafts = draftsIn(folder)
  await rm(drafts, { recursive: true, force: true })
  let isSure = true
  try {
    // Longer than a name may be, beside: git would make none at all.
    const isShort = (path: string): boolean => Buffer.byteLength(drafts) + path.length < longest
    const near = statsOf(folder)?.dev === statsOf(git.worktree)?.dev ? paths.filter(isShort) : []
    if (near.length > 0) {
      const prefixed = [...args, `--prefix=${drafts}/`]
      await git.run(prefixed, { index, input: joined(near) }).catch((error: unknown) => {
        if (!isOneTwice(error)) throw error
        isSure = false
      })
      await mend?.(drafts)
    }
    take?.()
    const whole = new Map<string, BigIntStats>()
    const inPlace = placeAll(git.worktree, drafts, paths, whole)
    if (inPlace.length > 0) await git.run([...args, ...more], { index, input: joined(inPlace), accept: [1] })
    clearFolders(drafts, paths)
    return { whole: isSure ? whole : new Map(), inPlace }
  } finally {
    await rm(drafts, { recursive: true, force: true })
  }
}

/** Without a word: two names that differ in their case are one here. */
function isOneTwice(error: unknown): boolean {
  return error instanceof RalphError && error.message.endsWith(' failed (1): ')
}

/** After a kill they may still be there. */
export function draftsIn(folder: string): string {
  return join(folder, 'drafts')
}

/** Those that cannot be linked. */
function placeAll(
  worktree: string,
  drafts: string,
  paths: readonly string[],
  whole: Map<string, BigIntStats>,
): string[] {
  const isBeyond = beyondFolders(worktree)
  return paths.filter((path) => {
    const draft = placeIn(drafts, path)
    const place = placeIn(worktree, path)
    const before = exactStatsOf(draft)
    if (before === undefined) return true
    if (isBeyond(path)) return false
    try {
      const seen = inFolder(onDisk(worktree, parentOf(path)), () => put(draft, place, before))
      if (seen !== undefined) whole.set(path, seen)
      return false
    } catch (error) {
      return !['EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
    }
  })
}

/** Much faster than to look for what may be in them. */
function clearFolders(drafts: string, paths: readonly string[]): void {
  const folders = [...new Set(paths.flatMap((path) => above(path)))].sort().reverse()
  for (const folder of folders) {
    try {
      rmdirSync(placeIn(drafts, folder))
    } catch {
      return
    }
  }
}

/** What git may go by as long as nobody writes it; undefined where somebody has. */
function put(draft: string | Buffer, place: string | Buffer, before: BigIntStats): BigIntStats | undefined {
  if (before.isDirectory()) {
    mkdirSync(place)
    return undefined
  }
  // Nobody writes into a link; and where a system follows one, it gives another name to what it leads to.
  if (before.isSymbolicLink()) symlinkSync(readlinkSync(draft, { encoding: 'buffer' }), place)
  else {
    linkSync(draft, place)
    unlinkSync(draft)
  }
  const now = exactStatsOf(place)
  if (now === undefined) return undefined
  const isSame = before.isSymbolicLink()
    ? now.isSymbolicLink() && readlinkSync(place, 'latin1') === readlinkSync(draft, 'latin1')
    : now.ino === before.ino && now.size === before.size && now.mtimeNs === before.mtimeNs
  return isSame ? now : undefined
}

const longest = process.platform === 'linux' ? 4095 : 1023
