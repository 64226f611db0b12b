// The checks, one line each, with the way to fix what is wrong.
import type { Diagnosis } from '../app.ts'
import { entryLines } from './layout.ts'
import type { Sheet } from './layout.ts'
import { oneLine, plural } from './text.ts'

export function doctorText({ checks }: Diagnosis, sheet: Sheet): string {
  const { paint } = sheet
  const marks = { ok: paint.green, warning: paint.yellow, problem: paint.red }
  const lines = checks.flatMap(({ name, verdict, detail, fix }) => {
    const label = `${oneLine(name)}:`
    const [first = '', ...rest] = entryLines({ indent, text: `${label} ${oneLine(detail)}` }, sheet)
    const said = first.slice(indent).replace(label, () => `${paint.bold(oneLine(name))}:`)
    const [way = '', ...more] = entryLines({ indent, text: `fix: ${oneLine(fix)}` }, sheet)
    return [
      `${marks[verdict](verdict.padEnd(7))}  ${said}`,
      ...rest,
      ...(fix === '' ? [] : [way.replace('fix:', paint.dim('fix:')), ...more]),
    ]
  })
  const problems = checks.filter((check) => check.verdict === 'problem').length
  const end =
    problems === 0 ? 'ralph can run here' : `${plural(problems, 'problem')} to fix before a loop can run`
  return [...lines, '', end].join('\n')
}

const indent = 9
