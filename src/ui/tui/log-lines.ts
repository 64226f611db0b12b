// The Log tab: what the loop decided, when, and why.
import type { LoopEvent } from '../../core/event.ts'
import { claimWords } from '../../core/claim-words.ts'
import { decisionsOf, isDecisive } from '../../core/why.ts'
import { statusMeaning, verdictMeaning, verdictName } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { claimMeanings, limitedElsewhere, noteWords } from '../print/describe.ts'
import { clip, clockTime, oneLine, plural } from '../print/text.ts'
import { sign } from './frame.ts'
import { dim, harmless, line, span } from './spans.ts'
import type { Line } from './spans.ts'
import { wrapSpans } from './wrap.ts'

export interface LogEntry {
  readonly time: string
  readonly n?: number
  readonly meaning: Meaning
  readonly what: string
  readonly why: string
}

const mostEntries = 1_000
const pauseEnd = 'the pause is over'

export function logged(log: readonly LogEntry[], events: readonly LoopEvent[]): readonly LogEntry[] {
  const more: LogEntry[] = []
  for (const event of events) {
    const entry = entryOf(event)
    // A pause is a wait, too: its end is said once.
    const isSaid = event.type === 'wait.ended' && (more.at(-1) ?? log.at(-1))?.what === pauseEnd
    if (entry !== undefined && !isSaid) more.push(entry)
  }
  return more.length === 0 ? log : [...log, ...more].slice(-mostEntries)
}

function entryOf(event: LoopEvent): LogEntry | undefined {
  // The end says it once more.
  if (event.type === 'error' && event.code === 'retries') return undefined
  const [decision] = isDecisive(event) ? decisionsOf([event]) : []
  const own = wordsOf(event)
  if (decision === undefined && own === undefined) return undefined
  const n = decision?.n ?? ('n' in event ? event.n : undefined)
  const [meaning, what, why] = own ?? ['open', decision?.decision ?? '', decision?.rule ?? '']
  return { time: event.time, ...(n !== undefined && { n }), meaning, what, why: why ?? decision?.rule ?? '' }
}

const promiseWords = {
  complete: ' and says that the story is complete',
  failed: ' and says that it failed',
  none: ' and says neither complete nor failed',
} as const

/** Where the words for people are others than those for `ralph why --trace`. */
function wordsOf(event: LoopEvent): readonly [Meaning, string, string?] | undefined {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others are said as `why` says them, or not at all
  switch (event.type) {
    case 'iteration.started':
      return [
        'working',
        `begins: story ${event.story_id}${event.agent === 'command' ? '' : `, by ${event.agent}`}`,
        '',
      ]
    case 'agent.ended':
      return event.ending === 'finished'
        ? ['open', `the agent has finished${promiseWords[event.promise.kind]}`, '']
        : ['open', `the agent has ended: ${event.ending.replaceAll('_', ' ')}`, '']
    case 'claim.judged':
      return [claimMeanings[event.outcome], claimWords(event)]
    case 'gate.ended':
      return event.outcome === 'passed'
        ? ['done', `gate passed: ${event.command}`, '']
        : ['failed', `gate ${event.outcome.replaceAll('_', ' ')}: ${event.command}`]
    case 'boxes.settled': {
      const open = event.remaining + event.not_asked
      const ticked = event.ticked_by_ralph
      if (ticked > 0) return ['done', `ralph ticked ${plural(ticked, 'box', 'boxes')}`]
      return open === 0
        ? ['done', 'every box is ticked', '']
        : ['open', `${plural(open, 'box', 'boxes')} left open`]
    }
    case 'checkpoint.saved':
      return event.n === undefined ? undefined : ['done', `saved as ${event.commit.slice(0, 7)}`, '']
    case 'checkpoint.reverted': {
      const files = event.files_total ?? event.files?.length ?? 0
      const kept =
        files === 0 ? 'nothing had changed' : `undone: ${plural(files, 'file')}; kept as #${String(event.n)}`
      return ['undone', kept, '']
    }
    case 'iteration.ended': {
      const { verdict, reason } = event.iteration
      // The reason of that one begins with the gate's name.
      const word = verdict === 'gate_failed' && reason !== '' ? '' : verdictName(verdict)
      return [verdictMeaning(verdict), [word, reason].filter((part) => part !== '').join(': ')]
    }
    case 'login.limited':
      return ['waiting', limitedElsewhere(event), '']
    case 'waiting':
      return ['waiting', event.for === 'pause' ? 'paused' : `waits until ${clockTime(event.until)}`]
    case 'wait.ended':
      return [
        'working',
        event.skipped_ms === undefined || event.free === true
          ? 'the wait is over'
          : 'the wait was ended by you',
        '',
      ]
    case 'note.added':
      return ['human', noteWords(event), '']
    case 'pause.requested':
      return ['waiting', 'a pause was asked for: after this attempt', '']
    case 'pause.lifted':
      return ['working', pauseEnd, '']
    case 'stop.requested':
      return ['waiting', 'a stop was asked for: the agent is ended', '']
    case 'loop.finished':
      return ['open', `${event.choice}: ${event.message}`, '']
    case 'warning':
    case 'error':
      return ['human', `${event.type}: ${event.message}`, '']
    case 'complete':
      return [
        statusMeaning(event.status, event.stop_reason),
        `the loop ended: ${event.status}. ${event.reason}`,
        '',
      ]
    default:
      return undefined
  }
}

export function logLines(log: readonly LogEntry[], width: number): readonly Line[] {
  return log.flatMap(({ time, n, meaning, what, why }) => {
    const head: Line = [
      span(`${clockTime(time)} `, dim),
      ...sign(meaning),
      span(` ${n === undefined ? '' : `#${String(n)} `}`),
    ]
    const indent = ' '.repeat(11)
    const words = clip(oneLine(harmless(what)), 600)
    const lines = wrapSpans(line(words), width, head, indent)
    return why === '' ? lines : [...lines, ...wrapSpans(line(why, dim), width, line(indent), indent)]
  })
}
