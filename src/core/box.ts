// One checkbox line: how OpenSpec (1.13.1 and later) reads it, and how its mark is changed without touching a byte around it.

export interface Box {
  /** Index of `[` and of `]` in the line. */
  readonly open: number
  readonly close: number
  /** The one character between the brackets, or '' for a blank box. */
  readonly mark: string
  /** What follows the box, trimmed. */
  readonly text: string
  /** Columns in front of the list marker; a tab goes to the next multiple of four. */
  readonly indent: number
}

/**
 * Same answer as OpenSpec's own pattern for every line, but in linear time: its
 * `\s*([^\]\s]?)\s*\]` takes minutes for a bracket followed by a megabyte of blanks.
 */
export function readBox(line: string): Box | undefined {
  const marker = /^\s*(?:[-*+]|\d{1,9}[.)])\s*\[/.exec(line)
  if (marker === null) return undefined
  const open = marker[0].length - 1
  let at = skipBlanks(line, open + 1)
  let mark = ''
  if (at < line.length && line[at] !== ']') {
    mark = line.charAt(at)
    at = skipBlanks(line, at + 1)
  }
  if (line[at] !== ']') return undefined
  // `[a](` and `[](` are links; only a box of blanks may be glued to a bracket.
  const isGlued = line[at + 1] === '(' || line[at + 1] === '['
  if (isGlued && (mark !== '' || at === open + 1)) return undefined
  return { open, close: at, mark, text: textAfter(line, at + 1), indent: indentOf(line) }
}

export function isDoneMark(mark: string): boolean {
  return mark === 'x' || mark === 'X'
}

/** Ticks or unticks the boxes on these 1-based lines; every other byte stays, also in a file that is no valid UTF-8. */
export function setBoxes(bytes: Uint8Array, lineNumbers: ReadonlySet<number>, done: boolean): Uint8Array {
  const lines = splitLines(bytes)
  return joinLines(lines.map((line, index) => (lineNumbers.has(index + 1) ? setBox(line, done) : line)))
}

export function setBox(line: Uint8Array, done: boolean): Uint8Array {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(line)
  const box = readBox(text)
  if (box === undefined) throw new Error('this line holds no box')
  const encoder = new TextEncoder()
  // In front of `[` stand only blanks and the list marker, so the decoded prefix has exactly the bytes of the original.
  const open = encoder.encode(text.slice(0, box.open)).length
  const close = line.indexOf(0x5d, open + 1)
  const inner = marked(text.slice(box.open + 1, box.close), box.mark, done)
  // `[ ](x)` counts as a box, `[x](x)` is a link: without the blank OpenSpec would lose the task.
  const end = done && /[([]/.test(text.charAt(box.close + 1)) ? '] ' : ']'
  return concatenated([line.subarray(0, open + 1), encoder.encode(inner + end), line.subarray(close + 1)])
}

/** At LF only; what `joinLines` puts together again to the same bytes. */
export function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = []
  let start = 0
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    lines.push(bytes.subarray(start, end))
    start = end + 1
  }
  lines.push(bytes.subarray(start))
  return lines
}

export function joinLines(lines: readonly Uint8Array[]): Uint8Array {
  const newline = Uint8Array.of(0x0a)
  return concatenated(lines.flatMap((line, index) => (index === 0 ? [line] : [newline, line])))
}

function skipBlanks(line: string, from: number): number {
  let at = from
  while (at < line.length && /\s/.test(line.charAt(at))) at += 1
  return at
}

function textAfter(line: string, from: number): string {
  const rest = line.slice(from).trimStart()
  const cut = rest.search(/[\r\u2028\u2029]/)
  return (cut === -1 ? rest : rest.slice(0, cut)).trim()
}

export function indentOf(line: string): number {
  let columns = 0
  for (const character of line) {
    if (character === '\uFEFF') continue
    if (!/\s/.test(character)) break
    columns = character === '\t' ? columns - (columns % 4) + 4 : columns + 1
  }
  return columns
}

function marked(inner: string, mark: string, done: boolean): string {
  if (done ? isDoneMark(mark) : mark === '') return inner
  if (mark !== '') return inner.replace(mark, done ? 'x' : ' ')
  const middle = Math.floor(inner.length / 2)
  return `${inner.slice(0, middle)}x${inner.slice(middle + 1)}`
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
