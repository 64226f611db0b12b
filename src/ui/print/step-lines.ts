// Commands to type, each with what it is for: in columns as far as they fit, and never broken, so that they can be copied.
import { entryLines, folded, widthFor } from './layout.ts'
import type { Sheet } from './layout.ts'
import { widthOf } from './text.ts'

export type Step = readonly [label: string, command: string, why: string]

/** What a command that did something says is next; sentences stay sentences. */
export function onwardLines(next: string, sheet: Sheet): readonly string[] {
  const steps = next.split('; ').map((part): Step => {
    const [command = '', why = ''] = part.split('   ')
    return ['next', command, why]
  })
  return steps.every(([, command]) => /^(?:ralph|git|npx|openspec|cd) /.test(command))
    ? stepLines(steps, { indent: 2, column: 9 }, sheet)
    : [folded(`next: ${next}`, sheet.columns)]
}

export function stepLines(
  steps: readonly Step[],
  /** `column`: where the commands begin. */
  { indent, column: start }: { readonly indent: number; readonly column: number },
  sheet: Sheet,
): readonly string[] {
  const { paint } = sheet
  const width = widthFor(sheet) ?? Number.POSITIVE_INFINITY
  const inColumn = (column: number): readonly Step[] =>
    steps.filter(
      ([, command, why]) =>
        why !== '' && widthOf(command) <= column && start + column + 3 + widthOf(why) <= width,
    )
  // The column that most of them fit into; one long command does not push the others out of theirs.
  const [column = 0] = steps
    .map(([, command]) => widthOf(command))
    .toSorted((a, b) => inColumn(b).length - inColumn(a).length || a - b)
  const aligned = inColumn(column)
  return steps.flatMap((step, at) => {
    const [label, command, why] = step
    const isSame = label === steps[at - 1]?.[0]
    const head = `${' '.repeat(indent)}${isSame ? '' : label}`.padEnd(start)
    const line = `${paint.dim(head)}${paint.bold(command)}`
    if (start + widthOf(command) > width && why === '' && !isSame)
      return [paint.dim(head.trimEnd()), `${' '.repeat(indent + 2)}${paint.bold(command)}`]
    if (why === '') return [line]
    const gap = 3 + (aligned.includes(step) ? column - widthOf(command) : 0)
    if (start + widthOf(command) + gap + widthOf(why) <= width)
      return [`${line}${' '.repeat(gap)}${paint.dim(why)}`]
    return [line, ...entryLines({ indent: start, text: why, style: paint.dim }, sheet)]
  })
}
