// What every command gets.
import type { App } from '../app.ts'
import type { Io } from '../io.ts'

export interface Context {
  readonly io: Io
  /** Loads the rest of the program: only when a command really runs. */
  readonly app: () => Promise<App>
  /** What stood after `--`; absent when there was no `--`. */
  readonly passThrough: readonly string[] | undefined
  /** Aborts when nobody reads stdout any more. */
  readonly readerGone: AbortSignal
  /** The code to exit with when the command is through; 0 unless it says so. */
  readonly exitWith: (code: number) => void
  /** Another command, as if it were typed; answers with its exit code. */
  readonly run: (words: readonly string[], env: NodeJS.ProcessEnv) => Promise<number>
}
