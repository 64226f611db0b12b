// Where the user stood, in a file beside the journal: it outlasts an archived journal for as long as the branch is there.
import { join } from 'node:path'
import { writeDurably } from './files.ts'
import { originSchema, type Origin } from './memory.ts'
import { readIfThere } from './repository.ts'
import type { Store } from './store.ts'

export async function storeOrigin(store: Store, origin: Origin): Promise<void> {
  await writeDurably(file(store), JSON.stringify(origin))
}

export async function storedOrigin(store: Pick<Store, 'folder'>): Promise<Origin | undefined> {
  const text = await readIfThere(file(store))
  return text === undefined ? undefined : originSchema.parse(JSON.parse(text.toString('utf8')))
}

function file(store: Pick<Store, 'folder'>): string {
  return join(store.folder, 'origin.json')
}
