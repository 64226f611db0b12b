// Tells events as a loop does: the engine's own `tell`, the real journal and the real talk log, without agent and git.
import { systemClock } from '../../../src/adapters/clock.ts'
import { fileJournal } from '../../../src/adapters/files/journal.ts'
import { readJournal } from '../../../src/adapters/files/journal-text.ts'
import { runPaths } from '../../../src/adapters/files/paths.ts'
import type { RunPaths } from '../../../src/adapters/files/paths.ts'
import { talkLog } from '../../../src/adapters/files/talk.ts'
import type { TalkLimits } from '../../../src/adapters/files/talk.ts'
import { cursorAfter, cursorText } from '../../../src/core/cursor.ts'
import type { EventBody, LoopEvent } from '../../../src/core/event.ts'
import { replay } from '../../../src/core/loop.ts'
import { initialState } from '../../../src/core/state.ts'
import { openStream } from '../../../src/engine/stream.ts'
import type { Reader } from '../../../src/engine/stream.ts'
import { settings } from '../../core/world.ts'

export const change = 'demo'

export interface Teller {
  readonly paths: RunPaths
  readonly tell: (body: EventBody) => Promise<void>
  /** What it told, as a reader of this process hears it. */
  readonly told: { readonly cursor: string; readonly event: LoopEvent }[]
  close(): Promise<void>
}

/** Goes on with the run that is there; `limits` are the talk's. */
export async function openTeller(
  folder: string,
  options: { readonly limits?: TalkLimits; readonly remembers?: boolean } = {},
): Promise<Teller> {
  const paths = runPaths(folder, change)
  const { events } = await readJournal(paths.journal)
  const journal = fileJournal(paths.journal)
  const talk = talkLog(paths.talk, options.limits)
  const told: { cursor: string; event: LoopEvent }[] = []
  const remember: Reader = (event, _, cursor) => void told.push({ cursor: cursorText(cursor), event })
  const from = {
    state: replay(initialState(change), events),
    seq: events.at(-1)?.seq ?? 0,
    cursor: cursorAfter(events),
  }
  const stream = openStream({ journal, clock: systemClock }, from)
  stream.follow([talk.read, ...(options.remembers === false ? [] : [remember])])
  return {
    paths,
    tell: stream.tell,
    told,
    async close() {
      talk.close()
      await journal.close()
    },
  }
}

export function started(runId: string, resumed = false): EventBody {
  return {
    type: 'loop.started',
    run_id: runId,
    resumed,
    settings,
    pid: process.pid,
    worktree: '/w',
    worktree_name: 'w',
    root: '/w',
    tasks_file: 'tasks.md',
    original_branch: 'main',
    branch: 'ralph/demo',
  }
}

export function says(text: string, n = 1): EventBody {
  return { type: 'agent.message', n, text }
}

export function warns(message: string): EventBody {
  return { type: 'warning', code: 'x', message }
}
