// Brings a kept attempt back: into a folder of its own, or its changes three-way onto the work tree as it is.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { RalphError } from '../../../core/error.ts'
import { firstNames } from '../../../core/first-names.ts'
import { rm } from '../../files/now.ts'
import { bringingFile } from '../../files/paths.ts'
import { readRecord, writeDurably } from '../../files/whole.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { inScratch } from '../../process/temp.ts'
import { applyTrees, conflict, takenPlaces, tryMerge } from '../landing/apply.ts'
import { attemptsInside, findAttempt } from './attempts.ts'
import type { AttemptRef, SavedAs } from './attempts.ts'
import { notBroughtBack } from '../tree/exact-bytes.ts'
import { hiddenEdits } from '../tree/flags.ts'
import { headText } from '../formats/ref-files.ts'
import { named, shown, type Git } from '../git.ts'
import { copyIndex, realIndex } from '../formats/index-file.ts'
import { moveRefs, readRef } from '../refs/refs.ts'
import { shellName } from './lost-files.ts'
import { lateTold } from './reunite.ts'
import { exempt, scanTree } from '../tree/scan.ts'
import { checkpointFolder } from '../store.ts'
import { nameInside } from '../submodules/submodule.ts'
import { commitTree, treeChanges, writeTree } from '../tree/tree.ts'

export interface BroughtBack {
  /** Paths of the work tree that are not what they were. */
  readonly paths: readonly string[]
  /** Sentences on files that the user saved meanwhile: they are not as in the attempt. */
  readonly late: readonly string[]
  /** Commands that undo it, one for each repository that was changed. */
  readonly undo: readonly string[]
}

export async function writeAttempt(
  git: Git,
  change: string,
  n: number,
  to: string,
  saved?: SavedAs,
): Promise<void> {
  const { commit } = await findAttempt(git, change, n, saved)
  await refuseFull(to)
  await writeInto(git, to, commit)
  for (const { path, git: inner, attempt } of await attemptsInside(git, change, n))
    await writeInto(inner, join(to, shown(path)), attempt.commit)
}

/** What the attempt had changed, uncommitted; refuses, with nothing touched, where it and the tree changed the same. */
export async function bringBack(
  git: Git,
  change: string,
  n: number,
  options: { readonly protectedPaths: readonly string[]; readonly saved?: SavedAs; readonly cwd?: string },
): Promise<BroughtBack> {
  const { protectedPaths } = options
  const folder = checkpointFolder(git.gitCommonDir, change)
  await mkdir(folder, { recursive: true })
  const own = await findAttempt(git, change, n, options.saved)
  const elsewhere = `${git.worktree}-${change}-${n}`
  const hint = `Nothing was touched, and the attempt stays kept. See it: ralph diff ${n} ${change}. Take it from a folder of its own: ralph restore ${n} ${change} --to ${shellWord(elsewhere)}`
  const plans = [await plan(git, folder, own, { prefix: '', hint, protectedPaths })]
  for (const { path, git: inner, attempt } of await attemptsInside(git, change, n))
    plans.push(await plan(inner, folder, attempt, { prefix: `${path}/`, hint, protectedPaths: [] }))
  const differing = plans.filter(({ paths }) => paths.length > 0)
  for (const each of differing) await remember(each, each.git === git ? change : nameInside(change), n)
  if (differing.length === 0) return { paths: [], late: [], undo: [] }
  const trees = differing.map(({ prefix, before, after }) => ({ prefix, before, after }))
  const bringing = { change, n, head: headText(git.gitDir), trees } satisfies Bringing
  await writeDurably(bringingFile(git.gitDir), JSON.stringify(bringing))
  const done = await bring(git, change, n, differing, options)
  await rm(bringingFile(git.gitDir), { force: true })
  return done
}

/** Idempotent: what is in place already is left alone. */
async function bring(
  git: Git,
  change: string,
  n: number,
  plans: readonly Plan[],
  { protectedPaths, cwd }: { readonly protectedPaths: readonly string[]; readonly cwd?: string | undefined },
): Promise<BroughtBack> {
  const folder = checkpointFolder(git.gitCommonDir, change)
  const done = []
  for (const each of plans) {
    const { git: at, before, after, prefix, paths } = each
    const late = await applyTrees(at, folder, before, after, at === git ? protectedPaths : [])
    const ref = `refs/ralph/${at === git ? change : nameInside(change)}/restored/${n}`
    const typed = at.worktree === cwd ? 'git' : `git -C ${shellWord(at.worktree)}`
    const without = late.map((path) => ` --exclude=${shellName(path)}`).join('')
    const isLate = new Set(late)
    const came = paths.filter((path) => !isLate.has(path))
    done.push({
      paths: came.map((path) => `${prefix}${path}`),
      late: lateTold(late, { ref, typed }),
      undo: came.length === 0 ? [] : [`${typed} diff-tree -p --binary ${ref} | ${typed} apply -R${without}`],
    })
  }
  return {
    paths: done.flatMap(({ paths }) => paths),
    late: done.flatMap(({ late }) => late),
    undo: done.flatMap(({ undo }) => undo),
  }
}

const bringingSchema = z.object({
  change: z.string(),
  n: z.number(),
  head: z.string(),
  trees: z.array(z.object({ prefix: z.string(), before: z.string(), after: z.string() })),
})
type Bringing = z.infer<typeof bringingSchema>

/**
 * One that was killed half-way may have taken files away that it had not written again: it is completed, before anything else is done in
 * this tree. Says so. On another branch the files are others, and nothing is touched: then it says where they are.
 */
export async function completeBringBack(
  git: Git,
  protectedPaths: readonly string[],
): Promise<string | undefined> {
  const file = bringingFile(git.gitDir)
  // What somebody else has written there is no word of ralph's.
  const left = await readRecord(file, bringingSchema).catch(() => undefined)
  if (left === undefined) {
    await rm(file, { force: true })
    return undefined
  }
  const { change, n, trees } = left
  await mkdir(checkpointFolder(git.gitCommonDir, change), { recursive: true })
  const what = `Bringing #${n} of ${change} back had been killed half-way`
  const ref = `refs/ralph/${change}/restored/${n}`
  if (trees.some(({ prefix }) => prefix === '') && (await readRef(git, ref)) === undefined) {
    await rm(file, { force: true })
    return `${what}, and cannot be completed: ${ref}, which held your files, has been deleted since`
  }
  if (headText(git.gitDir) !== left.head) {
    await rm(file, { force: true })
    return `${what}, and you have switched since, so it is not completed. Your files as they were before it: git diff ${ref}^, to take one from there: git restore --source=${ref}^ -- FILE`
  }
  const inner = await attemptsInside(git, change, n)
  const plans: Plan[] = []
  for (const { prefix, before, after } of trees) {
    const at = prefix === '' ? git : inner.find(({ path }) => `${path}/` === prefix)?.git
    if (at === undefined) continue
    const paths = (await treeChanges(at, before, after)).map(({ path }) => path)
    plans.push({ git: at, prefix, before, after, paths })
  }
  const { paths, late, undo } = await bring(git, change, n, plans, { protectedPaths, cwd: git.worktree })
  await rm(file, { force: true })
  return [
    `${what}; it is completed: ${firstNames(paths.map(named), 10)}`,
    ...late,
    ...(undo.length === 0 ? [] : [`to undo it: ${undo.join(' && ')}`]),
  ].join('; ')
}

interface Plan {
  readonly git: Git
  readonly prefix: string
  /** The tree as it is, uncommitted files included. */
  readonly before: string
  readonly after: string
  readonly paths: readonly string[]
}

async function plan(
  git: Git,
  folder: string,
  { n, base, commit }: AttemptRef,
  {
    prefix,
    hint,
    protectedPaths,
  }: { readonly prefix: string; readonly hint: string; readonly protectedPaths: readonly string[] },
): Promise<Plan> {
  const refuse = (why: string, paths: readonly string[], first = ''): never => {
    throw conflict(
      `#${n} cannot be brought back here: ${why}`,
      paths.map((path) => prefix + path),
      first + hint,
    )
  }
  const isExempt = exempt(protectedPaths, [])
  const index = join(folder, 'restore-index')
  await copyIndex(git, realIndex(git), index)
  const { tree: before } = await writeTree(git, index, await scanTree(git), isExempt)
  const [from = '', to = ''] = (await git.line(['rev-parse', `${base}^{tree}`, `${commit}^{tree}`])).split(
    '\n',
  )
  const { tree: after, conflicts } = await tryMerge(git, from, before, to)
  if (conflicts.length > 0) refuse('these files have other changes on the same lines now', conflicts)
  const changes = (await treeChanges(git, before, after)).filter(({ path }) => !isExempt(path))
  const inTheWay = takenPlaces(git, changes)
  inTheWay.push(...(await hiddenEdits(git, new Set(changes.map(({ path }) => path)))))
  if (inTheWay.length > 0)
    refuse('it would overwrite files of yours that git does not show', inTheWay, 'Move or stash them first. ')
  const overwritten = changes.filter(({ from: old }) => old !== undefined).map(({ path }) => path)
  const lossy = await notBroughtBack({ git, folder }, index, overwritten)
  if (lossy.length > 0)
    refuse('git converts these files of yours, and could not undo it byte for byte', lossy)
  return { git, prefix, before, after, paths: changes.map(({ path }) => path) }
}

/** Before anything is written: what the tree was, and what it becomes, under one ref; what an earlier restore left there stays its past. */
async function remember({ git, before, after }: Plan, change: string, n: number): Promise<void> {
  const ref = `refs/ralph/${change}/restored/${n}`
  const earlier = await readRef(git, ref)
  const was = await commitTree(git, before, [earlier], `before attempt ${n} was brought back`)
  const is = await commitTree(git, after, [was], `attempt ${n} brought back`)
  await moveRefs(git, 'restore', [`update ${ref} ${is}`])
}

async function refuseFull(to: string): Promise<void> {
  await mkdir(to, { recursive: true }).catch((error: unknown) => {
    if (!['EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    throw new RalphError('usage', `${to} is not a folder`, {
      hint: 'Nothing was touched. Name a folder that is empty or does not exist yet.',
      cause: error,
    })
  })
  if ((await readdir(to)).length > 0) {
    throw new RalphError('usage', `${to} is not empty`, {
      hint: 'Name a folder that is empty or does not exist yet.',
    })
  }
}

async function writeInto(git: Git, to: string, commit: string): Promise<void> {
  await inScratch(async (folder) => {
    const index = join(folder, 'index')
    const prefix = `--prefix=${to.replace(/\/*$/, '')}/`
    await git.run(['read-tree', commit], { index })
    await git.run(['checkout-index', '--all', '--force', '--quiet', prefix], { index })
  })
}
