// Text as one word of a shell line.

/** Quoted only where it has to be: for lines that a person reads. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text)
}

/** As git quotes its own settings, too. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Of a variable: others are lost on their way through a shell. */
export function isName(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name)
}
