// What a revert takes out of the work tree is moved away first, and deleted at its end: somebody may save one of these files in that very moment, or have it open.
import { randomUUID } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { ifThereNow } from '../../files/whole.ts'
import { beyondFolders, placeIn } from '../tree/files.ts'
import { exactStatsOf, openAbove } from '../tree/owner-access.ts'
import { draftsIn } from '../tree/whole-files.ts'
import type { Store } from '../store.ts'
import { keepApart, limited } from './set-aside.ts'

const listSchema = z.array(z.tuple([z.string(), z.string()]))

/** Files that are kept as they are: those that are as they were seen. */
export function takeOut(
  store: Store,
  paths: readonly string[],
  /** Asked right before each of them goes. */
  isResting: (path: string) => boolean,
): void {
  const { worktree } = store.git
  if (paths.length === 0) return
  const folder = join(folderOf(store), randomUUID())
  mkdirSync(folder, { recursive: true })
  const marks = paths.map((path) => [path, markAt(placeIn(worktree, path))])
  // Before the first one moves: after a kill this is all that tells what they were.
  writeFileSync(join(folder, listName), JSON.stringify(marks))
  openAbove(worktree, paths)
  const isBeyond = beyondFolders(worktree)
  for (const [nth, path] of paths.entries()) {
    // What had not been there has come since the look.
    if (marks[nth]?.[1] === '' || isBeyond(path) || !isResting(path)) continue
    const place = placeIn(worktree, path)
    try {
      renameSync(place, join(folder, `${nth}`))
    } catch {
      // On another device, or mounted: whatever else is wrong, this says.
      unlinkSync(place)
    }
  }
}

/** At the end of a revert, and at the beginning of the next, for a kill may have cut one off: what was written to since is told. */
export async function lookAgain(store: Store): Promise<void> {
  rmSync(draftsIn(store.folder), { recursive: true, force: true })
  const tell = limited(store)
  for (const name of ifThereNow(() => readdirSync(folderOf(store))) ?? []) {
    const folder = join(folderOf(store), name)
    const list = readList(join(folder, listName))
    for (const [nth, [path, mark]] of list.entries()) {
      const place = join(folder, `${nth}`)
      const now = markAt(place)
      if (now === '') continue
      if (now === mark) unlinkSync(place)
      else
        await keepApart(store, Buffer.from(place), path, {
          why: 'was written while the attempt was undone: these bytes are',
          as: 'saved',
          tell,
        })
    }
    if (readdirSync(folder).every((each) => each === listName)) {
      rmSync(join(folder, listName), { force: true })
      rmdirSync(folder)
    }
  }
}

/** Of a list that a power cut has left empty the files stay. */
function readList(file: string): z.infer<typeof listSchema> {
  try {
    return listSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return []
  }
}

/** Stays when a file is moved. */
function markAt(place: Buffer | string): string {
  const stats = exactStatsOf(place)
  return stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.mtimeNs}`
}

function folderOf(store: Store): string {
  return join(store.folder, 'taken')
}

const listName = 'list.json'
