// Finds the name that a mistyped word was meant to be, for every "did you mean".

/** The closest candidate, or none when nothing is near enough to be worth a guess. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase()
  let best: string | undefined
  // A third of the letters may be wrong: `sotp` finds `stop`, `foo` finds nothing.
  let bestDistance = Math.max(1, Math.floor(typed.length / 3) + 1)
  for (const candidate of candidates) {
    const distance = editDistance(typed, candidate.toLowerCase())
    if (distance < bestDistance || (distance === bestDistance && best === undefined)) {
      best = candidate
      bestDistance = distance
    }
  }
  if (best !== undefined) return best
  const started = candidates.filter((candidate) => typed.length >= 3 && candidate.toLowerCase().startsWith(typed))
  return started.length === 1 ? started[0] : undefined
}

/** Damerau-Levenshtein (optimal string alignment): insert, delete, replace, swap of neighbours. */
function editDistance(left: string, right: string): number {
  let before: number[] = []
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= right.length; column += 1) {
      const same = left[row - 1] === right[column - 1]
      let cost = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
      )
      const swapped = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      if (swapped && row > 1 && column > 1) cost = Math.min(cost, (before[column - 2] ?? 0) + 1)
      current.push(cost)
    }
    before = previous
    previous = current
  }
  return previous[right.length] ?? 0
}
