// Where the user stands, for a loop in a work tree of its own: HEAD, or where the loop came from that has HEAD on its branch.
import { shown, type Git } from './git.ts'
import { storedOrigin } from './origin.ts'
import { readRefs, type Head } from './refs.ts'
import { checkpointFolder } from './store.ts'

export interface StartingPoint extends Head {
  /** The other change whose branch this checkout is on, if any. */
  readonly beside: string
}

/** `HEAD` itself where that cannot be known: whoever asks will refuse a branch of ralph's. */
export async function startingPoint(git: Git, change: string): Promise<StartingPoint> {
  const { head, all } = await readRefs(git)
  const other = /^refs\/heads\/ralph\/(.+)$/.exec(head.ref)?.[1]
  if (other === undefined || other === change) return { ...head, beside: '' }
  const origin = await storedOrigin({ folder: checkpointFolder(git.gitCommonDir, other) })
  if (origin === undefined) return { ...head, beside: '' }
  // The branch may have moved since: a new loop begins with what is on it now.
  return { ref: origin.ref, commit: all[origin.ref] ?? origin.commit, beside: other }
}

export function besideNote(change: string, { ref, commit, beside }: StartingPoint): string {
  if (beside === '') return ''
  const from = ref === '' ? '' : `${shown(ref.replace('refs/heads/', ''))} `
  return `this checkout is on ralph/${beside}, where the loop of ${beside} works; ${change} begins at ${from}(${commit.slice(0, 12)}), without what is uncommitted or of that loop here`
}
