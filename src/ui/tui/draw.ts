// A view as bytes for a terminal: styles as its codes, and ASCII where the locale has no more.
import { isUtf8, symbolOf } from '../vocabulary.ts'
import { widthOf } from '../print/text.ts'
import type { View } from './frame.ts'
import type { Line, Span } from './spans.ts'
import { paint } from './spans.ts'

export interface Pen {
  readonly isColour: boolean
  readonly isAscii: boolean
}

/** NO_COLOR takes the colours, not what tells the chosen row from the others. */
export function penFor(env: NodeJS.ProcessEnv): Pen {
  return { isColour: !env['NO_COLOR'], isAscii: !isUtf8(env) }
}

export function drawn({ lines }: View, pen: Pen): readonly string[] {
  return lines.map((line) => drawnLine(line, pen))
}

function drawnLine(line: Line, pen: Pen): string {
  return line.map((span) => drawnSpan(span, pen)).join('')
}

function drawnSpan({ text, colour, isBold, isDim, isInverse }: Span, { isColour, isAscii }: Pen): string {
  let shown = isAscii ? inAscii(text) : text
  if (colour !== undefined && isColour) shown = paint[colour](shown)
  if (isDim) shown = paint.dim(shown)
  if (isBold) shown = paint.bold(shown)
  return isInverse ? paint.inverse(shown) : shown
}

/** Cell for cell: nothing may move. */
const cells: ReadonlyMap<string, string> = new Map([
  [symbolOf('done'), '+'],
  [symbolOf('failed'), 'x'],
  [symbolOf('working'), '>'],
  [symbolOf('open'), '.'],
  [symbolOf('undone'), '<'],
  [symbolOf('waiting'), '='],
  ['›', '>'],
  ['→', '>'],
  ['←', '<'],
  ['↑', '^'],
  ['↓', 'v'],
  ['…', '~'],
  ['·', '-'],
  ['•', '*'],
  ['─', '-'],
  ['–', '-'],
  ['—', '-'],
  ['×', 'x'],
  ['│', '|'],
  ['╭', '+'],
  ['╮', '+'],
  ['╰', '+'],
  ['╯', '+'],
  ['█', '#'],
  ['░', '.'],
  ['’', "'"],
  ['‘', "'"],
  ['“', '"'],
  ['”', '"'],
])

const turning = ['|', '/', '-', '\\']

function inAscii(text: string): string {
  return text.replaceAll(/[^\u0000-~]/gu, (char) => {
    const known = cells.get(char)
    if (known !== undefined) return known
    // The spinner.
    const dots = (char.codePointAt(0) ?? 0) - 0x28_00
    if (dots >= 0 && dots < 256) return turning[dots % turning.length] ?? '|'
    return '?'.repeat(widthOf(char))
  })
}
