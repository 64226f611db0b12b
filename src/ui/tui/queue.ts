// The merge queue's screen: a row for each change, in the order in which they go; it looks again by itself.
import type { QueueReport } from '../app.ts'
import type { Loaded, Step, World } from './inputs.ts'
import { rowsMoved, type Key } from './keys.ts'

export interface QueueScreen {
  /** Undefined until it was read. */
  readonly report: QueueReport | undefined
  readonly at: string | undefined
  /** `ralph up` of this process: to leave is to stop it. */
  readonly isOwn: boolean
  /** It has ended: who comes back here leaves. */
  readonly isOver: boolean
  readonly askedMs: number
  readonly isPending: boolean
  readonly problem: string
}

export function queueScreen(isOwn: boolean): QueueScreen {
  return {
    report: undefined,
    at: undefined,
    isOwn,
    isOver: false,
    askedMs: 0,
    isPending: false,
    problem: '',
  }
}

const everyMs = 1_000

export function askingQueue(screen: QueueScreen, { nowMs }: World): Step<QueueScreen> {
  const isFresh = screen.askedMs !== 0 && nowMs - screen.askedMs < everyMs
  if (screen.isPending || isFresh) return { screen, acts: [] }
  return {
    screen: { ...screen, askedMs: nowMs, isPending: true },
    acts: [{ do: 'load', load: { what: 'queue' } }],
  }
}

export function loadedQueue(screen: QueueScreen, loaded: Loaded): QueueScreen {
  return loaded.what === 'queue'
    ? { ...screen, report: loaded.report, isPending: false, problem: '' }
    : screen
}

export function failedQueue(screen: QueueScreen, problem: string): QueueScreen {
  return { ...screen, isPending: false, problem }
}

type Row = QueueReport['entries'][number]

export function chosenEntry({ report, at }: QueueScreen): Row | undefined {
  const entries = report?.entries ?? []
  return entries.find(({ change }) => change === at) ?? entries[0]
}

/** There is a run to look at, or one that begins. */
export function hasLoop({ started_at: started, state }: Row): boolean {
  return started !== '' || state === 'running'
}

export function typedQueue(
  screen: QueueScreen,
  key: Key,
): { readonly screen: QueueScreen; readonly joins?: string } | undefined {
  const entries = screen.report?.entries ?? []
  const row = chosenEntry(screen)
  const step = rowsMoved[key.name]
  if (step !== undefined) {
    const at = entries.findIndex(({ change }) => change === row?.change)
    const next = entries[Math.max(0, Math.min(entries.length - 1, at + step))]
    return { screen: { ...screen, at: next?.change } }
  }
  if (key.name !== 'enter') return undefined
  return row !== undefined && hasLoop(row) ? { screen, joins: row.change } : { screen }
}
