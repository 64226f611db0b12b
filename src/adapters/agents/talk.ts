// Hands the assistant's words on in pieces that a reader can keep up with: 200 MB of output must flood neither events nor memory.

export interface Talk {
  /** Words without a border of their own; gathered. `missed`: lines before them that nobody has heard. */
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

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    const text = waiting.text()
    const hasGap = gathered > pieceLimit
    const said = lines
    waiting.clear()
    gathered = 0
    lines = 0
    if (text.trim() === '') return
    lastTold = performance.now()
    told++
    tell(hasGap ? withoutGap(text, said) : text)
  }
  const gather = (text: string): void => {
    gathered += text.length
    lines += lineEnds(text)
    waiting.add(text)
  }
  const tellSoon = (): void => {
    const leftMs = lastTold + (told < soonTold ? shortPauseMs : longPauseMs) - performance.now()
    if (leftMs <= 0) flush()
    else timer ??= setTimeout(flush, leftMs)
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
  if (first === -1 || first === text.length - 1) return `…${text}`
  const rest = text.slice(first + 1)
  const left = said - lineEnds(rest)
  return `… ${String(left)} ${left === 1 ? 'line' : 'lines'} left out\n${rest}`
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
/** After so many pieces nobody reads each of them. */
const soonTold = 2000
const longPauseMs = 1000
