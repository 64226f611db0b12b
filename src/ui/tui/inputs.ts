// What comes in to the screens, and what they ask for: the whole traffic between the pure part and its shell.
import type { LoadedConfig, RawFlags } from '../../config/load.ts'
import type { ChangeDetail } from '../../core/change.ts'
import type { RunReport } from '../../core/report.ts'
import type { FinishChoice, Told } from '../../ports.ts'
import type { AttemptNow, ChangeList, DryRun, GateOutput, QueueReport, StatusReport } from '../app.ts'
import type { StartRequest } from './client.ts'
import type { Size } from './frame.ts'
import type { Key } from './keys.ts'

export type Load =
  | { readonly what: 'changes' }
  | { readonly what: 'queue' }
  | { readonly what: 'detail'; readonly change: string }
  | {
      readonly what: 'plan'
      readonly change: string
      readonly flags: RawFlags
      /** With the settings of the run that goes on. */
      readonly isResumed?: true
    }
  | { readonly what: 'so_far'; readonly change: string }
  | { readonly what: 'gate_output'; readonly change: string; readonly n: number }
  /** Of one attempt, or of all that the run has saved. */
  | { readonly what: 'patch'; readonly change: string; readonly n: number | undefined }
  | { readonly what: 'report'; readonly change: string }

export type Loaded =
  | {
      readonly what: 'changes'
      readonly list: ChangeList
      readonly reports: readonly StatusReport[]
      /** Where there is one with something in it. */
      readonly queue?: QueueReport
    }
  | { readonly what: 'queue'; readonly report: QueueReport }
  | { readonly what: 'detail'; readonly change: string; readonly detail: ChangeDetail }
  | {
      readonly what: 'plan'
      readonly change: string
      readonly settings: LoadedConfig
      /** Absent where it could not be made: `problem` says why. */
      readonly plan?: DryRun
      readonly problem?: string
    }
  | { readonly what: 'so_far'; readonly change: string; readonly now: AttemptNow }
  | { readonly what: 'gate_output'; readonly change: string; readonly output: GateOutput }
  | {
      readonly what: 'patch'
      readonly change: string
      readonly n: number | undefined
      readonly patch: string
    }
  | { readonly what: 'report'; readonly change: string; readonly report: RunReport }

/** What a screen wants done. */
export type Act =
  | { readonly do: 'load'; readonly load: Load }
  | { readonly do: 'follow'; readonly change: string }
  | { readonly do: 'unfollow' }
  | ({ readonly do: 'start' } & StartRequest)
  | { readonly do: 'stop'; readonly change: string; readonly isForce: boolean }
  | { readonly do: 'pause'; readonly change: string; readonly isOff: boolean }
  | { readonly do: 'note'; readonly change: string; readonly text: string }
  | { readonly do: 'skip_wait'; readonly change: string }
  | { readonly do: 'done'; readonly change: string }
  | { readonly do: 'finish'; readonly change: string; readonly choice: Exclude<FinishChoice, 'later'> }
  /** `words`: for the terminal, once the screen is gone. */
  | { readonly do: 'quit'; readonly exitCode: number; readonly words: readonly string[] }
  | { readonly do: 'suspend' }
  | { readonly do: 'redraw' }

export type Input =
  | { readonly type: 'key'; readonly key: Key }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resize'; readonly size: Size }
  | { readonly type: 'told'; readonly change: string; readonly records: readonly Told[] }
  | { readonly type: 'loaded'; readonly loaded: Loaded }
  | { readonly type: 'started'; readonly change: string }
  /** `ralph up` of this process has nothing left to do. */
  | { readonly type: 'queue_over' }
  | {
      readonly type: 'said'
      readonly act: Act['do']
      readonly message: string
      /** The one of a squash. */
      readonly commit?: string
    }
  | {
      readonly type: 'failed'
      readonly act: Act
      readonly message: string
      readonly hint: string
      readonly exitCode: number
    }

/** Of a screen that has heard something. */
export interface Step<Screen> {
  readonly screen: Screen
  readonly acts: readonly Act[]
  /** For the line at the bottom, for a while. */
  readonly says?: string
}

/** What every screen knows of the world around it. */
export interface World {
  readonly size: Size
  readonly nowMs: number
  /** Counts ticks. */
  readonly frame: number
  readonly place: string
}
