// What a failed gate is about: the failing test's own line and its message, found in what the common test programs print.

export interface GateFailure {
  /** The failing test, or the error itself. */
  readonly what: string
  /** What it says about it, a few lines; empty when `what` says it all. */
  readonly message: readonly string[]
  /** File and line. */
  readonly where?: string | undefined
}

/** The first failure in the output; undefined where no format is known. */
export function findFailure(output: string): GateFailure | undefined {
  const lines = plainLines(output)
  for (const format of formats) {
    const found = format(lines)
    if (found !== undefined) return { ...found, message: found.message.slice(0, mostMessageLines) }
  }
  return undefined
}

/** "greets in Hungarian: expected 'hello' to be 'szia' (test/greet.test.ts:14:53)". */
export function failureSentence({ what, message, where }: GateFailure): string {
  const said = message.map((line) => line.trim()).join(' ')
  const place = where === undefined || what.includes(where) || said.includes(where) ? '' : ` (${where})`
  return `${what}${said === '' ? '' : `: ${said}`}${place}`
}

/** For one line: the failure where it can be told, else the first of the last lines that complains, else the last one. */
export function shortFailure(output: string, found = findFailure(output)): string {
  if (found !== undefined) return cut(failureSentence(found))
  const lines = lastLines(output, 10)
  return cut(lines.find((line) => complaint.test(line)) ?? lines.at(-1) ?? '')
}

const complaint =
  /\b(?:errors?|fail(?:s|ed|ure|ures)?|unknown|unexpected|not found|cannot|can't|could not|missing|no such)\b/i

/** What is worth reading of a failed gate: the failing test and what it says where that is known, else the last lines. */
export function tellingLines(
  {
    failure,
    output_tail: output,
  }: { readonly failure?: GateFailure | undefined; readonly output_tail: string },
  most: number,
): { readonly what?: string; readonly lines: readonly string[] } {
  const found = failure ?? findFailure(output)
  if (found === undefined) return { lines: lastLines(output, most) }
  const place = found.where === undefined || found.what.includes(found.where) ? [] : [`at ${found.where}`]
  return { what: found.what, lines: [...found.message.slice(0, most - 1), ...place] }
}

/** The last lines that say something. */
export function lastLines(output: string, count: number): readonly string[] {
  const lines = plainLines(output).filter((line) => line.trim() !== '')
  const telling = lines.filter((line) => !isOfPackageManager(line))
  if (telling.length > 0) return telling.slice(-count)
  // It never came to the script: what npm says is all there is.
  return lines
    .map((line) => line.replace(/^npm (?:ERR!|error) ?/, '').trimEnd())
    .filter((line) => !/^(?:[a-z]*|A complete log of this run .*|npm warn .*)$/.test(line))
    .slice(-Math.min(count, 3))
}

/** Whether npm, make or their like say that they have nothing of this name to run. */
export function missesTarget(output: string, name: string | undefined): boolean {
  if (name === undefined) return false
  return plainLines(output).some((line) => noSuchTarget.exec(line)?.[1] === name || noManifest.test(line))
}

const noSuchTarget =
  /(?:\bMissing script: |\bUnknown command: |\bScript not found |\bCommand |No rule to make target )["'`]?([\w:.-]+)["'`]?(?: not found|[.,]|$)/

const noManifest = /\b(?:Could not read|No|find a) package\.json\b/i

const mostMessageLines = 5
const mostSentence = 300

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > mostSentence ? `${line.slice(0, mostSentence - 1).trimEnd()}…` : line
}

/** Colours off; a bar that was drawn over itself is what it was last. */
function plainLines(output: string): readonly string[] {
  return output
    .replaceAll(/\u001B\[[0-9;?]*[ -/]*[@-~]/g, '')
    .split(/\r?\n/)
    .map((line) => line.slice(line.lastIndexOf('\r') + 1).trimEnd())
}

/** What npm and its like say about a script that failed: nothing about why. */
function isOfPackageManager(line: string): boolean {
  return /^(?:npm (?:ERR!|error|warn)|\s*ELIFECYCLE|error Command failed|info Visit|error: script )/.test(
    line,
  )
}

type Format = (lines: readonly string[]) => GateFailure | undefined

const jest: Format = (lines) => {
  if (!lines.some((line) => /^\s*FAIL\s/.test(line))) return undefined
  const at = lines.findIndex((line) => /^\s*● (?!Console)/.test(line))
  if (at < 0) return undefined
  const rest = lines.slice(at + 1)
  const body = until(rest, (line) => /^\s*(?:>?\s*\d+ \||at |● )/.test(line))
  const pair = body.filter((line) => /^\s*(?:Expected|Received)\b/.test(line))
  return {
    what: (lines[at] ?? '').replace(/^\s*● /, ''),
    message: told(pair.length > 0 ? pair : body),
    where: firstMatch(rest, /^\s*at .*?\(?([^\s()]+:\d+:\d+)\)?$/),
  }
}

const go: Format = (lines) => {
  const named = (line: string): string | undefined => /^\s*--- FAIL: (\S+)/.exec(line)?.[1]
  const failed = lines.flatMap((line) => named(line) ?? [])
  // A subtest stands below its parent.
  const what = failed.find((name) => !failed.some((other) => other.startsWith(`${name}/`)))
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
      what,
      message: rest.filter((line) => line.startsWith('panic: ')).slice(0, 1),
      where: firstMatch(rest, /^\s+(\S+_test\.go:\d+)(?: |$)/),
    }
  }
  // Of testify: its own lines tell it.
  const error = after.findIndex((line) => /^\s*Error:\s/.test(line))
  const block = until(after.slice(error), (line) => /^\s*(?:Diff|Messages|Test):/.test(line))
  const words = block.map((line) => line.replace(/^\s*Error:/, '').replaceAll(/\s+/g, ' '))
  return {
    what,
    message: told(found[2] === undefined && error >= 0 ? words : [found[2] ?? '']),
    where: found[1],
  }
}

const vitest: Format = (lines) => {
  const at = lines.findIndex((line) => /^\s*FAIL\s+(?:\|.+?\|\s+)?\S+\.\S+ (?:>|\[) /.test(line))
  if (at < 0) return undefined
  const rest = lines.slice(at + 1).filter((line) => !/^\s*FAIL\s/.test(line))
  const body = until(rest, (line, index) => index > 0 && (line === '' || /^\s*(?:❯|at )/.test(line)))
  return {
    what: (lines[at] ?? '').replace(/^\s*FAIL\s+(?:\|.+?\|\s+)?/, '').replace(/ \[ .* \]$/, ''),
    message: told(body.map((line) => line.replace(/ \/\/ Object\.is equality$/, '').replace(assertion, ''))),
    where: firstMatch(rest, /^\s*❯ (?:.*\s)?(\S+:\d+:\d+)$/),
  }
}

const pytest: Format = (lines) => {
  const summary = lines
    .map((line) => /^(?:FAILED|ERROR) (\S+\.py\b.*?)(?: - (.*))?$/.exec(line))
    .find(Boolean)
  const heading = lines.map((line) => /^_{3,} (.+?) _{3,}$/.exec(line)).find(Boolean)
  const said = lines.flatMap((line) => /^E {2,}(\S.*)$/.exec(line)?.[1] ?? []).slice(0, 1)
  const what = summary?.[1] ?? (said.length > 0 ? heading?.[1] : undefined)
  if (what === undefined) return undefined
  return {
    what,
    message: told((said.length > 0 ? said : [summary?.[2] ?? '']).map((line) => line.replace(assertion, ''))),
    // Not a file of Python's own that the error passed on its way.
    where: firstMatch(lines, /^([^\s/]\S*\.py:\d+): /) ?? firstMatch(lines, /^(\S+\.py:\d+): /),
  }
}

const cargo: Format = (lines) => {
  const at = lines.findIndex((line) => /^\s*thread '.+' (?:\(\d+\) )?panicked at /.test(line))
  const failed =
    firstMatch(lines, /^test (\S+) \.\.\. FAILED$/) ?? firstMatch(lines, /^\s*FAIL \[ *[\d.]+s\] (.+)$/)
  if (at < 0 || failed === undefined) return failed === undefined ? undefined : { what: failed, message: [] }
  const head = lines[at] ?? ''
  const body = until(lines.slice(at + 1), (line) => line === '' || /^\s*(?:stack backtrace|note):/.test(line))
  // Before Rust 1.73 the message stood on the same line.
  const old = /panicked at '(.*)', (\S+)$/.exec(head)
  return {
    what: /^\s*thread '(.+?)'/.exec(head)?.[1] ?? failed,
    message: told(old === null ? body : [old[1] ?? '']),
    where: old?.[2] ?? /panicked at (\S+?):?$/.exec(head)?.[1],
  }
}

const tap: Format = (lines) => {
  // Children come before their parents, so that the first is the innermost.
  const at = lines.findIndex((line) => /^\s*not ok\b(?!.*# (?:todo|skip))/i.test(line))
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
  return {
    what: (lines[at] ?? '').replace(/^\s*not ok \d*(?: -)? ?/, ''),
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
  return {
    what: (rest[at] ?? '').replace(/^\s*✖ /, '').replace(/ \(\d[\d.]*ms\)$/, ''),
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
    what: (lines[at] ?? '').trim(),
    message: [],
    where: firstMatch(lines.slice(at + 1, at + 2), /^\s*--> (\S+)$/),
  }
}

/** In this order: some print lines that look like another's. */
const formats: readonly Format[] = [jest, go, vitest, pytest, cargo, tap, nodeSpec, error]

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
