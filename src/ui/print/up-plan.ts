// What `ralph up` would do, as a table: which changes, in which order, what each waits for, and how they are checked.
import type { UpPlan } from '../app.ts'
import { gatelessWords } from './header.ts'
import { agentWords, refusedLines } from './dry-run.ts'
import { uncommittedWords } from './queue.ts'
import { factLines } from './facts.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { table } from './table.ts'
import { oneLine, plural, tokens as tokenCount, usd } from './text.ts'

const words: Readonly<Record<UpPlan['changes'][number]['does'], string>> = {
  run: 'begins',
  resume: 'is resumed',
  adopt: 'runs already',
  land: 'lands: its loop is done',
  judge: 'lands if both sides of its conflict are merged, without markers',
  resolve: 'an agent merges its conflict',
  wait: 'waits',
  leave: 'is left as it is',
}

const landings = {
  squash: ', one commit for each',
  merge: ', each with its history',
  no: ', later: --no-land',
} as const

export function upPlanText(plan: UpPlan, sheet: Sheet): string {
  const { target, jobs, land, gates, gate_offered: offered, uncommitted, changes, refused } = plan
  const { paint, columns } = sheet
  const title = 'What ralph up would do (nothing is started, nothing is changed)'
  const isGateless = changes.every((each) => each.gates.length === 0)
  const proven =
    gates.length > 0
      ? gates.map(oneLine).join(' | ')
      : offered === undefined
        ? isGateless
          ? 'none'
          : 'of each its own'
        : gatelessWords(offered)
  const rows = changes.map((each) => {
    const others = each.gates.filter((gate) => !gates.includes(gate))
    const notes = [
      each.why === ''
        ? words[each.does]
        : each.does === 'wait'
          ? each.why
          : `${words[each.does]}: ${each.why}`,
      ...(each.target === target ? [] : [`lands on ${each.target}`]),
      ...(others.length === 0 ? [] : [`its own gates: ${others.join(' | ')}`]),
    ]
    return [
      oneLine(each.change),
      `${String(each.stories_done)}/${String(each.stories_total)}`,
      each.after.map(oneLine).join(', '),
      oneLine(notes.join('; ')),
    ]
  })
  const facts = [
    ['into', `${oneLine(target)}${landings[land]}`],
    ['at once', String(jobs)],
    ['agent', agentWords(plan)],
    ['gates', proven],
    ['limits', limitWords(plan.limits)],
  ] as const
  return [
    ...entryLines({ text: title, style: paint.bold }, sheet),
    ...factLines(facts, { paint, width: 7, columns }),
    changes.length === 0
      ? '  nothing would run: all have landed'
      : table(['change', 'stories', 'after', 'at first'], rows, paint, columns),
    ...uncommittedWords(uncommitted).flatMap((text) => entryLines({ text }, sheet)),
    ...(refused === undefined ? [] : refusedLines(refused, sheet)),
  ].join('\n')
}

function limitWords({
  max_retries: retries,
  max_iterations: most,
  max_tokens: tokens,
  max_cost_usd: cost,
}: UpPlan['limits']): string {
  return [
    `${plural(1 + retries, 'attempt')} for each story`,
    ...(most === undefined ? [] : [`${String(most)} in each loop`]),
    ...(tokens === undefined ? [] : [`${tokenCount(tokens)} tokens in each loop`]),
    ...(cost === undefined ? [] : [`${usd(cost)} for all`]),
  ].join(', ')
}
