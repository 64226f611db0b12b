// The live line, pure: what is known from events, and how it looks in so many columns.
import type { LoopEvent } from '../../core/event.ts'
import { storyName } from './describe.ts'
import { clip, duration, oneLine, tokens } from './text.ts'

export interface Live {
  readonly busy: boolean
  readonly story: string
  readonly attempt: string
  readonly sinceMs: number
  /** Last tool, gate or wait. */
  readonly doing: string
  /** Of ended iterations, and of the open one. */
  readonly tokensBefore: number
  readonly tokensNow: number
}

export const idleLive: Live = {
  busy: false,
  story: '',
  attempt: '',
  sinceMs: 0,
  doing: '',
  tokensBefore: 0,
  tokensNow: 0,
}

export function applyLive(live: Live, event: LoopEvent, nowMs: number): Live {
  // The table pairs each type with its own change
  const change = changes[event.type] as Change<LoopEvent> | undefined
  return change === undefined ? live : { ...live, ...change(event, nowMs, live) }
}

type Change<Event> = (event: Event, nowMs: number, live: Live) => Partial<Live>
type Changes = { readonly [Type in LoopEvent['type']]?: Change<Extract<LoopEvent, { type: Type }>> }

const changes: Changes = {
  'story.started': (event) => ({
    story: `${String(event.index)}/${String(event.total)} ${storyName(event.story_id, event.title)}`,
  }),
  'iteration.started': (event, nowMs) => ({
    busy: true,
    attempt: `attempt ${String(event.attempt)}/${String(event.attempts)}`,
    sinceMs: nowMs,
    doing: event.agent,
    tokensNow: 0,
  }),
  'agent.tool': (event) => ({ doing: `${oneLine(event.name)} ${oneLine(event.input)}`.trimEnd() }),
  'agent.usage': (event) => ({ tokensNow: event.input_tokens + event.output_tokens }),
  'gate.started': (event) => ({ doing: `gate: ${oneLine(event.command)}` }),
  waiting: (event, nowMs) => ({
    busy: true,
    sinceMs: nowMs,
    doing:
      event.for === 'pause'
        ? `paused; continue with ralph resume ${event.change_id}`
        : `waiting (${event.for}) until ${event.until.slice(11, 16)}`,
  }),
  'iteration.ended': (event, _nowMs, live) => ({
    busy: false,
    doing: '',
    tokensBefore: live.tokensBefore + event.iteration.tokens_used,
    tokensNow: 0,
  }),
  'choice.needed': () => ({ busy: false }),
  complete: () => ({ busy: false }),
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** Never as wide as the terminal: a full last column wraps on some. The story and what it does share what is left. */
export function liveText(live: Live, view: { frame: number; nowMs: number; columns: number }): string {
  if (!live.busy) return ''
  const width = view.columns - 1
  const spinner = frames[view.frame % frames.length] ?? ''
  const elapsedMs = Math.floor((view.nowMs - live.sinceMs) / 1000) * 1000
  const elapsed = elapsedMs < 1000 ? '0 s' : duration(elapsedMs)
  const fixed = [live.attempt, elapsed, `${tokens(live.tokensBefore + live.tokensNow)} tokens`]
    .filter((part) => part !== '')
    .join(' · ')
  const room = Math.max(0, width - fixed.length - 8)
  const parts = [clip(live.story, Math.ceil(room / 2)), fixed, clip(live.doing, Math.floor(room / 2))]
  return clip(`${spinner} ${parts.filter((part) => part !== '').join(' · ')}`, width)
}
