// The one place that decides symbols, words and colours, one per meaning: for plain lines, the live line, reports, lists and every other face.
import type { LoopEvent, LoopStatus, StorySummary, Verdict } from '../core/event.ts'
import { doubtIn } from '../core/weakness.ts'
import type { Paint } from './io.ts'

interface Sign {
  readonly symbol: string
  /** For locales that are not UTF-8. */
  readonly ascii: string
  readonly colour: 'green' | 'red' | 'cyan' | 'dim' | 'yellow' | 'magenta'
}

const signs = {
  done: { symbol: '✓', ascii: '+', colour: 'green' },
  failed: { symbol: '✕', ascii: 'x', colour: 'red' },
  working: { symbol: '▸', ascii: '>', colour: 'cyan' },
  open: { symbol: '○', ascii: '.', colour: 'dim' },
  undone: { symbol: '↺', ascii: '<', colour: 'yellow' },
  waiting: { symbol: '‖', ascii: '=', colour: 'yellow' },
  human: { symbol: '!', ascii: '!', colour: 'magenta' },
  doubt: { symbol: '!', ascii: '!', colour: 'yellow' },
} as const satisfies Record<string, Sign>

export type Meaning = keyof typeof signs

export function symbolOf(meaning: Meaning): string {
  return signs[meaning].symbol
}

/** Its symbol in its colour. */
export function mark(meaning: Meaning, paint: Paint): string {
  return inColourOf(meaning, signs[meaning].symbol, paint)
}

export function inColourOf(meaning: Meaning, text: string, paint: Paint): string {
  return paint[signs[meaning].colour](text)
}

/** What became of an attempt. */
const verdicts: Readonly<Record<Verdict, readonly [word: string, meaning: Meaning]>> = {
  complete: ['done', 'done'],
  partial: ['partly done, kept', 'done'],
  progress: ['some done, kept', 'done'],
  kept: ['kept', 'done'],
  refused: ['refused', 'failed'],
  failed: ['failed', 'failed'],
  gate_failed: ['gate failed', 'failed'],
  none: ['did not report', 'failed'],
  timeout: ['timed out', 'failed'],
  idle: ['went silent', 'failed'],
  crash: ['crashed', 'failed'],
  limit: ['had to wait', 'waiting'],
  fatal: ['could not run', 'human'],
  error: ['ralph failed', 'human'],
  interrupted: ['stopped', 'waiting'],
  budget: ['budget used up', 'waiting'],
}

export function verdictName(verdict: Verdict): string {
  return verdicts[verdict][0]
}

export function verdictMeaning(verdict: Verdict): Meaning {
  return verdicts[verdict][1]
}

export function verdictWord(verdict: Verdict, paint: Paint): string {
  return inColourOf(verdictMeaning(verdict), verdictName(verdict), paint)
}

/** Of a loop; empty before its first. */
const statuses: Readonly<Record<LoopStatus | '', readonly [word: string, meaning: Meaning]>> = {
  '': ['not started', 'open'],
  starting: ['starting', 'working'],
  running: ['running', 'working'],
  done: ['done', 'done'],
  stuck: ['stuck', 'failed'],
  stalled: ['stalled', 'failed'],
  stopped: ['stopped', 'waiting'],
}

export function statusName(status: LoopStatus | ''): string {
  return statuses[status][0]
}

/** `why`: what ended it; a number that its user has set is nobody's failure. */
export function statusMeaning(status: LoopStatus | '', why?: string): Meaning {
  return status === 'stuck' && why === 'iterations' ? 'waiting' : statuses[status][1]
}

export function statusWord(status: LoopStatus | '', paint: Paint, why?: string): string {
  const word = inColourOf(statusMeaning(status, why), statusName(status), paint)
  return status === '' ? word : paint.bold(word)
}

/** Where a run waits for what only its user can do, or say. */
export function humanWord(paint: Paint): string {
  const [word, meaning] = waitStates.human
  return paint.bold(inColourOf(meaning, word, paint))
}

/** Of a change now: whether its loop waits or has died, or the queue has parked it, comes first, else see `changeState`. */
export function stateNow(
  {
    status,
    stop_reason: why,
    waiting_for: waitsFor,
    pause_requested: paused,
    died_at: died,
    parked,
    warnings,
  }: LoopNow,
  plan: PlanCounts,
): readonly [word: string, meaning: Meaning] {
  if (died !== undefined && status !== 'done') return ['died', 'failed']
  if (parked !== undefined) return parked.waits === true ? ['waiting', 'waiting'] : ['parked', 'human']
  // Over a limit the pause stays.
  if (waitsFor !== undefined) return waitStates[paused === true ? 'pause' : waitsFor]
  const state = changeState(status, why, plan)
  return state === statuses.done ? doneState(warnings) : state
}

/** Done, and what makes that worth less than it says; `how` where it is done in another way. */
export function doneState(
  warnings: readonly string[] = [],
  how: string = statuses.done[0],
): readonly [word: string, meaning: Meaning] {
  const doubt = doubtIn(warnings)
  return doubt === undefined ? [how, 'done'] : [`${how}, but ${doubt}`, 'doubt']
}

interface LoopNow {
  readonly status: LoopStatus | ''
  /** Why its last loop ended, as the state file has it. */
  readonly stop_reason?: string | undefined
  readonly waiting_for?: keyof typeof waitStates | undefined
  readonly pause_requested?: true | undefined
  readonly died_at?: string | undefined
  readonly parked?: { readonly waits?: true | undefined } | undefined
  /** What makes its "done" worth less. */
  readonly warnings?: readonly string[] | undefined
}

const waitStates = {
  pause: ['paused', 'waiting'],
  human: ['needs you', 'human'],
  limit: ['waiting', 'waiting'],
  overloaded: ['waiting', 'waiting'],
  offline: ['waiting', 'waiting'],
} as const satisfies Record<string, readonly [string, Meaning]>

interface PlanCounts {
  readonly open: number
  readonly done: number
  readonly total: number
}

export function countsOf(stories: readonly { readonly status: string }[]): PlanCounts {
  const count = (wanted: string): number => stories.filter(({ status }) => status === wanted).length
  return { open: count('open'), done: count('done'), total: stories.length }
}

/** A box that a gate has not passed is ticked, not done. */
export const unproven: ReadonlySet<string> = new Set(['hand', 'gate'])

/** Of a change: its boxes decide, not what its last run came to; but what was ticked after a story failed is judged before it is done. */
function changeState(
  status: LoopStatus | '',
  why: string | undefined,
  { open, done, total }: PlanCounts,
): readonly [word: string, meaning: Meaning] {
  const ended = [statusName(status), statusMeaning(status, why)] as const
  if (status === 'running' || status === 'starting') return ended
  if (unproven.has(why ?? '')) return ended
  if (total > 0 && done === total) return status === 'stuck' || status === 'stalled' ? ended : statuses.done
  if (status === 'stopped' && why === 'human') return waitStates.human
  if (total === 0) return ended
  if (open === 0) return status === '' || status === 'stopped' ? waitStates.human : ended
  return status === 'done' || status === '' ? ['open', 'open'] : ended
}

export const storyMeanings: Readonly<Record<StorySummary['status'], Meaning>> = {
  done: 'done',
  open: 'open',
  human: 'human',
  deferred: 'waiting',
}

/** An overloaded service or a network that is away is no limit. */
export const waitWords: Readonly<Record<Extract<LoopEvent, { type: 'waiting' }>['for'], string>> = {
  limit: 'usage limit reached',
  overloaded: 'the service is overloaded',
  offline: 'no connection to the service',
  pause: 'paused',
}

/** The text as this user's terminal or log can show it: ASCII for ralph's own symbols where the locale is not UTF-8. */
export function legible(text: string, env: NodeJS.ProcessEnv): string {
  if (isUtf8(env)) return text
  return text.replaceAll(beyondAscii, (symbol) => inAscii.get(symbol) ?? symbol)
}

/** The last one for the Linux console, whose font has none of them. Nothing set: a container or a CI, whose logs are UTF-8. */
export function isUtf8(env: NodeJS.ProcessEnv): boolean {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return (locale === '' || /utf-?8/i.test(locale)) && env['TERM'] !== 'linux'
}

const inAscii: ReadonlyMap<string, string> = new Map([
  ...Object.values(signs).map(({ symbol, ascii }) => [symbol, ascii] as const),
  ['→', '->'],
  ['…', '...'],
  ['·', '-'],
  ['─', '-'],
  ['×', 'x'],
  ['–', '-'],
  ['’', "'"],
  ['█', '#'],
  ['░', '.'],
])
const beyondAscii = new RegExp(`[${[...inAscii.keys()].filter((key) => key > '~').join('')}]`, 'g')

/** The time of agents and gates: what was between two starts, or a wait, is nobody's work. */
export function workedMs(
  {
    iterations,
    current,
  }: {
    readonly iterations: readonly { readonly started: string; readonly ended: string }[]
    readonly current?: { readonly started: string } | undefined
  },
  nowMs = 0,
): number {
  return iterations.reduce(
    (sum, { started, ended }) => sum + Date.parse(ended) - Date.parse(started),
    current === undefined ? 0 : Math.max(0, nowMs - Date.parse(current.started)),
  )
}

/** What a loop does around the agent's turn. */
export const phaseWords: Readonly<Record<string, string>> = {
  keeping: 'keeping the attempt',
  gating: 'running the gates',
  proving: 'running the gates on what was ticked by hand',
  settling: 'ticking the boxes',
  saving: 'saving',
  reverting: 'undoing the attempt',
  recording: 'recording it',
  finishing: 'finishing',
}

/** `command` and `acp` are ralph's words for a program of the user's own. */
export function agentName(agent: string, program = 'your own agent'): string {
  return agent === 'command' ? program : agent
}
