// What the loop's own work tree holds and nothing else does: git removes such a folder without a word of ignored files and hidden edits.
import { firstNames } from '../../../core/first-names.ts'
import { readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs'
import { lstatNow, onDisk } from '../tree/files.ts'
import { hiddenEdits } from '../tree/flags.ts'
import { named, type Git } from '../git.ts'
import { placeOf } from '../tree/owner-access.ts'
import { exempt, isCache, scanTree } from '../tree/scan.ts'
import { headRef } from '../formats/ref-files.ts'
import { readRefs } from '../refs/refs.ts'
import { unheld } from '../refs/users-own.ts'
import { findTree } from '../start/worktrees.ts'

interface LeftTree {
  readonly change: string
  readonly folder: string
  /** The user's checkout. */
  readonly home: string
}

/** Of a loop's own tree that nothing needs any more, what is there alone, as people read it; undefined where its user is on another branch in it. */
export async function leftIn(
  git: Git,
  { change, folder, home }: LeftTree,
  protectedPaths: readonly string[],
): Promise<string[] | undefined> {
  const found = folder === git.worktree ? git : await findTree(git, folder)
  if (found === undefined) return []
  const tree = git.at(found)
  if (isTheirs(tree, change)) return undefined
  const { commit } = (await readRefs(tree)).head
  const commits = commit === undefined ? [] : await unheld(tree, commit)
  const files = await onlyThere(tree, home, protectedPaths)
  return [
    ...commits.map((hash) => `commit ${hash.slice(0, 12)} (git branch NAME ${hash.slice(0, 12)} keeps it)`),
    ...files.map(named),
  ]
}

/** Whether a loop's own tree is on a branch that is not the loop's: the user has taken it for work of their own. */
export function isTheirs(tree: Git, change: string): boolean {
  return ![undefined, `refs/heads/ralph/${change}`].includes(headRef(tree))
}

/** Paths of the tree that are in no commit, and not the same in `home`; what tools make again by themselves comes last, and alone is nothing. */
export async function onlyThere(
  git: Git,
  home: string,
  protectedPaths: readonly string[],
): Promise<string[]> {
  const { changed, deleted, untracked, staged, ignored } = await scanTree(git, { ignored: true })
  const isExempt = exempt(protectedPaths, [])
  const others = ignored.filter((path) => !isSame(git.worktree, home, path.replace(/\/$/, ''), isExempt))
  const caches = others.filter((path) => isCache(path))
  const own = [...changed, ...deleted, ...untracked, ...staged, ...(await hiddenEdits(git)), ...others]
  const found = [...new Set(own)].filter((path) => !isExempt(path) && !isCache(path))
  return found.length === 0 ? [] : [...found, ...caches]
}

/** What to do with the folder once nothing needs it; git deletes what it ignores without asking. */
export function removalWords(folder: string, only: readonly string[]): string {
  const command = `git worktree remove ${folder}`
  if (only.length === 0) return command
  return `move what you need out of ${folder} (only there: ${firstNames(only)}); after that ${command} deletes the rest`
}

/** Whether all that lies there is in the other tree, too, to the byte; what cannot be read is not. */
function isSame(tree: string, home: string, path: string, isExempt: (path: string) => boolean): boolean {
  const [here, there] = [lstatNow(tree, path), lstatNow(home, path)]
  if (here === undefined || isExempt(path)) return true
  try {
    if (here.isDirectory())
      return readdirSync(placeOf(tree, path), { encoding: 'buffer' }).every((name) =>
        isSame(tree, home, `${path}/${name.toString('latin1')}`, isExempt),
      )
    return there !== undefined && isSameFile(onDisk(tree, path), here, onDisk(home, path), there)
  } catch {
    return false
  }
}

function isSameFile(from: Buffer, here: Stats, to: Buffer, there: Stats): boolean {
  if (here.isSymbolicLink()) return there.isSymbolicLink() && readlinkSync(from) === readlinkSync(to)
  if (!here.isFile()) return true
  return there.isFile() && here.size === there.size && readFileSync(from).equals(readFileSync(to))
}
