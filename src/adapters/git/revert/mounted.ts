// What was mounted below the work tree after the checkpoint is nobody's work: it is neither kept nor undone, and nothing is touched before it is gone.
import { again, RalphError } from '../../../core/error.ts'
import { mountsBelow } from '../../files/mounts.ts'
import { shellName } from '../attempt/lost-files.ts'
import { listed } from '../attempt/reunite.ts'
import type { Store } from '../store.ts'
import type { Snapshot } from './snapshot.ts'

/** Nothing to say of a checkpoint of an earlier version. */
export function refuseMounted({ git }: Store, { mounts }: Pick<Snapshot, 'mounts'>): void {
  if (mounts === undefined) return
  const before = [...mounts]
  const fresh = mountsBelow(git.worktree).filter((point) => {
    const at = before.indexOf(point)
    if (at >= 0) before.splice(at, 1)
    return at < 0
  })
  refuse(
    git.worktree,
    fresh,
    'was mounted in the work tree while the loop ran: what lies there may be yours, so ralph neither keeps nor undoes anything',
  )
}

/** Of a folder that is to go as a whole. */
export function refuseMountsIn(folder: string): void {
  refuse(folder, mountsBelow(folder), 'is mounted in a folder that ralph is about to remove')
}

function refuse(folder: string, points: readonly string[], what: string): void {
  if (points.length === 0) return
  const top = Buffer.from(folder).toString('latin1')
  const places = points.map((point) => (point === '' ? top : `${top}/${point}`))
  const commands = places.map((place) => `umount ${shellName(place)}`).join(' && ')
  throw new RalphError('checkpoint_failed', `${listed(places)} ${what}`, {
    hint: `Nothing there was touched. Unmount it: ${commands}, then ${again}.`,
  })
}
