// Looking for words in what is on the screen: which lines have them, and which of those is the one at hand.
import { edited, editorOf, typedText } from './editor.ts'
import type { Editor } from './editor.ts'
import type { Key } from './keys.ts'
import { textOf } from './spans.ts'
import type { Line } from './spans.ts'

export interface Search {
  /** The words are being typed; after that every other key is the screen's again. */
  readonly isOpen: boolean
  readonly editor: Editor
  /** The line that was found last. */
  readonly at: number | undefined
  /** Undefined: not looked for yet in what is shown. */
  readonly count: number | undefined
  /** Which of them it is, from 1. */
  readonly number: number
  /** Some of the text is in the log only. */
  readonly isPartial?: boolean
}

export function searchOf(): Search {
  return { isOpen: true, editor: editorOf(), at: undefined, count: undefined, number: 0 }
}

/** In another text. */
export function elsewhere(search: Search): Search {
  return { ...search, at: undefined, count: undefined, number: 0 }
}

export function searchedFor({ editor }: Search): string {
  return typedText(editor)
}

/** Enter closes the field; the next one by n, or by down while it is open, the one before by N or up. A new word looks from the end, where one reads. Undefined: not a key of it. */
export function found(search: Search, key: Key, lines: readonly Line[]): Search | undefined {
  const { isOpen } = search
  if (isOpen && key.name === 'enter') return { ...search, isOpen: false }
  const letter = !isOpen && key.name === 'text' ? key.text : ''
  const isNext = isOpen ? key.name === 'down' : key.name === 'enter' || letter === 'n'
  const isBefore = isOpen ? key.name === 'up' : letter === 'N'
  if (!isOpen && !isNext && !isBefore) return undefined
  const editor = isNext || isBefore ? search.editor : edited(search.editor, key)
  if (editor === undefined) return undefined
  const words = typedText(editor).toLowerCase()
  const hits =
    words === '' ? [] : lines.flatMap((each, at) => (textOf(each).toLowerCase().includes(words) ? [at] : []))
  if (hits.length === 0) {
    const isPartial = lines.some((each) => leftOut.test(textOf(each)))
    return { isOpen, editor, at: undefined, count: 0, number: 0, isPartial }
  }
  const from = search.at
  const after = hits.findIndex((at) => from !== undefined && at > from)
  const before = hits.findLastIndex((at) => from !== undefined && at < from)
  const which = isNext
    ? after === -1
      ? 0
      : after
    : isBefore
      ? before === -1
        ? hits.length - 1
        : before
      : hits.length - 1
  return { isOpen, editor, at: hits[which], count: hits.length, number: which + 1 }
}

/** As the feed says it, of lines that nobody was told and of those that it keeps no more. */
const leftOut = /^\s*… .*(?:left out|ralph logs)/
