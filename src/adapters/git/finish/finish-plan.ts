// What a cleanup will do: which trees it goes between, where HEAD goes, which index is given back. Refuses with nothing touched.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import type { CleanupPlan, Head } from '../../../core/git-facts.ts'
import { syncFiles } from '../../files/whole.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { conflict, goTo, mergeTrees, refuseOverwrite } from '../landing/apply.ts'
import { planCarry } from './carry.ts'
import type { Git } from '../git.ts'
import { copyIndex, realIndex, takeFrom } from '../formats/index-file.ts'
import { leftOutSince } from '../tree/flags.ts'
import { reflog } from '../refs/their-commits.ts'
import { originName, placeOf, readRef, readRefs, shortName, type Refs } from '../refs/refs.ts'
import { placeOf as placeOfWork } from './squash.ts'
import { differing, prunedVersions, stageIn, type StagedEntry } from '../attempt/staged.ts'
import { timeName, type Store } from '../store.ts'
import { refuseTaken } from '../refs/branch-in-use.ts'
import { changedPaths, isAncestor, orEmpty, treeOf } from '../tree/tree.ts'

/** The loop ran in the user's checkout. */
export async function planHere(
  store: Store,
  origin: Head,
  refs: Refs,
  tip: string,
  touched: readonly string[],
): Promise<{ plan: CleanupPlan; isMerged: boolean; isPart?: boolean }> {
  const { git } = store
  const isOnBranch = refs.head.ref === `refs/heads/ralph/${store.change}`
  const head =
    origin.ref === undefined ? origin : { ref: origin.ref, commit: refs.all[origin.ref] ?? origin.commit }
  const now = head.commit
  const isAtOrigin = refs.head.ref === origin.ref
  if (!isOnBranch && !isAtOrigin) throw elsewhere(store, origin)
  const renamedTo = isOnBranch ? await newNameOf(git, origin, refs) : undefined
  if (renamedTo !== undefined) throw renamed(store, origin, renamedTo)
  if (isOnBranch && origin.ref !== undefined) refuseTaken(git, origin.ref, notYet(store.change))
  const plan = { tip, time: timeName(store), head }
  if (isOnBranch && now === origin.commit) {
    const index = await giveBackIndex(store, now, touched)
    return { plan: { ...plan, index }, isMerged: false }
  }
  const there = isAtOrigin ? refs.head.commit : now
  const isAllIn = there !== undefined && (await isAncestor(git, tip, there))
  // What was merged by hand, in part or whole, is not brought again.
  const common = await commonCommit(git, there, tip)
  const isSince =
    common !== undefined && (origin.commit === undefined || (await isAncestor(git, origin.commit, common)))
  const began = isSince ? common : origin.commit
  const base = await treeOf(git, await orEmpty(git, began))
  const ours = await treeOf(git, there ?? base)
  const theirs = await treeOf(git, tip)
  const original = origin.ref === undefined ? (there ?? '') : shortName(origin.ref)
  const bringing = { change: store.change, original, typed: git.typed }
  const to = await mergeTrees(git, base, ours, theirs, bringing)
  // Squashed or picked, it is there as well.
  const isMerged = isAllIn || (to === ours && theirs !== base)
  const from = isOnBranch ? theirs : ours
  await refuseOverwrite(git, from, to, () => false, bringing)
  // Since the user's index was taken: where the branch has the work already, what they had not committed is in it as well.
  const moved = await changedPaths(git, await orEmpty(git, origin.commit), await orEmpty(git, there))
  if (!isOnBranch) {
    const index = await stageAgain(store, origin.commit, there, [...touched, ...moved])
    return {
      plan: { tip, time: plan.time, trees: { from, to }, index },
      isMerged,
    }
  }
  const apart = new Set(await changedPaths(git, theirs, await orEmpty(git, now)))
  const all = [...new Set([...touched, ...moved])]
  const index = await giveBackIndex(
    store,
    now,
    all,
    all.filter((path) => apart.has(path)),
  )
  const { initial } = store.memory()
  // Not where the user has merged their branch into the loop's.
  const isPart =
    !isMerged &&
    common !== undefined &&
    initial !== undefined &&
    initial !== origin.commit &&
    (await isAncestor(git, initial, common))
  return { plan: { ...plan, trees: { from, to }, index }, isMerged, isPart }
}

/** The loop ran in a work tree of its own: its changes are carried into the user's checkout. */
export async function planHome(
  store: Store,
  origin: Head,
  from: Parameters<typeof planCarry>[3],
): Promise<{ plan: CleanupPlan; left: readonly string[]; isMerged: boolean }> {
  const { git, home } = store
  if (home === undefined) throw elsewhere(store, origin)
  const { ref, commit: at } = (await readRefs(git.at(home))).head
  if (ref !== origin.ref && origin.ref !== undefined && (await readRef(git, origin.ref)) === undefined)
    throw renamed(store, origin, ref)
  if (ref !== origin.ref || at === undefined) throw elsewhere(store, origin, ref)
  const { left, commit, isMerged, trees } = await planCarry(store, home, { ref, commit: at }, from)
  const { tip } = from
  const plan: CleanupPlan = {
    tip,
    time: timeName(store),
    trees,
    head: { commit: tip },
    index: 'as_is',
  }
  return { plan: { ...plan, carried: { commit, origin } }, left, isMerged }
}

/** Where the commit goes: the branch that the user came from, or stands on already. */
export async function ontoOf({ git, home }: Store, { head }: CleanupPlan): Promise<string | undefined> {
  if (home !== undefined) return (await readRefs(git.at(home))).head.commit
  return (head ?? (await readRefs(git)).head).commit
}

/** What the branch has of the work already, by a merge of the user's, is not committed again. */
export async function squashBase(
  git: Git,
  {
    began,
    own,
    onto,
    tip,
  }: { began: string; own: string | undefined; onto: string | undefined; tip: string },
): Promise<string> {
  const common = await commonCommit(git, onto, tip)
  const since = await git.line(['rev-parse', '--verify', `${began}^{commit}`])
  return common !== undefined && (await isAncestor(git, since, common)) ? common : (own ?? since)
}

async function commonCommit(git: Git, one: string | undefined, other: string): Promise<string | undefined> {
  if (one === undefined) return undefined
  return (await git.run(['merge-base', one, other], { accept: [1] })).out.trim() || undefined
}

/** The user's own index again, except for what the loop or the branch's move has touched: that is as in `now`, unstaged. */
async function giveBackIndex(
  store: Store,
  now: string | undefined,
  touched: readonly string[],
  /** Of these, what is otherwise there than on the loop's branch: what was staged here since does not fit. */
  apart = touched,
): Promise<CleanupPlan['index']> {
  const { git } = store
  const index = join(store.folder, 'finish-index')
  if (await copyIndex(git, join(store.folder, 'user-index'), index))
    await takeFrom(git, index, now, [...new Set([...touched, ...(await lostStaging(store, index, now))])])
  else if (now === undefined) return 'none'
  else await git.run(['read-tree', now], { index })
  refuseSparse(store, await leftOutSince(git, index))
  await stageIn(git, index, await stagedSince(store, apart))
  await syncFiles([index])
  return 'prepared'
}

/** The user has gone back by themselves: in the index there, what they had staged, but for these files and for what they have staged since. */
async function stageAgain(
  store: Store,
  began: string | undefined,
  now: string | undefined,
  touched: readonly string[],
): Promise<CleanupPlan['index']> {
  const { git } = store
  const own = join(store.folder, 'user-index')
  if (!existsSync(own)) return 'as_is'
  const since = (await differing(git, realIndex(git), await orEmpty(git, now))) ?? []
  const skipped = [...touched, ...since.map(({ path }) => path), ...(await lostStaging(store, own, began))]
  const isSkipped = new Set(skipped)
  const had = (await differing(git, own, await orEmpty(git, began))) ?? []
  const again = had.filter(({ path }) => !isSkipped.has(path))
  const index = join(store.folder, 'finish-index')
  if (again.length === 0 || !(await copyIndex(git, realIndex(git), index))) return 'as_is'
  await stageIn(git, index, again)
  await syncFiles([index])
  return 'prepared'
}

/** With this index they would be deletions, and the work in them would not be there. */
function refuseSparse({ git, change }: Store, paths: readonly string[]): void {
  if (paths.length === 0) return
  throw conflict(
    'a sparse checkout, or skip-worktree, that came after the start leaves out files',
    paths,
    `The cleanup has touched nothing. Bring them back: \`${git.typed} sparse-checkout disable\`, then ralph finish ${change} --cleanup again. After that the checkout can be sparse again.`,
  )
}

/** On the loop's branch, after its last checkpoint, so by the user: but for these files. */
async function stagedSince({ git }: Store, apart: readonly string[]): Promise<StagedEntry[]> {
  const isApart = new Set(apart)
  const staged = (await differing(git, realIndex(git), 'HEAD')) ?? []
  const gone = await prunedVersions(git, staged)
  return staged.filter(({ path, blob }) => !isApart.has(path) && !gone.has(blob))
}

/** Staged versions that are no longer in the repository: an index with them could be committed by nobody. */
export async function lostStaging({ git }: Store, index: string, now: string | undefined): Promise<string[]> {
  const staged = (await differing(git, index, await orEmpty(git, now))) ?? []
  const lost = await prunedVersions(git, staged)
  // An empty version everybody can make again.
  if (lost.size > 0) lost.delete(await git.line(['hash-object', '-w', '--stdin'], { input: '' }))
  return staged.filter(({ blob }) => lost.has(blob)).map(({ path }) => path)
}

/** For `refuseTaken`. */
export function notYet(change: string): Parameters<typeof refuseTaken>[2] {
  return {
    code: 'finish_conflict',
    safe: 'The cleanup has touched nothing.',
    next: `\`ralph finish ${change} --cleanup\` again; or \`ralph finish ${change} --keep\``,
  }
}

/** Of a branch that is gone: the one that its log says it was renamed to. */
export async function newNameOf(git: Git, { ref }: Head, { all }: Refs): Promise<string | undefined> {
  if (ref === undefined || all[ref] !== undefined) return undefined
  for (const name of Object.keys(all).filter((each) => each.startsWith('refs/heads/')))
    if ((await reflog(git, name)).some(({ why }) => why === `Branch: renamed ${ref} to ${name}`)) return name
  return undefined
}

/** Not made by ralph: the user stands on another branch, and only they know whether that is the same one. */
function renamed(store: Store, origin: Head, ref: string | undefined): RalphError {
  return new RalphError(
    'finish_conflict',
    `the branch ${placeOf(origin)}, where the work came from, is gone (renamed or deleted)`,
    {
      hint: `The cleanup has touched nothing. ${makeAgain(
        store,
        origin,
        ref,
      )}, then \`ralph finish ${store.change} --cleanup\` again.`,
    },
  )
}

/** What to type where the branch that the work goes to is gone; `ref`: the one that the user stands on. */
function makeAgain(store: Store, origin: Head, ref: string | undefined): string {
  const { typed } = placeOfWork(store)
  const name = shellWord(originName(origin))
  const again = `\`${typed} switch -c ${name} ${(origin.commit ?? '').slice(0, 12)}\``
  if (ref === undefined || ref.startsWith('refs/heads/ralph/')) return `Make it again: ${again}`
  const now = shellWord(shortName(ref))
  return `If it is called ${now} now, give it its name back: \`${typed} branch -m ${now} ${name}\`; if not, make it again: ${again}`
}

function elsewhere(store: Store, origin: Head, ref = ''): RalphError {
  const finish = `\`ralph finish ${store.change} --cleanup\``
  const other = /^refs\/heads\/ralph\/(.+)$/.exec(ref)?.[1]
  const first =
    other === undefined
      ? `\`${goTo(originName(origin), placeOfWork(store).typed)}\``
      : `It is on ralph/${other}: when the loop of ${other} has ended, \`ralph finish ${other} --cleanup\``
  return new RalphError(
    'finish_conflict',
    `${store.home?.worktree ?? store.git.worktree} is not on ${placeOf(origin)}, where the work came from`,
    { hint: `The cleanup has touched nothing. ${first}, then ${finish} again.` },
  )
}
