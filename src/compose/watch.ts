// Every loop of a repository in one stream, live, whichever process and work tree it runs in. It writes nothing.
import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { inspectLock } from '../adapters/files/lock.ts'
import { changesDir } from '../adapters/files/paths.ts'
import { follow } from '../adapters/files/tail.ts'
import { beginning } from '../core/cursor.ts'
import { initialState } from '../core/state.ts'
import type { Watched, WatchRequest } from '../ui/app.ts'
import { mailbox } from './mailbox.ts'
import { isRunning, pathsOf } from './site.ts'
import type { Site } from './site.ts'

/** How soon a loop is seen that begins; one that is known is looked at ten times a second. */
const lookMs = 300

export async function* watchRuns(site: Site, { from, stop }: WatchRequest): AsyncGenerator<Watched, void> {
  const box = mailbox<Watched>()
  const over = new AbortController()
  const end = (): void => {
    over.abort()
    box.close()
  }
  stop.addEventListener('abort', end, { once: true })
  if (stop.aborted) end()
  const followOne = async (change: string, isNew: boolean): Promise<void> => {
    const since = from === 'start' ? undefined : from?.[change]
    /** What was told before anybody looked is not told again, but how the loop stands. */
    let isLive = isNew || from === 'start' || since !== undefined
    const paths = pathsOf(site, change)
    const isRunningNow = (): boolean => isRunning({ lock: inspectLock(paths.lock, site.identity) })
    const request = { until: 'stop', stop: over.signal, ...(since !== undefined && { from: since }) } as const
    for await (const told of follow(paths, change, isRunningNow, request)) {
      isLive ||= told.type === 'loop'
      if (!isLive) continue
      if (told.type === 'loop' && told.loop === 'none') continue
      box.put({ ...told, change_id: change })
      await box.room()
    }
  }
  const known = new Set<string>()
  const lookFor = async (): Promise<void> => {
    for (let isFirst = true; !over.signal.aborted; isFirst = false) {
      for (const change of namesIn(changesDir(site.git.gitCommonDir))) {
        if (known.has(change)) continue
        known.add(change)
        void followOne(change, !isFirst).catch((error: unknown) =>
          // One that cannot be read hides no other.
          box.put({
            type: 'journal_damaged',
            message: error instanceof Error ? error.message : String(error),
            change_id: change,
            state: initialState(change),
            cursor: beginning,
          }),
        )
      }
      await delay(lookMs, undefined, { signal: over.signal }).catch(() => undefined)
    }
  }
  lookFor().catch((error: unknown) => box.close({ error }))
  try {
    yield* box.read()
  } finally {
    stop.removeEventListener('abort', end)
    end()
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    // None yet.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
