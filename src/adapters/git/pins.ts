// Refs of ralph's own on everything that others point to, so that an agent that deletes and prunes destroys nothing.
import type { Git } from './git.ts'
import type { Refs } from './refs.ts'
import type { Room } from './room.ts'
import { stashEntries } from './stash-list.ts'

/** Returns what is pinned now; costs nothing when that was pinned already. */
export async function pinTips(
  room: Room,
  refs: Refs['all'],
  stashLog: string,
  pinned: readonly string[],
): Promise<string[]> {
  const foreign = Object.entries(refs).filter(([name]) => name !== `refs/heads/ralph/${room.change}`)
  const tips = [...foreign.map(([, hash]) => hash), ...stashEntries(stashLog).map(({ hash }) => hash)]
  const wanted = [...new Set(tips)].sort()
  if (wanted.join() === pinned.join()) return wanted
  const there = await readPins(room)
  const isThere = new Set(there)
  const isWanted = new Set(wanted)
  const missing = await missingObjects(room.git, wanted)
  await writePins(room, [
    ...wanted
      .filter((hash) => !isThere.has(hash) && !missing.has(hash))
      .map((hash) => `create ${room.refs}/pins/${hash} ${hash}`),
    ...there.filter((hash) => !isWanted.has(hash)).map((hash) => `delete ${room.refs}/pins/${hash}`),
  ])
  return wanted
}

export async function unpin(room: Room): Promise<void> {
  const there = await readPins(room)
  await writePins(
    room,
    there.map((hash) => `delete ${room.refs}/pins/${hash}`),
  )
}

/** Which of these the repository does not hold (any more): a ref to one of them would fail. */
export async function missingObjects(git: Git, hashes: readonly string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set()
  const out = await git.line(['cat-file', '--batch-check=%(objectname)'], { input: `${hashes.join('\n')}\n` })
  const lost = out.split('\n').filter((line) => line.endsWith(' missing'))
  return new Set(lost.map((line) => line.split(' ')[0] ?? ''))
}

async function readPins(room: Room): Promise<string[]> {
  const out = await room.git.line(['for-each-ref', '--format=%(refname)', `${room.refs}/pins`])
  return out
    .split('\n')
    .filter((name) => name !== '')
    .map((name) => name.slice(`${room.refs}/pins/`.length))
}

/** Without a log, and not synced one by one: there may be thousands of tags, and they guard against a prune, not a power cut. */
async function writePins(room: Room, commands: readonly string[]): Promise<void> {
  if (commands.length === 0) return
  await room.git.run(['-c', 'core.fsync=none', 'update-ref', '--stdin'], {
    input: `${commands.join('\n')}\n`,
  })
}
