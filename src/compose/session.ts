// One loop from its first event to its last, with everything that reads along: state file, printer, notifiers.
import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import { stateFile } from '../adapters/files/paths.ts'
import { setPaused, watchWishes } from '../adapters/files/wish-files.ts'
import type { Reserve } from '../adapters/files/reserve.ts'
import { openStateFile } from '../adapters/files/state-file.ts'
import { talkLog } from '../adapters/files/talk.ts'
import { excludeFromGit } from '../adapters/git/repository.ts'
import { checkpointFolder } from '../adapters/git/store.ts'
import { dropSpare } from '../adapters/git/refs/watch.ts'
import { killNow } from '../adapters/process/reap.ts'
import { again, RalphError } from '../core/error.ts'
import type { EventBody, LoopEvent } from '../core/event.ts'
import type { LoopState } from '../core/state.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import { LoopBug, createLoop } from '../engine/run.ts'
import type { Ports } from '../engine/run.ts'
import type { Reader, Stream } from '../engine/stream.ts'
import type { LoopRequest } from '../ui/app.ts'
import { settleArchiving } from './archive.ts'
import { hiddenPaths } from './checkpoints.ts'
import { pathsOf } from './site.ts'
import type { Site } from './site.ts'
import { keepStateFile } from './state-keeper.ts'

export interface Session {
  readonly site: Site
  readonly change: string
  readonly runId: string
  readonly worktree: string
  readonly ports: Ports
  readonly stream: Stream
  /** Filled in here: pid, worktree. */
  readonly started: Omit<
    Extract<EventBody, { type: 'loop.started' }>,
    'type' | 'run_id' | 'pid' | 'worktree' | 'worktree_name'
  >
  readonly warnings: readonly string[]
  /** What became of the run before. */
  readonly earlier: readonly string[]
  /** What the repair of a dead loop said on stderr before it undid anything: events, too, where they are asked for. */
  readonly repaired: readonly string[]
  readonly tell: LoopRequest['tell']
  readonly onRunning: LoopRequest['onRunning']
  /** Spent when the disk is full: from then on the loop goes to its end. */
  readonly reserve: Reserve
  /** After the last event, before the process ends: notifications and the like. */
  readonly atEnd: (event: LoopEvent) => Promise<readonly string[]>
}

export async function runSession(session: Session): Promise<number> {
  const { site, change, runId, worktree, ports } = session
  const paths = pathsOf(site, change)
  await excludeFromGit(
    site.git.gitCommonDir,
    hiddenPaths.map((path) => `/${path}`),
  )
  const replaced = (message: string): void => void loop.tell({ type: 'warning', code: 'user_file', message })
  const opened = openStateFile(stateFile(worktree), paths.archive, change, replaced)
  const { writer, note } = await opened.catch((error: unknown) => {
    throw error instanceof RalphError ? error : stateFileError(error, worktree)
  })
  let last: LoopEvent | undefined
  const remember: Reader = (event, state, cursor) => {
    last = event
    session.tell(event, state, cursor)
  }
  const keeper = keepStateFile(writer, site.clock, (error) => {
    if (!session.reserve.spend(error)) loop.fail(stateFileError(error, worktree))
  })
  const talk = talkLog(paths.talk)
  const loop = createLoop(ports, session.stream, [keeper.read, talk.read, remember])
  session.reserve.onSpent((error) => loop.fail(error))
  // Of a loop that was killed while it was paused: whoever starts it again wants it to run.
  setPaused(paths.pause, false)
  rmSync(paths.skip, { force: true })
  const unwatch = watchWishes(paths, {
    pause: (isWanted) => loop.pause(isWanted),
    note: ({ id, text }) => loop.note(id, text),
    skipWait: (untilMs) => loop.skipWait(untilMs),
    stop: (signal) => loop.stop(signal),
  })
  const release = session.onRunning({
    get isAsking() {
      return loop.state.phase === 'choosing'
    },
    stop: (signal) => loop.stop(signal),
    pause(isWanted) {
      setPaused(paths.pause, isWanted)
      loop.pause(isWanted)
    },
    fail: (error) => loop.fail(error),
    kill() {
      killNow(runId)
      // The next command records the iteration; until then the file must not say that anything runs.
      writer.writeNow({
        ...toStateFile(loop.state),
        status: 'stopped',
        stop_reason: 'signal',
        updated_at: site.clock.stamp(),
      })
    },
  })
  try {
    const begun = loop.tell({
      type: 'loop.started',
      run_id: runId,
      pid: process.pid,
      worktree,
      worktree_name: basename(worktree),
      ...session.started,
    })
    const warned = [
      ...session.earlier.map((message) => ['earlier_run', message] as const),
      ...session.repaired.map((message) => ['repaired', message] as const),
      ...[note, ...session.warnings].map((message) => ['start', message] as const),
    ]
      .filter(([, message]) => message !== '')
      .map(([code, message]) => loop.tell({ type: 'warning', code, message }))
    // A journal that cannot take them: the loop has its own way to end.
    const [first] = await Promise.allSettled([begun, ...warned])
    if (first.status === 'fulfilled') await settleArchiving(site, change)
    const state = await loop.run().catch((error: unknown) => endedAllTheSame(site, loop.state, error))
    await keeper.settle()
    if (last !== undefined) for (const message of await session.atEnd(last)) site.warn(message)
    return state.outcome?.exitCode ?? 1
  } catch (error) {
    await keeper.settle()
    throw error instanceof LoopBug ? (error.cause ?? error) : error
  } finally {
    unwatch()
    release()
    talk.close()
    keeper.stop()
    dropSpare(checkpointFolder(site.git.gitCommonDir, change))
  }
}

/** A journal that could not be written: told as the loop's end, unless only `complete` itself is missing there. */
function endedAllTheSame(site: Site, state: LoopState, error: unknown): LoopState {
  if (!(error instanceof RalphError) || state.phase !== 'ended') throw error
  if (state.outcome?.stopReason !== 'error')
    site.warn(`${error.message} The next command records that the loop has ended.`)
  return state
}

function stateFileError(error: unknown, worktree: string): RalphError {
  const message = error instanceof Error ? error.message : String(error)
  return new RalphError('disk', `The state file in ${worktree} cannot be written: ${message}`, {
    hint: `The journal and the checkpoints are safe in the git directory. Fix it (.claude must be a folder, writable, with room on the disk), then ${again}.`,
    cause: error,
  })
}
