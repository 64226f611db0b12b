// An agent's words as light Markdown: headings, lists, code and emphasis; whatever it is not sure of stays as it was written.
import { bold, dim, line, span } from './spans.ts'
import type { Line, Span, Style } from './spans.ts'
import { pieces, wrapSpans } from './wrap.ts'

/** The text is harmless already. */
export function markdownLines(text: string, width: number): readonly Line[] {
  const lines: Line[] = []
  let fence: string | undefined
  for (const raw of text.split('\n')) {
    const opened: string | undefined = /^\s*(```+|~~~+)/.exec(raw)?.[1]
    if (opened !== undefined && (fence === undefined || opened.startsWith(fence))) {
      fence = fence === undefined ? opened : undefined
      continue
    }
    if (fence !== undefined) lines.push(...wrapCode(raw, width))
    else if (raw.trim() === '') {
      if (lines.length > 0 && lines.at(-1)?.length !== 0) lines.push([])
    } else lines.push(...textLines(raw, width))
  }
  while (lines.at(-1)?.length === 0) lines.pop()
  return lines
}

/** Code is broken where the line ends, not between words. */
function wrapCode(raw: string, width: number): readonly Line[] {
  return pieces(span(raw), Math.max(8, width - 4)).map((part) => [span('    '), part])
}

function textLines(raw: string, width: number): readonly Line[] {
  const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(raw)
  if (heading !== null) return wrapSpans(inline(heading[1] ?? '', bold), width)
  const rule = /^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/.test(raw)
  if (rule) return [line('─'.repeat(Math.min(24, width)), dim)]
  const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(raw)
  if (item !== null) {
    const [, indent = '', sign = '', rest = ''] = item
    const box = /^\[([ xX])\]\s+(.*)$/.exec(rest)
    const lead = `${indent}${/\d/.test(sign) ? sign : '•'} ${box === null ? '' : `[${box[1] ?? ''}] `}`
    return wrapSpans(inline(box?.[2] ?? rest), width, line(lead), ' '.repeat(lead.length))
  }
  const quote = /^\s*>\s?(.*)$/.exec(raw)
  if (quote !== null) return wrapSpans(inline(quote[1] ?? '', dim), width, line('│ ', dim), '│ ')
  const [indent = ''] = /^\s*/.exec(raw) ?? []
  return wrapSpans(inline(raw.trim()), width, line(indent), indent)
}

const marks = /(`+)(.+?)\1|\*\*(\S(?:.*?\S)?)\*\*|\[([^\]\n]+)\]\(([^)\s]+)\)/g

function inline(text: string, style: Style = {}): Line {
  const spans: Span[] = []
  let at = 0
  for (const found of text.matchAll(marks)) {
    if (found.index > at) spans.push(span(text.slice(at, found.index), style))
    const [whole, , quoted, strong, label, target] = found
    // A colour would mean something here.
    if (quoted !== undefined) spans.push(span('`', dim), span(quoted, style), span('`', dim))
    else if (strong !== undefined) spans.push(span(strong, { ...style, ...bold }))
    else spans.push(span(label ?? '', style), ...(target === label ? [] : [span(` (${target ?? ''})`, dim)]))
    at = found.index + whole.length
  }
  if (at < text.length) spans.push(span(text.slice(at), style))
  return spans
}
