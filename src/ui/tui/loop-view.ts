// The loop screen as it is drawn: its head, the stories, the open tab, and the keys.
import { keepsWork } from '../../core/report.ts'
import type { StorySummary } from '../../core/event.ts'
import { storyName } from '../print/describe.ts'
import { attemptMs } from '../print/board.ts'
import { clip, duration, oneLine } from '../print/text.ts'
import { verdictMeaning, verdictName } from '../vocabulary.ts'
import { editorLine } from './editor.ts'
import { beside, keyLine, paneLines, shownPart, sign, styleFor, tabsLine, viewOf } from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { paneInside, placesOf, readingOf } from './loop-content.ts'
import { doingLine, headOf, overLines } from './loop-head.ts'
import {
  hasEnd,
  isAskedToLeave,
  isRunning,
  lookedAt,
  loopTabs,
  meaningOf,
  sinceMs,
  storiesOf,
  wide,
} from './loop-model.ts'
import type { LoopScreen } from './loop-model.ts'
import { searchedFor } from './search.ts'
import type { Search } from './search.ts'
import { bold, cellsOf, clipLine, dim, fitLine, harmless, line, sides, span } from './spans.ts'
import type { Line } from './spans.ts'

export interface Around {
  /** Said a moment ago, instead of the keys. */
  readonly says: string
  /** There is a list to go back to. */
  readonly hasList: boolean
}

export function loopView(screen: LoopScreen, world: World, around: Around): View {
  const { columns } = world.size
  const { side, main, height } = placesOf(screen, world.size)
  const search = screen.search === undefined ? '' : searchedFor(screen.search)
  const shown = shownPart({ ...readingOf(screen, world), search }, paneInside(screen, world.size).height)
  const body = paneLines({
    width: main,
    height,
    title: tabsLine(loopTabs, screen.tab),
    note: shown.note,
    lines: shown.lines,
  })
  const stories =
    side === 0
      ? []
      : paneLines({
          width: side,
          height,
          title: line('Stories', bold),
          lines: storyList(screen, world, side - 4, height - 2),
        })
  const head = headOf(screen, world)
  const over = overLines(screen, world.size)
  return viewOf(
    [
      head.line,
      ...(over.length > 0 ? over : [doingLine(screen, world, head.left)]),
      ...(side === 0 ? [storyRow(screen, columns), ...body] : beside(stories, body)),
      ...noteLines(screen, columns),
      footLine(screen, columns, around),
    ],
    world.size,
  )
}

// --- the stories ------------------------------------------------------------------------------------------------

/** On a narrow screen: every mark, and every name, or the name of the one that is looked at. */
function storyRow(screen: LoopScreen, columns: number): Line {
  const at = lookedAt(screen)
  const stories = storiesOf(screen)
  const marks = (isNamed: boolean): Line =>
    stories.flatMap((story): Line => {
      const name = isNamed || story.id === at ? storyName(story.id, story.title) : story.id
      const words = ` ${clip(oneLine(harmless(name)), 30)}  `
      return [...sign(meaningOf(story, screen)), span(words, story.id === at ? bold : dim)]
    })
  const named = marks(true)
  return [span(' '), ...clipLine(cellsOf(named) <= columns - 2 ? named : marks(false), columns - 2)]
}

function storyList(screen: LoopScreen, world: World, width: number, height: number): readonly Line[] {
  const stories = storiesOf(screen)
  const at = lookedAt(screen)
  const rows = stories.map((story) => storyLine(story, screen, world, width))
  const attempts = screen.feed.attempts
    .filter(({ storyId, record }) => storyId === at && record !== undefined)
    .flatMap(({ record }) => (record === undefined || keepsWork[record.verdict] ? [] : [record]))
    .map((record): Line => {
      const words = `#${String(record.n)} ${duration(record.duration_ms)} ${verdictName(record.verdict)}`
      const meaning = verdictMeaning(record.verdict) === 'waiting' ? 'waiting' : 'undone'
      return clipLine([span('  '), ...sign(meaning), span(` ${words}`, dim)], width)
    })
  const room = Math.max(1, height - (attempts.length === 0 ? 0 : Math.min(attempts.length, 5) + 1))
  const index = stories.findIndex(({ id }) => id === at)
  const first = Math.max(0, Math.min(index - Math.floor(room / 2), rows.length - room))
  const shown = rows.slice(first, first + room)
  if (attempts.length === 0) return shown
  return [...shown, [], ...attempts.slice(-5)]
}

function storyLine(story: StorySummary, screen: LoopScreen, world: World, width: number): Line {
  const isAt = story.id === lookedAt(screen)
  const { state, life } = screen
  const current = state?.current
  const isCurrent = current?.storyId === story.id && life === 'running'
  const past = (state?.iterations ?? []).filter(({ story_id: id }) => id === story.id)
  const ms =
    past.reduce((sum, record) => sum + attemptMs(screen.board, record), 0) +
    (isCurrent ? Math.max(0, world.nowMs - sinceMs(current.started)) : 0)
  const whole = ms < 1000 ? ms : Math.floor(ms / 1000) * 1000
  const right = [
    isCurrent ? `#${String(current.n)}` : '',
    past.length > 0 || isCurrent ? duration(whole) : '',
  ]
  const name = harmless(storyName(story.id, story.title))
  return sides(
    [span(isAt ? '› ' : '  ', bold), ...sign(meaningOf(story, screen)), span(` ${name}`, isAt ? bold : {})],
    line(right.filter((part) => part !== '').join('  '), dim),
    width,
  )
}

// --- the foot ---------------------------------------------------------------------------------------------------

function noteLines(screen: LoopScreen, columns: number): readonly Line[] {
  const { note } = screen
  if (note === undefined) return []
  const title = isRunning(screen)
    ? 'A note for the next prompt'
    : 'The run has ended: no agent will read this note'
  return paneLines({
    width: columns,
    height: 3,
    title: line(title, bold),
    lines: [fitLine(editorLine(note, columns - 5), columns - 4)],
  })
}

function searchLine(search: Search, columns: number): Line {
  const words = searchedFor(search)
  const { count, number, isPartial = false } = search
  const nowhere = isPartial ? 'not found here; all of it: ralph logs' : 'not found'
  const isLooked = words !== '' && count !== undefined
  const where = !isLooked ? '' : count === 0 ? nowhere : `${String(number)} of ${String(count)}`
  const isNarrow = columns < 80
  const moves = search.isOpen ? `enter done${isNarrow ? '' : ' · ↓ next · ↑ before'}` : 'n next · N before'
  const keys = isPartial ? 'esc close' : `${moves} · esc close`
  const right = line(`${where}  ${keys} `, dim)
  if (!search.isOpen) return sides([span(' /', bold), span(words)], right, columns)
  return sides([span(' /', bold), ...editorLine(search.editor, columns - cellsOf(right) - 4)], right, columns)
}

function footLine(screen: LoopScreen, columns: number, { says, hasList }: Around): Line {
  if (screen.search !== undefined && (screen.search.isOpen || says === ''))
    return searchLine(screen.search, columns)
  if (screen.note !== undefined && isRunning(screen))
    return keyLine(
      [
        ['enter', 'send it'],
        ['esc', 'cancel'],
      ],
      columns,
    )
  if (isAskedToLeave(screen)) return leaveLine(columns)
  if (says !== '') return clipLine(line(` ${says}`, styleFor('waiting')), columns)
  if (screen.note !== undefined) return keyLine([['esc', 'close this, and see how it ended']], columns)
  return keyLine(hintsOf(screen, hasList), columns)
}

/** To stop it costs the attempt: nobody does that by the key that leaves every other program. */
function leaveLine(columns: number): Line {
  const isNarrow = columns < 60
  const stops = columns < wide ? 'stop it' : 'stop it: its attempt is undone and kept'
  const hints: readonly KeyHint[] = [
    ['d', isNarrow ? 'leave it' : 'leave it running'],
    ['s', isNarrow ? 'stop it' : stops],
    ['esc', 'stay'],
  ]
  const question = line(' Quit?', styleFor('human'))
  return [...question, ...keyLine(hints, columns - cellsOf(question))]
}

function hintsOf(screen: LoopScreen, hasList: boolean): readonly KeyHint[] {
  const reading: readonly KeyHint[] = [
    ['←→', 'story'],
    ['tab', 'view'],
    ['/', 'search'],
    ['?', 'keys'],
  ]
  if (!isRunning(screen)) {
    const out: KeyHint = hasList ? ['esc', 'back'] : ['q', 'quit']
    return hasEnd(screen) ? [['enter', 'what next'], out, ...reading] : [out, ...reading]
  }
  const { state } = screen
  const isPaused = state?.waiting?.for === 'pause' || state?.pause === true
  const skips: readonly KeyHint[] =
    state?.waiting !== undefined && state.waiting.for !== 'pause' ? [['s', 'skip the wait']] : []
  return [
    ['q', 'quit'],
    ...(hasList ? ([['esc', 'back']] as const) : []),
    ...skips,
    ['p', isPaused ? 'continue' : 'pause'],
    ['n', 'note'],
    ['d', 'detach'],
    ...reading,
  ]
}
