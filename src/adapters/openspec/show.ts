// One change for `ralph show`: stories, tasks and scenarios, as contract 9 names the fields.
import type { ChangeDetail } from '../../core/change.ts'
import { storyStatus } from '../../core/story.ts'
import { parseTasks } from '../../core/tasks.ts'
import { changeDirOf, readTitle } from './changes.ts'
import { readDeltas } from './documents.ts'
import { taskPattern } from './project.ts'
import { readTracked, trackedFiles } from './tracked.ts'

/** `worktree` lets a change without a tasks.md of its own use the one in the work tree's root. */
export async function showChange(
  root: string,
  change: string,
  env: NodeJS.ProcessEnv,
  worktree?: string,
): Promise<ChangeDetail> {
  const changeDir = changeDirOf(root, change)
  const pattern = await taskPattern(root, changeDir, env)
  const plan = parseTasks(await readTracked(await trackedFiles(changeDir, pattern, worktree)))
  const deltas = await readDeltas(changeDir, changeDir)
  return {
    name: change,
    title: await readTitle(root, change),
    stories: plan.stories.map((story) => ({
      id: story.id,
      title: story.title,
      status: storyStatus(story),
      tasks: story.tasks.map(({ id, text, state, line }) => ({ id, text, state, line })),
    })),
    scenarios: deltas.flatMap(({ capability, requirements }) =>
      requirements.flatMap((each) =>
        each.scenarios.map(({ name, steps }) => ({ capability, requirement: each.name, name, steps })),
      ),
    ),
    lints: plan.lints.map(({ file, line, message }) => `${file}:${line} ${message}`),
  }
}
