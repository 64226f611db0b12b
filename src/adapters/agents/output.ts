// Listens to an agent's bytes: lines of a protocol, or plain words; of a flood only as much is decoded as can matter.
import { StringDecoder } from 'node:string_decoder'
import { canHoldPromise } from '../../core/promise.ts'
import type { AgentSignal } from '../../ports.ts'
import type { Group } from '../process/group.ts'
import { lineSplitter } from '../process/lines.ts'
import { echoFilter } from './echo.ts'
import type { AgentFact, AgentKind, Listener } from './kind.ts'
import { quoteMarker } from './quote.ts'
import { lineEnds } from './talk.ts'
import type { Turn } from './turn.ts'

interface OutputParser {
  /** The chunk may be lent. */
  feed(chunk: Buffer): void
  end(): void
}

export function lineParser(
  kind: AgentKind,
  listener: Listener,
  turn: Turn,
  tell: (signal: AgentSignal) => void,
  group: () => Group | undefined,
): OutputParser {
  return lineSplitter(
    lineMaxBytes,
    (line) => {
      const facts = listener.hear(line, Date.now())
      if (facts.length === 0) return
      // Figures last: the budget that they break must not end a turn that this very line says is over.
      const ordered = facts.some(isCount)
        ? facts.toSorted((a, b) => Number(isCount(a)) - Number(isCount(b)))
        : facts
      for (const fact of ordered) {
        turn.hear(fact)
        if (fact.type === 'say') group()?.write(fact.text)
        if (fact.type === 'failed' && fact.isHopeless === true) group()?.end('hopeless')
      }
    },
    (bytes) =>
      tell({ type: 'warning', message: `A line of ${bytes} bytes was not read; it is in the transcript.` }),
    kind.isIdle,
  )
}

export function textParser(prompt: string, turn: Turn): OutputParser {
  const decoder = new StringDecoder('utf8')
  const filter = echoFilter(prompt)
  const marker = quoteMarker(prompt)
  const memory = Buffer.allocUnsafeSlow(memoryBytes)
  /** The end of a flood, from a line's start; its whole lines are idle. More of the flood makes it stale before anybody could read it. */
  let unheard: Buffer | undefined
  let timer: NodeJS.Timeout | undefined

  /** Lines of floods that were not decoded since the last words. */
  let missed = 0

  const hear = (text: string): void => {
    if (text === '') return
    turn.hear({ type: 'text', text: marker.feed(text), isPartial: true, missed })
    missed = 0
  }
  const hearBytes = (bytes: Buffer): void => hear(filter.feed(decoder.write(bytes)))
  const catchUp = (): void => {
    clearTimeout(timer)
    timer = undefined
    const bytes = unheard
    unheard = undefined
    if (bytes !== undefined) hearBytes(bytes)
  }
  /** Of the chunk, which is lent; into the same memory each time, for a flood comes in thousands of them. */
  const remember = (chunk: Buffer, begin: number, from: number): void => {
    const rest = chunk.length - from
    marker.skip()
    missed += lineEnds(chunk.subarray(begin, from)) + (unheard === undefined ? 0 : lineEnds(unheard))
    unheard =
      rest > memoryBytes ? Buffer.from(chunk.subarray(from)) : memory.subarray(0, chunk.copy(memory, 0, from))
  }
  /** Such lines change nothing but what is shown. */
  const isIdle = (lines: Buffer): boolean =>
    !filter.canBeginIn(lines) && !canHoldPromise((mark) => lines.includes(mark))

  return {
    feed(chunk) {
      const begin = chunk.length > keptBytes ? chunk.indexOf(lf) + 1 : 0
      const end = begin > 0 ? chunk.lastIndexOf(lf) + 1 : 0
      const kept = end - keptBytes > begin ? chunk.lastIndexOf(lf, end - keptBytes) + 1 : 0
      const isFlood = kept > begin && isIdle(chunk.subarray(begin, end))
      if (isFlood && unheard !== undefined) {
        const cutLine = [unheard.subarray(unheard.lastIndexOf(lf) + 1), chunk.subarray(0, begin)]
        if (isIdle(Buffer.concat(cutLine))) {
          remember(chunk, 0, kept)
          return
        }
      }
      catchUp()
      if (!isFlood) return hearBytes(chunk)
      hearBytes(chunk.subarray(0, begin))
      if (turn.isPromising || filter.isHolding) return hearBytes(chunk.subarray(begin))
      remember(chunk, begin, kept)
      timer = setTimeout(catchUp, catchUpMs)
    },
    end() {
      catchUp()
      hear(filter.feed(decoder.end()) + filter.end())
    },
  }
}

/** A longer line is no event that matters: the largest are tool results. */
const lineMaxBytes = 32 * 1024 * 1024
/** More than a piece of talk and the last words have, at three bytes a character. */
const keptBytes = 12_500
/** With a line before it that is not extreme. */
const memoryBytes = 2 * keptBytes
const catchUpMs = 50
const lf = 10

function isCount(fact: AgentFact): boolean {
  return fact.type === 'usage'
}
