// A run whose journal cannot be read to its end: what is known of it all the same, what can still be done, and the way out.
import { existsSync, lstatSync } from 'node:fs'
import { stateFile } from '../adapters/files/paths.ts'
import { readStateFile } from '../adapters/files/state-reader.ts'
import { shown } from '../adapters/git/git.ts'
import { wayOut } from '../adapters/git/start/lost-record.ts'
import { loopTree } from '../adapters/git/start/worktrees.ts'
import { reapByMarker } from '../adapters/process/reap.ts'
import { RalphError, recordGone } from '../core/error.ts'
import type { StateFile } from '../core/state-file.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import type { StatusReport } from '../ui/app.ts'
import { isRunning, knownRun } from './site.ts'
import type { KnownRun, Site } from './site.ts'

/** For commands that would go on from a state that nobody knows: nothing is touched, and git alone brings everything back. */
export async function damagedRun(site: Site, { change, damage }: KnownRun): Promise<RalphError> {
  const out = await wayOut(site.git, change, { why: '' })
  const kept = `What ralph kept: git for-each-ref refs/ralph/${change}. Start over: ralph loop ${change} --fresh (the journal is archived as it is).`
  return new RalphError('journal_unreadable', `${damage} What happened after it is not known.`, {
    hint: `Nothing was touched. If a newer ralph wrote it, update ralph. An agent that still runs is ended by: ralph stop ${change}. ${out === '' ? kept : out}`,
  })
}

/** Whatever fails once somebody has removed the record of the run, fails for that. `home`: where the user types. */
export async function explained(
  { git }: Site,
  home: Site,
  { change, paths: { journal } }: Pick<KnownRun, 'change' | 'paths'>,
  error: unknown,
): Promise<unknown> {
  // Without the repository it is more than the record, and whoever looked for that has said so.
  if (existsSync(journal) || lstatSync(git.gitCommonDir, { throwIfNoEntry: false })?.isDirectory() !== true)
    return error
  const gone = `${recordGone} was removed while the loop ran, by the agent, by a gate or by somebody else: ${journal}`
  return new RalphError('journal_unreadable', gone, {
    hint: `The files in ${git.worktree} stay as they are. ${await wayOut(home.git, change, { why: '' })}`,
    cause: error,
  })
}

/** The state file is the loop's own last word; without it, what stood before the damaged line. */
export async function damagedStatus(site: Site, run: KnownRun): Promise<StatusReport> {
  const file = await stateOf(site, run)
  const shown = file === undefined ? 'what came before that line' : 'what the state file says'
  return {
    ...ofTheDead(file ?? toStateFile(run.state), isRunning(run)),
    problem: `${run.damage} This shows ${shown}.`,
  }
}

/** A journal that was emptied or removed, while the state file tells of a run. */
export async function lostStatus(site: Site, change: string | undefined): Promise<StatusReport | undefined> {
  const file = (await readStateFile(stateFile(site.git.worktree))) ?? (await stateElsewhere(site, change))
  if (file === undefined || (change !== undefined && file.change_id !== change)) return undefined
  const run = await knownRun(site, file.change_id)
  if (run.state.phase !== 'idle' || run.damage !== undefined) return undefined
  return {
    ...ofTheDead(file, isRunning(run)),
    problem: `The journal ${run.paths.journal} is empty or gone. This shows what the state file says.`,
  }
}

/** Of a loop in a work tree of its own, which its branch still tells of. */
async function stateElsewhere({ git }: Site, change: string | undefined): Promise<StateFile | undefined> {
  const found = await git.line(['for-each-ref', '--format=%(refname:lstrip=3)', 'refs/heads/ralph/'])
  const names = found.split('\n').map(shown)
  for (const name of names.filter((each) => each !== '' && (change ?? each) === each)) {
    const tree = await loopTree(git, name)
    const file = tree && (await readStateFile(stateFile(tree.worktree)))
    if (file?.change_id === name) return file
  }
  return undefined
}

/** By what the lock and the journal tell of its processes; resolves with those that were ended. */
export async function endUnknown({ lock, state }: KnownRun): Promise<readonly number[]> {
  const marked = 'owner' in lock ? lock.owner?.run_id : undefined
  const ended: number[] = []
  for (const runId of new Set([marked, state.runId]))
    if (runId !== undefined && runId !== '') ended.push(...(await reapByMarker(runId)).ended)
  return ended
}

async function stateOf(site: Site, run: KnownRun): Promise<StateFile | undefined> {
  const file = await readStateFile(stateFile(run.state.worktree ?? site.git.worktree))
  return file?.change_id === run.change ? file : undefined
}

function ofTheDead(file: StateFile, alive: boolean): StatusReport {
  const isActive = file.status === 'running' || file.status === 'starting'
  return { ...file, alive, ...(isActive && !alive && { status: 'stopped' as const }) }
}
