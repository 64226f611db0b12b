// `ralph mcp`: the MCP server on stdio, from its start to the end of its client.
import { signalExits } from '../../core/outcome.ts'
import { isTerminal } from '../io.ts'
import { oneLine } from '../print/text.ts'
import { serveMcp } from '../mcp/server.ts'
import { clientOf } from './client.ts'
import type { Context } from './context.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Whoever floods it with nonsense must not have its stderr flooded, too. */
const mostComplaints = 20

export async function runMcp(
  context: Context,
  { allowsControl, version }: { readonly allowsControl: boolean; readonly version: string },
): Promise<void> {
  const { io } = context
  const stop = new AbortController()
  // A deed that has begun comes to its end first; a second signal ends all.
  const enders = signals.map((signal) => {
    const end = (): void => {
      if (stop.signal.aborted) process.exit(signalExits[signal])
      context.exitWith(signalExits[signal])
      stop.abort()
    }
    return [signal, end] as const
  })
  for (const [signal, end] of enders) process.on(signal, end)
  if (isTerminal(io.stdin))
    io.stderr.write(
      'ralph mcp is for programs: it speaks MCP on stdin and stdout. Claude Code starts it after: claude mcp add ralph -- ralph mcp\nCtrl-C ends it.\n',
    )
  let complaints = 0
  await serveMcp({
    io,
    version,
    allowsControl,
    loadApp: () => context.app(),
    start: (app, wanted) => clientOf(context, app).start(wanted),
    now: () => Date.now(),
    complain: (message) => {
      complaints += 1
      if (complaints > mostComplaints) return
      const last = complaints === mostComplaints ? ' (further errors are not shown)' : ''
      io.stderr.write(`ralph mcp: ${oneLine(message)}${last}\n`)
    },
    stop: stop.signal,
  })
  for (const [signal, end] of enders) process.off(signal, end)
}
