// Seeded dice: the same round again for the same seed and number.
export interface Dice {
  /** 0 <= x < 1 */
  next(): number
  /** `low` to `high`, both possible. */
  int(low: number, high: number): number
  chance(likely: number): boolean
  pick<T>(items: readonly T[]): T
  /** By weight; at least one weight is above 0. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T
  /** Some of them, in their order. */
  some<T>(items: readonly T[], likely: number): T[]
}

/** mulberry32, begun at a mix of both numbers: neighbours must not be alike. */
export function diceOf(seed: number, round: number): Dice {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(round + 1, 0xc2b2ae35)
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    int,
    chance: (likely) => next() < likely,
    pick: <T>(items: readonly T[]): T => items[int(0, items.length - 1)] as T,
    weighted: <T extends string>(weights: Readonly<Record<T, number>>): T => {
      const entries = Object.entries(weights) as [T, number][]
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [name, weight] of entries) {
        left -= weight
        if (left < 0) return name
      }
      return entries[0]?.[0] as T
    },
    some: (items, likely) => items.filter(() => next() < likely),
  }
}
