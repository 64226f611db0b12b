// `ralph status`: where the loop stands, once or until it has ended.
import { setTimeout as sleep } from 'node:timers/promises'
import type { StatusReport } from '../app.ts'
import type { Context } from './context.ts'
import { respond } from './row.ts'

const refreshMs = 1000

/** A look writes down what it finds: a loop that died is recorded, once. */
export async function showStatus(
  context: Context,
  change: string | undefined,
  { watch, json }: { readonly watch: boolean; readonly json: boolean },
): Promise<void> {
  const { observe, control } = await context.app()
  let isRecorded = false
  const read = async (): Promise<readonly StatusReport[]> => {
    const reports = await observe.status(change)
    const died = reports.filter((report) => report.died_at !== undefined)
    if (isRecorded || died.length === 0) return reports
    isRecorded = true
    return (await control.recordDeaths(died.map((report) => report.change_id)))
      ? observe.status(change)
      : reports
  }
  if (watch) return keepShowing(context, json, read)
  const reports = await read()
  await respond(
    context,
    json,
    () => asJson(reports),
    async ({ paint, columns = Infinity }) =>
      (await import('../print/status.ts')).statusText(reports, { paint, nowMs: Date.now(), columns }),
  )
}

/** The contract's shape for one loop; a list where there are several, or none. */
function asJson(reports: readonly StatusReport[]): unknown {
  const shown = reports.map(({ where: _where, ...report }) => report)
  return shown.length === 1 ? shown[0] : { loops: shown }
}

/** On a terminal the screen is redrawn in place; in a pipe something is written only when it has changed. */
async function keepShowing(
  context: Context,
  json: boolean,
  read: () => Promise<readonly StatusReport[]>,
): Promise<void> {
  const { stdout, env } = context.io
  const [{ statusText }, { paintFor, isTerminal }, { clean, clipPainted, widthOf }, { legible }] =
    await Promise.all([
      import('../print/status.ts'),
      import('../io.ts'),
      import('../print/text.ts'),
      import('../vocabulary.ts'),
    ])
  const inPlace = isTerminal(stdout) && !json
  let shown = ''
  let known = ''
  while (!context.readerGone.aborted) {
    const reports = await read()
    // Whoever opens a second terminal first waits for the loop; a script would wait for ever.
    const isEarly = inPlace && reports.length === 0
    const isLast = !isEarly && !reports.some((report) => report.alive)
    const whole = json
      ? JSON.stringify(asJson(reports))
      : legible(statusText(reports, { paint: paintFor(stdout, env), nowMs: Date.now() }), env)
    const { columns, rows } = { columns: stdout.columns || 80, rows: stdout.rows || 24 }
    // What is taller than the screen scrolls out of reach and cannot be erased; only the last word may.
    const picture = whole
      .split('\n')
      .slice(0, Math.max(1, rows - 1))
      .map((line) => clipPainted(line, columns - 1))
    const text = `${inPlace && !isLast ? picture.join('\n') : whole}\n`
    // In a pipe a second that has passed is no news.
    const news = inPlace || json || isLast ? text : JSON.stringify(reports, withoutClock)
    if (news !== known)
      stdout.write(inPlace ? eraseRows(shown, columns, (line) => widthOf(clean(line))) + text : text)
    shown = text
    known = news
    if (isLast) return
    await sleep(refreshMs, undefined, { signal: context.readerGone }).catch(ignoreAbort)
  }
}

const ticking: ReadonlySet<string> = new Set(['last_activity', 'updated_at', 'used_now'])

function withoutClock(key: string, value: unknown): unknown {
  return ticking.has(key) ? undefined : value
}

/** Rows, not lines: a line takes several once the terminal was made narrower. */
function eraseRows(text: string, columns: number, widthOf: (line: string) => number): string {
  const lines = text.split('\n').slice(0, -1)
  const rows = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
  return rows === 0 ? '' : `\u001B[${String(rows)}A\r\u001B[J`
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error) || error.name !== 'AbortError') throw error
}
