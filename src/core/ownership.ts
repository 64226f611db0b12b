// Whose change is it? The one place that says so, for every ref, path, setting and lock, and by what evidence.
// The rules are docs/decisions/0009-whose-change-is-it.md; checkpoints, recovery and reports ask here and never guess.

export type Owner =
  /** There, as it is, before the loop began. */
  | 'user_before'
  /** Changed while the loop ran, by a person or a program of theirs: an editor, a fetch, a commit in another work tree. */
  | 'user'
  | 'agent'
  | 'gate'
  | 'ralph'
  | 'other_loop'
  /** Nobody can tell: everything is kept, nothing is changed, and it is said. */
  | 'unknown'

export interface Claim {
  readonly owner: Owner
  /** One clause for a person: how this is known. */
  readonly evidence: string
}

/** One ref that the git of an agent or a gate has written, as that git itself reported it. Names are bytes (latin1). */
export interface RefWrite {
  readonly by: 'agent' | 'gate'
  /** `refs/…`, or `HEAD` of the loop's own work tree. */
  readonly ref: string
  /** What it found there; empty when there was nothing. */
  readonly from: string
  /** Empty when it was deleted. */
  readonly to: string
}

/** `checkout`, `switch` and the like in the loop's own work tree. */
export interface HeadSwitch {
  readonly by: 'agent' | 'gate'
  readonly from: string
  readonly to: string
  /** What HEAD says since: `refs/heads/x`, or a commit when detached. */
  readonly head: string
}

/** One git command in a work tree of this repository: `['clean', '-fd']`, without `git` and its general options. */
export interface GitCommand {
  readonly by: 'agent' | 'gate'
  readonly argv: readonly string[]
  /** The top of the work tree that it ran in. */
  readonly worktree: string
}

/**
 * What an attempt's own gits told, in their order: the evidence of whose a change is. A git that nobody watched (the user's,
 * one whose environment was cleared) is not in it. Empty too when nothing could be watched.
 */
export interface Ledger {
  readonly writes: readonly RefWrite[]
  readonly switches: readonly HeadSwitch[]
  readonly commands: readonly GitCommand[]
  /** Names (in `.git/worktrees`) of the work trees that were made. */
  readonly trees: readonly string[]
}

/** A ref that is not what it was when the attempt began; `to` is empty when it is gone. */
export function ownerOfRef(
  change: string,
  ref: { readonly name: string; readonly to: string },
  writes: readonly RefWrite[],
): Claim {
  const last = writes.findLast(({ ref: name }) => name === ref.name)
  if (last !== undefined && last.to === ref.to)
    return { owner: last.by, evidence: `the ${last.by}'s own git wrote it` }
  if (isOfLoop(ref.name, change)) return { owner: 'ralph', evidence: `it is a ref of the loop of ${change}` }
  if (/^refs\/(heads\/)?ralph\//.test(ref.name))
    return { owner: 'other_loop', evidence: 'it is a ref of another loop' }
  if (last !== undefined) return { owner: 'user', evidence: `it was moved again after the ${last.by}` }
  return { owner: 'user', evidence: 'no git of the agent or a gate wrote it' }
}

function isOfLoop(ref: string, change: string): boolean {
  return ref === `refs/heads/ralph/${change}` || ref.startsWith(`refs/ralph/${change}/`)
}
