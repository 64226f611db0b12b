// "Did you mean": the candidate that a mistyped word most likely stands for.

/** The closest candidate, or undefined when none is close enough to be worth naming. */
export function nearest(
  word: string,
  candidates: readonly string[],
  /** Of programs and scripts there are many, and a wrong guess looks foolish: only a slip of the finger counts. */
  isStrict = false,
): string | undefined {
  let best: string | undefined
  let bestDistance = Infinity
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    // A third of the word may be wrong, of a short one a letter; a prefix of the real name always counts ("add-exp" for "add-export").
    const longest = Math.max(word.length, candidate.length)
    const loose = longest <= 4 ? 1 : Math.max(2, Math.floor(longest / 3))
    const allowed = isStrict ? (word.length <= 6 ? 1 : 2) : loose
    const isPrefix = !isStrict && word.length >= 2 && candidate.toLowerCase().startsWith(word.toLowerCase())
    if ((distance <= allowed || isPrefix) && distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Optimal string alignment: insert, delete, replace, and swap of neighbours (the commonest slip) cost one each. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= b.length; column += 1) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1
      let least = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + cost,
      )
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1)
      }
      current.push(least)
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}
