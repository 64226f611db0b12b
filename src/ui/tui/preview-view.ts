// The preview as it is drawn.
import { oneLine } from '../print/text.ts'
import { keyLine, paneLines, shownPart, spinner, styleFor, tabsLine, viewOf } from './frame.ts'
import type { KeyHint, View } from './frame.ts'
import type { World } from './inputs.ts'
import { paneHeight, previewExtent, secondLines } from './preview-content.ts'
import { previewTabs } from './preview.ts'
import type { PreviewScreen } from './preview.ts'
import { bold, clipLine, dim, harmless, line, span } from './spans.ts'

export function previewView(screen: PreviewScreen, world: World, says: string): View {
  const { columns } = world.size
  const { lines, height } = previewExtent(screen, world)
  const shown = shownPart({ lines, pager: screen.pagers[screen.tab], isLive: false }, height)
  return viewOf(
    [
      [
        span(` ${oneLine(harmless(screen.change))}`, bold),
        // A plan without a proposal is called by its folder's name.
        ...(screen.detail === undefined || screen.detail.title === screen.change
          ? []
          : [span(`  ${oneLine(harmless(screen.detail.title))}`, dim)]),
      ],
      ...(screen.isStarting
        ? [line(` ${spinner(world.frame)} Starting…`, styleFor('working'))]
        : secondLines(screen, columns)),
      ...paneLines({
        width: columns,
        height: paneHeight(screen, world.size),
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

function hintsOf(screen: PreviewScreen): readonly KeyHint[] {
  if (screen.editor !== undefined)
    return [
      ['enter', 'use it for this run'],
      ['esc', 'cancel'],
    ]
  if (screen.isDeaf) return [['enter', 'on: there is no search here, so letters do nothing now']]
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
