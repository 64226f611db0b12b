// What a loop would do, in about ten lines: which stories, where, with whom, how it is checked, and whether it may start.
import type { DryRun } from '../app.ts'
import type { Paint } from '../io.ts'
import { agentName } from '../vocabulary.ts'
import { branchName, storyName } from './describe.ts'
import { factLines } from './facts.ts'
import type { Fact } from './facts.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { stepLines } from './step-lines.ts'
import { clean, oneLine, plural } from './text.ts'

export function dryRunText(
  plan: DryRun,
  sheet: Sheet,
  // `typed`: the options of this start, to be repeated with the real one.
  { prompts: withPrompts, typed }: { readonly prompts: boolean; readonly typed: string },
): string {
  const { paint, columns } = sheet
  const page = { paint, width: 10, columns }
  const change = oneLine(plan.change_id)
  const isNothing = plan.stories.length === 0
  const facts: Fact[] = [
    ['stories', storyWords(plan)],
    ['where', whereWords(plan)],
    ['agent', isNothing ? 'none is needed' : agentWords(plan)],
    ['gates', gateWords(plan)],
    ...(isNothing
      ? []
      : ([
          [
            'limits',
            plan.done_criteria === 'manual'
              ? plural(plan.max_iterations, 'attempt')
              : `${plural(1 + plan.max_retries, 'attempt')} for each story, ${String(plan.max_iterations)} in all`,
          ],
          ['at the end', endings[plan.on_complete]],
        ] as const)),
  ]
  const { refused } = plan
  const title = `${change}: what a start would do (nothing is started, nothing is changed)`
  return [
    ...entryLines({ text: title, style: paint.bold }, sheet),
    ...factLines(facts, page),
    ...plan.warnings.flatMap((warning) => said('warning:', paint.yellow, warning, sheet)),
    ...(refused === undefined
      ? stepLines(
          isNothing
            ? [['next', `ralph status ${change}`, 'where it stands']]
            : [
                ['next', `ralph loop ${change}${typed}`, ''],
                ...(withPrompts
                  ? []
                  : [['prompts', `ralph loop ${change} --dry-run --prompts${typed}`, ''] as const]),
              ],
          { indent: 2, column: 13 },
          sheet,
        )
      : refusedLines(refused, sheet)),
    ...(withPrompts ? prompts(plan, paint) : []),
  ].join('\n')
}

function said(label: string, style: (text: string) => string, text: string, sheet: Sheet): readonly string[] {
  const [first = '', ...rest] = entryLines({ indent: 4, text: `${label} ${oneLine(text)}` }, sheet)
  return [first.slice(2).replace(label, () => style(label)), ...rest]
}

export function refusedLines(
  { message, hint }: NonNullable<DryRun['refused']>,
  sheet: Sheet,
): readonly string[] {
  return [
    ...said('A start would be refused now:', sheet.paint.red, message, sheet),
    ...(hint === '' ? [] : hint.split('\n')).flatMap((line) =>
      entryLines({ indent: 4, text: oneLine(line) }, sheet),
    ),
  ]
}

const endings = {
  ask: 'you are asked where the work goes',
  cleanup: 'the work is uncommitted on your branch',
  keep: 'the work stays on its own branch',
} as const

const mostNamed = 4

function storyWords({
  stories,
  stories_total: total,
  done_criteria: criteria,
  gates_only: judges,
}: DryRun): string {
  if (criteria === 'manual')
    return `one task, until you say that it is done: ${oneLine(stories[0]?.title ?? '')}`
  if (stories.length === 0)
    return `none of ${String(total)} is open: ${judges ? 'no agent would run, only the gates, once' : 'nothing would run'}`
  const named = stories
    .slice(0, mostNamed)
    .map(
      (story) =>
        `${storyName(story.id, story.title)} (${plural(story.tasks_total - story.tasks_done, 'task')})`,
    )
  const rest = stories.length - named.length
  return `${String(stories.length)} of ${String(total)} would run: ${named.join(', ')}${rest > 0 ? ` and ${String(rest)} more` : ''}`
}

function whereWords(plan: DryRun): string {
  const from = branchName(plan.original_branch)
  const branch =
    plan.branch === plan.original_branch ? `your branch ${from}` : `${oneLine(plan.branch)}, from ${from}`
  return plan.own_worktree
    ? `${branch}, in a work tree of its own`
    : `${branch}, in ${oneLine(plan.worktree)}`
}

export function agentWords({
  agents,
  agent_program: program,
  billing,
}: Pick<DryRun, 'agents' | 'agent_program' | 'billing'>): string {
  if (agents.length === 0) return 'none is installed'
  const words = agents.map((agent) => {
    const pays = billing[agent]
    if (pays === undefined) return agentName(agent, program)
    return `${agent} (${pays === 'unknown' ? 'login not known' : oneLine(pays)})`
  })
  return words.join(', then ')
}

function gateWords({ gates, gate_offered: offer }: DryRun): string {
  if (gates.length > 0) return gates.map(oneLine).join(' | ')
  const word = "none: the agent's word counts"
  return offer === '' ? word : `${word} (found ${oneLine(offer)}: add --verify "${oneLine(offer)}")`
}

function prompts({ stories }: DryRun, paint: Paint): readonly string[] {
  return stories.flatMap((story, index) => [
    '',
    paint.bold(`story ${String(index + 1)}/${String(stories.length)}: ${storyName(story.id, story.title)}`),
    clean(story.prompt).trimEnd(),
  ])
}
