// The files that hold a change's boxes: what its schema tracks, else tasks.md in the change folder, else in the work tree's root.
import { join } from 'node:path'
import { RalphError } from '../../core/error.ts'
import { parseTasks, type ReadPlan, type TasksFile } from '../../core/tasks.ts'
import { readFile } from '../files/now.ts'
import { isMissing, lstatIfThere } from '../files/whole.ts'
import { findFiles } from './glob.ts'

export interface TrackedFile {
  /** Relative to the change folder; `tasks.md` also for the one in the work tree's root. */
  readonly file: string
  readonly path: string
}

export async function trackedFiles(
  changeDir: string,
  pattern: string,
  worktree?: string,
): Promise<readonly TrackedFile[]> {
  const found = await findFiles(changeDir, pattern).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  if (found.length > 0) return found.map((file) => ({ file, path: join(changeDir, file) }))
  const others = [changeDir, ...(worktree === undefined ? [] : [worktree])].map((folder) =>
    join(folder, 'tasks.md'),
  )
  // A broken link or a folder of that name is there, too: reading it fails with a word, where "no tasks.md" would be a lie.
  for (const path of others) if ((await lstatIfThere(path)) !== undefined) return [{ file: 'tasks.md', path }]
  return []
}

/** The done criteria when the user names none; `tasksFile` is '' for a manual loop. */
export async function doneCriteria(
  changeDir: string,
  pattern: string,
  worktree: string,
): Promise<{ readonly criteria: 'tasks' | 'manual'; readonly tasksFile: string; readonly warning: string }> {
  const [first] = await trackedFiles(changeDir, pattern, worktree)
  if (first !== undefined) return { criteria: 'tasks', tasksFile: first.path, warning: '' }
  return { criteria: 'manual', tasksFile: '', warning: 'No tasks.md found, using manual done criteria' }
}

/** Never "no tasks" for a file that could not be read. */
export async function readTracked(
  files: readonly TrackedFile[],
): Promise<readonly (TasksFile & { bytes: Buffer })[]> {
  return Promise.all(
    files.map(async ({ file, path }) => {
      try {
        const bytes = await readFile(path)
        return { file, bytes, text: bytes.toString('utf8') }
      } catch (error) {
        throw new RalphError('spec_unreadable', `${path} cannot be read: ${(error as Error).message}`, {
          hint: 'Nothing was changed. Make the file readable (or bring it back from git) and run the command again.',
          cause: error,
        })
      }
    }),
  )
}

/** Between two agents the same plan is read again and again. */
let last: { readonly key: string; readonly plan: ReadPlan } | undefined

export function planOf(files: readonly TasksFile[], where: string): ReadPlan {
  const key = JSON.stringify(files.map(({ file, text }) => [file, text]))
  const plan = last?.key === key ? last.plan : parseTasks(files)
  last = { key, plan }
  if (plan.tasksTotal > 0) return plan
  const isEmpty = files.every(({ text }) => text.trim() === '')
  const message = isEmpty ? `${where} is empty` : `${where} has no boxes`
  throw new RalphError('no_tasks', `${message}, so it has no tasks to run`, {
    hint: 'Write each task as `- [ ] text`, or run the loop with `--done manual`.',
  })
}
