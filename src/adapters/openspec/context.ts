// Gathers, fresh from disk, all that the prompt says about the project and the change.
import { relative } from 'node:path'
import { shellWord } from '../../core/shell-word.ts'
import type { PromptInput } from '../../core/prompt.ts'
import { changeDirOf, readTitle } from './changes.ts'
import { readCurrent, readDeltas, readDocuments, shownPath } from './documents.ts'
import { readLearnings } from './learnings.ts'
import { readProject } from './project.ts'
import type { TrackedFile } from './tracked.ts'
import { verificationCommands } from './verification.ts'

export interface ContextDeps {
  readonly worktree: string
  /** The folder that holds `openspec/`; maybe in another repository. */
  readonly root: string
  readonly change: string
  readonly learningsPath: string
  readonly env: NodeJS.ProcessEnv
  /** `prompt_append` */
  readonly append?: string
}

export async function promptContext(
  deps: ContextDeps,
  tracked: readonly TrackedFile[],
): Promise<Omit<PromptInput, 'previousFailure' | 'feedback' | 'offersClaims'>> {
  const { worktree, root, change } = deps
  const changeDir = changeDirOf(root, change)
  const project = await readProject(root)
  const deltas = await readDeltas(changeDir, worktree)
  const taskPaths = tracked.map(({ path }) => path)
  return {
    changeName: change,
    title: await readTitle(root, change),
    changeDir: shownPath(worktree, changeDir),
    tasksPath: taskPaths.map((path) => shownPath(worktree, path)).join(', ') || 'tasks.md',
    documents: await readDocuments(changeDir, worktree, taskPaths),
    deltas,
    current: await readCurrent(root, worktree, deltas),
    projectContext: project.context,
    projectContextPath: shownPath(worktree, project.contextPath),
    guidance: project.guidance,
    verification: await commands(worktree, root),
    learningsPath: deps.learningsPath,
    learnings: await readLearnings(deps.learningsPath),
    ...(deps.append !== undefined && { append: deps.append }),
  }
}

/** Of the work tree, and of the folder with `openspec/` where that is a part of it (a package of a monorepo). */
async function commands(worktree: string, root: string): Promise<readonly string[]> {
  const own = await verificationCommands(worktree)
  const folder = relative(worktree, root)
  if (folder === '' || folder.startsWith('..')) return own
  return [
    ...own,
    ...(await verificationCommands(root)).map((command) => `(cd ${shellWord(folder)} && ${command})`),
  ]
}
