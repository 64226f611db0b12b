// ralph as a library: what the command line does, as functions for other programs, which keep their process to themselves.
import { createApp } from '../compose.ts'
import { mailbox } from '../compose/mailbox.ts'
import type { RawFlags } from '../config/load.ts'
import { optionKeys } from '../config/options.ts'
import { cursorText, parseCursor } from '../core/cursor.ts'
import type { Cursor } from '../core/cursor.ts'
import { RalphError } from '../core/error.ts'
import { isPublic } from '../core/public-events.ts'
import { nearest } from '../core/nearest.ts'
import type { LoopState as CoreState } from '../core/state.ts'
import { toStateFile } from '../core/state-snapshot.ts'
import type { App, LoopHandle, LoopRequest } from '../ui/app.ts'
import type * as api from './api.ts'
import type { LoopEvent } from './types.ts'

export { RalphError }

export function runLoop(options: api.RunOptions = {}): api.LoopRun {
  let end: api.LoopEnd | undefined
  const events = loopEvents(options, (ended) => {
    end = ended
  })
  return Object.defineProperty(events, 'end', { get: () => end }) as api.LoopRun
}

async function* loopEvents(
  options: api.RunOptions,
  ended: (end: api.LoopEnd) => void,
): AsyncGenerator<api.LoopItem, api.LoopEnd, void> {
  refuseUnknown('option', options, runOptions)
  const { signal, change, resume = false, feedback, acceptConfig: acceptsConfig = false } = options
  signal?.throwIfAborted()
  const warnings: string[] = []
  const warn = (message: string): void => {
    warnings.push(message)
    options.onWarning?.(message)
  }
  const { observe, control } = appAt(options, warn)
  const settings = await observe.settings(flagsOf(options), resume)
  for (const warning of settings.warnings) warn(warning)
  if (settings.config.dry_run)
    throw new RalphError(
      'config',
      'dry_run is set in a file or a variable, and a library call runs for real.',
      {
        hint: 'Nothing was touched. Unset it: ralph config says where it comes from.',
      },
    )
  const box = mailbox<api.LoopItem>()
  let running: LoopHandle | undefined
  const stopping = new AbortController()
  const stop = (): void => stopping.abort()
  stopping.signal.addEventListener('abort', () => running?.stop('SIGTERM'))
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  const request: LoopRequest = {
    change,
    settings,
    acceptsConfig,
    isHosted: true,
    tell: (event, state, cursor) => {
      if (isPublic(event))
        box.put(withState({ event: event as LoopEvent, cursor: cursorText(cursor) }, state))
    },
    room: () => box.room(),
    human: {
      choose: (question, by) => options.human?.choose?.(question, by) ?? Promise.resolve('later'),
      isDone: (task, by) => options.human?.isDone?.(task, by) ?? Promise.resolve('later'),
    },
    confirm: (what) => {
      warn(what)
      return Promise.resolve(true)
    },
    onRunning: (loop) => {
      running = loop
      // Its first event is told right after this: before it there is no loop that could be stopped.
      if (stopping.signal.aborted) queueMicrotask(() => loop.stop('SIGTERM'))
      return () => {
        running = undefined
      }
    },
  }
  const work = resume ? control.resume({ ...request, feedback }) : control.loop(request)
  void work.then(
    () => box.close(),
    (error: unknown) => box.close({ error }),
  )
  try {
    yield* box.read()
    const { exitCode, note } = await work
    const end = { exit_code: exitCode, ...(note !== undefined && { note }), warnings }
    ended(end)
    return end
  } finally {
    // Whoever stops reading stops the loop; it is over when this is.
    signal?.removeEventListener('abort', stop)
    box.close()
    stop()
    await work.catch(() => undefined)
  }
}

export async function readLoop(
  options: Parameters<typeof api.readLoop>[0] = {},
): Promise<api.LoopSnapshot | undefined> {
  refuseUnknown('option', options, placeOptions)
  const { observe } = appAt(options)
  const { change } = options
  const reports = await observe.status(change).catch((error: unknown) => {
    const isNone = error instanceof RalphError && error.code === 'change_not_found'
    // A change without a loop, and not one that is misspelt.
    if (isNone && change !== undefined && error.message.startsWith('No loop of ')) return []
    throw error
  })
  const [first] = reports
  if (first === undefined) return undefined
  const { where: _, ...report } = first
  return report
}

export async function* watchLoops(options: api.WatchOptions = {}): AsyncGenerator<api.WatchItem, void, void> {
  refuseUnknown('option', options, watchOptions)
  const { signal = new AbortController().signal, from } = options
  const { observe } = appAt(options)
  const since = from === undefined || from === 'start' ? from : cursorsOf(from)
  for await (const told of observe.watch({ stop: signal, ...(since !== undefined && { from: since }) })) {
    const { change_id, state, cursor, ...what } = told
    if (what.type === 'event' && !isPublic(what.event)) continue
    if (what.type === 'loop' && what.loop === 'none') continue
    yield withState({ ...(what as Shown), change_id, cursor: cursorText(cursor) }, state)
  }
}

/** Without what is private, which was left out before. */
type Shown = api.WatchItem extends infer Item
  ? Item extends unknown
    ? Omit<Item, keyof Where>
    : never
  : never
type Where = Pick<api.WatchItem, 'change_id' | 'state' | 'cursor'>

/** Made when it is looked at: most readers look at few. */
function withState<Item extends object>(
  item: Item,
  state: CoreState,
): Item & { readonly state: api.LoopItem['state'] } {
  let made: api.LoopItem['state'] | undefined
  return Object.defineProperty(item, 'state', {
    enumerable: true,
    get: () => (made ??= toStateFile(state)),
  }) as Item & { readonly state: api.LoopItem['state'] }
}

/** Nothing of the process is used but where it stands and what surrounds it, and that only to look. */
function appAt(
  { cwd = process.cwd(), env = process.env }: api.Place,
  warn: (message: string) => void = () => undefined,
): App {
  return createApp({ cwd, env: { ...env }, warn })
}

/** `json`: what is said before the first event is an event, too. */
function flagsOf({ settings = {} }: api.RunOptions): RawFlags {
  refuseUnknown('setting', settings, settingNames)
  return { ...settings, json: true }
}

const settingNames = optionKeys.filter((key) => key !== 'json' && key !== 'no_tui' && key !== 'dry_run')
const placeOptions = ['cwd', 'env', 'change']
const watchOptions = ['cwd', 'env', 'signal', 'from']
const runOptions = 'cwd env change settings resume feedback acceptConfig signal onWarning human'.split(' ')

/** A budget under a misspelt name would not hold. */
function refuseUnknown(what: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown === undefined) return
  const near = nearest(unknown, known)
  throw new RalphError('usage', `unknown ${what} ${unknown}`, {
    hint: near === undefined ? `There are: ${known.join(', ')}` : `Did you mean ${near}?`,
  })
}

function cursorsOf(from: Readonly<Record<string, string>>): Record<string, Cursor> {
  return Object.fromEntries(
    Object.entries(from).map(([change, text]) => {
      const cursor = parseCursor(text)
      if (cursor !== undefined) return [change, cursor]
      throw new RalphError('usage', `${text} is no cursor`, {
        hint: 'Give the cursor of the last item that you have read.',
      })
    }),
  )
}
