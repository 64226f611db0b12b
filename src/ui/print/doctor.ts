// The checks, one line each, with the way to fix what is wrong.
import type { Diagnosis } from '../app.ts'
import type { Paint } from '../io.ts'
import { oneLine, plural } from './text.ts'

export function doctorText({ checks }: Diagnosis, paint: Paint): string {
  const marks = {
    ok: paint.green('ok     '),
    warning: paint.yellow('warning'),
    problem: paint.red('problem'),
  }
  const lines = checks.flatMap(({ name, verdict, detail, fix }) => [
    `${marks[verdict]}  ${paint.bold(oneLine(name))}: ${oneLine(detail)}`,
    ...(fix === '' ? [] : [`         ${paint.dim('fix:')} ${oneLine(fix)}`]),
  ])
  const problems = checks.filter((check) => check.verdict === 'problem').length
  const end =
    problems === 0 ? 'ralph can run here' : `${plural(problems, 'problem')} to fix before a loop can run`
  return [...lines, '', end].join('\n')
}
