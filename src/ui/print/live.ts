// The live line, pure: what is known from events, and how it looks in so many columns.
import { claimWords } from '../../core/claim-words.ts'
import type { LoopEvent } from '../../core/event.ts'
import { agentName, symbolOf, waitWords } from '../vocabulary.ts'
import { inTree, storyTitle } from './describe.ts'
import { clip, duration, oneLine, tokens, usd } from './text.ts'

export interface Live {
  readonly busy: boolean
  readonly story: string
  readonly attempt: string
  readonly sinceMs: number
  /** Last tool, gate or wait. */
  readonly doing: string
  /** When a wait is over. */
  readonly untilMs: number | undefined
  /** Of ended iterations, and of the open one. */
  readonly tokensBefore: number
  readonly tokensNow: number
  readonly costBefore: number
  readonly costNow: number
  readonly worktree: string
  /** The user's own agent. */
  readonly program: string | undefined
}

export const idleLive: Live = {
  busy: false,
  story: '',
  attempt: '',
  sinceMs: 0,
  doing: '',
  untilMs: undefined,
  tokensBefore: 0,
  tokensNow: 0,
  costBefore: 0,
  costNow: 0,
  worktree: '',
  program: undefined,
}

export function applyLive(live: Live, event: LoopEvent, nowMs: number): Live {
  // The table pairs each type with its own change
  const change = changes[event.type] as Change<LoopEvent> | undefined
  return change === undefined ? live : { ...live, ...change(event, nowMs, live) }
}

type Change<Event> = (event: Event, nowMs: number, live: Live) => Partial<Live>
type Changes = { readonly [Type in LoopEvent['type']]?: Change<Extract<LoopEvent, { type: Type }>> }

const changes: Changes = {
  'loop.started': (event) => ({
    worktree: event.worktree,
    program: event.agent_program,
    tokensBefore: event.spent?.tokens ?? 0,
    costBefore: event.spent?.cost_usd ?? 0,
  }),
  'story.started': (event) => ({
    story: `${String(event.index)}/${String(event.total)} ${storyTitle(event.story_id, event.title)}`,
  }),
  'iteration.started': (event, nowMs, live) => ({
    busy: true,
    attempt: `#${String(event.n)}`,
    sinceMs: nowMs,
    doing: agentName(event.agent, live.program),
    untilMs: undefined,
    tokensNow: 0,
    costNow: 0,
  }),
  'agent.tool': (event, _nowMs, { worktree }) => ({
    doing: `${oneLine(event.name)} ${inTree(oneLine(event.input), worktree)}`.trimEnd(),
  }),
  'agent.usage': (event) => ({
    tokensNow: event.input_tokens + event.output_tokens,
    costNow: event.cost_usd ?? 0,
  }),
  'gate.started': (event, nowMs) => ({ doing: `gate: ${oneLine(event.command)}`, sinceMs: nowMs }),
  'baseline.started': (event, nowMs) => ({
    doing: `without the agent's work: ${oneLine(event.command)}`,
    sinceMs: nowMs,
  }),
  'baseline.ended': (_event, nowMs) => ({ doing: '', sinceMs: nowMs }),
  'claim.judged': (event) => ({ doing: oneLine(claimWords(event)) }),
  'progress.reported': (event) => ({ doing: oneLine(event.task) }),
  waiting: (event, nowMs) => ({
    busy: true,
    sinceMs: nowMs,
    // The printer's clock is not the wall's; what is left is the same on both.
    untilMs: event.for === 'pause' ? undefined : nowMs + Math.max(0, event.until_ms - Date.parse(event.time)),
    doing:
      event.for === 'pause'
        ? `paused; continue with ralph resume ${event.change_id}`
        : `${waitWords[event.for]}, until ${event.until.slice(11, 16)}`,
  }),
  'stop.requested': () => ({ doing: 'stopping' }),
  'iteration.ended': (event, _nowMs, live) => ({
    busy: false,
    doing: '',
    tokensBefore: live.tokensBefore + event.iteration.tokens_used,
    tokensNow: 0,
    costBefore: live.costBefore + (event.iteration.cost_usd ?? 0),
    costNow: 0,
  }),
  'choice.needed': () => ({ busy: false }),
  complete: () => ({ busy: false }),
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const asciiFrames = ['|', '/', '-', '\\']

/** Never as wide as the terminal: a full last column wraps on some. The story and what it does share what is left. */
export function liveText(
  live: Live,
  view: { frame: number; nowMs: number; columns: number; isAscii?: boolean },
): string {
  if (!live.busy) return ''
  // Three cells in ASCII where there is one else.
  const width = view.columns - (view.isAscii === true ? 5 : 1)
  const turning = view.isAscii === true ? asciiFrames : frames
  const spinner =
    live.untilMs === undefined ? (turning[view.frame % turning.length] ?? '') : symbolOf('waiting')
  const cost = live.costBefore + live.costNow
  const used = live.tokensBefore + live.tokensNow
  const fixed = [
    live.attempt,
    live.untilMs === undefined
      ? seconds(view.nowMs - live.sinceMs)
      : `${seconds(live.untilMs - view.nowMs)} left`,
    // Not known yet, or never: no figure is better than a wrong one.
    used > 0 ? `${tokens(used)} tokens` : '',
    cost > 0 ? usd(cost) : '',
  ]
    .filter((part) => part !== '')
    .join(' · ')
  const room = Math.max(0, width - fixed.length - 8)
  const parts = [clip(live.story, Math.ceil(room / 2)), fixed, clip(live.doing, Math.floor(room / 2))]
  return clip(`${spinner} ${parts.filter((part) => part !== '').join(' · ')}`, width)
}

function seconds(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1000) * 1000)
  return whole < 1000 ? '0 s' : duration(whole)
}
