// Reads a tasks file line by line: boxes, headings, and what lies hidden in fences and comments.
import { readBox, type Box } from './box.ts'

export interface Line {
  /** 1-based. */
  readonly number: number
  /** Without BOM and carriage return. */
  readonly text: string
  /** In a fence or a comment: not a heading, and a box there is a phantom. */
  readonly hidden: boolean
  readonly box?: Box
  readonly heading?: { readonly level: number; readonly title: string }
}

export interface Lines {
  readonly lines: readonly Line[]
  /** 1-based lines of fences that never close; they were read as text. */
  readonly unclosedFences: readonly number[]
}

interface Fence {
  readonly character: string
  readonly length: number
  /** Nothing after it, so it may close one. */
  readonly isBare: boolean
}

export function readLines(text: string): Lines {
  const raw = text.split('\n')
  const texts = raw.map((line, index) =>
    (index === 0 ? line.replace(/^\uFEFF/, '') : line).replace(/\r$/, ''),
  )
  const fences = texts.map(readFence)
  const longestLater = laterClosers(fences)
  const lastCommentEnd = texts.findLastIndex((line) => line.includes('-->'))
  const unclosedFences: number[] = []
  const lines: Line[] = []
  let fence: Fence | undefined
  let inComment = false
  for (const [index, line] of texts.entries()) {
    const here = fences[index]
    let hidden = true
    if (fence !== undefined) {
      if (here?.isBare === true && here.character === fence.character && here.length >= fence.length)
        fence = undefined
    } else if (inComment) {
      inComment = !line.includes('-->')
    } else if (here !== undefined) {
      // A fence that never closes would hide the rest of the plan: it is text.
      if ((longestLater[here.character]?.[index] ?? 0) >= here.length) fence = here
      else unclosedFences.push(index + 1)
    } else if (/^\s*<!--/.test(line) && !line.includes('-->') && index < lastCommentEnd) {
      inComment = true
    } else {
      hidden = false
    }
    // The raw line, not the cleaned one: a count must come out as OpenSpec's, which cleans nothing.
    const box = readBox(raw[index] ?? '')
    const heading = hidden ? undefined : readHeading(line)
    lines.push({ number: index + 1, text: line, hidden, ...(box && { box }), ...(heading && { heading }) })
  }
  return { lines, unclosedFences }
}

function readFence(line: string): Fence | undefined {
  const run = /^\s*(`{3,}|~{3,})/.exec(line)
  if (run === null) return undefined
  const marks = run[1] ?? ''
  const rest = line.slice(run[0].length)
  // Three backticks with more backticks behind them are inline code.
  if (marks.startsWith('`') && rest.includes('`')) return undefined
  return { character: marks.charAt(0), length: marks.length, isBare: rest.trim() === '' }
}

/** For each line, the longest bare fence below it: tells in one step whether an opener ever closes. */
function laterClosers(fences: readonly (Fence | undefined)[]): Record<string, number[]> {
  const later: Record<string, number[]> = { '`': [], '~': [] }
  for (const character of ['`', '~']) {
    const column = Array.from<number>({ length: fences.length }).fill(0)
    let longest = 0
    for (let index = fences.length - 1; index >= 0; index -= 1) {
      column[index] = longest
      const fence = fences[index]
      if (fence?.isBare === true && fence.character === character) longest = Math.max(longest, fence.length)
    }
    later[character] = column
  }
  return later
}

/** ATX headings only; written without a lazy pattern, which takes quadratic time on long lines of blanks and `#`. */
export function readHeading(line: string): { level: number; title: string } | undefined {
  const start = /^ {0,3}(#{1,6})(?=[ \t]|$)/.exec(line)
  if (start === null) return undefined
  let title = line.slice(start[0].length).trim()
  let end = title.length
  while (end > 0 && title[end - 1] === '#') end -= 1
  if (end === 0) title = ''
  else if (end < title.length && /[ \t]/.test(title.charAt(end - 1))) title = title.slice(0, end).trimEnd()
  return { level: start[1]?.length ?? 1, title }
}
