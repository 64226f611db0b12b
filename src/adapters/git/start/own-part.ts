// What of the uncommitted files at a start is the user's own, and what an earlier loop of the change had made: a squash leaves out only the former.
import { join } from 'node:path'
import * as z from 'zod'
import { startMessage } from '../../../core/git-facts.ts'
import type { GitMemory } from '../../../core/git-memory.ts'
import { takeFrom } from '../formats/index-file.ts'
import { shown, type Git } from '../git.ts'
import { tryMerge } from '../landing/apply.ts'
import { readRef } from '../refs/refs.ts'
import type { Store } from '../store.ts'
import { changedPaths, commitTree, orEmpty, treeOf } from '../tree/tree.ts'

const recordSchema = z.object({
  /** Where the user stood; absent on an unborn branch. */
  origin: z.string().optional(),
  initial: z.string(),
  /** What the loop before had made; at the start of this one it was there. */
  before: z.string().optional(),
  /** What this one made, once it is finished. */
  tip: z.string().optional(),
  /** Changed by both, the loop before and then the user: they count as work. */
  edited: z.array(z.string()),
})

/** Of the run that began with `initial`. */
export interface OwnPart extends z.infer<typeof recordSchema> {
  /** `initial` without what an earlier loop had made. */
  readonly tree: string
}

type Place = Pick<Store, 'git' | 'refs'>

interface Start {
  readonly initial: string
  readonly origin: string | undefined
  /** Where HEAD was. */
  readonly head: string | undefined
  /** The run before goes on: a file of its work that the user has edited since is taken with it. */
  readonly isSame: boolean
}

/** Undefined where all that was uncommitted is the user's. Kept in a ref, for the next start may be that of another run. */
export async function ownPart(store: Place, initial: string): Promise<OwnPart | undefined> {
  const found = await partIn(store, begunRef(store))
  if (found === undefined || found.before === undefined) return undefined
  // A rename gives the same trees other names.
  return (await treeOf(store.git, found.initial)) === (await treeOf(store.git, initial)) ? found : undefined
}

/** For `moveRefs`, with the start's own. */
export async function notePart(store: Store, start: Start): Promise<string[]> {
  const found = await apartFrom(store, start)
  const ref = begunRef(store)
  if (found === undefined) return (await readRef(store.git, ref)) === undefined ? [] : [`delete ${ref}`]
  return [await partMove(store, ref, found)]
}

/** What a finished loop leaves to the next one. */
export async function noteDone(
  store: Store,
  done: { readonly origin: string | undefined; readonly initial: string; readonly tip: string },
): Promise<string[]> {
  const part = await ownPart(store, done.initial)
  const tree = part?.tree ?? (await treeOf(store.git, done.initial))
  return [await partMove(store, broughtRef(store), { edited: [], ...part, ...done, tree })]
}

/** Whose checkpoints, by earlier runs, are in the work of the run that began with `initial`. */
export async function storiesBefore(
  git: Git,
  change: string,
  { origin, initial }: Pick<GitMemory, 'origin' | 'initial'>,
): Promise<string[]> {
  const part =
    initial === undefined ? undefined : await ownPart({ git, refs: `refs/ralph/${change}` }, initial)
  if (part?.before === undefined) return []
  const since = origin?.commit === undefined ? [] : [`^${origin.commit}`]
  const asked = [`--grep=^Ralph-Change: ${change}$`, '--format=%(trailers:key=Ralph-Story,valueonly)']
  const said = await git.line(['log', ...asked, part.before, ...since])
  return shown(said)
    .split('\n')
    .filter((line) => line !== '')
}

async function partMove({ git }: Place, ref: string, { tree, ...record }: OwnPart): Promise<string> {
  const { initial, before, tip } = record
  // In ASCII, so that no encoding of commits touches a name.
  const text = JSON.stringify(record).replace(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `update ${ref} ${await commitTree(git, tree, [...new Set([initial, before, tip])], text)}`
}

async function partIn({ git }: Place, ref: string): Promise<OwnPart | undefined> {
  const commit = await readRef(git, ref)
  if (commit === undefined) return undefined
  const text = await git.line(['log', '-1', '--format=%B', commit], { accept: [128] })
  const parsed = recordSchema.safeParse(jsonOf(text))
  return parsed.success ? { ...parsed.data, tree: await treeOf(git, commit) } : undefined
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface Earlier {
  readonly origin: string | undefined
  readonly own: string
  readonly tip: string
}

async function apartFrom(store: Store, start: Start): Promise<OwnPart | undefined> {
  const { git } = store
  const { origin, initial, head, isSame } = start
  const isOnTop = head !== undefined && head !== origin
  const earlier = isOnTop ? await below(store, head, origin) : await broughtBefore(store)
  if (earlier === undefined) return undefined
  const at = await treeOf(git, await orEmpty(git, earlier.origin))
  const now = await treeOf(git, await orEmpty(git, origin))
  const [made, without] = [
    await tryMerge(git, at, now, await treeOf(git, earlier.tip)),
    await tryMerge(git, at, now, earlier.own),
  ]
  const [work, uncommitted, unmade, since] = await Promise.all([
    changedPaths(git, without.tree, made.tree),
    changedPaths(git, now, initial),
    changedPaths(git, now, made.tree),
    changedPaths(git, made.tree, initial),
  ])
  const isUncommitted = new Set(uncommitted)
  const isUnmade = new Set(unmade)
  const isDoubtful = new Set(made.conflicts)
  const isEdited = new Set(since)
  const theirs = work.filter(
    (path) =>
      isUncommitted.has(path) &&
      isUnmade.has(path) &&
      !isDoubtful.has(path) &&
      (isSame || isOnTop || !isEdited.has(path)),
  )
  if (theirs.length === 0) return undefined
  const index = join(store.folder, 'own-index')
  await git.run(['read-tree', initial], { index })
  const isUnclear = new Set(without.conflicts)
  await takeFrom(
    git,
    index,
    without.tree,
    theirs.filter((path) => !isUnclear.has(path)),
  )
  await takeFrom(
    git,
    index,
    now,
    theirs.filter((path) => isUnclear.has(path)),
  )
  return {
    tree: await git.line(['write-tree'], { index }),
    ...(origin !== undefined && { origin }),
    initial,
    before: earlier.tip,
    edited: theirs.filter((path) => isEdited.has(path)),
  }
}

/** Begun on the branch of an earlier loop, or in its tree: what was committed there is the work of the change. */
async function below(store: Store, tip: string, origin: string | undefined): Promise<Earlier> {
  const { git } = store
  const since = origin === undefined ? [] : [`^${origin}`]
  const asked = ['log', '-1', '--first-parent', `--grep=^${startMessage}$`, '--format=%H', tip, ...since]
  const initial = (await git.line(asked)) || (await orEmpty(git, origin))
  return { origin, own: (await ownPart(store, initial))?.tree ?? (await treeOf(git, initial)), tip }
}

/** Brought by a cleanup, so uncommitted for git. */
async function broughtBefore(store: Store): Promise<Earlier | undefined> {
  const { git } = store
  const last = await partIn(store, broughtRef(store))
  if (last?.tip === undefined || !(await isThere(git, last.origin))) return undefined
  return { origin: last.origin, own: last.tree, tip: last.tip }
}

async function isThere(git: Git, commit: string | undefined): Promise<boolean> {
  return commit === undefined || (await git.run(['cat-file', '-e', commit], { accept: [1, 128] })).code === 0
}

function begunRef({ refs }: Place): string {
  return `${refs}/own`
}

/** Apart: a start that is undone leaves this as it was. */
function broughtRef({ refs }: Place): string {
  return `${refs}/brought`
}
