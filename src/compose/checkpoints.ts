// Chooses the checkpoint strategy and gives it what it needs.
import { branchCheckpoints } from '../adapters/git/branch.ts'
import type { Repository } from '../adapters/git/git.ts'
import { stashCheckpoints } from '../adapters/git/stash.ts'
import type { LoopEvent } from '../core/event.ts'
import type { Checkpoints, WriteAhead } from '../ports.ts'
import type { Site } from './site.ts'

/** Never part of a checkpoint, never cleaned, never rolled back. */
export const hiddenPaths = ['.claude/loop-state.json', '.claude/loop-state.json.*']

export interface CheckpointWish {
  readonly change: string
  readonly strategy: 'branch' | 'stash'
  readonly writeAhead: WriteAhead
  readonly history: () => Promise<readonly LoopEvent[]>
  /** The user's own checkout, when the loop runs in a work tree of its own. */
  readonly home?: Repository
  readonly brought?: readonly string[]
}

export function checkpointsFor(site: Site, wish: CheckpointWish): Checkpoints {
  const make = wish.strategy === 'stash' ? stashCheckpoints : branchCheckpoints
  return make({
    git: site.git,
    change: wish.change,
    writeAhead: wish.writeAhead,
    history: wish.history,
    protectedPaths: hiddenPaths,
    clock: site.clock,
    ...(wish.home !== undefined && { home: wish.home }),
    ...(wish.brought !== undefined && { brought: wish.brought }),
  })
}
