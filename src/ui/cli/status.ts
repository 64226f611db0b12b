// `ralph status`: where the loop stands, once or until it has ended.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import type { StatusReport } from '../app.ts'
import type { Context } from './context.ts'
import { respond } from './context.ts'

const refreshMs = 1000

export function addStatus(program: Command, context: Context): void {
  program
    .command('status')
    .description('where a loop stands, and what to type next')
    .argument('[change]', 'left out: every loop of this repository')
    .option('--watch', 'go on until no loop is running')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph status add-login --watch')
    .action(async (change, { watch, json }) => {
      const app = await context.app()
      const read = (): Promise<readonly StatusReport[]> => app.status(change)
      await (watch
        ? keepShowing(context, json === true, read)
        : showOnce(context, json === true, await read()))
    })
}

async function showOnce(context: Context, json: boolean, reports: readonly StatusReport[]): Promise<void> {
  await respond(context, json, asJson(reports), async (paint) => {
    const { statusText } = await import('../print/status.ts')
    return statusText(reports, { paint, nowMs: Date.now() })
  })
}

/** The contract's shape for one loop; a list where there are several, or none. */
function asJson(reports: readonly StatusReport[]): unknown {
  return reports.length === 1 ? reports[0] : { loops: reports }
}

/** On a terminal the screen is redrawn in place; in a pipe something is written only when it has changed. */
async function keepShowing(
  context: Context,
  json: boolean,
  read: () => Promise<readonly StatusReport[]>,
): Promise<void> {
  const { stdout, env } = context.io
  const [{ statusText }, { paintFor, isTerminal }, { clean, clipPainted, widthOf }] = await Promise.all([
    import('../print/status.ts'),
    import('../io.ts'),
    import('../print/text.ts'),
  ])
  const inPlace = isTerminal(stdout) && !json
  let shown = ''
  while (!context.readerGone.aborted) {
    const reports = await read()
    const isLast = !reports.some((report) => report.alive)
    const whole = json
      ? JSON.stringify(asJson(reports))
      : statusText(reports, { paint: paintFor(stdout, env), nowMs: Date.now() })
    const { columns, rows } = { columns: stdout.columns || 80, rows: stdout.rows || 24 }
    // What is taller than the screen scrolls out of reach and cannot be erased; only the last word may.
    const picture = whole
      .split('\n')
      .slice(0, Math.max(1, rows - 1))
      .map((line) => clipPainted(line, columns - 1))
    const text = `${inPlace && !isLast ? picture.join('\n') : whole}\n`
    if (text !== shown)
      stdout.write(inPlace ? eraseRows(shown, columns, (line) => widthOf(clean(line))) + text : text)
    shown = text
    if (isLast) return
    await sleep(refreshMs, undefined, { signal: context.readerGone }).catch(ignoreAbort)
  }
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
