// The terminal UI in this process: signals end it as they should, and the terminal is given back on every way out.
import { constants } from 'node:os'
import { RalphError } from '../../core/error.ts'
import type { App } from '../app.ts'
import type { Client, StartRequest } from '../tui/client.ts'
import type { Entry } from '../tui/view-model.ts'
import type { Io } from '../io.ts'
import { isTerminal, paintFor } from '../io.ts'
import type { Context } from './context.ts'
import { standGuard } from './guard.ts'
import type { Guard } from './guard.ts'

/** Where nobody could use it there are plain lines. */
export function mayOpenTui({ stdin, stdout, env }: Io): boolean {
  return isTerminal(stdin) && isTerminal(stdout) && env['TERM'] !== 'dumb' && !env['CI']
}

/** How long a process may still run that was stopped. */
const stoppingMs = 50

interface Opening {
  readonly guard: Guard
  readonly isSilent?: boolean
  /** Of `ralph up` in this process: aborts when it has nothing left to do. */
  readonly over?: AbortSignal
}

/** Resolves to the exit code once the user has left. */
export async function openTui(
  io: Io,
  client: Client,
  entry: Entry,
  { guard, isSilent = false, over }: Opening,
): Promise<number> {
  const { startTui } = await import('../tui/start.tsx')
  /** The whole group, as Ctrl-Z would: a wrapper around this process is stopped with it. Where no shell could let it go on, nobody is stopped. */
  const suspend = (): void => {
    process.off('SIGTSTP', tui.suspend)
    process.kill(0, 'SIGTSTP')
    stopping = setTimeout(resumed, stoppingMs)
  }
  let stopping: NodeJS.Timeout | undefined
  const resumed = (): void => {
    clearTimeout(stopping)
    // Before anything is drawn: stopped again at once, it gives the terminal back again.
    process.off('SIGTSTP', tui.suspend).on('SIGTSTP', tui.suspend)
    tui.resumed()
  }
  const tui = await startTui(client, entry, { ...io, stdin: io.stdin, isSilent, suspend, guard: guard.tell })
  const isOver = (): void => tui.hear({ type: 'queue_over' })
  if (over?.aborted === true) isOver()
  else over?.addEventListener('abort', isOver, { once: true })
  const goOn = (): void => {
    // Who was stopped was not told of another size.
    process.kill(process.pid, 'SIGWINCH')
    resumed()
  }
  const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const
  const enders = signals.map(
    (signal) => [signal, (): void => tui.end(128 + constants.signals[signal])] as const,
  )
  for (const [signal, end] of enders) process.on(signal, end)
  process.on('SIGTSTP', tui.suspend)
  process.on('SIGCONT', goOn)
  process.on('exit', tui.leave)
  try {
    const { exitCode, words } = await tui.left
    for (const word of words) io.stdout.write(`${word}\n`)
    return exitCode
  } finally {
    for (const [signal, end] of enders) process.off(signal, end)
    process.off('SIGTSTP', tui.suspend)
    process.off('SIGCONT', goOn)
    process.off('exit', tui.leave)
  }
}

/** A loop in a process of its own, and the screens on it. Where it does not begin: what it says, as on the plain screen. */
export async function runOnScreens(
  context: Context,
  app: App,
  request: StartRequest,
  isSilent: boolean,
): Promise<void> {
  const { io, exitWith } = context
  const [{ clientOf }, { agreesAt }, paused] = await Promise.all([
    import('./client.ts'),
    import('../print/choice.ts'),
    request.how === 'resume' ? pausedLoops(app, request.change) : [],
  ])
  const guard = standGuard(io.env)
  const client = clientOf(context, app)
  const confirm = (what: string): Promise<boolean> => agreesAt({ ...context, isQuiet: false }, what)
  // They are loaded while it begins.
  const [began] = await Promise.all([client.start({ ...request, confirm }), import('../tui/start.tsx')])
  const isRefused = 'refused' in began
  await saidOn(io, isRefused ? began.refused : began.said)
  // A resume lets one that is paused go on.
  const [going] = isRefused && began.exitCode === 0 && paused.length === 1 ? paused : []
  if (isRefused && going === undefined) return exitWith(began.exitCode)
  const entry = isRefused
    ? { change: going?.change_id ?? '', isOwn: false }
    : { change: began.change, isOwn: true }
  exitWith(await openTui(io, client, { at: 'loop', ...entry }, { guard, isSilent }))
}

async function pausedLoops(
  { observe }: App,
  change: string | undefined,
): ReturnType<App['observe']['status']> {
  const reports = await observe.status(change).catch((error: unknown) => {
    // For the resume to say.
    if (error instanceof RalphError) return []
    throw error
  })
  return reports.filter(
    (report) => report.alive && (report.waiting_for === 'pause' || report.pause_requested === true),
  )
}

/** It was written into a file: for a terminal it gets its width and its colours. */
async function saidOn({ stderr, env }: Io, said: string): Promise<void> {
  if (said === '') return
  const { folded } = await import('../print/layout.ts')
  const paint = paintFor(stderr, env)
  const lines = said.split('\n').map((line) => {
    const indent = /^ */.exec(line)?.[0] ?? ''
    return folded(line.slice(indent.length), stderr.columns, indent).replace(/^error:/, paint.red('error:'))
  })
  stderr.write(`${lines.join('\n')}\n`)
}

/** `ralph attach`: also to a loop that has ended or is dead. */
export async function attach(context: Context, change: string | undefined): Promise<void> {
  const { io, app, exitWith } = context
  const own = await app()
  // A wrong name is told wherever it is typed.
  const { change_id: name } = await own.observe.history(change)
  if (!mayOpenTui(io))
    throw new RalphError('usage', 'ralph attach needs a terminal that it can draw on.', {
      hint: 'Without one: ralph logs -f, or ralph status --watch',
    })
  const guard = standGuard(io.env)
  const [{ clientOf }] = await Promise.all([import('./client.ts'), import('../tui/start.tsx')])
  exitWith(await openTui(io, clientOf(context, own), { at: 'loop', change: name, isOwn: false }, { guard }))
}
