// Ports for a run that is not running now: enough to recover it, to finish it, or to write the human's word into its journal.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileJournal } from '../adapters/files/journal.ts'
import { loopTree } from '../adapters/git/worktrees.ts'
import { shellGates } from '../adapters/process/gates.ts'
import { measureUsage } from '../adapters/usage/measure.ts'
import { createAgents } from '../adapters/agents/agents.ts'
import { RalphError } from '../core/error.ts'
import type { Absence } from '../core/ownership.ts'
import type { Loop, Ports } from '../engine/run.ts'
import type { EventBody } from '../core/event.ts'
import type { Human } from '../ports.ts'
import { checkpointsFor } from './checkpoints.ts'
import { specFor } from './plan.ts'
import { openSite } from './site.ts'
import type { KnownRun, Site } from './site.ts'

export interface Standing {
  readonly ports: Ports
  /** Hands the engine to the adapters that write ahead, and that ask who may have changed the tree. */
  readonly bind: (loop: Loop) => void
  readonly close: () => Promise<void>
}

/** The site seen from the run's own work tree: a loop in a worktree of its own is controlled from anywhere. */
export async function siteOf(site: Site, run: KnownRun): Promise<Site> {
  const { worktree, home } = run.state
  if (worktree === site.git.worktree) return site
  const there = existsSync(worktree) ? await openSite(worktree, site.env, { warn: site.warn }) : undefined
  if (there?.git.gitCommonDir === site.git.gitCommonDir) return there
  // The repository was moved or copied: the run that its git directory records is this one's.
  if (home === '') return site
  const moved = await loopTree(site.git, run.change)
  if (moved !== undefined) return openSite(moved.worktree, site.env, { warn: site.warn })
  throw new RalphError('repository_state', `The work tree of ${run.change} is gone: ${worktree}`, {
    hint: `If it was moved by hand, tell git: git worktree repair NEW-FOLDER, then type the command again. If it was removed: its commits are on ralph/${run.change}, git merge --squash ralph/${run.change} brings them here. To start anew: git worktree prune, then ralph loop ${run.change} --fresh`,
    exitCode: 2,
  })
}

/** The OpenSpec root, also where the repository has been moved since. */
function rootOf(site: Site, { worktree, root }: KnownRun['state']): string {
  const inside = relative(worktree, root)
  return inside.startsWith('..') ? root : join(site.git.worktree, inside)
}

export async function enginePorts(site: Site, run: KnownRun): Promise<Standing> {
  const journal = fileJournal(run.paths.journal)
  let bound: Loop | undefined
  const tell = (body: EventBody): Promise<void> =>
    bound?.tell(body) ?? Promise.reject(new TypeError('no engine is bound'))
  const absence = (): Absence | undefined => bound?.state.absence
  const { state, paths } = run
  const settings = state.settings
  const checkpoints = checkpointsFor(site, {
    change: run.change,
    strategy: settings?.checkpoint ?? 'branch',
    gates: settings?.gates ?? [],
    writeAhead: tell,
    history: () => journal.read(),
    absence,
    ...(state.home !== '' && { home: (await openSite(state.home, site.env)).git, brought: state.brought }),
  })
  const spec = specFor(site, {
    name: run.change,
    root: rootOf(site, state),
    doneCriteria: settings?.done_criteria ?? 'tasks',
    task: settings?.task ?? '',
    absence,
  })
  return {
    ports: {
      spec,
      checkpoints,
      agent: createAgents({ passThrough: [], agentEnv: {}, noApiKey: false, env: site.env, graceMs: 0 }),
      gates: shellGates({ cwd: site.git.worktree, env: site.env }),
      usage: measureUsage({
        worktree: site.git.worktree,
        env: site.env,
        clock: site.clock,
        loopStarted: state.startedAt,
        source: 'auto',
      }),
      journal,
      clock: site.clock,
      human: nobody,
      wrapUp: () => Promise.resolve({ warnings: [] }),
      mode: 'resume',
      transcript: (n) => join(paths.transcripts, `${n}.log`),
    },
    bind: (loop) => {
      bound = loop
    },
    close: () => journal.close(),
  }
}

/** In a pipe nobody answers. */
const nobody: Human = {
  choose: () => Promise.resolve('keep'),
  isDone: () => Promise.resolve('later'),
}
