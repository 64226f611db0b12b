// The one error class for what a user can fix or must know; everything else that is thrown is a bug.

/** Exit codes of contract 3 that an error may carry. */
export type ErrorExit = 1 | 2 | 5 | 6 | 7

/** Closed list, each with its exit code: scripts match on these, so a new one is a change of the contract. */
const exitCodes = {
  usage: 2,
  config: 2,
  change_not_found: 2,
  change_ambiguous: 2,
  openspec_missing: 2,
  spec_unreadable: 2,
  no_tasks: 2,
  box_ambiguous: 1,
  not_a_repository: 2,
  repository_state: 2,
  bad_name: 2,
  branch_exists: 2,
  nothing_to_resume: 2,
  unfinished_run: 2,
  checkpoint_failed: 1,
  finish_conflict: 1,
  attempt_not_found: 2,
  git_failed: 1,
  locked: 7,
  agent_missing: 6,
  sandbox: 1,
  budget: 2,
  human_needed: 5,
  journal_unreadable: 1,
  disk: 1,
  internal: 1,
} as const satisfies Record<string, ErrorExit>

export type ErrorCode = keyof typeof exitCodes

// The table is const: it has no other keys
export const errorCodes = Object.keys(exitCodes) as readonly ErrorCode[]

/** In a hint: right where no run has begun; whoever knows of a run says its command instead (`inRun`). */
export const again = 'type the command again'

/** Begins the message of a loop whose own folder was removed: no command can go on with it. */
export const recordGone = 'ralph’s record of this run'

export function inRun(hint: string, command: string): string {
  return hint.replaceAll(again, `type: ${command}`)
}

/** In one line, for a record that has no room for both. */
export function inOneLine({ message, hint }: RalphError): string {
  return `${message.replace(/\.$/, '')}. ${hint}`
}

export class RalphError extends Error {
  readonly code: ErrorCode
  /** What the user can do next: a sentence, with the command to type where there is one. Who knows the repository may say it more safely. */
  hint: string
  readonly exitCode: ErrorExit

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint: string; exitCode?: ErrorExit; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.name = 'RalphError'
    this.code = code
    this.hint = options.hint
    this.exitCode = options.exitCode ?? exitCodes[code]
  }
}
