// A loop on a terminal: lines that scroll, and below them one live line that is gone when the loop is.
import { isTalk } from '../../core/cursor.ts'
import type { Io } from '../io.ts'
import { paintFor } from '../io.ts'
import { isUtf8, legible } from '../vocabulary.ts'
import { gathered } from './gathered.ts'
import { applyLive, idleLive, liveText } from './live.ts'
import { createLines } from './plain.ts'
import type { Printer } from './printer.ts'
import { widthOf } from './text.ts'
import { attention, popTitle, pushTitle, titleBytes, titleOf } from './title.ts'

export interface TerminalOptions extends Pick<Io, 'stdout' | 'stderr' | 'env'> {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly frameMs?: number
  /** `notify: false`: no bell. */
  readonly isSilent?: boolean
  /** How many rows the user's typing has moved the cursor down since the last time. */
  readonly typedRows?: () => number
}

export function terminalPrinter({
  stdout,
  stderr,
  env,
  now,
  frameMs = 100,
  isSilent = false,
  typedRows = () => 0,
}: TerminalOptions): Printer {
  const lines = createLines({ stdout, stderr, env })
  const paint = paintFor(stdout, env)
  const isAscii = !isUtf8(env)
  let live = idleLive
  let shownWidth = 0
  let frame = 0
  let timer: NodeJS.Timeout | undefined
  let open = true
  let endTitle: string | undefined
  stdout.write(pushTitle)

  const columns = (): number => Math.max(20, stdout.columns ?? 80)
  // A terminal made narrower has wrapped the line: its first row is further up by now.
  const erase = (): string => {
    if (shownWidth === 0) return ''
    const rowsUp = Math.ceil(shownWidth / columns()) - 1 + typedRows()
    shownWidth = 0
    return `\r${rowsUp > 0 ? `\u001B[${String(rowsUp)}A` : ''}\u001B[J`
  }
  const draw = (): string => {
    const shown = liveText(live, { frame, nowMs: now(), columns: columns(), isAscii })
    const text = isAscii ? legible(shown, env) : shown
    shownWidth = widthOf(text)
    return shownWidth === 0 ? '' : paint.cyan(text)
  }
  const tick = (): void => {
    frame += 1
    stdout.write(erase() + draw())
  }
  const talk = gathered((text) => stdout.write(erase() + text + draw()))
  const rest = (): void => {
    talk.flush()
    clearInterval(timer)
    timer = undefined
    stdout.write(erase())
  }
  const close = (): void => {
    if (!open) return
    open = false
    rest()
    // The stack is left as it was; the status stands until a shell or the next program sets a title of its own.
    stdout.write(popTitle + (endTitle === undefined ? '' : titleBytes(endTitle)))
  }

  return {
    tell(event): void {
      if (!open) return
      live = applyLive(live, event, now())
      if (isTalk(event)) {
        for (const { text } of lines(event)) talk.add(`${text}\n`)
        return
      }
      talk.flush()
      const title = titleOf(event)
      if (event.type === 'complete') endTitle = title
      // One write where possible: a terminal that paints in between would flicker.
      let pending = erase() + (title === undefined ? '' : titleBytes(title))
      for (const line of lines(event)) {
        if (line.to === 'stderr') {
          stdout.write(pending)
          pending = ''
          stderr.write(`${line.text}\n`)
        } else pending += `${line.text}\n`
      }
      if (!isSilent && (event.type === 'choice.needed' || event.type === 'complete')) {
        pending += attention(`ralph ${event.change_id}: ${event.status}`)
      }
      stdout.write(pending + draw())
      if (live.busy) timer ??= setInterval(tick, frameMs).unref()
      else rest()
    },
    pause: rest,
    close,
  }
}
