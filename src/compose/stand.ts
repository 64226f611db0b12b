// Before a resume reads anything: the work tree stands on the branch of its run, so that the plan is the run's own.
import { RalphError } from '../core/error.ts'
import type { KnownRun, Site } from './site.ts'

/**
 * Switches where nothing can be lost by it; refuses, with nothing touched, where the user has changes on another branch.
 * A run without its branch (settled by a cleanup, or killed before its first checkpoint) goes on from where the user stands.
 */
export async function standOnBranch({ git }: Site, { change, state }: KnownRun): Promise<void> {
  if (state.settings?.checkpoint === 'stash') return
  const ref = `refs/heads/ralph/${change}`
  const [head, tip] = await Promise.all([
    git.run(['symbolic-ref', '--quiet', 'HEAD'], { accept: [1] }),
    git.run(['rev-parse', '--verify', '--quiet', ref], { accept: [1] }),
  ])
  if (tip.code !== 0 || head.out.trim() === ref) return
  const place = head.code === 0 ? head.out.trim().replace('refs/heads/', '') : 'a detached HEAD'
  const { out } = await git.run(['status', '--porcelain', '-z'])
  if (out !== '') {
    throw new RalphError(
      'repository_state',
      `The run of ${change} is on ralph/${change}, and there are changes on ${place}.`,
      {
        hint: `Nothing was touched. Commit or stash them, then type: git switch ralph/${change} && ralph resume ${change}`,
        exitCode: 2,
      },
    )
  }
  await git.run(['checkout', '--quiet', `ralph/${change}`])
}
