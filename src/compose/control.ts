// done and clean, and the run in hand that they and `finish` need: each is carried out or refused with the reason.
import { cleanAttempts, keptByCleaning, listAttempts, listEarlier } from '../adapters/git/attempt/attempts.ts'
import { shown } from '../adapters/git/git.ts'
import { wayOut } from '../adapters/git/start/lost-record.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import type { UsersOwn } from '../adapters/git/refs/users-own.ts'
import { RalphError } from '../core/error.ts'
import type { Control, Said } from '../ui/app.ts'
import { chooseRun, onlyRun } from './choose.ts'
import { damagedRun } from './damage.ts'
import { openRun } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import { enterTree, repairRun } from './recovery.ts'
import { withEngine } from './run-engine.ts'
import { isRunning, needsRepair } from './site.ts'
import type { Site } from './site.ts'
import { parkedHere } from './whereabouts.ts'

export async function sayDone(
  site: Site,
  change: string | undefined,
  /** The queue has looked at what an agent made of a conflict. */
  isJudged = false,
): Promise<Said> {
  return withRun(site, change, async (held) => {
    const { change: name, state } = held.run
    const parked = isJudged ? undefined : await parkedHere(site, held.run)
    if (parked !== undefined && parked.byLoop !== true)
      throw (await import('./queue-entry.ts')).parkedError(name, parked)
    if (state.settings?.done_criteria !== 'manual') {
      throw new RalphError(
        'usage',
        `${name} is done when its tasks are ticked; only a loop with --done manual can be marked as done.`,
        { hint: `Where it stands: ralph status ${name}` },
      )
    }
    const there = await inOrder(site, held)
    const data = { change_id: name, status: 'done' }
    if (held.run.state.status === 'done') return { message: `${name} is done already.`, data }
    await withEngine(there, held, async (loop) => {
      await loop.tell({ type: 'human.done' })
      await loop.run()
    })
    // After a cleanup its branch is gone, and its work is with the user.
    const isBrought =
      state.settings.checkpoint === 'branch' &&
      state.choice === 'cleanup' &&
      (await readRef(site.git, `refs/heads/ralph/${name}`)) === undefined
    return {
      message: `${name} is marked as done.`,
      ...(!isBrought && { next: `ralph finish ${name} --cleanup` }),
      data,
    }
  })
}

/** What an agent made of a conflict was not accepted: in its record, too, it is not done. */
export async function sayRefused(site: Site, change: string, problems: readonly string[]): Promise<void> {
  await withRun(site, change, async (held) => {
    const there = await inOrder(site, held)
    await withEngine(there, held, async (loop) => {
      await loop.tell({ type: 'merge.refused', problems: [...problems] })
      await loop.run()
    })
  })
}

/** The one deed that cannot be undone: the change is named or the only one, and the user has said yes. */
export async function cleanRun(
  site: Site,
  { change, attempts, agrees }: Parameters<Control['clean']>[0],
): Promise<Said> {
  const name = change ?? (await onlyRun(site, 'ralph clean NAME --attempts'))
  if (!attempts) {
    throw new RalphError('usage', 'Say what to delete.', { hint: `ralph clean ${name ?? 'NAME'} --attempts` })
  }
  if (name !== undefined && agrees !== undefined) {
    const kept = (await Promise.all([listAttempts(site.git, name), listEarlier(site.git, name)])).flat()
      .length
    const own = kept > 0 ? (await keptByCleaning(site.git, name)).length : 0
    const stays =
      own === 0 ? '' : ` What ralph keeps of your own work (${own === 1 ? '1 ref' : `${own} refs`}) stays.`
    const question = `Delete ${attemptsOf(kept, name)}? They cannot be brought back.${stays}`
    if (kept > 0 && !(await agrees(question)))
      return { message: 'Nothing was deleted.', data: { change_id: name, attempts: 0 } }
  }
  return withRun(site, name, async (held) => {
    const { run } = held
    if (needsRepair(run)) {
      throw new RalphError(
        'unfinished_run',
        `The work tree of ${run.change} is not repaired yet, and its attempts may hold the only copy of your work.`,
        { hint: `First: ralph resume ${run.change} or ralph finish ${run.change} --keep` },
      )
    }
    await enterTree(held)
    const { count, kept } = await cleanAttempts(site.git, run.change)
    const said =
      count === 0 ? `No attempt of ${run.change} is kept.` : `Deleted ${attemptsOf(count, run.change)}.`
    return {
      message: [said, ...keptWords(kept)].join('\n'),
      data: { change_id: run.change, attempts: count, ...(kept.length > 0 && { kept: [...kept] }) },
    }
  })
}

function keptWords(kept: readonly UsersOwn[]): readonly string[] {
  if (kept.length === 0) return []
  return [
    'These stay: they may be your own work, and no branch, tag or stash has it. To delete one: git update-ref -d REF',
    ...kept.map(({ ref, what }) => `  ${ref}   ${what}`),
  ]
}

function attemptsOf(count: number, change: string): string {
  return `${count} ${count === 1 ? 'attempt' : 'attempts'} of ${change}`
}

/** The run in hand, its work tree too, and whatever a dead loop left there put in order. */
export async function inOrder(site: Site, held: OpenRun): Promise<Site> {
  const detail = await repairRun(held, (message) => site.warn(message))
  if (detail !== '') site.warn(detail)
  return held.enterOwn()
}

/** Where a record is gone, its branch may still tell of a run. */
async function wayOutOf({ git }: Site, change: string | undefined): Promise<string> {
  if (change !== undefined) return wayOut(git, change)
  const found = await git.line(['for-each-ref', '--format=%(refname:lstrip=3)', 'refs/heads/ralph/'])
  const names = found.split('\n').filter((name) => name !== '')
  return names.length === 1 && names[0] !== undefined ? wayOut(git, shown(names[0])) : ''
}

/** The run that is meant, its lock taken; refused while its loop is running. */
export async function withRun<T>(
  site: Site,
  change: string | undefined,
  work: (held: OpenRun) => Promise<T>,
): Promise<T> {
  const run = await chooseRun(site, change, 'any')
  if (run === undefined) {
    throw new RalphError(
      'nothing_to_resume',
      `There is no run of ${change ?? 'any change'} in this repository.`,
      { hint: (await wayOutOf(site, change)) || 'What there is: ralph list' },
    )
  }
  if (isRunning(run)) {
    throw new RalphError(
      'locked',
      `The loop of ${run.change} is still running${run.lock.held === 'alive' ? ` (pid ${run.lock.owner.pid})` : ''}.`,
      { hint: `Stop it first: ralph stop ${run.change}` },
    )
  }
  // Not with its lock in hand: that tells whose the orphans are.
  if (run.damage !== undefined) throw await damagedRun(site, run)
  return openRun(site, run.change, { purpose: 'repair' }, async (held) => {
    if (held.run.damage !== undefined) throw await damagedRun(site, held.run)
    return work(held)
  })
}
