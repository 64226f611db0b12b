// The scratch work tree in which a merge becomes a commit and is gated: made, filled, looked at and cleared away.
import { existsSync, lstatSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import type { Author } from '../formats/author.ts'
import type { Git } from '../git.ts'
import { mainFolder } from '../refs/branch-in-use.ts'
import { refuseMountsIn } from '../revert/mounted.ts'
import { findTree } from '../start/worktrees.ts'
import { commitTree, joined } from '../tree/tree.ts'

/** A work tree for one landing after the other, beside the checkout: tools leave folders in `.git` alone. */
export async function openScratchTree(git: Git, commit: string): Promise<Git> {
  const dir = scratchDir(git)
  await closeScratchTree(git)
  if (lstatSync(dir, { throwIfNoEntry: false }) !== undefined) {
    throw new RalphError('repository_state', `${dir} is in the way: ralph tests merges there.`, {
      hint: 'What has landed stays, and so do the loops. Move that away, then: ralph up',
    })
  }
  // Before it is made: half of it is ralph's own, too.
  await mkdir(dirname(markOf(git)), { recursive: true })
  await writeFile(markOf(git), dir)
  // Twice by force: git keeps one that was killed while it was made locked.
  await git.run([...whole, 'worktree', 'add', '--quiet', '--force', '--force', '--detach', dir, commit])
  const tree = await findTree(git, dir)
  if (tree === undefined) throw new Error(`git made no work tree at ${dir}`)
  return git.at(tree)
}

function scratchDir({ gitCommonDir }: Git): string {
  const main = mainFolder(gitCommonDir)
  // No change is called so: its own work tree has another name.
  return join(dirname(main), `${basename(main)}-ralph--landing`)
}

/** A user's sparse checkout would hide from the gates what lands. */
const whole = ['-c', 'core.sparseCheckout=false']

/** Only one that ralph has made: everything in it is in the object store, or was made by a gate. */
export async function closeScratchTree(git: Git): Promise<void> {
  const dir = scratchDir(git)
  const made = existsSync(markOf(git)) ? await readFile(markOf(git), 'utf8') : ''
  if (made === dir) {
    refuseMountsIn(dir)
    await rm(dir, { recursive: true, force: true, maxRetries: 3 })
    // Its own record alone: `worktree prune` would take those of the user's that are moved away or not mounted just now, with all that is staged there.
    await git.run(['worktree', 'remove', '--force', '--force', dir], { accept: [128] })
    await rm(markOf(git), { force: true })
  }
}

function markOf({ gitCommonDir }: Git): string {
  return join(gitCommonDir, 'ralph', 'queue', 'landing-tree')
}

/** All that is in the scratch tree now, as one commit on the base; `tip` too is its parent where history is to be kept. */
export async function commitScratch(
  scratch: Git,
  parents: readonly string[],
  message: string,
  author: Author | undefined,
  {
    folders,
    isSetUp,
  }: {
    /** Of these everything lands, ignored or not. */
    readonly folders: readonly string[]
    readonly isSetUp: (path: string) => boolean
  },
): Promise<string> {
  await scratch.run([...whole, 'add', '--update', '--', '.'])
  const others = ['ls-files', '-z', '--others', '--', ...folders]
  const more = folders.length === 0 ? [] : await scratch.list(others)
  const paths = [...(await newPaths(scratch)).filter((path) => !isSetUp(path)), ...more]
  if (paths.length > 0)
    await scratch.run(['update-index', '--add', '-z', '--stdin'], { input: joined(paths) })
  const commit = await commitTree(scratch, await scratch.line(['write-tree']), parents, message, author)
  await scratch.run(['update-ref', '--no-deref', 'HEAD', commit])
  return commit
}

/** Into the scratch tree; `base` has these paths as it has them, without markers. */
export async function enterTree(
  scratch: Git,
  tree: string,
  side?: { readonly base: string; readonly paths: readonly string[] },
): Promise<void> {
  await scratch.run([...whole, 'read-tree', '--reset', '-u', tree])
  if (side !== undefined && side.paths.length > 0)
    await scratch.run([
      'restore',
      '--quiet',
      `--source=${side.base}`,
      '--staged',
      '--worktree',
      '--',
      ...side.paths,
    ])
}

/** The tree with what was done to the wanted files since `before`; all else that was done is undone. */
export async function takeOnly(
  scratch: Git,
  before: string,
  isWanted: (path: string) => boolean,
): Promise<string> {
  await scratch.run(['read-tree', '--reset', before])
  const changed = await scratch.list([
    ...whole,
    'ls-files',
    '-z',
    '--modified',
    '--deleted',
    '--others',
    '--exclude-standard',
  ])
  const wanted = [...new Set(changed)].filter(isWanted)
  if (wanted.length > 0) await scratch.run(['add', '--all', '--', ...wanted])
  const tree = await scratch.line(['write-tree'])
  await scratch.run([...whole, 'read-tree', '--reset', '-u', tree])
  await scratch.run(['clean', '--quiet', '-ffd'])
  return tree
}

/** What is in the scratch tree besides its commit: files that a gate changed or left; by an index of its own, in which nothing is hidden. */
export async function strayPaths(
  scratch: Git,
  commit: string,
  isSetUp: (path: string) => boolean,
): Promise<readonly string[]> {
  const index = join(scratch.gitDir, 'stray-index')
  await scratch.run(['read-tree', commit], { index })
  const args = [
    ...whole,
    '-c',
    'core.fileMode=true',
    'status',
    '--porcelain',
    '-z',
    '--no-renames',
    '--untracked-files=no',
  ]
  const entries = await scratch.list(args, { index })
  const others = (await newPaths(scratch, index)).filter((path) => !isSetUp(path))
  return [...entries.map((entry) => entry.slice(3)), ...others]
}

/** Which files the set-up has made that only the user's own settings ignore: gates need them, and they never land. */
export async function setUpPaths(scratch: Git): Promise<(path: string) => boolean> {
  const made = await scratch.list([
    'ls-files',
    '-z',
    '--others',
    '--directory',
    '--exclude-per-directory=.gitignore',
  ])
  return (path) => made.some((each) => path === each || (each.endsWith('/') && path.startsWith(each)))
}

/** What only the user's own settings ignore (`info/exclude`, a file for all repositories) is ignored for nobody else: only .gitignore counts. */
async function newPaths(scratch: Git, index?: string): Promise<readonly string[]> {
  const args = ['ls-files', '-z', '--others', '--exclude-per-directory=.gitignore']
  return await scratch.list(args, index === undefined ? {} : { index })
}

/**
 * Exactly its commit again, without what git ignores too: a candidate is gated on nothing that another one left. On no branch first: where a
 * gate or a set-up has put HEAD on one, the reset would move that, whoever stands on it.
 */
export async function resetScratch(scratch: Git, commit: string): Promise<void> {
  await scratch.run(['update-ref', '--no-deref', 'HEAD', commit])
  await scratch.run([...whole, 'reset', '--quiet', '--hard', commit])
  await scratch.run(['clean', '--quiet', '-ffd'])
}
