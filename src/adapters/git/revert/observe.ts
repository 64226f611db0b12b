// Everything a checkpoint has to know of the repository now, asked of git once and side by side.
import { join } from 'node:path'
import { refuseLocked } from '../tree/unreadable.ts'
import { operationsInProgress } from '../start/operations.ts'
import { steadily } from '../formats/ref-files.ts'
import { readRefs } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import { keptOut } from '../tree/kept-out.ts'
import { scanEmptyFolders, scanTree } from '../tree/scan.ts'
import { readSettings } from '../formats/settings.ts'
import { findUnseen } from '../tree/unseen.ts'
import type { Git } from '../git.ts'
import type { Observed, Snapshot } from './snapshot.ts'
import { readStashLog } from '../stash/stash-list.ts'

export async function observe(store: Store, index?: string): Promise<Observed> {
  const [refs, stashLog, scan, folders, settings] = await steadily(store.git, () =>
    Promise.all([
      readRefs(store.git),
      readStashLog(store.git),
      scanTree(store.git, { ignored: true, ...(index !== undefined && { index }) }),
      lookAtFolders(store.git),
      readSettings(store.git),
    ]),
  )
  await refuseLocked(store.git, scan)
  return { refs, stashLog, scan, ...folders, settings }
}

async function lookAtFolders(git: Git): Promise<Pick<Observed, 'unseen' | 'empty'>> {
  const unseen = findUnseen(git)
  return { unseen, empty: await scanEmptyFolders(git, undefined, unseen) }
}

/** Whether anything but exempt paths differs from the index and from HEAD; a repository inside is no part of a checkpoint. */
export function isDirty(store: Store, { scan }: Observed, earlier: Snapshot | undefined): boolean {
  const isExempt = keptOut(store, earlier)
  const differing = [...scan.changed, ...scan.deleted, ...scan.untracked, ...scan.staged, ...scan.unmerged]
  return (
    differing.some((path) => !path.endsWith('/') && !isExempt(path)) ||
    operationsInProgress(store.git.gitDir).length > 0
  )
}

/** By the checkpoint's own index: that of the repository an agent may have brought up to its edits. */
export async function isEdited(store: Store, snapshot: Snapshot): Promise<boolean> {
  const { changed, deleted } = await scanTree(store.git, { index: join(store.folder, snapshot.index) })
  const isExempt = keptOut(store, snapshot)
  return [...changed, ...deleted].some((path) => !isExempt(path))
}
