// The terminal UI in this process: signals end it as they should, and the terminal is given back on every way out.
import { constants } from 'node:os'
import type { Client } from '../tui/client.ts'
import type { Entry } from '../tui/view-model.ts'
import type { Io } from '../io.ts'
import { isTerminal } from '../io.ts'

/** Where nobody could use it there are plain lines. */
export function mayOpenTui({ stdin, stdout, env }: Io): boolean {
  return isTerminal(stdin) && isTerminal(stdout) && env['TERM'] !== 'dumb' && !env['CI']
}

/** Resolves to the exit code once the user has left. */
export async function openTui(io: Io, client: Client, entry: Entry, isSilent = false): Promise<number> {
  const { startTui } = await import('../tui/start.tsx')
  const tui = await startTui(client, entry, {
    ...io,
    stdin: io.stdin,
    isSilent,
    // The whole group, as Ctrl-Z would: a wrapper around this process is stopped with it.
    suspend: () => process.kill(0, 'SIGSTOP'),
  })
  const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const
  const enders = signals.map(
    (signal) => [signal, (): void => tui.end(128 + constants.signals[signal])] as const,
  )
  for (const [signal, end] of enders) process.on(signal, end)
  process.on('SIGTSTP', tui.suspend)
  process.on('SIGCONT', tui.resumed)
  process.on('exit', tui.leave)
  try {
    const { exitCode, words } = await tui.left
    for (const word of words) io.stdout.write(`${word}\n`)
    return exitCode
  } finally {
    for (const [signal, end] of enders) process.off(signal, end)
    process.off('SIGTSTP', tui.suspend)
    process.off('SIGCONT', tui.resumed)
    process.off('exit', tui.leave)
  }
}
