// Goes to another commit and overwrites nothing of what git ignores here: by itself git would.
import { RalphError } from '../../../core/error.ts'
import type { Git } from '../git.ts'
import { holdDetached } from '../refs/users-own.ts'

/** `what` has the files in whose place ignored ones of the user's lie. Resolves with a sentence on what HEAD left, see `holdDetached`. */
export async function checkOut(
  git: Git,
  to: readonly string[],
  what: string,
  change: string,
): Promise<string> {
  const left = await holdDetached(git, `refs/ralph/${change}`)
  const { code, said } = await git.run(['checkout', '--quiet', '--no-overwrite-ignore', ...to, '--'], {
    accept: [1],
  })
  if (code === 0) return left
  const names = said.split('\n').filter((line) => line.startsWith('\t'))
  throw new RalphError(
    'repository_state',
    `${what} has files that git ignores in ${git.worktree}: ${names.map((line) => line.trim()).join(', ') || said.trim()}.`,
    { hint: 'Nothing was touched. They are yours: move them away, then type the command again.' },
  )
}
