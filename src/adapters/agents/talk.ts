// Hands the assistant's words on in pieces that a reader can keep up with: 200 MB of output must flood neither events nor memory.

export interface Talk {
  /** Words without a border of their own; gathered. */
  add(text: string): void
  /** A whole message: told at once, until there are too many. */
  say(text: string): void
  flush(): void
}

export function talk(tell: (text: string) => void): Talk {
  let waiting = ''
  let hasGap = false
  let lastTold = Number.NEGATIVE_INFINITY
  let told = 0
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    const text = waiting.trim() === '' ? '' : `${hasGap ? '…' : ''}${waiting}`
    waiting = ''
    hasGap = false
    if (text === '') return
    lastTold = performance.now()
    told++
    tell(text)
  }
  const gather = (text: string): void => {
    hasGap ||= waiting.length + text.length > pieceLimit
    waiting = tailOf(waiting, text, pieceLimit)
  }
  const tellSoon = (): void => {
    const leftMs = lastTold + (told < soonTold ? shortPauseMs : longPauseMs) - performance.now()
    if (leftMs <= 0) flush()
    else timer ??= setTimeout(flush, leftMs)
  }
  return {
    add(text) {
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

/** The last characters of both together. */
export function tailOf(before: string, text: string, limit: number): string {
  return text.length >= limit ? text.slice(-limit) : (before + text).slice(-limit)
}

const pieceLimit = 4096
const shortPauseMs = 50
/** After so many pieces nobody reads each of them. */
const soonTold = 2000
const longPauseMs = 1000
