// Columns for people: as wide as their widest cell, no trailing spaces, headings that do not shout.
import type { Paint } from '../io.ts'
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
): string {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? { text: cell } : cell)))
  const widths = headings.map((heading, column) =>
    Math.max(widthOf(heading), ...cells.map((row) => widthOf(row[column]?.text ?? ''))),
  )
  const line = (row: readonly Cell[]): string => {
    const last = row.length - 1
    return row
      .map((cell, column) => {
        const padding = column === last ? '' : ' '.repeat((widths[column] ?? 0) - widthOf(cell.text) + 2)
        return (cell.paint?.(cell.text) ?? cell.text) + padding
      })
      .join('')
      .trimEnd()
  }
  return [line(headings.map((text) => ({ text, paint: paint.dim }))), ...cells.map(line)].join('\n')
}
