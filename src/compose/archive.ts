// The runs of a change before this one: each a folder with its journal and transcripts, out of the way but there.
import { safeToType } from '../adapters/git/landing/safe-to-type.ts'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from '../adapters/files/whole.ts'
import { archiveAttempts } from '../adapters/git/attempt/attempts.ts'
import { shown } from '../adapters/git/git.ts'
import { leftInArchive } from '../adapters/git/attempt/lost-files.ts'
import { isAncestor } from '../adapters/git/tree/tree.ts'
import type { PreflightReport } from '../ports.ts'
import { archivingName } from './archiving.ts'
import { earlierRuns, pastState } from './earlier.ts'
import { isKnown, pathsOf, wholeRun } from './site.ts'
import type { KnownRun, Site } from './site.ts'

/** The earlier run moves into the archive, whole; the learnings stay. Resolves with its name there, empty where there is none. */
export async function archiveRun(site: Site, run: KnownRun): Promise<string> {
  if (!isKnown(run)) return ''
  const began = run.state.startedAt ?? site.clock.stamp()
  const time = freeName(run.paths.archive, began.replaceAll(':', ''))
  const to = join(run.paths.archive, time)
  await mkdir(to, { recursive: true, mode: 0o700 })
  await writeDurably(run.paths.archiving, time, { rights: { mode: 0o600 } })
  await moveRun(run.paths.root, to)
  return time
}

/** With its lock held: a run that was put away goes for good once the next one has its first record; where that never came, it is back. */
export async function settleArchiving(site: Site, change: string): Promise<void> {
  const paths = pathsOf(site, change)
  const name = archivingName(paths)
  if (name === undefined) return
  const folder = join(paths.archive, name)
  const isBegun = existsSync(join(folder, 'journal.ndjson')) && isKnown(await wholeRun(site, change))
  // Until then its attempts have the names that it tells of.
  if (isBegun) await archiveAttempts(site.git, change, name)
  else await moveRun(folder, paths.root)
  if (!isBegun) await rm(folder, { recursive: true, force: true })
  await rm(paths.archiving, { force: true })
}

const staying = new Set(['archive', 'archiving', 'learnings.md', 'lock.json'])

async function moveRun(from: string, to: string): Promise<void> {
  // Without its journal a run is not known any more: all else goes before it, but for the talk, which whoever follows looks for where the journal is.
  const last = ['journal.ndjson', 'talk']
  const names = await readdir(from)
  for (const name of names.toSorted((a, b) => last.indexOf(a) - last.indexOf(b))) {
    if (staying.has(name) || name.startsWith('lock.json')) continue
    // Of a run that never began.
    await rm(join(to, name), { recursive: true, force: true })
    await rename(join(from, name), join(to, name))
  }
}

/** For `--fresh`: what became of the earlier run, and where the new one begins; that is where the user stands. */
export async function begunAnew(
  { git }: Site,
  { change, state }: Pick<KnownRun, 'change' | 'state'>,
  archived: string,
  { originalBranch }: Pick<PreflightReport, 'originalBranch'>,
): Promise<string[]> {
  const asked = await git.run(['rev-parse', '--abbrev-ref', 'HEAD'], { accept: [128] })
  const commit = await git.run(['rev-parse', '--short', 'HEAD'], { accept: [128] })
  const place = shown(asked.out.trim())
  const isOn = place === `ralph/${change}`
  const other = isOn
    ? `; to begin at ${originalBranch} instead: ${await safeToType(git, `git switch ${originalBranch}`)} && ralph loop ${change} --fresh`
    : ''
  // With stashes, and after a cleanup, there was no branch of its own left.
  const { checkpoint, cleaned, initial } = state.git
  const isApart = cleaned === undefined && checkpoint !== initial && state.branch !== state.originalBranch
  const isHere = async (saved: string): Promise<boolean> =>
    commit.code === 0 && (await isAncestor(git, saved, 'HEAD'))
  const without =
    isApart && checkpoint !== undefined && !(await isHere(checkpoint))
      ? `, without the commits of the earlier run, which stay kept: git log ${checkpoint.slice(0, 12)}`
      : ''
  // A cleanup has brought them; with a work tree of its own they never left the user's checkout.
  const isBack = state.git.cleaned !== undefined || state.home !== undefined
  const left = await leftInArchive(git, state.git, isBack)
  const named = [
    ...left.before.map((file) => ({ ...file, was: 'was yours, not committed, when the earlier run began' })),
    ...left.beside.map((file) => ({ ...file, was: 'was edited while the earlier run was there' })),
  ]
  const last = left.beside.length > 0 ? state.git.checkpoint : state.git.initial
  return [
    `the earlier run is archived (ralph attempts ${change} --all). This one begins where you stand, ${place === 'HEAD' ? '' : `${place} at `}${commit.out.trim()}${isOn ? ', with the work of the earlier run' : ''}${without}${other}`,
    ...named
      .slice(0, 10)
      .map(
        ({ path, restore, was }) =>
          `${path} ${was}; it is only in the archive now; to get it back: ${restore}`,
      ),
    ...(named.length > 10
      ? [`${named.length - 10} more such files are in the commit ${last ?? ''} alone`]
      : []),
  ]
}

/** A start that was cut off, maybe before it had said a word: what it would have said of the run that it put away. */
export async function begunAgain(
  site: Site,
  run: KnownRun,
  preflight: Pick<PreflightReport, 'originalBranch'>,
): Promise<string[]> {
  const { checkpoint, cleaned } = run.state.git
  if (checkpoint !== undefined || cleaned !== undefined) return []
  const last = (await earlierRuns(site, run)).at(-1)
  if (last === undefined) return []
  const state = await pastState(run, last)
  return begunAnew(site, { change: run.change, state }, last.name, preflight)
}

/** Two short runs may begin in the same second: the second must not take the first one's place. */
function freeName(archive: string, time: string): string {
  let name = time
  for (let i = 2; existsSync(join(archive, name, 'journal.ndjson')); i++) name = `${time}-${i}`
  return name
}
