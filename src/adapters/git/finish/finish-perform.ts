// Carries a cleanup out, step by step, and completes one that was cut off.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import type { CleanupPlan, Head } from '../../../core/git-facts.ts'
import type { Recovered } from '../../../ports.ts'
import { applyTrees } from '../landing/apply.ts'
import { releaseSubmodules } from '../submodules/finish-submodules.ts'
import { named, type Git } from '../git.ts'
import { installIndex, realIndex, takeFrom } from '../formats/index-file.ts'
import { isTheirs } from './only-in-worktree.ts'
import { unpin } from '../refs/pins.ts'
import { headRef } from '../formats/ref-files.ts'
import { moveRefs, readRef, readRefs, setHead, type Refs } from '../refs/refs.ts'
import { holdDetached } from '../refs/users-own.ts'
import { lateTold } from '../attempt/reunite.ts'
import { loadSnapshot } from '../revert/snapshot.ts'
import { commitSquash, placeOf, type Squashed } from './squash.ts'
import { keepStaged } from '../attempt/staged.ts'
import { noteDone } from '../start/own-part.ts'
import type { Store } from '../store.ts'
import { refuseTaken } from '../refs/branch-in-use.ts'
import { changedPaths, commitTree, indexMark, isAncestor, orEmpty } from '../tree/tree.ts'

export async function redoFinish(store: Store, plan: CleanupPlan): Promise<Recovered> {
  const left = await leftSince(store, plan)
  if (left !== undefined) throw switched(store, 'Nothing was touched.', left)
  const { made, told } = await performFinish(store, plan)
  const what =
    made === undefined
      ? 'the cleanup was completed'
      : 'commit' in made
        ? `the work is one commit now, ${made.commit.slice(0, 12)}`
        : `the work is on your branch, but could not be committed: ${made.refused}. ${made.hint}`
  return {
    said: [what, ...told].join('; '),
    ...(made !== undefined && 'commit' in made && { commit: made.commit }),
  }
}

/** In the log of HEAD. */
const cleanup = 'cleanup'

/** Each step may have been done already, unless it is told where HEAD `stood`. `told`: what there is to say of the user's own. */
export async function performFinish(
  store: Store,
  plan: CleanupPlan,
  stood?: { readonly ref: string | undefined },
): Promise<{ made: Squashed | undefined; told: readonly string[]; late: readonly string[] }> {
  const { git } = store
  // A switch in this very moment takes the work out of the tree that it is about to be brought with.
  const stays = (): boolean => stood === undefined || headRef(git) === stood.ref
  const { origin, initial } = store.memory()
  await moveRefs(git, 'archive', [
    `update ${store.refs}/archive/${plan.time} ${plan.tip}`,
    ...(origin === undefined || initial === undefined
      ? []
      : await noteDone(store, { origin: origin.commit, initial, tip: plan.tip })),
    ...(plan.carried === undefined ? [] : [`update ${store.refs}/carried ${plan.carried.commit}`]),
  ])
  const prepared = plan.index === 'prepared' ? join(store.folder, 'finish-index') : undefined
  const told: string[] = []
  let late: readonly string[] = []
  let looked: string | undefined
  /** Of an index that was looked at before there is nothing more to say. */
  const staged = async (): Promise<void> => {
    const mark = indexMark(realIndex(git))
    if (plan.index === 'as_is' || mark === looked) return
    looked = mark
    told.push(...(await keepStaged(store, { next: prepared, snapshot: await loadSnapshot(store) })))
  }
  await staged()
  if (!stays()) {
    await store.step('finish', { did: 'undone' })
    await store.note({ type: 'git.ended', op: 'finish' })
    throw switched(store, 'Nothing was touched.')
  }
  if (plan.trees !== undefined) {
    const { from, to } = plan.trees
    late = await applyTrees(placeOf(store), store.folder, from, to, store.protectedPaths)
    const ref = `${store.refs}/archive/${plan.time}-brought`
    if (late.length > 0)
      await moveRefs(git, 'archive', [`update ${ref} ${await commitTree(git, to, [plan.tip], 'brought')}`])
    told.push(...lateTold(late, { ref, typed: placeOf(store).typed }))
  }
  let ahead: string | undefined
  if (plan.head !== undefined && !(store.home !== undefined && isTheirs(git, store.change))) {
    const refs = await readRefs(git)
    ahead = await madeSince(git, plan.head, refs)
    if (isGone(plan.head, refs))
      await moveRefs(git, 'cleanup', [`create ${plan.head.ref} ${plan.head.commit}`])
    await staged()
    if (!stays()) throw switched(store, 'The cleanup is half done; all of the work is on the branch.')
    if (ahead === undefined || plan.head.ref !== undefined) {
      const left = await holdDetached(git, store.refs, placeOf(store).typed)
      if (left !== '') told.push(left)
      await setHead(git, plan.head, cleanup)
    }
  }
  if (prepared !== undefined) await installIndex(git, prepared, staged)
  if (prepared !== undefined && ahead !== undefined)
    await takeFrom(
      git,
      realIndex(git),
      ahead,
      await changedPaths(git, await orEmpty(git, plan.head?.commit), ahead),
    )
  if (plan.index === 'none') await installIndex(git, undefined, staged)
  const made = plan.squash === undefined ? undefined : await commitSquash(store, plan.squash)
  told.push(...(await deleteBranch(store, plan)))
  await unpin(store)
  await releaseSubmodules(store, await loadSnapshot(store), plan.time)
  for (const file of ['snapshot.json', 'origin.json']) await rm(join(store.folder, file), { force: true })
  return { made, told, late }
}

/** What was committed there, or on top of it in the loop's own tree, since the plan was made is in no archive yet. */
async function deleteBranch(store: Store, { tip, time }: CleanupPlan): Promise<string[]> {
  const { git, home, change } = store
  const branch = `refs/heads/ralph/${change}`
  const later = `${store.refs}/archive/${time}-later`
  refuseTaken(git, branch, {
    code: 'finish_conflict',
    safe: 'All of the work is where it goes, only the branch is still there.',
    next: `\`ralph finish ${change} --cleanup\` again`,
  })
  const [now, { head }] = await Promise.all([readRef(git, branch), readRefs(git)])
  const own = home === undefined || isTheirs(git, change) ? undefined : head.commit
  const news: string[] = []
  for (const hash of new Set([now, own]))
    if (hash !== undefined && !(await isAncestor(git, hash, tip))) news.push(hash)
  await moveRefs(git, 'cleanup', [
    ...news.map((hash, at) => `update ${later}${at === 0 ? '' : `-${at}`} ${hash}`),
    // Whoever commits in this very moment is not overruled: it fails, and is done again.
    ...(now === undefined ? [] : [`delete ${branch} ${now}`]),
    `delete ${store.refs}/checkpoint`,
  ])
  return await Promise.all(
    news.map(async (hash, at) => {
      const subject = named(await git.line(['log', '-1', '--format=%s', hash]))
      const range = `${tip.slice(0, 12)}..${hash.slice(0, 12)}`
      return `committed on ralph/${change} meanwhile, and not brought: ${hash.slice(0, 12)} (${subject}); it is kept as ${later}${at === 0 ? '' : `-${at}`}: ${placeOf(store).typed} cherry-pick ${range}`
    }),
  )
}

/**
 * Since a cleanup was cut off the user has gone elsewhere, and git has taken the files of this branch out of the tree with them: where they
 * have to be for its rest. What of it was done the log of HEAD tells; without one nobody knows.
 */
async function leftSince({ git, change, home }: Store, { head }: CleanupPlan): Promise<string | undefined> {
  const own = `ralph/${change}`
  const now = headRef(git)
  if (head === undefined || home !== undefined || now === `refs/heads/${own}`) return undefined
  const log = await git.line(['log', '-g', '--format=%gs', 'HEAD'], { accept: [128] })
  const last = log.split('\n').find((each) => each.startsWith('ralph: '))
  if (last === undefined) return undefined
  if (last !== `ralph: ${cleanup}`) return own
  return now === head.ref ? undefined : head.ref?.replace(/^refs\/heads\//, '')
}

function switched({ git, change }: Store, safe: string, branch = `ralph/${change}`): RalphError {
  return new RalphError('finish_conflict', `${git.worktree} was switched to another branch.`, {
    hint: `${safe} ${git.typed} switch ${branch}, then ralph finish ${change} --cleanup again.`,
  })
}

/** Where HEAD is now, if a cleanup that was cut off had moved it, and the user has committed there since; else undefined. */
async function madeSince(git: Git, planned: Head, { head }: Refs): Promise<string | undefined> {
  const { commit } = head
  if (planned.ref !== head.ref || planned.commit === undefined || commit === undefined) return undefined
  return commit !== planned.commit && (await isAncestor(git, planned.commit, commit)) ? commit : undefined
}

/** The branch that HEAD goes back to was renamed or deleted meanwhile. */
export function isGone({ ref, commit }: Head, { all }: Refs): boolean {
  return ref !== undefined && commit !== undefined && all[ref] === undefined
}
