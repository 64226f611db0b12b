// What each tab of the loop screen holds, as lines, and how much of that fits.
import { failureLine } from '../../core/gate-failure.ts'
import type { TaskState } from '../../core/story.ts'
import { isManual } from '../print/board.ts'
import { storyName } from '../print/describe.ts'
import { gatelessWords } from '../print/header.ts'
import { clip, duration, oneLine, plural, widthOf } from '../print/text.ts'
import { storyMeanings } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { attemptLines, entryLines } from './feed-lines.ts'
import type { Attempt } from './feed.ts'
import { sign, spinner, styleFor } from './frame.ts'
import type { Reading, Size } from './frame.ts'
import type { World } from './inputs.ts'
import { logLines } from './log-lines.ts'
import { overLines } from './loop-head.ts'
import {
  attemptsOf,
  gatedAttempt,
  isRunning,
  lookedAt,
  meaningOf,
  openAttempt,
  sinceMs,
  storiesOf,
  wide,
} from './loop-model.ts'
import type { LoopScreen } from './loop-model.ts'
import type { Extent } from './pager.ts'
import { patchLines } from './patch-lines.ts'
import { bold, dim, harmless, line, sides, span } from './spans.ts'
import type { Line } from './spans.ts'
import { pieces, wrapSpans } from './wrap.ts'

export interface LoopPlaces {
  /** Of the list of stories; 0: it is one line. */
  readonly side: number
  readonly main: number
  readonly height: number
}

export function placesOf(screen: LoopScreen, size: Size): LoopPlaces {
  const { columns, rows } = size
  // As wide as the titles want, while the pane beside it stays the larger one.
  const names = storiesOf(screen).map(({ id, title }) => widthOf(storyName(id, title)))
  const wanted = Math.min(Math.max(0, ...names) + 18, Math.floor(columns * 0.38))
  const side = columns < wide ? 0 : Math.min(46, Math.max(30, Math.floor(columns * 0.28), wanted))
  // Of the head one line and how it ended, or what it does; one of keys, and below the width the line of stories; three for a note.
  const below = Math.max(1, overLines(screen, size).length)
  const height = rows - 1 - 2 - below - (side === 0 ? 1 : 0) - (screen.note === undefined ? 0 : 3)
  return { side, main: columns - side, height }
}

export function paneInside(
  screen: LoopScreen,
  size: Size,
): { readonly width: number; readonly height: number } {
  const { main, height } = placesOf(screen, size)
  return { width: main - 4, height: Math.max(1, height - 2) }
}

interface Content {
  readonly lines: readonly Line[]
  readonly isLive?: boolean
  /** The line that everything is about. */
  readonly at?: number | undefined
}

function contentOf(screen: LoopScreen, world: World): Content {
  const { width } = paneInside(screen, world.size)
  switch (screen.tab) {
    case 'Agent':
      return { lines: agentLines(screen, world, width), isLive: true }
    case 'Tasks':
      return { lines: taskLines(screen, width) }
    case 'Diff':
      return { lines: diffLines(screen, width) }
    case 'Gates':
      return gateTab(screen, world, width)
    case 'Log':
      return { lines: logLines(screen.log, width), isLive: true }
  }
}

export function loopExtent(screen: LoopScreen, world: World): Extent & { readonly lines: readonly Line[] } {
  const { lines, isLive = false, at } = contentOf(screen, world)
  const { height } = paneInside(screen, world.size)
  // From the beginning, where it is well in sight there.
  const opensAt = at === undefined ? undefined : at < height / 2 ? 0 : at - 2
  return { total: lines.length, height, isLive, opensAt, lines }
}

/** What is shown of the open tab. Who follows the end sees only that: the rest of a flood is not laid out for it. */
export function readingOf(screen: LoopScreen, world: World): Reading {
  const pager = screen.pagers[screen.tab]
  if (screen.tab !== 'Agent' || pager.top !== undefined) return { ...loopExtent(screen, world), pager }
  const { width, height } = paneInside(screen, world.size)
  return { lines: agentLines(screen, world, width, height), isLive: true, pager }
}

function agentLines(screen: LoopScreen, world: World, width: number, least = Infinity): readonly Line[] {
  const { worktree = '' } = screen.board.started ?? {}
  const attempts = attemptsOf(screen)
  const page = { width, worktree, gated: gatedAttempt(screen)?.n }
  const loose = screen.feed.loose.flatMap((entry) => entryLines(entry, page))
  if (attempts.length === 0) return [...loose, line(emptyWords(screen), dim)]
  const current = screen.state?.current?.n
  const isWorking = screen.life === 'running' && screen.state?.phase === 'working'
  const parts: (readonly Line[])[] = []
  let left = least
  for (const [at, attempt] of [...attempts.entries()].toReversed()) {
    if (left <= 0) break
    const live =
      isWorking && attempt.n === current
        ? { spinner: spinner(world.frame), nowMs: world.nowMs, sinceMs: lastSign(attempt) }
        : undefined
    const gate =
      screen.life === 'running' && screen.state?.phase === 'gating' && attempt.n === current
        ? attempt.gates.find(({ ended }) => ended === undefined)
        : undefined
    const said = attemptLines(attempt, page, { live, least: left })
    const lines = gate === undefined ? said : [...said, runningGateLine(gate, world, width, '  ')]
    parts.unshift(at === 0 ? lines : [[], ...lines])
    left -= lines.length + 1
  }
  return parts.flat()
}

function runningGateLine(
  { command, started }: Pick<Attempt['gates'][number], 'command' | 'started'>,
  { frame, nowMs }: World,
  width: number,
  indent = '',
): Line {
  const ms = Math.max(0, Math.floor((nowMs - sinceMs(started)) / 1000) * 1000)
  return sides(
    [span(indent), span(spinner(frame), styleFor('working')), span(` ${oneLine(harmless(command))}`)],
    line(ms < 1000 ? '0 s' : duration(ms), dim),
    width,
  )
}

function lastSign({ entries, started }: Attempt): number {
  const last = entries.at(-1)
  return sinceMs(last?.kind === 'tool' ? last.time : started.time)
}

function emptyWords(screen: LoopScreen): string {
  if (screen.life === 'joining') return 'Reading what happened so far…'
  if (screen.life === 'none')
    return `Nothing has run for ${oneLine(screen.change)} yet; what its loop does is shown here.`
  const story = screen.state?.stories.find(({ id }) => id === lookedAt(screen))
  if (story?.status === 'done') return 'This story was done before this run.'
  if (story?.status === 'human') return 'This story is yours: its tasks are for a person.'
  return isRunning(screen) ? 'No attempt at this story yet.' : 'This story was not tried.'
}

const boxes: Readonly<Record<TaskState, string>> = {
  open: '[ ]',
  done: '[x]',
  human: '[?]',
  deferred: '[-]',
  phantom: '[ ]',
}

function taskLines(screen: LoopScreen, width: number): readonly Line[] {
  const stories = screen.now?.stories ?? []
  if (stories.length === 0) return [line('Reading the plan…', dim)]
  return storyTasks(stories, width, { at: lookedAt(screen), meaningOf: (story) => meaningOf(story, screen) })
}

type Stories = NonNullable<LoopScreen['now']>['stories']

interface Marking {
  /** The one that is looked at, in bold. */
  readonly at?: string | undefined
  meaningOf(story: Stories[number]): Meaning
}

const byPlan: Marking = { meaningOf: ({ status }) => storyMeanings[status] }

/** Stories with their boxes. */
export function storyTasks(stories: Stories, width: number, marking = byPlan): readonly Line[] {
  const { at } = marking
  return stories.flatMap((story, index) => {
    const { id, title, tasks } = story
    const done = tasks.filter(({ state }) => state === 'done').length
    const head = sides(
      [...sign(marking.meaningOf(story)), span(` ${harmless(storyName(id, title))}`, id === at ? bold : {})],
      line(`${String(done)} of ${plural(tasks.length, 'task')}`, dim),
      width,
    )
    return [
      ...(index === 0 ? [] : [[]]),
      head,
      ...tasks.flatMap(({ text, state, id: task }) => {
        const words = harmless(
          oneLine(task.includes('#') || text.startsWith(task) ? text : `${task} ${text}`),
        )
        const box = span(`  ${boxes[state]} `, state === 'done' ? styleFor('done') : {})
        const note = state === 'human' ? '  (for a person)' : state === 'deferred' ? '  (put off)' : ''
        return wrapSpans([span(words, state === 'done' ? dim : {}), span(note, dim)], width, [box], '      ')
      }),
    ]
  })
}

function diffLines(screen: LoopScreen, width: number): readonly Line[] {
  const last = attemptsOf(screen).at(-1)
  if (last === undefined) return [line('No attempt at this story yet: nothing is changed.', dim)]
  const isOpen = last.record === undefined || last.n === openAttempt(screen)
  const patch = isOpen
    ? screen.now?.n === last.n
      ? screen.now.patch
      : undefined
    : screen.patch?.n === last.n
      ? screen.patch.patch
      : undefined
  const what = isOpen
    ? `What #${String(last.n)} ${screen.life === 'dead' ? 'left in the work tree' : 'has changed so far'}`
    : `What #${String(last.n)} changed${last.turnout.reverted === undefined ? '' : ' (undone, kept)'}`
  if (patch === undefined) return [line('Looking at the files…', dim)]
  const cut = isOpen && screen.now?.is_cut === true
  return [
    line(`${what}${patch === '' ? ': nothing' : ''}`, dim),
    ...patchLines(patch, width),
    ...(cut ? [line('… there is more than this', dim)] : []),
  ]
}

function gateTab(screen: LoopScreen, world: World, width: number): Content {
  const last = gatedAttempt(screen)
  const gates = screen.state?.settings?.gates ?? []
  if (last === undefined) {
    if (gates.length === 0)
      return {
        lines: wrapSpans(
          line(gatelessWords(screen.board.started?.gate_found ?? '', isManual(screen.board)), dim),
          width,
        ),
      }
    return {
      lines: [
        ...wrapSpans(line('The gates run when the agent says that the story is complete:', dim), width),
        ...gates.map((gate) => line(`  ${clip(oneLine(harmless(gate)), width - 2)}`)),
      ],
    }
  }
  const heads = last.gates.map(({ command, started, ended }) => {
    if (ended === undefined) return runningGateLine({ command, started }, world, width)
    const name = span(` ${oneLine(harmless(command))}`)
    const meaning = ended.outcome === 'passed' ? 'done' : ended.outcome === 'stopped' ? 'waiting' : 'failed'
    const exit =
      ended.outcome === 'passed'
        ? ''
        : ` (${ended.exit_code === undefined ? ended.outcome.replaceAll('_', ' ') : `exit ${String(ended.exit_code)}`})`
    return sides([...sign(meaning), name, span(exit)], line(duration(ended.duration_ms), dim), width)
  })
  const latest = attemptsOf(screen).at(-1)?.n ?? last.n
  const later = latest === last.n ? '.' : `; for #${String(latest)} the gates have not run yet.`
  heads.unshift(line(`From #${String(last.n)}${later}`, dim), [])
  const output = screen.output?.n === last.n ? screen.output : undefined
  if (output === undefined) return { lines: [...heads, [], line('Reading what they print…', dim)] }
  const cut = output.is_cut
    ? [line(`… the beginning: ralph logs ${oneLine(screen.change)} --gate ${String(last.n)}`, dim)]
    : []
  const text = harmless(output.text).replace(/\n+$/, '').split('\n')
  const failed = failedLine(last, text)
  const above = [...heads, [], ...cut]
  // Indented as it was printed.
  const printed = text.map((each, at) => {
    const style = at === failed ? styleFor('failed') : each.startsWith('$ ') ? bold : {}
    return pieces(span(each, style), width).map((part): Line => [part])
  })
  return {
    lines: [...above, ...printed.flat()],
    isLive: isRunning(screen) && last.gates.some(({ ended }) => ended === undefined),
    at: failed === undefined ? undefined : above.length + printed.slice(0, failed).flat().length,
  }
}

/** Which line of what the gates printed is the failing test's own. */
function failedLine({ gates }: Attempt, text: readonly string[]): number | undefined {
  const failed = gates.findLast(({ ended }) => ended?.outcome === 'failed')
  if (failed === undefined) return undefined
  // Those before it passed, whatever they print. Of a long one the beginning is not here.
  const from = Math.max(0, text.lastIndexOf(`$ ${harmless(failed.command).split('\n')[0] ?? ''}`))
  const at = failureLine(text.slice(from).join('\n'))
  return at === undefined ? undefined : from + at
}
