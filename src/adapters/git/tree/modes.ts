// Permissions that git does not keep: those of folders and private files, and every one where `core.fileMode` is off.
import { chmodSync, type Stats } from 'node:fs'
import { lstatNow, onDisk, placeIn } from './files.ts'
import type { Git } from '../git.ts'
import { isOwn, openFolder, placeOf, statsOf } from './owner-access.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { changedPaths } from './tree.ts'

/** Without `isAll` only of files that differ from what git makes of them. */
export function readModes(git: Git, paths: readonly string[], isAll: boolean): Record<string, number> {
  const modes: Record<string, number> = {}
  for (const path of new Set(paths)) {
    if (path.endsWith('/')) continue
    const mode = modeOf(git, path)
    if (mode !== undefined && (isAll || (mode !== 0o644 && mode !== 0o755))) modes[path] = mode
  }
  return modes
}

/** A file of `own` whose mode was not worth a note had the one that git makes: no attempt's `chmod` outlives it. */
export function putBackModes(
  git: Git,
  { modes, own }: Pick<Snapshot, 'modes' | 'own'>,
  stays: (path: string) => boolean,
): void {
  for (const path of new Set([...Object.keys(modes), ...own])) {
    const stat = lstatNow(git.worktree, path)
    if (stat?.isFile() !== true || stays(path)) continue
    const wanted = modes[path] ?? ((stat.mode & 0o100) === 0 ? 0o644 : 0o755)
    if ((stat.mode & 0o777) !== wanted && isOwn(stat)) chmodSync(onDisk(git.worktree, path), wanted)
  }
}

/** Files that git took away and wrote again on the way have its own modes; those that are otherwise as they were get theirs back. */
export async function privateAgain(git: Git, snapshot: Snapshot, tree: string): Promise<void> {
  const changed = new Set(await changedPaths(git, snapshot.tree, tree))
  const modes = Object.entries(snapshot.modes).filter(([path]) => !changed.has(path))
  putBackModes(git, { own: [], modes: Object.fromEntries(modes) }, () => false)
}

/** The root's under the empty name; of the others those that differ from it. */
export function readFolderModes(git: Git, folders: readonly string[]): Record<string, number> {
  const usual = folderMode(git, '') ?? 0o755
  const modes: Record<string, number> = { '': usual }
  for (const folder of folders) {
    const mode = folderMode(git, folder)
    if (mode !== undefined && mode !== usual) modes[folder] = mode
  }
  return modes
}

/** Before a revert looks into them. Another user's are left to whoever needs them. */
export function openFolders(git: Git, folders: readonly string[]): void {
  for (const folder of ['', ...folders]) {
    const stats = folderStats(git, folder)
    if (stats?.isDirectory() === true) openFolder(placeOf(git.worktree, folder), stats)
  }
}

export function putBackFolderModes(
  git: Git,
  { folder_modes: modes }: Snapshot,
  folders: readonly string[],
): void {
  const usual = modes?.['']
  if (modes === undefined || usual === undefined) return
  for (const folder of [...folders, '']) {
    const stats = folderStats(git, folder)
    const wanted = modes[folder] ?? usual
    if (stats?.isDirectory() === true && isOwn(stats) && (stats.mode & 0o777) !== wanted)
      chmodSync(placeOf(git.worktree, folder), (stats.mode & 0o7000) | wanted)
  }
}

function folderMode(git: Git, folder: string): number | undefined {
  const stats = folderStats(git, folder)
  return stats?.isDirectory() === true ? stats.mode & 0o777 : undefined
}

function folderStats({ worktree }: Git, folder: string): Stats | undefined {
  return statsOf(folder === '' ? worktree : placeIn(worktree, folder))
}

function modeOf(git: Git, path: string): number | undefined {
  const stat = lstatNow(git.worktree, path)
  return stat?.isFile() === true ? stat.mode & 0o777 : undefined
}
