// Text with its style, as data: what a screen is made of before anything is drawn.
import { paintWith } from '../paint.ts'
import { clean, clip, widthOf } from '../print/text.ts'

type Colour = 'green' | 'red' | 'cyan' | 'yellow' | 'magenta' | 'blue'

export interface Style {
  readonly colour?: Colour
  readonly isBold?: true
  readonly isDim?: true
  readonly isInverse?: true
}

export interface Span extends Style {
  readonly text: string
}

export type Line = readonly Span[]

export const bold = { isBold: true } as const satisfies Style
export const dim = { isDim: true } as const satisfies Style
export const inverse = { isInverse: true } as const satisfies Style

export function span(text: string, style: Style = {}): Span {
  return { ...style, text }
}

export function line(text: string, style: Style = {}): Line {
  return text === '' ? [] : [span(text, style)]
}

export function textOf(spans: Line): string {
  return spans.map(({ text }) => text).join('')
}

export function cellsOf(spans: Line): number {
  return spans.reduce((cells, { text }) => cells + widthOf(text), 0)
}

/** At most so many cells; what is cut is shown as an ellipsis. */
export function clipLine(spans: Line, width: number): Line {
  if (cellsOf(spans) <= width) return spans
  const clipped: Span[] = []
  let room = width
  for (const [at, each] of spans.entries()) {
    const cells = widthOf(each.text)
    const isLast = at === spans.length - 1
    if (cells < room || (isLast && cells === room)) {
      clipped.push(each)
      room -= cells
      continue
    }
    // One too many asks for the ellipsis, where the rest of the line is in the spans to come.
    const text = clip(isLast ? each.text : `${each.text} `, room)
    clipped.push({ ...each, text })
    break
  }
  return clipped
}

/** Exactly so many cells. */
export function fitLine(spans: Line, width: number): Line {
  const clipped = clipLine(spans, width)
  const rest = width - cellsOf(clipped)
  return rest > 0 ? [...clipped, span(' '.repeat(rest))] : clipped
}

/** One at the left edge, one at the right; the left one gives way. */
export function sides(left: Line, right: Line, width: number): Line {
  const cells = cellsOf(right)
  if (cells === 0 || cells + 8 > width) return fitLine(left, width)
  return [...fitLine(left, width - cells - 1), span(' '), ...right]
}

/** For the printers that make lines with colours in them: read back by `fromPainted`. */
export const paint = paintWith(true)

const colourCodes: Readonly<Record<string, Colour>> = {
  31: 'red',
  32: 'green',
  33: 'yellow',
  34: 'blue',
  35: 'magenta',
  36: 'cyan',
}

/** A line of the printers', its colours as styles. Only codes of ours are in it. */
export function fromPainted(painted: string): Line {
  const spans: Span[] = []
  let style: Style = {}
  for (const [, code, text] of painted.matchAll(/\u001B\[(\d+)m|([^\u001B]+)/g)) {
    if (text !== undefined) spans.push(span(text, style))
    else style = restyle(style, code ?? '')
  }
  return spans
}

function restyle({ colour, isBold, isDim, isInverse }: Style, code: string): Style {
  const now = {
    colour: code === '39' ? undefined : (colourCodes[code] ?? colour),
    isBold: code === '1' || (code !== '22' && isBold),
    isDim: code === '2' || (code !== '22' && isDim),
    isInverse: code === '7' || (code !== '27' && isInverse),
  }
  return {
    ...(now.colour !== undefined && { colour: now.colour }),
    ...(now.isBold && bold),
    ...(now.isDim && dim),
    ...(now.isInverse && inverse),
  }
}

/** What joins or colours emoji takes room on some terminals and none on others: without it every cell is counted as it is drawn. */
const joiners = /[\u200B-\u200F\u2060\uFEFF\u{E0000}-\u{E01EF}]|\p{Variation_Selector}|\p{Emoji_Modifier}/gu

/** An agent's text as a screen can hold it: no control characters, tabs as blanks. */
export function harmless(text: string): string {
  return clean(text).replaceAll(joiners, '').replaceAll('\t', '    ')
}

/** The line with these cells marked, wherever the words stand in it. */
export function marked(spans: Line, words: string): Line {
  const needle = words.toLowerCase()
  if (needle === '') return spans
  return spans.flatMap((each): Line => {
    const low = each.text.toLowerCase()
    if (!low.includes(needle) || low.length !== each.text.length) return [each]
    const parts: Span[] = []
    let at = 0
    for (let found = low.indexOf(needle); found !== -1; found = low.indexOf(needle, at)) {
      if (found > at) parts.push({ ...each, text: each.text.slice(at, found) })
      parts.push({ ...each, ...inverse, text: each.text.slice(found, found + needle.length) })
      at = found + needle.length
    }
    return at < each.text.length ? [...parts, { ...each, text: each.text.slice(at) }] : parts
  })
}
