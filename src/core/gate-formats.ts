// What the common test programs, compilers and linters print about a failure: one reader for each format.
import type { GateFailure } from './gate-failure.ts'

export type Found = Omit<GateFailure, 'also'> & {
  /** Of every test that fails. */
  readonly names?: readonly string[]
  /** The line of the output that begins to tell it. */
  readonly at: number
}
type Format = (lines: readonly string[]) => Found | undefined

/** Colours off; a bar that was drawn over itself is what it was last. */
export function plainLines(output: string): readonly string[] {
  return output
    .replaceAll(/\u001B\[[0-9;?]*[ -/]*[@-~]/g, '')
    .split(/\r?\n/)
    .map((line) => line.slice(line.lastIndexOf('\r') + 1).trimEnd())
}

/** What npm and its like say about a script that failed: nothing about why. */
export function isOfPackageManager(line: string): boolean {
  return /^(?:npm (?:ERR!|error|warn)|\s*ELIFECYCLE|error Command failed|info Visit|error: script )/.test(
    line,
  )
}

const jest: Format = (lines) => {
  if (!lines.some((line) => /^\s*FAIL\s/.test(line))) return undefined
  const at = lines.findIndex((line) => /^\s*● (?!Console)/.test(line))
  if (at < 0) return undefined
  const rest = lines.slice(at + 1)
  const body = until(rest, (line) => /^\s*(?:>?\s*\d+ \||at |● )/.test(line))
  const pair = body.filter((line) => /^\s*(?:Expected|Received)\b/.test(line))
  const names = lines.slice(at).flatMap((line) => /^\s*● (?!Console)(.+)$/.exec(line)?.[1] ?? [])
  return {
    at,
    what: names[0] ?? '',
    names,
    message: told(pair.length > 0 ? pair : body),
    where: firstMatch(rest, /^\s*at .*?\(?([^\s()]+:\d+:\d+)\)?$/),
  }
}

const go: Format = (lines) => {
  const named = (line: string): string | undefined => /^\s*--- FAIL: (\S+)/.exec(line)?.[1]
  const failed = lines.flatMap((line) => named(line) ?? [])
  // A subtest stands below its parent.
  const names = failed.filter((name) => !failed.some((other) => other.startsWith(`${name}/`)))
  const [what] = names
  if (what === undefined) return undefined
  const at = lines.findIndex((line) => named(line) === what)
  const said = /^\s+(\S+_test\.go:\d+):(?: (.*))?$/
  const after = until(lines.slice(at + 1), (line) => !/^\s/.test(line))
  const from = lines.findLastIndex((line, index) => index < at && /^=== RUN|^\s*--- /.test(line))
  const before = lines.slice(from + 1, at)
  const found = [...after, ...before].map((line) => said.exec(line)).find((match) => match !== null)
  if (found === undefined) {
    const rest = lines.slice(at + 1)
    return {
      at,
      what,
      names,
      message: rest.filter((line) => line.startsWith('panic: ')).slice(0, 1),
      where: firstMatch(rest, /^\s+(\S+_test\.go:\d+)(?: |$)/),
    }
  }
  // Of testify: its own lines tell it.
  const error = after.findIndex((line) => /^\s*Error:\s/.test(line))
  const block = until(after.slice(error), (line) => /^\s*(?:Diff|Messages|Test):/.test(line))
  const words = block.map((line) => line.replace(/^\s*Error:/, '').replaceAll(/\s+/g, ' '))
  return {
    at,
    what,
    names,
    message: told(found[2] === undefined && error >= 0 ? words : [found[2] ?? '']),
    where: found[1],
  }
}

const vitest: Format = (lines) => {
  const heading = /^\s*FAIL\s+(?:\|.+?\|\s+)?(\S+\.\S+ (?:>|\[) .*)$/
  const at = lines.findIndex((line) => heading.test(line))
  if (at < 0) return undefined
  const rest = lines.slice(at + 1).filter((line) => !/^\s*FAIL\s/.test(line))
  const body = until(rest, (line, index) => index > 0 && (line === '' || /^\s*(?:❯|at )/.test(line)))
  const names = lines.flatMap((line) => heading.exec(line)?.[1]?.replace(/ \[ .* \]$/, '') ?? [])
  return {
    at,
    what: names[0] ?? '',
    names,
    message: told(body.map((line) => line.replace(/ \/\/ Object\.is equality$/, '').replace(assertion, ''))),
    where: firstMatch(rest, /^\s*❯ (?:.*\s)?(\S+:\d+:\d+)$/),
  }
}

const pytest: Format = (lines) => {
  const summaries = lines.map((line) => /^(?:FAILED|ERROR) (\S+\.py\b.*?)(?: - (.*))?$/.exec(line))
  const headings = lines.map((line) => /^_{3,} (.+?) _{3,}$/.exec(line))
  const [summary, heading] = [summaries.find(Boolean), headings.find(Boolean)]
  const said = lines.flatMap((line) => /^E {2,}(\S.*)$/.exec(line)?.[1] ?? []).slice(0, 1)
  const what = summary?.[1] ?? (said.length > 0 ? heading?.[1] : undefined)
  if (what === undefined) return undefined
  return {
    at: (heading ? headings : summaries).findIndex(Boolean),
    what,
    names: summaries.flatMap((match) => match?.[1] ?? []),
    message: told((said.length > 0 ? said : [summary?.[2] ?? '']).map((line) => line.replace(assertion, ''))),
    // Not a file of Python's own that the error passed on its way.
    where: firstMatch(lines, /^([^\s/]\S*\.py:\d+): /) ?? firstMatch(lines, /^(\S+\.py:\d+): /),
  }
}

const cargo: Format = (lines) => {
  const at = lines.findIndex((line) => /^\s*thread '.+' (?:\(\d+\) )?panicked at /.test(line))
  const failed =
    firstMatch(lines, /^test (\S+) \.\.\. FAILED$/) ?? firstMatch(lines, /^\s*FAIL \[ *[\d.]+s\] (.+)$/)
  if (failed === undefined) return undefined
  if (at < 0) return { at: lines.findIndex((line) => line.includes(failed)), what: failed, message: [] }
  const head = lines[at] ?? ''
  const body = until(lines.slice(at + 1), (line) => line === '' || /^\s*(?:stack backtrace|note):/.test(line))
  // Before Rust 1.73 the message stood on the same line.
  const old = /panicked at '(.*)', (\S+)$/.exec(head)
  return {
    at,
    what: /^\s*thread '(.+?)'/.exec(head)?.[1] ?? failed,
    names: lines.flatMap((line) => /^test (\S+) \.\.\. FAILED$/.exec(line)?.[1] ?? []),
    message: told(old === null ? body : [old[1] ?? '']),
    where: old?.[2] ?? /panicked at (\S+?):?$/.exec(head)?.[1],
  }
}

const tap: Format = (lines) => {
  const failed = /^\s*not ok\b(?!.*# (?:todo|skip))/i
  // Children come before their parents, so that the first is the innermost.
  const at = lines.findIndex((line) => failed.test(line))
  if (at < 0) return undefined
  const body = until(lines.slice(at + 1), (line) => /^\s*(?:\.\.\.|(?:not )?ok\b.*)$/.test(line))
  const key = (name: string): string | undefined =>
    firstMatch(body, new RegExp(`^\\s*${name}: +(.*)$`))?.replace(/^(['"])(.*)\1$/, '$2')
  const start = body.findIndex((line) => /^\s*error: [|>]/.test(line))
  const depth = indentOf(body[start] ?? '')
  const block =
    start < 0 ? [] : until(body.slice(start + 1), (line) => line !== '' && indentOf(line) <= depth)
  const [expected, actual] = [key('expected'), key('actual')]
  const said = start < 0 ? (key('error') ?? key('message')) : undefined
  // A file that could not be loaded: why stands in the comments above it.
  if (key('error') === 'test failed') {
    const comments = lines.slice(0, at).map((line) => line.replace(/^\s*# ?/, ''))
    const found = error(comments)
    const where = firstMatch(comments, /^(?:file:\/\/)?(\/\S+:\d+)$/)
    if (found !== undefined) return { ...found, where: where ?? found.where }
  }
  const named = (line: string): string => line.replace(/^\s*not ok \d*(?: -)? ?/, '')
  const isSuite = (index: number): boolean =>
    until(lines.slice(index + 1), (line) => /^\s*(?:\.\.\.|(?:not )?ok\b.*)$/.test(line)).some((line) =>
      /subtests? ?failed/i.test(line),
    )
  return {
    at,
    what: named(lines[at] ?? ''),
    names: lines.flatMap((line, index) => (failed.test(line) && !isSuite(index) ? [named(line)] : [])),
    message:
      said !== undefined
        ? told([said])
        : expected !== undefined && actual !== undefined && !/^[|>]/.test(expected + actual)
          ? [`expected ${expected}, got ${actual}`]
          : told(block),
    where: key('location') ?? key('at')?.replace(/^.*\((.+)\)$/, '$1'),
  }
}

const nodeSpec: Format = (lines) => {
  const start = lines.findIndex((line) => line.startsWith('✖ failing tests:'))
  const rest = lines.slice(start + 1)
  const at = rest.findIndex((line) => /^\s*✖ .+ \(\d[\d.]*ms\)/.test(line))
  if (at < 0) return undefined
  const body = until(rest.slice(at + 1), (line) => /^\s*at /.test(line) || /^\s*✖ /.test(line))
  const names = rest.flatMap((line) => /^\s*✖ (.+) \(\d[\d.]*ms\)/.exec(line)?.[1] ?? [])
  return {
    at: start + 1 + at,
    what: names[0] ?? '',
    // Above that list suites stand among their tests.
    names: start < 0 ? [] : names,
    message: told(body.map((line) => line.trim().replace(assertion, ''))),
    where: firstMatch(rest.slice(0, at + 1), /^test at (\S+)$/),
  }
}

/** Compilers, linters, and whatever else says that something is an error. */
const error: Format = (lines) => {
  const at = lines.findIndex(
    (line) =>
      !isOfPackageManager(line) &&
      (/^\S.*[:)] error(?: TS\d+)?: \S/.test(line) ||
        /^(?:vet: )?\S+\.go:\d+:\d+: \S/.test(line) ||
        /^(?:error(?:\[E\d+\])?|fatal|panic): \S/i.test(line) ||
        /^\s*\d+:\d+\s+error\s/.test(line) ||
        /^\s*(?:Uncaught )?\w*(?:Error|Exception)(?: \[\w+\])?: \S/.test(line) ||
        /^\s*(?:✗|✘|×|✖) \S/.test(line)),
  )
  if (at < 0) return undefined
  return {
    at,
    what: (lines[at] ?? '').trim(),
    message: [],
    where: firstMatch(lines.slice(at + 1, at + 2), /^\s*--> (\S+)$/),
  }
}

/** In this order: some print lines that look like another's. */
export const formats: readonly Format[] = [jest, go, vitest, pytest, cargo, tap, nodeSpec, error]

const assertion = /^AssertionError(?: \[\w+\])?: /

function told(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.trim()).filter((line) => line !== '')
}

function until(lines: readonly string[], isEnd: (line: string, index: number) => boolean): readonly string[] {
  const end = lines.findIndex(isEnd)
  return end < 0 ? lines : lines.slice(0, end)
}

function firstMatch(lines: readonly string[], pattern: RegExp): string | undefined {
  for (const line of lines) {
    const found = pattern.exec(line)?.[1]
    if (found !== undefined && !found.includes('node_modules')) return found
  }
  return undefined
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}
