// A git work tree of the loop's own, beside the user's checkout, which is not touched while the loop runs.
import { mkdir, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { RalphError } from '../../../core/error.ts'
import { copyAll } from '../../files/copy.ts'
import type { Git, Repository } from '../git.ts'
import { refuseAlias } from './preflight.ts'
import { readRefs, shortName } from '../refs/refs.ts'
import { besideNote, startingPoint } from './starting-point.ts'
import { dropStart, noteStart } from './started-tree.ts'

export interface LoopTree {
  readonly repository: Repository
  /** Folders copied along because git did not hold them as they are; see `CheckpointDeps.brought`. */
  readonly brought: readonly string[]
  /** Made just now. */
  readonly isNew: boolean
  /** The commit it begins with. */
  readonly base: string
  /** For the user, where that is not HEAD of the checkout. */
  readonly note: string
}

/** Where it goes when the user names no folder: a sibling of the checkout. */
function defaultTree(worktree: string, change: string): string {
  return join(dirname(worktree), `${basename(worktree)}-ralph-${change}`)
}

/**
 * Detached at the user's commit (call `clearStart` first), or the tree that is there already for this change (resume).
 * `changeFolder` is relative to the work tree; if it has uncommitted files it is copied along. Absent: it lies outside.
 */
export async function addWorktree(
  git: Git,
  options: {
    readonly dir?: string
    readonly change: string
    readonly changeFolder?: string
    /** Where it begins, instead of where the user stands. */
    readonly from?: string
  },
): Promise<LoopTree> {
  const { change, changeFolder, from } = options
  const dir = realFolder(resolve(git.worktree, options.dir ?? defaultTree(git.worktree, change)))
  if (`${dir}/`.startsWith(`${realFolder(git.gitCommonDir)}/`)) {
    throw new RalphError('usage', `${dir} is in the git directory, where no work tree can be`, {
      hint: 'Nothing was touched. Name another folder: --worktree <dir>.',
    })
  }
  const point = await startingPoint(git, change)
  const base = from === undefined ? point.head.commit : await commitOf(git, from)
  if (base === undefined) {
    throw new RalphError('repository_state', 'a work tree of its own needs a commit to start from', {
      hint: 'Make a first commit, or run without --worktree.',
    })
  }
  const isOwnCopy = changeFolder !== undefined && (await hasUncommitted(git, changeFolder, base))
  const brought = isOwnCopy ? [changeFolder] : []
  const note = from === undefined ? besideNote(change, point) : ''
  const known = await findTree(git, dir)
  if (known !== undefined) {
    await refuseForeign(git.at(known), change)
    return { repository: known, brought, isNew: false, base, note }
  }
  if (existsSync(dir)) {
    throw new RalphError('usage', `${dir} exists and is not a work tree of this repository`, {
      hint: 'Name another folder: --worktree <dir>.',
    })
  }
  await refuseAlias(git, point.head.ref)
  await noteStart(git, change, { dir, commit: base, brought })
  await git.run(['worktree', 'add', '--quiet', '--detach', dir, base]).catch(async (error: unknown) => {
    if (existsSync(dir) || !(error instanceof RalphError)) throw error
    await dropStart(git, change)
    throw new RalphError('usage', `the work tree ${dir} cannot be made: ${error.message}`, {
      hint: 'Nothing was touched. Name a folder that can be made: --worktree <dir>.',
      cause: error,
    })
  })
  for (const folder of brought) {
    await mkdir(dirname(join(dir, folder)), { recursive: true })
    await copyAll(join(git.worktree, folder), join(dir, folder))
  }
  const repository = await findTree(git, dir)
  if (repository === undefined) throw new Error(`git made no work tree at ${dir}`)
  await writeFile(markOf(repository, change), '')
  return { repository, brought, isNew: true, base, note }
}

/** As git names it: below a link the real folder, also of one that is not there yet. */
function realFolder(dir: string): string {
  if (existsSync(dir)) return realpathSync(dir)
  return dirname(dir) === dir ? dir : join(realFolder(dirname(dir)), basename(dir))
}

async function commitOf(git: Git, name: string): Promise<string> {
  const { out, code } = await git.run(
    ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`],
    {
      accept: [1, 128],
    },
  )
  if (code === 0) return out.trim()
  throw new RalphError('usage', `--from ${name} is not a commit of this repository`, {
    hint: 'Nothing was touched. Name a branch, a tag or a commit.',
  })
}

/** The tree that was made for this change, wherever `git worktree move` has put it. */
export async function loopTree(git: Git, change: string): Promise<Repository | undefined> {
  if (existsSync(markOf(git, change))) return git
  const { out } = await git.run(['worktree', 'list', '--porcelain', '-z'])
  const lines = Buffer.from(out, 'latin1').toString('utf8').split('\0')
  for (const line of lines.filter((each) => each.startsWith('worktree '))) {
    const tree = await findTree(git, line.slice('worktree '.length))
    if (tree !== undefined && existsSync(markOf(tree, change))) return tree
  }
  return undefined
}

/** In the place of the one that was made for this change, and not on its branch; `isCleaned`: that one was detached at the end. */
export async function isAnothers(tree: Git, change: string, isCleaned: boolean): Promise<boolean> {
  const { ref } = (await readRefs(tree)).head
  if (ref === `refs/heads/ralph/${change}` || existsSync(markOf(tree, change))) return false
  return ref !== undefined || !(isCleaned || wasOn(tree, `ralph/${change}`))
}

/** As its log says; one that was made by hand for the loop has no mark, and an agent may have detached it. */
function wasOn({ gitDir }: Git, branch: string): boolean {
  const log = join(gitDir, 'logs', 'HEAD')
  return existsSync(log) && readFileSync(log, 'utf8').includes(`moving from ${branch} to `)
}

/** Made by hand, or by another change's loop: what is on its branch or uncommitted there is none of this loop's business. */
async function refuseForeign(tree: Git, change: string): Promise<void> {
  const { head } = await readRefs(tree)
  if (head.ref === `refs/heads/ralph/${change}`) return
  const isMarked = existsSync(markOf(tree, change))
  if (head.ref === undefined && isMarked) return
  const what =
    head.ref === undefined
      ? 'is a work tree that ralph did not make for this change'
      : `is on the branch ${shortName(head.ref)}`
  throw new RalphError('usage', `${tree.worktree} ${what}`, {
    hint: `Nothing was touched. Name a folder that does not exist yet (--worktree <dir>), or remove this one if nothing in it is needed, ignored files included: git worktree remove ${tree.worktree}`,
  })
}

/** In the tree's own git directory: it goes with the tree. */
function markOf(tree: Repository, change: string): string {
  return join(tree.gitDir, `ralph-made-for-${change}`)
}

async function hasUncommitted(git: Git, folder: string, base: string): Promise<boolean> {
  if (!existsSync(join(git.worktree, folder))) return false
  const isOther = (await git.run(['diff', '--quiet', base, '--', folder], { accept: [1] })).code === 1
  if (isOther) return true
  const { out } = await git.run([
    'status',
    '--porcelain',
    '-z',
    '--untracked-files=all',
    '--ignored',
    '--',
    folder,
  ])
  return out !== ''
}

export async function findTree(git: Git, dir: string): Promise<Repository | undefined> {
  if (!existsSync(dir)) return undefined
  const { out, code } = await git.run(
    ['rev-parse', '--path-format=absolute', '--absolute-git-dir', '--git-common-dir', '--show-toplevel'],
    {
      inside: dir,
      accept: [128],
    },
  )
  const [gitDir = '', gitCommonDir, worktree] = Buffer.from(out, 'latin1').toString('utf8').split('\n')
  if (
    code !== 0 ||
    gitCommonDir !== git.gitCommonDir ||
    worktree !== realFolder(dir) ||
    gitDir === git.gitDir
  )
    return undefined
  return { worktree, gitDir, gitCommonDir }
}
