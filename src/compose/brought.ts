// Where the work is that a cleanup has brought: uncommitted, in a commit, or nowhere in sight, because its user has put it away.
import { headRef } from '../adapters/git/formats/ref-files.ts'
import type { Git } from '../adapters/git/git.ts'
import { safeToType } from '../adapters/git/landing/safe-to-type.ts'
import { readRef } from '../adapters/git/refs/refs.ts'
import { isOfPlan } from '../adapters/git/tree/plan-path.ts'
import { allTreeChanges, changedPaths, orEmpty } from '../adapters/git/tree/tree.ts'
import { startMessage } from '../core/git-facts.ts'
import { shellWord } from '../core/shell-word.ts'

export interface BroughtWork {
  readonly uncommitted: boolean
  /** The other branch that has it committed; empty: a detached HEAD. */
  readonly brought_on?: string
  /** Its commits, and the command that brings it again. */
  readonly away?: { readonly kept: string; readonly back: string }
}

/** Undefined where nothing tells: then it is as `git status` says. */
export async function broughtWork(
  git: Git,
  {
    change,
    cleaned,
    original,
  }: { readonly change: string; readonly cleaned: string; readonly original: string },
): Promise<BroughtWork | undefined> {
  const kept = `refs/ralph/${change}/archive/${cleaned}`
  const tip = await readRef(git, kept)
  if (tip === undefined) return undefined
  const asked = ['log', '-1', `--grep=^${startMessage}$`, '--format=%H %P', tip]
  const [initial = '', parent] = (await git.line(asked)).split(' ')
  if (initial === '') return undefined
  const all = await changedPaths(git, initial, tip)
  const own = all.filter((path) => !isOfPlan(change, path))
  const work = new Set(own.length === 0 ? all : own)
  if (work.size === 0) return undefined
  if (await isDirty(git, work)) return { uncommitted: true }
  const before = await orEmpty(git, parent)
  const places = [...(original === '' ? [] : [`refs/heads/${original}`]), 'HEAD']
  const commits = await Promise.all(
    places.map(async (place) => {
      const asked = ['rev-parse', '--verify', '--quiet', `${place}^{commit}`]
      return await git.line(asked, { accept: [1, 128] })
    }),
  )
  const there = commits.filter((commit) => commit !== '')
  const changes = await allTreeChanges(
    git,
    there.map((to) => ({ from: before, to })),
  )
  const holder = there.find((_, at) => changes[at]?.some(({ path }) => work.has(path)))
  if (holder !== undefined && (original === '' || holder === commits[0])) return { uncommitted: false }
  const on = headRef(git)?.replace(/^refs\/heads\//, '') ?? ''
  if (holder !== undefined) return { uncommitted: false, brought_on: on }
  const go = original === '' || on === original ? '' : `git switch ${shellWord(original)} && `
  return {
    uncommitted: false,
    away: { kept, back: await safeToType(git, `${go}git merge --squash ${kept}`) },
  }
}

async function isDirty(git: Git, work: ReadonlySet<string>): Promise<boolean> {
  const asked = [
    'status',
    '--porcelain',
    '-z',
    '--no-renames',
    '--untracked-files=all',
    '--ignore-submodules=dirty',
  ]
  const { out, code } = await git.run(asked, { accept: [128] })
  return code !== 0 || out.split('\0').some((line) => work.has(line.slice(3)))
}
