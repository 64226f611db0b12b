// Every loop of the repository, whichever of its work trees it runs in and whoever wrote its state file: a look that asks git nothing.
import { basename } from 'node:path'
import { lastSign } from '../adapters/files/heartbeat.ts'
import { stateFile } from '../adapters/files/paths.ts'
import { readIfThere } from '../adapters/files/whole.ts'
import { worktreesOf } from '../adapters/git/formats/linked-trees.ts'
import { isTaken } from '../adapters/process/pid.ts'
import { isRecord, readJson } from '../core/json.ts'
import { briefOf, freshnessOf, isOver, numberIn, textIn } from '../core/loop-brief.ts'
import type { LoopSeen, WtIteration } from '../ui/app.ts'
import { reportOn } from './reports.ts'
import { isRunning, knownRuns } from './site.ts'
import type { Knowing, KnownRun, Site } from './site.ts'

/** The latest activity first; loops of wt-tools after ralph's own. */
export async function loopsSeen(site: Site, known?: Knowing): Promise<readonly LoopSeen[]> {
  const runs = await knownRuns(site, known)
  const own = await Promise.all(runs.map((run) => ownLoop(site, run)))
  const changes = new Set(runs.map((run) => run.change))
  const others = await Promise.all(worktreesOf(site.git).map((tree) => otherLoop(site, tree, changes)))
  return [...own, ...others].filter((loop) => loop !== undefined)
}

async function ownLoop(site: Site, run: KnownRun): Promise<LoopSeen | undefined> {
  const {
    alive,
    died_at,
    orphan_pids,
    problem,
    where: _where,
    notes: _notes,
    ...file
  } = await reportOn(site, run)
  const worktree = run.state.worktree ?? site.git.worktree
  const brief = briefOf(file, basename(worktree))
  if (brief === undefined) return undefined
  const isElsewhere = run.lock.held === 'elsewhere'
  const freshness = freshnessOf({
    isOver: !alive && died_at === undefined,
    isThere: isElsewhere ? undefined : isRunning(run),
    signAgeMs: site.clock.now() - lastSign(run.paths.sign, run.paths.journal),
  })
  return {
    ...brief,
    freshness,
    worktree,
    ...(died_at !== undefined && { died_at }),
    ...(orphan_pids !== undefined && { orphan_pids }),
    ...(problem !== undefined && { problem }),
  }
}

/** What wt-tools has left in a work tree; and a state file of ralph's whose journal is gone. */
async function otherLoop(
  site: Site,
  worktree: string,
  changes: ReadonlySet<string>,
): Promise<LoopSeen | undefined> {
  const path = stateFile(worktree)
  const bytes = await readIfThere(path).catch(() => undefined)
  const file = bytes === undefined ? undefined : readJson(bytes.toString('utf8'))
  const brief = briefOf(file, basename(worktree))
  if (brief === undefined || !isRecord(file)) return undefined
  if (brief.written_by === 'ralph' && changes.has(brief.change_id)) return undefined
  const pid = numberIn(file, 'terminal_pid')
  const minutes = numberIn(file, 'iteration_timeout_min') || 45
  const wroteMs = lastSign(path)
  const freshness = freshnessOf({
    isOver: isOver(brief),
    isThere: pid === 0 ? undefined : isTaken(pid),
    signAgeMs: site.clock.now() - wroteMs,
    // wt-tools writes only when an iteration begins or ends, ralph once a minute.
    patienceMs: brief.written_by === 'ralph' ? 90_000 : (minutes + 5) * 60_000,
  })
  if (brief.written_by === 'ralph') {
    const problem = 'The journal of this loop is missing; this shows what its state file says.'
    return { ...brief, freshness, worktree, problem }
  }
  return {
    ...brief,
    updated_at: brief.updated_at || site.clock.stamp(wroteMs),
    freshness,
    worktree,
    iterations: iterationsIn(file['iterations']),
  }
}

function iterationsIn(value: unknown): readonly WtIteration[] {
  const entries = Array.isArray(value) ? value.filter(isRecord) : []
  return entries.map((entry) => ({
    n: numberIn(entry, 'n'),
    started: textIn(entry, 'started'),
    ended: textIn(entry, 'ended'),
    done_check: entry['done_check'] === true,
    commits: Array.isArray(entry['commits']) ? entry['commits'].map(String) : [],
    tokens_used: numberIn(entry, 'tokens_used'),
    ...(entry['timed_out'] === true && { timed_out: true as const }),
    ...(entry['tokens_estimated'] === true && { tokens_estimated: true as const }),
  }))
}
