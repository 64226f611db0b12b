// What a finish says of the commits that it made, renamed or brought.
import { RalphError } from '../../../core/error.ts'
import type { GitMemory } from '../../../core/git-memory.ts'
import { commitsBetween } from '../attempt/adopted.ts'
import { named, ownEmail, type Git } from '../git.ts'
import { listed } from '../attempt/reunite.ts'
import type { Store } from '../store.ts'
import { isOfPlan } from '../tree/plan-path.ts'
import { changedPaths } from '../tree/tree.ts'

/** What of the user's own is in the commit of a squash, and what is not. */
export async function besidesWork(
  git: Git,
  at: {
    readonly initial: string
    readonly tip: string
    readonly startPaths: readonly string[]
    readonly touched: ReadonlySet<string>
    /** By the user, after a loop before this one. */
    readonly edited: readonly string[]
    readonly plan: readonly string[]
    /** What is otherwise than it was handed to `git commit`. */
    readonly hooked: readonly string[]
  },
): Promise<string> {
  const { initial, tip, startPaths, touched, edited, plan, hooked } = at
  const mixed = edited.filter((path) => touched.has(path))
  // Named so by the checkpoint that takes in what was changed between two attempts.
  const asked = ['log', '--first-parent', '--name-only', '-z', '--format=', '--grep=^changes before ']
  const changed = new Set(await git.list([...asked, `${initial}..${tip}`]))
  // What was deleted again is in no commit.
  const between = [...changed].filter((path) => touched.has(path))
  const isLeft = startPaths.some(
    (path) => !touched.has(path) && !plan.includes(path) && !hooked.includes(path),
  )
  return [
    ...(plan.length === 0
      ? []
      : [`; also in it, since it is the plan that you had not committed: ${listed(plan)}`]),
    ...(mixed.length === 0
      ? []
      : [`; also in it, since you changed it after the loop had: ${listed(mixed)}`]),
    ...(between.length === 0
      ? []
      : [`; also in it, since you changed it between two attempts: ${listed(between)}`]),
    ...(hooked.length === 0 ? [] : [`; also in it, added or changed by a hook of yours: ${listed(hooked)}`]),
    ...(isLeft ? ['; your other uncommitted files are as they were'] : []),
  ].join('')
}

/** Files of the user's own that the commit has not, and that were there when the gates ran. */
export async function leftOut(
  { git, change }: Store,
  { commit, tip, startPaths }: { commit: string; tip: string; startPaths: readonly string[] },
): Promise<string[]> {
  const isOut = new Set(await changedPaths(git, commit, tip))
  return startPaths.filter((path) => isOut.has(path) && !isOfPlan(change, path)).map(named)
}

export function renamedWords(
  { refs }: Store,
  { renamed, time }: { renamed: number; time: string },
): string[] {
  if (renamed === 0)
    return ['no commit was renamed: none is named after a checkpoint whose story has a title']
  const what =
    renamed === 1
      ? '1 commit has the name of its story'
      : `${renamed} commits have the names of their stories`
  return [`${what} now; as they were, they are kept as ${refs}/archive/${time}`]
}

/** Moves of the loop's branch by somebody else, before this run began on it as well. */
export async function madeByHand(
  git: Git,
  {
    origin,
    initial,
    adopted,
  }: { origin: string | undefined; initial: string; adopted: GitMemory['adopted'] },
): Promise<GitMemory['adopted']> {
  const to = await git.line(['rev-parse', '--verify', '--quiet', `${initial}^1`], { accept: [1] })
  if (to === '' || to === origin) return adopted
  const since = origin === undefined ? [] : [`^${origin}`]
  const own = ['log', '-1', '--first-parent', `--committer=${ownEmail}`, '--format=%H', to, ...since]
  const from = (await git.line(own)) || origin
  return from === undefined ? adopted : [{ from, to }, ...adopted]
}

/** Commits that somebody else made on the branch between two attempts: after a cleanup only the archive has them as such. */
export async function theirsAmong(git: Git, adopted: GitMemory['adopted']): Promise<string[]> {
  const commits = (await Promise.all(adopted.map((move) => commitsBetween(git, move)))).flat()
  return commits.length === 0 ? [] : [`among them, made by hand: ${commits.join(', ')}`]
}

/** A cleanup was refused, and it was asked for by another name. */
export function asSquash(error: unknown): unknown {
  if (!(error instanceof RalphError) || error.code !== 'finish_conflict') return error
  const { code, message, exitCode, cause } = error
  const hint = error.hint.replace('The cleanup has touched nothing.', 'Nothing was touched.')
  return new RalphError(code, message, {
    hint: hint.replaceAll('--cleanup', '--squash'),
    exitCode,
    cause,
  })
}
