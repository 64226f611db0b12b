// What `ralph up` would do, as a table: which changes, in which order, what each waits for, and how they are checked.
import type { UpPlan } from '../app.ts'
import { gatelessWords } from './header.ts'
import { uncommittedWords } from './queue.ts'
import { factLines } from './facts.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { table } from './table.ts'
import { oneLine } from './text.ts'

const words: Readonly<Record<UpPlan['changes'][number]['does'], string>> = {
  run: 'begins',
  resume: 'is resumed',
  adopt: 'runs already',
  land: 'lands: its loop is done',
  resolve: 'an agent merges its conflict',
  wait: 'waits',
  leave: 'is left as it is',
}

const landings = {
  squash: ', one commit for each',
  merge: ', each with its history',
  no: ', later: --no-land',
} as const

export function upPlanText(
  { target, jobs, land, gates, gate_offered: offered, uncommitted, changes }: UpPlan,
  sheet: Sheet,
): string {
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
    ['gates', proven],
  ] as const
  return [
    ...entryLines({ text: title, style: paint.bold }, sheet),
    ...factLines(facts, { paint, width: 7, columns }),
    changes.length === 0
      ? '  nothing would run: all have landed'
      : table(['change', 'stories', 'after', 'at first'], rows, paint, columns),
    ...uncommittedWords(uncommitted).flatMap((text) => entryLines({ text }, sheet)),
  ].join('\n')
}
