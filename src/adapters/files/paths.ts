// Where ralph keeps its private data: inside the git directory, so that no commit, clean or agent tool touches it by accident.
import { join } from 'node:path'

/** Of one change; shared by all work trees of the repository, because its branch and refs are shared too. */
export interface RunPaths {
  readonly root: string
  readonly journal: string
  readonly lock: string
  /** Touched twice a second by whoever works on the run: its time is the last sign of life. */
  readonly sign: string
  /** There while a human wants the loop to pause. */
  readonly pause: string
  /** What a human says to a loop that runs, a file each until the journal has it. */
  readonly notes: string
  /** There for a moment: a human does not want the loop to wait any longer. */
  readonly skip: string
  /** There for a moment: a human wants a loop to stop that runs inside another program. */
  readonly stop: string
  readonly learnings: string
  /** Bytes of the change folder as of the last spawn. */
  readonly guard: string
  readonly transcripts: string
  /** What the agents said, in pieces, for readers in other processes. */
  readonly talk: string
  /** Earlier runs of this change, a folder each. */
  readonly archive: string
  /** There while a run moves into the archive: its name there, until the new one has its first record. */
  readonly archiving: string
}

export function runPaths(gitCommonDir: string, change: string): RunPaths {
  const root = join(changesDir(gitCommonDir), change)
  return {
    root,
    journal: join(root, 'journal.ndjson'),
    lock: join(root, 'lock.json'),
    sign: join(root, 'alive'),
    pause: join(root, 'pause'),
    notes: join(root, 'notes'),
    skip: join(root, 'skip'),
    stop: join(root, 'stop'),
    learnings: join(root, 'learnings.md'),
    guard: join(root, 'guard'),
    transcripts: join(root, 'transcripts'),
    talk: join(root, 'talk'),
    archive: join(root, 'archive'),
    archiving: join(root, 'archiving'),
  }
}

export function changesDir(gitCommonDir: string): string {
  return join(gitCommonDir, 'ralph', 'changes')
}

/** One loop per work tree, whatever its change: this lock lies in the work tree's own git directory. */
export function worktreeLock(gitDir: string): string {
  return join(gitDir, 'ralph', 'lock.json')
}

/** There while an attempt is brought back into this work tree: what a kill has cut off is completed from it. */
export function bringingFile(gitDir: string): string {
  return join(gitDir, 'ralph', 'bringing-back.json')
}

/** Beside that lock, so that no archive of a run takes it along. */
export function reserveFile(gitDir: string): string {
  return join(gitDir, 'ralph', 'reserve')
}

/** What the gates of an attempt printed, beside its transcript; `byHand`: those that judged what a person ticked after it. */
export function gateLogIn(transcripts: string, n: number, byHand = false): string {
  return join(transcripts, `${String(n)}.${byHand ? 'hand.' : ''}gates.log`)
}

export function stateFile(worktree: string): string {
  return join(worktree, '.claude', 'loop-state.json')
}

/** There since an agent was first in a cage here: what lies in the work tree since then is not run outside of one. */
export function sandboxedMark(gitCommonDir: string): string {
  return join(gitCommonDir, 'ralph', 'sandboxed')
}
