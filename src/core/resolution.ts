// How two sides of a conflict were put together, judged by their words: whether a side was dropped, markers stayed, or tests got weaker.
// Blanks, empty lines and their order never count: they must not make one side look like both.

/** One file: where both sides began, what each made of it, and what it is now. */
export interface Sides {
  readonly fork: string
  readonly landed: string
  readonly own: string
  readonly now: string
}

/** Of a three-way merge: lines that merged by themselves, and hunks that did not. */
export type Piece = { readonly line: string } | Omit<Sides, 'now'>

/** Which side's part is not in `now` any more. */
export function droppedSides({ fork, landed, own, now }: Sides): readonly ('landed' | 'own')[] {
  const [f, l, o, n] = [wordsOf(fork), wordsOf(landed), wordsOf(own), wordsOf(now)]
  return [
    ...(isDropped(l, o, f, n) ? (['landed'] as const) : []),
    ...(isDropped(o, l, f, n) ? (['own'] as const) : []),
  ]
}

type Words = ReadonlyMap<string, number>

/** Less than half of what only this side brought is left; of one that only took away: of what it took. */
function isDropped(side: Words, other: Words, fork: Words, now: Words): boolean {
  const of = (words: Words, word: string): number => words.get(word) ?? 0
  const share = (all: readonly (readonly [word: string, brought: number, left: number])[]): boolean => {
    const real = all.filter(([, brought]) => brought > 0)
    const words = real.filter(([word]) => isWord.test(word))
    const counted = words.length > 0 ? words : real
    const sum = (at: 1 | 2): number => counted.reduce((total, each) => total + each[at], 0)
    return sum(2) * 2 < sum(1)
  }
  const brought = [...side.keys()].map((word) => {
    const before = Math.max(of(fork, word), of(other, word))
    const more = of(side, word) - before
    return [word, more, Math.min(more, Math.max(0, of(now, word) - before))] as const
  })
  if (brought.some(([, more]) => more > 0)) return share(brought)
  const taken = [...fork.keys()].map((word) => {
    const before = Math.min(of(fork, word), of(other, word))
    const less = before - of(side, word)
    return [word, less, Math.min(less, Math.max(0, before - of(now, word)))] as const
  })
  return share(taken)
}

const isWord = /[\p{L}\p{N}_$]/u

/** Words, and every other sign by itself; blanks are nothing. */
function wordsOf(text: string): Words {
  const found = new Map<string, number>()
  for (const [word] of text.matchAll(/[\p{L}\p{N}_$]+|[^\s\p{L}\p{N}_$]/gu))
    found.set(word, (found.get(word) ?? 0) + 1)
  return found
}

/**
 * The hunks of a merge as they are in `now`: each with the lines around it up to the next that is there once on both sides, so that it is
 * known where it begins and ends whatever was written in it.
 */
export function hunksIn(pieces: readonly Piece[], now: string): readonly Sides[] {
  const lines = linesOf(now)
  const places = new Map<string, number>()
  for (const [at, line] of lines.entries()) places.set(bare(line), places.has(bare(line)) ? -1 : at)
  const texts = pieces.flatMap((piece) =>
    'line' in piece ? [piece.line] : [piece.fork, piece.landed, piece.own].flatMap(linesOf),
  )
  const seen = new Map<string, number>()
  for (const line of texts) seen.set(bare(line), (seen.get(bare(line)) ?? 0) + 1)
  const anchors = rising(
    pieces.flatMap((piece, at) => {
      if (!('line' in piece) || !isWord.test(piece.line) || seen.get(bare(piece.line)) !== 1) return []
      const there = places.get(bare(piece.line)) ?? -1
      return there === -1 ? [] : [{ at, there }]
    }),
  )
  const ends = [...anchors, { at: pieces.length, there: lines.length }]
  return ends.flatMap(({ at, there }, index) => {
    const before = anchors[index - 1] ?? { at: -1, there: -1 }
    const between = pieces.slice(before.at + 1, at)
    if (between.every((piece) => 'line' in piece)) return []
    const side = (name: keyof Omit<Sides, 'now'>): string =>
      between.map((piece) => ('line' in piece ? piece.line : piece[name])).join('\n')
    const region = lines.slice(before.there + 1, there).join('\n')
    return [{ fork: side('fork'), landed: side('landed'), own: side('own'), now: region }]
  })
}

/** The longest of those that come in the same order on both sides. */
function rising<T extends { readonly there: number }>(all: readonly T[]): readonly T[] {
  const best: { item: T; before: number }[] = []
  const ends: number[] = []
  for (const item of all) {
    const place = ends.findIndex((end) => (best[end]?.item.there ?? 0) >= item.there)
    const length = place === -1 ? ends.length : place
    best.push({ item, before: ends[length - 1] ?? -1 })
    ends[length] = best.length - 1
  }
  const found: T[] = []
  for (let at = ends.at(-1) ?? -1; at >= 0; at = best[at]?.before ?? -1) {
    const step = best[at]
    if (step !== undefined) found.unshift(step.item)
  }
  return found
}

/** The text of a merge whose markers are `size` signs long, fork included. */
export function piecesOf(merged: string, size: number): readonly Piece[] {
  const pieces: Piece[] = []
  let hunk: Record<'fork' | 'landed' | 'own', string[]> | undefined
  let side: 'fork' | 'landed' | 'own' = 'landed'
  for (const line of linesOf(merged)) {
    const [sign = ''] = line
    const isMark = '<|=>'.includes(sign) && sign !== '' && line.startsWith(sign.repeat(size))
    if (!isMark) {
      if (hunk === undefined) pieces.push({ line })
      else hunk[side].push(line)
    } else if (sign === '<') [hunk, side] = [{ fork: [], landed: [], own: [] }, 'landed']
    else if (sign === '|') side = 'fork'
    else if (sign === '=') side = 'own'
    else if (hunk !== undefined) {
      const { fork, landed, own } = hunk
      pieces.push({ fork: fork.join('\n'), landed: landed.join('\n'), own: own.join('\n') })
      hunk = undefined
    }
  }
  return pieces
}

/** Git's markers, or what is left of them, that neither side has. */
export function hasMarkers({ landed, own, now }: Sides): boolean {
  const count = (text: string, mark: RegExp): number => linesOf(text).filter((line) => mark.test(line)).length
  return [/^<{7}( |$)/, /^\|{7}( |$)/, /^={7}$/, /^>{7}( |$)/].some(
    (mark) => count(now, mark) > count(landed, mark) + count(own, mark),
  )
}

/** What is weaker in a test that both sides had changed; empty: nothing. `alone`: lines that merged by themselves. */
export function weakerTest({ fork, landed, own, now }: Sides, alone: readonly string[]): string {
  const left = counted(linesOf(now).map(bare))
  for (const [line, times] of counted(alone.filter((each) => isWord.test(each)).map(bare)))
    if ((left.get(line) ?? 0) < times) return `lost a line that had no conflict: ${line.slice(0, 60)}`
  const counts = (which: RegExp): readonly [fork: number, landed: number, own: number, now: number] => [
    total(fork, which),
    total(landed, which),
    total(own, which),
    total(now, which),
  ]
  const [f, l, o, n] = counts(checkWord)
  if (n < Math.min(Math.max(l, o), l + o - f)) return 'checks less than the two sides together'
  const [sf, sl, so, sn] = counts(
    /^(skip\w*|only|todo|xit|xtest|xdescribe|xfail|ignore|Ignore|Disabled|pending)$/,
  )
  return sn > Math.max(sl, so, sl + so - sf) ? 'skips what neither side skips' : ''
}

const checkWord = /^(it|test|expect|should|check|require|assert\w*|test_\w+|Test\w*)$/

/** How many words of a test's are about checking. */
export function checksIn(text: string): number {
  return total(text, checkWord)
}

function total(text: string, which: RegExp): number {
  return [...wordsOf(text)].reduce((sum, [word, times]) => sum + (which.test(word) ? times : 0), 0)
}

function counted(lines: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const line of lines) found.set(line, (found.get(line) ?? 0) + 1)
  return found
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/)
}

function bare(line: string): string {
  return line.replaceAll(/\s+/g, '')
}

/** By the names that test runners look for. */
export function isTest(path: string): boolean {
  return /(^|\/)(tests?|__tests__|__snapshots__|spec|e2e|cypress)\/|[._-](test|spec)\.[^/]+$|(^|\/)(test_[^/]+|conftest\.py)$|_test\.[^/]+$|(^|\/)tests?\.(?:[cm]?[jt]sx?|py|rb|php|pl)$|Tests?\.(java|kt|cs|swift|php|scala)$|\.snap$/i.test(
    path,
  )
}
