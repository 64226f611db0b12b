// Turns the work tree as it is into a git tree, without the user's index and without anything that must stay out.
// Long because what git is asked about trees is asked here, and nowhere else.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { beyondFolders, lstatNow, onDisk } from './files.ts'
import type { Git } from '../git.ts'
import type { Author } from '../formats/author.ts'
import { treeChangesNow, treeOfNow, writeCommit, type TreeChange } from '../formats/objects.ts'
import { knownTree, plainEntries, writePlainTree, type Others } from '../formats/plain-tree.ts'
import type { Scan } from './scan.ts'
import { syncLoose } from '../formats/sync.ts'
import { mendNamed, mendTorn } from '../formats/damaged-objects.ts'
import { distrustIn } from './racy-entries.ts'

export interface WrittenTree {
  readonly tree: string
  /** Repositories of their own in the work tree; their files are in the tree as plain files. */
  readonly nested: readonly string[]
  /** Tracked files that are pipes, sockets or devices now. */
  readonly special: readonly string[]
}

/**
 * Brings `index` (a private one) up to the work tree, as `add -A` would, by the one scan that is there already. Objects that are there
 * already may have been written by others, who sync nothing: `any` of them since the last look, or `none`; `named`: only those of this
 * tree count, for nobody made a commit or a ref meanwhile.
 */
export async function writeTree(
  git: Git,
  index: string,
  scan: Scan,
  isExempt: (path: string) => boolean,
  others: Others = 'any',
): Promise<WrittenTree> {
  const isOurs = (path: string): boolean => !isExempt(path)
  // A pipe or a device in the place of a file: git can only hold that the file is gone.
  const special = scan.changed.filter((path) => isOurs(path) && isSpecial(git, path))
  const deleted = [...scan.deleted, ...special].filter(isOurs)
  const untracked = scan.untracked.filter(isOurs)
  const repositories = untracked.filter((path) => path.endsWith('/'))
  const added = await addedSubmodules(git, repositories)
  const nested = repositories.filter((path) => !added.includes(path.slice(0, -1)))
  const inside = await Promise.all(nested.map((folder) => filesOf(git, folder)))
  const present = [
    ...scan.changed.filter((path) => isOurs(path) && !special.includes(path)),
    ...untracked.filter((path) => !path.endsWith('/')),
    ...added,
    ...inside.flat(),
  ]
  // A path beyond what is now a symbolic link can only be removed by force; the others go along, for an index may be large.
  const isBeyond = beyondFolders(git.worktree)
  const isForced = (path: string): boolean => isBeyond(path) || lstatNow(git.worktree, path) !== undefined
  const forced = present.length > 0 ? deleted.filter(isForced) : deleted
  const gone = present.length > 0 ? deleted.filter((path) => !isForced(path)) : []
  if (others === 'any') await syncLoose(git)
  const startedMs = Date.now()
  const insist = async (paths: readonly string[]): Promise<void> => {
    const wanted = new Set(paths)
    const entries = wanted.size === 0 ? [] : await indexEntries(git, index)
    await mendTorn(
      git,
      entries.filter((entry) => wanted.has(entryPath(entry))),
      startedMs,
    )
  }
  const isPlain = added.length + nested.length === 0 && present.length + deleted.length > 0
  const plain = isPlain ? await writePlainTree(git, index, { present, deleted }, others) : undefined
  if (plain !== undefined) {
    rememberTree(index, plain)
    await insist(scan.staged.filter(isOurs))
    return { tree: plain, nested, special: special.filter(isOurs) }
  }
  if (others === 'named') await syncLoose(git)
  const save = async (): Promise<WrittenTree> => {
    if (forced.length > 0) await updateIndex(git, index, ['--force-remove'], forced)
    distrustIn(index, present)
    if (present.length > 0)
      await updateIndex(git, index, ['--add', '--remove', '--replace'], [...gone, ...present])
    const tree = await treeOfIndex(git, index, present.length)
    await insist([...present, ...scan.staged.filter(isOurs)])
    return { tree, nested, special: special.filter(isOurs) }
  }
  for (;;) {
    try {
      return await save()
    } catch (error) {
      if (!(error instanceof RalphError) || error.code !== 'git_failed') throw error
      if (await mendNamed(git, error, [...present, ...scan.staged.filter(isOurs)])) continue
      throw new RalphError('checkpoint_failed', `the work tree could not be saved: ${error.message}`, {
        hint: error.hint,
        cause: error,
      })
    }
  }
}

async function updateIndex(
  git: Git,
  index: string,
  how: readonly string[],
  paths: readonly string[],
): Promise<void> {
  const update = (settings: readonly string[]): Promise<unknown> =>
    git.run([...settings, 'update-index', ...how, '-z', '--stdin'], { index, input: joined(paths) })
  await update(syncing(paths.length)).catch(async (error: unknown) => {
    // Files beyond `core.bigFileThreshold`: git 2.39 cannot sync them together with others.
    if (!(error instanceof Error) || !/unable to rename temporary file/.test(error.message)) throw error
    await update(oneByOne)
  })
}

const oneByOne = ['-c', 'core.fsyncMethod=fsync']

/** Git gathers many in a folder of its own and syncs them together; for a few that takes longer than one by one. */
function syncing(files: number): readonly string[] {
  return files <= 4 ? oneByOne : []
}

export async function commitTree(
  git: Git,
  tree: string,
  parents: readonly (string | undefined)[],
  message: string,
  author?: Author,
  nowMs = Date.now(),
): Promise<string> {
  const others = parents.filter((parent) => parent !== undefined)
  const written = await writeCommit(git, tree, others, message, { nowMs, author })
  if (written !== undefined) return written
  const options = others.flatMap((parent) => ['-p', parent])
  const when = `@${Math.floor(nowMs / 1000)} +0000`
  const env = {
    ...(author !== undefined && { GIT_AUTHOR_NAME: author.name, GIT_AUTHOR_EMAIL: author.email }),
    GIT_AUTHOR_DATE: when,
    GIT_COMMITTER_DATE: when,
  }
  return await git.line(['commit-tree', tree, ...options], { input: `${message}\n`, env })
}

/** Of a commit or a tree; throws where there is none. */
export async function treeOf(git: Git, hash: string): Promise<string> {
  return treeOfNow(git, hash) ?? (await git.line(['rev-parse', '--verify', `${hash}^{tree}`]))
}

/** The tree that this index holds; `files`: how many of them are new in it. */
export async function treeOfIndex(
  git: Git,
  index: string,
  files = Number.POSITIVE_INFINITY,
): Promise<string> {
  const known = treesOfIndexes.get(indexMark(index))
  if (known !== undefined) return known
  const tree = knownTree(git, index) ?? (await git.line([...syncing(files), 'write-tree'], { index }))
  rememberTree(index, tree)
  return tree
}

function rememberTree(index: string, tree: string): void {
  // Asked again: it has been written into the index that it holds this tree.
  const mark = indexMark(index)
  if (treesOfIndexes.size > 100) treesOfIndexes.clear()
  if (mark !== '') treesOfIndexes.set(mark, tree)
}

/** For work that changes nothing in the index but what it knows of the files: what it holds need not be asked again. */
export async function withSameTree(index: string, work: () => Promise<unknown>): Promise<void> {
  const tree = treesOfIndexes.get(indexMark(index))
  await work()
  const mark = indexMark(index)
  if (tree !== undefined && mark !== '') treesOfIndexes.set(mark, tree)
}

/** As `ls-files -s -v` lists them: `H 100644 <hash> 0\t<path>`. */
export async function indexEntries(git: Git, index = join(git.gitDir, 'index')): Promise<readonly string[]> {
  const mark = indexMark(index)
  if (mark !== '' && listed?.mark === mark) return listed.entries
  const entries = plainEntries(index) ?? (await git.list(['ls-files', '-s', '-v', '-z'], { index }))
  listed = entries.length > 20_000 ? undefined : { mark, entries }
  return entries
}

/** Of the index that was listed last, unless that is large. */
let listed: { readonly mark: string; readonly entries: readonly string[] } | undefined

export function entryPath(entry: string): string {
  return entry.slice(entry.indexOf('\t') + 1)
}

/** By their marks. */
const treesOfIndexes = new Map<string, string>()

/** An index ends with a checksum of all that is in it; empty where it has none (`index.skipHash`). */
export function indexMark(index: string): string {
  let file: number
  try {
    file = openSync(index, 'r')
  } catch {
    return ''
  }
  try {
    const { size } = fstatSync(file)
    const end = Buffer.alloc(32)
    if (size < end.length) return ''
    readSync(file, end, 0, end.length, size - end.length)
    return end.subarray(12).every((byte) => byte === 0) ? '' : `${size} ${end.toString('hex')}`
  } finally {
    closeSync(file)
  }
}

export async function isAncestor(git: Git, older: string, newer: string): Promise<boolean> {
  if (older === newer) return true
  return (await git.run(['merge-base', '--is-ancestor', older, newer], { accept: [1] })).code === 0
}

/** Paths that differ between two trees; a rename is two of them. */
export async function changedPaths(git: Git, from: string, to: string): Promise<string[]> {
  return (await treeChanges(git, from, to)).map(({ path }) => path)
}

/** What differs between two trees; a rename is two of them. */
export async function treeChanges(git: Git, from: string, to: string): Promise<readonly TreeChange[]> {
  if (from === to) return []
  const known = treeChangesNow(git, from, to)
  if (known !== undefined) return known
  const fields = await git.list(['diff-tree', '-r', '-z', '--no-renames', '--raw', from, to])
  return Array.from({ length: fields.length / 2 }, (_, at) =>
    treeChange(fields[at * 2] ?? '', fields[at * 2 + 1] ?? ''),
  )
}

/** Of many pairs, in two processes at most. */
export async function allTreeChanges(
  git: Git,
  pairs: readonly { readonly from: string; readonly to: string }[],
): Promise<readonly (readonly TreeChange[])[]> {
  const known = pairs.map(({ from, to }) => (from === to ? [] : treeChangesNow(git, from, to)))
  const open = pairs.filter((_, at) => known[at] === undefined)
  if (open.length === 0) return known.map((changes) => changes ?? [])
  const names = open.flatMap(({ from, to }) => [from, to]).map((name) => `${name}^{tree}\n`)
  const check = ['cat-file', '--batch-check=%(objectname)']
  const trees = (await git.line(check, { input: Buffer.from(names.join('')) })).split('\n')
  const asked = open.map((_, at) => `${trees[at * 2] ?? ''} ${trees[at * 2 + 1] ?? ''}`)
  const args = ['diff-tree', '--stdin', '-r', '-z', '--no-renames', '--raw']
  const fields = await git.list(args, { input: Buffer.from(asked.map((line) => `${line}\n`).join('')) })
  const found: TreeChange[][] = []
  for (let at = 0; at < fields.length; at += 1) {
    // A line for each pair, whatever ends the entries.
    const lines = (fields[at] ?? '').split('\n')
    for (const line of lines) if (/^[0-9a-f]+ [0-9a-f]+$/.test(line)) found.push([])
    const entry = lines.at(-1) ?? ''
    if (entry.startsWith(':')) found.at(-1)?.push(treeChange(entry, fields[(at += 1)] ?? ''))
  }
  return known.map((changes) => changes ?? found.shift() ?? [])
}

function treeChange(entry: string, path: string): TreeChange {
  const mode = (digits: string): string | undefined => (digits === '000000' ? undefined : digits)
  return { path, from: mode(entry.slice(1, 7)), to: mode(entry.slice(8, 14)) }
}

/** Without a commit: the empty tree. */
export async function orEmpty(git: Git, commit: string | undefined): Promise<string> {
  return commit ?? (await emptyTree(git))
}

export async function emptyTree(git: Git): Promise<string> {
  return await git.line(['mktree'], { input: '' })
}

export function joined(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1')
}

function isSpecial(git: Git, path: string): boolean {
  const stat = lstatNow(git.worktree, path)
  return stat !== undefined && !stat.isFile() && !stat.isSymbolicLink() && !stat.isDirectory()
}

/** Repositories that .gitmodules names, with a commit to point to: without the slash at their end. */
async function addedSubmodules(git: Git, repositories: readonly string[]): Promise<string[]> {
  if (repositories.length === 0 || lstatNow(git.worktree, '.gitmodules')?.isFile() !== true) return []
  const asked = ['config', '-z', '--file', '.gitmodules', '--get-regexp', '^submodule\\..*\\.path$']
  // 128: it is no list of settings any more.
  const paths = (await git.list(asked, { accept: [1, 128] })).map((entry) =>
    entry.slice(entry.indexOf('\n') + 1),
  )
  const known = new Set(paths)
  const added: string[] = []
  for (const path of repositories.map((folder) => folder.slice(0, -1)).filter((each) => known.has(each))) {
    const head = ['--work-tree=.', 'rev-parse', '--verify', '--quiet', 'HEAD']
    const { code } = await git.run(head, { inside: insideOf(git, path), accept: [1, 128] })
    if (code === 0) added.push(path)
  }
  return added
}

function insideOf(git: Git, path: string): string {
  return onDisk(git.worktree, path).toString('utf8')
}

async function filesOf(git: Git, folder: string): Promise<string[]> {
  // Here, whatever its settings say: one that was moved may still name another place.
  const files = await git.list(
    ['--work-tree=.', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'],
    {
      inside: insideOf(git, folder),
    },
  )
  return [...new Set(files)].filter((file) => !file.endsWith('/')).map((file) => `${folder}${file}`)
}
