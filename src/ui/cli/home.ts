// `ralph` alone: on a terminal the changes and what to type next; in a pipe the help text and exit 2.
import { isTerminal, paintFor } from '../io.ts'
import { homeText } from '../print/list.ts'
import type { Context } from './context.ts'

export async function home(context: Context, help: string): Promise<void> {
  const { stdout, env } = context.io
  if (!isTerminal(stdout)) {
    stdout.write(help)
    context.exitWith(2)
    return
  }
  const app = await context.app()
  stdout.write(`${homeText(await app.list(), paintFor(stdout, env))}\n`)
}
