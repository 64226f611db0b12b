// Hands the assistant's words on in pieces that a reader can keep up with: 200 MB of output must flood neither events nor memory.

export interface Talk {
  /** Words without a border of their own; gathered. */
  add(text: string): void
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
  return {
    add(text) {
      hasGap ||= waiting.length + text.length > pieceLimit
      waiting = (waiting + text.slice(-pieceLimit)).slice(-pieceLimit)
      const pauseMs = told < soonTold ? shortPauseMs : longPauseMs
      const leftMs = lastTold + pauseMs - performance.now()
      if (leftMs <= 0) flush()
      else timer ??= setTimeout(flush, leftMs)
    },
    flush,
  }
}

const pieceLimit = 4096
const shortPauseMs = 50
/** After so many pieces nobody reads each of them. */
const soonTold = 2000
const longPauseMs = 1000
