// The state of the merge queue as its journal and git's history have it together: what git knows better is asked of git.
import { queuePaths, readQueueJournal } from '../adapters/files/queue-files.ts'
import { shown, type Git } from '../adapters/git/git.ts'
import { isIn, landedByGit, landedRef, notLandedOn } from '../adapters/git/landing/landing.ts'
import { evolveQueue, replayQueue } from '../core/queue.ts'
import type { QueueBody } from '../core/queue-event.ts'
import type { QueueState } from '../core/queue.ts'
import { takenBack } from '../engine/queue-base.ts'
import { hasQueue } from './queue-known.ts'

/** For those who look: nothing is written. */
export async function queueNow(git: Git): Promise<QueueState> {
  const state = replayQueue(readQueueJournal(queuePaths(git.gitCommonDir)))
  const isUsed = state.seq > 0 || hasQueue(git)
  return isUsed ? withBodies(state, await gitSays(git, state)) : state
}

/** What its journal does not say, or not any more. */
export async function gitSays(git: Git, state: QueueState): Promise<readonly QueueBody[]> {
  const found = state.seq === 0 ? await rebuilt(git) : []
  const gone = await takenBack(withBodies(state, found), (target, commits) =>
    notLandedOn(git, target, commits),
  )
  return [...found, ...gone]
}

/** The rest may be otherwise the next time: somebody brings back what they took away. */
export function isKept({ type }: QueueBody): boolean {
  return type === 'queue.rebuilt'
}

/** As if this had been told. */
export function withBodies(state: QueueState, bodies: readonly QueueBody[]): QueueState {
  return bodies.reduce((now, body) => evolveQueue(now, { v: 1, seq: now.seq + 1, time: '', ...body }), state)
}

/** From the commits themselves; one that the queue has not made is not taken for its own. */
async function rebuilt(git: Git): Promise<readonly QueueBody[]> {
  const refs = await git.line(['for-each-ref', '--format=%(objectname) %(refname)', landedRef('')])
  const bodies: QueueBody[] = []
  for (const line of shown(refs)
    .split('\n')
    .filter((each) => each !== '')) {
    const [commit = '', ref = ''] = line.split(' ')
    const target = ref.slice(landedRef('').length)
    const landed = await landedByGit(git, [ref, `refs/heads/${target}`])
    if (landed.length === 0) continue
    const isOwn = landed.some((each) => each.commit === commit)
    const isHome = await isIn(git, commit, `refs/heads/${target}`)
    if (isOwn || isHome)
      bodies.push({
        type: 'queue.rebuilt',
        target,
        commit,
        landed: landed.map(({ change, commit: as, tip }) => ({ change, commit: as, tip })),
      })
  }
  return bodies
}
