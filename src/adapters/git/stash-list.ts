// The stash list: entries by hash and exact name, and the whole list put back when an agent has changed it.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from './files.ts'
import { shown, type Git } from './git.ts'
import { moveRefs } from './refs.ts'
import { readIfThere } from './repository.ts'

export interface StashEntry {
  readonly hash: string
  readonly message: string
}

/** The list is the log of refs/stash, oldest entry first; empty when there is none. */
export async function readStashLog(git: Git): Promise<string> {
  return (await readIfThere(stashLog(git)))?.toString('latin1') ?? ''
}

/** Newest first, as `git stash list` counts. */
export function stashEntries(log: string): StashEntry[] {
  const lines = log.split('\n').filter((line) => line !== '')
  return lines
    .map((line) => ({ hash: line.split(' ')[1] ?? '', message: shown(line.split('\t').slice(1).join('\t')) }))
    .reverse()
}

/** git has no command for this: the ref first, then its log as it was, byte for byte, but for what is lost. */
export async function putBackStashes(
  git: Git,
  whole: string,
  now: string | undefined,
  isLost: (hash: string) => boolean,
): Promise<void> {
  const lines = whole.split('\n').filter((line) => !isLost(line.split(' ')[1] ?? ''))
  const log = lines.join('\n')
  const tip = stashEntries(log)[0]?.hash
  if (tip === undefined) {
    if (now !== undefined) await moveRefs(git, 'put back', ['delete refs/stash'])
    await rm(stashLog(git), { force: true })
    return
  }
  if (now !== tip) await moveRefs(git, 'put back', [`update refs/stash ${tip}`])
  await writeDurably(stashLog(git), Buffer.from(log, 'latin1'))
}

export async function storeStash(git: Git, commit: string, name: string): Promise<void> {
  await git.run(['stash', 'store', '--quiet', '-m', name, commit])
}

/** Only entries with exactly these names; each is looked up again by hash, because indexes shift. */
export async function dropStashes(git: Git, isOurs: (name: string) => boolean): Promise<number> {
  let dropped = 0
  for (;;) {
    const entries = stashEntries(await readStashLog(git))
    const at = entries.findIndex((entry) => isOurs(entry.message))
    if (at < 0) return dropped
    await git.run(['stash', 'drop', '--quiet', `stash@{${at}}`])
    dropped += 1
  }
}

function stashLog(git: Git): string {
  return join(git.gitCommonDir, 'logs', 'refs', 'stash')
}
