// On the disk before it counts: an agent and its git sync nothing, nor does git when it writes an index or the work tree.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ifThereNow, syncFiles } from '../../files/whole.ts'
import { launch } from '../../process/launcher.ts'
import { lstatNow, onDisk } from '../tree/files.ts'
import type { Git } from '../git.ts'

interface LooseObject {
  readonly hash: string
  readonly file: string
}

/** Files of the work tree; what is gone or is no file is left out. */
export async function syncPaths(git: Git, paths: readonly string[]): Promise<void> {
  const files = paths.filter((path) => lstatNow(git.worktree, path)?.isFile() === true)
  await syncAll(
    git,
    files.map((path) => onDisk(git.worktree, path)),
  )
}

/** One by one, or where they are many all that their disk still holds back. */
export async function syncAll(git: Git, files: readonly (string | Buffer)[]): Promise<void> {
  if (files.length > many && process.platform === 'linux') {
    const done = await launch('sync', ['-f', git.worktree, git.gitCommonDir], {
      cwd: git.worktree,
      timeoutMs: 600_000,
    })
    if (done.exitCode === 0) return
  }
  await syncFiles(files)
}

/**
 * Objects that others have written since the last time: git does not write again, nor sync, what is there already, and a checkpoint
 * is made of them.
 */
export async function syncLoose(git: Git): Promise<void> {
  const objects = join(git.gitCommonDir, 'objects')
  const nowMs = Date.now()
  const { untilMs, files } = synced.get(objects) ?? { untilMs: nowMs - oldMs, files: new Set<string>() }
  const found = looseSince(git, untilMs - tickMs, Number.POSITIVE_INFINITY, files).map(({ file }) => file)
  await syncAll(
    git,
    found.filter((file) => !files.has(file)),
  )
  synced.set(objects, { untilMs: nowMs, files: new Set(found), isDue: false })
}

/** Of these objects those that others may have written. The rest waits for the next look, which goes back to the one before this. */
export async function syncNamed(git: Git, files: readonly string[]): Promise<void> {
  const known = synced.get(join(git.gitCommonDir, 'objects'))
  if (known === undefined || known.files.size > mostKnown) return await syncLoose(git)
  await syncFiles(files.filter((file) => !known.files.has(file)))
  for (const file of files) known.files.add(file)
  known.isDue = true
}

/** Right before an agent is started: what was written before now is ralph's, or the user's, or made sure of. */
export function passLoose(git: Git): void {
  const objects = join(git.gitCommonDir, 'objects')
  const known = synced.get(objects)
  if (known?.isDue !== true)
    synced.set(objects, { untilMs: Date.now(), files: known?.files ?? new Set(), isDue: false })
}

/** Objects that ralph itself has just written and synced. */
export function knowSynced(git: Git, files: readonly string[]): void {
  const known = synced.get(join(git.gitCommonDir, 'objects'))
  for (const file of files) known?.files.add(file)
}

/** Until when, and the last of them; and whether a look was put off since then. */
const synced = new Map<string, { readonly untilMs: number; readonly files: Set<string>; isDue: boolean }>()

/** What was there so long before the first look is on the disk by then. */
const oldMs = 600_000

/** Beyond this a look is cheaper than the memory. */
const mostKnown = 2_000

/** Some file systems keep whole seconds. */
const tickMs = 2000

const many = 256

/** Loose objects that were written since then, up to this size. Those that are known already are not looked at again. */
export function looseSince(
  git: Git,
  sinceMs: number,
  upTo: number,
  known?: ReadonlySet<string>,
): LooseObject[] {
  const objects = join(git.gitCommonDir, 'objects')
  const folders = readdirSync(objects).filter((name) => /^[0-9a-f]{2}$/.test(name))
  const found: LooseObject[] = []
  for (const folder of folders) {
    const place = join(objects, folder)
    // A new name changes its folder.
    if ((statSync(place, { throwIfNoEntry: false })?.mtimeMs ?? 0) < sinceMs) continue
    for (const name of ifThereNow(() => readdirSync(place)) ?? []) {
      const hash = folder + name
      if (!/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(hash)) continue
      const file = join(place, name)
      const isKnown = known?.has(file) === true
      const seen = isKnown ? undefined : statSync(file, { throwIfNoEntry: false })
      if (isKnown) found.push({ hash, file })
      else if (seen !== undefined && seen.mtimeMs >= sinceMs && seen.size <= upTo) found.push({ hash, file })
    }
  }
  return found
}
