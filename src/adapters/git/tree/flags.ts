// `assume-unchanged` and `skip-worktree` hide a file from git's looks: ralph's own indexes have no such flag, and what the user's hide is looked for.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { rm } from 'node:fs/promises'
import { RalphError } from '../../../core/error.ts'
import { ifThereNow } from '../../files/whole.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { lstatNow } from './files.ts'
import { named, shown, type Git } from '../git.ts'
import { parseIndex } from '../formats/index-bytes.ts'
import { copyIndex, realIndex } from '../formats/index-file.ts'
import { borrowFile, giveBack } from '../formats/large-buffers.ts'
import { allSettings, readSettings } from '../formats/settings.ts'
import { entryPath, indexEntries, indexMark, joined } from './tree.ts'
import { distrustIn } from './racy-entries.ts'

/**
 * Of every entry, or `only` of these. Not `skip-worktree` where it says what is so, that there is no file, nor in a sparse checkout:
 * there git sees through it by itself.
 */
export async function dropFlags(git: Git, index: string, only?: readonly string[]): Promise<void> {
  if (!(await mayHaveFlags(git, index))) return
  const wanted = only === undefined ? undefined : new Set(only)
  const entries = (await indexEntries(git, index)).filter(
    (entry) => isFlagged(entry) && wanted?.has(entryPath(entry)) !== false,
  )
  const isSparse = entries.some(isSkipped) && (await readSettings(git)).isSparse
  const drop = async (flag: string, flagged: readonly string[]): Promise<void> => {
    if (flagged.length === 0) return
    const input = joined(flagged.map(entryPath))
    await git.run(['update-index', `--no-${flag}`, '-z', '--stdin'], { index, input })
  }
  await drop('assume-unchanged', entries.filter(isAssumed))
  const isThere = (entry: string): boolean => lstatNow(git.worktree, entryPath(entry)) !== undefined
  await drop('skip-worktree', isSparse ? [] : entries.filter((entry) => isSkipped(entry) && isThere(entry)))
}

/** Files that the repository's own index calls unchanged, or absent, and that are not; of all, or of `among`. */
export async function hiddenEdits(git: Git, among?: ReadonlySet<string>): Promise<string[]> {
  if (!(await mayHaveFlags(git, realIndex(git)))) return []
  const entries = (await indexEntries(git)).filter(
    (entry) => isFlagged(entry) && among?.has(entryPath(entry)) !== false,
  )
  if (entries.length === 0) return []
  const isNotThere = new Set(entries.filter(isSkipped).map(entryPath))
  // A copy of the index without the flags tells whether the files behind them were edited.
  const index = join(git.gitDir, `ralph-flags-${randomUUID()}`)
  try {
    await copyIndex(git, realIndex(git), index)
    const input = joined(entries.map(entryPath))
    await git.run(['update-index', '--no-assume-unchanged', '-z', '--stdin'], { index, input })
    await git.run(['update-index', '--no-skip-worktree', '-z', '--stdin'], { index, input })
    distrustIn(index, entries.map(entryPath))
    // Else a file that was only written again, with the same bytes, counts as changed.
    await git.run(['update-index', '-q', '--refresh'], { index, accept: [1] })
    const wanted = new Set(entries.map(entryPath))
    const changed = await git.list(['diff-files', '-z', '--name-only'], { index })
    return [...new Set(changed)].filter(
      (path) => wanted.has(path) && !(isNotThere.has(path) && lstatNow(git.worktree, path) === undefined),
    )
  } finally {
    await rm(index, { force: true })
  }
}

/** Files that the repository's own index leaves out of the work tree, as a sparse checkout does, and `other` does not. */
export async function leftOutSince(git: Git, other: string): Promise<string[]> {
  if (!(await mayHaveFlags(git, realIndex(git)))) return []
  const absent = (entries: readonly string[]): string[] =>
    entries
      .filter(isSkipped)
      .map(entryPath)
      .filter((path) => lstatNow(git.worktree, path) === undefined)
  const now = absent(await indexEntries(git))
  const before = new Set(now.length === 0 ? [] : absent(await indexEntries(git, other)))
  return now.filter((path) => !before.has(path))
}

/** At a start and a resume: nobody could tell them from an agent's, and git would not save them. */
export async function refuseHiddenEdits(git: Git): Promise<void> {
  const edited = await hiddenEdits(git)
  if (edited.length === 0) return
  throw new RalphError(
    'repository_state',
    `edits hidden by assume-unchanged or skip-worktree would be lost: ${edited.map(named).join(', ')}`,
    { hint: `Show them to git: \`${showCommand(edited)}\`, then commit or undo them. Nothing was touched.` },
  )
}

/** What makes git see these again, in the folder of the work tree or from anywhere. */
export function showCommand(paths: readonly string[], git = 'git'): string {
  const words = paths.map((path) => shellWord(shown(path))).join(' ')
  return ['--no-assume-unchanged', '--no-skip-worktree']
    .map((flag) => `${git} update-index ${flag} -- ${words}`)
    .join(' && ')
}

function isFlagged(entry: string): boolean {
  return isAssumed(entry) || isSkipped(entry)
}

function isAssumed(entry: string): boolean {
  return /^[a-z]/.test(entry)
}

function isSkipped(entry: string): boolean {
  return /^[Ss]/.test(entry)
}

/** By the bytes of the index, so that the usual one costs no process; true where only git can tell. */
async function mayHaveFlags(git: Git, index: string): Promise<boolean> {
  const mark = indexMark(index)
  if (mark !== '' && mark === flagless) return false
  const may = await mayBeFlagged(git, index)
  if (!may && mark === indexMark(index)) flagless = mark
  return may
}

/** The index without any that was looked at last: copies of a large one are asked many times. */
let flagless = ''

async function mayBeFlagged(git: Git, index: string): Promise<boolean> {
  const bytes = ifThereNow(() => borrowFile(index))
  if (bytes === undefined) return false
  try {
    // One that is plain has no flag at all.
    return parseIndex(bytes) === undefined && (await mayHold(git, bytes))
  } finally {
    giveBack(bytes)
  }
}

async function mayHold(git: Git, bytes: Buffer): Promise<boolean> {
  const settings = await allSettings(git)
  const isLong = settings.some(({ key, value }) => key === 'extensions.objectformat' && value !== 'sha1')
  const version = bytes.length < 12 ? 0 : bytes.readUInt32BE(4)
  // The fourth version shortens names.
  if (isLong || bytes.toString('latin1', 0, 4) !== 'DIRC' || (version !== 2 && version !== 3)) return true
  let at = 12
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    if (at + 64 > bytes.length) return true
    const flags = bytes.readUInt16BE(at + 60)
    const isExtended = (flags & 0x4000) !== 0
    const isSkippedHere = isExtended && (bytes.readUInt16BE(at + 62) & 0x4000) !== 0
    if ((flags & 0x8000) !== 0 || isSkippedHere) return true
    const name = at + (isExtended ? 64 : 62)
    const end = (flags & 0xfff) < 0xfff ? name + (flags & 0xfff) : bytes.indexOf(0, name)
    // Up to the next multiple of eight, with at least one zero.
    at += (end - at + 8) & ~7
  }
  // A split one has most of its entries elsewhere.
  for (; at + 8 <= bytes.length - 20; at += 8 + bytes.readUInt32BE(at + 4))
    if (/^(link|sdir)$/.test(bytes.toString('latin1', at, at + 4))) return true
  return false
}
