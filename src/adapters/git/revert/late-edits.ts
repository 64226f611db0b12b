// Between the look at an attempt and its revert a person may still be writing: that goes on top of the attempt before it is undone.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { addRaw, cannotConvert } from '../tree/exact-bytes.ts'
import { beyondFolders, canRead, lstatNow } from '../tree/files.ts'
import { named } from '../git.ts'
import { readLedger } from '../refs/ledger.ts'
import { copyIndex } from '../formats/index-file.ts'
import { writePlainTree } from '../formats/plain-tree.ts'
import { moveRefs, readRef, type Refs } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from './snapshot.ts'
import { outermost } from '../submodules/submodule.ts'
import { commitTree, joined, treeOf, treeOfIndex } from '../tree/tree.ts'
import { leftWhereItStands } from '../refs/whose-refs.ts'
import { besideRef } from '../refs/users-own.ts'
import { distrustIn } from '../tree/racy-entries.ts'

/** `paths` are about to go. In a repair the user's stay anyway, see edits-since-death.ts. */
export async function keepLate(store: Store, snapshot: Snapshot, paths: readonly string[]): Promise<void> {
  const { git } = store
  const { attempt, isKept, keptMs } = store.memory()
  if (isKept !== true || keptMs === undefined || store.absence?.() !== undefined) return
  // Folders are repositories of their own and are moved, not removed; what nobody can read was no edit of the last second.
  const isBeyond = beyondFolders(git.worktree)
  const late = paths.filter((path) => {
    // Behind a link lies what is in no work tree; the link itself is among the paths.
    if (isBeyond(path)) return false
    const stat = lstatNow(git.worktree, path)
    if (stat === undefined || stat.ctimeMs <= keptMs - slackMs) return false
    return canRead(git.worktree, path)
  })
  if (late.length === 0) return
  const ref = `${store.refs}/attempts/${attempt}`
  const kept = (await readRef(git, ref)) ?? snapshot.commit
  const index = join(store.folder, 'late-index')
  const before = await treeOf(git, kept)
  // The attempt's own index holds what was kept, unless that had more in it than git sees.
  const own = join(store.folder, 'attempt-index')
  const isOwn = existsSync(own) && (await treeOfIndex(git, own)) === before
  if (isOwn) await copyIndex(git, own, index)
  else await git.run(['read-tree', kept], { index })
  const add = (added: readonly string[]): Promise<unknown> =>
    git.run(['update-index', '--add', '--replace', '-z', '--stdin'], { index, input: joined(added) })
  const byGit = async (): Promise<string> => {
    distrustIn(index, late)
    await add(late).catch(async (error: unknown) => {
      if (cannotConvert(error) === '') throw error
      const raw = await addRaw(git, snapshot, index, late)
      await add(late.filter((path) => !raw.has(path)))
    })
    return await treeOfIndex(git, index)
  }
  const tree = (await writePlainTree(git, index, { present: late, deleted: [] })) ?? (await byGit())
  if (tree === before) return
  const message = `attempt ${attempt}\n\nRalph-Base: ${snapshot.commit}`
  await moveRefs(git, `attempt ${attempt}`, [`update ${ref} ${await commitTree(git, tree, [kept], message)}`])
  const outer = outermost(store)
  if (outer === store) return
  const name = relative(outer.git.worktree, git.worktree)
  const text = `changed in the submodule ${name} while attempt ${attempt} was undone: ${late.slice(0, 10).map(named).join(', ')}; kept there as ${ref}`
  await outer.note({ type: 'warning', code: 'beside', message: text })
}

/** A commit that others have made since, where the loop stands, and that a revert takes off: it is named, too. */
export async function noteLateCommit(store: Store, snapshot: Snapshot, now: Refs): Promise<void> {
  const { attempt, isKept, beside, pending } = store.memory()
  const isOwn = store.outer === undefined && store.absence?.() === undefined
  if (!isOwn || isKept !== true || attempt === undefined) return
  const known = [...beside, ...(pending?.beside ?? [])]
  const ledger = await readLedger(store, attempt)
  const found = await leftWhereItStands(store.git, snapshot, now, ledger)
  for (const hash of found.filter((each) => !known.some((other) => other.hash === each))) {
    await moveRefs(store.git, `beside attempt ${attempt}`, [
      `update ${besideRef(store, attempt, hash)} ${hash}`,
    ])
    await store.step('restore', { did: 'beside', n: attempt, hash })
  }
}

/** The kernel stamps files by a clock that ticks every few milliseconds. */
const slackMs = 20
