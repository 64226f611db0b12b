// What the tools say in words: for loops as users of wt-tools know it, with what ralph knows beyond that on lines of its own.
import { basename } from 'node:path'
import type { LoopSeen } from '../app.ts'
import { clip, oneLine } from '../print/text.ts'

const icons: ReadonlyMap<string, string> = new Map([
  ['running', '🔄'],
  ['done', '✅'],
  ['stuck', '⚠️'],
  ['stalled', '⚠️'],
  ['stopped', '⏹️'],
  ['starting', '🚀'],
])

export function statusWords(
  loops: readonly LoopSeen[],
  { asked, nowMs }: { readonly asked: string | undefined; readonly nowMs: number },
): string {
  if (loops.length === 0)
    return asked === undefined ? 'No active Ralph loops' : `No Ralph loop found for: ${oneLine(asked)}`
  return ['Ralph Loop Status:', '', ...loops.flatMap((loop) => [...blockOf(loop, nowMs), ''])].join('\n')
}

/** Nobody has reported any: that is no zero. */
export function hasUsage({ total_tokens: tokens, cost_usd: cost = 0 }: LoopSeen): boolean {
  return tokens > 0 || cost > 0
}

function blockOf(loop: LoopSeen, nowMs: number): readonly string[] {
  const { change_id: change, status, worktree, current_iteration: n, max_iterations: most } = loop
  const isOn = loop.freshness === 'alive' || loop.freshness === 'stale'
  const span = spanOf(loop.started_at, isOn ? nowMs : Date.parse(loop.died_at ?? loop.updated_at))
  const lines: readonly (readonly [string, string | undefined])[] = [
    ['Status', status],
    ['Iteration', `${n}/${most}`],
    [isOn ? 'Running for' : 'Ran for', span],
    ['Task', clip(oneLine(loop.task), 60)],
    ['Process', processWords[loop.freshness]],
    [
      'Stories',
      loop.stories_total === undefined ? undefined : `${loop.stories_done}/${loop.stories_total} done`,
    ],
    ['Tokens', n === 0 ? undefined : hasUsage(loop) ? loop.total_tokens.toLocaleString('en') : 'unknown'],
    [
      'Cost',
      n === 0
        ? undefined
        : loop.cost_usd === undefined || !hasUsage(loop)
          ? 'unknown'
          : `$${loop.cost_usd.toFixed(2)}`,
    ],
    [
      'Waiting for',
      loop.waiting_for === undefined
        ? undefined
        : `${loop.waiting_for}${loop.waiting_until === undefined ? '' : ` until ${loop.waiting_until}`}`,
    ],
    ['Ended because', loop.stop_reason],
    ['Died', loop.died_at],
    [
      'Still running of it',
      loop.orphan_pids === undefined || loop.orphan_pids.length === 0
        ? undefined
        : loop.orphan_pids.join(', '),
    ],
    ['Work tree', worktree],
    ['Written by', loop.written_by === 'ralph' ? undefined : loop.written_by],
    ['Problem', loop.problem],
  ]
  return [
    `  ${icons.get(status) ?? '❓'} ${oneLine(change)} (${oneLine(basename(worktree))})`,
    ...lines.flatMap(([name, text]) => (text === undefined ? [] : [`     ${name}: ${oneLine(text)}`])),
  ]
}

const processWords: Readonly<Record<LoopSeen['freshness'], string>> = {
  alive: 'alive',
  stale: 'stale: it shows no activity, or runs where ralph cannot see it',
  dead: 'dead: it did not end, and its process is gone',
  ended: 'ended',
}

/** One line each. */
export function listWords(loops: readonly LoopSeen[]): string {
  if (loops.length === 0) return 'No active Ralph loops'
  return loops
    .map((loop) => {
      const stories =
        loop.stories_total === undefined ? '' : `, ${loop.stories_done}/${loop.stories_total} stories`
      return `${oneLine(loop.change_id)}: ${oneLine(loop.status)} (${loop.freshness}), iteration ${loop.current_iteration}/${loop.max_iterations}${stories}, in ${oneLine(loop.worktree)}`
    })
    .join('\n')
}

/** `12m`, `3h 7m`; what cannot be known is `?`. */
function spanOf(from: string, toMs: number): string {
  const minutes = Math.floor((toMs - Date.parse(from)) / 60_000)
  if (!Number.isFinite(minutes) || minutes < 0) return '?'
  const hours = Math.floor(minutes / 60)
  return hours > 0 ? `${hours}h ${minutes % 60}m` : `${minutes}m`
}
