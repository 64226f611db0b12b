// The one error class for what a user can fix or must know; everything else that is thrown is a bug.

/** Exit codes of contract 3 that an error may carry. */
export type ErrorExit = 1 | 2 | 5 | 6 | 7

/** Closed list: scripts match on these, so a new one is a change of the contract. */
export type ErrorCode =
  | 'usage'
  | 'config'
  | 'change_not_found'
  | 'change_ambiguous'
  | 'openspec_missing'
  | 'spec_unreadable'
  | 'no_tasks'
  | 'box_ambiguous'
  | 'not_a_repository'
  | 'repository_state'
  | 'bad_name'
  | 'branch_exists'
  | 'nothing_to_resume'
  | 'unfinished_run'
  | 'checkpoint_failed'
  | 'finish_conflict'
  | 'attempt_not_found'
  | 'git_failed'
  | 'locked'
  | 'agent_missing'
  | 'budget'
  | 'human_needed'
  | 'journal_unreadable'
  | 'disk'
  | 'internal'

/** In a hint: right where no run has begun; whoever knows of a run says its command instead (`inRun`). */
export const again = 'type the command again'

export function inRun(hint: string, command: string): string {
  return hint.replaceAll(again, `type: ${command}`)
}

/** In one line, for a record that has no room for both. */
export function inOneLine({ message, hint }: RalphError): string {
  return `${message.replace(/\.$/, '')}. ${hint}`
}

export class RalphError extends Error {
  readonly code: ErrorCode
  /** What the user can do next: a sentence, with the command to type where there is one. */
  readonly hint: string
  readonly exitCode: ErrorExit

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint: string; exitCode: ErrorExit; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.name = 'RalphError'
    this.code = code
    this.hint = options.hint
    this.exitCode = options.exitCode
  }
}
