// Every attempt that was kept: listed, shown as a patch, brought back, pruned on request.
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { applyTrees, refuseOverwrite, uncommitted } from './apply.ts'
import { textOf } from './bytes.ts'
import { shown, type Git } from './git.ts'
import { copyIndex, realIndex } from './index-file.ts'
import { moveRefs, readRefs } from './refs.ts'
import { checkpointFolder } from './store.ts'
import { scanTree } from './scan.ts'
import { checkedOut, nameInside } from './submodule.ts'
import { changedPaths, writeTree } from './tree.ts'

export interface AttemptRef {
  readonly n: number
  readonly ref: string
  readonly commit: string
  /** The checkpoint that the attempt began with. */
  readonly base: string
}

const attemptFormat = '--format=%(objectname) %(refname) %(trailers:key=Ralph-Base,valueonly,separator=)'

/** By number. */
export async function listAttempts(git: Git, change: string): Promise<AttemptRef[]> {
  const folder = `refs/ralph/${change}/attempts`
  const lines = (await git.line(['for-each-ref', attemptFormat, folder]))
    .split('\n')
    .filter((line) => line !== '')
  const attempts = lines.map((line) => {
    const [commit = '', ref = '', base = ''] = line.split(' ')
    return { n: Number(ref.split('/').at(-1)), ref: `${folder}/${ref.split('/').at(-1)}`, commit, base }
  })
  return attempts.sort((one, other) => one.n - other.n)
}

interface EarlierAttempt extends AttemptRef {
  /** The time that names its run, in the archive too. */
  readonly run: string
}

/** Of runs that a new one has replaced, the oldest first. */
export async function listEarlier(git: Git, change: string): Promise<EarlierAttempt[]> {
  const folder = `refs/ralph/${change}/earlier`
  const out = textOf(await git.line(['for-each-ref', attemptFormat, folder]))
  const attempts = out.split('\n').flatMap((line) => {
    const [commit = '', ref = '', base = ''] = line.split(' ')
    const [run = '', kind = '', n = ''] = ref.slice(folder.length + 1).split('/')
    return kind === 'attempts' ? [{ run, n: Number(n), ref, commit, base }] : []
  })
  return attempts.sort((one, other) => one.run.localeCompare(other.run) || one.n - other.n)
}

/** The bytes of a patch that `git apply` takes, binary files too. */
export async function diffAttempt(git: Git, change: string, n: number): Promise<Buffer> {
  const own = await findAttempt(git, change, n)
  const inside = await attemptsInside(git, change, n)
  const patches = await Promise.all([
    patch(git, own, []),
    ...inside.map(({ path, git: inner, attempt }) =>
      patch(inner, attempt, [`--src-prefix=a/${shown(path)}/`, `--dst-prefix=b/${shown(path)}/`]),
    ),
  ])
  return Buffer.from(patches.join(''), 'latin1')
}

async function patch(git: Git, { base, commit }: AttemptRef, more: readonly string[]): Promise<string> {
  const plain = ['--binary', '--full-index', '--no-ext-diff', '--no-textconv', '--no-color', '-M']
  return (await git.run(['diff', ...plain, ...more, base, commit])).out
}

/** Of the same number, in the submodules that it changed. */
async function attemptsInside(
  git: Git,
  change: string,
  n: number,
): Promise<{ path: string; git: Git; attempt: AttemptRef }[]> {
  const submodules = await checkedOut(git)
  const found = submodules.map(async ({ path, git: inner }) => {
    const attempt = (await listAttempts(inner, nameInside(change))).find((one) => one.n === n)
    return attempt === undefined ? [] : [{ path, git: inner, attempt }]
  })
  return (await Promise.all(found)).flat()
}

/**
 * Writes the whole tree of the attempt into `to` (empty or not there yet), or carries its changes into the work tree,
 * uncommitted; refuses where that would overwrite something.
 */
export async function restoreAttempt(
  git: Git,
  change: string,
  n: number,
  options: { readonly protectedPaths: readonly string[]; readonly to?: string },
): Promise<string> {
  const { base, commit } = await findAttempt(git, change, n)
  const inside = await attemptsInside(git, change, n)
  if (options.to !== undefined) {
    await refuseFull(options.to)
    await writeInto(git, options.to, commit)
    for (const { path, git: inner, attempt } of inside)
      await writeInto(inner, join(options.to, shown(path)), attempt.commit)
    return options.to
  }
  const folder = checkpointFolder(git.gitCommonDir, change)
  await mkdir(folder, { recursive: true })
  const { head } = await readRefs(git)
  const from = await git.line(['rev-parse', `${head.commit || base}^{tree}`])
  const to = await git.line(['rev-parse', `${commit}^{tree}`])
  const hint = `Nothing was touched. Commit or move your changes first, or look at the attempt elsewhere: \`ralph restore ${n} --to DIR\`.`
  await refuseOverwrite(git, from, to, () => false, hint)
  for (const { git: inner, attempt } of inside) await refuseChanged(inner, folder, attempt, hint)
  await applyTrees(git, folder, from, to, options.protectedPaths)
  for (const { git: inner, attempt } of inside)
    await applyTrees(inner, folder, attempt.base, attempt.commit, [])
  return git.worktree
}

/** The user's own work lies there uncommitted, as it did when the attempt began: only what differs since is in the way. */
async function refuseChanged(
  git: Git,
  folder: string,
  { base, commit }: AttemptRef,
  hint: string,
): Promise<void> {
  const index = join(folder, 'restore-index')
  await copyIndex(realIndex(git), index)
  const { tree } = await writeTree(git, index, await scanTree(git), () => false)
  const [attempted, since] = await Promise.all([
    changedPaths(git, base, commit),
    changedPaths(git, base, tree),
  ])
  const inTheWay = attempted.filter((path) => since.includes(path))
  if (inTheWay.length > 0) throw uncommitted(git, inTheWay, hint)
}

/** Iterations of the next run count from 1 again: the attempts of this one make store. */
export async function archiveAttempts(git: Git, change: string, time: string): Promise<void> {
  await moveRefs(git, 'archive', await attemptMoves(git, change, time))
}

export async function attemptMoves(git: Git, change: string, time: string): Promise<string[]> {
  const own = `refs/ralph/${change}`
  const format = '--format=%(objectname) %(refname)'
  const out = textOf(await git.line(['for-each-ref', format, `${own}/attempts`, `${own}/moved`]))
  const lines = out.split('\n').filter((line) => line !== '')
  return lines.flatMap((line) => {
    const [hash = '', name = ''] = line.split(' ')
    return [`update ${own}/earlier/${time}${name.slice(own.length)} ${hash}`, `delete ${name} ${hash}`]
  })
}

/** Only on request: with its ref goes the only promise that git keeps an attempt. */
export async function cleanAttempts(git: Git, change: string): Promise<number> {
  for (const { git: inner } of await checkedOut(git)) await deleteAttempts(inner, nameInside(change))
  return await deleteAttempts(git, change)
}

async function deleteAttempts(git: Git, change: string): Promise<number> {
  const folders = ['attempts', 'moved', 'earlier'].map((name) => `refs/ralph/${change}/${name}`)
  const lines = (await git.line(['for-each-ref', '--format=%(refname) %(objectname)', ...folders])).split(
    '\n',
  )
  const refs = lines.filter((line) => line !== '')
  await moveRefs(
    git,
    'clean',
    refs.map((line) => `delete ${textOf(line)}`),
  )
  return refs.filter((line) => line.includes('/attempts/')).length
}

async function findAttempt(git: Git, change: string, n: number): Promise<AttemptRef> {
  const attempts = await listAttempts(git, change)
  const found = attempts.find((attempt) => attempt.n === n)
  if (found !== undefined) return found
  const numbers = attempts.map((attempt) => attempt.n).join(', ')
  throw new RalphError('attempt_not_found', `there is no attempt ${n} of ${change}`, {
    hint: numbers === '' ? 'No attempt has been kept yet.' : `These are kept: ${numbers}.`,
    exitCode: 2,
  })
}

async function refuseFull(to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  if ((await readdir(to)).length > 0) {
    throw new RalphError('usage', `${to} is not empty`, {
      hint: 'Name a folder that is empty or not there yet.',
      exitCode: 2,
    })
  }
}

async function writeInto(git: Git, to: string, commit: string): Promise<void> {
  // Not in ralph's own folder: this is allowed while a loop runs, which may sweep there.
  const folder = await mkdtemp(join(tmpdir(), 'ralph-restore-'))
  try {
    const index = join(folder, 'index')
    const prefix = `--prefix=${to.replace(/\/*$/, '')}/`
    await git.run(['read-tree', commit], { index })
    await git.run(['checkout-index', '--all', '--force', '--quiet', prefix], { index })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
