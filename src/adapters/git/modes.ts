// Permissions that git does not keep: those of private files, and every one where `core.fileMode` is off.
import { chmod } from 'node:fs/promises'
import { lstatIfThere, lstatNow, onDisk } from './files.ts'
import type { Git } from './git.ts'
import type { Snapshot } from './snapshot.ts'

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

export async function putBackModes(git: Git, { modes }: Snapshot): Promise<void> {
  for (const [path, mode] of Object.entries(modes)) {
    const stat = await lstatIfThere(git.worktree, path)
    if (stat?.isFile() === true && (Number(stat.mode) & 0o777) !== mode) {
      await chmod(onDisk(git.worktree, path), mode)
    }
  }
}

function modeOf(git: Git, path: string): number | undefined {
  const stat = lstatNow(git.worktree, path)
  return stat?.isFile() === true ? stat.mode & 0o777 : undefined
}
