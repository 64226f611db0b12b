// Paths that cannot be read: refused before a loop begins, opened again when an agent has locked them.
import { accessSync, constants } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { RalphError } from '../../core/error.ts'
import { lstatNow, onDisk } from './files.ts'
import { named, type Git } from './git.ts'
import { scanTree, type Scan } from './scan.ts'

export function refuseLocked(git: Git, scan: Scan): void {
  const locked = [...scan.locked, ...lockedFiles(git, scan)]
  if (locked.length === 0) return
  throw new RalphError(
    'repository_state',
    `what cannot be read cannot be saved: ${locked.slice(0, 5).map(named).join(', ')} in ${git.worktree}`,
    { hint: 'Make it readable (chmod u+rwX), or have git ignore it. Nothing was touched.', exitCode: 2 },
  )
}

/** At the checkpoint everything could be read, so these locks are the agent's. */
export async function scanUnlocked(git: Git, options: { index: string }): Promise<Scan> {
  for (let depth = 0; depth < deepest; depth += 1) {
    const scan = await scanTree(git, { ...options, ignored: true })
    const files = lockedFiles(git, scan)
    if (scan.locked.length + files.length === 0) return scan
    for (const folder of scan.locked) await chmod(onDisk(git.worktree, folder), 0o755)
    for (const file of files) await chmod(onDisk(git.worktree, file), 0o644)
  }
  return await scanTree(git, { ...options, ignored: true })
}

/** Each round opens one level of folders. */
const deepest = 20

function lockedFiles(git: Git, scan: Scan): string[] {
  return [...scan.changed, ...scan.untracked].filter((path) => !path.endsWith('/') && isLocked(git, path))
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
