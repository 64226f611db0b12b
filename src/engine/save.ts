// The checkpoint of an attempt that counts: what was saved, by name, and what a person should look at before trusting it.
import { firstNames } from '../core/first-names.ts'
import type { Command } from '../core/loop.ts'
import { withoutNamed } from '../core/lost-tests.ts'
import { shellWord } from '../core/shell-word.ts'
import type { SavedCheckpoint, SpecSource } from '../ports.ts'
import { aboutStory } from './about.ts'
import type { Context } from './context.ts'
import { stateOf } from './gate-check.ts'

/** Of a run that may have made or undone a whole generated tree. */
export const mostFiles = 20

export async function saveCheckpoint(
  { n, storyId, message, judged }: Extract<Command, { do: 'save_checkpoint' }>,
  context: Context,
): Promise<void> {
  const { ports, tell } = context
  const agent = context.state().current?.agent ?? ''
  const about = await aboutStory(ports.spec, context.state(), { storyId, agent })
  const saved = await ports.checkpoints.save(storyId, message, judged, about)
  const { refused, gone = [] } = saved
  if (refused !== undefined) return tell({ type: 'checkpoint.refused', n, ...stateOf(refused) })
  const kept = context.state().current?.kept?.gone ?? []
  const late = gone.filter(({ path }) => !kept.some((each) => each.path === path))
  for (const { path, restore } of [...kept, ...late]) {
    const words = `${path} was yours and not committed; while #${n} ran it was removed, reverted or overwritten. To get it back: ${restore}`
    await tell({ type: 'warning', code: 'user_file', message: words })
  }
  const { changeId } = context.state()
  await tellSaved({ ...saved, gone: late }, { n, storyId, message, changeId }, { spec: ports.spec, tell })
}

export async function tellSaved(
  saved: SavedCheckpoint,
  about: {
    readonly n: number
    readonly storyId: string
    readonly message: string
    readonly changeId: string
  },
  { spec, tell }: { readonly spec: Pick<SpecSource, 'read'>; readonly tell: Context['tell'] },
): Promise<void> {
  const { commit, changed, only_plan: isPlan, files = [], gone = [], changedTests: tests = [] } = saved
  const { n, storyId, message } = about
  const lost = await lostTests(saved, storyId, spec)
  if (lost.length > 0) {
    const what = lost.length === 1 ? 'a test' : `${lost.length} tests`
    const look = `Look: ralph diff ${n} ${shellWord(about.changeId)}`
    const words = `#${n} deleted or emptied ${what}: ${firstNames(lost)}. ${look}`
    await tell({ type: 'warning', code: 'tests_lost', message: words })
  }
  // What is gone is worth a look before what came.
  const first = files
    .toSorted((one, other) => Number(other.isDeleted) - Number(one.isDeleted))
    .slice(0, mostFiles)
  const deleted = first.flatMap(({ path, isDeleted }) => (isDeleted ? [path] : []))
  await tell({
    type: 'checkpoint.saved',
    n,
    story_id: storyId,
    message,
    commit,
    changed,
    ...(isPlan && { only_plan: isPlan }),
    ...(files.length > 0 && { files: first.map(({ path }) => path), files_total: files.length }),
    ...(deleted.length > 0 && { deleted }),
    ...(tests.length > 0 && { tests_changed: tests.slice(0, mostFiles) }),
    ...(gone.length > 0 && { gone: [...gone] }),
  })
}

/** Without those that the plan wants gone. */
async function lostTests(
  { lostTests: lost = [] }: SavedCheckpoint,
  storyId: string,
  spec: Pick<SpecSource, 'read'>,
): Promise<readonly string[]> {
  if (lost.length === 0) return []
  const plan = await spec.read().catch(() => undefined)
  const story = plan?.stories.find(({ id }) => id === storyId)
  return withoutNamed(lost, [story?.title ?? '', ...(story?.tasks ?? []).map(({ text }) => text)])
}
