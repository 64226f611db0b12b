// The checks, one line each, with the way to fix what is wrong.
import type { Diagnosis, Fix } from '../app.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { mark } from '../vocabulary.ts'
import { oneLine, plural, widthOf } from './text.ts'

export function doctorText({ checks, fixes }: Diagnosis, sheet: Sheet): string {
  const { paint } = sheet
  const width = Math.max(
    ...checks.map(({ name }) => widthOf(oneLine(name))).filter((each) => each <= mostName),
  )
  const indent = width + 4
  const lines = checks.flatMap(({ name, verdict, detail, fix }) => {
    const label = oneLine(name)
    const isLong = widthOf(label) > width
    const [first = '', ...rest] = entryLines({ indent, text: oneLine(detail) }, sheet)
    const [way = '', ...more] = entryLines({ indent, text: `fix: ${oneLine(fix)}` }, sheet)
    const head = `${mark(meanings[verdict], paint)} ${paint.bold(label)}`
    return [
      ...(isLong
        ? [head, first]
        : [`${head}${' '.repeat(width - widthOf(label) + 2)}${first.slice(indent)}`]),
      ...rest,
      ...(fix === '' ? [] : [way.replace('fix:', paint.dim('fix:')), ...more]),
    ]
  })
  const problems = checks.filter((check) => check.verdict === 'problem').length
  const red = checks.filter((check) => check.is_red).length
  const but = red === 0 ? '' : `, but ${plural(red, 'gate fails', 'gates fail')} without an agent`
  const end =
    problems === 0
      ? `ralph can run here${but}`
      : `${plural(problems, 'problem')} to fix before a loop can run`
  return [...(fixes === undefined ? [] : [...fixLines(fixes, sheet), '']), ...lines, '', end].join('\n')
}

function fixLines(fixes: readonly Fix[], sheet: Sheet): readonly string[] {
  const { paint } = sheet
  if (fixes.length === 0) return ['found nothing that is safe to fix']
  return fixes.flatMap(({ name, before, after, failed }) => {
    const [word, style] = failed === undefined ? ['fixed', paint.green] : ['failed', paint.red]
    const now = failed === undefined ? `now: ${after}` : `not fixed: ${failed}`
    const text = `${oneLine(name)}: ${oneLine(before)}; ${oneLine(now)}`
    const [first = '', ...rest] = entryLines({ indent: 8, text }, sheet)
    return [`${style(word.padEnd(6))}  ${first.slice(8)}`, ...rest]
  })
}

/** A longer name has a line of its own. */
const mostName = 20

const meanings = { ok: 'done', warning: 'human', problem: 'failed' } as const
