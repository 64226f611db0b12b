// Finds the promise in what the assistant said: a pure, incremental scanner of its lines, by the rules of contract 4.

export type PromiseFound =
  | { readonly kind: 'complete'; readonly claim?: number | undefined }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'none' }

export interface PromiseScanner {
  /** More text of the current message, cut anywhere. */
  feed(text: string): void
  /** The current message is over; the next `feed` begins another. */
  endMessage(): void
  /** Said in another way than by text: it is the last word until more is said. */
  told(promise: PromiseFound): void
  /** Whatever the next line is, it matters: a tag or a comment is open, or a promise ended the line before. */
  readonly isHanging: boolean
  /** A tag after the promise that says something else, in a form that does not count; empty where there is none. */
  readonly contradiction: string
  /** Nothing more comes. The last promise that counts. */
  end(): PromiseFound
}

export function promiseScanner(): PromiseScanner {
  let found: PromiseFound = { kind: 'none' }
  /** Ends a line that also holds prose: counts only while nothing but white space follows it. */
  let closing: PromiseFound | undefined
  let contradiction = ''
  let partial: Line = emptyLine
  let fence: string | undefined
  let isInComment = false
  let open: OpenTag | undefined
  /** A FAILED whose reason holds tags of its own: if an end tag comes that belongs to nothing else, it was all one reason. */
  let outer: OpenTag | undefined

  const count = (promise: PromiseFound | undefined, isAlone: boolean): void => {
    if (promise === undefined) return
    if (isAlone) found = promise
    else closing = promise
  }

  const isHanging = (): boolean =>
    open !== undefined || closing !== undefined || outer !== undefined || isInComment

  const readTags = (text: string, hasCutHead: boolean, head: string): void => {
    const failed = failedLine(hasCutHead ? head : text, text)
    if (failed !== undefined) {
      found = failed
      return
    }
    const start = [...text.matchAll(new RegExp(openTag, 'g'))].at(-1)
    if (start === undefined) return
    const before = text.slice(0, start.index)
    // A block quote repeats somebody's words.
    if (before.trimStart().startsWith('>')) return
    const isAlone = !hasCutHead && isDecoration(before)
    const inside = text.slice(start.index + start[0].length)
    const end = closeTag.exec(inside)
    if (end === null) {
      open = { isAlone, content: inside.slice(0, reasonLimit) }
      return
    }
    const after = inside.slice(end.index + end[0].length)
    if (!isDecoration(after)) return
    // After prose, backticks make it a mention ("I was asked to print `…`"), not a promise.
    if (!isAlone && after.includes('`')) return
    count(promiseOf(inside.slice(0, end.index)), isAlone)
  }

  const readLine = ({ text: raw, head, hasCutHead }: Line): void => {
    if (!hasCutHead && !isHanging() && !canHoldPromise((mark) => raw.includes(mark))) return
    const text = withoutCodes(raw)
    if (!hasCutHead && text.trim() === '') {
      if (open !== undefined) open.content = `${open.content}\n`.slice(0, reasonLimit)
      return
    }
    closing = undefined
    if (outer !== undefined && readOuter(outer, text)) return
    // A comment is not shown to anybody; a reason is taken as it is.
    if (isInComment) {
      isInComment = !text.includes('-->')
      return
    }
    if (open === undefined && fence === undefined && beginsComment(hasCutHead ? head : text)) {
      isInComment = !text.includes('-->')
      if (isInComment) return
    }
    const isInFence = fence !== undefined
    fence = fenceAfter(hasCutHead ? head : text, fence)
    if (open !== undefined && (isInFence || !openTag.test(text))) {
      const end = openTag.test(text) ? null : closeTag.exec(text)
      if (end === null) {
        open.content = `${open.content}\n${text}`.slice(0, reasonLimit)
        return
      }
      const after = text.slice(end.index + end[0].length)
      if (isDecoration(after) && (open.isAlone || !after.includes('`'))) {
        count(promiseOf(`${open.content}\n${text.slice(0, end.index)}`), open.isAlone)
      }
      open = undefined
      fence = undefined
      return
    }
    if (open?.isAlone === true && /^\s*FAILED\b/.test(open.content)) {
      outer = { isAlone: true, content: `${open.content}\n${text}`.slice(0, reasonLimit) }
    }
    open = undefined
    if (isInFence || fence !== undefined) return
    const before = found
    readTags(text, hasCutHead, head)
    contradiction = found === before ? otherWord(text) || contradiction : ''
  }

  /** Whether this line ends the outer FAILED; else it is one more line of its reason, and is read as usual. */
  const readOuter = (tag: OpenTag, text: string): boolean => {
    const end = openTag.test(text) ? null : closeTag.exec(text)
    const isEnd = end !== null && open === undefined && isDecoration(text.slice(end.index + end[0].length))
    tag.content = `${tag.content}\n${isEnd ? text.slice(0, end.index) : text}`.slice(0, reasonLimit)
    if (!isEnd) return false
    count(promiseOf(tag.content), true)
    outer = undefined
    fence = undefined
    return true
  }

  return {
    feed(text) {
      // A CR at the end of a chunk may be half of a CRLF.
      const carriesCr = partial.text.endsWith('\r')
      if (carriesCr) partial = { ...partial, text: partial.text.slice(0, -1) }
      const chunk = carriesCr ? `\r${text}` : text
      const lastBreak = lastBreakOf(chunk)
      if (lastBreak === -1) {
        partial = grow(partial, chunk)
        return
      }
      const lines = chunk.slice(0, chunk.startsWith('\r\n', lastBreak - 1) ? lastBreak - 1 : lastBreak)
      const firstBreak = lineBreak.exec(lines)
      readLine(grow(partial, lines.slice(0, firstBreak?.index)))
      if (firstBreak !== null) {
        const rest = lines.slice(firstBreak.index + firstBreak[0].length)
        // A flood: no line of it can change anything.
        const plain = withoutCodes(rest)
        const isIdle = !isHanging() && !canHoldPromise((mark) => plain.includes(mark))
        if (!isIdle) for (const line of rest.split(lineBreak)) readLine(grow(emptyLine, line))
      }
      partial = grow(emptyLine, chunk.slice(lastBreak + 1))
    },
    told(promise) {
      this.endMessage()
      closing = undefined
      contradiction = ''
      found = promise
    },
    get isHanging() {
      return isHanging()
    },
    get contradiction() {
      return contradiction
    },
    endMessage() {
      readLine(partial)
      partial = emptyLine
      // Cut off: nobody knows the reason, but whoever begins so has not done what was said before.
      if (open !== undefined && beginsFailed(open.content) && (closing ?? found).kind === 'complete') {
        found = { kind: 'none' }
        closing = undefined
      }
      open = undefined
      outer = undefined
      fence = undefined
      isInComment = false
    },
    end() {
      this.endMessage()
      return closing ?? found
    },
  }
}

/**
 * Whether whole lines, outside of a tag, can change what is found; asked of text or of bytes by the marks that they have.
 * One-letter searches first: they are the cheap ones.
 */
export function canHoldPromise(has: (mark: string) => boolean): boolean {
  if (has('```') || has('~~~')) return true
  // A terminal code may stand inside a mark.
  const isBroken = has('\u001b')
  return has('<') ? isBroken || has('promise') || has('<!--') : isBroken && (has('`') || has('~'))
}

interface Line {
  readonly text: string
  /** The first characters, for fences, when `text` lost its front. */
  readonly head: string
  readonly hasCutHead: boolean
}

interface OpenTag {
  readonly isAlone: boolean
  content: string
}

const emptyLine: Line = { text: '', head: '', hasCutHead: false }
/** Longer lines lose their front: a promise can only be at their end. */
const lineLimit = 65_536
const reasonLimit = 16_384
// A bare CR redraws the line on a terminal, so what follows stands alone there.
const lineBreak = /\r\n|\n|\r/
const openTag = /<\s*promise\s*>/
const closeTag = /<\s*\/\s*promise\s*>/
// None reaches over a line's end: taken out of one line or of many, the same is left.
const terminalCodes = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b\r\n]*(?:\u0007|\u001b\\))/g

function withoutCodes(text: string): string {
  return text.includes('\u001b') ? text.replaceAll(terminalCodes, '') : text
}

function grow(line: Line, text: string): Line {
  const whole = line.text + text
  if (whole.length <= lineLimit) return { ...line, text: whole }
  const head = line.hasCutHead ? line.head : whole.slice(0, 256)
  return { text: whole.slice(-lineLimit / 2), head, hasCutHead: true }
}

/** A CR at the very end is left for the next chunk. */
function lastBreakOf(chunk: string): number {
  const lf = chunk.lastIndexOf('\n')
  // Looking backwards for what is not there costs more than all the rest of a flood.
  return chunk.includes('\r') ? Math.max(lf, chunk.slice(0, -1).lastIndexOf('\r')) : lf
}

/** A list dash or number, bold, backticks: what Markdown writes around a line that stands alone. */
function isDecoration(text: string): boolean {
  return /^\s*(?:(?:[-*+•]|\d+[.)])\s+)?[\s*_`]*$/.test(text)
}

/** As a block of its own; in mid-sentence it is a word about comments. */
function beginsComment(text: string): boolean {
  return /^\s*(?:(?:[-*+]|\d+[.)])\s+)?<!--/.test(text)
}

/** The fence that is open after this line: its own opening characters, or none. */
function fenceAfter(text: string, fence: string | undefined): string | undefined {
  const mark = /^\s*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})(.*)$/.exec(text)
  const run = mark?.[1]
  if (run === undefined) return fence
  const rest = mark?.[2] ?? ''
  if (fence === undefined) return run.startsWith('`') && rest.includes('`') ? undefined : run
  return run.startsWith(fence) && rest.trim() === '' ? undefined : fence
}

/** A whole FAILED alone on its line, whatever tags its reason mentions; a line that lost its middle is known by its head. */
function failedLine(head: string, text: string): PromiseFound | undefined {
  const start = openTag.exec(head)
  if (start === null || !isDecoration(head.slice(0, start.index))) return undefined
  const inside = head.slice(start.index + start[0].length)
  const ends = [...text.matchAll(new RegExp(closeTag, 'g'))].at(-1)
  if (!/^\s*FAILED\b/.test(inside) || ends === undefined) return undefined
  if (!isDecoration(text.slice(ends.index + ends[0].length))) return undefined
  const reason = head === text ? text.slice(start.index + start[0].length, ends.index) : `${inside}…`
  const promise = promiseOf(reason)
  return promise?.kind === 'failed' ? promise : undefined
}

function beginsFailed(content: string): boolean {
  const text = content.trim()
  return /^FAILED\b/.test(text) || (text !== '' && 'FAILED'.startsWith(text))
}

function promiseOf(content: string): PromiseFound | undefined {
  const text = content.trim()
  if (text === 'COMPLETE') return { kind: 'complete' }
  const failed = /^FAILED\s*(?::([\s\S]*))?$/.exec(text)
  if (failed === null) return undefined
  const reason = (failed[1] ?? '').slice(0, reasonLimit).trim()
  return isPlaceholder(reason) ? undefined : { kind: 'failed', reason }
}

/** The protocol's own description, quoted back. */
function isPlaceholder(reason: string): boolean {
  return /^[{<[(]?\s*(?:the\s+|your\s+)?reason\s*[}>\])]?$/i.test(reason) || /^(?:\.{3}|…)$/.test(reason)
}

/** What a tag of this line says that is not COMPLETE, wherever it stands; not in backticks or a block quote: those repeat somebody's words. */
function otherWord(text: string): string {
  const found = /(?<!`)<\s*promise\s*>([^<]*)<\s*\/\s*promise\s*>/.exec(text.slice(0, reasonLimit))
  const said = found?.[1]?.trim() ?? ''
  const isWord = /^[a-z]/i.test(said) && !/^complete$/i.test(said)
  return !isWord || text.trimStart().startsWith('>') || isPlaceholder(said.replace(/^\w+\s*:\s*/, ''))
    ? ''
    : said
}
