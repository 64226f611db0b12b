// What a revert takes out of the work tree and no attempt holds: moved into ralph's own folder, never deleted, and told with the way back.
import { mkdir, rename, rm } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { copyAll } from '../../files/copy.ts'
import { onDisk, parentOf } from '../tree/files.ts'
import { shellName } from '../attempt/lost-files.ts'
import { named } from '../git.ts'
import { filesWithin } from '../tree/hidden-by-agent.ts'
import { renamed } from './moved-files.ts'
import { openAbove, openWithin, statsOf } from '../tree/owner-access.ts'
import { pruneAbove } from '../tree/remove.ts'
import type { Store } from '../store.ts'
import { outermost } from '../submodules/submodule.ts'

interface Apart {
  readonly path: string
  /** Where it was at the checkpoint, if that is known. */
  readonly was?: string | undefined
  /** A repository of its own: across devices it is copied, for git would not see that it is still there. */
  readonly isRepository?: boolean
  /** Of what was there at the checkpoint, and comes back to this place. */
  readonly isInTheWay?: boolean
}

/** Whether it is out of the tree. */
export type PutAside = (what: Apart) => Promise<boolean>

/** For one revert: of very many things only the first are told one by one. */
export function asideOf(store: Store): PutAside {
  const tell = limited(store)
  return (what) => setAside(store, what, tell)
}

type Tell = (message: string) => Promise<void>

export function limited(store: Store): Tell {
  let lines = 0
  return async (message) => {
    lines += 1
    if (lines > mostLines + 1) return
    const folder = join(outermost(store).folder, 'aside')
    const text = lines > mostLines ? `more files like that are in ${folder}` : message
    await outermost(store).note({ type: 'warning', code: 'set_aside', message: text })
  }
}

/** Told before it is done: after a kill in between nobody else would say it. */
async function setAside(
  store: Store,
  { path, was, isRepository, isInTheWay }: Apart,
  tell: Tell,
): Promise<boolean> {
  const bare = path.replace(/\/$/, '')
  const from = onDisk(store.git.worktree, bare)
  const stats = statsOf(from)
  if (stats === undefined) return true
  const to = placeFor(store, bare)
  await mkdir(parentPlace(to), { recursive: true })
  const parent = statsOf(parentPlace(to))
  const isFar = parent !== undefined && parent.dev !== stats.dev
  const name = `${named(bare)}${stats.isDirectory() ? '/' : ''}`
  if (isFar && isRepository !== true) {
    await tell(
      `${name} is in no attempt, so it is not deleted; it is on another device than the repository and stays where it is. If it is not yours: rm -rf ${shellName(onSite(store, bare))}`,
    )
    return false
  }
  if (isInTheWay === true) {
    const both = wayBack(store, to, `${bare}.attempt`)
    await tell(
      `what the attempt put in the place of ${name} is kept in ralph's folder. To have both: ${both}`,
    )
    return await renamed(store, bare, to)
  }
  const why =
    was !== undefined
      ? `${named(was)} was moved to ${name} while the attempt ran, and something else is in its place`
      : isRepository === true
        ? `the repository ${name} appeared while the attempt ran`
        : `${name} appeared while the attempt ran, and is not kept whole in any attempt`
  await tell(`${why}: it is kept in ralph's folder. To get it back: ${wayBack(store, to, was ?? bare)}`)
  if (await renamed(store, bare, to)) return true
  if (isRepository !== true) return false
  openAbove(store.git.worktree, [bare])
  openWithin(from)
  await copyAll(from, to)
  await rm(from, { recursive: true, force: true })
  await pruneAbove(store.git.worktree, bare)
  return true
}

/** What was taken out of the tree for a while, and something else has come into its place. */
export async function keepApart(
  store: Store,
  from: Buffer,
  path: string,
  { why, as, tell }: { readonly why: string; readonly as: string; readonly tell: Tell } = {
    why: 'was made again while the gates ran without it: as it was before it is',
    as: 'before',
    tell: limited(store),
  },
): Promise<void> {
  const to = placeFor(store, path)
  await mkdir(parentPlace(to), { recursive: true })
  await tell(
    `${named(path)} ${why} kept in ralph's folder. To have both: ${wayBack(store, to, `${path}.${as}`)}`,
  )
  await rename(from, to)
}

/** Whether all that lies there is among the files that an attempt holds. */
export async function isAllHeld(
  { git }: Store,
  path: string,
  isHeld: (path: string) => boolean,
): Promise<boolean> {
  const { files, left } = await filesWithin(git, [path], () => false)
  return left.length === 0 && files.every((file) => isHeld(file))
}

/** The same one again after a kill; of an earlier run something may lie there. */
function placeFor(store: Store, path: string): Buffer {
  const { attempt = 0 } = store.memory()
  const top = outermost(store)
  const folder = join(top.folder, 'aside')
  const inner = Buffer.from(relative(top.git.worktree, store.git.worktree)).toString('latin1')
  const name = inner === '' ? path : `${inner}/${path}`
  for (let more = 1; ; more += 1) {
    const place = onDisk(join(folder, more === 1 ? `${attempt}` : `${attempt}-${more}`), name)
    if (!existsSync(place) && statsOf(place) === undefined) return place
  }
}

function parentPlace(place: Buffer): Buffer {
  return place.subarray(0, place.lastIndexOf('/'))
}

function onSite(store: Store, path: string): string {
  const top = outermost(store).git.worktree
  const folder = relative(top, store.git.worktree)
  const inner = folder === '' ? path : `${Buffer.from(folder).toString('latin1')}/${path}`
  return outermost(store).home === undefined ? inner : `${Buffer.from(top).toString('latin1')}/${inner}`
}

function wayBack(store: Store, place: Buffer, to: string): string {
  const top = outermost(store)
  const prefix = Buffer.from(`${top.git.worktree}/`)
  const isWithin = top.home === undefined && place.subarray(0, prefix.length).equals(prefix)
  const from = (isWithin ? place.subarray(prefix.length) : place).toString('latin1')
  const target = onSite(store, to)
  const folder = parentOf(to) === '' ? '' : `mkdir -p ${shellName(parentOf(target))} && `
  return `${folder}mv ${shellName(from)} ${shellName(target)}`
}

const mostLines = 10
