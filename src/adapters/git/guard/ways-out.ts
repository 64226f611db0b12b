// Links and pipes in the places that git writes to: through a link there it would write anywhere, and for the reader of a pipe it would wait for ever.
import { readdirSync, readlinkSync, statSync } from 'node:fs'
import { relative } from 'node:path'
import { rm } from '../../files/now.ts'
import { restingMark } from '../../files/whole.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { onDisk } from '../tree/files.ts'
import { exactStatsOf } from '../tree/owner-access.ts'
import { named, type Git } from '../git.ts'

/** By their names in the common git directory, one char per byte: where each leads; empty for a pipe. */
export function findWaysOut({ gitDir, gitCommonDir: common }: Git): Record<string, string> {
  const found: Record<string, string> = {}
  const walk = (folder: string, isWhole: boolean): void => {
    const { folders, out } = lookInto(onDisk(common, folder))
    const within = (name: string): string => (folder === '' ? name : `${folder}/${name}`)
    for (const [name, to] of out) found[within(name)] = to
    if (isWhole) for (const name of folders) walk(within(name), true)
  }
  const own = Buffer.from(relative(common, gitDir)).toString('latin1')
  for (const root of new Set(['', own])) {
    const within = (name: string): string => (root === '' ? name : `${root}/${name}`)
    for (const folder of ['logs', 'refs']) walk(within(folder), true)
    for (const folder of ['objects', 'objects/pack', 'objects/info']) walk(within(folder), false)
    walk(root, false)
  }
  return found
}

interface Looked {
  readonly mark: string
  readonly folders: readonly string[]
  /** By their names where each leads. */
  readonly out: readonly (readonly [string, string])[]
}

/** A folder with thousands of refs in it seldom changes: what came or went would give it another time. */
function lookInto(place: Buffer): Looked {
  const stats = exactStatsOf(place)
  if (stats?.isDirectory() !== true) return { mark: '', folders: [], out: [] }
  const mark = restingMark(stats)
  const key = place.toString('latin1')
  const known = seen.get(key)
  if (mark !== '' && known?.mark === mark) return known
  const entries = readdirSync(place, { withFileTypes: true, encoding: 'latin1' })
  const looked = {
    mark,
    folders: entries.filter((entry) => entry.isDirectory()).map(({ name }) => name),
    out: entries
      .filter((entry) => entry.isSymbolicLink() || entry.isFIFO())
      .map((entry): [string, string] => [entry.name, entry.isFIFO() ? '' : leadsTo(place, entry.name)]),
  }
  if (mark !== '') seen.set(key, looked)
  return looked
}

const seen = new Map<string, Looked>()

function leadsTo(folder: Buffer, name: string): string {
  return readlinkSync(Buffer.concat([folder, Buffer.from(`/${name}`, 'latin1')]), { encoding: 'latin1' })
}

/** Those that the attempt has made. What git itself writes as a link leads to a ref. */
export async function removeWaysOut(
  git: Git,
  { ways_out: before }: Pick<Snapshot, 'ways_out'>,
): Promise<string[]> {
  if (before === undefined) return []
  const fresh = Object.entries(findWaysOut(git)).filter(
    ([name, to]) => before[name] !== to && !to.startsWith('refs/') && !isGuarded.test(name),
  )
  const isStore = ([name, to]: readonly [string, string]): boolean => to !== '' && holdsStore(git, name)
  for (const [name] of fresh.filter((each) => !isStore(each)))
    await rm(onDisk(git.gitCommonDir, name), { force: true })
  return fresh.map(([name, to]) =>
    to === ''
      ? `.git/${named(name)} was a pipe, which git would have waited for; it was removed`
      : isStore([name, to])
        ? `.git/${named(name)} is a link to ${named(to)} since then: the repository needs it, so it stays`
        : `.git/${named(name)} was a link to ${named(to)}, and git would have written there; the link was removed`,
  )
}

/**
 * A folder that was moved away, with a link in its place: objects, refs, submodules, what other programs keep there. Without it the
 * repository would not be whole, and what is written into such a folder has names of its own.
 */
function holdsStore({ gitCommonDir: common }: Git, name: string): boolean {
  if (name === 'logs' || !/^(?:[^/]+|objects\/.*)$/.test(name)) return false
  const inside = name === 'refs' ? 'refs/heads' : name
  return statSync(onDisk(common, inside), { throwIfNoEntry: false })?.isDirectory() === true
}

/** Around what runs beside any attempt: a set-up, a gate of the queue. */
export async function leavingNoWayOut<T>(git: Git, work: () => Promise<T>): Promise<T> {
  const ways_out = findWaysOut(git)
  try {
    return await work()
  } finally {
    await removeWaysOut(git, { ways_out })
  }
}

/** Put back as they were, and what stood there is kept. */
const isGuarded =
  /^(?:.*\/)?(?:config(?:\.worktree)?|hooks|info|commondir|shallow|objects\/info\/alternates)$/
