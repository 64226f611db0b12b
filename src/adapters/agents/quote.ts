// Marks a promise that the prompt has in the same words, whatever became of its white space: wrapped or refilled, orders stay orders (P2).

export interface QuoteMarker {
  /** The text, with a sign behind each quoted promise that keeps it from counting and is not seen. */
  feed(text: string): string
  /** A part of the stream is left out here. */
  skip(): void
}

export function quoteMarker(prompt: string): QuoteMarker {
  const orders = withoutBlanks(prompt)
  /** The end of the stream so far, without white space. */
  let tail = ''

  const isQuote = (): boolean => {
    if (!tail.endsWith(closeTag)) return false
    const open = tail.lastIndexOf(openTag)
    const context = tail.slice(Math.max(0, open - contextLength), open)
    // A few words of the assistant's own may be in the prompt by accident.
    return open >= leastContext && orders.includes(context + tail.slice(open))
  }

  return {
    feed(text) {
      let marked = ''
      let from = 0
      for (const match of text.matchAll(tagEnd)) {
        const end = match.index + match[0].length
        tail = bareEnd(tail, text.slice(from, end))
        marked += text.slice(from, end) + (isQuote() ? wordJoiner : '')
        from = end
      }
      tail = bareEnd(tail, text.slice(from))
      return marked + text.slice(from)
    },
    skip() {
      tail = ''
    },
  }
}

const openTag = '<promise>'
const closeTag = '</promise>'
/** The first one may belong to a tag that began in the text before. */
const tagEnd = /^[^>]*>|promise\s*>/g
/** No decoration of a line, so a promise before it is in mid-sentence. */
const wordJoiner = '\u2060'
const contextLength = 60
const leastContext = 8
const tailLength = 300

function bareEnd(before: string, text: string): string {
  for (let length = 2 * tailLength; ; length *= 8) {
    const bare = withoutBlanks(text.slice(-length))
    if (bare.length >= tailLength) return bare.slice(-tailLength)
    if (length >= text.length) return (before + bare).slice(-tailLength)
  }
}

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s+/g, '')
}
