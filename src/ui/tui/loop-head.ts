// The two lines above the loop screen: where the run stands, and what it does now or waits for.
import { totalCostUsd, totalTokens } from '../../core/state.ts'
import { doubtsOf } from '../../core/weakness.ts'
import { storyName } from '../print/describe.ts'
import { clip, clockTime, duration, oneLine, plural, tokens, usd, widthOf } from '../print/text.ts'
import {
  agentName,
  phaseWords,
  countsOf,
  statusMeaning,
  stateNow,
  statusName,
  symbolOf,
  waitWords,
} from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { forecastOf, forecastWords } from './forecast.ts'
import { bar, fitParts, fitting, sign, styleFor } from './frame.ts'
import type { Size } from './frame.ts'
import type { World } from './inputs.ts'
import { isRunning, openAttempt, sinceMs, storiesOf, wide } from './loop-model.ts'
import type { LoopScreen } from './loop-model.ts'
import { bold, clipLine, dim, harmless, line, span } from './spans.ts'
import type { Line, Style } from './spans.ts'
import { wrapSpans } from './wrap.ts'

function stateWords(screen: LoopScreen): readonly [word: string, meaning: Meaning] {
  const { life, state, complete } = screen
  if (life === 'joining') return ['joining', 'working']
  if (life === 'none' || state === undefined) return ['not started', 'open']
  if (life === 'dead') return ['died', 'failed']
  if (life !== 'running') {
    const why = complete?.stop_reason ?? state.outcome?.stopReason
    return stateNow(
      { status: complete?.status ?? state.status, stop_reason: why, warnings: doubtsOf(state) },
      countsOf(state.stories),
    )
  }
  if (state.stop !== undefined && life === 'running') return ['stopping', 'waiting']
  if (state.waiting !== undefined && life === 'running')
    return [state.pause || state.waiting.for === 'pause' ? 'paused' : 'waiting', 'waiting']
  return [statusName(state.status), statusMeaning(state.status)]
}

interface Head {
  readonly line: Line
  /** The forecast, where there was no room for it. */
  readonly left: Line
}

export function headOf(screen: LoopScreen, world: World): Head {
  const { state, change } = screen
  const { columns } = world.size
  const [word, meaning] = stateWords(screen)
  const stories = storiesOf(screen)
  const done = stories.filter(({ status }) => status === 'done').length
  const cells = columns >= 120 ? 20 : 10
  const name = clip(oneLine(harmless(change)), Math.max(12, Math.floor(columns / 3)))
  const forecast = state === undefined || !isRunning(screen) ? undefined : forecastOf(state, world.nowMs)
  const counts = `${String(done)}/${plural(stories.length, 'story', 'stories')}`
  const tasks =
    state === undefined || state.tasksTotal === 0 || state.settings?.done_criteria === 'manual'
      ? ''
      : `${String(state.tasksDone)}/${plural(state.tasksTotal, 'task')}`
  const left = forecast === undefined ? [] : line(forecastWords(forecast), dim)
  const parts = [
    { spans: line(name, bold), worth: 10 },
    { spans: [...sign(meaning), span(` ${word}`, styleFor(meaning))], worth: 9 },
    { spans: stories.length === 0 ? [] : bar(done, stories.length, cells), worth: 4 },
    { spans: stories.length === 0 ? [] : line(counts), worth: 8 },
    { spans: line(tasks), worth: 3 },
    { spans: line(elapsed(screen, world.nowMs)), worth: 7 },
    { spans: line(tokenWords(screen)), worth: 5 },
    { spans: line(costWords(screen)), worth: 6 },
    { spans: left, worth: 2 },
  ]
  const fits = fitting(parts, columns - 2).some(({ spans }) => spans === left)
  return { line: [span(' '), ...fitParts(parts, columns - 2)], left: fits ? [] : left }
}

/** The time of agents and gates, as at the end: what was between two starts, or a wait, is nobody's work. */
function elapsed({ state, complete, life, board, feed }: LoopScreen, nowMs: number): string {
  if (state?.startedAt === undefined) return ''
  if (life !== 'running')
    return complete === undefined
      ? ''
      : duration(Math.max(complete.totals.duration_ms, board.spent.duration_ms))
  const { current } = state
  const gates = feed.attempts.find(({ n }) => n === current?.n)?.gates ?? []
  const since = (started: string): number => Math.max(0, nowMs - sinceMs(started))
  // What a gate took is with the rest once it has ended; for a claim the agent waits, and it is the agent's time.
  const gate = gates.find(({ ended }) => ended === undefined)
  const now =
    current?.ended === undefined
      ? current && since(current.started)
      : current.ended.duration_ms + (gate === undefined ? 0 : since(gate.started))
  const ms = Math.floor((board.spent.duration_ms + (now ?? 0)) / 1000) * 1000
  return ms === 0 ? '0 s' : duration(ms)
}

function tokenWords({ state }: LoopScreen): string {
  if (state === undefined) return ''
  const now = state.current?.usage
  const used = totalTokens(state) + (now === undefined ? 0 : now.input_tokens + now.output_tokens)
  return used === 0 ? '' : `${tokens(used)} tokens`
}

function costWords({ state }: LoopScreen): string {
  const cost = state === undefined ? 0 : (totalCostUsd(state) ?? 0) + (state.current?.usage?.cost_usd ?? 0)
  return cost === 0 ? '' : usd(cost)
}

/** How it came to its end, whole where there is room; empty of a loop that runs. */
export function overLines(screen: LoopScreen, { columns, rows }: Size): readonly Line[] {
  const { life, complete } = screen
  const most = Math.max(2, Math.floor(rows / 6))
  const set = (words: string, style: Style): readonly Line[] =>
    wrapSpans(line(words, style), columns - 1, line(' '), ' ')
  // What to type is last.
  if (life === 'dead')
    return deathWords(screen)
      .flatMap((words) => set(words, styleFor('failed')))
      .slice(-most)
  if (isRunning(screen) || complete === undefined) return []
  const lines = set(oneLine(harmless(complete.reason)), dim)
  return lines.length <= most
    ? lines
    : [...lines.slice(0, most - 1), clipLine([...(lines[most - 1] ?? []), span('…', dim)], columns)]
}

/** What is safe, what is left, and what to type. */
export function deathWords(screen: LoopScreen): readonly string[] {
  const { now } = screen
  const change = oneLine(screen.change)
  const n = openAttempt(screen)
  const orphans = now?.orphan_pids ?? []
  const left =
    n === undefined || now === undefined || now.n !== n || now.patch === ''
      ? ''
      : `; what attempt #${String(n)} changed is still in the work tree`
  return [
    `The loop's process is gone. What is saved is safe${left}.`,
    ...(orphans.length === 0
      ? []
      : [`An agent still runs, pid ${orphans.join(', ')}. End it with: ralph stop ${change}`]),
    `Continue with: ralph resume ${change}`,
  ]
}

export function doingLine(screen: LoopScreen, world: World, forecast: Line): Line {
  const { columns } = world.size
  const { state, life } = screen
  if (state === undefined || life === 'none') return []
  if (life === 'running' && state.waiting !== undefined)
    return waitLine(state.waiting, state.pause, screen.board.started?.agent_program, world)
  const { current, settings } = state
  const story = state.stories.find(({ id }) => id === (current?.storyId ?? state.storyId))
  const retries =
    current === undefined || current.attempt === 1
      ? ''
      : settings?.done_criteria === 'manual'
        ? `, attempt ${String(current.attempt)}`
        : `, retry ${String(current.attempt - 1)} of ${String(current.attempts - 1)}`
  const gates = settings?.gates ?? []
  const parts = [
    {
      spans:
        current === undefined
          ? []
          : line(oneLine(harmless(agentName(current.agent, screen.board.started?.agent_program)))),
      worth: 2,
    },
    { spans: line(phaseWords[state.phase] ?? ''), worth: 5 },
    {
      // On a narrow screen the line below says it.
      spans:
        story === undefined || columns < wide
          ? []
          : line(`story ${harmless(storyName(story.id, story.title))}`),
      worth: 3,
    },
    { spans: current === undefined ? [] : line(`attempt #${String(current.n)}${retries}`), worth: 4 },
    { spans: state.pause ? line('pauses after this attempt', styleFor('waiting')) : [], worth: 6 },
    {
      spans:
        gates.length === 0
          ? line('no gates', dim)
          : line(
              `${gates.length === 1 ? 'gate' : 'gates'} ${gates.map((gate) => oneLine(harmless(gate))).join(', ')}`,
              dim,
            ),
      worth: 1,
    },
    { spans: forecast, worth: 2.5 },
  ]
  return [span(' '), ...fitParts(parts, columns - 2, ' · ')]
}

/** What it does while no agent works. */
function waitLine(
  waiting: NonNullable<NonNullable<LoopScreen['state']>['waiting']>,
  isPaused: boolean,
  program: string | undefined,
  { size, nowMs }: World,
): Line {
  const sign = ` ${symbolOf('waiting')} `
  if (waiting.for === 'pause')
    return clipLine(
      line(`${sign}paused before the next attempt · p continues`, styleFor('waiting')),
      size.columns,
    )
  const at = waiting.until === undefined ? '' : `, at ${clockTime(waiting.until).slice(0, 5)}`
  const again = `in ${left(waiting.untilMs - nowMs)}`
  const then = isPaused
    ? `over ${again}`
    : `${oneLine(agentName(waiting.agent, program))} is asked again ${again}`
  const words = `${waitWords[waiting.for]}: ${then}`
  const keys = isPaused ? 'paused, p continues' : 's asks now'
  const forms = [`${sign}${words}${at} · ${keys}`, `${sign}${words}${at}`, `${sign}${words}`]
  const fits = forms.find((form) => widthOf(form) <= size.columns) ?? `${sign}${words}`
  return clipLine(line(fits, styleFor('waiting')), size.columns)
}

function left(ms: number): string {
  const whole = Math.ceil(Math.max(0, ms) / 1000) * 1000
  return whole === 0 ? '0 s' : duration(whole)
}
