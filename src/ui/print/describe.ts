// One event as one line for a person; pure, and the same for a pipe and for the lines above a terminal's live line.
import type { IterationRecord, LoopEvent } from '../../core/event.ts'
import type { Paint } from '../io.ts'
import { verdictWord } from '../vocabulary.ts'
import { clip, clockTime, duration, excerpt, oneLine, plural, shortHash, tokenWords, usd } from './text.ts'

export interface Line {
  readonly text: string
  readonly to: 'stdout' | 'stderr'
}

const textWidth = 160

/** Nothing for events that only machines need: running token counts, the journal's private facts, the end (see summary.ts). */
export function describe(event: LoopEvent, paint: Paint): Line | undefined {
  const warning = alarm(event, paint)
  if (warning !== undefined) return { text: warning, to: 'stderr' }
  // The table pairs each type with its own saying
  const say = sayings[event.type] as Saying<LoopEvent> | undefined
  const text = say?.(event, paint) ?? ''
  return text === '' ? undefined : { text: `${paint.dim(clockTime(event.time))} ${text}`, to: 'stdout' }
}

function alarm(event: LoopEvent, paint: Paint): string | undefined {
  if (event.type === 'warning') return `${paint.yellow('warning:')} ${oneLine(event.message)}`
  if (event.type !== 'error') return undefined
  const hint = event.hint === '' ? '' : ` ${paint.dim(`(${oneLine(event.hint)})`)}`
  return `${paint.red('error:')} ${clip(oneLine(event.message), 2000)}${hint}`
}

type Sayings = { readonly [Type in LoopEvent['type']]?: Saying<Extract<LoopEvent, { type: Type }>> }
type Saying<Event> = (event: Event, paint: Paint) => string

const sayings: Sayings = {
  'loop.started': (event, paint) => {
    const place =
      event.branch === event.original_branch
        ? `on your branch ${event.branch}`
        : `on branch ${event.branch} (from ${branchName(event.original_branch)})${event.home === undefined ? '' : `, in ${event.worktree}, without what is uncommitted here`}`
    const gates = event.settings.gates.length > 0 ? `, ${plural(event.settings.gates.length, 'gate')}` : ''
    const what = paint.bold(`${event.resumed ? 'resumed' : 'loop'} ${oneLine(event.change_id)}`)
    const agents = event.settings.agents.map((agent) => {
      const bill = event.billing?.[agent]
      return bill === undefined || bill === 'unknown' ? agent : `${agent} (${oneLine(bill)})`
    })
    if (event.nothing_to_do) return `${what}: no story is open`
    return `${what} ${oneLine(place)}, agent ${agents.join(', then ')}${gates}`
  },
  'repair.ended': (event) => `put in order after a loop that died: ${oneLine(event.detail)}`,
  'story.started': (event, paint) =>
    paint.bold(
      `story ${String(event.index)}/${String(event.total)}: ${storyName(event.story_id, event.title)}`,
    ),
  'iteration.started': (event, paint) => {
    const which = `(iteration ${String(event.n)}/${String(event.max_iterations)}, ${event.agent})`
    return `  attempt ${String(event.attempt)}/${String(event.attempts)} ${paint.dim(which)}`
  },
  'agent.message': (event) => {
    const said = excerpt(event.text, textWidth)
    return said === '' ? '' : `    ${said}`
  },
  'agent.tool': (event, paint) =>
    paint.dim(`    ${clip(`${oneLine(event.name)} ${oneLine(event.input)}`.trimEnd(), textWidth)}`),
  'gate.started': (event) => `  gate: ${clip(oneLine(event.command), textWidth)}`,
  'gate.ended': (event, paint) => {
    const took = paint.dim(`(${duration(event.duration_ms)})`)
    return `  gate ${gateOutcome(event, paint)}: ${clip(oneLine(event.command), textWidth)} ${took}${gateTail(event)}`
  },
  'checkpoint.saved': (event, paint) => {
    const same = event.changed ? '' : paint.dim(' (nothing changed)')
    return `  saved ${paint.cyan(shortHash(event.commit))} ${oneLine(event.message)}${same}`
  },
  // What is undone may be the user's own: edits made beside an agent cannot be told from its own.
  'checkpoint.reverted': (event, paint) =>
    `  restored ${paint.cyan(shortHash(event.commit))} ${paint.dim(`(what was undone: ralph diff ${String(event.n)})`)}`,
  'iteration.ended': (event, paint) => `  ${iterationLine(event.iteration, paint)}`,
  waiting: (event, paint) =>
    paint.yellow(
      event.for === 'pause'
        ? `  paused; continue with ralph resume ${event.change_id}, or ralph stop`
        : `  waiting for ${event.agent} (${event.for}) until ${clockTime(event.until)}; ralph stop works meanwhile`,
    ),
  'pause.requested': (_, paint) => paint.yellow('  pausing after this iteration'),
  'pause.lifted': () => '  continuing',
  'stop.requested': (event, paint) =>
    paint.yellow(`  stopping (${event.signal}): whatever runs is being ended; once more forces`),
  'choice.needed': (event) => `the loop is over (${event.status}); now: where its work goes`,
}

function iterationLine(iteration: IterationRecord, paint: Paint): string {
  const used = { ...iteration, tokens: iteration.tokens_used }
  const figures = [duration(iteration.duration_ms), tokenWords(used)]
  if (iteration.cost_usd !== undefined) figures.push(usd(iteration.cost_usd))
  const reason = iteration.reason === '' ? '' : `: ${excerpt(iteration.reason, 400)}`
  return `${verdictWord(iteration.verdict, paint)}${reason} ${paint.dim(`(${figures.join(', ')})`)}`
}

/** A title often begins with the number that is its id. */
export function storyName(id: string, title: string): string {
  const plain = oneLine(title)
  return plain.startsWith(id) ? plain : `${id} ${plain}`.trimEnd()
}

/** A detached start is named by its commit. */
export function branchName(branch: string): string {
  return /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(branch) ? `commit ${shortHash(branch)}` : oneLine(branch)
}

type GateEnded = Extract<LoopEvent, { type: 'gate.ended' }>

function gateOutcome(event: GateEnded, paint: Paint): string {
  if (event.outcome === 'passed') return paint.green('passed')
  const exit = event.exit_code === undefined ? '' : ` with exit ${String(event.exit_code)}`
  return paint.red(event.outcome === 'could_not_run' ? 'could not run' : `${event.outcome}${exit}`)
}

/** The last line is where a test runner says what was wrong. */
function gateTail(event: GateEnded): string {
  const last = event.output_tail.trimEnd().split('\n').at(-1) ?? ''
  return event.outcome === 'passed' || last.trim() === '' ? '' : `: ${clip(oneLine(last), textWidth)}`
}
