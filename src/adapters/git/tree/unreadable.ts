// Paths that cannot be read: refused before a loop begins, opened again when an agent has locked them.
import { accessSync, constants } from 'node:fs'
import { RalphError } from '../../../core/error.ts'
import { lstatNow, onDisk } from './files.ts'
import { named, type Git } from '../git.ts'
import {
  isOpen,
  namesOfFolders,
  openFile,
  openFolder,
  placeOf,
  statsOf,
  type Opened,
} from './owner-access.ts'
import { exempt, scanTree, type Scan } from './scan.ts'

export async function refuseLocked(git: Git, scan: Scan): Promise<void> {
  const folders = scan.isBlind
    ? closedFolders(git, (await scanTree(git, { ignored: true })).ignored, false)
    : []
  const locked = [...folders, ...lockedFiles(git, scan)]
  if (locked.length === 0) return
  throw new RalphError(
    'repository_state',
    `what cannot be read cannot be saved: ${locked.slice(0, 5).map(named).join(', ')} in ${git.worktree}`,
    { hint: `Make it readable (${openingOf(git, locked)}), or have git ignore it. Nothing was touched.` },
  )
}

/** At the checkpoint everything could be looked at, so these locks are the agent's. Throws where they are another user's. */
export async function scanOpened(git: Git, options: { index: string }): Promise<Scan> {
  const scan = await scanTree(git, { ...options, ignored: true })
  if (!scan.isBlind) return scan
  const [closed] = closedFolders(git, scan.ignored, true)
  if (closed !== undefined) accessSync(placeOf(git.worktree, closed), constants.R_OK | constants.X_OK)
  return await scanTree(git, { ...options, ignored: true })
}

/** So that git can read them. What is returned has another name outside, perhaps, and no business to stay open. */
export function openFiles(git: Git, scan: Scan, isExempt: (path: string) => boolean): Opened[] {
  const locked = lockedFiles(git, scan).filter((path) => !isExempt(path))
  return locked.flatMap((path) => {
    const opened = openFile(onDisk(git.worktree, path))
    return opened !== undefined && (lstatNow(git.worktree, path)?.nlink ?? 1) > 1 ? [opened] : []
  })
}

/** Folders of the work tree that cannot be looked into; ignored ones are not asked. */
function closedFolders(git: Git, ignored: readonly string[], mayOpen: boolean): string[] {
  const isIgnored = exempt([], ignored)
  const closed: string[] = []
  const visit = (folder: string): void => {
    const place = placeOf(git.worktree, folder)
    const stats = statsOf(place)
    if (stats?.isDirectory() !== true) return
    if (mayOpen) openFolder(place, stats)
    if (!isOpen(place)) {
      closed.push(folder)
      return
    }
    for (const name of namesOfFolders(place)) {
      const path = `${folder}${name.toString('latin1')}/`
      if (name.toString() !== '.git' && !isIgnored(path)) visit(path)
    }
  }
  visit('')
  return closed
}

function lockedFiles(git: Git, scan: Scan): string[] {
  return [...scan.changed, ...scan.untracked].filter((path) => !path.endsWith('/') && isLocked(git, path))
}

/** Only its owner may change the mode. */
function openingOf(git: Git, paths: readonly string[]): string {
  const me = process.geteuid?.()
  const isForeign = paths.some((path) => (ownerOf(git, path) ?? me) !== me)
  return isForeign ? 'it is another user’s: sudo chown -R "$USER"' : 'chmod u+rwX'
}

/** Not known inside a closed folder: that one is locked as well, and asked itself. */
function ownerOf(git: Git, path: string): number | undefined {
  try {
    return lstatNow(git.worktree, path)?.uid
  } catch {
    return undefined
  }
}

function isLocked(git: Git, path: string): boolean {
  try {
    if (lstatNow(git.worktree, path)?.isFile() === true)
      accessSync(onDisk(git.worktree, path), constants.R_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}
