// The keys of each screen, in words; one list, for the overlay and for the docs.
import { bold, dim, line, span } from './spans.ts'
import type { Line } from './spans.ts'
import { keyLine, paneLines, viewOf } from './frame.ts'
import { wrapSpans } from './wrap.ts'
import type { KeyHint, Size, View } from './frame.ts'

const reading: readonly KeyHint[] = [
  ['↑ ↓', 'one line'],
  ['PgUp PgDn', 'one page'],
  ['g G', 'the beginning, the end'],
]

const helpKeys = {
  select: [
    ['↑ ↓', 'choose a change'],
    ['enter', 'open it; join it where it runs'],
    ['r', 'run it, or resume it where it stopped'],
    ['l', 'look at its last run'],
    ['u', 'the merge queue, where there is one'],
    ['/', 'show only names with these letters'],
    ['q', 'quit; running loops continue'],
  ],
  queue: [
    ['↑ ↓', 'choose a change'],
    ['enter', 'join its loop; look at its last run where none runs'],
    ['esc', 'back to all changes'],
    ['q', 'quit; in ralph up: stop it, its loops continue'],
  ],
  preview: [
    ['r', 'run it, or resume it where it stopped'],
    ['tab, 1-4', 'stories, scenarios, prompt, settings'],
    ['← →', 'in Prompt: another story'],
    ['enter', 'in Settings: change a setting for this run'],
    ...reading,
    ['esc', 'back to all changes'],
    ['q', 'quit'],
  ],
  loop: [
    ['q', 'quit: leave it running or stop it is asked first'],
    ['Ctrl-C', 'stop: its attempt is kept, the files go back; 3 times: kill it'],
    ['p', 'pause after this attempt; again: continue'],
    ['s', 'do not wait any longer for a limit or a service'],
    ['n', 'a note for the next prompt'],
    ['d', 'leave; the loop continues (ralph attach joins it again)'],
    ['← →', 'another story'],
    ['tab, 1-5', 'agent, tasks, diff, gates, log'],
    ...reading.slice(0, -1),
    ['g G', 'the beginning, the end; G there: the story at work'],
    ['/', 'search in what is shown'],
    ['esc', 'back to all changes, or to the queue; the loop continues'],
  ],
  ended: [
    ['enter', 'how it ended, and what next'],
    ['← →', 'another story'],
    ['tab, 1-5', 'agent, tasks, diff, gates, log'],
    ...reading,
    ['/', 'search in what is shown'],
    ['esc', 'back to all changes'],
    ['q', 'quit'],
  ],
  word: [
    ['↑ ↓', 'choose; or type its first letter'],
    ['enter', 'do what is chosen'],
    ['tab', 'the changed files; again: back to the choice'],
    ['esc', 'decide later (ralph done, or ralph resume)'],
    ['q', 'quit, and decide later'],
  ],
  choice: [
    ['↑ ↓', 'choose; or type its first letter'],
    ['enter', 'do what is chosen'],
    ['tab', 'the changed files; again: back to the choice'],
    ['a, enter', 'where it is not done: try again (ralph resume); a, ↓: with a note'],
    ['esc', 'decide later (ralph finish)'],
    ['q', 'quit, and decide later'],
  ],
  result: [
    ['tab', 'summary, changed files'],
    ...reading,
    ['a, enter', 'where it is not done: try again (ralph resume); a, ↓: with a note'],
    ['esc', 'back to all changes, or to the run'],
    ['q', 'quit'],
  ],
} as const satisfies Record<string, readonly KeyHint[]>

/** `unused`: keys that do nothing where it was asked for. */
export function helpView(
  which: keyof typeof helpKeys,
  size: Size,
  unused: ReadonlySet<string> = new Set(),
): View {
  const all: readonly KeyHint[] = helpKeys[which]
  const rows = all.filter(([key]) => !unused.has(key))
  const lines: readonly Line[] = [
    ...rows.flatMap(([key, what]) =>
      wrapSpans(line(what), size.columns - 4, [span(`  ${key.padEnd(12)}`, bold)], ' '.repeat(14)),
    ),
    [],
    ...wrapSpans(
      line('The mouse wheel scrolls. Hold Shift (Option on a Mac) to select text.', dim),
      size.columns - 4,
      line('  '),
      '  ',
    ),
  ]
  const body = paneLines({
    width: size.columns,
    height: size.rows - 1 - 1,
    title: line('Keys', bold),
    lines,
  })
  return viewOf([...body, keyLine([['any key', 'closes this']], size.columns)], size)
}
