// The parts that every screen is put together from: boxes with tabs, bars, rows of keys, and lines that give way when there is no room.
import { symbolOf } from '../vocabulary.ts'
import type { Meaning } from '../vocabulary.ts'
import { plural, widthOf } from '../print/text.ts'
import { firstLine, unseen } from './pager.ts'
import type { Extent, Pager } from './pager.ts'
import { bold, cellsOf, clipLine, dim, fitLine, line, marked, span } from './spans.ts'
import type { Line, Style } from './spans.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** What is drawn: never as high as the terminal, which would scroll. */
export interface View {
  readonly lines: readonly Line[]
}

export const smallest: Size = { columns: 40, rows: 10 }

export function viewOf(lines: readonly Line[], { columns, rows }: Size): View {
  const height = rows - 1
  const shown = lines.slice(0, height).map((each) => clipLine(each, columns))
  return { lines: [...shown, ...Array.from({ length: height - shown.length }, (): Line => [])] }
}

const signColours = {
  done: { colour: 'green' },
  failed: { colour: 'red' },
  working: { colour: 'cyan' },
  open: dim,
  undone: { colour: 'yellow' },
  waiting: { colour: 'yellow' },
  human: { colour: 'magenta' },
  doubt: { colour: 'yellow' },
} as const satisfies Record<Meaning, Style>

export function styleFor(meaning: Meaning): Style {
  return signColours[meaning]
}

export function sign(meaning: Meaning): Line {
  return [span(symbolOf(meaning), styleFor(meaning))]
}

const spinnerFrames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

export function spinner(frame: number): string {
  return spinnerFrames[frame % spinnerFrames.length] ?? ''
}

export function bar(done: number, total: number, width: number): Line {
  const full = total === 0 ? 0 : Math.min(width, Math.round((done / total) * width))
  return [span('█'.repeat(full), { colour: 'green' }), span('░'.repeat(width - full), dim)]
}

export interface Part {
  readonly spans: Line
  /** The lower, the sooner it goes. */
  readonly worth: number
}

/** In their order, as many as fit: what is worth most first, and of the rest whatever still has room. */
export function fitParts(parts: readonly Part[], width: number, gap = '  '): Line {
  return clipLine(
    joinedParts(
      fitting(parts, width, gap).map(({ spans }) => spans),
      gap,
    ),
    width,
  )
}

export function fitting(parts: readonly Part[], width: number, gap = '  '): readonly Part[] {
  const present = parts.filter(({ spans }) => cellsOf(spans) > 0)
  const taken = new Set<Part>()
  let used = 0
  for (const part of present.toSorted((a, b) => b.worth - a.worth)) {
    const cells = cellsOf(part.spans) + (taken.size === 0 ? 0 : widthOf(gap))
    if (taken.size > 0 && used + cells > width) continue
    taken.add(part)
    used += cells
  }
  return present.filter((part) => taken.has(part))
}

function joinedParts(parts: readonly Line[], gap: string): Line {
  return parts.flatMap((part, at) => (at === 0 ? part : [span(gap), ...part]))
}

export type KeyHint = readonly [key: string, what: string]

/** ` q quit · p pause · ? keys`; the last one stays. */
export function keyLine(hints: readonly KeyHint[], width: number): Line {
  const parts = hints.map(([key, what], at): Part => ({
    spans: [span(key, bold), span(` ${what}`, dim)],
    // How to leave, and where all keys are told, is never without room.
    worth: at === hints.length - 1 ? 1000 : key === 'q' ? 999 : hints.length - at,
  }))
  return [span(' '), ...fitParts(parts, width - 1, ' · ')]
}

export interface Pane {
  readonly width: number
  readonly height: number
  readonly title: Line
  /** At the right end of its lower edge. */
  readonly note?: Line
  readonly lines: readonly Line[]
}

/** Lines in a frame; cut to it and filled up. */
export function paneLines({ width, height, title, note = [], lines }: Pane): readonly Line[] {
  const inside = width - 4
  const head = clipLine(title, width - 5)
  const top = '─'.repeat(Math.max(0, width - 4 - cellsOf(head)))
  const foot = note.length === 0 ? [] : [span(' '), ...note, span(' ')]
  const bottom = '─'.repeat(Math.max(0, width - 3 - cellsOf(foot)))
  const body = Array.from({ length: Math.max(0, height - 2) }, (_, at): Line => [
    span('│ ', dim),
    ...fitLine(lines[at] ?? [], inside),
    span(' │', dim),
  ])
  return [
    [span('╭ ', dim), ...head, span(` ${top}╮`, dim)],
    ...body,
    [span(`╰${bottom}`, dim), ...foot, span('─╯', dim)],
  ]
}

/** `[Agent]  Tasks  Diff`: the one that is open is told without colour, too. */
export function tabsLine(names: readonly string[], open: string): Line {
  const tabs = names.map((name): Line => (name === open ? line(`[${name}]`, bold) : line(name, dim)))
  return joinedParts(tabs, '  ')
}

/** Panes side by side, of one height. */
export function beside(left: readonly Line[], right: readonly Line[]): readonly Line[] {
  return left.map((each, at) => [...each, ...(right[at] ?? [])])
}

export interface Reading {
  readonly lines: readonly Line[]
  readonly pager: Pager
  readonly isLive: boolean
  readonly opensAt?: number | undefined
  readonly search?: string
}

export interface Shown {
  readonly lines: readonly Line[]
  readonly note: Line
  readonly extent: Extent
}

/** The part of a text that is read now, and where that is. */
export function shownPart({ lines, pager, isLive, opensAt, search = '' }: Reading, height: number): Shown {
  const extent = { total: lines.length, height, isLive, opensAt }
  const first = firstLine(pager, extent)
  const part = lines.slice(first, first + height)
  const below = unseen(pager, extent)
  const left = lines.length - first - height
  const note =
    below > 0
      ? line(`↓ ${plural(below, 'new line')}`, bold)
      : left > 0 || first > 0
        ? line(
            `${String(first + 1)}–${String(Math.min(lines.length, first + height))} of ${String(lines.length)}`,
            dim,
          )
        : []
  return {
    lines: search === '' ? part : part.map((each) => marked(each, search)),
    note: pager.top === undefined && isLive ? [] : note,
    extent,
  }
}
