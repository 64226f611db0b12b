// Where the user stood, in a file beside the journal: it outlasts an archived journal for as long as the branch is there.
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../../files/whole.ts'
import { headOf, type Head } from '../../../core/git-facts.ts'
import type { Store } from '../store.ts'

export async function storeOrigin(store: Store, origin: Head): Promise<void> {
  await writeDurably(file(store), JSON.stringify(origin))
}

export async function storedOrigin(store: Pick<Store, 'folder'>): Promise<Head | undefined> {
  const text = await readIfThere(file(store))
  if (text === undefined) return undefined
  const origin = headOf(JSON.parse(text.toString('utf8')))
  if (origin === undefined) throw new TypeError(`${file(store)} is not what ralph wrote`)
  return origin
}

function file(store: Pick<Store, 'folder'>): string {
  return join(store.folder, 'origin.json')
}
