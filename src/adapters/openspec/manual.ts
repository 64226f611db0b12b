// A manual loop's plan: the user's own words, no stories; the change folder is guarded all the same.
import { manualPrompt } from '../../core/prompt.ts'
import { parseTasks } from '../../core/tasks.ts'
import type { SpecSource } from '../../ports.ts'
import { changeDirOf } from './changes.ts'
import { promptContext } from './context.ts'
import { judgeAgent } from './judge.ts'
import { taskPattern } from './project.ts'
import { guarding, restoreGuarded } from './source.ts'
import type { SourceDeps } from './source.ts'
import { readTracked, trackedFiles, type TrackedFile } from './tracked.ts'

export interface ManualDeps extends SourceDeps {
  readonly task: string
  /** What the merge queue has given to the agent to put together: even of the plan. */
  readonly inConflict?: () => Promise<readonly string[]>
  /** The queue asks for a merge: the stories of the change are done already, and stay in its record. */
  readonly isMerge?: () => Promise<boolean>
}

export function manualSource(deps: ManualDeps): SpecSource {
  const changeDir = changeDirOf(deps.root, deps.change)
  const places = { root: deps.root, changeDir, guardDir: deps.guardDir, env: deps.env }
  const pattern = (): Promise<string> => taskPattern(deps.root, changeDir, deps.env)
  const files = async (): Promise<readonly TrackedFile[]> =>
    trackedFiles(changeDir, await pattern(), deps.worktree)
  return {
    read: async () => {
      const plan = parseTasks(await readTracked(await files()))
      return (await deps.isMerge?.()) === true ? plan : { ...plan, stories: [] }
    },
    prompt: async ({ previousFailure, feedback, offersClaims = false }) =>
      manualPrompt({
        ...(await promptContext(deps, await files())),
        task: deps.task,
        ...(previousFailure !== undefined && { previousFailure }),
        ...(feedback !== undefined && { feedback }),
        offersClaims,
      }),
    ...guarding(deps, places, pattern, files),
    judge: async () => {
      const mayEdit = new Set((await deps.inConflict?.()) ?? [])
      return judgeAgent({ ...places, mayEdit }, await pattern(), undefined)
    },
    putBack: async () => {
      await restoreGuarded(deps, places)
      return []
    },
    tick: () => Promise.resolve(0),
  }
}
