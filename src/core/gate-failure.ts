// What a failed gate is about: the failing test's own line and its message, found in what the common test programs print.
import { formats, isOfPackageManager, plainLines, type Found } from './gate-formats.ts'
import { minutes } from './verdict.ts'

export interface GateFailure {
  /** The failing test, or the error itself. */
  readonly what: string
  /** What it says about it, a few lines; empty when `what` says it all. */
  readonly message: readonly string[]
  /** File and line. */
  readonly where?: string | undefined
  /** The other tests that fail. */
  readonly also?: { readonly total: number; readonly first: readonly string[] } | undefined
}

/** The first failure in the output; undefined where no format is known. */
export function findFailure(output: string): GateFailure | undefined {
  const found = foundIn(plainLines(output))
  if (found === undefined) return undefined
  const { what, message, where, names = [] } = found
  const others = [...new Set(names)].filter((name) => name !== what)
  return {
    what,
    message: message.slice(0, mostMessageLines),
    where,
    ...(others.length > 0 && { also: { total: others.length, first: others.slice(0, mostOthers) } }),
  }
}

/** Which line of the output begins to tell it, from 0. */
export function failureLine(output: string): number | undefined {
  return foundIn(plainLines(output))?.at
}

function foundIn(lines: readonly string[]): Found | undefined {
  for (const format of formats) {
    const found = format(lines)
    if (found !== undefined) return found
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
  if (found !== undefined) return `${cut(failureSentence(found))}${othersOf(found, '; ')}`
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
  const others = othersOf(found, '')
  const names = `${found.also?.first.join(', ') ?? ''}${(found.also?.total ?? 0) > mostOthers ? ' …' : ''}`
  const also = others === '' ? [] : [`${others}: ${names}`]
  return { what: found.what, lines: [...found.message.slice(0, most - 1), ...place, ...also] }
}

function othersOf({ also }: GateFailure, before: string): string {
  if (also === undefined) return ''
  return `${before}${also.total === 1 ? '1 more test fails' : `${String(also.total)} more tests fail`}`
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

/** Whether test programs say how many tests they ran, and it is none at all. */
export function ranNoTests(output: string): boolean {
  const counts = plainLines(output).flatMap((line) => {
    const count = testCounts.map((format) => format.exec(line)).find((match) => match !== null)
    return count === undefined ? [] : [Number(count[1] ?? 0)]
  })
  return counts.length > 0 && counts.every((count) => count === 0)
}

/** How many have passed; one that counts none at all says so in words. */
const testCounts = [
  // node:test and tape; TAP's own plan.
  /^(?:#|ℹ) pass +(\d+)$/,
  /^1\.\.(\d+)$/,
  // vitest and jest
  /^ *Tests:? +(?:.*\b(\d+) passed\b.*|\d.*)$/,
  /^ *No test(?:s| files) found, exiting with code 0/,
  // pytest and unittest
  /\b(\d+) passed\b.* in [\d.]+ ?s/,
  /\bno tests ran in [\d.]+ ?s/,
  /^Ran (\d+) tests? in /,
  // cargo and nextest
  /^test result: ok\. (\d+) passed/,
  // go: none, or some, which is no number and so not 0
  /^\?\s+\S+\s+\[no test files\]/,
  /^ok\s+\S+\s.*\[no tests to run\]/,
  /^(ok)\s+\S+\s+(?:[\d.]+s|\(cached\))/,
  // mocha, rspec
  /^ +(\d+) passing\b/,
  /^(\d+) examples?, /,
]

const mostMessageLines = 5
const mostOthers = 3
const mostSentence = 300

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > mostSentence ? `${line.slice(0, mostSentence - 1).trimEnd()}…` : line
}

/** But for what ralph says of its end: there is nothing to look at. */
export function isSilent({
  output_tail: tail,
  output_lines: lines,
  failure,
}: {
  readonly output_tail: string
  readonly output_lines?: number | undefined
  readonly failure?: Pick<GateFailure, 'what'> | undefined
}): boolean {
  return lines === 0 && (tail.trim() === '' || tail === failure?.what)
}

const overtime = '(--iteration-timeout)'

/** Of a gate that ralph has ended, for it takes as long as an agent may at most. */
export function overtimeWords(ms: number): string {
  return `ended by ralph after ${minutes(Number((ms / 60_000).toFixed(2)))} ${overtime}`
}

export function isOvertime(reason: string): boolean {
  return reason.includes(`: ended by ralph after `) && reason.includes(overtime)
}
