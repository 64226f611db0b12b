// Drives one loop: performs the reducer's commands through the ports and feeds what came of them back as events.
import type { EventBody } from '../core/event.ts'
import { startMessage } from '../core/git-facts.ts'
import type { Command } from '../core/loop.ts'
import { next } from '../core/loop.ts'
import type { LoopState } from '../core/state.ts'
import type { RalphError } from '../core/error.ts'
import { errorBody, isKnown, journalError } from './failure.ts'
import type { Agent, Checkpoints, Clock, Gates, Human, Logins, SpecSource, Usage } from '../ports.ts'
import type { OpenClaim } from './claim.ts'
import type { Context } from './context.ts'
import { perform } from './perform.ts'
import type { Reader, Stream } from './stream.ts'

/** What is said, and maybe saved, once every story is complete and before the choice is carried out. */
export interface WrapUp {
  readonly warnings: readonly string[]
  /** One more checkpoint, when files were changed, and what may go once it is safe. */
  readonly checkpoint?: { readonly message: string; readonly after: () => Promise<void> }
}

export interface Ports {
  readonly spec: SpecSource
  readonly checkpoints: Checkpoints
  readonly agent: Agent
  readonly gates: Gates
  readonly usage: Usage
  readonly logins: Logins
  readonly clock: Clock
  readonly human: Human
  /** Asked only at the end of a loop that is done. */
  wrapUp(): Promise<WrapUp>
  /** How the checkpoints begin, when the first one is needed: a finished plan leaves the repository untouched. */
  readonly mode: 'start' | 'fresh' | 'resume'
  /** Where the raw bytes of iteration n go. */
  transcript(n: number): string
  /** Where the output of its gates goes; `byHand`: of those that judge what a person ticked after it. */
  gateLog(n: number, byHand?: boolean): string
  /** What an error comes from, where more is known than it says; else the error itself. */
  explain(error: unknown): Promise<unknown>
}

export interface Loop {
  readonly state: LoopState
  readonly tell: Stream['tell']
  /** Runs until no command is left; resolves with the final state. A journal that failed is thrown after `complete` was told. */
  run(): Promise<LoopState>
  /** TERM, INT, HUP: the agent is ended, the iteration recorded, the loop stopped. */
  stop(signal: 'SIGHUP' | 'SIGINT' | 'SIGTERM' | 'unread'): void
  /** Before the next iteration it waits, until this is taken back. */
  pause(isWanted: boolean): void
  /** For the next prompt. Resolves once it is durable; false at the loop's end. */
  note(id: string, text: string): Promise<boolean>
  /** The wait that ends at this time ends now. */
  skipWait(untilMs: number): void
  /** Something outside the commands broke (the disk, a bug): the open iteration is recorded and the loop ends. Heard once. */
  fail(error: unknown): void
}

export function createLoop(ports: Ports, stream: Stream, readers: readonly Reader[]): Loop {
  const { tell } = stream
  let due: Command[] = []
  let fault: RalphError | undefined
  let isFailed = false
  /** Ends a gate, a wait or a question. */
  const stopping = new AbortController()
  const question = new AbortController()
  /** Ends the agent of the open iteration, with the reason. */
  let agentStop = new AbortController()

  stream.follow(readers, {
    due(command) {
      if (command.do === 'end_agent') agentStop.abort(command.why)
      // Beside the agent, which waits for the answer.
      else if (command.do === 'judge_claim') void perform(command, context)
      else due.push(command)
    },
    // Heard once: telling it is an append too, and would fail again.
    refused(error) {
      if (fault !== undefined) return
      fault = journalError(error, stream.state, stream.isRecorded)
      if (isFailed || stream.state.phase === 'ended') return
      giveUp(fault)
      interrupt()
    },
  })
  /** The loop goes to its end from here, whatever was due. */
  const giveUp = (error: unknown): void => {
    isFailed = true
    due = []
    tell(errorBody(error, stream.state, stream.isRecorded)).catch(() => undefined)
  }
  const interrupt = (): void => {
    stopping.abort('stopped')
    agentStop.abort('stopped')
  }

  const paused = new Set<() => void>()
  const goOn = (): void => {
    for (const done of paused) done()
    paused.clear()
  }
  stopping.signal.addEventListener('abort', goOn)

  let skipping: AbortController | undefined

  let begun = ports.mode === 'resume'
  const context: Context = {
    ports,
    watched: undefined,
    // Not awaited one by one: all that a command tells becomes durable together, before the next command runs.
    tell: (body: EventBody): Promise<void> => {
      tell(body).catch(() => undefined)
      return Promise.resolve()
    },
    begun: () => begun,
    async begin() {
      const { initial } = stream.state.git
      const { commit } = await ports.checkpoints.start(ports.mode)
      // A run that is resumed after its cleanup begins where the user's branch is now.
      if (!begun || stream.state.git.initial !== initial)
        await tell({ type: 'checkpoint.saved', message: startMessage, commit, changed: true })
      begun = true
    },
    state: () => {
      const { state } = stream
      if (state.phase === 'idle') throw new TypeError('a command before loop.started')
      return state
    },
    stopping: stopping.signal,
    unpaused: () =>
      new Promise<void>((done) => {
        paused.add(done)
        if (!stream.state.pause || stopping.signal.aborted) goOn()
      }),
    async waited(untilMs: number, freed: (stop: AbortSignal) => Promise<boolean>) {
      const over = new AbortController()
      const end = (): void => over.abort()
      let isFree = false
      skipping = over
      stopping.signal.addEventListener('abort', end)
      if (stopping.signal.aborted) end()
      const watching = freed(over.signal).then((isFreed) => {
        isFree = isFreed
        if (isFreed) end()
      })
      await ports.clock.until(untilMs, over.signal)
      const isEarly = over.signal.aborted && !stopping.signal.aborted
      end()
      await watching
      stopping.signal.removeEventListener('abort', end)
      skipping = undefined
      return isEarly ? (isFree ? 'free' : 'skipped') : 'over'
    },
    question: question.signal,
    agentStop: () => agentStop.signal,
    claims: new Map<number, OpenClaim>(),
  }

  return {
    get state() {
      return stream.state
    },
    tell,
    stop(signal) {
      const { state } = stream
      if (state.phase === 'ended' || state.phase === 'completing') return
      if (state.phase === 'choosing') {
        // The loop is over already; a signal now answers the question with "later".
        question.abort()
        return
      }
      // The record that ralph ends the agent stands before the signal goes out (R18).
      const how = signal === 'unread' ? ({ signal: 'SIGHUP', unread: true } as const) : { signal }
      tell({ type: 'stop.requested', ...how }).catch(() => undefined)
      interrupt()
    },
    pause(isWanted) {
      const { phase, pause } = stream.state
      if (pause === isWanted || phase === 'idle' || phase === 'ended') return
      tell({ type: isWanted ? 'pause.requested' : 'pause.lifted' }).catch(() => undefined)
      if (!isWanted) goOn()
    },
    async note(id, text) {
      const { phase } = stream.state
      if (phase === 'idle' || phase === 'completing' || phase === 'ended') return false
      await tell({ type: 'note.added', id, text })
      return true
    },
    skipWait(untilMs) {
      if (stream.state.waiting?.untilMs === untilMs) skipping?.abort()
    },
    fail(error) {
      const { phase } = stream.state
      // A loop that is at its last step ends by itself.
      if (isFailed || phase === 'finishing' || phase === 'completing' || phase === 'ended') return
      giveUp(error)
      question.abort()
      interrupt()
    },
    async run() {
      let bug: unknown
      const first = due.length === 0 ? next(stream.state) : undefined
      if (first !== undefined) due.push(first)
      try {
        for (;;) {
          await stream.settled()
          const command = due.shift()
          if (command === undefined) break
          if (command.do === 'run_agent') {
            agentStop = new AbortController()
            if (stream.state.stop !== undefined) agentStop.abort('stopped')
          }
          const wasFailed = isFailed
          try {
            await perform(command, context)
          } catch (error) {
            // The loop failed meanwhile, and said so: what broke in its wake needs no second word.
            if (isFailed && !wasFailed) continue
            if (stream.state.phase === 'completing' || stream.state.phase === 'ended') throw error
            const known = await ports.explain(error)
            if (!isKnown(known)) bug = known
            giveUp(known)
          }
        }
      } finally {
        await ports.agent.dismiss?.()
      }
      if (bug !== undefined) throw new LoopBug(bug, stream.state)
      if (fault !== undefined) throw fault
      return stream.state
    },
  }
}

/** A bug in ralph: the loop has been brought to its end and recorded before this is thrown. */
export class LoopBug extends Error {
  readonly state: LoopState
  constructor(cause: unknown, state: LoopState) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.state = state
  }
}
