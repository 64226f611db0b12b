// The last screens as they are drawn: the choice, and the result.
import { firstNames } from '../../core/first-names.ts'
import { keepsWork } from '../../core/report.ts'
import { branchName, storyName } from '../print/describe.ts'
import { clip, oneLine, plural } from '../print/text.ts'
import { canGoOn, choicesOf, isForShell, isRead, resultTabs } from './ending.ts'
import type { EndingScreen } from './ending.ts'
import { editorLine, typedText } from './editor.ts'
import { endingExtent, endLines } from './ending-content.ts'
import {
  fitParts,
  keyLine,
  paneLines,
  shownPart,
  sign,
  spinner,
  styleFor,
  tabsLine,
  viewOf,
} from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { filesOf } from './patch-lines.ts'
import { bold, clipLine, dim, harmless, line, span } from './spans.ts'
import type { Line } from './spans.ts'
import { wrapSpans } from './wrap.ts'

export function endingView(screen: EndingScreen, world: World, says: string, back: string): View {
  const { columns, rows } = world.size
  const isChoice = screen.stage !== 'result'
  if (isChoice && screen.tab === 'Summary') return choiceView(screen, world)
  const { lines, height } = endingExtent(screen, world)
  const typing = missingLines(screen, columns)
  const page = { lines, pager: screen.pagers[screen.tab], isLive: false }
  const shown = shownPart(page, height - typing.length)
  const body = paneLines({
    width: columns,
    height: rows - 1 - 1 - typing.length,
    title: [span(`${oneLine(harmless(screen.loop.change))}  `, bold), ...tabsLine(resultTabs, screen.tab)],
    note: shown.note,
    lines: shown.lines,
  })
  const keys =
    asking(screen, columns) ??
    keyLine(
      [
        // Where it is not done this is what most want: the last to go where there is little room.
        ...againKey(screen),
        ['tab', screen.tab === 'Summary' ? 'changed files' : isChoice ? 'the choice' : 'summary'],
        ['↑↓', 'scroll'],
        ...(isChoice ? [] : ([['esc', back]] as const)),
        ['q', 'quit'],
        ['?', 'keys'],
      ],
      columns,
    )
  return viewOf(
    [...body, ...typing, says === '' ? keys : clipLine(line(` ${says}`, styleFor('waiting')), columns)],
    world.size,
  )
}

function choiceView(screen: EndingScreen, world: World): View {
  const { columns, rows } = world.size
  const width = columns - 4
  const end = endLines(screen, width)
  const isWord = screen.stage === 'word'
  const open = isWord ? [] : openLines(screen, width)
  const on = isWord ? [] : onLines(screen, width)
  const notes = screen.loop.ending.lasting.flatMap((note) =>
    wrapSpans(line(oneLine(harmless(note))), width, [span('  '), span('note: ', styleFor('waiting'))], '  '),
  )
  const task = oneLine(harmless(screen.loop.state?.settings?.task ?? ''))
  const question = isWord
    ? clipLine([span('Is it done? ', bold), span(task, dim)], width)
    : line('What should happen to the work?', bold)
  const choices = choicesOf(screen).map(({ answer, what }, at) => {
    const isAt = at === screen.at
    const head = [span(isAt ? '› ' : '  ', bold), span(answer.padEnd(9), isAt ? bold : {})]
    return wrapSpans(line(harmless(what), isAt ? {} : dim), width, head, ' '.repeat(11))
  })
  const asked = [[], ...savedLines(screen, width), [], question, [], ...choices.flat()]
  const below: readonly Line[] = [
    ...(screen.isBusy ? [[], line(`${spinner(world.frame)} Working…`, styleFor('working'))] : []),
    ...(screen.problem === ''
      ? []
      : [
          [],
          ...wrapSpans(line(oneLine(harmless(screen.problem))), width, [...sign('human'), span(' ')], '  '),
        ]),
  ]
  // The choices are always to be seen: where there is no room, what can be read elsewhere gives way.
  const typing = missingLines(screen, columns)
  const room = rows - 1 - 1 - 2 - typing.length
  const left = room - asked.length - below.length
  const forms = [
    [...end, ...open, ...notes, ...asked, ...on],
    [...end, ...open, ...notes, ...asked],
    [...end, ...notes, ...asked],
    [...end, ...asked],
    ...(left > 0 ? [[...end.slice(0, left), ...asked]] : []),
  ]
  const fits = forms.find((form) => form.length + below.length <= room)
  const lines = [...(fits ?? [question, ...choices.map(([first = []]) => first)]), ...below]
  const body = paneLines({
    width: columns,
    height: rows - 1 - 1 - typing.length,
    title: line(oneLine(harmless(screen.loop.change)), bold),
    lines,
  })
  return viewOf([...body, ...typing, choiceKeys(screen, world)], world.size)
}

function againKey(screen: EndingScreen): readonly KeyHint[] {
  if (!canGoOn(screen)) return []
  return [['a', screen.loop.complete?.status === 'stopped' ? 'continue' : 'try again']]
}

/** The keys while something is asked in between. */
function asking({ asksAgain, missing, stage }: EndingScreen, columns: number): Line | undefined {
  const isNarrow = columns < 60
  if (asksAgain)
    return keyLine(
      [
        ['enter', isNarrow ? 'again' : 'start the agent again'],
        ['↓', isNarrow ? 'a note' : 'with a note for it'],
        [isNarrow ? 'else' : 'any other key', 'back'],
      ],
      columns,
    )
  if (missing === undefined) return undefined
  const isEmpty = stage !== 'word' && typedText(missing).trim() === ''
  return keyLine(
    [
      ['enter', isEmpty ? 'start the agent again' : 'try again with it'],
      ['esc', 'back'],
    ],
    columns,
  )
}

/** They are there from when they are heard. */
function choiceKeys(screen: EndingScreen, world: World): Line {
  const { columns } = world.size
  const asked = asking(screen, columns)
  if (asked !== undefined) return asked
  if (isForShell(screen))
    return clipLine(
      line(' Typed for the shell? esc leaves the question, then q', styleFor('waiting')),
      columns,
    )
  return isRead(screen, world)
    ? keyLine(
        [
          ['↑↓', 'choose'],
          ['enter', 'do it'],
          ['esc', 'decide later'],
          ...againKey(screen),
          ['tab', 'files'],
          ['?', 'keys'],
        ],
        columns,
      )
    : []
}

function missingLines({ missing, stage }: EndingScreen, columns: number): readonly Line[] {
  if (missing === undefined) return []
  return paneLines({
    width: columns,
    height: 3,
    title: line(
      stage === 'word'
        ? 'What is missing? The agent reads it before its next attempt'
        : 'A note for the agent, for its next attempt',
      bold,
    ),
    lines: [editorLine(missing, columns - 5)],
  })
}

/** Where to look, and how it goes on, of a run that is not done. */
function onLines({ loop }: EndingScreen, width: number): readonly Line[] {
  if (loop.complete === undefined || loop.complete.status === 'done') return []
  const change = oneLine(loop.change)
  const last = loop.state?.iterations.at(-1)
  const failed =
    last === undefined || keepsWork[last.verdict] ? [] : [`ralph diff ${String(last.n)} ${change}`]
  const commands = [...failed, `ralph why ${change}`, `ralph resume ${change}`]
  // Each one whole, to be copied.
  const parts = commands.map((command, at) => ({ spans: line(command, dim), worth: -at }))
  return [[], [...line('  see      ', dim), ...fitParts(parts, width - 11, ' · ')]]
}

/** What is safe, and where; before anything is chosen. */
function savedLines({ loop, patch }: EndingScreen, width: number): readonly Line[] {
  const { started } = loop.board
  if (started === undefined) return []
  const original = branchName(started.original_branch)
  if (started.branch === started.original_branch)
    return wrapSpans(line(`The work is in your tree, on ${original}.`), width, line('  '), '  ')
  const stays = `ralph has not changed ${original}.`
  if (loop.commits === 0) return wrapSpans(line(`No story was saved. ${stays}`), width, line('  '), '  ')
  const files = patch === undefined ? '' : `, ${plural(filesOf(patch).length, 'changed file')}`
  const saved = `Saved on ${oneLine(started.branch)}: ${plural(loop.commits, 'commit')}${files}. ${stays}`
  return wrapSpans(line(harmless(saved)), width, line('  '), '  ')
}

/** What is not done, by name. */
function openLines({ loop }: EndingScreen, width: number): readonly Line[] {
  const { complete, state } = loop
  if (complete === undefined || complete.status === 'done') return []
  const open = (state?.stories ?? []).filter(({ status }) => status === 'open')
  if (open.length === 0) return []
  const names = open.map(({ id, title }) => clip(harmless(oneLine(storyName(id, title))), 40))
  return wrapSpans(line(`not done: ${firstNames(names, 3)}`, dim), width, line('  '), '  ')
}
