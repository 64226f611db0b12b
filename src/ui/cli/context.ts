// What every command gets, and how a command hands out its report.
import type { App, Said } from '../app.ts'
import type { Io, Paint } from '../io.ts'

export interface Context {
  readonly io: Io
  /** Loads the rest of the program: only when a command really runs. */
  readonly app: () => Promise<App>
  /** What stood after `--`; absent when there was no `--`. */
  readonly passThrough: readonly string[] | undefined
  /** Aborts when nobody reads stdout any more. */
  readonly readerGone: AbortSignal
  /** The code to exit with when the command is through; 0 unless it says so. */
  readonly exitWith: (code: number) => void
}

/** `--json`: one object; otherwise the text, made only when it is needed. */
export async function respond(
  { io }: Context,
  json: boolean | undefined,
  data: unknown,
  text: (paint: Paint) => Promise<string> | string,
): Promise<void> {
  if (json) {
    io.stdout.write(`${JSON.stringify(data, undefined, 2)}\n`)
    return
  }
  const { paintFor } = await import('../io.ts')
  const written = await text(paintFor(io.stdout, io.env))
  io.stdout.write(written.endsWith('\n') || written === '' ? written : `${written}\n`)
}

export async function say(context: Context, json: boolean | undefined, said: Said): Promise<void> {
  await respond(context, json, { message: said.message, ...said.data }, async (paint) => {
    const { clean } = await import('../print/text.ts')
    const next = said.next === undefined ? '' : `\nnext: ${paint.bold(clean(said.next))}`
    if (said.gone === undefined) return clean(said.message) + next
    const { goneLines } = await import('../print/summary.ts')
    return [clean(said.message), ...goneLines(said.gone)].join('\n') + next
  })
}
