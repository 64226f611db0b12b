// Names of refs as text: git holds bytes, mostly UTF-8. A byte that is none stands as a lone surrogate, and no name is damaged.

/** From git's output (latin1: one char per byte). */
export function textOf(bytes: string): string {
  // oxlint-disable-next-line no-control-regex -- all of ASCII
  if (/^[\x00-\x7f]*$/.test(bytes)) return bytes
  return bytes.replace(sequence, (one) =>
    one.length === 1
      ? String.fromCharCode(0xdc00 + one.charCodeAt(0))
      : Buffer.from(one, 'latin1').toString('utf8'),
  )
}

export function bytesOf(text: string): Buffer {
  const parts = text.split(/([\udc80-\udcff])/u)
  return Buffer.concat(
    parts.map((part, at) => (at % 2 === 1 ? Buffer.from([part.charCodeAt(0) - 0xdc00]) : Buffer.from(part))),
  )
}

/** Whether it can be a program's argument: those are UTF-8. */
export function isPlainText(text: string): boolean {
  return !/[\udc80-\udcff]/u.test(text)
}

/** One character of well-formed UTF-8 beyond ASCII, or one byte. */
const sequence =
  /[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\x80-\xff]/g
