// Makes foreign text safe to stand in a prompt: fenced so that it cannot break out, cut to size, promise tags defused.

const encoder = new TextEncoder()

export function byteLength(text: string): number {
  return encoder.encode(text).length
}

/** A fence longer than any run of backticks inside: the text cannot end it. */
export function fenced(text: string, label = 'text'): string {
  const safe = defused(text)
  let longest = 2
  for (const run of safe.match(/`+/g) ?? []) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${label}\n${safe}\n${fence}`
}

/** One line for names and titles. */
export function inline(text: string, maxLength = 160): string {
  const line = defused(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}

/**
 * Tags are shown with ‹ in place of <, so that an agent that repeats the text promises nothing;
 * control characters go, because some agents take them for keys.
 */
export function defused(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
    .replaceAll(/<(?=\s*\/?\s*promise)/gi, '‹')
}

/** The head of a text; where something was cut, `where` says where the whole is. */
export function headOf(text: string, maxBytes: number, where: string): string {
  if (byteLength(text) <= maxBytes) return text
  return `${cut(text, maxBytes)}\n[… cut here; the whole text is in ${where}]`
}

/** The tail of a text, from a whole line on. */
export function tailOf(text: string, maxBytes: number, where: string): string {
  const bytes = encoder.encode(text)
  if (bytes.length <= maxBytes) return text
  const tail = new TextDecoder().decode(bytes.subarray(bytes.length - maxBytes))
  const line = tail.indexOf('\n')
  return `[the beginning is cut; the whole text is in ${where}]\n${tail.slice(line === -1 ? 0 : line + 1)}`
}

function cut(text: string, maxBytes: number): string {
  const head = new TextDecoder().decode(encoder.encode(text).subarray(0, maxBytes))
  const line = head.lastIndexOf('\n')
  return (line > maxBytes / 2 ? head.slice(0, line) : head).replace(/\uFFFD+$/, '').trimEnd()
}
