// A change as `ralph list` and `ralph show` print it (contract 9).
import type { StoryStatus, TaskState } from './story.ts'

/** The loop's status is added by who knows it. */
export interface ChangeSummary {
  readonly name: string
  readonly title: string
  readonly stories_done: number
  readonly stories_total: number
  /** Neither done nor a person's nor put off. */
  readonly stories_open: number
  /** As OpenSpec counts. */
  readonly tasks_done: number
  readonly tasks_total: number
  /** Why the counts cannot be trusted, or ''. */
  readonly problem: string
}

export interface ChangeDetail {
  readonly name: string
  readonly title: string
  readonly stories: readonly {
    readonly id: string
    readonly title: string
    readonly status: StoryStatus
    readonly tasks: readonly {
      readonly id: string
      readonly text: string
      readonly state: TaskState
      readonly line: number
    }[]
  }[]
  readonly scenarios: readonly {
    readonly capability: string
    readonly requirement: string
    readonly name: string
    readonly steps: readonly string[]
  }[]
  /** `tasks.md:12 …`: what is odd in the plan, or will not be run. */
  readonly lints?: readonly string[]
}
