// One submodule: where its repository lies, and the store in which ralph keeps what belongs to it.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { rm } from '../../files/now.ts'
import { writeDurably } from '../../files/whole.ts'
import { blankMemory } from '../../../core/git-memory.ts'
import { lstatNow, onDisk } from '../tree/files.ts'
import { shown, type Git, type Repository } from '../git.ts'
import { moveAway } from '../tree/remove.ts'
import { timeName, type Store } from '../store.ts'

export interface CheckedOut {
  readonly path: string
  /** Bytes of its `.git` file; null where that is the git directory itself. */
  readonly link: string | null
  readonly repository: Repository
}

/** Undefined where it is not checked out: no `.git`, or one that leads nowhere, or to a repository of others. */
export function submoduleAt({ worktree, gitDir }: Repository, path: string): CheckedOut | undefined {
  const stats = lstatNow(worktree, `${path}/.git`)
  if (stats?.isDirectory() !== true && stats?.isFile() !== true) return undefined
  const link = stats.isDirectory() ? null : readFileSync(onDisk(worktree, `${path}/.git`)).toString('latin1')
  const repository = repositoryOf(worktree, path, link)
  const isOwn = link === null || repository.gitDir.startsWith(`${gitDir}/modules/`)
  return isOwn && isGitDir(repository.gitDir) ? { path, link, repository } : undefined
}

export function isGitDir(dir: string): boolean {
  return ['HEAD', 'objects'].every((name) => existsSync(join(dir, name)))
}

export function repositoryOf(worktree: string, path: string, link: string | null): Repository {
  const folder = join(worktree, shown(path))
  const named = link === null ? '.git' : shown(link.replace(/^gitdir: /, '').replace(/\n$/, ''))
  const gitDir = isAbsolute(named) ? named : resolve(folder, named)
  return { worktree: folder, gitDir, gitCommonDir: gitDir }
}

/** As it was at a checkpoint. */
export function storeOf(store: Store, { path, link }: Pick<CheckedOut, 'path' | 'link'>): Store {
  return storeInside(store, path, repositoryOf(store.git.worktree, path, link))
}

/** Whatever stands in its place: a folder there would be a repository whose settings git obeys. Where such a one is kept, or empty. */
export async function writeLink(store: Store, link: string | null): Promise<string> {
  const { worktree } = store.git
  const file = join(worktree, '.git')
  const stands = lstatNow(worktree, '.git')
  if (link === null || (stands?.isFile() === true && readFileSync(file).toString('latin1') === link))
    return ''
  let aside = ''
  if (stands?.isDirectory() === true) {
    aside = freeName(join(store.folder, 'nested', `${timeName(store)}-git`, basename(worktree)))
    await moveAway(worktree, '.git', aside)
  } else if (stands?.isFile() !== true) await rm(file, { force: true })
  await writeDurably(file, Buffer.from(link, 'latin1'))
  return aside
}

export function freeName(wished: string): string {
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? wished : `${wished}-${n}`
    if (!existsSync(name)) return name
  }
}

/** All that are checked out, those inside others too: paths from the root of `git`. */
export async function checkedOut(git: Git, prefix = ''): Promise<(CheckedOut & { readonly git: Git })[]> {
  const entries = await git.list(['ls-files', '-s', '-z'])
  const found: (CheckedOut & { readonly git: Git })[] = []
  for (const entry of entries.filter((each) => each.startsWith('160000'))) {
    const submodule = submoduleAt(git, entry.slice(entry.indexOf('\t') + 1))
    if (submodule === undefined) continue
    const inner = git.into(submodule.repository)
    const path = `${prefix}${submodule.path}`
    found.push({ ...submodule, path, git: inner }, ...(await checkedOut(inner, `${path}/`)))
  }
  return found
}

export function outermost(store: Store): Store {
  return store.outer === undefined ? store : outermost(store.outer)
}

/** What is written there is part of what the superproject's own store has in its journal: each step can be done again. */
export function storeInside(store: Store, path: string, repository: Repository): Store {
  const { home: _home, brought: _brought, ...rest } = store
  const name = createHash('sha1').update(path).digest('hex').slice(0, 12)
  const folder = join(store.folder, 'submodules', name)
  mkdirSync(folder, { recursive: true })
  const inside = store.protectedPaths.filter((glob) => glob.startsWith(`${path}/`))
  return {
    ...rest,
    outer: store,
    git: store.git.into(repository),
    folder,
    refs: refsInside(store.change),
    protectedPaths: inside.map((glob) => glob.slice(path.length + 1)),
    memory: () => {
      const { attempt = 0, isKept = false, keptMs = 0, openAttempt = 0 } = store.memory()
      return { ...blankMemory, attempt, isKept, keptMs, openAttempt }
    },
    note: () => Promise.resolve(),
    step: () => Promise.resolve(),
    operate: (_operation, work) => work(),
  }
}

/** Apart from those of a loop that the submodule may have of its own. */
export function refsInside(change: string): string {
  return `refs/ralph/${nameInside(change)}`
}

export function nameInside(change: string): string {
  return `${change}/superproject`
}
