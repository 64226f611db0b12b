// The engine of an open run: its stream, from its journal and back into it, and the ports of a run that no loop is running now.
import { join } from 'node:path'
import { createAgents } from '../adapters/agents/agents.ts'
import { fileJournal } from '../adapters/files/journal.ts'
import { noLogins } from '../adapters/files/logins.ts'
import { gateLogIn, stateFile } from '../adapters/files/paths.ts'
import type { Reserve } from '../adapters/files/reserve.ts'
import { openStateFile } from '../adapters/files/state-file.ts'
import { nothingToResume } from '../adapters/git/store.ts'
import { shellGates } from '../adapters/process/gates.ts'
import { measureUsage } from '../adapters/usage/measure.ts'
import { beginning, cursorAfter } from '../core/cursor.ts'
import { allGates } from '../core/limits.ts'
import type { Absence } from '../core/ownership.ts'
import { initialState } from '../core/state.ts'
import { createLoop } from '../engine/run.ts'
import type { Loop, Ports } from '../engine/run.ts'
import { openStream } from '../engine/stream.ts'
import type { Reader, Stream } from '../engine/stream.ts'
import type { Human } from '../ports.ts'
import { checkpointsFor } from './checkpoints.ts'
import { explained } from './damage.ts'
import { homeOf } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import { specFor } from './plan.ts'
import { rootOf } from './root.ts'
import { readKept, settingsFile } from './run-settings.ts'
import type { KnownRun, Site } from './site.ts'
import { keepStateFile } from './state-keeper.ts'

export interface RunStream extends Stream {
  close(): Promise<void>
}

/** Of an open run, from what its journal tells; `isNew`: from nothing, the journal before it is archived. */
export function streamOf(
  site: Site,
  { run }: Pick<OpenRun, 'run'>,
  { isNew = false, spend }: { readonly isNew?: boolean; readonly spend?: Reserve['spend'] } = {},
): RunStream {
  let isClosing = false
  const journal = fileJournal(run.paths.journal, {
    ...(spend !== undefined && { spend }),
    onChanged: (message) => {
      if (isClosing) site.warn(message)
      else stream.tell({ type: 'warning', code: 'journal', message }).catch(() => undefined)
    },
  })
  const from = isNew
    ? { state: initialState(run.change), seq: 0, cursor: beginning }
    : { state: run.state, seq: run.events.at(-1)?.seq ?? 0, cursor: cursorAfter(run.events) }
  const stream: Stream = openStream({ journal, clock: site.clock }, from)
  const close = (): Promise<void> => {
    isClosing = true
    return journal.close()
  }
  return Object.assign(stream, { close })
}

/** The engine of a run that is not running now, its state file kept in step. Call with its locks held. */
export async function withEngine<T>(
  there: Site,
  held: OpenRun,
  work: (loop: Loop, ports: Ports) => Promise<T>,
  readers: readonly Reader[] = [],
): Promise<T> {
  const { run } = held
  const stream = streamOf(there, held)
  try {
    const ports = await enginePorts(there, run, stream)
    const place = stateFile(there.git.worktree)
    const { writer, note } = await openStateFile(place, run.paths.archive, run.change, there.warn)
    if (note !== '') there.warn(note)
    let fault: { readonly error: unknown } | undefined
    const keeper = keepStateFile(writer, there.clock, (error) => {
      fault = { error }
    })
    try {
      const result = await work(createLoop(ports, stream, [keeper.read, ...readers]), ports)
      await keeper.settle()
      if (fault !== undefined) throw fault.error
      await held.reread()
      return result
    } finally {
      keeper.stop()
    }
  } finally {
    await stream.close()
  }
}

/** Enough to recover a run, to finish it, or to write the human's word into its journal. */
async function enginePorts(site: Site, { change, paths, state }: KnownRun, stream: Stream): Promise<Ports> {
  if (state.phase === 'idle') throw nothingToResume(change)
  const absence = (): Absence | undefined => stream.state.absence
  const { settings } = state
  const home = state.home === undefined ? undefined : await homeOf(site, state.home)
  const checkpoints = checkpointsFor(site, {
    change,
    strategy: settings.checkpoint,
    gates: allGates(settings),
    stream,
    ...(home !== undefined && { home: home.git, brought: state.brought }),
  })
  const pattern = (await readKept(settingsFile({ paths })))?.tasks_pattern
  const spec = specFor(site, {
    name: change,
    root: rootOf(site, state),
    doneCriteria: settings.done_criteria,
    task: settings.task,
    ...(pattern !== undefined && { pattern }),
    absence,
  })
  return {
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
    logins: noLogins,
    clock: site.clock,
    human: nobody,
    wrapUp: () => Promise.resolve({ warnings: [] }),
    mode: 'resume',
    transcript: (n) => join(paths.transcripts, `${n}.log`),
    gateLog: (n, byHand) => gateLogIn(paths.transcripts, n, byHand),
    explain: (error) => explained(site, home ?? site, { change, paths }, error),
  }
}

/** In a pipe nobody answers. */
const nobody: Human = {
  choose: () => Promise.resolve('keep'),
  isDone: () => Promise.resolve('later'),
}
