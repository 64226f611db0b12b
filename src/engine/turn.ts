// One turn of the agent: its prompt, its environment, and what it says turned into events.
import { toldFailure } from '../core/baseline.ts'
import type { AgentEnding, EventBody } from '../core/event.ts'
import { untilOf } from '../core/limits.ts'
import type { Command } from '../core/loop.ts'
import type { AgentSignal } from '../ports.ts'
import { compareGate } from './baseline.ts'
import { claimDesk } from './claim.ts'
import type { Context } from './context.ts'

/** What takes its time is begun before its iteration is on record; nothing of the agent's runs until that is there. */
export async function expectAgent(
  { n, agent, storyId, attempt }: Extract<Command, { do: 'open_iteration' }>,
  context: Context,
): Promise<void> {
  const { ports } = context
  const env = await ports.checkpoints.watch('agent', n)
  context.watched = { n, env }
  ports.agent.expect?.({
    n,
    agent,
    cwd: context.state().worktree,
    env: { ...variablesOf(context, { n, storyId, attempt }), ...env },
    offersClaims: offersClaims(agent, context),
  })
}

export async function runAgent(
  command: Extract<Command, { do: 'run_agent' }>,
  context: Context,
): Promise<void> {
  const { ports, tell } = context
  const { n, storyId, attempt, attempts, agent, model } = command
  const state = context.state()
  const { settings } = state
  const { watched: opened } = context
  let watched = opened?.n === n ? opened.env : await ports.checkpoints.watch('agent', n)
  let { previousFailure } = command
  if (command.compares !== undefined) {
    await compareGate(command, command.compares, context, watched)
    // What the gate has left is no work: an agent begins at the checkpoint.
    await ports.checkpoints.ensure(storyId)
    watched = await ports.checkpoints.watch('agent', n)
    previousFailure = toldFailure(context.state(), storyId)
  }
  const prompt = await ports.spec.prompt({
    storyId,
    attempt,
    attempts,
    ...(previousFailure !== undefined && { previousFailure }),
    ...(command.feedback !== undefined && { feedback: command.feedback }),
    offersClaims: offersClaims(agent, context),
  })
  await ports.usage.before(agent, context.stopping)
  const startedMs = ports.clock.monotonic()
  let answered: Promise<void> | undefined
  const ended = await ports.agent.work(
    {
      n,
      prompt,
      agent,
      ...(model !== undefined && { model }),
      cwd: state.worktree,
      env: { ...variablesOf(context, { n, storyId, attempt }), ...watched },
      transcript: ports.transcript(n),
      timeoutMs: settings.iteration_timeout_min * 60_000,
      idleTimeoutMs: settings.idle_timeout_min * 60_000,
      ...(offersClaims(agent, context) && { claims: claimDesk(context, n, watched) }),
    },
    context.agentStop(),
    (signal) => {
      if (isAnswer(signal)) answered ??= ports.logins.answered(agent)
      // Durability is awaited before the next command; the agent's talk must not wait for the disk.
      tell(agentEvent(n, signal)).catch(() => undefined)
    },
  )
  await answered
  // A limit is told to the others with the time at which this loop asks again, which its record decides.
  if (ended.ending !== 'limit')
    await (answers.has(ended.ending) ? ports.logins.answered(agent) : ports.logins.leave(agent))
  if (ended.promise.kind === 'complete' && (ended.exit_code ?? 0) !== 0) {
    await tell({
      type: 'warning',
      code: 'exit_code',
      message: `The agent said COMPLETE and then exited with code ${ended.exit_code}; COMPLETE counts, the gates decide.`,
    })
  }
  if (ended.survivors.length > 0) {
    await tell({
      type: 'warning',
      code: 'survivors',
      message: `Could not end these processes of the agent: ${ended.survivors.join(', ')}`,
    })
  }
  const isOut = ended.ending === 'missing' || ended.ending === 'auth' || ended.ending === 'model'
  if (isOut && settings.agents.some((other) => other !== agent && untilOf(state, other) < Infinity)) {
    await tell({
      type: 'warning',
      code: 'agent',
      message: `${agent} cannot run; the chain continues without it. ${ended.last_words}`.trimEnd(),
    })
  }
  await tell({
    type: 'agent.ended',
    n,
    now_ms: ports.clock.now(),
    duration_ms: Math.max(0, Math.round(ports.clock.monotonic() - startedMs)),
    ...ended,
  })
}

function offersClaims(agent: string, { ports, state }: Context): boolean {
  return (state().settings.claims ?? 0) > 0 && ports.agent.takesClaims?.(agent) === true
}

function variablesOf(
  { state }: Context,
  { n, storyId, attempt }: Pick<Extract<Command, { do: 'run_agent' }>, 'n' | 'storyId' | 'attempt'>,
): Record<string, string> {
  return {
    RALPH_CHANGE: state().changeId,
    RALPH_STORY: storyId,
    RALPH_ATTEMPT: String(attempt),
    RALPH_ITERATION: String(n),
    RALPH_RUN_ID: state().runId,
  }
}

/** Those that only an agent comes to whose provider has answered. */
const answers: ReadonlySet<AgentEnding> = new Set(['finished', 'question', 'refused_permission', 'budget'])

/** Not its words: a limit is told in words, too. */
function isAnswer(signal: AgentSignal): boolean {
  return signal.type === 'tool' || (signal.type === 'usage' && signal.output_tokens > 0)
}

function agentEvent(n: number, signal: AgentSignal): EventBody {
  switch (signal.type) {
    case 'started':
      return { type: 'agent.started', n, pid: signal.pid, pid_started: signal.pidStarted }
    case 'session':
      return { type: 'agent.session', n, session_id: signal.sessionId }
    case 'message':
      return { type: 'agent.message', n, text: signal.text }
    case 'tool':
      return { type: 'agent.tool', n, name: signal.name, input: signal.input }
    case 'usage': {
      const { type: _, ...figures } = signal
      return { type: 'agent.usage', n, ...figures }
    }
    case 'warning':
      return { type: 'warning', code: 'agent', message: signal.message }
  }
}
