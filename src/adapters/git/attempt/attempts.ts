// Every attempt that was kept: listed, shown as a patch, pruned on request.
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { inScratch } from '../../process/temp.ts'
import { textOf } from '../formats/bytes.ts'
import { named, shown, type Git } from '../git.ts'
import { takeFrom } from '../formats/index-file.ts'
import { moveRefs, refsUnder } from '../refs/refs.ts'
import { checkedOut, nameInside } from '../submodules/submodule.ts'
import { usersOwn, type UsersOwn } from '../refs/users-own.ts'

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
export async function diffAttempt(
  git: Git,
  change: string,
  n: number,
  saved?: SavedAs,
  form: Form = 'patch',
): Promise<Buffer> {
  const own = await findAttempt(git, change, n, saved)
  const inside = await attemptsInside(git, change, n)
  const patches = await Promise.all([
    patch(git, own, [], form),
    ...inside.map(({ path, git: inner, attempt }) =>
      patch(inner, attempt, [`--src-prefix=a/${shown(path)}/`, `--dst-prefix=b/${shown(path)}/`], form),
    ),
  ])
  return Buffer.from(patches.join(''), 'latin1')
}

export async function diffCommits(git: Git, base: string, commit: string, form: Form): Promise<Buffer> {
  return Buffer.from(await patch(git, { base, commit }, [], form), 'latin1')
}

/** For `git apply`, for people, or only how much. */
type Form = 'patch' | 'short' | 'stat'

const forms = { patch: ['--binary', '--full-index'], short: [], stat: ['--stat'] }

async function patch(
  git: Git,
  { base, commit }: Pick<AttemptRef, 'base' | 'commit'>,
  more: readonly string[],
  form: Form,
): Promise<string> {
  const plain = [...forms[form], '--no-ext-diff', '--no-textconv', '--no-color', '-M']
  return (await git.run(['diff', ...plain, ...more, base, commit])).out
}

/** Of the same number, in the submodules that it changed. */
export async function attemptsInside(
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

/** Iterations of the next run count from 1 again: the attempts of this one make store. */
export async function archiveAttempts(git: Git, change: string, time: string): Promise<void> {
  await moveRefs(git, 'archive', await attemptMoves(git, change, time))
}

export async function attemptMoves(git: Git, change: string, time: string): Promise<string[]> {
  const own = `refs/ralph/${change}`
  const refs = await refsUnder(git, [`${own}/attempts`, `${own}/moved`, `${own}/restored`])
  return Object.entries(refs).flatMap(([name, hash]) => {
    return [`update ${own}/earlier/${time}${name.slice(own.length)} ${hash}`, `delete ${name} ${hash}`]
  })
}

/** Only on request: with its ref goes the only promise that git keeps an attempt. What is the user's own stays, and is named. */
export async function cleanAttempts(
  git: Git,
  change: string,
): Promise<{ readonly count: number; readonly kept: readonly UsersOwn[] }> {
  const inside = await Promise.all(
    (await checkedOut(git)).map(async ({ path, git: inner }) => {
      const { kept } = await deleteAttempts(inner, nameInside(change))
      return kept.map((own) => ({ ...own, what: `${own.what} in the submodule ${named(path)}` }))
    }),
  )
  const { count, kept } = await deleteAttempts(git, change)
  return { count, kept: [...kept, ...inside.flat()] }
}

/** What a cleaning would leave there. */
export async function keptByCleaning(git: Git, change: string): Promise<readonly UsersOwn[]> {
  return await usersOwn(git, change, await cleanable(git, change))
}

async function cleanable(git: Git, change: string): Promise<Readonly<Record<string, string>>> {
  const folders = ['attempts', 'moved', 'restored', 'earlier'].map((name) => `refs/ralph/${change}/${name}`)
  return await refsUnder(git, folders)
}

async function deleteAttempts(
  git: Git,
  change: string,
): Promise<{ readonly count: number; readonly kept: readonly UsersOwn[] }> {
  const going = await cleanable(git, change)
  const kept = await usersOwn(git, change, going)
  const refs = Object.entries(going).filter(([name]) => !kept.some(({ ref }) => ref === name))
  await moveRefs(
    git,
    'clean',
    refs.map(([name, hash]) => `delete ${name} ${hash}`),
  )
  return { count: refs.filter(([name]) => name.includes('/attempts/')).length, kept }
}

/** The checkpoint that an attempt became, and the plan in it: ralph ticks boxes after the attempt was kept. */
export interface SavedAs {
  readonly commit: string
  readonly tasksFile: string
}

export async function findAttempt(git: Git, change: string, n: number, saved?: SavedAs): Promise<AttemptRef> {
  const attempts = await listAttempts(git, change)
  const found = attempts.find((attempt) => attempt.n === n)
  if (found !== undefined) return saved === undefined ? found : withTicks(git, found, saved)
  const numbers = attempts.map((attempt) => attempt.n).join(', ')
  throw new RalphError('attempt_not_found', `There is no attempt #${n} of ${change}.`, {
    hint: numbers === '' ? `None is kept. What ran: ralph history ${change}` : `These are kept: ${numbers}.`,
  })
}

/** With the boxes as they were settled; a checkpoint that git has no more, or that does not hold the plan, adds nothing. */
async function withTicks(git: Git, attempt: AttemptRef, { commit, tasksFile }: SavedAs): Promise<AttemptRef> {
  const settled = await git.run(['cat-file', '-e', `${commit}:${tasksFile}`], { accept: [1, 128] })
  if (tasksFile === '' || settled.code !== 0) return attempt
  return await inScratch(async (folder) => {
    const index = join(folder, 'index')
    await git.run(['read-tree', attempt.commit], { index })
    await takeFrom(git, index, commit, [Buffer.from(tasksFile).toString('latin1')])
    return { ...attempt, commit: await git.line(['write-tree'], { index }) }
  })
}
