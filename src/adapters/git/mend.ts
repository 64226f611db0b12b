// Makes a repository usable again that an agent has broken: its permissions, HEAD, and the settings without which git finds no work tree.
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { writeDurably } from './files.ts'
import { openRepository } from './open.ts'
import { readIfThere } from './repository.ts'
import { timeName, type Room } from './room.ts'
import { readSettings } from './settings.ts'
import { configFile, type Snapshot } from './snapshot.ts'

/** Before any git command after an attempt. Says what it did. */
export async function mendRepository(room: Room, snapshot: Snapshot): Promise<string[]> {
  openRepository(room.git)
  return [...(await mendHead(room, snapshot)), ...(await mendConfig(room, snapshot))]
}

async function mendHead({ git }: Room, { head }: Snapshot): Promise<string[]> {
  const file = join(git.gitDir, 'HEAD')
  const text = (await readIfThere(file))?.toString('utf8') ?? ''
  if (/^(ref: refs\/\S+|[0-9a-f]{40,64})\s*$/.test(text)) return []
  await writeDurably(file, head.ref === '' ? `${head.commit}\n` : `ref: ${head.ref}\n`)
  return ['the agent broke HEAD; it is back']
}

/** Other settings stay as the agent left them. */
async function mendConfig(room: Room, { config, place }: Snapshot): Promise<string[]> {
  const { git } = room
  const now = (await readIfThere(configFile(git)))?.toString('latin1')
  if (config === undefined || now === config) return []
  try {
    if ((await readSettings(git)).place === place) return []
  } catch (error) {
    if (!(error instanceof RalphError) || error.code !== 'git_failed') throw error
  }
  const aside = join(room.folder, `config-${timeName(room)}`)
  if (now !== undefined) await writeDurably(aside, Buffer.from(now, 'latin1'))
  await writeDurably(configFile(git), Buffer.from(config, 'latin1'))
  return [
    `the agent's changes to .git/config left no usable repository; it is as before, its version is ${aside}`,
  ]
}
