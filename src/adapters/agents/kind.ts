// What ralph knows of one kind of agent: how it is called, and what its lines say. All of it pure.
import type { AgentEnding } from '../../core/event.ts'
import type { PromiseFound } from '../../core/promise.ts'
import type { UsageFigures } from '../../core/usage.ts'
import type { ClaimClient } from './claim-server.ts'

/** What a line tells; a kind makes these of its own protocol. */
export type AgentFact =
  | { readonly type: 'session'; readonly id: string }
  | { readonly type: 'model'; readonly model: string }
  /** The assistant's own words, never a tool's, a sub-agent's or the prompt's. A partial one goes on in the next. `missed`: lines before it that nobody decoded. */
  | { readonly type: 'text'; readonly text: string; readonly isPartial?: true; readonly missed?: number }
  | { readonly type: 'tool'; readonly name: string; readonly input: string }
  /** Of the whole run so far, or of one step, to be added up. `isRough`: to be shown while it works, and no more. */
  | {
      readonly type: 'usage'
      readonly figures: UsageFigures
      readonly isStep?: true
      readonly isRough?: true
    }
  /** Known before the failure that it belongs to. */
  | { readonly type: 'resets'; readonly atMs: number }
  /** The agent tries again by itself, or is about to fail; why. */
  | { readonly type: 'retry'; readonly ending: AgentEnding; readonly message?: string }
  /** Its protocol calls the turn an error. `isHopeless`: it would go on trying, but ralph knows better. */
  | {
      readonly type: 'failed'
      readonly ending: AgentEnding
      readonly message: string
      readonly isHopeless?: true
    }
  /** Its protocol says that the turn is over and went well. `mayFail`: an error that it tells after that counts all the same. */
  | { readonly type: 'turn_over'; readonly mayFail?: true }
  /** Why a turn without a promise may have ended. */
  | { readonly type: 'halted'; readonly ending: 'question' | 'refused_permission' }
  /** What it has told ralph by a tool. */
  | { readonly type: 'promised'; readonly promise: PromiseFound }
  /** To be written to its stdin. */
  | { readonly type: 'say'; readonly text: string }
  | { readonly type: 'warning'; readonly message: string }

export interface AgentRun {
  readonly prompt: string
  readonly cwd: string
  readonly model: string | undefined
  /** What `--agent-command` says. */
  readonly command: string | undefined
  /** What stands after `--`. */
  readonly passThrough: readonly string[]
  readonly isRoot: boolean
  /** Its way to the tools that ralph offers it. */
  readonly claims?: ClaimClient
}

interface Launch {
  readonly file: string
  readonly args: readonly string[]
  /** On top of the user's environment. */
  readonly env: Readonly<Record<string, string>>
  readonly input: string
}

/** One conversation: lines in, facts out. */
export interface Listener {
  /** One line without its break. Whatever it is, it must not throw. */
  hear(line: Buffer, nowMs: number): readonly AgentFact[]
  /** For protocols that can be asked to stop: what to say before the first signal. */
  cancel?(): string
}

export interface AgentKind {
  /** The program to look for on PATH; none for those that need no installation. */
  readonly program?: string
  /** `lines`: a protocol that says when a turn is over. `text`: stdout is what the assistant says. */
  readonly speaks: 'lines' | 'text'
  /** Lines that tell nothing but are most of the bytes, known by how they begin: they need not even be gathered. See `lineSplitter`. */
  readonly isIdle?: (chunk: Buffer, start: number) => boolean
  /** stdin stays open during the turn. */
  readonly keepsInput?: true
  /** Its tools do not see the user's git configuration, so the identity has to come by environment. */
  readonly hidesGitConfig?: true
  /** Variables whose value pays for a call, hidden by `--no-api-key`. */
  readonly keys: readonly string[]
  /** Whether it can be offered tools of ralph's, called with these arguments, and how it hears of them; absent: it cannot. */
  takesClaims?(passThrough: readonly string[]): 'by file' | 'by word' | 'not'
  launch(run: AgentRun): Launch
  listen(run: AgentRun): Listener
  /** For an end without a word of the protocol, or without a promise: what exit code, stderr and the last words say, if they say it. */
  diagnose?(exitCode: number | undefined, stderr: string, said: string): AgentEnding | undefined
}
