// The completion choice: *cleanup* brings the work back to where the user stood, uncommitted; *keep* stays.
// Long because a cleanup is one operation: what it refuses, what it writes, and what completes it after a kill are read together.
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFiles } from '../files/whole.ts'
import { RalphError } from '../../core/error.ts'
import type { CleanupPlan, GitMemory, Origin } from '../../core/git-memory.ts'
import type { FinishChoice, FinishReport } from '../../ports.ts'
import { commitsBetween } from './adopted.ts'
import { shellWord } from '../process/shell-word.ts'
import { applyTrees, goTo, mergeTrees, refuseOverwrite } from './apply.ts'
import { planCarry } from './carry.ts'
import { carryInside, releaseSubmodules, toldInside } from './finish-submodules.ts'
import { named, shown, type Git } from './git.ts'
import { copyIndex, installIndex, realIndex, takeFrom } from './index-file.ts'
import { refuseHalfDone } from './operations.ts'
import { storedOrigin } from './origin.ts'
import { missingObjects, unpin } from './pins.ts'
import { remoteOf } from './remote.ts'
import { headRef } from './ref-files.ts'
import { moveRefs, readRef, readRefs, setHead, type Head, type Refs } from './refs.ts'
import { renameCommits } from './rename.ts'
import { lateTold, listed } from './reunite.ts'
import { commitSquash, placeOf, planSquash, type Squashed } from './squash.ts'
import { timeName, type Store } from './store.ts'
import { exempt, scanTree } from './scan.ts'
import { loadSnapshot, type Snapshot } from './snapshot.ts'
import { differing, keepStaged, stageIn, type StagedEntry } from './staged.ts'
import { holdStripped } from './stripped.ts'
import { changedPaths, emptyTree, isAncestor, treeChanges, treeOf } from './tree.ts'

export async function finishBranch(store: Store, choice: FinishChoice, said = ''): Promise<FinishReport> {
  const memory = store.memory()
  const { git } = store
  const stood = headRef(git)
  const refs = await readRefs(git)
  const branch = `ralph/${store.change}`
  const tip = refs.all[`refs/heads/${branch}`] ?? memory.checkpoint
  const { origin, initial } = memory.origin === undefined ? await forgotten(store, refs) : memory
  if (tip === undefined || origin === undefined || initial === undefined) {
    const message =
      memory.cleaned === undefined
        ? `nothing is left to finish for ${store.change}`
        : `the cleanup of ${store.change} is complete, nothing is left to finish; its commits are archived as ${store.refs}/archive/${memory.cleaned}`
    return { message, userPaths: [], loopPaths: [] }
  }
  // After an earlier cleanup this run began with what that one carried: none of it is the user's.
  const { carried } = memory
  const began = carried === undefined ? origin.commit : `${carried.commit}^2`
  const base = began === '' ? await emptyTree(git) : began
  const [loopPaths, startPaths] = await Promise.all([
    changedPaths(git, initial, tip),
    changedPaths(git, base, initial),
  ])
  const touched = new Set(loopPaths)
  const report = {
    userPaths: startPaths.filter((path) => !touched.has(path)).map(shown),
    loopPaths: loopPaths.map(shown),
  }
  if (choice === 'cleanup' || choice === 'squash' || choice === 'rename')
    await refuseHalfDone(
      placeOf(store),
      'finish_conflict',
      `ralph finish ${store.change} ${choice === 'rename' ? '--keep --rename' : `--${choice}`} again`,
    )
  const snapshot = await loadSnapshot(store)
  const inside = await toldInside(store, snapshot)
  if (choice !== 'cleanup' && choice !== 'squash') {
    const { checkpoint = tip } = memory
    const renamed =
      choice === 'rename'
        ? await renameCommits(store, { origin: origin.commit, initial, tip, checkpoint })
        : undefined
    const where =
      store.home !== undefined
        ? `in the work tree ${git.worktree}`
        : refs.head.ref === `refs/heads/${branch}`
          ? 'you are on it'
          : `\`git switch ${branch}\` takes you there`
    const message = [
      ...(renamed === undefined ? [] : renamedWords(store, renamed)),
      `the work is on ${branch} (${where})`,
      `\`ralph finish ${store.change} --cleanup\` brings it back to ${nameOf(origin)}`,
      ...inside,
    ].join('; ')
    const remote = await remoteOf(git)
    return { message, ...report, ...(remote !== undefined && { remote }) }
  }
  const brings = async (): Promise<{ plan: CleanupPlan; left: readonly string[]; isMerged: boolean }> =>
    store.home === undefined
      ? { ...(await planHere(store, origin, refs, tip, loopPaths)), left: [] }
      : await planHome(store, origin, { initial, tip, earlier: carried })
  const {
    plan: cleanup,
    left,
    isMerged,
  } = await brings().catch((error: unknown) => {
    throw choice === 'squash' ? squashed(error) : error
  })
  const onto = await headOf(store, cleanup)
  const squash =
    choice === 'squash' && !isMerged
      ? await planSquash(store, {
          onto,
          base: await squashBase(git, carried === undefined ? initial : began, onto, tip),
          tip,
          message: said,
          began: base,
          startPaths,
        })
      : undefined
  const plan = squash === undefined ? cleanup : { ...cleanup, squash }
  const userIndex = join(store.folder, 'user-index')
  const lost =
    store.home === undefined && existsSync(userIndex)
      ? await lostStaging(store, userIndex, origin.commit)
      : []
  const stays = store.home === undefined ? [] : await uncommittedIn(store)
  const carriedInside = await carryInside(
    store,
    loopPaths.filter((path) => snapshot?.gitlinks.includes(path)),
  )
  const { checkpoint } = memory
  // A person has set the branch back: what they took off it stays off, but not in silence.
  const isOff = checkpoint !== undefined && !(await isAncestor(git, checkpoint, tip))
  const off = `${store.refs}/archive/${plan.time}-saved`
  if (isOff) await moveRefs(git, 'archive', [`update ${off} ${checkpoint}`])
  const stripped = plan.to === '' || snapshot === undefined ? [] : await strippedBy(store, snapshot, plan)
  const { made, told } = await store.operate({ op: 'finish', ...plan }, () =>
    perform(store, plan, plan.head === undefined ? undefined : stood),
  )
  const hooked =
    squash !== undefined && made !== undefined && 'commit' in made
      ? await changedPaths(git, squash.tree, made.commit)
      : []
  const message = [
    isMerged
      ? `the work was merged into ${nameOf(origin)} already: nothing was left to bring`
      : made !== undefined && 'commit' in made
        ? `the work is one commit on ${nameOf(origin)}, ${made.commit.slice(0, 12)}${await besidesWork(git, { initial, tip, startPaths, touched, plan: squash?.plan ?? [], hooked })}`
        : choice === 'squash' && made === undefined
          ? `nothing of the loop's is left to commit on ${nameOf(origin)}`
          : loopPaths.length === 0 && carried === undefined
            ? `the loop has saved nothing, so nothing is brought to ${nameOf(origin)}${startPaths.length === 0 ? '' : ' but your own uncommitted files'}`
            : `${carried !== undefined ? 'the rest' : stays.length > 0 ? 'what the loop has saved' : 'everything'} is on ${nameOf(origin)}, uncommitted`,
    ...(stays.length === 0
      ? []
      : [
          `not brought, since it is in no commit of the loop's: ${listed(stays)}; it stays in ${git.worktree}`,
        ]),
    `the commits of ${branch} are archived as ${store.refs}/archive/${plan.time}`,
    ...(isOff
      ? [`${branch} was set back, so what the loop had saved there is not brought; it is kept as ${off}`]
      : []),
    ...(plan.head !== undefined &&
    plan.head.ref !== '' &&
    plan.head.commit !== '' &&
    refs.all[plan.head.ref] === undefined
      ? [
          `the branch ${nameOf(origin)} was gone (renamed or deleted), and is made again at ${plan.head.commit.slice(0, 12)}`,
        ]
      : []),
    ...(isMerged ? [] : await theirsAmong(git, memory.adopted)),
    ...(left.length === 0 ? [] : [`as you left it since the cleanup before: ${left.map(named).join(', ')}`]),
    ...(lost.length === 0
      ? []
      : [
          `what you had staged of ${lost.map(named).join(', ')} is lost: it was pruned from the repository while the loop ran`,
        ]),
    ...stripped.map(
      ({ path, id }) =>
        `git's filters left a part of ${named(path)} out of the merge; as it was (kept under ${store.refs}/bytes): git cat-file blob ${id}`,
    ),
    ...told,
    ...inside,
    ...carriedInside,
  ].join('; ')
  return {
    message,
    ...report,
    ...(stays.length > 0 && { stays: stays.map(shown) }),
    ...(made !== undefined &&
      ('commit' in made ? { commit: made.commit } : { refused: { why: made.refused, hint: made.hint } })),
  }
}

/** What of the user's own is in the commit of a squash, and what is not. */
async function besidesWork(
  git: Git,
  at: {
    readonly initial: string
    readonly tip: string
    readonly startPaths: readonly string[]
    readonly touched: ReadonlySet<string>
    readonly plan: readonly string[]
    /** What is otherwise than it was handed to `git commit`. */
    readonly hooked: readonly string[]
  },
): Promise<string> {
  const { initial, tip, startPaths, touched, plan, hooked } = at
  // Named so by the checkpoint that takes in what was changed between two attempts.
  const asked = ['log', '--first-parent', '--name-only', '-z', '--format=', '--grep=^changes before ']
  const between = [...new Set(await git.list([...asked, `${initial}..${tip}`]))]
  const isLeft = startPaths.some(
    (path) => !touched.has(path) && !plan.includes(path) && !hooked.includes(path),
  )
  return [
    ...(plan.length === 0
      ? []
      : [`; also in it, since it is the plan that you had not committed: ${listed(plan)}`]),
    ...(between.length === 0
      ? []
      : [`; also in it, since you changed it between two attempts: ${listed(between)}`]),
    ...(hooked.length === 0 ? [] : [`; also in it, added or changed by a hook of yours: ${listed(hooked)}`]),
    ...(isLeft
      ? [`; what ${plan.length === 0 ? '' : 'else '}you had not committed before the loop still is not`]
      : []),
  ].join('')
}

function renamedWords({ refs }: Store, { renamed, time }: { renamed: number; time: string }): string[] {
  if (renamed === 0)
    return ['no commit was renamed: none is named after a checkpoint whose story has a title']
  const what =
    renamed === 1
      ? '1 commit has the name of its story'
      : `${renamed} commits have the names of their stories`
  return [`${what} now; as they were, they are archived as ${refs}/archive/${time}`]
}

/** Where the commit goes: the branch that the user came from, or stands on already. */
async function headOf({ git, home }: Store, { head }: CleanupPlan): Promise<string> {
  if (home !== undefined) return (await readRefs(git.at(home))).head.commit
  return head === undefined ? (await readRefs(git)).head.commit : head.commit
}

/** What the branch has of the work already, by a merge of the user's, is not committed again. */
async function squashBase(git: Git, began: string, onto: string, tip: string): Promise<string> {
  const common = onto === '' ? '' : await commonCommit(git, onto, tip)
  const since = await git.line(['rev-parse', '--verify', `${began}^{commit}`])
  return common !== '' && (await isAncestor(git, since, common)) ? common : since
}

/** A cleanup was refused, and it was asked for by another name. */
function squashed(error: unknown): unknown {
  if (!(error instanceof RalphError) || error.code !== 'finish_conflict') return error
  const { code, message, exitCode, cause } = error
  const hint = error.hint.replace('The cleanup has touched nothing.', 'Nothing was touched.')
  return new RalphError(code, message, {
    hint: hint.replaceAll('--cleanup', '--squash'),
    exitCode,
    cause,
  })
}

/** Files that the cleanup writes anew, with bytes that are in no tree. */
async function strippedBy(
  store: Store,
  snapshot: Snapshot,
  { from, to }: CleanupPlan,
): Promise<{ path: string; id: string }[]> {
  const git = store.home === undefined ? store.git : store.git.at(store.home)
  const index = join(store.folder, 'apply-index')
  await git.run(['read-tree', from], { index })
  const paths = (await treeChanges(git, from, to)).filter(({ from: old }) => old !== undefined)
  return await holdStripped(
    { ...store, git },
    snapshot,
    from,
    index,
    paths.map(({ path }) => path),
  )
}

/** In the loop's own tree: the user's, for the loop saves what is its own. */
async function uncommittedIn({ git, protectedPaths }: Store): Promise<string[]> {
  const { changed, deleted, untracked, staged } = await scanTree(git)
  const isExempt = exempt(protectedPaths, [])
  return [...new Set([...changed, ...deleted, ...untracked, ...staged])].filter((path) => !isExempt(path))
}

/** Commits that somebody else made on the branch between two attempts: after a cleanup only the archive has them as such. */
async function theirsAmong(git: Git, adopted: GitMemory['adopted']): Promise<string[]> {
  const commits = (await Promise.all(adopted.map((move) => commitsBetween(git, move)))).flat()
  return commits.length === 0 ? [] : [`among them, made by hand: ${commits.join(', ')}`]
}

/** `--fresh` with nothing left to do archives the journal of a kept run and writes no new beginning: the branch is still there. */
async function forgotten(store: Store, refs: Refs): Promise<Pick<GitMemory, 'origin' | 'initial'>> {
  const branch = `refs/heads/ralph/${store.change}`
  const origin = refs.head.ref === branch ? await storedOrigin(store) : undefined
  if (origin === undefined) return {}
  const since = origin.commit === '' ? [] : [`^${origin.commit}`]
  const made = await store.git.line(['rev-list', '--first-parent', '--reverse', branch, ...since])
  return { origin, initial: made.split('\n')[0] || refs.head.commit }
}

export async function redoFinish(store: Store, plan: CleanupPlan): Promise<string> {
  const { made, told } = await perform(store, plan)
  const what =
    made === undefined
      ? 'the cleanup was completed'
      : 'commit' in made
        ? `the work is one commit now, ${made.commit.slice(0, 12)}`
        : `the work is on your branch, but could not be committed: ${made.refused}. ${made.hint}`
  return [what, ...told].join('; ')
}

/** Each step may have been done already, unless it is told where HEAD `stood`. `told`: what there is to say of the user's own. */
async function perform(
  store: Store,
  plan: CleanupPlan,
  stood?: string,
): Promise<{ made: Squashed | undefined; told: readonly string[] }> {
  const { git, home } = store
  // A switch in this very moment takes the work out of the tree that it is about to be brought with.
  const stays = (): boolean => stood === undefined || headRef(git) === stood
  await moveRefs(git, 'archive', [
    `update ${store.refs}/archive/${plan.time} ${plan.tip}`,
    ...(plan.carried === undefined ? [] : [`update ${store.refs}/carried ${plan.carried.commit}`]),
  ])
  const prepared = plan.index === 'prepared' ? join(store.folder, 'finish-index') : undefined
  const staged = async (): Promise<string[]> =>
    plan.index === 'as_is'
      ? []
      : await keepStaged(store, { next: prepared, snapshot: await loadSnapshot(store) })
  const told = await staged()
  const isStaged = told.length > 0
  if (!stays()) {
    await store.step('finish', { did: 'undone' })
    await store.note({ type: 'git.ended', op: 'finish' })
    throw switched(store, 'Nothing was touched.')
  }
  if (plan.to !== '') {
    const at = home === undefined ? git : git.at(home)
    const late = await applyTrees(at, store.folder, plan.from, plan.to, store.protectedPaths)
    told.push(...lateTold(late))
  }
  let ahead = ''
  if (plan.head !== undefined) {
    const refs = await readRefs(git)
    ahead = await madeSince(git, plan.head, refs)
    const isGone = plan.head.ref !== '' && plan.head.commit !== '' && refs.all[plan.head.ref] === undefined
    if (isGone) await moveRefs(git, 'cleanup', [`create ${plan.head.ref} ${plan.head.commit}`])
    // Since the first look.
    if (!isStaged) told.push(...(await staged()))
    if (!stays()) throw switched(store, 'The cleanup is half done; all of the work is on the branch.')
    if (ahead === '' || plan.head.ref !== '') await setHead(git, plan.head, 'cleanup')
  }
  if (prepared !== undefined) await installIndex(git, prepared)
  if (prepared !== undefined && plan.head !== undefined && ahead !== '')
    await takeFrom(git, realIndex(git), ahead, await changedPaths(git, plan.head.commit, ahead))
  if (plan.index === 'none') await installIndex(git, undefined)
  const made = plan.squash === undefined ? undefined : await commitSquash(store, plan.squash)
  told.push(...(await deleteBranch(store, plan)))
  await unpin(store)
  await releaseSubmodules(store, await loadSnapshot(store), plan.time)
  for (const file of ['snapshot.json', 'origin.json']) await rm(join(store.folder, file), { force: true })
  return { made, told }
}

/** What was committed there, or on top of it in the loop's own tree, since the plan was made is in no archive yet. */
async function deleteBranch(store: Store, { tip, time }: CleanupPlan): Promise<string[]> {
  const { git, home, change } = store
  const branch = `refs/heads/ralph/${change}`
  const later = `${store.refs}/archive/${time}-later`
  const [now, { head }] = await Promise.all([readRef(git, branch), readRefs(git)])
  const own = home === undefined ? '' : head.commit
  const news: string[] = []
  for (const hash of new Set([now, own]))
    if (hash !== '' && !(await isAncestor(git, hash, tip))) news.push(hash)
  await moveRefs(git, 'cleanup', [
    ...news.map((hash, at) => `update ${later}${at === 0 ? '' : `-${at}`} ${hash}`),
    // Whoever commits in this very moment is not overruled: it fails, and is done again.
    ...(now === '' ? [] : [`delete ${branch} ${now}`]),
    `delete ${store.refs}/checkpoint`,
  ])
  return await Promise.all(
    news.map(async (hash, at) => {
      const subject = named(await git.line(['log', '-1', '--format=%s', hash]))
      const range = `${tip.slice(0, 12)}..${hash.slice(0, 12)}`
      return `committed on ralph/${change} meanwhile, and not brought: ${hash.slice(0, 12)} (${subject}); it is kept as ${later}${at === 0 ? '' : `-${at}`}: git cherry-pick ${range}`
    }),
  )
}

function switched({ git, change }: Store, safe: string): RalphError {
  return new RalphError('finish_conflict', `Somebody switched ${git.worktree} to another branch.`, {
    hint: `${safe} git switch ralph/${change}, then ralph finish ${change} --cleanup again.`,
    exitCode: 1,
  })
}

/** Where HEAD is now, if a cleanup that was cut off had moved it, and the user has committed there since; else empty. */
async function madeSince(git: Git, planned: Head, { head }: Refs): Promise<string> {
  const isThere = planned.ref === head.ref && planned.commit !== '' && head.commit !== planned.commit
  return isThere && (await isAncestor(git, planned.commit, head.commit)) ? head.commit : ''
}

async function planHere(
  store: Store,
  origin: Origin,
  refs: Refs,
  tip: string,
  touched: readonly string[],
): Promise<{ plan: CleanupPlan; isMerged: boolean }> {
  const { git } = store
  const isOnBranch = refs.head.ref === `refs/heads/ralph/${store.change}`
  const now = origin.kind === 'detached' ? origin.commit : (refs.all[origin.ref] ?? origin.commit)
  const isAtOrigin = origin.kind === 'detached' ? refs.head.ref === '' : refs.head.ref === origin.ref
  if (!isOnBranch && !isAtOrigin) throw elsewhere(store, origin)
  if (isOnBranch && origin.ref !== '') await refuseTaken(store, origin)
  const plan = { tip, time: timeName(store), head: { ref: origin.ref, commit: now } }
  if (isOnBranch && now === origin.commit) {
    const index = await giveBackIndex(store, now, touched)
    return { plan: { ...plan, from: '', to: '', index }, isMerged: false }
  }
  const there = isAtOrigin ? refs.head.commit : now
  const isAllIn = there !== '' && (await isAncestor(git, tip, there))
  // What was merged by hand, in part or whole, is not brought again.
  const common = there === '' ? '' : await commonCommit(git, there, tip)
  const isSince = common !== '' && (origin.commit === '' || (await isAncestor(git, origin.commit, common)))
  const began = isSince ? common : origin.commit
  const base = began === '' ? await emptyTree(git) : await treeOf(git, began)
  const ours = await treeOf(git, there || base)
  const theirs = await treeOf(git, tip)
  const original = origin.kind === 'detached' ? there : nameOf(origin)
  const bringing = { change: store.change, original }
  const to = await mergeTrees(git, base, ours, theirs, bringing)
  // Squashed or picked, it is there as well.
  const isMerged = isAllIn || (to === ours && theirs !== base)
  const from = isOnBranch ? theirs : ours
  await refuseOverwrite(git, from, to, () => false, bringing)
  if (!isOnBranch) return { plan: { tip, time: plan.time, from, to, index: 'as_is' }, isMerged }
  const moved = await changedPaths(git, base, now)
  const index = await giveBackIndex(store, now, [...new Set([...touched, ...moved])])
  return { plan: { ...plan, from, to, index }, isMerged }
}

async function commonCommit(git: Git, one: string, other: string): Promise<string> {
  return (await git.run(['merge-base', one, other], { accept: [1] })).out.trim()
}

/** The user's own index again, except for what the loop or the branch's move has touched: that is as in `now`, unstaged. */
async function giveBackIndex(
  store: Store,
  now: string,
  touched: readonly string[],
): Promise<CleanupPlan['index']> {
  const { git } = store
  const index = join(store.folder, 'finish-index')
  if (await copyIndex(join(store.folder, 'user-index'), index))
    await takeFrom(git, index, now, [...new Set([...touched, ...(await lostStaging(store, index, now))])])
  else if (now === '') return 'none'
  else await git.run(['read-tree', now], { index })
  await stageIn(git, index, await stagedSince(store, touched))
  await syncFiles([index])
  return 'prepared'
}

/** On the loop's branch, after its last checkpoint, so by the user: of files that the loop has not touched. */
async function stagedSince({ git }: Store, touched: readonly string[]): Promise<StagedEntry[]> {
  const isTouched = new Set(touched)
  const staged = (await differing(git, realIndex(git), 'HEAD')) ?? []
  const gone = await missingObjects(
    git,
    staged.filter(({ blob }) => !/^0+$/.test(blob)).map(({ blob }) => blob),
  )
  return staged.filter(({ path, blob }) => !isTouched.has(path) && !gone.has(blob))
}

/** Staged versions that are no longer in the repository: an index with them could be committed by nobody. */
async function lostStaging({ git }: Store, index: string, now: string): Promise<string[]> {
  const against = now === '' ? await emptyTree(git) : now
  const fields = await git.list(['diff-index', '--cached', '--raw', '--no-renames', '-z', against], { index })
  const staged = fields.flatMap((field, at) =>
    at % 2 === 1 ? [[field, fields[at - 1]?.split(' ')[3] ?? ''] as const] : [],
  )
  const lost = await missingObjects(
    git,
    staged.filter(([, blob]) => !/^0+$/.test(blob)).map(([, blob]) => blob),
  )
  // What `git add -N` marks: an empty version, which everybody can make again.
  if (lost.size > 0) lost.delete(await git.line(['hash-object', '-w', '--stdin'], { input: '' }))
  return staged.filter(([, blob]) => lost.has(blob)).map(([path]) => path)
}

/** Git itself allows a branch in one work tree only. */
async function refuseTaken({ git, change }: Store, origin: Origin): Promise<void> {
  const trees = (await git.line(['worktree', 'list', '--porcelain'])).split('\n\n')
  const taken = trees.find((tree) => tree.split('\n').includes(`branch ${origin.ref}`))
  if (taken === undefined) return
  const folder = shown(/^worktree (.*)$/m.exec(taken)?.[1] ?? '')
  throw new RalphError(
    'finish_conflict',
    `${nameOf(origin)} is checked out in another work tree: ${folder}`,
    {
      hint: `The cleanup has touched nothing. Give the branch free there (\`git -C ${shellWord(folder)} switch --detach\`), then \`ralph finish ${change} --cleanup\` again; or \`ralph finish ${change} --keep\`.`,
      exitCode: 1,
    },
  )
}

/** The loop ran in a work tree of its own: its changes are carried into the user's checkout. */
async function planHome(
  store: Store,
  origin: Origin,
  from: Parameters<typeof planCarry>[2],
): Promise<{ plan: CleanupPlan; left: readonly string[]; isMerged: boolean }> {
  const { git, home } = store
  if (home === undefined) throw elsewhere(store, origin)
  const { head } = await readRefs(git.at(home))
  if (head.ref !== origin.ref || head.commit === '') throw elsewhere(store, origin, head.ref)
  const { left, commit, isMerged, ...trees } = await planCarry(store, home, from)
  const { tip } = from
  const plan: CleanupPlan = {
    tip,
    time: timeName(store),
    ...trees,
    head: { ref: '', commit: tip },
    index: 'as_is',
  }
  return { plan: { ...plan, carried: { commit, origin } }, left, isMerged }
}

function elsewhere(store: Store, origin: Origin, ref = ''): RalphError {
  const finish = `\`ralph finish ${store.change} --cleanup\``
  const other = /^refs\/heads\/ralph\/(.+)$/.exec(ref)?.[1]
  const first =
    other === undefined
      ? `\`${goTo(origin.kind === 'detached' ? origin.commit : nameOf(origin))}\``
      : `It is on ralph/${other}: when the loop of ${other} has ended, \`ralph finish ${other} --cleanup\``
  return new RalphError(
    'finish_conflict',
    `${store.home?.worktree ?? store.git.worktree} is not on ${nameOf(origin)}, where the work came from`,
    { hint: `The cleanup has touched nothing. ${first}, then ${finish} again.`, exitCode: 1 },
  )
}

function nameOf(origin: Origin): string {
  return origin.kind === 'detached'
    ? `the commit ${origin.commit.slice(0, 12)}`
    : origin.ref.replace('refs/heads/', '')
}
