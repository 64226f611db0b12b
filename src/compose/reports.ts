// What the reporting commands show, read off the journals: they compute, and never write a run's files.
import { resolve } from 'node:path'
import { diffAttempt, listAttempts, restoreAttempt } from '../adapters/git/attempts.ts'
import { stateFile } from '../adapters/files/paths.ts'
import { readStateFile } from '../adapters/files/state-file.ts'
import { RalphError } from '../core/error.ts'
import { toStateFile } from '../core/state-file.ts'
import { decisionsOf } from '../core/why.ts'
import type { AttemptList, Decisions, History, Said, StatusReport } from '../ui/app.ts'
import { hiddenPaths } from './checkpoints.ts'
import { chooseRun } from './choose.ts'
import { recoverDead } from './recovery.ts'
import { isRunning, knownRun, knownRuns } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export async function statusOf(site: Site, change: string | undefined): Promise<readonly StatusReport[]> {
  const runs = change === undefined ? await knownRuns(site) : [await must(site, change)]
  return Promise.all(
    runs.map(async (run) => {
      await recoverDead(site, run)
      const now = await knownRun(site, run.change)
      // The talk of the agent is not in the journal: only the file of a living loop knows its last sign.
      const file = isRunning(now) ? await readStateFile(stateFile(now.state.worktree)) : undefined
      const told = file?.change_id === now.change ? file : toStateFile(now.state)
      return { ...told, alive: isRunning(now) }
    }),
  )
}

export async function historyOf(site: Site, change: string | undefined): Promise<History> {
  const run = await must(site, change)
  return { change_id: run.change, iterations: run.state.iterations }
}

export async function whyOf(site: Site, change: string | undefined): Promise<Decisions> {
  const run = await must(site, change)
  return { change_id: run.change, decisions: decisionsOf(run.events) }
}

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

export async function must(site: Site, change: string | undefined): Promise<KnownRun> {
  const run = await chooseRun(site, change, 'any')
  if (run !== undefined) return run
  throw new RalphError(
    'change_not_found',
    change === undefined
      ? 'No loop has run in this repository.'
      : `No loop of ${change} has run in this repository.`,
    {
      hint: 'Start one: ralph loop. What there is: ralph list',
      exitCode: 2,
    },
  )
}
