// What the commit of a checkpoint says of its story, from the plan as it is now.
import { checkpointAbout } from '../core/commit-text.ts'
import type { LoopState } from '../core/state.ts'
import type { SpecSource } from '../ports.ts'

/** A plan that cannot be read is told where that matters: at its next reading. Here it is only prose. */
export async function aboutStory(
  spec: Pick<SpecSource, 'read'>,
  state: LoopState,
  { storyId, agent }: { readonly storyId: string; readonly agent: string },
): Promise<string> {
  const plan = await spec.read().catch(() => undefined)
  const story = plan?.stories.find(({ id }) => id === storyId)
  const title = story?.title ?? state.stories.find(({ id }) => id === storyId)?.title ?? ''
  return checkpointAbout({ changeId: state.changeId, storyId, agent, story, title })
}
