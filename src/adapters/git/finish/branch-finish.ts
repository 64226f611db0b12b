// The completion choice: *cleanup* brings the work back to where the user stood, uncommitted; *keep* stays.
// Long because each step of a cleanup stands beside what redoes it after a kill.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CleanupPlan, Head } from '../../../core/git-facts.ts'
import type { GitMemory } from '../../../core/git-memory.ts'
import type { FinishChoice, FinishReport } from '../../../ports.ts'
import { isGone, performFinish } from './finish-perform.ts'
import { lostStaging, newNameOf, notYet, ontoOf, planHere, planHome, squashBase } from './finish-plan.ts'
import { carryInside, toldInside } from '../submodules/finish-submodules.ts'
import { asSquash, besidesWork, leftOut, madeByHand, renamedWords, theirsAmong } from './finish-words.ts'
import { goneAtEnd } from '../attempt/lost-files.ts'
import { named, shown, type Git } from '../git.ts'
import { refuseHalfDone } from '../start/operations.ts'
import { keepNotGivenBack } from '../attempt/staged.ts'
import { realIndex } from '../formats/index-file.ts'
import { ownPart, type OwnPart } from '../start/own-part.ts'
import { storedOrigin } from '../start/starting-point.ts'
import { headRef } from '../formats/ref-files.ts'
import { firstNames } from '../../../core/first-names.ts'
import { isOfPlan } from '../tree/plan-path.ts'
import { moveRefs, placeOf as nameOf, readRefs, type Refs } from '../refs/refs.ts'
import { refuseNewAlias } from '../start/preflight.ts'
import { remoteOf } from '../formats/remote.ts'
import { renameCommits } from './rename.ts'
import { onlyThere } from './only-in-worktree.ts'
import { safeToType } from '../landing/safe-to-type.ts'
import { listed } from '../attempt/reunite.ts'
import { tryMerge } from '../landing/apply.ts'
import { loadSnapshot, type Snapshot } from '../revert/snapshot.ts'
import { placeOf, planSquash } from './squash.ts'
import type { Store } from '../store.ts'
import { holdStripped } from '../tree/filtered-out.ts'
import { refuseTaken } from '../refs/branch-in-use.ts'
import { changedPaths, isAncestor, orEmpty, treeChanges, treeOf } from '../tree/tree.ts'

export async function finishBranch(store: Store, choice: FinishChoice, said = ''): Promise<FinishReport> {
  const memory = store.memory()
  const { git, change } = store
  const stood = headRef(git)
  const refs = await readRefs(git)
  const tip = refs.all[`refs/heads/ralph/${change}`] ?? memory.checkpoint
  const { origin, initial } = memory.origin === undefined ? await forgotten(store, refs) : memory
  if (tip === undefined || origin === undefined || initial === undefined) {
    const message =
      memory.cleaned === undefined
        ? `nothing is left to finish for ${change}`
        : `the cleanup of ${change} is complete, nothing is left to finish; its commits are kept as ${store.refs}/archive/${memory.cleaned}`
    return { message, userPaths: [], loopPaths: [] }
  }
  // After an earlier cleanup this run began with what that one carried: none of it is the user's.
  const began = memory.carried === undefined ? origin.commit : `${memory.carried.commit}^2`
  const base = await orEmpty(git, began)
  const part = await ownPart(store, initial)
  const own = part?.tree ?? initial
  const before = part === undefined ? base : await orEmpty(git, origin.commit)
  const [loopPaths, workPaths, startPaths] = await Promise.all([
    changedPaths(git, initial, tip),
    changedPaths(git, own, tip),
    changedPaths(git, before, own),
  ])
  const touched = new Set(workPaths)
  if (choice === 'cleanup' || choice === 'squash' || choice === 'rename')
    await refuseHalfDone(
      placeOf(store),
      'finish_conflict',
      `ralph finish ${change} ${choice === 'rename' ? '--keep --rename' : `--${choice}`} again`,
    )
  if (choice === 'cleanup' || choice === 'squash')
    await refuseNewAlias(git, origin, {
      code: 'finish_conflict',
      again: `ralph finish ${change} --${choice}`,
    })
  const snapshot = await loadSnapshot(store)
  const inside = await toldInside(store, snapshot)
  const gone = await goneAtEnd(store, base, tip)
  const paths = { loopPaths, workPaths, startPaths, touched }
  const work = { origin, initial, tip, refs, stood, base, before, part, ...paths, snapshot }
  const done =
    choice === 'cleanup' || choice === 'squash'
      ? await cleanUp(store, work, choice === 'squash' ? { message: said } : undefined)
      : await stay(store, work, choice)
  return {
    ...done.report,
    ...(gone.length > 0 && { gone }),
    message: [...done.said, ...inside, ...(done.last ?? [])].join('; '),
    userPaths: startPaths.filter((path) => !touched.has(path)).map(shown),
    loopPaths: workPaths.map(shown),
  }
}

interface Work {
  readonly origin: Head
  readonly initial: string
  readonly tip: string
  readonly refs: Refs
  /** What HEAD stood for when all this was read. */
  readonly stood: string | undefined
  /** What the run began with. */
  readonly base: string
  /** What the user's own uncommitted files were uncommitted upon. */
  readonly before: string
  readonly part: OwnPart | undefined
  /** What the loop changed; the same with what loops before it did that is in no commit of the user's; what of the user's was uncommitted. */
  readonly loopPaths: readonly string[]
  readonly workPaths: readonly string[]
  readonly startPaths: readonly string[]
  readonly touched: ReadonlySet<string>
  readonly snapshot: Snapshot | undefined
}

interface Done {
  readonly said: readonly string[]
  /** After what there is to say of submodules. */
  readonly last?: readonly string[]
  readonly report?: Pick<FinishReport, 'remote' | 'stays' | 'commit' | 'leftOut' | 'moved' | 'refused'>
}

async function stay(store: Store, work: Work, choice: FinishChoice): Promise<Done> {
  const { git, change, home } = store
  const { origin, initial, tip, refs, startPaths } = work
  const { checkpoint = tip } = store.memory()
  const branch = `ralph/${change}`
  const renamed =
    choice === 'rename'
      ? await renameCommits(store, { origin: origin.commit, initial, tip, checkpoint })
      : undefined
  const where =
    home !== undefined
      ? `in the work tree ${git.worktree}`
      : refs.head.ref === `refs/heads/${branch}`
        ? 'you are on it'
        : await safeToType(git, `\`${git.typed} switch ${branch}\` takes you there`)
  const remote = await remoteOf(git)
  const isMadeAgain = home === undefined && (await newNameOf(git, origin, refs)) === undefined
  return {
    said: [
      ...(renamed === undefined ? [] : renamedWords(store, renamed)),
      `the work is on ${branch} (${where})`,
      ...(isGone(origin, refs)
        ? [
            `the branch ${nameOf(origin)} is gone (renamed or deleted), and a cleanup ${isMadeAgain ? 'makes it again' : 'needs it'}`,
          ]
        : []),
      ...movedWords(origin, refs),
      ...(choice === 'later' || origin.commit === undefined ? [] : ownWords(change, startPaths)),
      `\`ralph finish ${change} --cleanup\` brings it back to ${nameOf(origin)}`,
    ],
    ...(remote !== undefined && { report: { remote } }),
  }
}

/** Who pushes the branch publishes what they had not even committed. */
function ownWords(change: string, startPaths: readonly string[]): string[] {
  const own = startPaths.filter((path) => !isOfPlan(change, path))
  if (own.length === 0) return []
  return [
    `its first commit holds files that you had not committed, and a push publishes them: ${firstNames(own.map(named), 3)}`,
    `\`ralph finish ${change} --squash\` leaves them out`,
  ]
}

/** By the user, a fetch, `ralph queue pull`, or an agent that hid from ralph: whoever reads it knows. */
function movedWords({ ref, commit }: Head, { all }: Refs): string[] {
  const now = ref === undefined ? undefined : all[ref]
  if (ref === undefined || now === undefined || now === commit) return []
  const from = commit === undefined ? '' : ` (${commit.slice(0, 12)} → ${now.slice(0, 12)})`
  return [`${nameOf({ ref })} has moved since the loop began${from}`]
}

async function cleanUp(store: Store, work: Work, squashing: { message: string } | undefined): Promise<Done> {
  const { git, home } = store
  const { origin, initial, tip, refs, base, before, part, snapshot } = work
  const { loopPaths, workPaths, startPaths, touched } = work
  const { carried, checkpoint, adopted } = store.memory()
  const branch = `ralph/${store.change}`
  refuseTaken(git, `refs/heads/${branch}`, notYet(store.change))
  const brings = async (): Promise<{
    plan: CleanupPlan
    left: readonly string[]
    isMerged: boolean
    isPart?: boolean
  }> =>
    home === undefined
      ? { ...(await planHere(store, origin, refs, tip, loopPaths)), left: [] }
      : await planHome(store, origin, { initial, tip, earlier: carried })
  const found = brings().catch((error: unknown) => {
    throw squashing === undefined ? error : asSquash(error)
  })
  const { plan: cleanup, left, isMerged, isPart } = await found
  const onto = await ontoOf(store, cleanup)
  const squash =
    squashing === undefined || isMerged
      ? undefined
      : await planSquash(store, {
          onto,
          base: await squashBase(git, {
            began: carried === undefined || part !== undefined ? initial : base,
            own: part?.tree,
            onto,
            tip,
          }),
          tip,
          message: squashing.message,
          began: before,
          earlier: part?.before,
          startPaths,
        })
  const plan = squash === undefined ? cleanup : { ...cleanup, squash }
  const userIndex = join(store.folder, 'user-index')
  const isStagedHere = home === undefined && existsSync(userIndex)
  const lost = isStagedHere ? await lostStaging(store, userIndex, origin.commit) : []
  const next = plan.index === 'prepared' ? join(store.folder, 'finish-index') : realIndex(git)
  const began = await orEmpty(git, origin.commit)
  const notStaged = isStagedHere
    ? await keepNotGivenBack(store, { own: userIndex, next, began, initial })
    : []
  const stays = home === undefined ? [] : await onlyThere(git, home.worktree, store.protectedPaths)
  const carriedInside = await carryInside(
    store,
    loopPaths.filter((path) => snapshot?.gitlinks.includes(path)),
  )
  // A person has set the branch back: what they took off it stays off, but not in silence.
  const isRewritten = checkpoint !== undefined && !(await isAncestor(git, checkpoint, tip))
  const off = `${store.refs}/archive/${plan.time}-saved`
  if (isRewritten) await moveRefs(git, 'archive', [`update ${off} ${checkpoint}`])
  const isOff = isRewritten && !(await holdsWork(git, { initial, tip, checkpoint }))
  const stripped =
    plan.trees === undefined || snapshot === undefined ? [] : await strippedBy(store, snapshot, plan.trees)
  const { made, told, late } = await store.operate({ op: 'finish', ...plan }, () =>
    performFinish(store, plan, plan.head === undefined ? undefined : { ref: work.stood }),
  )
  const commit = made !== undefined && 'commit' in made ? made.commit : undefined
  const hooked =
    squash !== undefined && commit !== undefined ? await changedPaths(git, squash.tree, commit) : []
  const moved = isMerged ? [] : movedWords(origin, refs)
  const said = [
    isMerged
      ? `the work was merged into ${nameOf(origin)} already: nothing was left to do`
      : commit !== undefined
        ? `the work is one commit on ${await committedOn(placeOf(store), origin, commit)}, ${commit.slice(0, 12)}${await besidesWork(git, { initial, tip, startPaths, touched, edited: part?.edited ?? [], plan: squash?.plan ?? [], hooked })}`
        : squashing !== undefined && made === undefined
          ? tip === initial
            ? `the loop has saved nothing, so there is nothing to commit on ${nameOf(origin)}`
            : `nothing of the loop's is left to commit on ${nameOf(origin)}`
          : isPart
            ? `${nameOf(origin)} has a part of this in commits already; the rest is there, uncommitted`
            : workPaths.length === 0 && carried === undefined && !isOff
              ? `the loop has saved nothing, so nothing is brought to ${nameOf(origin)}${startPaths.length === 0 ? '' : ' but your own uncommitted files'}`
              : `${carried !== undefined ? 'the rest' : isOff ? `what is left on ${branch}` : stays.length + late.length > 0 ? 'what the loop has saved' : 'everything'} is on ${nameOf(origin)}, uncommitted${late.length === 0 ? '' : `, but for ${listed(late)}`}`,
    ...(stays.length === 0
      ? []
      : [
          `not brought, since it is in no commit of the loop's: ${listed(stays)}; it stays in ${git.worktree}`,
        ]),
    `the branch ${branch} is deleted, its commits are kept as ${store.refs}/archive/${plan.time}`,
    ...(isOff
      ? [`${branch} was set back, so what the loop had saved there is not brought; it is kept as ${off}`]
      : []),
    ...(plan.head !== undefined && isGone(plan.head, refs)
      ? [
          `the branch ${nameOf(origin)} was gone (renamed or deleted), and is made again at ${(plan.head.commit ?? '').slice(0, 12)}`,
        ]
      : []),
    ...moved,
    ...(isMerged
      ? []
      : [...(await theirsAmong(git, await madeByHand(git, { origin: origin.commit, initial, adopted })))]),
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
    ...notStaged,
    ...told,
  ]
  return {
    said,
    last: carriedInside,
    report: {
      ...(stays.length > 0 && { stays: stays.map(named) }),
      ...(commit !== undefined && { commit, leftOut: await leftOut(store, { commit, tip, startPaths }) }),
      ...(moved.length > 0 && { moved: nameOf(origin) }),
      ...(made !== undefined && 'refused' in made && { refused: { why: made.refused, hint: made.hint } }),
    },
  }
}

/** A hook of the user's may have switched to another branch, or renamed this one. */
async function committedOn(git: Git, origin: Head, commit: string): Promise<string> {
  const { all, head } = await readRefs(git)
  const has = async (tip: string | undefined): Promise<boolean> =>
    tip !== undefined && (await isAncestor(git, commit, tip))
  if (origin.ref === undefined) return nameOf(origin)
  if (await has(all[origin.ref]))
    return `${nameOf(origin)}${head.ref === origin.ref ? '' : ` (a hook of yours has switched to ${nameOf(head)})`}`
  const there = head.ref !== undefined && (await has(head.commit)) ? nameOf(head) : 'no branch'
  return `${there} (not on ${nameOf(origin)}: a hook of yours left it)`
}

/** Files that the cleanup writes anew, with bytes that are in no tree. */
async function strippedBy(
  store: Store,
  snapshot: Snapshot,
  { from, to }: NonNullable<CleanupPlan['trees']>,
): Promise<{ path: string; id: string }[]> {
  const git = placeOf(store)
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

/** `--fresh` with nothing left to do archives the journal of a kept run and writes no new beginning: the branch is still there. */
async function forgotten(store: Store, refs: Refs): Promise<Pick<GitMemory, 'origin' | 'initial'>> {
  const branch = `refs/heads/ralph/${store.change}`
  const origin = refs.head.ref === branch ? await storedOrigin(store) : undefined
  if (origin === undefined) return {}
  const since = origin.commit === undefined ? [] : [`^${origin.commit}`]
  const made = await store.git.line(['rev-list', '--first-parent', '--reverse', branch, ...since])
  const initial = made.split('\n')[0] || refs.head.commit
  return initial === undefined ? {} : { origin, initial }
}

/** A branch that was amended, squashed or rebased lacks nothing of the loop's: all of it is there under other commits. */
async function holdsWork(
  git: Git,
  {
    initial,
    tip,
    checkpoint,
  }: { readonly initial: string; readonly tip: string; readonly checkpoint: string },
): Promise<boolean> {
  const [from, ours, theirs] = await Promise.all([initial, tip, checkpoint].map((each) => treeOf(git, each)))
  if (from === undefined || ours === undefined || theirs === undefined) return false
  const { tree, conflicts } = await tryMerge(git, from, ours, theirs)
  return conflicts.length === 0 && tree === ours
}
