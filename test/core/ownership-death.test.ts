import { describe, expect, test } from 'vitest'
import { ownerOfPath, type Absence, type PathTimes } from '../../src/core/ownership.ts'

const died: Absence = { diedMs: 100_000, repairs: [] }
const quiet: Absence = { ...died, quietFromMs: 101_000 }
const orphaned: Absence = { ...died, orphanUntilMs: 200_000 }
/** A repair that was killed at its last beat, and the one that goes on now. */
const repaired: Absence = {
  ...orphaned,
  repairs: [
    { fromMs: 300_000, untilMs: 310_000 },
    { fromMs: 400_000, untilMs: Number.POSITIVE_INFINITY },
  ],
}

describe('O5: whose is a path of a dead loop’s tree', () => {
  test.each<[string, PathTimes, Absence, string]>([
    ['while the loop lived', { changedMs: 50_000 }, died, 'agent'],
    ['with the last beat', { changedMs: 100_020 }, died, 'agent'],
    ['until the beat that did not come', { changedMs: 100_700 }, died, 'unknown'],
    ['a moment later, where nobody can tell', { changedMs: 101_999 }, died, 'unknown'],
    ['a moment later, when nothing ran any more', { changedMs: 101_500 }, quiet, 'user'],
    ['at once, when nothing ran any more', { changedMs: 100_300 }, { ...died, quietFromMs: 100_200 }, 'user'],
    ['before somebody looked', { changedMs: 100_900 }, quiet, 'unknown'],
    ['right after a repair that was killed', { changedMs: 311_500 }, repaired, 'unknown'],
    ['after that', { changedMs: 102_001 }, died, 'user'],
    ['while an orphan was alive', { changedMs: 150_000 }, orphaned, 'unknown'],
    ['after the orphan’s end', { changedMs: 200_001 }, orphaned, 'user'],
    ['before the orphan outlived it', { changedMs: 100_000 }, orphaned, 'agent'],
    ['by a repair that was killed', { changedMs: 305_000 }, repaired, 'ralph'],
    ['between two repairs', { changedMs: 350_000 }, repaired, 'user'],
    ['before the first repair, after the orphan', { changedMs: 250_000 }, repaired, 'user'],
    ['by the repair that goes on', { changedMs: 500_000 }, repaired, 'ralph'],
    [
      'an old file in a folder that was renamed since',
      { changedMs: 50_000, folderMs: 150_000 },
      died,
      'unknown',
    ],
    ['an old file in an old folder', { changedMs: 50_000, folderMs: 60_000 }, died, 'agent'],
    ['gone from a folder that changed since', { folderMs: 150_000 }, died, 'unknown'],
    ['gone from a folder that has not', { folderMs: 60_000 }, died, 'agent'],
  ])('changed %s', (_when, times, absence, owner) => {
    expect(ownerOfPath(times, absence).owner).toBe(owner)
  })
})
