// Columns for people: as wide as their widest cell, no trailing spaces, headings that do not shout.
import type { Paint } from '../io.ts'
import { wrapWords } from './layout.ts'
import { widthOf } from './text.ts'

/** A cell is plain text; colour is given apart, so that widths stay true. */
export interface Cell {
  readonly text: string
  readonly paint?: (text: string) => string
}

export function table(
  headings: readonly string[],
  rows: readonly (readonly (Cell | string)[])[],
  paint: Paint,
  /** The last cell of a row is wrapped there, below itself or, where that is too narrow, below its row; absent in a pipe. */
  columns?: number,
  /** Whether the last column is understood without its heading, where it stands below its rows. */
  speaksForItself = false,
): string {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? { text: cell } : cell)))
  const widths = headings.map((heading, column) =>
    Math.max(widthOf(heading), ...cells.map((row) => widthOf(row[column]?.text ?? ''))),
  )
  const cellText = ({ text, paint: painted }: Cell, column: number): string =>
    (painted?.(text) ?? text) +
    (column === headings.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - widthOf(text) + 2))
  const start = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const line = (row: readonly Cell[]): string => {
    const last = row.at(-1)
    const whole = (): string => row.map(cellText).join('').trimEnd()
    if (columns === undefined || last === undefined || start + widthOf(last.text) < columns) return whole()
    const isBeside = columns - start > narrowest
    const indent = isBeside ? start : 4
    const head = row.slice(0, -1).map(cellText).join('')
    const rest = wrapWords(last.text, Math.max(10, columns - 1 - indent)).map(
      (part) => ' '.repeat(indent) + (last.paint?.(part) ?? part),
    )
    const [first = '', ...more] = rest
    return (isBeside ? [head + first.slice(indent), ...more] : [head.trimEnd(), ...rest]).join('\n')
  }
  const isBelow =
    speaksForItself &&
    columns !== undefined &&
    columns - start <= narrowest &&
    cells.some((row) => start + widthOf(row.at(-1)?.text ?? '') >= columns)
  const titles = isBelow ? [...headings.slice(0, -1), ''] : headings
  return [line(titles.map((text) => ({ text, paint: paint.dim }))), ...cells.map(line)].join('\n')
}

/** Of a column of words. */
const narrowest = 30
