// What makes git take history or objects from elsewhere: `.git/shallow` and `objects/info/alternates`, after an attempt. Never removed blindly.
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { rm } from '../../files/now.ts'
import { ifThereNow, writeDurably } from '../../files/whole.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { contentsOf } from '../tree/exact-bytes.ts'
import type { Git } from '../git.ts'
import { missingObjects } from '../refs/pins.ts'

export const shallowFile = 'shallow'
export const alternatesFile = 'objects/info/alternates'

/** `old`: what it was before. Says what there is to say. */
export async function putBackBorrowed(
  git: Git,
  name: string,
  n: number,
  old: Buffer | undefined,
): Promise<string[]> {
  const place = join(git.gitCommonDir, name)
  const bytes = ifThereNow(() => readFileSync(place))
  const [before, now] = [linesOf(old), linesOf(bytes)]
  const fresh = now.filter((line) => !before.includes(line))
  return name === shallowFile
    ? await putBackShallow(git, place, n, { now, fresh })
    : await putBackAlternates(git, place, n, { before, now, fresh })
}

/** Only where all is there that it cuts off; a history that was made longer stays so. */
async function putBackShallow(
  git: Git,
  place: string,
  n: number,
  { now, fresh }: { readonly now: readonly string[]; readonly fresh: readonly string[] },
): Promise<string[]> {
  if (fresh.length === 0) return []
  const commits = await contentsOf(git, fresh)
  const parentsOf = (hash: string): string[] => {
    const head = commits.get(hash)?.toString('latin1').split('\n\n', 1)[0] ?? ''
    return [...head.matchAll(/^parent ([0-9a-f]+)$/gm)].map(([, parent = '']) => parent)
  }
  const missing = await missingObjects(git, fresh.flatMap(parentsOf))
  const cut = fresh.filter((hash) => parentsOf(hash).some((parent) => missing.has(parent)))
  const stays = now.filter((hash) => !fresh.includes(hash) || cut.includes(hash))
  if (stays.length === 0) await rm(place, { force: true })
  else if (stays.length < now.length)
    await writeDurably(place, Buffer.from(stays.map((hash) => `${hash}\n`).join('')))
  const what = `the history was cut short while #${n} ran (.git/shallow, as \`git fetch --depth\` writes it)`
  return [
    ...(cut.length < fresh.length ? [`${what}; it is whole again`] : []),
    ...(cut.length > 0
      ? [
          `${what}; of ${cut.length === 1 ? 'one commit' : `${cut.length} commits`} that were fetched what came before is not here, so it stays; to have it: git fetch --unshallow`,
        ]
      : []),
  ]
}

/** A new place may hold the only copy of an object by now; one that is gone may, too. */
async function putBackAlternates(
  git: Git,
  place: string,
  n: number,
  lists: {
    readonly before: readonly string[]
    readonly now: readonly string[]
    readonly fresh: readonly string[]
  },
): Promise<string[]> {
  const { before, now, fresh } = lists
  const objects = join(git.gitCommonDir, 'objects')
  const gone = before.filter((line) => !now.includes(line) && existsSync(resolve(objects, line)))
  if (gone.length > 0)
    await writeDurably(place, Buffer.from([...now, ...gone].map((line) => `${line}\n`).join(''), 'latin1'))
  const whole =
    before.length === 0
      ? `git repack -ad && rm ${shellWord(place)}`
      : `git repack -ad, then take the line out of ${place}`
  return [
    ...(gone.length > 0
      ? [`.git/${alternatesFile} had lost ${gone.join(', ')} while #${n} ran; it is back`]
      : []),
    ...(fresh.length > 0
      ? [
          `while #${n} ran this repository began to borrow objects from ${fresh.join(', ')} (.git/${alternatesFile}); that stays, as some may be only there: keep that folder until the repository has them all:  ${whole}`,
        ]
      : []),
  ]
}

function linesOf(bytes: Buffer | undefined): string[] {
  return (bytes?.toString('latin1') ?? '').split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}
