// `ralph logs`: what the agent said and did, made readable from its transcript; plain text goes through byte by byte.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isStoryClaim } from '../adapters/agents/claim-tools.ts'
import { agentKind } from '../adapters/agents/table.ts'
import type { AgentFact } from '../adapters/agents/kind.ts'
import { gateLogIn } from '../adapters/files/paths.ts'
import { ifThere } from '../adapters/files/whole.ts'
import { lineSplitter } from '../adapters/process/lines.ts'
import { claimWords } from '../core/claim-words.ts'
import { RalphError } from '../core/error.ts'
import { lastHandGate } from '../core/hand-work.ts'
import type { LoggedAttempt, LogRequest } from '../ui/app.ts'
import { chooseRun, requireRun } from './choose.ts'
import { hasQueue } from './queue-known.ts'
import { isRunning, knowing } from './site.ts'
import type { KnownRun, Site } from './site.ts'

interface Log {
  readonly n: number
  readonly file: string
  readonly agent: string
  readonly storyId: string
  readonly attempt: number
  readonly started: string
}

/** Longer ones are a tool's output, not talk. */
const longestLine = 32 * 1024 * 1024
/** How often a followed transcript is looked at. */
const followMs = 200

/** With `follow` it goes on to the next iteration, until the loop has ended. */
export async function writeLogs(site: Site, request: LogRequest): Promise<void> {
  const begun = await whenBegun(site, request)
  if (begun === undefined) return
  let run = begun
  if (request.isOfGates === true) {
    if (!(await writeLandingLog(site, run, request))) await writeGateLog(run, request)
    return
  }
  const first = logsOf(run).find((candidate) => candidate.n === (request.iteration ?? logsOf(run).at(-1)?.n))
  if (first === undefined) {
    const none = request.iteration === undefined
    const message = none
      ? `No attempt of ${run.change} has begun: there is no log.`
      : `There is no attempt #${request.iteration} of ${run.change}.`
    throw new RalphError('usage', message, {
      hint: none
        ? `Where it stands: ralph status ${run.change}`
        : `Its attempts: ralph history ${run.change}`,
    })
  }
  let log: Log = first
  announce(run, log, request)
  let reader = readLog(log, request, run)
  let told = 0
  /** Those that judge a person's ticks come after its end, and are not its own. */
  const tellGates = (): void => {
    const { n } = log
    const events = run.recall('gate.started', 'gate.ended', 'iteration.ended')
    const end = events.findIndex((event) => event.type === 'iteration.ended' && event.iteration.n === n)
    const own = events
      .slice(0, end === -1 ? undefined : end)
      .flatMap((event) =>
        event.type !== 'iteration.ended' && event.n === n && event.claim === undefined ? [event] : [],
      )
    const news = own.slice(told)
    // That one has begun says nothing once it has ended.
    const isNews = ({ type, command }: (typeof own)[number], at: number): boolean =>
      type === 'gate.ended' || !news.some((later, place) => place > at && later.command === command)
    for (const event of news.filter(isNews)) request.gate?.(event)
    told = own.length
  }
  const { known, close } = knowing(site)
  for (;;) {
    const moved = await reader.advance()
    if (!request.follow || request.stop.aborted) break
    if (!moved) {
      const { n } = log
      const wasAlive = isRunning(run)
      run = await known(run.change)
      tellGates()
      const next: Log | undefined = logsOf(run).find((candidate) => candidate.n > n)
      if (next !== undefined && request.iteration === undefined) {
        reader.end()
        conclude(run, log, request)
        told = 0
        log = next
        announce(run, log, request)
        reader = readLog(log, request, run)
        continue
      }
      if (!wasAlive || (request.iteration !== undefined && next !== undefined)) break
    }
    await delay(followMs, undefined, { signal: request.stop }).catch(() => undefined)
  }
  reader.end()
  if (!request.stop.aborted) tellGates()
  conclude(run, log, request)
  await close()
}

/** Undefined: nobody reads any more. */
async function whenBegun(site: Site, { change, waits, stop }: LogRequest): Promise<KnownRun | undefined> {
  for (let isTold = false; waits !== undefined; isTold = true) {
    const run = await chooseRun(site, change, 'any')
    if (run !== undefined && (logsOf(run).length > 0 || !isRunning(run))) return run
    if (!isTold) waits()
    await delay(followMs, undefined, { signal: stop }).catch(() => undefined)
    if (stop.aborted) return undefined
  }
  return requireRun(site, change)
}

function conclude({ change, state }: KnownRun, { n }: Log, { ended, stop }: LogRequest): void {
  const record = state.iterations.find((iteration) => iteration.n === n)
  if (record !== undefined && !stop.aborted) ended?.(record, change)
}

function announce(
  { change, state }: KnownRun,
  { n, storyId, attempt, started }: Log,
  { began }: LogRequest,
): void {
  const at = state.stories.findIndex(({ id }) => id === storyId)
  const title = state.stories[at]?.title ?? ''
  began?.({
    change_id: change,
    n,
    story_id: storyId,
    title,
    index: at + 1,
    total: state.stories.length,
    attempt,
    started,
  })
}

/** Parked by what ran after the merge: the gates of its attempts were green. Whether there is such a log. */
async function writeLandingLog(
  { git }: Site,
  run: KnownRun,
  { iteration, write, stop }: LogRequest,
): Promise<boolean> {
  if (iteration !== undefined || !hasQueue(git)) return false
  const path = (await import('./queue-entry.ts')).landingLog(git.gitCommonDir, run.change)
  if (path === undefined) return false
  write(
    Buffer.from(
      `What the merge queue ran to land ${run.change}, the latest last: on both sides together, then on its target alone. Of an attempt: ralph logs ${run.change} --gate N\n`,
    ),
  )
  for await (const chunk of createReadStream(path)) {
    if (stop.aborted) break
    if (Buffer.isBuffer(chunk)) write(chunk)
  }
  return true
}

/** Of the attempt that is named, else of the one that a loop which came to nothing failed at, else of the last one whose gates ran. */
async function writeGateLog(run: KnownRun, request: LogRequest): Promise<void> {
  const { iteration } = request
  const asked = logsOf(run).filter(({ n }) => iteration === undefined || n === iteration)
  const isOver = run.state.status === 'done' || isRunning(run)
  const failed = new Set(
    iteration === undefined && !isOver
      ? run.state.iterations.filter(({ verdict }) => verdict === 'gate_failed').map(({ n }) => n)
      : [],
  )
  const hand = iteration === undefined ? await handLog(run, isOver) : undefined
  if (hand !== undefined) {
    request.began?.(hand.about)
    return pour(hand.path, request)
  }
  const latest = asked.toReversed()
  for (const log of [...latest.filter(({ n }) => failed.has(n)), ...latest]) {
    const path = gateLogIn(dirname(log.file), log.n)
    const found = await ifThere(stat(path))
    if (found?.isFile() !== true) continue
    announce(run, log, request)
    return pour(path, request)
  }
  const message =
    iteration === undefined
      ? `No gate has run for ${run.change}: there is no output.`
      : asked.length === 0
        ? `There is no attempt #${iteration} of ${run.change}.`
        : `Attempt #${iteration} of ${run.change} ended before a gate ran: there is no output.`
  throw new RalphError('usage', message, { hint: `Its attempts: ralph attempts ${run.change}` })
}

/** Of what a person ticked after the last attempt; undefined where another gate says more. */
async function handLog(
  { change, paths, state, recall }: KnownRun,
  isOver: boolean,
): Promise<{ readonly path: string; readonly about: LoggedAttempt } | undefined> {
  const gate = lastHandGate(recall('iteration.started', 'iteration.ended', 'gate.ended'))
  if (gate === undefined || (!isOver && gate.outcome === 'passed')) return undefined
  const path = gateLogIn(paths.transcripts, gate.n, true)
  if ((await ifThere(stat(path)))?.isFile() !== true) return undefined
  const ids = state.byHand ?? []
  const checked = recall('hand.checked').at(-1)?.story_ids ?? []
  const title = (ids.length > 0 ? ids : checked).join(', ')
  const none = { story_id: '', index: 0, total: state.stories.length, attempt: 1 }
  return { path, about: { ...none, change_id: change, n: gate.n, title, started: gate.time, by_hand: true } }
}

async function pour(path: string, { write, stop }: LogRequest): Promise<void> {
  for await (const chunk of createReadStream(path)) {
    if (stop.aborted) return
    if (Buffer.isBuffer(chunk)) write(chunk)
  }
}

function logsOf(run: KnownRun): readonly Log[] {
  const ended = run.state.iterations.map(({ log_file: file, story_id: storyId, ...iteration }) => {
    const { n, agent, attempt, started } = iteration
    return { n, file, agent, storyId, attempt, started }
  })
  const { current } = run.state
  if (current === undefined) return ended
  const { n, logFile: file, agent, storyId, attempt, started } = current
  return [...ended, { n, file, agent, storyId, attempt, started }]
}

function readLog(
  log: Log,
  request: LogRequest,
  { state: { worktree = '' }, recall }: KnownRun,
): { advance(): Promise<boolean>; end(): void } {
  const kind = agentKind(log.agent)
  const say = (text: string): void => request.write(Buffer.from(text))
  const listener =
    kind?.speaks === 'lines'
      ? kind.listen({
          prompt: '',
          cwd: '',
          model: undefined,
          command: undefined,
          passThrough: [],
          isRoot: false,
        })
      : undefined
  const splitter = lineSplitter(
    longestLine,
    (line) => {
      for (const fact of listener?.hear(line, 0) ?? [])
        say(fact.type === 'tool' && isStoryClaim(fact) ? claimText(fact.input) : factText(fact, worktree))
    },
    (bytes) => say(`  (a line of ${bytes} bytes: see ${log.file})\n`),
  )
  let claims = 0
  /** What it was called with is in the transcript, what came of it in the journal; of one that is followed, not yet. */
  const claimText = (input: string): string => {
    claims += 1
    const judged = recall('claim.judged').find(({ n, claim }) => n === log.n && claim === claims)
    return `  > ${judged === undefined ? `claim ${claims}: ${input}` : claimWords(judged)}\n`
  }
  let offset = 0
  return {
    async advance() {
      const size = await stat(log.file).then(
        (found) => found.size,
        () => 0,
      )
      if (size <= offset) return false
      for await (const chunk of createReadStream(log.file, { start: offset, end: size - 1 })) {
        if (!Buffer.isBuffer(chunk)) continue
        offset += chunk.length
        if (listener === undefined) request.write(chunk)
        else splitter.feed(chunk)
        if (request.stop.aborted) break
      }
      return true
    },
    end: () => splitter.end(),
  }
}

function factText(fact: AgentFact, worktree: string): string {
  switch (fact.type) {
    case 'text':
      return fact.isPartial === true ? fact.text : `${fact.text}\n`
    case 'tool':
      // Paths as the user would type them.
      return `  > ${fact.name} ${worktree === '' ? fact.input : fact.input.replaceAll(`${worktree}/`, '')}\n`
    case 'retry':
      return `  (it tries again: ${fact.ending})\n`
    case 'failed':
      return `  (its turn failed: ${fact.ending}) ${fact.message}\n`
    case 'warning':
      return `  (${fact.message})\n`
    case 'promised':
    case 'session':
    case 'model':
    case 'usage':
    case 'resets':
    case 'turn_over':
    case 'halted':
    case 'say':
      return ''
  }
}
