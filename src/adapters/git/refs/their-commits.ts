// Commits of the user's that a revert leaves where they are: on a branch of the user's own, and, in a repair, those made since the loop died.
import { join } from 'node:path'
import { readIfThere } from '../../files/whole.ts'
import { ownerOfPath } from '../../../core/ownership.ts'
import type { Git } from '../git.ts'
import { readLedger } from './ledger.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from '../revert/snapshot.ts'
import { changedPaths, isAncestor, joined } from '../tree/tree.ts'

export interface TheirCommits {
  readonly tip: string
  /** What is in them. */
  readonly paths: readonly string[]
  /** As these are in the work tree, so are they to stay. */
  readonly stay: readonly string[]
}

/** Undefined where there are none, and where the branch was rewound or rebased: that is kept aside, and told. */
export async function theirCommits(
  store: Store,
  snapshot: Snapshot,
  tip: string | undefined,
): Promise<TheirCommits | undefined> {
  const { head } = snapshot
  const absence = store.absence?.()
  const { ref, commit } = head
  if (ref === undefined || commit === undefined || tip === undefined || tip === commit) return undefined
  if (absence === undefined) return await onTheirBranch(store, snapshot.tree, { ref, commit }, tip)
  // Which moves were ralph's the reflog says itself; times tell only the agent's from the user's.
  const moves = (await reflog(store.git, ref)).filter(
    ({ atMs, why }) =>
      !why.startsWith('ralph: ') &&
      ownerOfPath({ changedMs: atMs }, { ...absence, repairs: [] }).owner === 'user',
  )
  const from = moves[0]?.from
  if (from === undefined || moves.at(-1)?.to !== tip || !(await isAncestor(store.git, commit, tip)))
    return undefined
  const paths = await changedPaths(store.git, from, tip)
  return { tip, paths, stay: paths }
}

/** With stashes the loop works on the user's branch: what the user commits there during an attempt is not for a revert to take back. */
async function onTheirBranch(
  store: Store,
  tree: string,
  head: { readonly ref: string; readonly commit: string },
  tip: string,
): Promise<TheirCommits | undefined> {
  const { git } = store
  const { attempt = 0, beside, pending } = store.memory()
  if (head.ref.startsWith('refs/heads/ralph/')) return undefined
  if (![...beside, ...(pending?.beside ?? [])].some(({ hash }) => hash === tip)) return undefined
  if (!(await isAncestor(git, head.commit, tip))) return undefined
  const { writes } = await readLedger(store, attempt)
  const made = writes.flatMap(({ ref, to }) => (ref === head.ref && to !== undefined ? [to] : []))
  // On top of what the agent committed: nobody can have the one without the other.
  for (const to of made) if (to !== head.commit && (await isAncestor(git, to, tip))) return undefined
  const [paths, others] = await Promise.all([
    changedPaths(git, head.commit, tip),
    changedPaths(git, tree, tip),
  ])
  const isOther = new Set(others)
  return { tip, paths, stay: paths.filter((path) => isOther.has(path)) }
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

export async function reflog(git: Git, ref: string): Promise<Move[]> {
  const text = (await readIfThere(join(git.gitCommonDir, 'logs', ref)))?.toString('latin1') ?? ''
  const lines = text.matchAll(/^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d+) [-+]\d{4}(?:\t(.*))?$/gm)
  return [...lines].map(([, from = '', to = '', seconds = '0', why = '']) => ({
    from,
    to,
    why,
    atMs: Number(seconds) * 1000 + 999,
  }))
}
