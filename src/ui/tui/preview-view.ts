// The preview as it is drawn.
import { oneLine } from '../print/text.ts'
import { keyLine, paneLines, shownPart, sign, spinner, styleFor, tabsLine, viewOf } from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { planWords, previewExtent } from './preview-content.ts'
import { previewTabs } from './preview.ts'
import type { PreviewScreen } from './preview.ts'
import { bold, clipLine, dim, harmless, line, span } from './spans.ts'
import type { Line } from './spans.ts'

export function previewView(screen: PreviewScreen, world: World, says: string): View {
  const { columns, rows } = world.size
  const { lines, height } = previewExtent(screen, world)
  const shown = shownPart({ lines, pager: screen.pagers[screen.tab], isLive: false }, height)
  return viewOf(
    [
      [
        span(` ${oneLine(harmless(screen.change))}`, bold),
        span(`  ${oneLine(harmless(screen.detail?.title ?? ''))}`, dim),
      ],
      clipLine(secondLine(screen, world), columns),
      ...paneLines({
        width: columns,
        height: rows - 1 - 3,
        title: tabsLine(previewTabs, screen.tab),
        note: shown.note,
        lines: shown.lines,
      }),
      says === ''
        ? keyLine(hintsOf(screen), columns)
        : clipLine(line(` ${says}`, styleFor('waiting')), columns),
    ],
    world.size,
  )
}

function secondLine(screen: PreviewScreen, { frame }: World): Line {
  if (screen.isStarting) return line(` ${spinner(frame)} Starting…`, styleFor('working'))
  const refused = screen.plan?.refused
  const problem = screen.problem === '' ? refused && `${refused.message} ${refused.hint}` : screen.problem
  if (problem !== undefined)
    return [span(' '), ...sign('human'), span(` ${oneLine(harmless(problem))}`, styleFor('human'))]
  return line(` ${harmless(planWords(screen))}`, dim)
}

function hintsOf(screen: PreviewScreen): readonly KeyHint[] {
  if (screen.editor !== undefined)
    return [
      ['enter', 'use it for this run'],
      ['esc', 'leave it'],
    ]
  return [
    ['r', screen.isResumable ? 'resume' : 'run'],
    ['tab', 'view'],
    ...(screen.tab === 'Settings' ? ([['enter', 'change']] as const) : []),
    ...(screen.tab === 'Prompt' ? ([['←→', 'story']] as const) : []),
    ['esc', 'back'],
    ['q', 'quit'],
    ['?', 'keys'],
  ]
}
