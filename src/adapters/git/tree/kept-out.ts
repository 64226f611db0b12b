// What was in ignored folders and in repositories of others at the checkpoint: that stays out of every commit, what is new beside it is work.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lstatNow, onDisk } from './files.ts'
import { named, type Git } from '../git.ts'
import { listed } from '../attempt/reunite.ts'
import { exempt, isCache, isInstalled } from './scan.ts'
import type { MovedFile } from '../revert/moved-files.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import type { Store } from '../store.ts'

/** By folder, all files in it; without a folder that has too many, or that nobody can look through. */
export function filesInside({ worktree }: Git, paths: readonly string[]): Record<string, string[]> {
  let room = mostFiles
  const add = (folder: string, found: string[], isOutermost: boolean): boolean => {
    for (const entry of readdirSync(onDisk(worktree, folder), { withFileTypes: true, encoding: 'buffer' })) {
      const name = entry.name.toString('latin1')
      if (name === '.git' && isOutermost) continue
      // Of a repository in it git names no files. On a Mac git may spell a name in another way than the disk.
      if (name === '.git' || (process.platform === 'darwin' && /[^ -~]/.test(name))) return false
      if (entry.isDirectory()) {
        if (!add(`${folder}${name}/`, found, false)) return false
      } else if (found.push(`${folder}${name}`) > room) return false
    }
    return true
  }
  const inside: Record<string, string[]> = {}
  for (const folder of paths.filter((path) => path.endsWith('/') && !isCache(path) && !isInstalled(path))) {
    const found: string[] = []
    try {
      if (!add(folder, found, true)) continue
    } catch (error) {
      if (
        ['EACCES', 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')
      )
        continue
      throw error
    }
    inside[folder] = found
    room -= found.length
  }
  return inside
}

/** Of what git sees now: whether it has no place in a checkpoint, and no revert touches it. */
export function keptOut(
  { protectedPaths }: Pick<Store, 'protectedPaths'>,
  { ignored, inside = {} }: Pick<Snapshot, 'ignored' | 'inside'> = { ignored: [] },
): (path: string) => boolean {
  const isExempt = exempt(protectedPaths, ignored)
  const isOwn = exempt(protectedPaths, [])
  const isExact = new Set(ignored)
  const lists = Object.entries(inside)
  const were = new Set(lists.flatMap(([, files]) => files))
  const wasThere = (path: string): boolean =>
    were.has(path) || (path.endsWith('/') && [...were].some((file) => file.startsWith(path)))
  return (path) => {
    if (!isExempt(path)) return false
    if (isExact.has(path) || isOwn(path)) return true
    return !lists.some(([folder]) => path.startsWith(folder)) || wasThere(path)
  }
}

interface KeptOut {
  /** Why COMPLETE does not count: nobody can tell whether these were there before. Empty where there are none. */
  readonly refused: string
  /** What is told of those that were. */
  readonly warnings: readonly string[]
}

/** Nothing that git sees stays out of a checkpoint in silence. `seen`: changed and untracked paths. `moved`: from places that git ignores. */
export function lookAtKeptOut(
  store: Store,
  snapshot: Snapshot,
  seen: readonly string[],
  moved: readonly MovedFile[],
): KeptOut {
  const { unignored = {}, ignored, inside = {} } = snapshot
  const isOut = keptOut(store, snapshot)
  const isOwn = exempt(store.protectedPaths, [])
  const isExact = new Set(ignored)
  const out = seen.filter((path) => !path.endsWith('/') && isOut(path) && !isOwn(path))
  const wasThere = new Set(Object.values(inside).flat())
  const sinceMs = statSync(join(store.folder, 'snapshot.json')).mtimeMs
  const untold = out.filter(
    (path) =>
      !isExact.has(path) &&
      !wasThere.has(path) &&
      // Written or moved there since; no program sets this time at will.
      (lstatNow(store.git.worktree, path)?.ctimeMs ?? 0) >= sinceMs,
  )
  const fresh = out.filter((path) => unignored[path] === undefined && !untold.includes(path))
  const wasIgnored = exempt([], ignored)
  const bared = moved.find(
    ({ was, now, isFolder }) =>
      wasIgnored(isFolder ? `${was}/` : was) &&
      seen.some(
        (path) => path === now || path.startsWith(`${now}/`) || (path.endsWith('/') && now.startsWith(path)),
      ),
  )
  return {
    refused:
      bared !== undefined
        ? `${named(bared.was)} is a file that git ignores, so it may be private, and it was moved to ${named(bared.now)}, where git sees it: no checkpoint takes it. Move it back, or let git ignore the new name`
        : untold.length === 0
          ? ''
          : `git sees ${listed(untold)} now, and at the checkpoint it did not look there (an ignored folder with packages, too many files or a repository): it may be the user's own, so no checkpoint takes it. Let git ignore it again, and put the work into a folder that was not ignored`,
    warnings:
      fresh.length === 0 || snapshot.unkept !== undefined
        ? []
        : [
            `in no checkpoint: ${listed(fresh)}. Git sees it now, but it was there before the attempt, ignored or in a repository of its own, so it may be private. If it belongs to the work, commit it after the loop`,
          ],
  }
}

const mostFiles = 2_000
