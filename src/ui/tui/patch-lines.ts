// A patch as git prints it: its files with how much of each changed, and its lines in colour.
import { plural } from '../print/text.ts'
import { bold, clipLine, dim, harmless, line, span } from './spans.ts'
import type { Line, Style } from './spans.ts'

export interface PatchFile {
  readonly path: string
  readonly how: 'new' | 'changed' | 'deleted' | 'renamed'
  readonly added: number
  readonly removed: number
  /** Without git's own head of it. */
  readonly lines: readonly string[]
}

export function filesOf(patch: string): readonly PatchFile[] {
  if (!patch.includes('diff --git ')) return []
  return patch
    .split(/^(?=diff --git )/m)
    .filter((part) => part.startsWith('diff --git '))
    .map(fileOf)
}

function fileOf(part: string): PatchFile {
  const lines = part.replace(/\n$/, '').split('\n')
  const at = lines.findIndex((each) => each.startsWith('@@') || each.startsWith('Binary files '))
  const head = lines.slice(0, at === -1 ? lines.length : at)
  const body = at === -1 ? [] : lines.slice(at)
  const has = (start: string): string | undefined =>
    head.find((each) => each.startsWith(start))?.slice(start.length)
  const how =
    has('new file mode') !== undefined
      ? 'new'
      : has('deleted file mode') !== undefined
        ? 'deleted'
        : has('rename from ') !== undefined
          ? 'renamed'
          : 'changed'
  const from = named(has('--- '))
  const to = named(has('+++ '))
  const path = has('rename to ') ?? to ?? from ?? /^diff --git a\/(.*) b\//.exec(lines[0] ?? '')?.[1] ?? ''
  return {
    path: unquoted(path),
    how,
    added: body.filter((each) => each.startsWith('+')).length,
    removed: body.filter((each) => each.startsWith('-')).length,
    lines: body,
  }
}

function named(name: string | undefined): string | undefined {
  if (name === undefined || name === '/dev/null') return undefined
  return unquoted(name.replace(/\t$/, '')).replace(/^[ab]\//, '')
}

/** Git quotes names outside of ASCII, byte by byte. */
function unquoted(name: string): string {
  if (!name.startsWith('"')) return name
  const bytes = name
    .slice(1, -1)
    .replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCodePoint(Number.parseInt(code, 8)) : code,
    )
  try {
    return decodeURIComponent(
      Array.from(bytes, (char) => (char === '%' || char > '~' ? percent(char) : char)).join(''),
    )
  } catch {
    // Not UTF-8: as git wrote it.
    return name
  }
}

function percent(char: string): string {
  return `%${(char.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}`
}

const signs = { new: '+', changed: '~', deleted: '-', renamed: '>' } as const
const colours = {
  new: { colour: 'green' },
  changed: {},
  deleted: { colour: 'red' },
  renamed: {},
} as const satisfies Record<PatchFile['how'], Style>

/** `~ src/args.ts  +12 -3`. */
export function fileLine(file: PatchFile, style: Style = {}): Line {
  return [
    span(`${signs[file.how]} `, { ...style, ...colours[file.how] }),
    span(harmless(file.path), style),
    ...line(file.how === 'changed' ? '' : `  ${file.how}`, dim),
    span(' '),
    ...countSpans(file),
  ]
}

/** ` +12 -3`; what is none is not said. */
export function countSpans({ added, removed }: Pick<PatchFile, 'added' | 'removed'>): Line {
  return [
    ...line(added === 0 ? '' : ` +${String(added)}`, { colour: 'green' }),
    ...line(removed === 0 ? '' : ` -${String(removed)}`, { colour: 'red' }),
  ]
}

/** The list of files first, then each file; `most` lines of all. */
export function patchLines(patch: string, width: number, most = mostLines): readonly Line[] {
  const files = filesOf(patch)
  const bodies = files.flatMap((file) => [[], ...fileLines(file, width)])
  const all = [...files.map((file) => clipLine(fileLine(file), width)), ...bodies]
  if (all.length <= most) return all
  return [...all.slice(0, most), line(`… ${plural(all.length - most, 'more line')}`, dim)]
}

/** What nobody reads on a screen is not laid out for one. */
const mostLines = 20_000

function fileLines(file: PatchFile, width: number): readonly Line[] {
  return [
    clipLine([span('── ', dim), ...fileLine(file, bold)], width),
    ...file.lines.map((each) => clipLine(line(harmless(each), styleOf(each)), width)),
  ]
}

function styleOf(text: string): Style {
  if (text.startsWith('@@')) return dim
  if (text.startsWith('+')) return { colour: 'green' }
  if (text.startsWith('-')) return { colour: 'red' }
  return text.startsWith('\\') || text.startsWith('Binary') ? dim : {}
}
