// Lines for a screen of any width: words wrapped with a hanging indent, figures at the right edge; in a pipe nothing is wrapped.
import type { Paint } from '../io.ts'
import { clip, widthOf } from './text.ts'

/** What lines are made for. */
export interface Sheet {
  readonly paint: Paint
  /** Undefined or Infinity in a pipe. */
  readonly columns: number | undefined
}

export interface Entry {
  readonly indent?: number
  /** One cell, painted. */
  readonly sign?: string
  readonly text: string
  readonly style?: (text: string) => string
  /** Short; at the right edge of a screen. */
  readonly right?: string
}

/** A line that is longer than this is hard to read, whatever the screen. */
const widest = 100

/** Never as wide as the terminal: a full last column wraps on some. */
export function widthFor({ columns }: Sheet): number | undefined {
  return columns === undefined || columns === Infinity ? undefined : Math.min(columns, widest) - 1
}

/** One entry as one line or, where it is too long for the screen, several. */
export function entryLines(
  { indent = 0, sign = '', text, style = (each) => each, right = '' }: Entry,
  sheet: Sheet,
): readonly string[] {
  const width = widthFor(sheet)
  const dim = (figures: string): string => sheet.paint.dim(figures)
  const margin = ' '.repeat(indent)
  const first = sign === '' ? margin : `${margin}${sign} `
  if (width === undefined)
    return [`${first}${style(text.replaceAll(joint, ' '))}${right === '' ? '' : `   ${dim(right)}`}`]
  const hang = ' '.repeat(indent + (sign === '' ? 0 : 2))
  const room = Math.max(10, width - hang.length)
  const parts = wrapWords(text, room)
  const last = parts.at(-1) ?? ''
  const gap = room - widthOf(last) - widthOf(right)
  const fits = right === '' || gap >= 2
  return [
    ...parts.map((part, index) => {
      const line = `${index === 0 ? first : hang}${style(part)}`
      const isLast = index === parts.length - 1
      return isLast && right !== '' && fits ? `${line}${' '.repeat(gap)}${dim(right)}` : line
    }),
    ...(fits ? [] : [`${hang}${' '.repeat(Math.max(0, room - widthOf(right)))}${dim(clip(right, room))}`]),
  ]
}

/** Sentences for a screen; a line that is set in is a list or to be copied, and stays as it is. */
export function folded(text: string, columns: number | undefined, indent = ''): string {
  const room =
    columns === undefined || columns === Infinity ? Infinity : Math.min(columns, widest) - 1 - indent.length
  return text
    .split('\n')
    .flatMap((line) =>
      line.startsWith(' ') || room === Infinity ? [line] : wrapWords(line, Math.max(10, room)),
    )
    .map((line) => `${indent}${line}`)
    .join('\n')
}

/** Breaks between words, not within what is to be copied; within a word only where it is wider than the screen. */
export function wrapWords(text: string, room: number): readonly string[] {
  const joined = text.replaceAll(copied, (part) =>
    widthOf(part) * (/^[`"]/.test(part) ? 2 : 1) <= room ? unbroken(part) : part,
  )
  const lines: string[] = []
  let line = ''
  let cells = 0
  for (const word of joined.split(' ')) {
    const wide = widthOf(word)
    if (line !== '' && cells + 1 + wide <= room) {
      line += ` ${word}`
      cells += 1 + wide
      continue
    }
    if (line !== '') lines.push(line)
    const pieces = brokenWord(word, wide, room)
    lines.push(...pieces.slice(0, -1))
    line = pieces.at(-1) ?? ''
    cells = widthOf(line)
  }
  return [...lines, line].map((each) => each.replaceAll(joint, ' '))
}

/** A short quotation, which may be a command; a line of the settings; a command at the end of its sentence. */
const copied =
  /`[^`]+`|(?<=ralph\.yaml: )\w+: (?:\[[^\]]*\]|\S+)|(?<=: )(?:ralph|git|npm) [^;]+?(?=$|[;,)]|\. )|"[^"]+"/g

/** Stands for a blank at which no line breaks. */
const joint = '\u0000'

/** A command that is to be copied stays on one line where it can. */
export function unbroken(command: string): string {
  return command.replaceAll(' ', joint)
}

function brokenWord(word: string, wide: number, room: number): readonly string[] {
  if (wide <= room) return [word]
  const pieces: string[] = []
  let piece = ''
  for (const char of word) {
    if (widthOf(piece + char) > room) {
      pieces.push(piece)
      piece = ''
    }
    piece += char
  }
  return [...pieces, piece]
}

/** Parts side by side, as many as fit into each line. */
export function partsLines(parts: readonly string[], gap: string, sheet: Sheet): readonly string[] {
  const width = widthFor(sheet)
  const lines: string[] = []
  let line = ''
  for (const part of parts) {
    const longer = line === '' ? part : `${line}${gap}${part}`
    if (width !== undefined && line !== '' && widthOf(longer) > width) {
      lines.push(line)
      line = `  ${part}`
    } else line = longer
  }
  return [...lines, line].map((each) => (width === undefined ? each : clip(each, width)))
}
