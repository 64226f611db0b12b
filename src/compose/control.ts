// done, finish, clean: each is carried out or refused with the reason; none is ever lost.
import { cleanAttempts } from '../adapters/git/attempts.ts'
import { wayOut } from '../adapters/git/lost-record.ts'
import { openStateFile } from '../adapters/files/state-file.ts'
import { stateFile } from '../adapters/files/paths.ts'
import { readSettingsFile } from '../config/files.ts'
import { userFolder } from '../config/load.ts'
import { RalphError } from '../core/error.ts'
import { createLoop } from '../engine/run.ts'
import type { Loop, Ports } from '../engine/run.ts'
import type { App, Said } from '../ui/app.ts'
import { recoverDead } from './recovery.ts'
import { acceptGitSettings } from './checkpoints.ts'
import { chooseRun } from './choose.ts'
import { agree, unagreed } from './config-trust.ts'
import { damagedRun } from './damage.ts'
import { acquireLocks } from './session.ts'
import { isRunning, knownRun } from './site.ts'
import type { KnownRun, Site } from './site.ts'
import { keepStateFile } from './state-keeper.ts'
import { siteOf, standingPorts } from './standing-ports.ts'

export async function sayDone(site: Site, change: string | undefined): Promise<Said> {
  const run = await ended(site, change)
  if (run.state.settings?.done_criteria !== 'manual') {
    throw new RalphError(
      'usage',
      `${run.change} is done when its tasks are ticked; only a loop with --done manual waits for a human's word.`,
      {
        hint: `Where it stands: ralph status ${run.change}`,
        exitCode: 2,
      },
    )
  }
  if (run.state.status === 'done') {
    return { message: `${run.change} is done already.`, data: { change_id: run.change, status: 'done' } }
  }
  await withEngine(site, run, async (loop) => {
    await loop.tell({ type: 'human.done' })
    await loop.run()
  })
  return {
    message: `${run.change} is done, by your word.`,
    next: `ralph finish ${run.change} --cleanup (or --keep)`,
    data: { change_id: run.change, status: 'done' },
  }
}

/** The choice, the user's word on what agents changed of config files and git's settings, or both. */
export async function finishOrAccept(
  site: Site,
  { change, choice, acceptsConfig }: Parameters<App['finish']>[0],
): Promise<Said> {
  const finished = choice === undefined ? undefined : await finishRun(site, change, choice)
  if (!acceptsConfig && finished !== undefined) return finished
  const run = await ended(site, change)
  const files = {
    project: await readSettingsFile(site.git.worktree),
    user: await readSettingsFile(userFolder(site.env)),
  }
  const doubtful = await unagreed(site.git.gitCommonDir, files)
  await agree(site.git.gitCommonDir, files)
  const taken = [
    ...doubtful.map((what) => what.replace(/, and you have not agreed to that$/, ': agreed')),
    ...(await acceptGitSettings(site, run.change)),
  ]
  const message = taken.length === 0 ? `There was nothing to agree to for ${run.change}.` : taken.join('\n')
  return {
    ...finished,
    message: finished === undefined ? message : `${finished.message}\n${message}`,
    data: { ...finished?.data, change_id: run.change, accepted: taken },
  }
}

export async function finishRun(
  site: Site,
  change: string | undefined,
  choice: 'cleanup' | 'keep',
): Promise<Said> {
  const run = await ended(site, change)
  const report = await withEngine(site, run, async (loop, ports) => {
    const finished = await ports.checkpoints.finish(choice)
    await loop.tell({ type: 'loop.finished', choice, ok: true, message: finished.message })
    return finished
  })
  // A run that is not done is gone on with in its tree.
  const ownTree = run.state.home !== '' && choice === 'cleanup' && run.state.status === 'done'
  return {
    message: report.message,
    // Not removed by ralph: ignored files in it are in no commit.
    ...(ownTree && { next: `git worktree remove ${run.state.worktree}` }),
    data: { change_id: run.change, choice, user_paths: report.userPaths, loop_paths: report.loopPaths },
  }
}

export async function cleanRun(site: Site, change: string | undefined, attempts: boolean): Promise<Said> {
  const run = await ended(site, change)
  if (!attempts) {
    throw new RalphError('usage', 'Say what to clean.', {
      hint: `ralph clean ${run.change} --attempts`,
      exitCode: 2,
    })
  }
  const release = await acquireLocks(site, run.change, run.state.runId)
  try {
    const count = await cleanAttempts(site.git, run.change)
    return {
      message: `${count} attempts of ${run.change} are gone.`,
      data: { change_id: run.change, attempts: count },
    }
  } finally {
    await release()
  }
}

/** The run, brought in order if it had died; refused while it is running. */
async function ended(site: Site, change: string | undefined): Promise<KnownRun> {
  const run = await chooseRun(site, change, 'any')
  if (run === undefined) {
    throw new RalphError(
      'nothing_to_resume',
      `There is no run of ${change ?? 'any change'} in this repository.`,
      {
        hint: (change === undefined ? '' : await wayOut(site.git, change)) || 'What there is: ralph list',
        exitCode: 2,
      },
    )
  }
  if (isRunning(run)) {
    throw new RalphError(
      'locked',
      `The loop of ${run.change} is still running${run.lock.held === 'alive' ? ` (pid ${run.lock.owner.pid})` : ''}.`,
      {
        hint: `Stop it first: ralph stop ${run.change}`,
        exitCode: 7,
      },
    )
  }
  if (run.damage !== '') throw await damagedRun(site, run)
  await recoverDead(site, run)
  return knownRun(site, run.change)
}

async function withEngine<T>(
  site: Site,
  run: KnownRun,
  work: (loop: Loop, ports: Ports) => Promise<T>,
): Promise<T> {
  const there = await siteOf(site, run)
  const release = await acquireLocks(there, run.change, run.state.runId)
  const { ports, bind, close } = await standingPorts(there, run)
  const { writer } = await openStateFile(stateFile(there.git.worktree), run.paths.archive, run.change)
  let fault: unknown
  const keeper = keepStateFile(writer, site.clock, (error) => {
    fault = error
  })
  try {
    const loop = createLoop(ports, { state: run.state, seq: run.events.at(-1)?.seq ?? 0 }, [keeper.read])
    bind(loop.tell)
    const result = await work(loop, ports)
    await keeper.settle()
    if (fault !== undefined) throw fault
    return result
  } finally {
    keeper.stop()
    await close()
    await release()
  }
}
