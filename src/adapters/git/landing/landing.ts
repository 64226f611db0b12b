// Puts the work of a change on a branch without touching anybody's checkout: merged among the objects, moved only where nobody else has
// moved it.
import { headRef } from '../formats/ref-files.ts'
import { RalphError } from '../../../core/error.ts'
import { shown, type Git } from '../git.ts'
import { heldWhere } from './held.ts'
import { moveRefs, readRef, refsUnder, shortName } from '../refs/refs.ts'
import { commitTree, isAncestor, treeOf } from '../tree/tree.ts'

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

/** Where the next one lands: on all that landed and all that the user has committed on the branch, as these were when they were looked at. */
export async function landingBase(
  git: Git,
  target: string,
  { own, landed }: { readonly own: string; readonly landed: string | undefined },
): Promise<LandingBase> {
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
  if (own === undefined && headRef(git) === `refs/heads/${target}`)
    throw new RalphError('repository_state', `${target} has no commit yet, so nothing can land on it.`, {
      hint: 'Nothing was touched. First: git add --all && git commit -m "start"',
    })
  if (own === undefined) throw new RalphError('repository_state', `There is no branch ${target}.`, { hint })
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

/** Of these commits, the ones that are neither in what landed on a branch nor in the branch itself; `seen`: where these two stood. */
export async function notLandedOn(
  git: Git,
  target: string,
  commits: readonly string[],
  seen?: { readonly own: string; readonly landed: string | undefined },
): Promise<readonly string[]> {
  const places = (await landedPlaces(git, target)).slice(seen === undefined ? 0 : 2)
  const known = seen === undefined ? [] : [seen.own, seen.landed]
  const refs = [...known, ...(await Promise.all(places.map((ref) => readRef(git, ref))))]
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

/** Whether a merge would bring nothing: also where its user has amended, squashed or picked what landed. */
export async function hasAllOf(git: Git, own: string, landed: string): Promise<boolean> {
  if (await isAncestor(git, landed, own)) return true
  if (await isAncestor(git, own, landed)) return false
  const merge = ['merge-tree', '--write-tree', '--no-messages', own, landed]
  const { out, code } = await git.run(merge, { accept: [1, 128] })
  return code === 0 && out.trim() === (await treeOf(git, own))
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
 * The branch follows what landed, and goes nowhere else, unless somebody has it checked out, rebases it, or has moved it: a local push refuses all of these,
 * where `update-ref` would leave a checkout that shows the landed work as deleted. Why it did not; empty where it did.
 */
export async function carryHome(git: Git, target: string, landed: string, from?: string): Promise<string> {
  const ref = `refs/heads/${target}`
  const own = await readRef(git, ref)
  if (own === landed) return ''
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
