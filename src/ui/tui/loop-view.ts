// The loop screen as it is drawn: two lines of head, the stories, the open tab, and the keys.
import { keepsWork } from '../../core/report.ts'
import { totalCostUsd, totalTokens } from '../../core/state.ts'
import type { StorySummary } from '../../core/event.ts'
import { storyName, storyTitle } from '../print/describe.ts'
import { clip, clockTime, duration, oneLine, plural, tokens, usd } from '../print/text.ts'
import {
  statusMeaning,
  statusName,
  storyMeanings,
  symbolOf,
  verdictMeaning,
  verdictName,
  waitWords,
} from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { editorLine } from './editor.ts'
import { forecastOf, forecastWords } from './forecast.ts'
import {
  bar,
  beside,
  fitParts,
  fitting,
  keyLine,
  paneLines,
  shownPart,
  sign,
  styleFor,
  tabsLine,
  viewOf,
} from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { paneInside, placesOf, readingOf, wide } from './loop-content.ts'
import { isRunning, lookedAt, loopTabs, sinceMs, storiesOf } from './loop-model.ts'
import type { LoopScreen } from './loop-model.ts'
import { searchedFor } from './search.ts'
import type { Search } from './search.ts'
import { bold, clipLine, dim, fitLine, harmless, line, sides, span } from './spans.ts'
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
  return viewOf(
    [
      head.line,
      doingLine(screen, world, head.left),
      ...(side === 0 ? [storyRow(screen, columns), ...body] : beside(stories, body)),
      ...noteLines(screen, columns),
      footLine(screen, columns, around),
    ],
    world.size,
  )
}

// --- the head ---------------------------------------------------------------------------------------------------

function stateWords(screen: LoopScreen): readonly [word: string, meaning: Meaning] {
  const { life, state, complete } = screen
  if (life === 'joining') return ['joining', 'working']
  if (life === 'none' || state === undefined) return ['not started', 'open']
  if (life === 'dead') return ['died', 'failed']
  if (complete !== undefined && life !== 'running')
    return [statusName(complete.status), statusMeaning(complete.status)]
  if (state.stop !== undefined && life === 'running') return ['stopping', 'waiting']
  if (state.waiting !== undefined && life === 'running')
    return [state.waiting.for === 'pause' ? 'paused' : 'waiting', 'waiting']
  return [statusName(state.status), statusMeaning(state.status)]
}

interface Head {
  readonly line: Line
  /** The forecast, where there was no room for it. */
  readonly left: Line
}

function headOf(screen: LoopScreen, world: World): Head {
  const { state, change } = screen
  const { columns } = world.size
  const [word, meaning] = stateWords(screen)
  const stories = storiesOf(screen)
  const done = stories.filter(({ status }) => status === 'done').length
  const cells = columns >= 120 ? 20 : 10
  const name = clip(oneLine(harmless(change)), Math.max(12, Math.floor(columns / 3)))
  const forecast = state === undefined || !isRunning(screen) ? undefined : forecastOf(state, world.nowMs)
  const counts = `${String(done)}/${plural(stories.length, 'story', 'stories')}`
  const tasks =
    state === undefined || state.tasksTotal === 0
      ? ''
      : `${String(state.tasksDone)}/${plural(state.tasksTotal, 'task')}`
  const left = forecast === undefined ? [] : line(forecastWords(forecast), dim)
  const parts = [
    { spans: line(name, bold), worth: 10 },
    { spans: [...sign(meaning), span(` ${word}`, styleFor(meaning))], worth: 9 },
    { spans: stories.length === 0 ? [] : bar(done, stories.length, cells), worth: 4 },
    { spans: stories.length === 0 ? [] : line(counts), worth: 8 },
    { spans: line(tasks), worth: 3 },
    { spans: line(elapsed(screen, world.nowMs)), worth: 7 },
    { spans: line(tokenWords(screen)), worth: 5 },
    { spans: line(costWords(screen)), worth: 6 },
    { spans: left, worth: 2 },
  ]
  const fits = fitting(parts, columns - 2).some(({ spans }) => spans === left)
  return { line: [span(' '), ...fitParts(parts, columns - 2)], left: fits ? [] : left }
}

function elapsed({ state, complete, life, board }: LoopScreen, nowMs: number): string {
  if (state?.startedAt === undefined) return ''
  if (life !== 'running')
    return complete === undefined
      ? ''
      : duration(Math.max(complete.totals.duration_ms, board.spent.duration_ms))
  return duration(Math.max(0, Math.floor((nowMs - sinceMs(state.startedAt)) / 1000) * 1000))
}

function tokenWords({ state }: LoopScreen): string {
  if (state === undefined) return ''
  const now = state.current?.usage
  const used = totalTokens(state) + (now === undefined ? 0 : now.input_tokens + now.output_tokens)
  return used === 0 ? '' : `${tokens(used)} tokens`
}

function costWords({ state }: LoopScreen): string {
  const cost = state === undefined ? 0 : (totalCostUsd(state) ?? 0) + (state.current?.usage?.cost_usd ?? 0)
  return cost === 0 ? '' : usd(cost)
}

function doingLine(screen: LoopScreen, world: World, forecast: Line): Line {
  const { columns } = world.size
  const { state, life } = screen
  const change = oneLine(screen.change)
  if (life === 'dead')
    return clipLine(
      line(
        ` The loop’s process is gone. What is saved is safe. Continue with: ralph resume ${change}`,
        styleFor('failed'),
      ),
      columns,
    )
  if (state === undefined || life === 'none') return []
  if (life === 'running' && state.waiting !== undefined) return waitLine(state.waiting, world)
  if (life !== 'running' && screen.complete !== undefined)
    return clipLine(line(` ${oneLine(harmless(screen.complete.reason))}`, dim), columns)
  const { current, settings } = state
  const story = state.stories.find(({ id }) => id === (current?.storyId ?? state.storyId))
  const retries =
    current === undefined || current.attempt === 1
      ? ''
      : `, retry ${String(current.attempt - 1)} of ${String(current.attempts - 1)}`
  const gates = settings?.gates ?? []
  const parts = [
    {
      spans:
        current === undefined
          ? []
          : line(current.agent === 'command' ? 'your own agent' : oneLine(current.agent)),
      worth: 2,
    },
    { spans: line(phaseWords(screen)), worth: 5 },
    {
      // On a narrow screen the line below says it.
      spans:
        story === undefined || columns < wide
          ? []
          : line(`story ${harmless(storyName(story.id, story.title))}`),
      worth: 3,
    },
    { spans: current === undefined ? [] : line(`attempt #${String(current.n)}${retries}`), worth: 4 },
    { spans: state.pause ? line('pauses after this attempt', styleFor('waiting')) : [], worth: 6 },
    {
      spans:
        gates.length === 0
          ? line('no gates', dim)
          : line(
              `${gates.length === 1 ? 'gate' : 'gates'} ${gates.map((gate) => oneLine(harmless(gate))).join(', ')}`,
              dim,
            ),
      worth: 1,
    },
    { spans: forecast, worth: 2.5 },
  ]
  return [span(' '), ...fitParts(parts, columns - 2, ' · ')]
}

/** What it does while no agent works. */
function phaseWords({ state }: LoopScreen): string {
  const words: Readonly<Record<string, string>> = {
    keeping: 'keeping the attempt',
    gating: 'running the gates',
    settling: 'ticking the boxes',
    saving: 'saving',
    reverting: 'undoing the attempt',
    recording: 'writing it down',
    finishing: 'finishing',
  }
  return words[state?.phase ?? ''] ?? ''
}

function waitLine(
  waiting: NonNullable<NonNullable<LoopScreen['state']>['waiting']>,
  { size, nowMs }: World,
): Line {
  const words =
    waiting.for === 'pause'
      ? `${symbolOf('waiting')} paused before the next attempt · p continues`
      : `${symbolOf('waiting')} ${waitWords[waiting.for]}: ${oneLine(waiting.agent)} is asked again in ${left(waiting.untilMs - nowMs)}${waiting.until === undefined ? '' : `, at ${clockTime(waiting.until).slice(0, 5)}`} · s asks now`
  return clipLine(line(` ${words}`, styleFor('waiting')), size.columns)
}

function left(ms: number): string {
  const whole = Math.ceil(Math.max(0, ms) / 1000) * 1000
  return whole === 0 ? '0 s' : duration(whole)
}

// --- the stories ------------------------------------------------------------------------------------------------

function meaningOf(story: StorySummary, { state, life }: LoopScreen): Meaning {
  if (story.status !== 'open') return storyMeanings[story.status]
  if (story.id === (state?.current?.storyId ?? state?.storyId) && life === 'running')
    return state?.waiting === undefined ? 'working' : 'waiting'
  const last = state?.iterations.findLast(({ story_id: id }) => id === story.id)
  return last === undefined || keepsWork[last.verdict] ? 'open' : 'failed'
}

/** On a narrow screen: every mark, and the name of the one that is looked at. */
function storyRow(screen: LoopScreen, columns: number): Line {
  const at = lookedAt(screen)
  const stories = storiesOf(screen)
  const marks = stories.flatMap((story): Line => {
    const mark = sign(meaningOf(story, screen))
    if (story.id !== at) return [...mark, span(` ${oneLine(harmless(story.id))} `, dim), span(' ')]
    return [
      ...mark,
      span(` ${clip(oneLine(harmless(storyName(story.id, story.title))), 30)}`, bold),
      span('  '),
    ]
  })
  return [span(' '), ...clipLine(marks, columns - 2)]
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
    past.reduce((sum, { duration_ms: each }) => sum + each, 0) +
    (isCurrent ? Math.max(0, world.nowMs - sinceMs(current.started)) : 0)
  const whole = ms < 1000 ? ms : Math.floor(ms / 1000) * 1000
  const right = [
    isCurrent ? `#${String(current.n)}` : '',
    past.length > 0 || isCurrent ? duration(whole) : '',
  ]
  const name = oneLine(harmless(`${story.id} ${storyTitle(story.id, story.title)}`))
  return sides(
    [span(isAt ? '› ' : '  ', bold), ...sign(meaningOf(story, screen)), span(` ${name}`, isAt ? bold : {})],
    line(right.filter((part) => part !== '').join('  '), dim),
    width,
  )
}

// --- the foot ---------------------------------------------------------------------------------------------------

function noteLines({ note }: LoopScreen, columns: number): readonly Line[] {
  if (note === undefined) return []
  return paneLines({
    width: columns,
    height: 3,
    title: line('A note for the next prompt', bold),
    lines: [fitLine(editorLine(note, columns - 5), columns - 4)],
  })
}

function searchLine(search: Search, columns: number): Line {
  const words = searchedFor(search)
  const where =
    words === ''
      ? ''
      : search.count === 0
        ? 'not found'
        : `${String(search.number)} of ${String(search.count)}`
  const right = line(`${where}  enter next · ↑ before · esc close `, dim)
  return sides([span(' /', bold), ...editorLine(search.editor, Math.max(10, columns - 50))], right, columns)
}

function footLine(screen: LoopScreen, columns: number, { says, hasList }: Around): Line {
  if (screen.search !== undefined) return searchLine(screen.search, columns)
  if (screen.note !== undefined)
    return keyLine(
      [
        ['enter', 'send it'],
        ['esc', 'cancel'],
      ],
      columns,
    )
  if (says !== '') return clipLine(line(` ${says}`, styleFor('waiting')), columns)
  return keyLine(hintsOf(screen, hasList), columns)
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
    return screen.complete === undefined ? [out, ...reading] : [['enter', 'what next'], out, ...reading]
  }
  const { state } = screen
  const isPaused = state?.waiting?.for === 'pause' || state?.pause === true
  const skips: readonly KeyHint[] =
    state?.waiting !== undefined && state.waiting.for !== 'pause' ? [['s', 'skip the wait']] : []
  return [
    ['q', 'stop'],
    ...skips,
    ['p', isPaused ? 'continue' : 'pause'],
    ['n', 'note'],
    ['d', 'detach'],
    ...reading,
  ]
}
