// Pairs the lines of two versions of a file: patience diff, so that one lost blank line does not shift everything below it.

/** Index pairs [before, after] of lines that are the same, rising in both. */
export function alignLines(before: readonly string[], after: readonly string[]): [number, number][] {
  const pairs: [number, number][] = []
  // An explicit stack: a file of a hundred thousand lines must not overflow the call stack.
  const work: [number, number, number, number][] = [[0, before.length, 0, after.length]]
  for (;;) {
    const range = work.pop()
    if (range === undefined) break
    let [fromB, toB, fromA, toA] = range
    while (fromB < toB && fromA < toA && before[fromB] === after[fromA]) pairs.push([fromB++, fromA++])
    while (fromB < toB && fromA < toA && before[toB - 1] === after[toA - 1]) pairs.push([--toB, --toA])
    if (fromB === toB || fromA === toA) continue
    const anchors = risingAnchors(before, after, [fromB, toB, fromA, toA])
    let [lastB, lastA] = [fromB, fromA]
    for (const [b, a] of anchors) {
      pairs.push([b, a])
      work.push([lastB, b, lastA, a])
      ;[lastB, lastA] = [b + 1, a + 1]
    }
    if (anchors.length > 0) work.push([lastB, toB, lastA, toA])
    else pairs.push(...greedyPairs(before, after, [fromB, toB, fromA, toA]))
  }
  return pairs.sort((x, y) => x[0] - y[0])
}

type Range = readonly [number, number, number, number]

/** Lines that occur once on each side, thinned out to the longest run that rises on both. */
function risingAnchors(
  before: readonly string[],
  after: readonly string[],
  range: Range,
): [number, number][] {
  const [fromB, toB, fromA, toA] = range
  const onceBefore = onceIn(before, fromB, toB)
  const onceAfter = onceIn(after, fromA, toA)
  const unique: [number, number][] = []
  for (const [line, b] of onceBefore) {
    const a = onceAfter.get(line)
    if (b >= 0 && a !== undefined && a >= 0) unique.push([b, a])
  }
  return longestRising(unique)
}

/** Index of each line that occurs once; -1 for one that occurs more often. */
function onceIn(lines: readonly string[], from: number, to: number): Map<string, number> {
  const found = new Map<string, number>()
  for (let index = from; index < to; index += 1) {
    const line = lines[index] ?? ''
    found.set(line, found.has(line) ? -1 : index)
  }
  return found
}

function longestRising(pairs: readonly [number, number][]): [number, number][] {
  const tops: number[] = []
  const previous: number[] = []
  for (const [index, [, a]] of pairs.entries()) {
    let low = 0
    let high = tops.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((pairs[tops[middle] ?? 0]?.[1] ?? 0) < a) low = middle + 1
      else high = middle
    }
    previous[index] = low > 0 ? (tops[low - 1] ?? -1) : -1
    tops[low] = index
  }
  const run: [number, number][] = []
  for (let at = tops.at(-1) ?? -1; at >= 0; at = previous[at] ?? -1) {
    const pair = pairs[at]
    if (pair !== undefined) run.push(pair)
  }
  return run.reverse()
}

/** Without a unique line: each line takes the next equal one, which is right whenever lines were only added. */
function greedyPairs(before: readonly string[], after: readonly string[], range: Range): [number, number][] {
  const [fromB, toB, fromA, toA] = range
  const places = new Map<string, number[]>()
  for (let index = toA - 1; index >= fromA; index -= 1) {
    const line = after[index] ?? ''
    const stack = places.get(line)
    if (stack === undefined) places.set(line, [index])
    else stack.push(index)
  }
  const pairs: [number, number][] = []
  let least = fromA
  for (let b = fromB; b < toB; b += 1) {
    const stack = places.get(before[b] ?? '') ?? []
    let a = stack.pop()
    while (a !== undefined && a < least) a = stack.pop()
    if (a === undefined) continue
    pairs.push([b, a])
    least = a + 1
  }
  return pairs
}
