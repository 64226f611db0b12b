// Writes a transcript: harmless wherever it ends up, as JSON lines for programs, or raw by request.
import { StringDecoder } from 'node:string_decoder'
import { isTerminal, paintFor, type Output, type Io } from '../io.ts'
import { wrapWords, entryLines } from './layout.ts'
import { clean, clip, widthOf, clockTime, oneLine } from './text.ts'
import type { LoggedAttempt, LogRequest } from '../app.ts'
import { legible, mark, verdictMeaning, verdictName } from '../vocabulary.ts'
import { gateLines, storyTitle, withoutPromise } from './describe.ts'

export interface LogWriter {
  readonly write: (bytes: Uint8Array) => void
  /** A line of ralph's own: `--json` and `--raw` are the agent's alone. */
  readonly head: (lines: readonly string[], isApart?: boolean) => void
  /** A last line without its line feed is not lost. */
  readonly end: () => void
}

/** Also into a pipe: what `head` or `less -R` passes on reaches a terminal all the same. */
export function logWriter(
  stdout: Output,
  { json, raw, isTalk }: { json: boolean; raw: boolean; isTalk: boolean },
): LogWriter {
  if (raw) return { write: (bytes) => void stdout.write(bytes), head: () => undefined, end: () => undefined }
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let hasWritten = false
  // What an agent says to ralph alone; what came of it is said at its end. A program in a pipe may look for it.
  const isShown = (text: string): boolean =>
    json || !isTalk || !isTerminal(stdout) || withoutPromise(text) === text || withoutPromise(text) !== ''
  const line = (text: string): void => {
    if (!isShown(text)) return
    stdout.write(json ? `${JSON.stringify({ text })}\n` : `${shown(clean(text))}\n`)
  }
  const shown = (text: string): string => {
    const room = isTerminal(stdout) ? Math.max(20, stdout.columns ?? 80) - 1 : Infinity
    if (!isTalk || widthOf(text) <= room) return text
    const indent = /^ {0,12}/.exec(text)?.[0] ?? ''
    return wrapWords(text.slice(indent.length), room - indent.length)
      .map((part) => indent + part)
      .join('\n')
  }
  const end = (): void => {
    const last = rest + decoder.end()
    rest = ''
    if (last !== '') line(last)
  }
  return {
    write: (bytes) => {
      const lines = (rest + decoder.write(Buffer.from(bytes))).split('\n')
      rest = lines.pop() ?? ''
      for (const text of lines) line(text)
    },
    head: (lines, isApart = true) => {
      if (json) return
      end()
      stdout.write([...(hasWritten && isApart ? [''] : []), ...lines, ''].join('\n'))
      hasWritten = true
    },
    end,
  }
}

export function logHead(
  {
    change_id: change,
    n,
    story_id: id,
    title,
    index,
    total,
    attempt,
    started,
    by_hand: byHand,
  }: LoggedAttempt,
  { stdout, env }: Pick<Io, 'stdout' | 'env'>,
): readonly string[] {
  const paint = paintFor(stdout, env)
  const place = index === 0 ? '' : `${String(index)}/${String(total)} `
  const again = attempt === 1 ? '' : `, try ${String(attempt)}`
  const columns = isTerminal(stdout) ? Math.max(20, stdout.columns ?? 80) : undefined
  return entryLines(
    {
      sign: mark('working', paint),
      text:
        byHand === true
          ? `what was ticked by hand: ${oneLine(title)}`
          : `${place}${storyTitle(id, title)}${again}`,
      style: paint.bold,
      right:
        byHand === true
          ? `by hand, ${clockTime(started)}`
          : `#${String(n)} of ${oneLine(change)}   ${clockTime(started)}`,
    },
    { paint, columns },
  ).map((line) => legible(line, env))
}

/** As the loop's own terminal shows it; that one has begun is news only to who waits. */
export function logGate(
  event: Parameters<NonNullable<LogRequest['gate']>>[0],
  { stdout, env }: Pick<Io, 'stdout' | 'env'>,
): readonly string[] {
  const paint = paintFor(stdout, env)
  const columns = isTerminal(stdout) ? Math.max(20, stdout.columns ?? 80) : undefined
  const sheet = { paint, columns }
  const lines =
    event.type === 'gate.ended'
      ? gateLines(event, sheet).slice(0, 1)
      : entryLines({ indent: 2, sign: mark('working', paint), text: oneLine(event.command) }, sheet)
  return lines.map((line) => legible(line, env))
}

/** What came of it, as ralph judged it: the agent's last words are only its own. */
export function logFoot(
  [{ n, verdict, reason }, change]: Parameters<NonNullable<LogRequest['ended']>>,
  { stdout, env }: Pick<Io, 'stdout' | 'env'>,
): readonly string[] {
  const paint = paintFor(stdout, env)
  const columns = isTerminal(stdout) ? Math.max(20, stdout.columns ?? 80) : undefined
  const why = reason === '' ? '' : `: ${clip(oneLine(reason), 200)}`
  const more = verdict === 'gate_failed' ? ` (ralph logs ${oneLine(change)} --gate ${String(n)})` : ''
  // "stopped: stopped by you" says it twice.
  const text = reason.startsWith(verdictName(verdict)) ? why.slice(2) : `${verdictName(verdict)}${why}${more}`
  return entryLines({ sign: mark(verdictMeaning(verdict), paint), text }, { paint, columns }).map((line) =>
    legible(line, env),
  )
}
