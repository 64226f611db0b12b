// A line of text that is being typed: where the cursor is, and what each key does to it.
import { widthOf } from '../print/text.ts'
import type { Key } from './keys.ts'
import { harmless, inverse, span } from './spans.ts'
import type { Line } from './spans.ts'

export interface Editor {
  /** One entry for each character. */
  readonly text: readonly string[]
  /** Before which of them the cursor stands. */
  readonly at: number
}

export function editorOf(text = ''): Editor {
  const chars = Array.from(text)
  return { text: chars, at: chars.length }
}

export function typedText({ text }: Editor): string {
  return text.join('')
}

/** Undefined: not a key of an editor. */
export function edited(editor: Editor, key: Key): Editor | undefined {
  const { text, at } = editor
  switch (key.name) {
    case 'text':
    case 'paste': {
      const chars = Array.from(harmless(key.text).replaceAll(/\s+/g, ' '))
      return { text: [...text.slice(0, at), ...chars, ...text.slice(at)], at: at + chars.length }
    }
    case 'backspace':
      return at === 0 ? editor : { text: text.toSpliced(at - 1, 1), at: at - 1 }
    case 'delete':
      return { text: text.toSpliced(at, 1), at }
    case 'left':
      return { text, at: Math.max(0, at - 1) }
    case 'right':
      return { text, at: Math.min(text.length, at + 1) }
    case 'home':
      return { text, at: 0 }
    case 'end':
      return { text, at: text.length }
    case 'clear':
      return editorOf()
    case 'up':
    case 'down':
    case 'page_up':
    case 'page_down':
    case 'tab':
    case 'back_tab':
    case 'enter':
    case 'escape':
    case 'wheel_up':
    case 'wheel_down':
    case 'interrupt':
    case 'suspend':
    case 'redraw':
      return undefined
  }
}

/** In one line of so many cells, around the cursor. */
export function editorLine({ text, at }: Editor, width: number): Line {
  let from = at
  const under = text[at] ?? ' '
  let cells = widthOf(under)
  while (from > 0 && cells + widthOf(text[from - 1] ?? '') <= width) {
    from -= 1
    cells += widthOf(text[from] ?? '')
  }
  const before = text.slice(from, at).join('')
  let rest = ''
  let room = width - widthOf(before) - widthOf(under)
  for (const char of text.slice(at + 1)) {
    room -= widthOf(char)
    if (room < 0) break
    rest += char
  }
  return [span(before), span(under, inverse), span(rest)].filter((part) => part.text !== '')
}
