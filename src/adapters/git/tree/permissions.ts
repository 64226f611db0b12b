// What belongs to another user, or refuses its owner, is told as such: where it is, what helps, and what is safe meanwhile.
import { accessSync, constants, lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { again, RalphError } from '../../../core/error.ts'
import type { Checkpoints } from '../../../ports.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { named } from '../git.ts'
import { openRepository } from './owner-access.ts'
import type { Store } from '../store.ts'

/** The same checkpoints; a refusal of the file system comes out of them as an error with its remedy. */
export function explainRefusals(store: Store, checkpoints: Checkpoints): Checkpoints {
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      const path = refusedPath(store, error)
      throw path === undefined ? error : await refusedAccess(store, path, error)
    }
  }
  return through(checkpoints, (name, work) =>
    told(() => {
      // Before anything else: what is read and written first lies beyond the folders that an agent may have closed.
      if (name === 'keep') openRepository(store.git)
      return work()
    }),
  )
}

/** The same checkpoints, each of their methods called through `call`. */
export function through(
  checkpoints: Checkpoints,
  call: <T>(name: keyof Checkpoints, work: () => Promise<T>) => Promise<T>,
): Checkpoints {
  const entries = Object.entries(checkpoints) as [
    keyof Checkpoints,
    (...args: unknown[]) => Promise<unknown>,
  ][]
  const wrapped = entries.map(([name, method]) => [
    name,
    (...args: unknown[]) => call(name, () => method(...args)),
  ])
  return Object.fromEntries(wrapped) as Checkpoints
}

function refusedPath({ git }: Store, error: unknown): string | undefined {
  if (error instanceof RalphError) {
    const isGit = error.code === 'git_failed' || error.code === 'checkpoint_failed'
    if (!isGit || !/Permission denied|Operation not permitted|insufficient permission/.test(error.message))
      return undefined
    const quoted = /'([^'\n]+)': (?:Permission|Operation)|open\("([^"\n]+)"\)/.exec(error.message)
    const path = quoted?.[1] ?? quoted?.[2]
    return path === undefined ? git.gitDir : path.startsWith('/') ? path : `${git.worktree}/${path}`
  }
  const { code, path } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM' ? path : undefined
}

async function refusedAccess(store: Store, path: string, cause: unknown): Promise<RalphError> {
  const { place, owner } = culprit(path, [store.git.worktree, store.git.gitCommonDir])
  const shellName = shellWord(place)
  const isGit = `${place}/`.startsWith(`${store.git.gitCommonDir}/`)
  const remedy =
    owner === undefined
      ? `Give yourself access: chmod -R u+rwX ${shellName}`
      : isGit
        ? `Make it yours: sudo chown -R "$USER" ${shellName}`
        : `Make it yours (sudo chown -R "$USER" ${shellName}) or remove it (sudo rm -rf ${shellName})`
  const what = owner === undefined ? 'refuses access' : `belongs to another user (${owner})`
  return new RalphError(
    'checkpoint_failed',
    `${named(latin1(place))} ${what}, and ralph needs access to it`,
    {
      hint: `${remedy}, then ${again}. ${await safety(store)}`,
      cause,
    },
  )
}

/** Asked of the repository now: an attempt that is not in it is not said to be. */
async function safety(store: Store): Promise<string> {
  const { openAttempt, isKept, checkpoint } = store.memory()
  if (checkpoint === undefined) return 'Your files are as they were.'
  const base = `The last checkpoint is ${store.refs}/checkpoint`
  if (openAttempt === undefined) return `${base}.`
  const ref = `${store.refs}/attempts/${openAttempt}`
  const asked = await store.git
    .run(['rev-parse', '--verify', '--quiet', `${ref}^{commit}`], { accept: [1] })
    .catch(() => undefined)
  return isKept === true && asked?.code === 0
    ? `Nothing is lost: what attempt ${openAttempt} did is in git as ${ref}. ${base}.`
    : `What attempt ${openAttempt} did is in the work tree only, not in git: nothing was reverted. ${base}.`
}

/** The outermost part of the path, within these places, that is another user's; else the innermost that refuses. */
function culprit(
  path: string,
  places: readonly string[],
): { readonly place: string; readonly owner?: string } {
  const own = process.geteuid?.()
  let refusing: string | undefined
  let foreign: { place: string; owner: string } | undefined
  for (let place = path; places.some((each) => `${place}/`.startsWith(`${each}/`)); place = dirname(place)) {
    const uid = ownerOf(place)
    if (uid !== undefined && uid !== own) foreign = { place, owner: uid === 0 ? 'root' : `user ${uid}` }
    if (uid !== undefined && !isUsable(place)) refusing ??= place
  }
  return foreign ?? { place: refusing ?? path }
}

function ownerOf(place: string): number | undefined {
  try {
    return lstatSync(place).uid
  } catch {
    return undefined
  }
}

function isUsable(place: string): boolean {
  try {
    accessSync(
      place,
      lstatSync(place).isDirectory() ? constants.R_OK | constants.W_OK | constants.X_OK : constants.R_OK,
    )
    return true
  } catch {
    return false
  }
}

function latin1(path: string): string {
  return Buffer.from(path).toString('latin1')
}
