// Makes a repository usable again that an agent has broken, and git obey the user alone: permissions, HEAD, settings, hooks, info/.
import { existsSync, lstatSync, mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { rename } from '../../files/now.ts'
import { writeDurably } from '../../files/whole.ts'
import { bytesOf } from '../formats/bytes.ts'
import { insistOnConversions } from '../tree/conversions.ts'
import { putBackGuarded } from './guarded.ts'
import { removeWaysOut } from './ways-out.ts'
import { openRepository } from '../tree/owner-access.ts'
import { named } from '../git.ts'
import { headText } from '../formats/ref-files.ts'
import { removePath } from '../tree/remove.ts'
import { exempt } from '../tree/scan.ts'
import { bringBackLeftOut } from '../tree/sparse.ts'
import { findUnseen } from '../tree/unseen.ts'
import { timeName, type Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'

/** Before any git command after attempt `n`. Says what it did; of settings, hooks and info/ that is told when the attempt is settled. */
export async function mendRepository(store: Store, snapshot: Snapshot, n: number): Promise<string[]> {
  openRepository(store.git)
  const pipes = await removePipes(store, snapshot)
  const mended = [
    ...pipes,
    ...(await removeWaysOut(store.git, snapshot)),
    ...(await moveFolders(store)),
    ...mendRefs(store),
    ...(await mendHead(store, snapshot)),
    ...(await putBackGuarded(store, snapshot, n)),
  ]
  const insisted = await insistOnConversions(store, snapshot)
  await bringBackLeftOut(store, snapshot, n)
  return [...mended, ...insisted]
}

/** Git reads these in every folder, and would wait for a writer for ever. */
async function removePipes(store: Store, snapshot: Snapshot): Promise<string[]> {
  const { special } = findUnseen(store.git, exempt(store.protectedPaths, snapshot.ignored))
  const before = new Set(snapshot.special)
  const fresh = special.filter(
    (path) => /(^|\/)\.git(ignore|attributes|modules)$/.test(path) && !before.has(path),
  )
  for (const path of fresh) await removePath(store.git.worktree, path)
  return fresh.map(
    (path) => `${named(path)} was a pipe, a socket or a device, which git cannot read; it was removed`,
  )
}

/** Where git has a file it can neither read nor replace a folder; what lies in it may be somebody's. */
async function moveFolders(store: Store): Promise<string[]> {
  const { git, folder } = store
  const places = [
    ...[...onesOwn, 'index'].map((name) => join(git.gitDir, name)),
    join(git.gitCommonDir, 'packed-refs'),
  ]
  const moved = []
  for (const place of places) {
    if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() !== true) continue
    const aside = join(folder, 'folders', `${timeName(store)}-${basename(place)}`)
    mkdirSync(dirname(aside), { recursive: true })
    await rename(place, aside)
    moved.push(`${place} was a folder, where git needs a file; it was moved to ${aside}`)
  }
  return moved
}

const onesOwn = ['HEAD', 'ORIG_HEAD', 'FETCH_HEAD', 'COMMIT_EDITMSG', 'MERGE_HEAD', 'MERGE_MSG']

/** Without the folder git takes the place for no repository; the refs themselves are sorted by whose deed it was. */
function mendRefs({ git }: Store): string[] {
  const folder = join(git.gitCommonDir, 'refs')
  if (existsSync(folder)) return []
  mkdirSync(folder)
  return ["git's folder refs was removed while the agent worked; it is there again"]
}

async function mendHead({ git }: Store, { head }: Snapshot): Promise<string[]> {
  const file = join(git.gitDir, 'HEAD')
  if (/^(ref: refs\/\S+|[0-9a-f]{40,64})$/.test(headText(git.gitDir))) return []
  await writeDurably(file, bytesOf(head.ref === undefined ? `${head.commit}\n` : `ref: ${head.ref}\n`))
  return ['the agent broke HEAD; it is back']
}
