// What both strategies share: the repository, the private folder, and the journal written ahead of every change.
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import type { EventBody } from '../../core/event.ts'
import { beganEvent, stepEvent } from '../../core/git-facts.ts'
import type { Operation, Step } from '../../core/git-facts.ts'
import type { GitMemory } from '../../core/git-memory.ts'
import type { Absence } from '../../core/ownership.ts'
import type { Clock, WriteAhead } from '../../ports.ts'
import { readAuthor, type Author } from './formats/author.ts'
import type { Git, Repository } from './git.ts'

export interface CheckpointDeps {
  readonly git: Git
  readonly change: string
  readonly writeAhead: WriteAhead
  /** What the run knows of the repository now. */
  readonly memory: () => GitMemory
  /** Relative to the work tree, `*` within a name: never committed, cleaned or rolled back. */
  readonly protectedPaths: readonly string[]
  readonly clock: Pick<Clock, 'now'>
  /** The user's environment, ralph's own if absent: its settings for git go on counting in an agent's. */
  readonly env?: NodeJS.ProcessEnv
  /** Variables by which what ralph starts for the user is known as this run's. */
  readonly marker?: () => Readonly<Record<string, string>>
  /** In a repair: who may have changed the tree since the loop died. */
  readonly absence?: () => Absence | undefined
  /** The user's own checkout, when the loop runs in a work tree of its own. */
  readonly home?: Repository
  /** Work-tree-relative folders that were copied from there because git did not hold them. */
  readonly brought?: readonly string[]
}

export interface Store extends CheckpointDeps {
  /** Private files of the checkpoints of this change and work tree. */
  readonly folder: string
  /** `refs/ralph/<change>` */
  readonly refs: string
  /** Of a submodule: that of the repository around it, whose snapshot and journal are its own, too. */
  readonly outer?: Store
  /** Of the commits on the loop's branch, as it was when first asked for: an agent may set another one later. */
  author(): Promise<Author | undefined>
  note(event: EventBody): Promise<void>
  /** Writes `git.began` before the work and `git.ended` after it; what fails in between stays pending for `recover`. */
  operate<T>(operation: Operation, work: () => Promise<T>): Promise<T>
  step(op: Operation['op'], step: Step): Promise<void>
}

export function openStore(deps: CheckpointDeps): Store {
  const note = deps.writeAhead
  let author: Promise<Author | undefined> | undefined
  return {
    ...deps,
    author: () => (author ??= readAuthor(deps.git, deps.env ?? process.env)),
    // Apart from the run's folder: archiving an earlier run must not take the user's saved index along.
    folder: checkpointFolder(deps.git.gitCommonDir, deps.change),
    refs: `refs/ralph/${deps.change}`,
    note,
    step: (op, step) => note(stepEvent(op, step)),
    operate: async (operation, work) => {
      await note(beganEvent(operation))
      const result = await work()
      await note({ type: 'git.ended', op: operation.op })
      return result
    },
  }
}

export function checkpointFolder(gitCommonDir: string, change: string): string {
  return join(gitCommonDir, 'ralph', 'checkpoints', change)
}

/** Ref-safe, sorts by time. */
export function timeName(store: Store): string {
  return new Date(store.clock.now()).toISOString().replace(/[-:.]/g, '')
}

/** The trailer of what ralph commits on the branch. */
export function ofChange({ change }: Pick<Store, 'change'>): string {
  return `Ralph-Change: ${change}`
}

export function nothingToResume(change: string): RalphError {
  return new RalphError('nothing_to_resume', `no run of ${change} is open in this repository`, {
    hint: `Start one with \`ralph loop ${change}\`.`,
  })
}

/** A save that a crash cut off from its answer: it is there, and is not made twice. */
export async function savedBefore(
  store: Store,
  message: string,
): Promise<{ commit: string; changed: boolean } | undefined> {
  const { saved, isKept } = store.memory()
  if (isKept === true || saved?.message !== message) return undefined
  const trees = await store.git.line(['rev-parse', `${saved.commit}^{tree}`, `${saved.before}^{tree}`])
  const [now, before] = trees.split('\n')
  return { commit: saved.commit, changed: now !== before }
}
