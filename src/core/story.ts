// The plan as the loop sees it: stories and tasks, and which of them an agent may run.

/**
 * open: an agent may do it. human: only a person can. deferred: struck out or put off.
 * phantom: OpenSpec counts it (in a fence, a comment, or without a text) but there is nothing to run.
 */
export type TaskState = 'open' | 'done' | 'human' | 'deferred' | 'phantom'

export interface Task {
  /** For display, never a key: the file's own id, or `<story>#<n>`. */
  readonly id: string
  readonly text: string
  readonly state: TaskState
  /** 1-based line in `file`. */
  readonly line: number
  /** Path of the tasks file, relative to the change folder (`tasks.md`). */
  readonly file: string
  /** Depth in the tree of boxes; 0 is a root box. */
  readonly depth: number
  /** Indented lines below the box, as written. */
  readonly body: string
  /** Nearest heading below the story's level, if there is one. */
  readonly subheading: string
}

/** Of a manual loop: it has one, whose title is the user's words. */
export const manualStory = 'manual'
/** What the merge queue asks for, beside the stories of the change. */
export const mergeStory = 'merge'

export function hasMerge(stories: readonly { readonly id: string }[]): boolean {
  return stories.some(({ id }) => id === mergeStory)
}

/** Those of the change itself, by which it is counted; of a merge that is all there is, that one. */
export function ownStories<T extends { readonly id: string }>(stories: readonly T[]): readonly T[] {
  const own = stories.filter(({ id }) => id !== mergeStory)
  return own.length === 0 ? stories : own
}

interface Judged<T> {
  readonly stories: readonly T[]
  readonly byHand?: readonly string[]
  readonly outcome?: { readonly stopReason: string } | undefined
}

/** What a person has ticked, and a gate does not pass. */
export function refusedByGate({ byHand = [], outcome }: Omit<Judged<unknown>, 'stories'>): readonly string[] {
  return outcome?.stopReason === 'hand' || outcome?.stopReason === 'gate' ? byHand : []
}

/** What a gate has refused is ticked, and not done. */
export function provenStories<T extends { readonly id: string; readonly status: string }>(
  state: Judged<T>,
): readonly (T | (Omit<T, 'status'> & { readonly status: 'open' }))[] {
  const refused = refusedByGate(state)
  return state.stories.map((story) =>
    story.status === 'done' && refused.includes(story.id) ? { ...story, status: 'open' as const } : story,
  )
}

export interface Story {
  readonly id: string
  readonly title: string
  /** Prose of the story that belongs to no task. */
  readonly intro: string
  readonly tasks: readonly Task[]
}

export interface Lint {
  readonly file: string
  readonly line: number
  readonly message: string
}

export interface Plan {
  readonly stories: readonly Story[]
  /** As OpenSpec counts: every box, phantom ones too. */
  readonly tasksDone: number
  readonly tasksTotal: number
  readonly lints: readonly Lint[]
  /** Headings without boxes (Notes, Dependencies …), for the prompt's outline. */
  readonly notes: readonly { readonly title: string; readonly text: string }[]
}

export type StoryStatus = 'open' | 'done' | 'human' | 'deferred'

/** A story is open while an agent has something to do in it; after that, what is left decides. */
export function storyStatus(story: Story): StoryStatus {
  const has = (state: TaskState): boolean => story.tasks.some((task) => task.state === state)
  if (has('open')) return 'open'
  if (has('human')) return 'human'
  return has('done') ? 'done' : 'deferred'
}
