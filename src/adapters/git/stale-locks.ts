// Locks that a killed git left behind: moved away, but only when no git is at work in the tree.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, readlink, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Git } from './git.ts'
import type { Room } from './room.ts'

/** Returns the names of what was moved. Where processes cannot be seen (no /proc) nothing is. */
export async function clearStaleLocks(room: Room, branch: string): Promise<string[]> {
  const { git } = room
  const locks = locksOf(room, branch)
  if (locks.length === 0 || !existsSync('/proc/self/cwd') || (await isGitAtWork(git))) return []
  const folder = join(room.folder, 'stale-locks')
  await mkdir(folder, { recursive: true })
  for (const lock of locks) await rename(lock, join(folder, basename(lock)))
  return locks.map((lock) => basename(lock))
}

function locksOf({ git }: Room, branch: string): string[] {
  const own = ['index.lock', 'HEAD.lock'].map((name) => join(git.gitDir, name))
  const shared = ['packed-refs.lock', `${branch}.lock`].map((name) => join(git.gitCommonDir, name))
  return [...own, ...shared].filter((lock) => existsSync(lock))
}

/** An orphan of a killed ralph may still be at it; it is given this long to end by itself. */
const orphanMs = 10_000

/** Before a recovery: what a killed git (the agent's, or ralph's own) has locked is free again. */
export async function outwaitLocks(room: Room, branch: string): Promise<void> {
  const deadline = performance.now() + orphanMs
  while ((await clearStaleLocks(room, branch)).length === 0 && locksOf(room, branch).length > 0) {
    if (performance.now() > deadline) return
    await delay(50)
  }
}

async function isGitAtWork(git: Git): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(pids.map((pid) => isGitIn(pid, git)))
  return found.includes(true)
}

async function isGitIn(pid: string, git: Git): Promise<boolean> {
  try {
    const [name, cwd] = await Promise.all([
      readFile(`/proc/${pid}/comm`, 'utf8'),
      readlink(`/proc/${pid}/cwd`),
    ])
    const isInside = [git.worktree, git.gitCommonDir].some(
      (place) => cwd === place || cwd.startsWith(`${place}/`),
    )
    return name.startsWith('git') && isInside
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // Gone meanwhile; or another user's, whose work would show in the lock's owner, not in ours.
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return false
    throw error
  }
}
