// Where the user stood when a run began, kept beside the journal; and where a loop in a work tree of its own begins.
import { headOf, type Head } from '../../../core/git-facts.ts'
import type { Git } from '../git.ts'
import { readRefs, shortName } from '../refs/refs.ts'
import { checkpointFolder, type Store } from '../store.ts'
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../../files/whole.ts'

interface StartingPoint {
  readonly head: Head
  /** The other change whose branch this checkout is on. */
  readonly beside?: string
}

/** `HEAD` itself where that cannot be known: whoever asks will refuse a branch of ralph's. */
export async function startingPoint(git: Git, change: string): Promise<StartingPoint> {
  const { head, all } = await readRefs(git)
  const other = /^refs\/heads\/ralph\/(.+)$/.exec(head.ref ?? '')?.[1]
  if (other === undefined || other === change) return { head }
  const origin = await storedOrigin({ folder: checkpointFolder(git.gitCommonDir, other) })
  if (origin === undefined) return { head }
  // The branch may have moved since: a new loop begins with what is on it now.
  const { ref } = origin
  return { head: ref === undefined ? origin : { ref, commit: all[ref] ?? origin.commit }, beside: other }
}

export function besideNote(change: string, { head, beside }: StartingPoint): string {
  if (beside === undefined) return ''
  const { ref, commit = '' } = head
  const from = ref === undefined ? '' : `${shortName(ref)} `
  return `this checkout is on ralph/${beside}, where the loop of ${beside} works; ${change} begins at ${from}(${commit.slice(0, 12)}), without what is uncommitted or of that loop here`
}

export async function storeOrigin(store: Store, origin: Head): Promise<void> {
  await writeDurably(file(store), JSON.stringify(origin))
}

export async function storedOrigin(store: Pick<Store, 'folder'>): Promise<Head | undefined> {
  const text = await readIfThere(file(store))
  if (text === undefined) return undefined
  const origin = headOf(JSON.parse(text.toString('utf8')))
  if (origin === undefined) throw new TypeError(`${file(store)} was changed by another program`)
  return origin
}

function file(store: Pick<Store, 'folder'>): string {
  return join(store.folder, 'origin.json')
}
