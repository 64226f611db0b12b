// Looking for words in what is on the screen: which lines have them, and which of those is the one at hand.
import { edited, editorOf, typedText } from './editor.ts'
import type { Editor } from './editor.ts'
import type { Key } from './keys.ts'
import { textOf } from './spans.ts'
import type { Line } from './spans.ts'

export interface Search {
  readonly editor: Editor
  /** The line that was found last. */
  readonly at: number | undefined
  readonly count: number
  /** Which of them it is, from 1. */
  readonly number: number
}

export function searchOf(): Search {
  return { editor: editorOf(), at: undefined, count: 0, number: 0 }
}

export function searchedFor({ editor }: Search): string {
  return typedText(editor)
}

/** The next one by Enter or down, the one before by up; a new word looks from the end, where one reads. Undefined: not a key of it. */
export function found(search: Search, key: Key, lines: readonly Line[]): Search | undefined {
  const isNext = key.name === 'enter' || key.name === 'down'
  const isBefore = key.name === 'up'
  const editor = isNext || isBefore ? search.editor : edited(search.editor, key)
  if (editor === undefined) return undefined
  const words = typedText(editor).toLowerCase()
  const hits =
    words === '' ? [] : lines.flatMap((each, at) => (textOf(each).toLowerCase().includes(words) ? [at] : []))
  if (hits.length === 0) return { editor, at: undefined, count: 0, number: 0 }
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
  return { editor, at: hits[which], count: hits.length, number: which + 1 }
}
