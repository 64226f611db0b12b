// Facts for a person: a short name, then its words, wrapped at words below themselves where the terminal is narrow.
import type { Paint } from '../io.ts'
import { wrapWords } from './layout.ts'

/** What is typed stays on one line, however long it is: it is copied whole. */
export type Fact = readonly [name: string, words: string, isTyped?: boolean]

export interface FactPage {
  readonly paint: Paint
  /** Of the names. */
  readonly width: number
  /** Absent in a pipe, where a line stays a line. */
  readonly columns?: number | undefined
}

export function factLines(
  facts: readonly Fact[],
  { paint, width, columns = Infinity }: FactPage,
): readonly string[] {
  return facts.flatMap(([name, words, isTyped = false]) => {
    const lines = isTyped || columns === Infinity ? [words] : set(words, Math.max(20, columns - width - 4))
    return lines.map((line, at) => `  ${paint.dim((at === 0 ? name : '').padEnd(width))} ${line}`)
  })
}

/** What is set in stays so. */
function set(words: string, room: number): readonly string[] {
  const text = words.trimStart()
  const indent = ' '.repeat(words.length - text.length)
  return wrapWords(text, room - indent.length).map((line) => indent + line)
}
