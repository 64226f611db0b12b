// Where the user stood, in a file beside the journal: it outlasts an archived journal for as long as the branch is there.
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../files/whole.ts'
import { isOrigin, type Origin } from '../../core/git-memory.ts'
import type { Store } from './store.ts'

export async function storeOrigin(store: Store, origin: Origin): Promise<void> {
  await writeDurably(file(store), JSON.stringify(origin))
}

export async function storedOrigin(store: Pick<Store, 'folder'>): Promise<Origin | undefined> {
  const text = await readIfThere(file(store))
  if (text === undefined) return undefined
  const origin: unknown = JSON.parse(text.toString('utf8'))
  if (!isOrigin(origin)) throw new TypeError(`${file(store)} is not what ralph wrote`)
  return origin
}

function file(store: Pick<Store, 'folder'>): string {
  return join(store.folder, 'origin.json')
}
