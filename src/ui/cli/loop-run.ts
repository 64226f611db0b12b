// What `loop` and `resume` do once their arguments are read: settle, choose a printer, run, print the end.
import { performance } from 'node:perf_hooks'
import type { LoadedConfig, RawFlags } from '../../config/load.ts'
import { inOneLine, RalphError } from '../../core/error.ts'
import type { LoopEvent } from '../../core/event.ts'
import { signalExits } from '../../core/outcome.ts'
import type { Config } from '../../config/options.ts'
import type { App, LoopEnd, LoopRequest, Observe } from '../app.ts'
import { isTerminal, type Io } from '../io.ts'
import { agreesAt, humanAt } from '../print/choice.ts'
import { githubPrinter } from '../print/github.ts'
import { jsonPrinter, roomIn } from '../print/json.ts'
import { plainPrinter } from '../print/plain.ts'
import { folded, type Sheet } from '../print/layout.ts'
import { silent, type Printer } from '../print/printer.ts'
import { terminalPrinter } from '../print/terminal.ts'
import { shellWord } from '../../core/shell-word.ts'
import { oneLine } from '../print/text.ts'
import { typedRows } from '../print/typed.ts'
import { attention } from '../print/title.ts'
import type { StartRequest } from '../tui/client.ts'
import { agreesElsewhere, tellBegan } from './attended.ts'
import type { Context } from './context.ts'
import { givenWords } from './loop-options.ts'
import { withPicked } from './pick.ts'
import { respond } from './row.ts'
import { driveBySignals, onStop, type Signal } from './signals.ts'
import { appendFile } from 'node:fs/promises'
import { reportMarkdown } from '../print/report-md.ts'

/** Who started it from another process. */
interface Followed {
  /** A person, on a screen. */
  readonly isAttended?: true | undefined
  /** The merge queue. */
  readonly isAlone?: true | undefined
}

export async function startLoop(
  context: Context,
  change: string | undefined,
  flags: RawFlags,
  {
    acceptsConfig,
    prompts,
    ...followed
  }: Followed & { readonly acceptsConfig: boolean; readonly prompts: boolean },
): Promise<void> {
  const { observe, control, settings } = await prepare(context, flags)
  if (settings.config.dry_run) {
    warn(context, settings)
    const plan = await observe.plan({ change, settings, acceptsConfig })
    const text = async (page: Sheet): Promise<string> =>
      (await import('../print/dry-run.ts')).dryRunText(plan, page, {
        prompts,
        typed: typedWords(flags, context.passThrough),
      })
    if (plan.refused !== undefined) context.exitWith(plan.refused.exit_code)
    return respond(context, settings.config.json, () => plan, text)
  }
  if (prompts) {
    throw new RalphError('usage', '--prompts belongs to --dry-run', {
      hint: 'type: ralph loop --dry-run --prompts, or ralph prompt <change> for the next one alone',
    })
  }
  const start = async (name: string | undefined): Promise<void> => {
    if (await isForScreens(context, settings)) {
      // Which one is meant is settled on the plain screen.
      const change = name ?? (await observe.show(undefined)).name
      return onScreens(context, { observe, control }, settings, { how: 'loop', change, flags, acceptsConfig })
    }
    warn(context, settings)
    const again = await perform(context, { observe, control }, settings, followed, (request) =>
      control.loop({ ...request, change: name, acceptsConfig }),
    )
    if (again !== undefined) await tryAgain(context, again, flags)
  }
  // With --json stdout is for events.
  await (settings.config.json ? start(change) : withPicked(context, change, start))
}

/** The options as they were given: what they are called is how the real start gets them, too. */
function typedWords(flags: RawFlags, passThrough: readonly string[] = []): string {
  const { dry_run: _, json: __, ...others } = flags
  const words = givenWords(others).flatMap(([flag, value]) => [
    flag,
    ...(value === undefined ? [] : [shellWord(oneLine(value))]),
  ])
  const rest = passThrough.length === 0 ? [] : ['--', ...passThrough.map(shellWord)]
  return [...words, ...rest].map((word) => ` ${word}`).join('')
}

export async function resumeLoop(
  context: Context,
  change: string | undefined,
  flags: RawFlags,
  {
    feedback,
    acceptsConfig,
    ...followed
  }: Followed & { feedback: string | undefined; acceptsConfig: boolean },
): Promise<void> {
  const { observe, control, settings } = await prepare(context, flags, true)
  if (await isForScreens(context, settings))
    return onScreens(context, { observe, control }, settings, {
      how: 'resume',
      change,
      flags,
      acceptsConfig,
      feedback,
    })
  warn(context, settings)
  const again = await perform(context, { observe, control }, settings, followed, (request) =>
    control.resume({ ...request, change, feedback, acceptsConfig }),
  )
  if (again !== undefined) await tryAgain(context, again, flags)
}

/** The run knows its settings, but for what may be a secret, and that it was asked for on plain lines. */
function tryAgain(context: Context, change: string, { agent_env }: RawFlags): Promise<void> {
  const flags = { no_tui: true, ...(agent_env !== undefined && { agent_env }) }
  return resumeLoop(context, change, flags, { feedback: undefined, acceptsConfig: false })
}

async function prepare(
  context: Context,
  flags: RawFlags,
  forResume = false,
): Promise<App & { readonly settings: LoadedConfig }> {
  const app = await context.app()
  const { passThrough } = context
  const settings = await app.observe.settings(
    { ...flags, ...(passThrough && { agent_args: passThrough }) },
    forResume,
  )
  return { ...app, settings }
}

function warn({ io: { stderr } }: Context, { warnings }: LoadedConfig): void {
  for (const warning of warnings) stderr.write(`${folded(`warning: ${oneLine(warning)}`, stderr.columns)}\n`)
}

async function isForScreens({ io }: Context, { config }: LoadedConfig): Promise<boolean> {
  return !config.json && !config.no_tui && (await import('./tui.ts')).mayOpenTui(io)
}

async function onScreens(
  context: Context,
  app: App,
  { config }: LoadedConfig,
  request: StartRequest,
): Promise<void> {
  const { passThrough } = context
  const flags = { ...request.flags, ...(passThrough && { agent_args: passThrough }) }
  const { runOnScreens } = await import('./tui.ts')
  return runOnScreens(context, app, { ...request, flags }, config.notify === false)
}

/** Resolves with the change that the user wants to be tried again at once. */
async function perform(
  context: Context,
  { observe, control }: App,
  settings: LoadedConfig,
  /** By the screens, in another process. */
  { isAttended, isAlone }: Followed,
  work: (request: Omit<LoopRequest, 'change' | 'acceptsConfig'>) => Promise<LoopEnd>,
): Promise<string | undefined> {
  const printer = isAttended || isAlone ? silent : printerFor(context, settings.config)
  let change: string | undefined
  let wantsSquash = false
  let wantsAgain = false
  let stoppedBy: Signal | undefined
  /** Its last words wait for the squash that was asked for. */
  let held: Complete | undefined
  // The cursor is never hidden and the terminal never raw: even kill -9 leaves it usable.
  process.on('exit', printer.close)
  const human = humanAt({
    ...context.io,
    isQuiet: settings.config.json,
    before: () => printer.pause(),
    onSquash: () => {
      wantsSquash = true
    },
    onAgain: () => {
      wantsAgain = true
    },
    ring: () => {
      if (settings.config.notify !== false) context.io.stdout.write(attention('ralph needs you'))
    },
  })
  try {
    const { exitCode, note } = await work({
      settings,
      human,
      confirm: (what) =>
        isAttended ? agreesElsewhere(what) : agreesAt({ ...context, isQuiet: settings.config.json }, what),
      ...(isAttended && { isAttended }),
      onSettingUp: (end) =>
        onStop((signal) => {
          stoppedBy = signal
          end()
        }),
      onRunning: (loop) =>
        driveBySignals(loop, context.readerGone, () => {
          if (change === undefined || isAttended) return
          printer.pause()
          const said = `Killed; what the agent left is still here. Repair it and continue: ralph resume ${oneLine(change)}`
          context.io.stderr.write(`${folded(said, context.io.stderr.columns)}\n`)
        }),
      // Plain lines are few: they wait for a pager in memory.
      ...(settings.config.json && { room: roomIn(context.io.stdout) }),
      tell: (event) => {
        if (event.type === 'loop.started') {
          change = event.change_id
          if (isAttended || isAlone) tellBegan(change)
        }
        if (event.type === 'complete' && wantsSquash) held = event
        // What comes next is the resume's to say.
        else if (event.type !== 'complete' || !wantsAgain) printer.tell(event)
      },
    })
    if (wantsAgain) return change
    if (held !== undefined)
      for (const event of await squashedEnd({ observe, control }, held)) printer.tell(event)
    if (change !== undefined) await writeJobSummary(context.io, observe, change)
    // With --json stdout is for events.
    if (note !== undefined) context.io.stderr.write(`${folded(note, context.io.stderr.columns)}\n`)
    context.exitWith(exitCode)
    return undefined
  } catch (error) {
    if (stoppedBy === undefined || !(error instanceof RalphError)) throw error
    context.io.stderr.write(`${folded(inOneLine(error), context.io.stderr.columns)}\n`)
    context.exitWith(signalExits[stoppedBy])
    return undefined
  } finally {
    printer.close()
    process.off('exit', printer.close)
  }
}

type Complete = Extract<LoopEvent, { type: 'complete' }>

/** As `ralph finish --squash` does it, told as the end of the loop; the loop's own status and exit code stand. */
async function squashedEnd({ observe, control }: App, complete: Complete): Promise<readonly LoopEvent[]> {
  const { change_id: change, v, seq, time } = complete
  const stamp = { v, seq, time, change_id: change }
  try {
    const { message, data } = await control.finish({ change, choice: 'squash', acceptsConfig: false })
    const commit = typeof data['commit'] === 'string' ? { commit: data['commit'] } : {}
    return [
      { ...stamp, type: 'loop.finished', choice: 'cleanup', ok: true, message, ...commit },
      { ...complete, choice: 'cleanup' },
    ]
  } catch (error) {
    if (!(error instanceof RalphError)) throw error
    // A commit that the user's hook refused: the work has been moved all the same.
    const [report] = await observe.status(change)
    const warning = { ...stamp, type: 'warning', code: error.code, message: inOneLine(error) } as const
    if (report?.choice !== 'cleanup') return [warning, complete]
    return [
      warning,
      { ...stamp, type: 'loop.finished', choice: 'cleanup', ok: true, message: '' },
      { ...complete, choice: 'cleanup' },
    ]
  }
}

function printerFor({ io }: Context, { json, notify }: Pick<Config, 'json' | 'notify'>): Printer {
  if (json) return jsonPrinter(io.stdout, io.stderr)
  if (io.env['GITHUB_ACTIONS'] === 'true' && !isTerminal(io.stdout)) return githubPrinter(io)
  if (!isTerminal(io.stdout) || io.env['TERM'] === 'dumb') return plainPrinter(io)
  return terminalPrinter({
    ...io,
    now: () => performance.now(),
    isSilent: notify === false,
    typedRows: typedRows(io.stdin),
  })
}

/** A summary that cannot be written is no reason to fail a job whose loop is done. */
async function writeJobSummary(io: Io, observe: Observe, change: string): Promise<void> {
  const file = io.env['GITHUB_STEP_SUMMARY'] ?? ''
  if (io.env['GITHUB_ACTIONS'] !== 'true' || file === '') return
  try {
    await appendFile(file, `${reportMarkdown(await observe.report(change))}\n`)
  } catch (error) {
    io.stderr.write(`warning: the job's summary could not be written: ${(error as Error).message}\n`)
  }
}
