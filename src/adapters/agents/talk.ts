// Hands the assistant's words on in pieces that a reader can keep up with: 200 MB of output must flood neither events nor memory.
import { gapLine } from '../../core/talk-gap.ts'

export interface Talk {
  /** Words without a border of their own; gathered, and told by whole lines unless one takes its time. `missed`: lines before them that nobody has heard. */
  add(text: string, missed?: number): void
  /** A whole message: told at once, until there are too many. */
  say(text: string): void
  flush(): void
}

export function talk(tell: (text: string) => void): Talk {
  const waiting = textTail(pieceLimit)
  let gathered = 0
  /** Line ends in it. */
  let lines = 0
  let lastTold = Number.NEGATIVE_INFINITY
  let told = 0
  let timer: NodeJS.Timeout | undefined
  /** Nothing more of a line has come for a while. */
  let pause: NodeJS.Timeout | undefined

  const tellFirst = (text: string, rest: string): void => {
    const hasGap = gathered > pieceLimit
    const said = lines
    waiting.clear()
    waiting.add(rest)
    gathered = rest.length
    lines = 0
    if (text.trim() === '') return
    lastTold = performance.now()
    told++
    tell(hasGap ? withoutGap(text, said) : text)
  }
  const flush = (): void => {
    clearTimeout(timer)
    clearTimeout(pause)
    timer = undefined
    pause = undefined
    tellFirst(waiting.text(), '')
  }
  /** A streaming model writes a line word by word: nobody wants to read it in pieces. */
  const tellLines = (): void => {
    timer = undefined
    const text = waiting.text()
    const end = text.lastIndexOf('\n') + 1
    if (text.length - end > longestHeld) flush()
    else if (end > 0) tellFirst(text.slice(0, end), text.slice(end))
  }
  const gather = (text: string): void => {
    gathered += text.length
    lines += lineEnds(text)
    waiting.add(text)
  }
  const tellSoon = (): void => {
    if (lines === 0 && gathered <= longestHeld) {
      pause = pause?.refresh() ?? setTimeout(flush, lineMs)
      return
    }
    const leftMs = lastTold + (told < soonTold ? shortPauseMs : longPauseMs) - performance.now()
    if (leftMs <= 0) tellLines()
    else timer ??= setTimeout(tellLines, leftMs)
    if (gathered > 0) pause = pause?.refresh() ?? setTimeout(flush, lineMs)
  }
  return {
    add(text, missed = 0) {
      lines += missed
      gather(text)
      tellSoon()
    },
    say(text) {
      if (told < soonTold) {
        gather(text)
        flush()
      } else {
        gather(`${text}\n`)
        tellSoon()
      }
    },
    flush,
  }
}

/** From its first whole line on, where it has one: half a word says nothing. */
function withoutGap(text: string, said: number): string {
  const first = text.indexOf('\n')
  const rest = first === -1 || first === text.length - 1 ? `…${text}` : text.slice(first + 1)
  const left = said - lineEnds(rest)
  return left > 0 ? `${gapLine(left)}${rest}` : rest
}

export function lineEnds(text: string | Buffer): number {
  let ends = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) ends++
  return ends
}

/** The last characters of what was said. What a word costs does not depend on what was said before it. */
export interface TextTail {
  add(text: string): void
  clear(): void
  text(): string
}

export function textTail(limit: number): TextTail {
  let parts: string[] = []
  let length = 0
  const shorten = (): void => {
    parts = [parts.join('').slice(-limit)]
    length = parts[0]?.length ?? 0
  }
  return {
    add(text) {
      const part = text.length > limit ? text.slice(-limit) : text
      parts.push(part)
      length += part.length
      if (length > 2 * limit) shorten()
    },
    clear() {
      parts = []
      length = 0
    },
    text() {
      shorten()
      return parts[0] ?? ''
    },
  }
}

const pieceLimit = 4096
const shortPauseMs = 50
/** Of a line that is not over: a prompt for an answer has no end, and some write no lines at all. */
const lineMs = 2000
const longestHeld = 1000
/** After so many pieces nobody reads each of them. */
const soonTold = 2000
const longPauseMs = 1000
