// Puts the work of a change on a branch without touching anybody's checkout: merged among the objects, gated in a scratch work tree, moved
// only where nobody else has moved it.
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { ifThereNow } from '../../files/whole.ts'
import type { Author } from '../formats/author.ts'
import { shown, type Git } from '../git.ts'
import { mainFolder } from '../refs/branch-in-use.ts'
import { moveRefs, readRef, refsUnder, shortName } from '../refs/refs.ts'
import { findTree } from '../start/worktrees.ts'
import { commitTree, isAncestor, joined, treeOf } from '../tree/tree.ts'

/** What has landed on a branch, whether or not the branch itself could follow: nobody has this checked out, and no loop guards it. */
export function landedRef(target: string): string {
  return `refs/ralph-landed/${target}`
}

/** Of a branch that is gone, where its ref was in the way of another branch's: nobody builds on it, and what landed stays known. */
function earlierRefs(target: string): string {
  return `refs/ralph-landed-before/${target.replaceAll('%', '%25').replaceAll('/', '%2F')}`
}

/** Where what landed on a branch can be, now and before. */
async function landedPlaces(git: Git, target: string): Promise<readonly string[]> {
  const before = Object.keys(await refsUnder(git, [earlierRefs(target)]))
  return [landedRef(target), `refs/heads/${target}`, ...before]
}

/** `a` where `a/b` is to be made, and the other way round: git has no such two refs. The branch of such a one is gone for that. */
async function inTheWay(
  git: Git,
  target: string,
): Promise<{ readonly other: string; readonly commit: string }[]> {
  const all = await refsUnder(git, [landedRef('').slice(0, -1)])
  return Object.entries(all).flatMap(([ref, commit]) => {
    const other = ref.slice(landedRef('').length)
    return other.startsWith(`${target}/`) || target.startsWith(`${other}/`) ? [{ other, commit }] : []
  })
}

export type LandingBase =
  | { readonly commit: string }
  /** What landed and what the user committed since do not go together. */
  | { readonly conflicts: readonly string[] }

/** Where the next one lands: on all that landed and all that the user has committed on the branch. */
export async function landingBase(git: Git, target: string): Promise<LandingBase> {
  const { own, landed } = await targetRefs(git, target)
  if (landed === undefined || (await isAncestor(git, landed, own))) return { commit: own }
  if (await isAncestor(git, own, landed)) return { commit: landed }
  const { tree, conflicts } = await mergeCommits(git, own, landed)
  if (conflicts.length > 0) return { conflicts }
  // At the later one's time: the same two are the same merge, whenever it is asked for.
  const times = (await git.line(['show', '-s', '--format=%ct', own, landed])).split('\n').map(Number)
  const nowMs = Math.max(...times) * 1000
  return {
    commit: await commitTree(git, tree, [own, landed], `Merge what landed on ${target}`, undefined, nowMs),
  }
}

/** Whether the branch had this commit at some time, by its reflog. */
export async function wasIn(git: Git, target: string, commit: string): Promise<boolean> {
  const ref = `refs/heads/${target}`
  const past = await git.run(['rev-list', '--walk-reflogs', '--max-count=200', ref], { accept: [128] })
  const hashes = past.code === 0 ? past.out.split('\n').filter((hash) => hash !== '') : []
  if (hashes.length === 0) return false
  const { out } = await git.run(['rev-list', '--max-count=1', '--ignore-missing', '--stdin'], {
    input: `${[commit, ...hashes.map((hash) => `^${hash}`)].join('\n')}\n`,
  })
  return out === ''
}

interface LandedByGit {
  readonly change: string
  readonly commit: string
  readonly tip: string
  readonly run: string
}

/** Of each change that is in what landed on these refs, by what its commit says: the last time. */
export async function landedByGit(git: Git, refs: readonly string[]): Promise<readonly LandedByGit[]> {
  const value = (key: string): string => `%(trailers:key=${key},valueonly,separator=%x20)`
  const { out } = await git.run([
    'log',
    '--grep=^Ralph-Tip: ',
    `--format=%H%x09${value('Ralph-Change')}%x09${value('Ralph-Tip')}%x09${value('Ralph-Run')}`,
    ...refs,
  ])
  const found = new Map<string, LandedByGit>()
  for (const line of shown(out).split('\n')) {
    const [commit = '', change = '', tip = '', run = ''] = line.split('\t')
    if (change !== '' && /^[0-9a-f]{40,64}$/.test(tip) && !found.has(change))
      found.set(change, { change, commit, tip, run })
  }
  return [...found.values()].toReversed()
}

/** Where the branch and what landed on it stand. */
export async function targetRefs(
  git: Git,
  target: string,
): Promise<{ readonly own: string; readonly landed: string | undefined }> {
  const [own, landed] = [await readRef(git, `refs/heads/${target}`), await readRef(git, landedRef(target))]
  const hint = 'Nothing was touched. Name the branch that the changes go to: --into <branch>.'
  if (own === undefined)
    throw new RalphError('repository_state', `There is no branch ${target}, or it has no commit yet.`, {
      hint,
    })
  const why = await whyNoTarget(git, target)
  if (why !== '') throw new RalphError('repository_state', `${why}.`, { hint })
  return { own, landed }
}

/** Why nothing can land there; empty where it can. A name for another branch would move that one, whoever stands on it. */
export async function whyNoTarget(git: Git, target: string): Promise<string> {
  const ref = `refs/heads/${target}`
  const { code, out } = await git.run(['symbolic-ref', '-q', ref], { accept: [1, 128] })
  if (code === 0) return `${target} is only another name for ${shortName(out.trim())}`
  if ((await readRef(git, ref)) === undefined) return `there is no branch ${target}, or it has no commit yet`
  for (const { other, commit } of await inTheWay(git, target)) {
    const args = [
      'for-each-ref',
      '--count=1',
      `--contains=${commit}`,
      'refs/heads',
      'refs/tags',
      'refs/remotes',
    ]
    if ((await git.line(args)) !== '') continue
    const name = `landed-${other.replaceAll('/', '-')}`
    return `what landed on ${other}, a branch that is gone, is only on ${landedRef(other)}, where ${landedRef(target)} is to be; keep it on a branch: git branch ${name} ${landedRef(other)}`
  }
  return ''
}

/** Of these commits, the ones that are neither in what landed on a branch nor in the branch itself. */
export async function notLandedOn(
  git: Git,
  target: string,
  commits: readonly string[],
): Promise<readonly string[]> {
  const refs = await Promise.all((await landedPlaces(git, target)).map((ref) => readRef(git, ref)))
  const lines = [...commits, ...refs.flatMap((hash) => (hash === undefined ? [] : [`^${hash}`]))]
  const { out, code } = await git.run(['rev-list', '--stdin'], {
    input: `${lines.join('\n')}\n`,
    accept: [128],
  })
  const gone = new Set(out.split('\n'))
  if (code === 0) return commits.filter((commit) => gone.has(commit))
  // Git has thrown one of them away.
  const isThere = await Promise.all(commits.map((commit) => hasLandedOn(git, target, commit)))
  return commits.filter((_, at) => isThere[at] === false)
}

/** Whether a commit is in what landed on a branch, or in the branch itself. */
export async function hasLandedOn(git: Git, target: string, commit: string): Promise<boolean> {
  for (const ref of await landedPlaces(git, target)) if (await isIn(git, commit, ref)) return true
  return false
}

/** False where one of them is not there. */
export async function isIn(git: Git, commit: string, ref: string): Promise<boolean> {
  const there = await readRef(git, ref)
  if (there === undefined) return false
  const { code } = await git.run(['merge-base', '--is-ancestor', commit, there], { accept: [1, 128] })
  return code === 0
}

/** Among the objects: no index, no work tree, no half-done merge. */
export async function mergeCommits(
  git: Git,
  ours: string,
  theirs: string,
): Promise<{ readonly tree: string; readonly conflicts: readonly string[] }> {
  const args = ['merge-tree', '--write-tree', '-z', '--name-only', '--no-messages', ours, theirs]
  const { out, code } = await git.run(args, { accept: [1] })
  const [tree = '', ...paths] = out.split('\0').filter((item) => item !== '')
  return { tree, conflicts: code === 0 ? [] : [...new Set(paths)] }
}

/**
 * Only what was done since the start: what the start itself held was taken off the target since, and would come back with it. Each side
 * becomes a commit right on the start's tree, because `merge-tree --merge-base` is younger than the oldest git that ralph works with.
 */
export async function mergeSince(
  git: Git,
  start: string,
  ours: string,
  theirs: string,
): Promise<{ readonly tree: string; readonly conflicts: readonly string[] }> {
  const bare = async (of: string, parents: readonly string[]): Promise<string> =>
    await commitTree(git, await treeOf(git, of), parents, 'A side of a merge')
  const root = await bare(start, [])
  return await mergeCommits(git, await bare(ours, [root]), await bare(theirs, [root]))
}

/** The commit that the work of a run began from; `initial` is the run's first one. Undefined where the branch no longer has that. */
export async function startOf(git: Git, initial: string, tip: string): Promise<string | undefined> {
  const { out, code } = await git.run(['show', '-s', '--format=%P%n%s', `${initial}^`], { accept: [128] })
  if (code !== 0 || !(await isAncestor(git, initial, tip))) return undefined
  const [parents = '', subject] = out.split('\n')
  if (subject === markedSubject) return parents.split(' ')[1]
  return await git.line(['rev-parse', `${initial}^`])
}

const markedSubject = 'Both sides of a conflict, with markers'

/** Both sides with git's markers: the tree that `mergeCommits` gave, as a merge of the two that is on no branch. */
export function markedCommit(git: Git, tree: string, tip: string, base: string): Promise<string> {
  return commitTree(git, tree, [tip, base], markedSubject)
}

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
    await rm(dir, { recursive: true, force: true, maxRetries: 3 })
    await rm(markOf(git), { force: true })
  }
  await git.run(['worktree', 'prune'])
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

/** Exactly its commit again, without what git ignores too: a candidate is gated on nothing that another one left. */
export async function resetScratch(scratch: Git, commit: string): Promise<void> {
  await scratch.run([...whole, 'reset', '--quiet', '--hard', commit])
  await scratch.run(['clean', '--quiet', '-ffd'])
}

/** False where somebody was quicker. Done already: true. */
export async function moveLanded(
  git: Git,
  target: string,
  commit: string,
  onto: string | undefined,
): Promise<boolean> {
  const ref = landedRef(target)
  if ((await readRef(git, ref)) === commit) return true
  if (onto === undefined)
    for (const { other, commit: earlier } of await inTheWay(git, target))
      await moveRefs(git, 'out of the way', [
        `update ${earlierRefs(other)}/${earlier} ${earlier}`,
        `delete ${landedRef(other)} ${earlier}`,
      ])
  const old = onto ?? '0'.repeat(commit.length)
  try {
    await moveRefs(git, 'landed', [`update ${ref} ${commit} ${old}`])
    return true
  } catch (error) {
    if ((await readRef(git, ref)) !== onto) return false
    throw error
  }
}

/**
 * The branch follows what landed, unless somebody has it checked out, rebases it, or has moved it: a local push refuses all of these,
 * where `update-ref` would leave a checkout that shows the landed work as deleted. Why it did not; empty where it did.
 */
export async function carryHome(git: Git, target: string, from?: string): Promise<string> {
  const [ref, landed] = [`refs/heads/${target}`, await readRef(git, landedRef(target))]
  const own = await readRef(git, ref)
  if (landed === undefined || own === landed) return ''
  const refusal = await whyNoTarget(git, target)
  if (own === undefined || refusal !== '') return refusal
  if (from !== undefined && own !== from) return `${target} was moved meanwhile`
  if (!(await isAncestor(git, own, landed)))
    return (await isAncestor(git, landed, own)) ? '' : `${target} has commits of its own`
  // A push does not know of a rebase that will move it at its end.
  const held = await heldWhere(git, target)
  if (held !== '') return `${target} is ${held}`
  const receive = 'git -c receive.denyCurrentBranch=refuse -c core.hooksPath=/dev/null receive-pack'
  const { code, said } = await git.run(
    [
      'push',
      '--quiet',
      '--no-verify',
      `--force-with-lease=${ref}:${own}`,
      `--receive-pack=${receive}`,
      '.',
      `${landed}:${ref}`,
    ],
    { accept: [1, 128] },
  )
  if (code === 0) return ''
  return /checked out|denyCurrentBranch/.test(said)
    ? `${target} is checked out`
    : `git would not move ${target}: ${
        said
          .trim()
          .split('\n')
          .find((line) => line.includes('rejected')) ?? said.trim()
      }`
}

/** Who stands on a branch: `git worktree list` does not know of one that is being rebased or bisected. Empty: nobody. */
export async function heldWhere(git: Git, target: string): Promise<string> {
  const { gitCommonDir } = git
  const trees = join(gitCommonDir, 'worktrees')
  const names = ifThereNow(() => readdirSync(trees)) ?? []
  for (const dir of [gitCommonDir, ...names.map((name) => join(trees, name))]) {
    const read = (file: string): string =>
      ifThereNow(() => readFileSync(join(dir, file), 'utf8'))?.trim() ?? ''
    const ref = `refs/heads/${target}`
    const word =
      read('HEAD') === `ref: ${ref}`
        ? 'checked out'
        : ['rebase-merge/head-name', 'rebase-apply/head-name'].some((file) => read(file) === ref) ||
            read('rebase-merge/update-refs').split('\n').includes(ref)
          ? 'being rebased'
          : read('BISECT_START') === target
            ? 'being bisected'
            : ''
    // In a bare one nobody stands: its HEAD is for those who clone it.
    if (word === 'checked out' && dir === gitCommonDir && (await isBare(git))) continue
    if (word !== '') return `${word} in ${dirname(dir === gitCommonDir ? dir : read('gitdir'))}`
  }
  return ''
}

/** Of the repository, whatever its work trees say of themselves. */
async function isBare(git: Git): Promise<boolean> {
  const [, kind] = await git.list(['worktree', 'list', '--porcelain', '-z'])
  return kind === 'bare'
}
