// Styled text in lines of a width: broken between words, within one only where it is wider than the line.
import { widthOf } from '../print/text.ts'
import { span } from './spans.ts'
import type { Line, Span } from './spans.ts'

/** `hang`: before every line but the first, which has `first` before it. */
export function wrapSpans(spans: Line, width: number, first: Line = [], hang = ''): readonly Line[] {
  const room = Math.max(8, width - Math.max(widthOf(hang), cells(first)))
  const lines: Span[][] = []
  let line: Span[] = []
  let used = 0
  /** The blanks before the next word: dropped where the line ends. */
  let gap: Span | undefined
  const end = (): void => {
    lines.push(line)
    line = []
    used = 0
    gap = undefined
  }
  for (const word of wordsOf(spans)) {
    if (word.isBlank) {
      if (used > 0) gap = word.spans[0]
      continue
    }
    const blank = gap === undefined ? 0 : widthOf(gap.text)
    if (used > 0 && used + blank + word.cells > room) end()
    else if (gap !== undefined) {
      line.push(gap)
      used += blank
    }
    gap = undefined
    for (const part of word.spans)
      for (const piece of pieces(part, room)) {
        const wide = widthOf(piece.text)
        if (used + wide > room && used > 0) end()
        line.push(piece)
        used += wide
      }
  }
  if (line.length > 0 || lines.length === 0) lines.push(line)
  return lines.map((each, at) =>
    at === 0 ? [...first, ...each] : hang === '' ? each : [span(hang), ...each],
  )
}

function cells(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(text), 0)
}

interface Word {
  readonly spans: Span[]
  readonly cells: number
  readonly isBlank: boolean
}

/** A word may be made of several spans: `**bo**ld`. */
function wordsOf(spans: Line): readonly Word[] {
  const words: { spans: Span[]; cells: number; isBlank: boolean }[] = []
  for (const each of spans)
    for (const [text] of each.text.matchAll(/ +|[^ ]+/g)) {
      const isBlank = text.startsWith(' ')
      const last = words.at(-1)
      const part = { ...each, text }
      if (last !== undefined && !isBlank && !last.isBlank) {
        last.spans.push(part)
        last.cells += widthOf(text)
      } else words.push({ spans: [part], cells: widthOf(text), isBlank })
    }
  return words
}

/** Of at most so many cells each. */
export function pieces(part: Span, room: number): readonly Span[] {
  if (widthOf(part.text) <= room) return [part]
  const found: Span[] = []
  let text = ''
  let used = 0
  for (const char of part.text) {
    const wide = widthOf(char)
    if (used + wide > room) {
      found.push({ ...part, text })
      text = ''
      used = 0
    }
    text += char
    used += wide
  }
  return [...found, { ...part, text }]
}
