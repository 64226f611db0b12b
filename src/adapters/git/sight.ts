// Everything a checkpoint has to know of the repository now, asked of git once and side by side.
import { refuseLocked } from './locked.ts'
import { operationsInProgress } from './operations.ts'
import { readRefs } from './refs.ts'
import type { Room } from './room.ts'
import { exempt, scanEmptyFolders, scanTree } from './scan.ts'
import { readSettings } from './settings.ts'
import type { Sight, Snapshot } from './snapshot.ts'
import { readStashLog } from './stash-list.ts'

export async function look(room: Room, index?: string): Promise<Sight> {
  const [refs, stashLog, scan, empty, settings] = await Promise.all([
    readRefs(room.git),
    readStashLog(room.git),
    scanTree(room.git, { ignored: true, ...(index !== undefined && { index }) }),
    scanEmptyFolders(room.git),
    readSettings(room.git),
  ])
  await refuseLocked(room.git, scan)
  return { refs, stashLog, scan, empty, settings }
}

/** Whether anything but exempt paths differs from the index and from HEAD; a repository inside is no part of a checkpoint. */
export function isDirty(room: Room, { scan }: Sight, earlier: Snapshot | undefined): boolean {
  const isExempt = exempt(room.protectedPaths, earlier?.ignored ?? [])
  const differing = [...scan.changed, ...scan.deleted, ...scan.untracked, ...scan.staged, ...scan.unmerged]
  return (
    differing.some((path) => !path.endsWith('/') && !isExempt(path)) ||
    operationsInProgress(room.git.gitDir).length > 0
  )
}
