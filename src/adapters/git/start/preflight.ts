// Refuses, before anything is touched, where a loop could lose something of the user's; warns of what it will take along.
import { firstNames } from '../../../core/first-names.ts'
import { join } from 'node:path'
import { RalphError, type ErrorCode } from '../../../core/error.ts'
import type { Head } from '../../../core/git-facts.ts'
import { shellWord } from '../../../core/shell-word.ts'
import { isWritable } from '../../process/temp.ts'
import { lstatIfThere, lstatNow } from '../tree/files.ts'
import { refuseHiddenEdits } from '../tree/flags.ts'
import { named, shown, type Git, type Repository } from '../git.ts'
import { refuseLocked } from '../tree/unreadable.ts'
import { misfits } from './encodings.ts'
import { operationsInProgress } from './operations.ts'
import { headRef } from '../formats/ref-files.ts'
import { isRefName } from '../formats/loose-refs.ts'
import { aliasOf, readRef, shortName, type Refs } from '../refs/refs.ts'
import { exempt, scanTree, type Scan } from '../tree/scan.ts'
import { readSettings } from '../formats/settings.ts'
import { refuseLockFiles } from '../guard/stale-locks.ts'
import { submoduleAt } from '../submodules/submodule.ts'
import { refuseTaken } from '../refs/branch-in-use.ts'
import { entryPath, indexEntries } from '../tree/tree.ts'

export function refuseName(change: string): void {
  const isPlain = change !== '' && !change.includes('/') && !change.includes('..')
  if (!isPlain || !isRefName(Buffer.from(change).toString('latin1'))) {
    throw new RalphError('bad_name', `"${change}" cannot be the name of a branch (ralph/${change})`, {
      hint: 'Rename the change folder: letters, digits, dashes and single dots are fine.',
    })
  }
}

/** Before the locks: without it there is no journal, no checkpoint, nothing to come back to. */
export function refuseReadOnly({ gitDir, gitCommonDir }: Repository): void {
  const needed = [gitDir, gitCommonDir, join(gitCommonDir, 'objects'), join(gitCommonDir, 'refs')]
  const closed = needed.find((folder) => !isWritable(folder))
  if (closed === undefined) return
  throw new RalphError('disk', `${closed} cannot be written, so nothing can be saved`, {
    hint: `Nothing was touched. Give yourself access: chmod -R u+rwX ${gitCommonDir} (or sudo chown -R "$USER" ${gitCommonDir} if it is another user's)`,
    exitCode: 2,
  })
}

export async function refuseState(git: Git, scan: Scan, change: string): Promise<void> {
  await refuseTakenRefs(git, change)
  await refuseAlias(git, headRef(git))
  const halfDone = operationsInProgress(git.gitDir)
  if (halfDone.length > 0 || scan.unmerged.length > 0) {
    const what =
      halfDone.length > 0 ? `a ${halfDone.join(' and a ')} is in progress` : 'there are unmerged files'
    throw refusal(
      `${what} in ${git.worktree}`,
      `Finish it or abort it first (\`${git.typed} status\` says how).`,
    )
  }
  await refuseLocked(git, scan)
  await refuseHiddenEdits(git)
  const misfit = await misfits(git, scan)
  if (misfit !== '')
    throw refusal(
      `git cannot store files of ${git.worktree} in the encoding that .gitattributes names: ${misfit}`,
      'Save them in that encoding, or name theirs (working-tree-encoding=UTF-16 asks for a byte order mark, UTF-16LE and UTF-16BE for none), or let git ignore them.',
    )
  const entries = await indexEntries(git)
  await refuseLinks(git, entries, scan)
  const gitlinks = entries.filter((entry) => entry.slice(2).startsWith('160000')).map(entryPath)
  for (const path of gitlinks) {
    const repository = fitSubmodule(git, path)
    if (repository === undefined) continue
    const inner = git.into(repository)
    await refuseLockFiles(inner, '')
    await refuseState(inner, await scanTree(inner), change)
  }
}

/** What is written to it would move the other branch, in whatever work tree that is checked out. */
export async function refuseAlias(git: Git, ref: string | undefined): Promise<void> {
  const alias = ref === undefined ? undefined : await aliasOf(git, ref)
  if (ref === undefined || alias === undefined) return
  const target = shortName(alias)
  throw refusal(
    `${shortName(ref)} is another name for ${target} (a symbolic ref)`,
    `Go to the branch itself: \`${git.typed} switch ${shellWord(target)}\`, then the same command again.`,
  )
}

/** The branch that the work goes back to was made another name for one since the start. */
export async function refuseNewAlias(
  git: Git,
  { ref, commit = '' }: Head,
  { code, again }: { readonly code: ErrorCode; readonly again: string },
): Promise<void> {
  const alias = ref === undefined ? undefined : await aliasOf(git, ref)
  if (ref === undefined || alias === undefined) return
  const [name, at] = [shellWord(ref), commit.slice(0, 12)]
  throw new RalphError(
    code,
    `${shortName(ref)}, where the work came from, is only another name for ${shortName(alias)} now (a symbolic ref)`,
    {
      hint: `Nothing was touched. Make it a real branch again: \`git symbolic-ref --delete ${name}${at === '' ? '' : ` && git update-ref ${name} ${at}`}\`, then \`${again}\`.`,
    },
  )
}

/** With `core.symlinks` off git writes a plain file in the place of a link: a revert could not bring it back. */
async function refuseLinks(git: Git, entries: readonly string[], scan: Scan): Promise<void> {
  if ((await readSettings(git)).links) return
  const tracked = entries.filter((entry) => entry.slice(2).startsWith('120000')).map(entryPath)
  const links = [...new Set([...tracked, ...scan.changed, ...scan.untracked])].filter(
    (path) => lstatNow(git.worktree, path)?.isSymbolicLink() === true,
  )
  if (links.length === 0) return
  throw refusal(
    `core.symlinks is off, so git could not bring back what is a symbolic link in ${git.worktree}: ${links.slice(0, 5).map(named).join(', ')}`,
    `Set it: \`git -C ${shellWord(git.worktree)} config core.symlinks true\`.`,
  )
}

/** Undefined where it is not checked out. */
function fitSubmodule(git: Git, path: string): Repository | undefined {
  if (lstatNow(git.worktree, `${path}/.git`) === undefined) return undefined
  if (Buffer.from(shown(path)).toString('latin1') !== path)
    throw unfit(git, path, 'its name is not UTF-8', 'Rename it')
  const submodule = submoduleAt(git, path)
  if (submodule === undefined)
    throw unfit(
      git,
      path,
      'its git directory is missing or lies elsewhere',
      'See `git submodule absorbgitdirs` and `git submodule update --init`',
    )
  refuseReadOnly(submodule.repository)
  return submodule.repository
}

function unfit(git: Git, path: string, why: string, remedy: string): RalphError {
  return refusal(
    `the submodule ${named(path)} of ${git.worktree} cannot be saved and restored: ${why}`,
    `${remedy}, or run with --worktree (submodules stay empty there).`,
  )
}

/** Where ralph keeps attempts and checkpoints there can be no ref of that very name. */
async function refuseTakenRefs(git: Git, change: string): Promise<void> {
  for (const name of ['refs/ralph', `refs/ralph/${change}`]) {
    if ((await readRef(git, name)) === undefined) continue
    throw refusal(
      `there is a ref called ${name}, where ralph keeps its attempts and checkpoints`,
      `Give it another name: \`git update-ref refs/old-ralph ${name} && git update-ref -d ${name}\`.`,
    )
  }
}

/** A ref is a file: `ralph` and `ralph/<change>`, or `ralph/<change>` and `ralph/<change>/x`, cannot both be there. */
export function refuseClash(git: Git, refs: Refs, change: string): void {
  const branch = `refs/heads/ralph/${change}`
  const clash = Object.keys(refs.all).find(
    (name) => name === 'refs/heads/ralph' || name.startsWith(`${branch}/`),
  )
  if (clash !== undefined) {
    const name = clash.replace('refs/heads/', '')
    throw refusal(
      `the branch ${name} is in the way of ralph/${change}`,
      `Rename it: \`git branch -m ${name} <other name>\`.`,
    )
  }
  refuseTaken(git, branch, {
    code: 'repository_state',
    safe: 'Nothing was touched.',
    next: 'type the command again; or run ralph there',
  })
}

/** Warnings about what the first checkpoint will hold. */
export async function doubtful(git: Git, scan: Scan, globs: readonly string[]): Promise<string[]> {
  const isExempt = exempt(globs, [])
  const files = scan.untracked.filter((path) => !isExempt(path))
  const huge: string[] = []
  for (const path of files) {
    const size = (await lstatIfThere(git.worktree, path.replace(/\/$/, '')))?.size ?? 0
    if (size > hugeBytes) huge.push(`${named(path)} (${Math.round(Number(size) / 1e6)} MB)`)
  }
  const secret = files.filter((path) => looksSecret(path.split('/').at(-1) ?? '')).map(named)
  const nested = files.filter((path) => path.endsWith('/')).map(named)
  return [
    ...listed(
      'huge untracked files will be in the first checkpoint; add them to .gitignore to leave them out',
      huge,
    ),
    ...listed(
      'untracked files that look like secrets will be in the first checkpoint; add them to .gitignore first',
      secret,
    ),
    ...listed('repositories inside this one are not saved, restored or cleaned', nested),
  ]
}

function listed(what: string, paths: readonly string[], most = 20): string[] {
  if (paths.length === 0) return []
  return [`${what}: ${firstNames(paths, most)}`]
}

function refusal(message: string, hint: string): RalphError {
  return new RalphError('repository_state', message, { hint: `${hint} Nothing was touched.` })
}

const hugeBytes = 50e6

export function looksSecret(name: string): boolean {
  if (/\.(example|sample|template|dist)$/i.test(name)) return false
  return /^(\.env(\..*)?|\.netrc|\.npmrc|\.pypirc|id_(rsa|dsa|ecdsa|ed25519)|credentials(\.json)?|.*\.(pem|key|p12|pfx|keystore)|.*secrets?\.(json|ya?ml|txt|env))$/is.test(
    name,
  )
}
