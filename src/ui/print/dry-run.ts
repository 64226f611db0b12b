// What a loop would do: where, with whom, in which order, and the prompts it would send.
import type { DryRun } from '../app.ts'
import type { Paint } from '../io.ts'
import { branchName, storyName } from './describe.ts'
import { clean, oneLine, plural } from './text.ts'

export function dryRunText(plan: DryRun, paint: Paint): string {
  const head = [
    paint.bold(`dry run of ${oneLine(plan.change_id)}: nothing is spawned, nothing is changed`),
    `  work tree  ${oneLine(plan.worktree)}`,
    `  branch     ${oneLine(plan.branch)} (from ${branchName(plan.original_branch)})`,
    `  agent      ${plan.agents.join(', then ')}`,
    `  gates      ${plan.gates.map(oneLine).join(' | ') || 'none'}`,
    `  limits     ${plural(1 + plan.max_retries, 'attempt')} for each story, ${plural(plan.max_iterations, 'iteration')} in all`,
    ...plan.warnings.map((warning) => `  ${paint.yellow('warning:')} ${oneLine(warning)}`),
  ]
  const stories = plan.stories.flatMap((story, index) => [
    '',
    paint.bold(
      `story ${String(index + 1)}/${String(plan.stories.length)}: ${storyName(story.id, story.title)}`,
    ),
    clean(story.prompt).trimEnd(),
  ])
  return [...head, ...stories].join('\n')
}
