// Keeps what an attempt left in the submodules, in each one's own repository, under the number of the attempt.
import { readdirSync } from 'node:fs'
import { shellWord } from '../../../core/shell-word.ts'
import { lstatNow } from '../tree/files.ts'
import { named, shown, type Git } from '../git.ts'
import { attemptIndex, attemptTree, withHidden } from '../attempt/attempt-tree.ts'
import { replacedIn } from '../attempt/lost-files.ts'
import { mendRepository } from '../guard/mend.ts'
import { putBackOpened } from '../tree/owner-access.ts'
import { endOperations, halfDoneFolder, operationsInProgress } from '../start/operations.ts'
import { missingObjects } from '../refs/pins.ts'
import { compareRefs, moveRefs, readRefs, shortRef } from '../refs/refs.ts'
import { whyUnfit } from '../tree/required-filters.ts'
import { readStashLog, stashEntries } from '../stash/stash-list.ts'
import { earlierValues } from '../refs/whose-refs.ts'
import type { Store } from '../store.ts'
import type { Snapshot, Submodule } from '../revert/snapshot.ts'
import { outwaitLocks, staleWords } from '../guard/stale-locks.ts'
import { isGitDir, outermost, storeOf, submoduleAt, writeLink } from './submodule.ts'
import { commitTree, emptyTree, joined, orEmpty, treeChanges } from '../tree/tree.ts'

export interface KeptInside {
  readonly isChanged: boolean
  readonly warnings: readonly string[]
  /** Why what is in them cannot be saved; empty where it can. */
  readonly refused: string
}

/** Under the number of the attempt, in each that differs from the checkpoint. Idempotent. */
export async function keepSubmodules(
  store: Store,
  n: number,
  { submodules = [] }: Snapshot,
  mayBeSaved = false,
  prefix = '',
): Promise<KeptInside> {
  const warnings: string[] = []
  let isChanged = false
  let refused = ''
  for (const submodule of submodules) {
    const inner = storeOf(store, submodule)
    const kept = await inner.git.forgiving(() => keepInside(store, inner, n, submodule, mayBeSaved, prefix))
    isChanged ||= kept.isChanged
    refused ||= kept.refused
    warnings.push(...kept.warnings)
  }
  return { isChanged, warnings, refused }
}

async function keepInside(
  store: Store,
  inner: Store,
  n: number,
  { path, link, snapshot }: Submodule,
  mayBeSaved: boolean,
  prefix: string,
): Promise<KeptInside> {
  const name = `${prefix}${path}`
  if (lstatNow(store.git.worktree, path)?.isDirectory() !== true)
    return {
      isChanged: true,
      warnings: [`the submodule ${named(name)} was removed while the agent worked`],
      refused: '',
    }
  const { git } = inner
  const cut = await mendLink(store, inner, path, link)
  const mended = await mendRepository(inner, snapshot, n)
  const locks = await outwaitLocks(inner, 3000)
  const within = await keepSubmodules(inner, n, snapshot, mayBeSaved, `${name}/`)
  const halfDone = operationsInProgress(git.gitDir)
  const { tree: seen, ignored, opened, paths, unfit } = await attemptTree(inner, snapshot, true)
  const { tree } = await withHidden(inner, snapshot, seen, ignored)
  putBackOpened(opened)
  const aside = halfDoneFolder(inner)
  await endHalfDone(inner, aside)
  const { head } = await readRefs(git)
  const ref = `${inner.refs}/attempts/${n}`
  const isSame =
    tree === snapshot.tree && head.commit === snapshot.head.commit && head.ref === snapshot.head.ref
  if (!isSame) {
    const before = await git.line(['rev-parse', '--verify', '--quiet', `${ref}^{tree}`, ref], { accept: [1] })
    const [beforeTree, earlier = ''] = before.split('\n')
    if (beforeTree !== tree) {
      const parents = earlier === '' ? [head.commit, snapshot.commit] : [earlier]
      const commit = await commitTree(git, tree, parents, `attempt ${n}\n\nRalph-Base: ${snapshot.commit}`)
      await moveRefs(git, `attempt ${n}`, [`update ${ref} ${commit}`])
    }
  }
  const why = mayBeSaved ? await whyUnfit(inner, attemptIndex(inner), { paths, unfit }) : ''
  return {
    isChanged: !isSame || within.isChanged,
    refused: why === '' ? within.refused : `${why} (submodule ${named(name)})`,
    warnings: [
      ...(isSame ? [] : [`the attempt changed the submodule ${named(name)}; it is kept there as ${ref}`]),
      ...(cut === '' ? [] : [`the agent cut the submodule ${named(name)} off from its repository; ${cut}`]),
      ...mended.map((text) => `${text} (submodule ${named(name)})`),
      ...locks.map((lock) => `${staleWords(lock)} (submodule ${named(name)})`),
      ...halfDone.map(
        (what) =>
          `a ${what} was left half done in the submodule ${named(name)}; it was ended. What git had noted of it is in ${aside}`,
      ),
      ...(mayBeSaved ? await takenAway(inner, n, snapshot, name) : []),
      ...within.warnings,
    ],
  }
}

/**
 * After a complete attempt nobody can tell the agent's refs in there from the user's, so they stay as they are; but what only a branch
 * or a stash held that is gone now is kept for good, and named with the command that brings it back.
 */
async function takenAway(store: Store, n: number, snapshot: Snapshot, name: string): Promise<string[]> {
  const { git } = store
  const [now, log] = await Promise.all([readRefs(git, true), readStashLog(git)])
  const isLoops = (ref: string): boolean => ref === snapshot.head.ref || ref.startsWith('refs/ralph/')
  const { moved, deleted } = compareRefs(snapshot.refs, now.all)
  const were = await earlierValues(git, {
    moved: moved.filter((each) => !isLoops(each.name)),
    deleted: deleted.filter((each) => !isLoops(each.name)),
    created: [],
  })
  const there = new Set(stashEntries(log).map(({ hash }) => hash))
  const dropped = stashEntries(snapshot.stash_log).filter(({ hash }) => !there.has(hash))
  const lost = await missingObjects(git, [
    ...were.map(({ from }) => from),
    ...dropped.map(({ hash }) => hash),
  ])
  const kept = [
    ...were.map(({ name: ref, from }) => [ref.replace(/^refs\//, ''), from] as const),
    ...dropped.map(({ hash }) => [`stash/${hash.slice(0, 12)}`, hash] as const),
  ].filter(([, hash]) => !lost.has(hash))
  await moveRefs(
    git,
    `attempt ${n}`,
    kept.map(([ref, hash]) => `update ${store.refs}/moved/${n}/before/${ref} ${hash}`),
  )
  const inGit = `git -C ${shellWord(shown(name))}`
  return kept.map(([ref, hash]) => {
    const back = ref.startsWith('stash/')
      ? `stash store ${hash}`
      : `update-ref ${shellWord(shown(`refs/${ref}`))} ${hash.slice(0, 12)}`
    return `${ref.startsWith('stash/') ? 'a stash entry was dropped' : `${shortRef(`refs/${ref}`)} was deleted or moved`} in the submodule ${named(name)} while #${n} ran; to bring it back: ${inGit} ${back}`
  })
}

/** One that is empty was put away; one with files in it and no way to its repository is an accident, or a trap: its own settings would be obeyed. */
async function mendLink(store: Store, inner: Store, path: string, link: string | null): Promise<string> {
  const here = submoduleAt(store.git, path)
  const isOther = here === undefined ? readdirSync(inner.git.worktree).length > 0 : here.link === null
  if (!isOther || link === null) return ''
  const aside = await writeLink(inner, link)
  return aside === '' ? 'it is back' : `it is back, and what stood there is kept in ${aside}`
}

/** As for the repository around it: a conflict is settled by what stands in the file. */
async function endHalfDone({ git }: Store, aside: string): Promise<void> {
  await endOperations(git.gitDir, aside)
  const unmerged = (await git.list(['ls-files', '--unmerged', '-z'])).map((entry) =>
    entry.slice(entry.indexOf('\t') + 1),
  )
  if (unmerged.length > 0)
    await git.run(['update-index', '--add', '--remove', '-z', '--stdin'], {
      input: joined([...new Set(unmerged)]),
    })
}

/** After a complete attempt: uncommitted work of the checkpoint before that is no longer there, with the command that brings it back. */
export async function tellSwept(
  store: Store,
  before: Snapshot,
  after: Snapshot | undefined,
  prefix = '',
): Promise<void> {
  for (const submodule of before.submodules ?? []) {
    const { path, snapshot: was } = submodule
    const now = after?.submodules?.find((one) => one.path === path)?.snapshot
    const inner = storeOf(store, submodule)
    const { gitDir } = inner.git
    // With its folder; a copy of it is told of elsewhere.
    if (!isGitDir(gitDir)) continue
    const git = inner.git.into({ worktree: gitDir, gitDir, gitCommonDir: gitDir })
    const name = `${prefix}${path}`
    const base = await orEmpty(git, was.head.commit)
    const own = now?.tree === was.tree ? [] : await changedFiles(git, base, was.tree)
    // Where it is gone, as it was committed or written anew, nothing is left of what stood there; where it is anything else, it was worked on.
    const still = new Set(now === undefined ? [] : await changedFiles(git, base, now.tree))
    // An earlier attempt may have committed what was uncommitted, and this one deletes it.
    const gone = new Set(await deletedFiles(git, was.tree, now?.tree ?? (await emptyTree(git))))
    const there = own.filter((one) => still.has(one) && !gone.has(one))
    const replaced =
      now === undefined
        ? []
        : await replacedIn(
            git,
            base,
            now.tree,
            there.map((one) => ({ path: one, as: was.tree })),
          )
    const swept = [
      ...new Set([
        ...own.filter((one) => !still.has(one)),
        ...was.own.filter((one) => gone.has(one)),
        ...replaced,
      ]),
    ]
    if (swept.length > 0) {
      const commit = was.commit.slice(0, 12)
      const back =
        now === undefined || swept.length > 10
          ? `git --git-dir=${shellWord(gitDir)} --work-tree=. worktree add DIR ${commit}`
          : `git -C ${shellWord(shown(name))} restore --source ${commit} -- ${swept.map((one) => shellWord(shown(one))).join(' ')}`
      const message = `uncommitted work in the submodule ${named(name)} is gone: ${swept.slice(0, 10).map(named).join(', ')}; it is kept: ${back}`
      await outermost(store).note({ type: 'warning', code: 'submodule_swept', message })
    }
    await tellSwept(inner, was, now, `${name}/`)
  }
}

async function deletedFiles(git: Git, before: string, after: string): Promise<string[]> {
  const all = before === after ? [] : await treeChanges(git, before, after)
  return all.filter(({ to }) => to === undefined).map(({ path }) => path)
}

async function changedFiles(git: Git, before: string, after: string): Promise<string[]> {
  const all = await treeChanges(git, before, after)
  return all.filter(({ to }) => to !== undefined).map(({ path }) => path)
}
