// Whose is a change of the loop's own work tree: a switch of HEAD, a sweep by git, a stash, work that is undone before it is saved.
import type { Head } from './git-facts.ts'
import type { Claim, GitCommand, Ledger } from './ownership.ts'

/** Whose git left HEAD where it is; undefined when none of the watched ones did. */
export function moverOf(
  was: Head,
  now: Head,
  { switches, writes, commands }: Pick<Ledger, 'switches' | 'writes' | 'commands'>,
): HeadMove['by'] {
  const to = now.ref ?? now.commit
  const last = switches.findLast(({ head }) => head === to)
  if (last !== undefined && switches.at(-1) === last) return last.by
  // Detached, and went on from there by commits of its own.
  const [went, wrote] = [switches.at(-1), writes.findLast(({ ref }) => ref === 'HEAD')]
  const isOnward =
    now.ref === undefined && went?.head.startsWith('refs/') === false && wrote?.to === now.commit
  if (isOnward && wrote?.by === went.by) return went.by
  // Who commits on a branch need not be who went there.
  if (was.ref !== now.ref)
    return switches.length > 0 ? undefined : commands.findLast(({ argv }) => isGoing(argv))?.by
  const names = ['HEAD', now.ref]
  return writes.findLast((write) => names.includes(write.ref) && write.to === now.commit)?.by
}

/** Makes HEAD name another branch, or none, and is no switch that git tells of. */
function isGoing([verb = '', ...rest]: readonly string[]): boolean {
  if (verb === 'branch') return rest.some((arg) => ['-m', '-M', '--move'].includes(arg))
  return ['bisect', 'rebase', 'symbolic-ref'].includes(verb)
}

/** HEAD of the loop's tree is not where the attempt, or its gates, began. */
export interface HeadMove {
  /** For a person: a branch, or the start of a commit. */
  readonly to: string
  /** The git of the agent, or of a gate, moved it by its own report; undefined when none did. */
  readonly by: 'agent' | 'gate' | undefined
  /** It is the same branch, which has not got the commit any more that it began at. */
  readonly isRewritten?: boolean
}

function ownerOfHead({ by }: HeadMove): Claim {
  return by === undefined
    ? { owner: 'user', evidence: 'no git of the agent or a gate moved HEAD' }
    : { owner: by, evidence: `the ${by}'s own git moved HEAD` }
}

/** What is known of the tree that an attempt left, beside its checkpoint. Paths are git's own. */
export interface TreeFacts {
  /** Absent when HEAD holds the checkpoint still: nobody left, though somebody may have committed. */
  readonly left?: HeadMove
  /** HEAD's history began during the attempt: there is no commit that the agent worked from. */
  readonly isRootless: boolean
  /** The agent's own git cleaned, reset, stashed or checked out files over those of the checkpoint, or moved HEAD unseen. */
  readonly isSwept: boolean
  /** Paths of the checkpoint that the tree has as the commit it was worked from has them: absent, or old. */
  readonly missing: readonly string[]
  /** Paths that both the checkpoint and the tree have otherwise than that commit, each in its own way. */
  readonly rewritten: readonly string[]
  /** Paths that a stash entry of somebody else's took away while the agent worked. */
  readonly stashed: readonly string[]
}

export type TreeJudgement =
  /** As it is: what is not in it is the agent's own wish. */
  | { readonly do: 'take' }
  /** Three ways: what the agent worked from, the checkpoint, the agent's tree. */
  | { readonly do: 'merge'; readonly why: string }
  | { readonly do: 'fail'; readonly why: string }

/** Whose doing it is that files of the checkpoint are not there: a switch's, a sweep's, or the agent's own wish. */
export function judgeTree(facts: TreeFacts): TreeJudgement {
  const { left, isRootless, isSwept, missing, rewritten, stashed } = facts
  if (stashed.length > 0)
    return { do: 'fail', why: 'somebody stashed files of the work tree while the agent worked' }
  // An agent that amends or squashes leaves the branch and keeps its files; a switch by somebody else replaces them.
  const isReplaced = isSwept || (left !== undefined && left.by === undefined)
  if (!isReplaced || missing.length + rewritten.length === 0) return { do: 'take' }
  if (left === undefined)
    return { do: 'merge', why: 'the agent swept the work tree with git (clean, checkout, reset or stash)' }
  const why = headWords(left, 'agent')
  return isRootless
    ? { do: 'fail', why: `${why}, which has no history in common with the checkpoint` }
    : { do: 'merge', why }
}

export function headWords(move: HeadMove, during: 'agent' | 'gates'): string {
  const { owner } = ownerOfHead(move)
  const when = during === 'agent' ? 'while the agent worked' : 'while the gates ran'
  const rewrote = `rewrote ${move.to} (amend, reset or rebase)`
  const isRewritten = move.isRewritten === true
  if (owner === 'agent')
    return `the agent ${isRewritten ? rewrote : `left the branch of the loop for ${move.to}`}`
  if (owner === 'gate') return `a gate ${isRewritten ? rewrote : `switched the work tree to ${move.to}`}`
  return `somebody ${isRewritten ? rewrote : `switched the work tree to ${move.to}`} ${when}`
}

/** Whether git commands, in their order, wrote over or removed files of the work tree. */
export function isSweptBy(commands: readonly Pick<GitCommand, 'argv' | 'within'>[]): boolean {
  let stashed = 0
  for (const { argv, within = '' } of commands) {
    const [command = '', ...rest] = argv
    // What these run is a part of them, and mostly undone by their end.
    if (compound.has(within)) continue
    const has = (...options: string[]): boolean => rest.some((arg) => options.includes(arg))
    if (command === 'stash') {
      if (has('pop', 'apply')) stashed -= 1
      else if (!has('list', 'show', 'branch', 'drop', 'clear', 'create', 'store')) stashed += 1
    } else if (sweepers[command]?.(has, rest) === true) return true
  }
  return stashed > 0
}

const compound = new Set([
  'am',
  'cherry-pick',
  'commit',
  'merge',
  'pull',
  'rebase',
  'revert',
  'stash',
  'submodule',
])

type Has = (...options: string[]) => boolean

/** A command that names single files says what it wants; one that names none, or all, takes whatever lies there. */
const sweepers: Readonly<Record<string, (has: Has, rest: readonly string[]) => boolean>> = {
  clean: (has, rest) => !has('-n', '--dry-run') && isBroad(operands(rest)),
  restore: (has, rest) => (!has('--staged', '-S') || has('--worktree', '-W')) && isBroad(operands(rest)),
  reset: (has) => has('--hard', '--merge', '--keep'),
  // A new branch where HEAD is: no file changes.
  checkout: (has, rest) =>
    has('-b', '-B') ? operands(rest).length > 1 : !has('--') || isBroad(rest.slice(rest.indexOf('--') + 1)),
  switch: (has, rest) => !(has('-c', '-C') && operands(rest).length === 1),
  'read-tree': () => true,
  'checkout-index': () => true,
}

function operands(args: readonly string[]): string[] {
  return args.filter((arg) => !arg.startsWith('-'))
}

function isBroad(paths: readonly string[]): boolean {
  return paths.length === 0 || paths.some((path) => /^(\.{1,2}\/?|:\/|\*)$/.test(path))
}

/** What became of the loop's tree between the end of the attempt and its checkpoint. */
export interface StandFacts {
  readonly head?: HeadMove
  /** Messages of stash entries that no gate made. */
  readonly stashed: readonly string[]
  /** Every path that the attempt had changed is as in the checkpoint again. */
  readonly isUndone: boolean
}

/** Why there is nothing to save any more, as one clause. */
export function lossOf({ head, stashed, isUndone }: StandFacts): string | undefined {
  const safe = 'the attempt is kept'
  if (head !== undefined) return `${headWords(head, 'gates')}; ${safe}`
  if (stashed.length > 0)
    return `somebody stashed the work tree while the gates ran (${stashed.join(', ')}); ${safe}, and so is the entry`
  return isUndone ? `the attempt's work was undone in the work tree before it was saved; ${safe}` : undefined
}
