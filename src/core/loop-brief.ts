// A loop in a few fields, read off a state file: ralph's own, or one that wt-tools wrote. For lists, MCP and the status line; needs no zod.
import { isRecord } from './json.ts'
import { ownStories } from './story.ts'

export interface LoopBrief {
  readonly change_id: string
  /** One of ralph's six words; of wt-tools its own, such as `waiting:budget`. */
  readonly status: string
  readonly written_by: 'ralph' | 'wt-tools'
  readonly current_iteration: number
  readonly max_iterations: number
  /** Empty where the file does not say. */
  readonly started_at: string
  readonly updated_at: string
  readonly task: string
  readonly total_tokens: number
  readonly stories_done?: number
  readonly stories_total?: number
  readonly cost_usd?: number
  readonly waiting_for?: string
  readonly waiting_until?: string
  readonly stop_reason?: string
}

/** `alive`: its process is there and active; `stale`: nobody can tell; `dead`: it did not end, and its process is gone. */
export type Freshness = 'alive' | 'stale' | 'dead' | 'ended'

/** A living loop gives a sign twice a second: after a minute without one it hangs, or its machine does. */
const silentMs = 60_000

export function freshnessOf(facts: {
  readonly isOver: boolean
  /** Undefined: on another machine, or the file does not say who it is. */
  readonly isThere: boolean | undefined
  readonly signAgeMs: number
  readonly patienceMs?: number
}): Freshness {
  const { isOver, isThere, signAgeMs, patienceMs = silentMs } = facts
  if (isOver) return 'ended'
  if (isThere === false) return 'dead'
  return signAgeMs <= patienceMs ? 'alive' : 'stale'
}

/** Of wt-tools these too: its process has gone by then. */
const over = new Set(['done', 'stuck', 'stalled', 'stopped', 'idle', 'waiting:human'])

export function isOver({ status }: Pick<LoopBrief, 'status'>): boolean {
  return over.has(status)
}

/** Undefined: nothing that tells of a loop. `folder`: the name of its work tree, where the file has none for its change. */
export function briefOf(value: unknown, folder: string): LoopBrief | undefined {
  if (!isRecord(value)) return undefined
  const status = textIn(value, 'status')
  if (status === '' || !('current_iteration' in value || 'max_iterations' in value)) return undefined
  const all = Array.isArray(value['stories']) ? value['stories'].filter(isRecord) : undefined
  const stories =
    all && ownStories(all.map((story) => ({ id: textIn(story, 'id'), status: textIn(story, 'status') })))
  const cost = value['cost_usd']
  const texts = ['waiting_for', 'waiting_until', 'stop_reason']
    .map((name) => [name, textIn(value, name)] as const)
    .filter(([, text]) => text !== '')
  return {
    change_id: nameIn(value, folder),
    status,
    written_by: value['schema_version'] === 1 ? 'ralph' : 'wt-tools',
    current_iteration: numberIn(value, 'current_iteration'),
    max_iterations: numberIn(value, 'max_iterations'),
    started_at: textIn(value, 'started_at'),
    updated_at: textIn(value, 'updated_at'),
    task: textIn(value, 'task').trim(),
    total_tokens: numberIn(value, 'total_tokens'),
    ...(stories !== undefined && {
      stories_done: stories.filter((story) => story.status === 'done').length,
      stories_total: stories.length,
    }),
    ...(typeof cost === 'number' && { cost_usd: cost }),
    ...Object.fromEntries(texts),
  }
}

/** Newer versions of wt-tools name the work tree instead of the change: `<repository>-wt-<change>`. */
function nameIn(value: Readonly<Record<string, unknown>>, folder: string): string {
  const tree = textIn(value, 'worktree_name') || folder
  return textIn(value, 'change_id') || textIn(value, 'change') || (/-wt-(.+)$/.exec(tree)?.[1] ?? tree)
}

/** wt-tools writes null for what it does not know yet. */
export function textIn(value: Readonly<Record<string, unknown>>, name: string): string {
  const found = value[name]
  return typeof found === 'string' ? found : ''
}

export function numberIn(value: Readonly<Record<string, unknown>>, name: string): number {
  const found = value[name]
  return typeof found === 'number' && Number.isFinite(found) ? found : 0
}
