// The end of a change: OpenSpec's archive, which is a step that only the user asks for.
import * as z from 'zod'
import { RalphError } from '../../core/error.ts'
import { parseTasks } from '../../core/tasks.ts'
import { changeDirOf } from './changes.ts'
import type { OpenSpecCli } from './cli.ts'
import { taskPattern } from './project.ts'
import { readTracked, trackedFiles } from './tracked.ts'

export interface Archived {
  readonly archivedAs: string
  readonly path: string
  readonly message: string
}

const archiveSchema = z.looseObject({
  archive: z.looseObject({ archivedAs: z.string(), path: z.string().optional() }),
})

/** `openspec archive -y` also waves open tasks through, so the boxes are counted here first. */
export async function archiveChange(
  cli: OpenSpecCli,
  root: string,
  change: string,
  env: NodeJS.ProcessEnv,
): Promise<Archived> {
  const changeDir = changeDirOf(root, change)
  const plan = parseTasks(
    await readTracked(await trackedFiles(changeDir, await taskPattern(root, changeDir, env))),
  )
  const open = plan.boxes.filter((box) => box.task.state !== 'done')
  if (plan.tasksTotal === 0 || open.length > 0) {
    const names = open
      .slice(0, 5)
      .map(({ task, description }) => `${task.file}:${task.line} ${description}`.trim())
    const what =
      plan.tasksTotal === 0 ? 'it has no tasks' : `${open.length} boxes are open: ${names.join('; ')}`
    throw new RalphError('human_needed', `${change} was not archived: ${what}`, {
      hint: `Nothing was moved. Finish or tick them, then run \`openspec archive ${change}\`.`,
    })
  }
  const answer = await cli.run(['archive', change, '--json', '-y'], root)
  const done = archiveSchema.safeParse(answer.json).data?.archive
  if (answer.ok && done !== undefined) {
    return {
      archivedAs: done.archivedAs,
      path: done.path ?? '',
      message: `${change} is archived as ${done.archivedAs}`,
    }
  }
  const why = answer.ok ? 'it gave no answer' : answer.message
  throw new RalphError('human_needed', `openspec did not archive ${change}: ${why}`, {
    hint:
      (answer.ok ? '' : answer.fix) ||
      `The work is done and safe. Run \`openspec archive ${change}\` yourself.`,
  })
}
