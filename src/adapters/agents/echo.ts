// Takes a literal copy of the prompt out of a plain-text stream: an agent that repeats its orders has promised nothing (P2).

export interface EchoFilter {
  /** What of the text, and of what was held back before, is the assistant's own. */
  feed(text: string): string
  /** Whether a copy may have begun that the text so far cuts off. */
  readonly isHolding: boolean
  /** Whether a copy may begin in these whole lines. */
  canBeginIn(lines: Buffer): boolean
  end(): string
}

export function echoFilter(prompt: string): EchoFilter {
  const copy = prompt.trim()
  // Short enough to be searched for in a flood, long enough not to be found by accident.
  const head = copy.slice(0, 200)
  const headLine = /^[^\r\n]*/.exec(head)?.[0] ?? ''
  let held = ''
  return {
    get isHolding() {
      return held !== ''
    },
    canBeginIn: (lines) => headLine !== '' && lines.includes(headLine),
    feed(text) {
      if (copy === '') return text
      const whole = held + text
      let own = ''
      let from = 0
      for (;;) {
        const found = whole.indexOf(head, from)
        if (found === -1) {
          const keep = overlap(whole, head, from)
          held = whole.slice(keep)
          return own + whole.slice(from, keep)
        }
        own += whole.slice(from, found)
        const rest = whole.slice(found, found + copy.length)
        if (rest === copy) from = found + copy.length
        else if (rest.length < copy.length && copy.startsWith(rest)) {
          held = rest
          return own
        } else {
          own += whole.slice(found, found + 1)
          from = found + 1
        }
      }
    },
    end() {
      const own = held
      held = ''
      return own
    },
  }
}

/** Where a copy may begin that the end of the text cuts off. */
function overlap(text: string, head: string, from: number): number {
  const initial = head.charAt(0)
  let start = text.indexOf(initial, Math.max(from, text.length - head.length + 1))
  for (; start !== -1; start = text.indexOf(initial, start + 1)) {
    if (head.startsWith(text.slice(start))) return start
  }
  return text.length
}
