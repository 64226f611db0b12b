// What the last screens hold, as lines: how it ended and why, what it took, what it changed, and what to type next.
import { knownTokens, notesOf, storyMeaning } from '../print/report-words.ts'
import { tookMs } from '../../core/report.ts'
import type { StoryReport } from '../../core/report.ts'
import { storyName } from '../print/describe.ts'
import type { Sheet } from '../print/layout.ts'
import { placeLines, resultLines } from '../print/summary.ts'
import { duration, oneLine, plural, usd } from '../print/text.ts'
import type { EndingScreen } from './ending.ts'
import { sign } from './frame.ts'
import type { Size } from './frame.ts'
import type { World } from './inputs.ts'
import type { Extent } from './pager.ts'
import { countSpans, fileLine, filesOf, patchLines } from './patch-lines.ts'
import { bold, clipLine, dim, fromPainted, harmless, line, paint, sides, span } from './spans.ts'
import type { Line } from './spans.ts'
import { wrapSpans } from './wrap.ts'

function endingInside({ columns, rows }: Size): { readonly width: number; readonly height: number } {
  // One line of keys, and the frame.
  return { width: columns - 4, height: Math.max(1, rows - 1 - 1 - 2) }
}

export function endingExtent(
  screen: EndingScreen,
  { size }: Pick<World, 'size'>,
): Extent & { readonly lines: readonly Line[] } {
  const { width, height } = endingInside(size)
  const lines = screen.tab === 'Summary' ? summaryLines(screen, width) : fileTab(screen, width)
  return { total: lines.length, height, isLive: false, lines }
}

/** As the plain printer says it, for this width. */
export function endLines(screen: EndingScreen, width: number): readonly Line[] {
  const { complete, board } = screen.loop
  if (complete === undefined) return [line('How this run ended is not recorded.')]
  return resultLines(complete, board, { paint, columns: width + 1 }).map(fromPainted)
}

function summaryLines(screen: EndingScreen, width: number): readonly Line[] {
  const { report } = screen
  return [
    ...endLines(screen, width),
    [],
    ...placeOf(screen, { paint, columns: width + 1 }).map(fromPainted),
    ...(report === undefined
      ? []
      : [
          [],
          line('What each story took', bold),
          ...storyTable(report.stories, width),
          // How many were not kept is said above.
          ...notesOf({ ...report, not_kept: { ...report.not_kept, iterations: 0 } }).flatMap(
            ([name, words]) => wrapSpans(line(`${name}: ${words}`, dim), width, line('  '), '  '),
          ),
        ]),
    ...leftLines(screen, width),
    [],
    ...changedLines(screen, width),
  ]
}

/** What no agent can do. */
function leftLines({ loop }: EndingScreen, width: number): readonly Line[] {
  const tasks = loop.state?.humanTasks ?? []
  if (tasks.length === 0) return []
  return [
    [],
    line('Left for you', bold),
    ...tasks.flatMap((task) =>
      wrapSpans(line(oneLine(harmless(task))), width, [span('  '), ...sign('human'), span(' ')], '    '),
    ),
  ]
}

function placeOf({ loop, made, done, problem }: EndingScreen, sheet: Sheet): readonly string[] {
  const { complete, board, ending } = loop
  if (complete === undefined) return []
  const choice =
    made === 'cleanup' || made === 'squash' ? 'cleanup' : made === undefined ? complete.choice : made
  const finished = done === undefined ? {} : { finished: { ok: true, ...done } }
  const lasting = problem === '' ? ending.lasting : [...ending.lasting, problem]
  const isPast = done === undefined && !loop.wasLive && !loop.isOwn
  return placeLines(
    { ...ending, ...finished, isPast, lasting, complete: { ...complete, choice }, board },
    sheet,
  )
}

/** The list is long enough where more of it is elsewhere. */
const mostFiles = 30

function changedLines({ patch, loop }: EndingScreen, width: number): readonly Line[] {
  if (patch === undefined) return []
  const files = filesOf(patch)
  if (files.length === 0) return [line('No file is changed against the start.', dim)]
  const added = files.reduce((sum, file) => sum + file.added, 0)
  const removed = files.reduce((sum, file) => sum + file.removed, 0)
  const more = files.length - mostFiles
  return [
    [
      span(`${plural(files.length, 'file')} changed against the start`, bold),
      span(loop.commits === 0 ? '' : `, in ${plural(loop.commits, 'commit')} `),
      ...countSpans({ added, removed }),
      span('   tab shows how', dim),
    ],
    ...files.slice(0, mostFiles).map((file) => clipLine([span('  '), ...fileLine(file)], width)),
    ...(more > 0 ? [line(`  and ${String(more)} more`, dim)] : []),
  ]
}

function storyTable(stories: readonly StoryReport[], width: number): readonly Line[] {
  const figures = stories.map((story) =>
    story.iterations === 0
      ? ['-', '', '', '']
      : [
          plural(story.iterations, 'attempt'),
          duration(tookMs(story)),
          knownTokens(story).replace('-', ''),
          story.cost_usd === undefined || story.cost_usd === 0 ? '' : usd(story.cost_usd),
        ],
  )
  const widths = [0, 1, 2, 3].map((at) => Math.max(0, ...figures.map((row) => (row[at] ?? '').length)))
  return stories.map((story, row) => {
    const meaning = storyMeaning(story)
    const name = harmless(oneLine(storyName(story.story_id, story.title)))
    const right = widths.flatMap((cells, at) =>
      cells === 0 ? [] : (figures[row]?.[at] ?? '').padStart(cells),
    )
    return sides(
      [span('  '), ...sign(meaning), span(` ${name}`)],
      line(right.join('  '), dim),
      Math.min(width, 99),
    )
  })
}

function fileTab({ patch }: EndingScreen, width: number): readonly Line[] {
  if (patch === undefined) return [line('Looking at the files…', dim)]
  if (patch === '') return [line('No file is changed against the start.', dim)]
  return patchLines(patch, width)
}

/** For the terminal, once the screen is gone. */
export function lastWords(screen: EndingScreen, sheet: Sheet): readonly string[] {
  const { complete, board } = screen.loop
  if (complete === undefined) return []
  return [...resultLines(complete, board, sheet), ...placeOf(screen, sheet)]
}
