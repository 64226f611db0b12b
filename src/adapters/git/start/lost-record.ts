// The way out where the branch of a run is there and its record is not: an agent may remove `.git/ralph`, and a clone never had it.
import { headRef } from '../formats/ref-files.ts'
import { readRef } from '../refs/refs.ts'
import type { Git } from '../git.ts'

/** What to type, for a hint; empty where nothing tells of such a run. */
export async function wayOut(
  git: Git,
  change: string,
  {
    why,
    isApart = false,
  }: { readonly why?: string; /** In a work tree of its own. */ readonly isApart?: boolean } = {},
): Promise<string> {
  const lost = await lostRun(git, change)
  if (lost === undefined) return await inPlace(git, change, why)
  const { branch, home, isThere } = lost
  // What the agent left in the tree would be in the way of a switch.
  const leave = isThere ? `git add -A; git commit -m "left over"; git switch ${home} && ` : ''
  return [
    why ??
      (lost.isRalphs
        ? 'The record of that run (.git/ralph) is gone.'
        : 'Somebody else made that branch, or .git/ralph was removed.'),
    `Its work is on ${branch}.`,
    `All of it, uncommitted, on ${home}: ${leave}git merge --squash ${branch} && git reset.`,
    lost.before === '' ? '' : beforeLoop(lost.before, leave),
    `Then start over${isApart ? '' : ` on ${home}`}: ralph loop ${change} --fresh${isApart ? ' --worktree' : ''} archives the branch under refs/ralph/${change}/archive.`,
  ]
    .filter((text) => text !== '')
    .join('\n  ')
}

/** With stashes there is no branch: the work is in the tree, and one ref has its last checkpoint. */
async function inPlace(
  git: Git,
  change: string,
  why = 'The record of that run (.git/ralph) is gone.',
): Promise<string> {
  const ref = `refs/ralph/${change}/checkpoint`
  if ((await readRef(git, ref)) === undefined) return ''
  return [
    why,
    `Its work is in the work tree, as the last attempt left it. As it was before, the files come back with: git restore --source=${ref} -- :/`,
    `Then start over where you stand: ralph loop ${change} --fresh`,
  ]
    .filter((text) => text !== '')
    .join('\n  ')
}

/** Of a branch that a new run puts away: its commits may be the only place of what the user had not committed. */
export async function putAway(git: Git, change: string): Promise<string> {
  const lost = await lostRun(git, change)
  if (lost === undefined) return ''
  return `${lost.branch} is of a run whose record is gone; it is kept under refs/ralph/${change}/archive. ${lost.before === '' ? '' : beforeLoop(lost.before)}`.trim()
}

function beforeLoop(commit: string, leave = ''): string {
  return `Only what you had not committed before the loop: ${leave}git cherry-pick --no-commit ${commit} && git reset.`
}

interface LostRun {
  readonly branch: string
  /** Whether HEAD is on it. */
  readonly isThere: boolean
  /** The branch that it began from, as far as that can be told. */
  readonly home: string
  /** The commit with the user's own changes, if there were any. */
  readonly before: string
  /** Whether a loop of ralph's began it, as its commits tell. */
  readonly isRalphs: boolean
}

async function lostRun(git: Git, change: string): Promise<LostRun | undefined> {
  const branch = `ralph/${change}`
  const ref = `refs/heads/${branch}`
  if ((await readRef(git, ref)) === undefined) return undefined
  const head = headRef(git)
  const first = await git.line(['log', '-1', '--grep=^initial state$', '--format=%h %p', ref])
  const [initial = '', parent = ''] = first.split(' ')
  const isRalphs = initial !== ''
  const here =
    head?.startsWith('refs/heads/') === true && head !== ref
      ? head.slice('refs/heads/'.length)
      : 'YOUR-BRANCH'
  if (parent === '') return { branch, isThere: head === ref, home: here, before: initial, isRalphs }
  const heads = await git.line([
    'for-each-ref',
    '--format=%(refname:short)',
    '--contains',
    parent,
    'refs/heads',
  ])
  const [home = here, ...more] = heads.split('\n').filter((name) => name !== '' && !name.startsWith('ralph/'))
  const isEmpty = (await git.run(['diff', '--quiet', parent, initial], { accept: [1] })).code === 0
  return {
    branch,
    isThere: head === ref,
    home: more.length === 0 ? home : here,
    before: isEmpty ? '' : initial,
    isRalphs,
  }
}
