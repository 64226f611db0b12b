// Merges an edited tasks file back onto its guarded version: the old lines, the accepted ticks, and the lines that were added.
import { isDoneMark, readBox } from './box.ts'
import { alignLines } from './tasks-align.ts'
import { normalised } from './tasks-names.ts'
import { parseTasks } from './tasks.ts'

export interface MergedLine {
  readonly from: 'before' | 'after'
  /** 1-based, in that version. */
  readonly line: number
  readonly tick: boolean
}

export interface Merge {
  readonly lines: readonly MergedLine[]
  readonly putBack: readonly string[]
}

/** `ticks` are 1-based lines of `before`. */
export function mergeLines(file: string, before: string, after: string, ticks: ReadonlySet<number>): Merge {
  const oldLines = before.split('\n')
  const newLines = after.split('\n')
  const old = (index: number): MergedLine => ({ from: 'before', line: index + 1, tick: ticks.has(index + 1) })
  const plain = oldLines.map((_, index) => old(index))
  if (before === after) return { lines: plain, putBack: [] }
  const [oldKeys, newKeys] = [oldLines.map(lineKey), newLines.map(lineKey)]
  const lines: MergedLine[] = []
  const counts = { lost: 0, copied: 0 }
  const pairs = alignLines(oldKeys, newKeys)
  const missing = unpaired(oldKeys, pairs)
  const headings = headingsOf(newLines)
  const oldHeadings = headingsOf(oldLines)
  const tasks = new Set(oldLines.map((line, index) => taskKey(line, oldHeadings[index])))
  const texts = new Set(oldLines.flatMap((line) => taskText(line) ?? []))
  let [lastOld, lastNew] = [0, 0]
  for (const [b, a] of [...pairs, [oldLines.length, newLines.length] as const]) {
    const gone = oldKeys.slice(lastOld, b)
    // Where lines went, those that came in their place are their rewording; a line that is missing elsewhere was moved.
    const isReplaced = gone.some((key) => key !== '')
    for (let index = lastOld; index < b; index += 1) lines.push(old(index))
    for (let index = lastNew; index < a; index += 1) {
      // A copy of a task in its own story, or a ticked one, would make the two indistinguishable; "write tests" in another is a new task.
      const line = newLines[index] ?? ''
      const isTicked = isDoneMark(readBox(line)?.mark ?? '')
      const isCopy = isTicked
        ? texts.has(taskText(line) ?? '')
        : readBox(line) !== undefined && tasks.has(taskKey(line, headings[index]))
      if (isReplaced || missing.has(newKeys[index] ?? '')) continue
      if (isCopy) counts.copied += 1
      else lines.push({ from: 'after', line: index + 1, tick: false })
    }
    counts.lost += gone.filter((key) => key !== '' && !key.startsWith('box ')).length
    if (b < oldLines.length) lines.push(old(b))
    ;[lastOld, lastNew] = [b + 1, a + 1]
  }
  const putBack: string[] = []
  if (counts.lost > 0) {
    const what =
      counts.lost === 1 ? '1 line besides the tasks was' : `${counts.lost} lines besides the tasks were`
    putBack.push(`${file}: ${what} changed or removed; put back`)
  }
  if (counts.copied > 0) {
    const what = counts.copied === 1 ? '1 added line repeats' : `${counts.copied} added lines repeat`
    putBack.push(`${file}: ${what} a task; taken out`)
  }
  if (keepsEveryTask(before, oldLines, newLines, lines)) return { lines, putBack }
  return {
    lines: plain,
    putBack: [...putBack, `${file}: lines were added that hide or regroup tasks; taken out`],
  }
}

/** Equal for a line with and without its tick, with and without carriage return or trailing blanks. */
function lineKey(line: string): string {
  const text = line.replace(/^\uFEFF/, '').trimEnd()
  const box = readBox(text)
  return box === undefined ? text : `box ${text.slice(0, box.open)} ${box.text}`
}

function taskText(line: string): string | undefined {
  const text = readBox(line)?.text
  return text === undefined || text === '' ? undefined : normalised(text)
}

function taskKey(line: string, heading: string | undefined): string {
  return `${heading ?? ''}\n${taskText(line) ?? ''}`
}

/** For each line the heading above it. */
function headingsOf(lines: readonly string[]): string[] {
  let heading = ''
  return lines.map((line) => {
    if (/^\s{0,3}#{1,6}\s/.test(line)) heading = normalised(line)
    return heading
  })
}

function unpaired(keys: readonly string[], pairs: readonly [number, number][]): Set<string> {
  const paired = new Set(pairs.map(([b]) => b))
  return new Set(keys.filter((key, index) => key !== '' && !paired.has(index)))
}

/** An added fence or heading can hide tasks or hand them to another story: every old box must be what and where it was. */
function keepsEveryTask(
  before: string,
  oldLines: readonly string[],
  newLines: readonly string[],
  lines: readonly MergedLine[],
): boolean {
  const pick = ({ from, line }: MergedLine): string =>
    (from === 'before' ? oldLines : newLines)[line - 1] ?? ''
  const text = lines.map(pick).join('\n')
  const now = new Map(parseTasks([{ file: '', text }]).boxes.map((box) => [box.task.line, box]))
  const place = new Map(
    lines.flatMap((each, index) => (each.from === 'before' ? [[each.line, index + 1]] : [])),
  )
  return parseTasks([{ file: '', text: before }]).boxes.every((box) => {
    const same = now.get(place.get(box.task.line) ?? 0)
    if (same === undefined || same.task.state !== box.task.state) return false
    // Ids too: an added heading without a number would turn all ids into ordinals in mid-loop.
    return same.storyKey === box.storyKey && same.storyId === box.storyId
  })
}
