// attempts, diff and restore: every attempt is kept under a ref, until the user says otherwise.
import { resolve } from 'node:path'
import { diffAttempt, listAttempts, restoreAttempt } from '../adapters/git/attempts.ts'
import { RalphError } from '../core/error.ts'
import type { AttemptList, Said } from '../ui/app.ts'
import { hiddenPaths } from './checkpoints.ts'
import { must } from './choose.ts'
import { isRunning } from './site.ts'
import type { Site } from './site.ts'

export async function attemptsOf(site: Site, change: string | undefined): Promise<AttemptList> {
  const run = await must(site, change)
  const refs = new Map((await listAttempts(site.git, run.change)).map((attempt) => [attempt.n, attempt]))
  return {
    attempts: run.state.iterations.flatMap((iteration) => {
      const attempt = refs.get(iteration.n)
      if (attempt === undefined) return []
      const { n, story_id, verdict, reason } = iteration
      return [
        {
          n,
          story_id,
          attempt: iteration.attempt,
          verdict,
          reason,
          ref: attempt.ref,
          commit: attempt.commit,
        },
      ]
    }),
  }
}

export async function diffOf(site: Site, change: string | undefined, n: number): Promise<string> {
  const run = await must(site, change)
  return (await diffAttempt(site.git, run.change, n)).toString('utf8')
}

export async function restoreTo(
  site: Site,
  change: string | undefined,
  n: number,
  to: string | undefined,
): Promise<Said> {
  const run = await must(site, change)
  if (to === undefined && isRunning(run)) {
    throw new RalphError('locked', `The loop of ${run.change} is running: its work tree is not yours now.`, {
      hint: `Bring the attempt into a folder instead: ralph restore ${n} --to DIR`,
      exitCode: 7,
    })
  }
  const where = await restoreAttempt(site.git, run.change, n, {
    protectedPaths: hiddenPaths,
    ...(to !== undefined && { to: resolve(site.cwd, to) }),
  })
  return { message: where, data: { change_id: run.change, n, to: to ?? site.git.worktree } }
}
