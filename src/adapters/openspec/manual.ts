// A manual loop's plan: the user's own words, no stories; the change folder is guarded all the same.
import { manualPrompt } from '../../core/prompt.ts'
import { parseTasks } from '../../core/tasks.ts'
import type { SpecSource } from '../../ports.ts'
import { changeDirOf } from './changes.ts'
import { promptContext } from './context.ts'
import { readGuard, takeGuard } from './guard.ts'
import { addLearning } from './learnings.ts'
import { addedTasks, watchPlan, judgeAgent } from './judge.ts'
import { taskPattern } from './project.ts'
import { restoreAll, stays } from './restore.ts'
import { restoreRules } from './rules.ts'
import type { SourceDeps } from './source.ts'
import { readTracked, trackedFiles, type TrackedFile } from './tracked.ts'

export interface ManualDeps extends SourceDeps {
  readonly task: string
  /** What the merge queue has given to the agent to put together: even of the plan. */
  readonly inConflict?: () => Promise<readonly string[]>
}

export function manualSource(deps: ManualDeps): SpecSource {
  const changeDir = changeDirOf(deps.root, deps.change)
  const places = { root: deps.root, changeDir, guardDir: deps.guardDir, env: deps.env }
  const pattern = (): Promise<string> => taskPattern(deps.root, changeDir, deps.env)
  const files = async (): Promise<readonly TrackedFile[]> =>
    trackedFiles(changeDir, await pattern(), deps.worktree)
  return {
    read: async () => {
      const { tasksDone, tasksTotal, lints, notes } = parseTasks(await readTracked(await files()))
      return { stories: [], tasksDone, tasksTotal, lints, notes }
    },
    prompt: async ({ previousFailure, feedback, offersClaims = false }) =>
      manualPrompt({
        ...(await promptContext(deps, await files())),
        task: deps.task,
        ...(previousFailure !== undefined && { previousFailure }),
        ...(feedback !== undefined && { feedback }),
        offersClaims,
      }),
    guard: async () => takeGuard(places, await files()),
    judge: async () => {
      const mayEdit = new Set((await deps.inConflict?.()) ?? [])
      return judgeAgent({ ...places, mayEdit }, await pattern(), undefined)
    },
    watch: async () => watchPlan(places, await pattern(), await files()),
    added: () => addedTasks(places),
    putBack: async () => {
      const guarded = await readGuard(places)
      if (guarded === undefined) return []
      await restoreAll(deps.guardDir, guarded, changeDir, stays(deps.absence?.()))
      await restoreRules(places, guarded, stays(deps.absence?.()))
      return []
    },
    tick: () => Promise.resolve(0),
    learn: (text) => addLearning(deps.learningsPath, text),
  }
}
