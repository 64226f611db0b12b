// What was typed, from the bytes of a terminal: keys, pasted text and the mouse wheel.

type KeyName =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'page_up'
  | 'page_down'
  | 'home'
  | 'end'
  | 'tab'
  | 'back_tab'
  | 'enter'
  | 'escape'
  | 'backspace'
  | 'delete'
  | 'wheel_up'
  | 'wheel_down'
  | 'interrupt'
  | 'suspend'
  | 'redraw'
  | 'clear'

export type Key = { readonly name: KeyName } | { readonly name: 'text' | 'paste'; readonly text: string }

/** How far a list moves. */
export const rowsMoved: Readonly<Partial<Record<Key['name'], number>>> = {
  up: -1,
  down: 1,
  wheel_up: -1,
  wheel_down: 1,
  page_up: -10,
  page_down: 10,
  home: -Infinity,
  end: Infinity,
}

export interface Typed {
  readonly keys: readonly Key[]
  /** The beginning of something whose end has not come yet. */
  readonly rest: string
}

const sequences: Readonly<Record<string, KeyName>> = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  '[H': 'home',
  '[F': 'end',
  OH: 'home',
  OF: 'end',
  '[1~': 'home',
  '[7~': 'home',
  '[4~': 'end',
  '[8~': 'end',
  '[3~': 'delete',
  '[5~': 'page_up',
  '[6~': 'page_down',
  '[Z': 'back_tab',
}

const controls: Readonly<Record<string, KeyName>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\u007F': 'backspace',
  '\b': 'backspace',
  '\u0003': 'interrupt',
  '\u001A': 'suspend',
  '\u000C': 'redraw',
  '\u0015': 'clear',
  '\u0001': 'home',
  '\u0005': 'end',
}

const pasteBegins = '\u001B[200~'
const pasteEnds = '\u001B[201~'
/** A paste without an end is not waited for for ever. */
const longestPaste = 1_000_000

export function keysOf(bytes: string): Typed {
  const keys: Key[] = []
  let at = 0
  while (at < bytes.length) {
    if (bytes.startsWith(pasteBegins, at)) {
      const end = bytes.indexOf(pasteEnds, at)
      if (end === -1 && bytes.length - at < longestPaste) return { keys, rest: bytes.slice(at) }
      const until = end === -1 ? bytes.length : end
      keys.push({ name: 'paste', text: bytes.slice(at + pasteBegins.length, until) })
      at = until + pasteEnds.length
      continue
    }
    if (bytes[at] === '\u001B') {
      const [key, length] = escaped(bytes.slice(at))
      if (length === 0) return { keys, rest: bytes.slice(at) }
      if (key !== undefined) keys.push(key)
      at += length
      continue
    }
    const control = controls[bytes[at] ?? '']
    if (control !== undefined) {
      keys.push({ name: control })
      at += 1
      continue
    }
    const char = String.fromCodePoint(bytes.codePointAt(at) ?? 0)
    if (char >= ' ') keys.push({ name: 'text', text: char })
    at += char.length
  }
  return { keys, rest: '' }
}

/** What an escape sequence means, and how long it is; 0: it goes on. */
function escaped(bytes: string): readonly [Key | undefined, number] {
  // Alone it is the key: terminals send the others in one piece.
  if (bytes.length === 1 || bytes[1] === '\u001B') return [{ name: 'escape' }, 1]
  const mouse = /^\u001B\[<(\d+);\d+;\d+[Mm]/.exec(bytes)
  if (mouse !== null) {
    const button = Number(mouse[1]) & ~0b11100
    const wheel = button === 64 ? 'wheel_up' : button === 65 ? 'wheel_down' : undefined
    return [wheel && { name: wheel }, mouse[0].length]
  }
  const found = /^\u001B(\[[0-?]*[ -/]*[@-~]|O[A-Za-z])/.exec(bytes)
  if (found === null) {
    if (/^\u001B(?:\[[0-?]*[ -/]*|O)$/.test(bytes)) return [undefined, 0]
    // Alt and a key: as nobody uses it here, nothing.
    return [undefined, 1 + (bytes[1] ?? '').length]
  }
  const [whole, sequence = ''] = found
  // With Shift, Alt or Ctrl they are the same keys here.
  const name = sequences[sequence.replace(/^\[1;\d+/, '[').replace(/;\d+~$/, '~')]
  return [name && { name }, whole.length]
}
