// Where the user stood, in a file beside the journal: it outlasts an archived journal for as long as the branch is there.
import { join } from 'node:path'
import { writeDurably } from './files.ts'
import { originSchema, type Origin } from './memory.ts'
import { readIfThere } from './repository.ts'
import type { Room } from './room.ts'

export async function storeOrigin(room: Room, origin: Origin): Promise<void> {
  await writeDurably(file(room), JSON.stringify(origin))
}

export async function storedOrigin(room: Pick<Room, 'folder'>): Promise<Origin | undefined> {
  const text = await readIfThere(file(room))
  return text === undefined ? undefined : originSchema.parse(JSON.parse(text.toString('utf8')))
}

function file(room: Pick<Room, 'folder'>): string {
  return join(room.folder, 'origin.json')
}
