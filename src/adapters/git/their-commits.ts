// In a repair: commits that the user has made since the loop died, on the branch that it stands on. They are not taken back.
import { join } from 'node:path'
import { readIfThere } from '../files/whole.ts'
import { ownerOfPath } from '../../core/ownership.ts'
import type { Git } from './git.ts'
import type { Store } from './store.ts'
import type { Snapshot } from './snapshot.ts'
import { changedPaths, isAncestor, joined } from './tree.ts'

export interface TheirCommits {
  readonly tip: string
  /** As they are there, so are they to stay. */
  readonly paths: readonly string[]
}

/** Undefined outside of a repair, and where the branch was rewound or rebased: that is kept aside, and told. */
export async function theirCommits(
  store: Store,
  { head }: Snapshot,
  tip: string | undefined,
): Promise<TheirCommits | undefined> {
  const absence = store.absence?.()
  if (absence === undefined || head.ref === '' || head.commit === '' || !tip || tip === head.commit)
    return undefined
  // Which moves were ralph's the reflog says itself; times tell only the agent's from the user's.
  const moves = (await reflog(store.git, head.ref)).filter(
    ({ atMs, why }) =>
      !why.startsWith('ralph: ') &&
      ownerOfPath({ changedMs: atMs }, { ...absence, repairs: [] }).owner === 'user',
  )
  const from = moves[0]?.from
  if (from === undefined || moves.at(-1)?.to !== tip || !(await isAncestor(store.git, head.commit, tip)))
    return undefined
  return { tip, paths: await changedPaths(store.git, from, tip) }
}

/** What they committed is in the index as they committed it. */
export async function indexTheirs(git: Git, { tip, paths }: TheirCommits): Promise<void> {
  if (paths.length === 0) return
  const wanted = new Set(paths)
  const entries = await git.list(['ls-tree', '-r', '-z', '--full-tree', tip])
  const there = entries.filter((entry) => wanted.has(entry.slice(entry.indexOf('\t') + 1)))
  await git.run(['update-index', '--force-remove', '-z', '--stdin'], { input: joined(paths) })
  if (there.length > 0)
    await git.run(['update-index', '--replace', '-z', '--index-info'], { input: joined(there) })
  await git.run(['update-index', '-q', '--refresh'], { accept: [1] })
}

interface Move {
  readonly from: string
  readonly to: string
  readonly why: string
  /** Git writes whole seconds: the last moment that it may have been. */
  readonly atMs: number
}

async function reflog(git: Git, ref: string): Promise<Move[]> {
  const text = (await readIfThere(join(git.gitCommonDir, 'logs', ref)))?.toString('latin1') ?? ''
  const lines = text.matchAll(/^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d+) [-+]\d{4}(?:\t(.*))?$/gm)
  return [...lines].map(([, from = '', to = '', seconds = '0', why = '']) => ({
    from,
    to,
    why,
    atMs: Number(seconds) * 1000 + 999,
  }))
}
