// Does what the screens ask for, by way of the client, and brings back what came of it.
import { RalphError } from '../../core/error.ts'
import type { Told } from '../../ports.ts'
import type { QueueReport, Said } from '../app.ts'
import { withHint } from '../print/text.ts'
import type { Client } from './client.ts'
import type { Act, Input, Load, Loaded } from './inputs.ts'

/** Those that belong to the terminal are not done here. */
type ClientAct = Exclude<Act, { readonly do: 'quit' | 'suspend' | 'redraw' }>

export interface Effects {
  perform(act: ClientAct): void
  /** Nothing is followed any more. Resolves when what was asked of a loop has been done: a kill that is only on its way kills nothing. */
  close(): Promise<void>
}

/** So many records are folded at once. */
const batch = 2_000
/** What was written already comes without a pause: after so long the keys are heard. */
const busyMs = 15
const gatherMs = 50

export function effectsOf(
  client: Client,
  hear: (input: Input) => void,
  /** What is no answer but a bug. */
  fail: (error: unknown) => void,
): Effects {
  let following: AbortController | undefined
  const unfollow = (): void => {
    following?.abort()
    following = undefined
  }
  const asked = new Set<Promise<void>>()
  const answering = (act: ClientAct, work: Promise<Input | undefined>): void => {
    const answered = work
      .catch((error: unknown) => failure(act, error))
      .then((input) => {
        if (input !== undefined) hear(input)
      })
      .catch(fail)
    if (act.do === 'load' || act.do === 'follow') return
    asked.add(answered)
    void answered.then(() => asked.delete(answered))
  }
  const says = async (act: ClientAct, work: Promise<Said>): Promise<Input> => {
    const { message, data } = await work
    const { commit } = data
    const words = message.split('\n')[0] ?? ''
    return { type: 'said', act: act.do, message: words, ...(typeof commit === 'string' && { commit }) }
  }
  return {
    perform(act) {
      switch (act.do) {
        case 'load':
          return answering(
            act,
            load(client, act.load).then((loaded) => ({ type: 'loaded', loaded })),
          )
        case 'follow': {
          unfollow()
          const stop = new AbortController()
          following = stop
          return answering(act, follow(client, act.change, stop.signal, hear))
        }
        case 'unfollow':
          return unfollow()
        case 'start':
          return answering(
            act,
            client.start(act).then((began): Input => {
              if (!('refused' in began)) return { type: 'started', change: began.change }
              const { refused, exitCode } = began
              const message = refused
                .split('\n')
                .map((each) => each.trim())
                .reduce(withHint)
              return { type: 'failed', act, message, hint: '', exitCode }
            }),
          )
        case 'stop':
          return answering(
            act,
            says(act, client.control.stop({ change: act.change, force: act.isForce, isKey: true })),
          )
        case 'pause':
          return answering(act, says(act, client.control.pause({ change: act.change, isOff: act.isOff })))
        case 'note':
          return answering(act, says(act, client.control.note({ change: act.change, text: act.text })))
        case 'skip_wait':
          return answering(act, says(act, client.control.skipWait(act.change)))
        case 'done':
          return answering(act, says(act, client.control.done(act.change)))
        case 'finish':
          return answering(
            act,
            says(
              act,
              client.control.finish({ change: act.change, choice: act.choice, acceptsConfig: false }),
            ),
          )
      }
    },
    async close() {
      unfollow()
      await Promise.all(asked)
    },
  }
}

function failure(act: ClientAct, error: unknown): Input {
  if (!(error instanceof RalphError)) throw error
  const { message, hint, exitCode } = error
  return { type: 'failed', act, message, hint, exitCode }
}

/** Records in batches: what is told within a moment is one step of the model. */
async function follow(
  client: Client,
  change: string,
  stop: AbortSignal,
  hear: (input: Input) => void,
): Promise<undefined> {
  let records: Told[] = []
  let timer: NodeJS.Timeout | undefined
  let freeMs = performance.now()
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (records.length === 0 || stop.aborted) return
    const told = records
    records = []
    hear({ type: 'told', change, records: told })
  }
  for await (const told of client.observe.follow(change, { until: 'stop', stop })) {
    records.push(told)
    timer ??= setTimeout(flush, gatherMs)
    const isFull = records.length >= batch
    if (!isFull && performance.now() - freeMs < busyMs) continue
    if (isFull) flush()
    await new Promise((resolve) => setImmediate(resolve))
    freeMs = performance.now()
  }
  flush()
}

async function load({ observe }: Client, what: Load): Promise<Loaded> {
  switch (what.what) {
    case 'changes': {
      const [list, reports, queue] = await Promise.all([
        observe.list(),
        observe.status(undefined),
        queueOf(observe),
      ])
      return { what: 'changes', list, reports, ...(queue !== undefined && { queue }) }
    }
    case 'queue':
      return { what: 'queue', report: await observe.queue() }
    case 'detail':
      return { what: 'detail', change: what.change, detail: await observe.show(what.change) }
    case 'plan':
      return plan(observe, what)
    case 'so_far':
      return { what: 'so_far', change: what.change, now: await observe.attemptNow(what.change) }
    case 'gate_output': {
      const { change, n } = what
      return { what: 'gate_output', change, output: await observe.gateOutput({ change, n }) }
    }
    case 'patch': {
      const { change, n } = what
      const { patch } = await observe.diff({ change, n, form: 'short', isAll: n === undefined })
      return { what: 'patch', change, n, patch }
    }
    case 'report':
      return { what: 'report', change: what.change, report: await observe.report(what.change) }
  }
}

/** One that cannot be read is for its own commands to complain about. */
async function queueOf(observe: Client['observe']): Promise<QueueReport | undefined> {
  try {
    const report = await observe.queue()
    return report.entries.length === 0 ? undefined : report
  } catch (error) {
    if (error instanceof RalphError) return undefined
    throw error
  }
}

/** The settings are shown also where they would be refused. */
async function plan(
  observe: Client['observe'],
  { change, flags, isResumed }: Extract<Load, { what: 'plan' }>,
): Promise<Loaded> {
  const told = (error: unknown): string => {
    if (!(error instanceof RalphError)) throw error
    return withHint(error.message, error.hint)
  }
  const wanted = isResumed === true ? observe.resumeSettings(change, flags) : observe.settings(flags)
  const [settings, wrong] = await wanted.then(
    (found) => [found, ''] as const,
    async (error: unknown) => [await observe.settings({}), told(error)] as const,
  )
  if (wrong !== '') return { what: 'plan', change, settings, problem: wrong }
  return observe.plan({ change, settings, acceptsConfig: false }).then(
    (found) => ({ what: 'plan', change, settings, plan: found }),
    (error: unknown) => ({ what: 'plan', change, settings, problem: told(error) }),
  )
}
