// attempts, diff and restore: every attempt is kept under a ref, until the user says otherwise.
import { join, resolve } from 'node:path'
import { readJournal } from '../adapters/files/journal.ts'
import { diffAttempt, listAttempts, listEarlier, restoreAttempt } from '../adapters/git/attempts.ts'
import { RalphError } from '../core/error.ts'
import type { IterationRecord } from '../core/event.ts'
import { replay } from '../core/loop.ts'
import { initialState } from '../core/state.ts'
import type { AttemptList, Control, Said } from '../ui/app.ts'
import { hiddenPaths } from './checkpoints.ts'
import { must } from './choose.ts'
import { openRun } from './open-run.ts'
import { needsRepair } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export async function attemptsOf(site: Site, change: string | undefined): Promise<AttemptList> {
  const run = await must(site, change)
  const refs = new Map((await listAttempts(site.git, run.change)).map((attempt) => [attempt.n, attempt]))
  const attempts = run.state.iterations.flatMap((iteration) => {
    const attempt = refs.get(iteration.n)
    return attempt === undefined ? [] : [{ ...summary(iteration), ref: attempt.ref, commit: attempt.commit }]
  })
  return { attempts, earlier: await earlierOf(site, run) }
}

async function earlierOf(site: Site, run: KnownRun): Promise<AttemptList['earlier']> {
  const refs = await listEarlier(site.git, run.change)
  const names = [...new Set(refs.map((ref) => ref.run))]
  const records = new Map(
    await Promise.all(
      names.map(async (name) => {
        // Of a damaged one, or another version's, what can be read; its refs are there all the same.
        const { events } = await readJournal(join(run.paths.archive, name, 'journal.ndjson'))
        return [name, replay(initialState(run.change), events).iterations] as const
      }),
    ),
  )
  return refs.map((ref) => {
    const record = records.get(ref.run)?.find((iteration) => iteration.n === ref.n)
    return { ...(record !== undefined && summary(record)), ...ref }
  })
}

function summary({ n, story_id, attempt, verdict, reason }: IterationRecord) {
  return { n, story_id, attempt, verdict, reason }
}

export async function diffOf(site: Site, change: string | undefined, n: number): Promise<string> {
  const run = await must(site, change)
  return (await diffAttempt(site.git, run.change, n)).toString('utf8')
}

export async function restoreTo(
  site: Site,
  { change, n, to }: Parameters<Control['restore']>[0],
): Promise<Said> {
  const run = await must(site, change)
  const restored = (folder?: string): Promise<string> =>
    restoreAttempt(site.git, run.change, n, {
      protectedPaths: hiddenPaths,
      ...(folder !== undefined && { to: folder }),
    })
  const where =
    to === undefined ? await inThisTree(site, run, n, restored) : await restored(resolve(site.cwd, to))
  return { message: where, data: { change_id: run.change, n, to: to ?? site.git.worktree } }
}

/** With both locks: a loop of any change in this work tree would take what is brought back for its agent's. */
async function inThisTree(
  site: Site,
  run: KnownRun,
  n: number,
  work: () => Promise<string>,
): Promise<string> {
  const aside = `Bring the attempt into a folder instead: ralph restore ${n} --to DIR`
  const held = await openRun(site, run.change, { purpose: 'repair' }).catch(refused(aside))
  try {
    if (needsRepair(held.run)) {
      throw new RalphError('repository_state', `The loop of ${run.change} died, and is not in order yet.`, {
        hint: `Nothing was touched. First: ralph resume ${run.change}, or ralph finish ${run.change} --keep. ${aside}`,
        exitCode: 2,
      })
    }
    await held.enter(site).catch(refused(aside))
    return await work()
  } finally {
    await held.release()
  }
}

function refused(hint: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RalphError) || error.code !== 'locked') throw error
    throw new RalphError('locked', error.message, { hint, exitCode: 7, cause: error })
  }
}
