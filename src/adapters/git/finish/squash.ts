// One commit of the loop's work, on the branch that the user came from: made by the user's own `git commit`, hooks and signing included.
import { isOfPlan } from '../tree/plan-path.ts'
import { join } from 'node:path'
import type { SquashPlan } from '../../../core/git-facts.ts'
import { writeDurably } from '../../files/whole.ts'
import { exec, type ExecResult } from '../../process/exec.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { applyTrees, conflict, tryMerge } from '../landing/apply.ts'
import { shown, type Git } from '../git.ts'
import { copyIndex, realIndex, takeFrom } from '../formats/index-file.ts'
import { topPath } from '../attempt/lost-files.ts'
import { moveRefs, readRefs, shortName } from '../refs/refs.ts'
import { lateTold, listed } from '../attempt/reunite.ts'
import { exempt, scanTree } from '../tree/scan.ts'
import { timeName, type Store } from '../store.ts'
import {
  changedPaths,
  commitTree,
  isAncestor,
  orEmpty,
  treeOf,
  treeOfIndex,
  writeTree,
} from '../tree/tree.ts'

/** `commit`: what was made; else why it was not, and what to type. */
export type Squashed = { readonly commit: string } | { readonly refused: string; readonly hint: string }

interface Squashing {
  readonly onto: string | undefined
  readonly base: string
  readonly tip: string
  readonly message: string
  /** Where the user stood, and what they had not committed there. */
  readonly began: string
  /** What a loop before this one had made, and the commit holds as well. */
  readonly earlier: string | undefined
  readonly startPaths: readonly string[]
}

/** What is to be committed: the loop's work alone, not what the user had not committed. Undefined where there is none. */
export async function planSquash(
  store: Store,
  { onto, base, tip, message, began, earlier, startPaths }: Squashing,
): Promise<SquashPlan | undefined> {
  const { change } = store
  const git = placeOf(store)
  const ours = await treeOf(git, await orEmpty(git, onto))
  const theirs = await treeOf(git, tip)
  let from = await treeOf(git, base)
  let { tree, conflicts } = await tryMerge(git, from, ours, theirs)
  const index = join(store.folder, 'squash-index')
  const mergeWith = async (commit: string, paths: readonly string[]): Promise<void> => {
    await git.run(['read-tree', from], { index })
    await takeFrom(git, index, commit, paths)
    from = await git.line(['write-tree'], { index })
    ;({ tree, conflicts } = await tryMerge(git, from, ours, theirs))
  }
  if (earlier !== undefined && conflicts.length > 0) {
    // The user has committed it since, in their own way.
    const isCommitted = new Set(await changedPaths(git, began, ours))
    const paths = conflicts.filter((path) => isCommitted.has(path))
    if (paths.length > 0) await mergeWith(earlier, paths)
  }
  // Whoever has just written a plan has seldom committed it: it goes with the work that it describes.
  const isOwn = (path: string): boolean => isOfPlan(change, path)
  // A change without a tasks.md of its own has the one in the root.
  const isRooted = conflicts.includes('tasks.md') && !(await hasOwnPlan(git, theirs, isOwn))
  const isPlan = (path: string): boolean => isOwn(path) || (isRooted && path === 'tasks.md')
  const plan = conflicts.length > 0 && conflicts.every(isPlan) ? startPaths.filter(isPlan) : []
  if (plan.length > 0) await mergeWith(began, plan)
  if (conflicts.length > 0) {
    throw conflict(
      'the loop changed lines that you had not committed when it began',
      conflicts,
      `Nothing was touched. Bring everything to your branch, uncommitted, and commit there what you want: ralph finish ${change} --cleanup`,
    )
  }
  return tree === ours ? undefined : { message, tree, onto, ...(plan.length > 0 && { plan }) }
}

async function hasOwnPlan(git: Git, tree: string, isOwn: (path: string) => boolean): Promise<boolean> {
  const paths = await git.list(['ls-tree', '-r', '-z', '--name-only', tree])
  return paths.some((path) => isOwn(path) && path.endsWith('/tasks.md'))
}

/** Idempotent: a commit that is there already is not made twice. */
export async function commitSquash(store: Store, plan: SquashPlan): Promise<Squashed> {
  const git = placeOf(store)
  const { onto, tree, message } = plan
  const file = join(store.folder, 'squash-message')
  const { ref, commit: before } = (await readRefs(git)).head
  await writeDurably(file, `${message}\n`)
  const work = await changedPaths(git, await orEmpty(git, onto), tree)
  if (before !== onto) return await found(store, plan, { head: before, work })
  const index = join(store.folder, 'squash-index')
  // A hook that resets takes more than the work: all that the user had not committed.
  const picture = await wholeTree(store, git, index).catch(() => undefined)
  await git.run(['read-tree', tree], { index })
  const result = await exec('git', ['commit', '--quiet', '-F', file], {
    cwd: git.worktree,
    env: { ...usersEnvironment(store.env ?? process.env), ...store.marker?.(), GIT_INDEX_FILE: index },
    timeoutMs,
  })
  const { head: now } = await readRefs(git)
  if (now.commit !== onto) return await found(store, plan, { head: now.commit, work, picture })
  const late = picture === undefined ? undefined : await putBack(store, git, index, { picture, onto })
  // As after a `git commit` that was refused: all of it is staged, and the same command can be typed again.
  const isWork = new Set(work)
  const isAlone = (await stagedPaths(git, onto)).every((path) => isWork.has(path))
  await takeFrom(git, realIndex(git), tree, await unstaged(git, onto, tree))
  const safe =
    late === undefined
      ? 'staged'
      : `there and staged, ${late.length === 0 ? 'nothing is lost' : `but ${late.join('; ')}`}`
  const isLeft = now.ref !== ref && ref !== undefined
  const back = isLeft ? `${git.typed} switch ${shellWord(shown(shortName(ref)))} && ` : ''
  return {
    refused: result.exitCode === 0 ? 'a hook of yours took the commit back' : wordsOf(result),
    hint: `The work is ${safe}. ${isLeft ? 'A hook of yours has switched to another branch. ' : ''}Fix what it says, then: ${back}${git.typed} commit -F ${shellWord(file)}${isAlone ? '' : onlyThese(work)}`,
  }
}

/** With everything that is not ignored. */
async function wholeTree({ protectedPaths }: Store, git: Git, index: string): Promise<string> {
  await copyIndex(git, realIndex(git), index)
  return (await writeTree(git, index, await scanTree(git), exempt(protectedPaths, []))).tree
}

/** What is as in `onto`, by a hook that resets, and was not before. Returns sentences on files that somebody has written since. */
async function putBack(
  store: Store,
  git: Git,
  index: string,
  { picture, onto }: { readonly picture: string; readonly onto: string | undefined },
): Promise<string[]> {
  const now = await wholeTree(store, git, index)
  const isOther = new Set(await changedPaths(git, await orEmpty(git, onto), now))
  const back = (await changedPaths(git, picture, now)).filter((path) => !isOther.has(path))
  if (back.length === 0) return []
  await git.run(['read-tree', now], { index })
  await takeFrom(git, index, picture, back)
  const to = await treeOfIndex(git, index)
  const late = await applyTrees(git, store.folder, now, to, store.protectedPaths)
  if (late.length === 0) return []
  const ref = `${store.refs}/archive/${timeName(store)}-uncommitted`
  const held = await commitTree(git, picture, [onto], 'before a hook of the user’s ran')
  await moveRefs(git, 'archive', [`update ${ref} ${held}`])
  return lateTold(late, { ref, typed: git.typed })
}

/** HEAD is elsewhere: by this commit, one of an earlier try, or one that somebody made meanwhile. */
async function found(
  store: Store,
  plan: SquashPlan,
  {
    head,
    work,
    picture,
  }: {
    readonly head: string | undefined
    readonly work: readonly string[]
    readonly picture?: string | undefined
  },
): Promise<Squashed> {
  const git = placeOf(store)
  const { onto, tree } = plan
  const isWork = new Set(work)
  // A hook may have taken out of the message what tells it.
  const isHead = (await changedPaths(git, await orEmpty(git, head), tree)).every((path) => !isWork.has(path))
  const made = (await madeBefore(store, git, onto, head)) ?? (isHead ? head : undefined)
  if (made === undefined || head === undefined) {
    const file = join(store.folder, 'squash-message')
    return {
      refused: 'another commit was made on the branch meanwhile',
      hint: `The work is in the work tree, uncommitted. Commit it: ${git.typed} add${onlyThese(work)} && ${git.typed} commit -F ${shellWord(file)}${onlyThese(work)}`,
    }
  }
  // A hook may have committed on top of it.
  const [other, changed] = await Promise.all([
    changedPaths(git, head, tree),
    changedPaths(git, await orEmpty(git, onto), head),
  ])
  const isOther = new Set(other)
  const isChanged = new Set(changed)
  // What a hook has written otherwise is in it, what a hook has left out is not.
  const lacking = work.filter((path) => isOther.has(path) && !isChanged.has(path))
  // Put away by a hook, or since an earlier try was killed (`git stash`): else the work tree would be the reverse of the commit.
  const index = join(store.folder, 'squash-index')
  const isLacking = new Set(lacking)
  // What the user had not committed of a file is in no commit.
  const theirs = picture === undefined ? [] : await changedPaths(git, await orEmpty(git, onto), picture)
  const isMixed = new Set(picture === undefined ? [] : await changedPaths(git, picture, tree))
  const isTheirs = new Set(theirs.filter((path) => isMixed.has(path)))
  const brought = work.filter((path) => !isTheirs.has(path))
  await git.run(['read-tree', picture ?? head], { index })
  await takeFrom(
    git,
    index,
    head,
    brought.filter((path) => !isLacking.has(path)),
  )
  await takeFrom(
    git,
    index,
    tree,
    brought.filter((path) => isLacking.has(path)),
  )
  const late = await putBack(store, git, index, { picture: await treeOfIndex(git, index), onto })
  // The index follows, as git's own does after a commit of some paths only.
  await takeFrom(git, realIndex(git), head, await unstaged(git, onto, head))
  if (lacking.length === 0) return { commit: made }
  const isMade = new Set(await changedPaths(git, await orEmpty(git, onto), made))
  return {
    refused: lacking.some((path) => isMade.has(path))
      ? `the commit ${head.slice(0, 12)}, which was made on top of it meanwhile, takes ${listed(lacking)} out again`
      : `a hook left ${listed(lacking)} out of the commit ${made.slice(0, 12)}`,
    hint: `${late.map((each) => `${each}. `).join('')}That part of the work is in the work tree, uncommitted: ${git.typed} add${onlyThese(lacking)} && ${git.typed} commit --amend --no-edit`,
  }
}

function onlyThese(paths: readonly string[]): string {
  return ` -- ${paths.map(topPath).join(' ')}`
}

/** Hooks may run the tests. */
const timeoutMs = 30 * 60_000

export function placeOf({ git, home }: Store): Git {
  return home === undefined ? git : git.at(home)
}

/** Of what differs, the paths that are in the index as they were: what the user has staged since is theirs. */
async function unstaged(git: Git, onto: string | undefined, to: string): Promise<string[]> {
  const staged = new Set(await stagedPaths(git, onto))
  return (await changedPaths(git, await orEmpty(git, onto), to)).filter((path) => !staged.has(path))
}

async function stagedPaths(git: Git, onto: string | undefined): Promise<string[]> {
  const start = await orEmpty(git, onto)
  return await git.list(['diff-index', '--cached', '--name-only', '--no-renames', '-z', start])
}

/** By an earlier try, which was cut off before it could say so; undefined when there is none. */
async function madeBefore(
  { change }: Store,
  git: Git,
  onto: string | undefined,
  head: string | undefined,
): Promise<string | undefined> {
  if (head === undefined || (onto !== undefined && !(await isAncestor(git, onto, head)))) return undefined
  const range = onto === undefined ? [head] : [head, `^${onto}`]
  const found = await git.line([
    'log',
    '--format=%H',
    '--fixed-strings',
    `--grep=Ralph-Change: ${change}`,
    ...range,
  ])
  return found.split('\n').at(-1) || undefined
}

/** Their own, but for what would lead git elsewhere. */
function usersEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isTheirs = (name: string): boolean =>
    !name.startsWith('GIT_') || /^GIT_(AUTHOR|COMMITTER|CONFIG|SSH|TRACE|EXEC_PATH|ASKPASS)/.test(name)
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => isTheirs(name))),
    GIT_EDITOR: 'true',
  }
}

function wordsOf({ spawnError, timedOut, stderr, stdout, exitCode }: ExecResult): string {
  if (spawnError !== undefined) return spawnError.message
  if (timedOut) return `it took longer than ${timeoutMs / 60_000} minutes`
  const said = `${stdout.toString('utf8')}\n${stderr}`
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
  return said.slice(-20).join('\n') || `exit code ${exitCode ?? 'none'}`
}
