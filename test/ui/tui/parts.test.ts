// The parts that the screens are made of: keys from bytes, light Markdown, patches, wrapping, and what is left.
import { describe, expect, test } from 'vitest'
import type { StorySummary } from '../../../src/core/event.ts'
import { initialState } from '../../../src/core/state.ts'
import { storyName, storyTitle } from '../../../src/ui/print/describe.ts'
import { leaveBytes, orphanedBytes } from '../../../src/ui/print/modes.ts'
import { editorLine, editorOf } from '../../../src/ui/tui/editor.ts'
import { attemptLines } from '../../../src/ui/tui/feed-lines.ts'
import { emptyFeed, fed } from '../../../src/ui/tui/feed.ts'
import { forecastOf, forecastWords } from '../../../src/ui/tui/forecast.ts'
import { shownPart } from '../../../src/ui/tui/frame.ts'
import { keysOf } from '../../../src/ui/tui/keys.ts'
import { logged } from '../../../src/ui/tui/log-lines.ts'
import { markdownLines } from '../../../src/ui/tui/markdown.ts'
import { filesOf } from '../../../src/ui/tui/patch-lines.ts'
import {
  cellsOf,
  clipLine,
  fromPainted,
  harmless,
  line,
  paint,
  span,
  textOf,
} from '../../../src/ui/tui/spans.ts'
import { wrapSpans } from '../../../src/ui/tui/wrap.ts'
import { event, iteration } from '../events.ts'

describe('where one reads', () => {
  const lines = Array.from({ length: 44 }, (_, at) => line(String(at)))

  test('F17: of a long text, which part of it', () => {
    const { note } = shownPart({ lines, pager: { top: 0, seen: 0 }, isLive: false }, 18)
    expect(textOf(note)).toBe('1–18 of 44')
  })

  test('B16: where all fits nothing is new below', () => {
    const reading = { lines, pager: { top: 0, seen: 43 }, isLive: true }
    expect(textOf(shownPart(reading, 50).note)).toBe('')
    expect(textOf(shownPart(reading, 18).note)).toBe('↓ 1 new line')
  })

  test('B16: the end of a pause is said once, that of a wait as before', () => {
    const lifted = event({ type: 'pause.lifted' })
    const over = event({ type: 'wait.ended' })
    const words = (log: ReturnType<typeof logged>): readonly string[] => log.map(({ what }) => what)
    expect(words(logged([], [lifted, over]))).toEqual(['the pause is over'])
    expect(words(logged(logged([], [lifted]), [over]))).toEqual(['the pause is over'])
    expect(words(logged([], [over]))).toEqual(['the wait is over'])
  })

  test('an attempt that changed nothing is not called undone', () => {
    const reverted = event({ type: 'checkpoint.reverted', n: 1, commit: 'c', files: [] })
    expect(logged([], [reverted]).map(({ what }) => what)).toEqual(['nothing had changed'])
  })
})

describe('keys', () => {
  test.each([
    ['\u001B[A', ['up']],
    ['\u001BOB', ['down']],
    ['\u001B[1;5C', ['right']],
    ['\u001B[5;2~', ['page_up']],
    ['\u001B[Z', ['back_tab']],
    ['\u001B', ['escape']],
    ['\u001B\u001B[A', ['escape', 'up']],
    ['\u001B[<64;1;1M\u001B[<65;1;1M', ['wheel_up', 'wheel_down']],
    ['\u001B[<0;5;5M\u001B[<0;5;5m', []],
    ['\r\t\u007F\u0003\u001A', ['enter', 'tab', 'backspace', 'interrupt', 'suspend']],
    ['\u001B[999z', []],
  ])('%j', (bytes, names) => {
    expect(keysOf(bytes).keys.map(({ name }) => name)).toEqual(names)
  })

  test('a sequence that came in two pieces is one key', () => {
    const { keys, rest } = keysOf('a\u001B[')
    expect(keys).toEqual([{ name: 'text', text: 'a' }])
    expect(keysOf(`${rest}B`).keys).toEqual([{ name: 'down' }])
  })

  test('a paste is one piece of text, its line breaks are no Enter', () => {
    const { keys, rest } = keysOf('\u001B[200~one\r')
    expect(keys).toEqual([])
    expect(keysOf(`${rest}two\u001B[201~x`).keys).toEqual([
      { name: 'paste', text: 'one\rtwo' },
      { name: 'text', text: 'x' },
    ])
  })

  test('letters of any script are text', () => {
    expect(keysOf('é日🎉').keys.map((key) => 'text' in key && key.text)).toEqual(['é', '日', '🎉'])
  })
})

test('an editor shows what is around its cursor, whatever its width', () => {
  const editor = editorOf('日本語 and a long text that does not fit')
  for (let width = 4; width < 60; width += 1)
    expect(cellsOf(editorLine(editor, width))).toBeLessThanOrEqual(width)
  expect(textOf(editorLine(editor, 10))).toBe('s not fit ')
})

describe('Markdown', () => {
  const lines = (text: string, width = 30): readonly string[] => markdownLines(text, width).map(textOf)

  test('headings, lists with a hanging indent, code, links', () => {
    const text =
      '## A heading ##\n\n\n- one **two** `three` and four and five\n1. six\n\n```ts\n  const x = 1\n```\nsee [the docs](https://a.b)'
    expect(lines(text)).toEqual([
      'A heading',
      '',
      '• one two `three` and four and',
      '  five',
      '1. six',
      '',
      '      const x = 1',
      'see the docs (https://a.b)',
    ])
  })

  test('what is no Markdown stays as it was written', () => {
    expect(lines('2 * 3 * 4 = 24, a_b_c, [x] and **')).toEqual(['2 * 3 * 4 = 24, a_b_c, [x] and', '**'])
  })

  test('bold and code are told apart by their style', () => {
    const [spans = []] = markdownLines('**a** `b`', 20)
    expect(spans).toEqual([
      { text: 'a', isBold: true },
      { text: ' ' },
      { text: '`', isDim: true },
      { text: 'b' },
      { text: '`', isDim: true },
    ])
  })
})

describe('lines', () => {
  test('are broken between words, and within one that is wider than the line', () => {
    expect(wrapSpans(line('aa bb cccccccccccc'), 8).map(textOf)).toEqual(['aa bb', 'cccccccc', 'cccc'])
  })

  test('wide characters are counted as two cells', () => {
    for (const wrapped of wrapSpans(line('日本語日本語日本語 ✅✅✅✅✅✅'), 9))
      expect(cellsOf(wrapped)).toBeLessThanOrEqual(9)
    expect(cellsOf(clipLine([span('日本'), span('語日本')], 5))).toBeLessThanOrEqual(5)
  })

  test('what the printers paint is read back', () => {
    expect(fromPainted(`a${paint.bold(paint.red('b'))}c`)).toEqual([
      { text: 'a' },
      { text: 'b', isBold: true, colour: 'red' },
      { text: 'c' },
    ])
  })

  test('an agent cannot move the cursor, nor join what is counted apart', () => {
    expect(harmless('a\u001B[2Jb\u0007\t\u{1F468}\u200D\u{1F469}\uFE0F')).toBe('ab    \u{1F468}\u{1F469}')
  })
})

test('a patch is told by its files, also by names that git quotes', () => {
  const patch =
    'diff --git "a/sz\\303\\263.ts" "b/sz\\303\\263.ts"\nindex 1..2 100644\n--- "a/sz\\303\\263.ts"\n+++ "b/sz\\303\\263.ts"\n@@ -1 +1 @@\n-a\n+b\n' +
    'diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n'
  expect(filesOf(patch)).toMatchObject([
    { path: 'szó.ts', how: 'changed', added: 1, removed: 1 },
    { path: 'p.png', how: 'changed', added: 0, removed: 0 },
  ])
})

describe('what is left', () => {
  const story = (id: string, status: StorySummary['status']): StorySummary => ({
    id,
    title: id,
    status,
    tasks_done: 0,
    tasks_total: 1,
  })
  const took = (n: number, minutes: number, cost?: number) =>
    iteration({
      n,
      story_id: String(n),
      started: '2026-02-09T14:00:00+01:00',
      ended: `2026-02-09T14:${String(minutes).padStart(2, '0')}:00+01:00`,
      ...(cost !== undefined && { cost_usd: cost }),
    })
  const state = (done: readonly ReturnType<typeof took>[], open: number) => ({
    ...initialState('x'),
    stories: [
      ...done.map(({ story_id: id }) => story(id, 'done')),
      ...Array.from({ length: open }, (_, at) => story(`o${String(at)}`, 'open')),
    ],
    iterations: done,
  })
  const words = (of: ReturnType<typeof state>): string => {
    const forecast = forecastOf(of, 0)
    return forecast === undefined ? '' : forecastWords(forecast)
  }

  test('is not guessed before the first story is done, nor when none is left', () => {
    expect(words(state([], 3))).toBe('')
    expect(words(state([took(1, 4, 1)], 0))).toBe('')
  })

  test('is a range: of one story a wide one, of several by how much they differ', () => {
    expect(words(state([took(1, 4, 1)], 2))).toBe('about 5–11 min, $1.29–2.71 left')
    expect(words(state([took(1, 4, 1), took(2, 4, 1), took(3, 4, 1)], 2))).toBe(
      'about 7–9 min, $1.80–2.20 left',
    )
    expect(words(state([took(1, 2), took(2, 8)], 2))).toBe('about 4–16 min left')
  })

  test('of a few seconds is no minute', () => {
    expect(forecastWords({ ms: [1000, 5000] })).toBe('less than a minute left')
  })

  test('is said in hours where it is long', () => {
    expect(words(state([took(1, 40), took(2, 50)], 6))).toBe('about 4–5 h left')
  })
})

test('a story is called by its number and its title: a title that begins with a digit is whole, a manual loop has no number', () => {
  const names = [
    ['2', '2FA for all', '2 2FA for all', '2FA for all'],
    ['1', '1. One', '1. One', 'One'],
    ['3', 'Three', '3 Three', 'Three'],
    ['1', '12 factors', '1 12 factors', '12 factors'],
    ['manual', 'manual page: polish it', 'manual page: polish it', 'manual page: polish it'],
    ['4', '', '4', '4'],
  ] as const
  for (const [id, title, name, alone] of names)
    expect([storyName(id, title), storyTitle(id, title)]).toEqual([name, alone])
})

test('the alternate screen is empty when it is left: tmux puts it among the user’s lines where the window was resized', () => {
  expect(leaveBytes.indexOf('\u001B[2J')).toBeLessThan(leaveBytes.indexOf('\u001B[?1049l'))
  expect(leaveBytes).toContain('\u001B[2J')
  // Whoever does it for a program that was killed cannot know which screen is shown.
  expect(orphanedBytes).not.toContain('\u001B[2J')
})

test("F1: that a gate fails without the agent's work, too, stands in the attempt that is about to be paid", () => {
  const attempt = event({
    type: 'iteration.started',
    n: 2,
    story_id: '1',
    attempt: 2,
    attempts: 4,
    max_iterations: 8,
    agent: 'claude',
    base_commit: '',
    log_file: '',
  })
  const baseline = { n: 2, command: 'npm test' } as const
  const ended = event({ type: 'baseline.ended', ...baseline, outcome: 'same', duration_ms: 1, reason: 'no' })
  const { feed } = fed(emptyFeed, [attempt, event({ type: 'baseline.started', ...baseline }), ended])
  const lines = feed.attempts
    .flatMap((each) => attemptLines(each, { width: 76, worktree: '' }))
    .map((each) => each.map(({ text }) => text).join(''))
  expect(lines.join('\n')).toContain("! npm test fails in the same way without the agent's work")
  expect(lines.at(-1)).toContain('Stop, fix it, then ralph resume')
})
