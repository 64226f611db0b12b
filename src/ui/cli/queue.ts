// `ralph up` and `ralph land`: what was typed becomes a request, events become lines or a table, signals stop the queue and not its loops.
import { setTimeout as delay } from 'node:timers/promises'
import type { RawFlags } from '../../config/load.ts'
import { RalphError } from '../../core/error.ts'
import { signalExits } from '../../core/outcome.ts'
import { mostTries, slotVariables } from '../../core/queue-due.ts'
import type { QueueReport, QueueWish, UpRequest, UpWish } from '../app.ts'
import { isTerminal, paintFor } from '../io.ts'
import type { Io } from '../io.ts'
import { folded } from '../print/layout.ts'
import type { Sheet } from '../print/layout.ts'
import { openedWords, queueBoard, queueLine, queueNext, queueText, upSummary } from '../print/queue.ts'
import type { Board } from '../print/queue.ts'
import { typedRows } from '../print/typed.ts'
import { legible } from '../vocabulary.ts'
import { clientOf } from './client.ts'
import type { Context } from './context.ts'
import { standGuard } from './guard.ts'
import type { Guard } from './guard.ts'
import { respond } from './row.ts'
import { mayOpenTui, openTui } from './tui.ts'

export interface UpFlags {
  readonly jobs?: string | undefined
  readonly into?: string | undefined
  readonly after?: readonly string[] | undefined
  readonly land?: 'squash' | 'merge' | false | undefined
  readonly pull?: boolean | undefined
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export async function runUp(
  context: Context,
  changes: readonly string[],
  flags: RawFlags,
  own: UpFlags,
  /** Only this one, whose loop is done. */
  landing?: string,
): Promise<void> {
  const { io } = context
  const app = await context.app()
  const settings = await app.observe.settings(flags)
  const { config } = settings
  const wish: UpWish = {
    changes,
    jobs: positive(own.jobs ?? '2'),
    into: own.into,
    after: own.after ?? [],
    maxCostUsd: config.max_cost,
    setUp: config,
    regenerate: config.regenerate,
    land: own.land === false ? 'squash' : (own.land ?? 'squash'),
    lands: own.land !== false,
    gates: config.verify,
    namesGates: settings.entries.some(({ key, origin }) => key === 'verify' && origin === 'flag'),
    flags,
    gateTimeoutMs: config.iteration_timeout * 60_000,
    agents: config,
    kept: config,
  }
  if (config.dry_run && landing === undefined) {
    const plan = await app.observe.upPlan(wish)
    const text = async (sheet: Sheet): Promise<string> =>
      (await import('../print/up-plan.ts')).upPlanText(plan, sheet)
    if (plan.refused !== undefined) context.exitWith(plan.refused.exit_code)
    return respond(context, config.json, () => plan, text)
  }
  const stop = new AbortController()
  let code: number | undefined
  const onSignal = (signal: (typeof signals)[number]): void => {
    if (code !== undefined) process.exit(signalExits[signal])
    code = signalExits[signal]
    stop.abort()
  }
  for (const signal of signals) process.on(signal, onSignal)
  const client = clientOf(context, app)
  const paint = paintFor(io.stdout, io.env)
  const isScreen = !config.json && !config.no_tui && mayOpenTui(io)
  const guard = isScreen ? standGuard(io.env) : undefined
  const isTable = !isScreen && isTerminal(io.stdout) && io.env['TERM'] !== 'dumb' && !config.json
  const typed = typedRows(io.stdin)
  let board: Board | undefined
  const over = new AbortController()
  let screens: Promise<void> | undefined
  let gateFound: string | undefined
  let isTold = false
  const named = new Set([...changes, ...(landing === undefined ? [] : [landing])])
  /** When there is something to see: what is refused before is said on the plain screen. */
  const openScreens = async (by: Guard): Promise<void> => {
    const isSilent = config.notify === false
    const left = await openTui(io, client, { at: 'queue' }, { guard: by, isSilent, over: over.signal })
    // Left by a key or a signal before it was over.
    if (left === 0) return
    code ??= left
    stop.abort()
  }
  const request: UpRequest = {
    ...wish,
    start: async (change, how, { slot, ...at }) => {
      const started = await client.start({
        change,
        how: how === 'resume' ? 'resume' : 'loop',
        flags: loopFlags({ ...(at.flags ?? flags), ...moreGates(config.verify, at.gates) }, how, at),
        ...(how === 'resume' && { feedback: at.text }),
        env: slotVariables(slot),
        isAlone: true,
      })
      return 'refused' in started ? { refused: reasonIn(started.refused), exitCode: started.exitCode } : {}
    },
    tell: (event) => {
      isTold = true
      if ('change' in event) named.delete(event.change)
      // A table shows no lines; this one stays above it, and is there when the screens are left.
      if (event.type === 'queue.opened' && (isScreen || isTable)) {
        gateFound = event.gate_found
        for (const words of openedWords(event))
          io.stdout.write(legible(`${folded(words, io.stdout.columns)}\n`, io.env))
      }
      if (isTable) board ??= queueBoard(io.stdout, paint, () => app.observe.queue(), Date.now, typed)
      if (guard !== undefined) screens ??= openScreens(guard)
      else if (config.json) io.stdout.write(`${JSON.stringify(event)}\n`)
      else if (board === undefined) io.stdout.write(legible(queueLine(event), io.env))
    },
    stop: stop.signal,
  }
  try {
    const exit =
      landing === undefined ? await app.control.up(request) : await app.control.land(landing, request)
    over.abort()
    await screens
    await board?.close()
    const report = await app.observe.queue(true)
    const known = report.entries.find(({ change }) => change === landing)
    if (known !== undefined && !isTold) {
      const as = `${known.change} has landed already, as ${known.landed.slice(0, 7)}`
      const where =
        report.take === undefined
          ? ` on ${known.target}.`
          : `; your ${known.target} does not have all that landed yet: ${report.take}`
      if (!config.json) io.stdout.write(`${as}${where}\n`)
      return context.exitWith(exit)
    }
    // Taken out of the queue after it had landed: nothing else says a word of it.
    for (const { change } of report.entries) named.delete(change)
    if (!config.json)
      for (const change of named)
        io.stdout.write(`${change} has landed already: ralph status ${change} shows where.\n`)
    const isPulled = own.pull === true && exit === 0
    const end = { now: Date.now(), isStopped: code !== undefined, isPulled, gateFound }
    if (!config.json) io.stdout.write(legible(upSummary(report, sheetOf(io), end), io.env))
    if (isPulled) {
      const { message } = await app.control.pullLanded()
      if (!config.json) io.stdout.write(`${message}\n`)
    }
    context.exitWith(code ?? exit)
  } finally {
    over.abort()
    await screens
    await board?.close()
    for (const signal of signals) process.off(signal, onSignal)
  }
}

/** A change is begun with all that it was queued with, whatever this call names. */
function moreGates(known: readonly string[], queued: readonly string[] = []): RawFlags {
  const all = new Set([...known, ...queued])
  return all.size > known.length ? { verify: [...all] } : {}
}

/** Each loop is an ordinary one, in a work tree of its own, at what has landed so far. */
function loopFlags(
  flags: RawFlags,
  how: 'loop' | 'anew' | 'resume' | 'resolve',
  { base, text, maxCostUsd }: Omit<Parameters<UpRequest['start']>[2], 'slot'>,
): RawFlags {
  const { json: _, no_tui: __, dry_run: ___, fresh: ____, max_iterations: most, ...passed } = flags
  const share = maxCostUsd === undefined ? {} : { max_cost: String(maxCostUsd) }
  const common = { ...passed, ...share, on_complete: 'keep' }
  const limit = most === undefined ? {} : { max_iterations: most }
  if (how === 'resume') return { ...common, ...limit }
  const apart = { ...common, worktree: true, from: base }
  if (how === 'loop') return { ...apart, ...limit }
  // A new plan of a name that has landed: the earlier run is archived.
  if (how === 'anew') return { ...apart, ...limit, fresh: true }
  // The same work tree, from both sides: what the change's own loop did is archived.
  return { ...apart, fresh: true, done: 'manual', task: text, stall_threshold: String(mostTries) }
}

/** The last words of a start that was refused, without what only its own terminal needs: a sentence of its own for the hint below it. */
function reasonIn(said: string): string {
  return (
    said
      .split('\n')
      .filter((line) => !line.startsWith('warning:'))
      .join('\n')
      // A command on a line of its own is still seen as one; a sentence is none.
      .replaceAll(/^ {4}([^A-Z].*)$/gm, '  `$1`')
      .replaceAll(/([^.:;!?])\n {2}(?=[A-Z])/g, '$1. ')
      .replaceAll(/\s+/g, ' ')
      .replace(/^error: /, '')
      .replace(/\.$/, '')
      .trim() || 'its loop did not begin'
  )
}

function positive(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text)
  throw new RalphError('usage', `--jobs must be a whole number from 1 to 999, not ${text}`, {
    hint: 'For example: --jobs 3',
  })
}

/** Until nobody works on it any more, or Ctrl-C. */
export async function watchQueue({ io, app, readerGone }: Context): Promise<void> {
  const { observe } = await app()
  const paint = paintFor(io.stdout, io.env)
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  process.on('SIGINT', onSignal)
  let report = await observe.queue()
  if (!report.alive) {
    io.stdout.write(`${legible(queueWords(report, sheetOf(io)), io.env)}\n`)
    return
  }
  const look = async (): Promise<QueueReport> => (report = await observe.queue())
  const board = queueBoard(io.stdout, paint, look, Date.now, typedRows(io.stdin))
  try {
    while (report.alive && !stop.signal.aborted && !readerGone.aborted)
      await delay(250, undefined, { signal: stop.signal }).catch(() => undefined)
  } finally {
    await board.close()
    process.off('SIGINT', onSignal)
  }
  io.stdout.write(`${legible(queueWords(await observe.queue(), sheetOf(io)), io.env)}\n`)
}

function sheetOf({ stdout, env }: Io): Sheet {
  return { paint: paintFor(stdout, env), columns: stdout.columns }
}

function queueWords(report: QueueReport, sheet: Sheet): string {
  return [queueText(report, sheet, Date.now()), ...queueNext(report, sheet)].join('\n')
}

export async function runQueue(
  context: Context,
  what: QueueWish | 'pull' | undefined,
  change: string,
  isJson: boolean,
): Promise<void> {
  const { observe, control } = await context.app()
  if (what === undefined) {
    const report = await observe.queue(true)
    return respond(
      context,
      isJson,
      () => report,
      (sheet) => queueWords(report, sheet),
    )
  }
  const said = what === 'pull' ? await control.pullLanded() : await control.askQueue(what, change)
  await respond(
    context,
    isJson,
    () => ({ message: said.message, ...said.data }),
    async (sheet) => {
      const { onwardLines } = await import('../print/step-lines.ts')
      return [said.message, ...(said.next === undefined ? [] : onwardLines(said.next, sheet))].join('\n')
    },
  )
}
