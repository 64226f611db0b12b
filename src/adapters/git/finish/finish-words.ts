// What a finish says of the commits that it made, renamed or brought.
import { RalphError } from '../../../core/error.ts'
import type { GitMemory } from '../../../core/git-memory.ts'
import { commitsBetween } from '../attempt/adopted.ts'
import type { Git } from '../git.ts'
import { listed } from '../attempt/reunite.ts'
import type { Store } from '../store.ts'

/** What of the user's own is in the commit of a squash, and what is not. */
export async function besidesWork(
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
    ...(isLeft ? ['; your other uncommitted files are as they were'] : []),
  ].join('')
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
