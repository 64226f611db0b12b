// What people did between two attempts, as rows among those of the attempts.
import { firstNames } from '../../core/first-names.ts'
import type { HandWork } from '../../core/hand-work.ts'
import type { Paint } from '../io.ts'
import { inColourOf, symbolOf } from '../vocabulary.ts'
import { storyName } from './describe.ts'
import { handGate, handMeaning } from './report-words.ts'
import type { Cell } from './table.ts'
import { excerpt, oneLine, plural } from './text.ts'

export interface HandRow {
  readonly time: string
  readonly story: string
  readonly result: Cell
  /** Of the gates; undefined where none was asked. */
  readonly tookMs: number | undefined
  readonly reason: string
}

type Titles = readonly { readonly id: string; readonly title: string }[]

/** Each where it belongs: after the attempt before it. */
export function withHands<T>(
  rows: readonly (readonly [n: number, row: T])[],
  hands: readonly (readonly [after: number, row: T])[],
): readonly T[] {
  const ended = rows.map(([n, row], at) => [n, 1, at, row] as const)
  const done = hands.map(([after, row], at) => [after, 2, at, row] as const)
  return [...ended, ...done]
    .toSorted((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])
    .map(([, , , row]) => row)
}

export function handRow(hand: HandWork, change: string, stories: Titles, paint: Paint): HandRow {
  const { checked, story_ids: ids, time, commit } = hand
  const meaning = checked === undefined ? 'open' : handMeaning(checked)
  const [first = ''] = ids
  const title = stories.find(({ id }) => id === first)?.title ?? ''
  const files = workOf(hand, change)
  const what = [
    ...(checked === undefined ? ['not by the loop, saved with this story'] : [handGate(checked)]),
    ...(checked === undefined || checked.reason === '' ? [] : [oneLine(checked.reason)]),
    ...(files.length === 0
      ? []
      : [
          `${plural(files.length, 'file')}: ${firstNames(files, mostFiles)} (git show ${commit.slice(0, 7)})`,
        ]),
  ]
  return {
    time,
    story: ids.length > 1 ? ids.join(', ') : storyName(first, title),
    result: {
      text: `${symbolOf(meaning)} by hand`,
      paint: (text) => inColourOf(meaning, text, paint),
    },
    tookMs: checked === undefined || checked.gates_ms === 0 ? undefined : checked.gates_ms,
    reason: excerpt(what.join('; '), 300),
  }
}

/** That boxes were ticked goes without saying. */
function workOf({ files }: HandWork, change: string): readonly string[] {
  return files.filter((file) => !file.endsWith(`changes/${change}/tasks.md`))
}

const mostFiles = 3
