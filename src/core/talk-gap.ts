// The line that stands for lines of a flood that nobody was told: one form, for who writes it and for who counts it.

export function gapLine(lines: number): string {
  return `… ${String(lines)} ${lines === 1 ? 'line' : 'lines'} left out\n`
}

/** How many lines are left out before the text, and the text. */
export function readGap(text: string): { readonly left: number; readonly rest: string } {
  const [line = '', left = '0'] = /^… (\d+) lines? left out\n/.exec(text) ?? []
  return { left: Number(left), rest: text.slice(line.length) }
}
