// The last look at a change whose stories are all complete: does OpenSpec agree, what is left, and its archive if wished for.
import { archiveChange } from '../adapters/openspec/finish.ts'
import { cleanAttempts } from '../adapters/git/attempt/attempts.ts'
import type { Config } from '../config/options.ts'
import { inOneLine, RalphError } from '../core/error.ts'
import type { WrapUp } from '../engine/run.ts'
import { openspecWords } from './beforehand.ts'
import type { OpenedChange } from './plan.ts'
import type { Site } from './site.ts'

export function wrapUpOf(
  site: Site,
  change: OpenedChange,
  config: Config,
  home: Site,
  checked: () => Promise<unknown>,
): () => Promise<WrapUp> {
  return async () => {
    const { cli, check, root, name } = change
    await checked()
    const warnings = await leftovers(change)
    if (site !== home) warnings.push(...(await leftBehind(site, change)))
    if (cli === undefined) {
      if (config.archive) warnings.push(`${name} was not archived: the openspec program is not installed`)
      return { warnings }
    }
    const validation = await check?.validate()
    warnings.push(...(validation?.issues ?? []).map((issue) => `openspec validate: ${issue}`))
    if (!config.archive) return { warnings }
    try {
      await archiveChange(cli, root, name, site.env)
      // The attempts of an archived change have served; they go only when its archive is in a commit.
      const after = async (): Promise<void> => {
        await cleanAttempts(site.git, name)
      }
      return { warnings, checkpoint: { message: `archive: ${name}`, after } }
    } catch (error) {
      if (!(error instanceof RalphError)) throw error
      return { warnings: [...warnings, inOneLine(error)] }
    }
  }
}

/** A plan that is done before the loop leaves the repository untouched, and a wish that is not granted is said. */
export function unarchived(
  { plan, name }: OpenedChange,
  config: Pick<Config, 'archive'>,
  env: NodeJS.ProcessEnv,
): string {
  const isDone = plan.tasksTotal > 0 && plan.tasksDone === plan.tasksTotal
  return config.archive && isDone
    ? `${name} has no open box, so no loop runs and nothing is archived: type ${openspecWords(env)} archive ${name}`
    : ''
}

/** What OpenSpec will still count as open: deferred and phantom boxes. */
async function leftovers(change: OpenedChange): Promise<string[]> {
  const plan = await change.spec.read()
  const left = plan.stories.flatMap((story) =>
    story.tasks.filter((task) => task.state === 'deferred' || task.state === 'phantom'),
  )
  return left.map((task) => `left open (${task.state}): ${task.file}:${task.line} ${task.text}`)
}

/** Git carries the work from one work tree to the other, but not boxes in a file that it ignores: without a word the list would look undone. */
async function leftBehind(site: Site, { tasksFile }: OpenedChange): Promise<string[]> {
  if (tasksFile === '') return []
  // Not check-ignore, which knows no literal paths; 128: the plan lies outside of the repository.
  const ignored = ['ls-files', '--others', '--ignored', '--exclude-standard', '--', tasksFile]
  if ((await site.git.line(ignored, { accept: [128] })) === '') return []
  return [
    `git ignores ${tasksFile}, so its ticked boxes stay in ${site.git.worktree}: copy it from there before you remove that folder`,
  ]
}
