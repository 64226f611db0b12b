// One command, one effect: what each command asks of the ports and which events come of it.
import type { EventBody, Settings, StorySummary } from '../core/event.ts'
import type { Command } from '../core/loop.ts'
import type { Current, LoopState } from '../core/state.ts'
import { selectedStories } from '../core/state.ts'
import type { Plan } from '../core/story.ts'
import { storyStatus } from '../core/story.ts'
import { RalphError } from '../core/error.ts'
import type { AgentSignal, MeasuredUsage } from '../ports.ts'
import type { Ports } from './run.ts'

export interface Context {
  readonly ports: Ports
  readonly tell: (body: EventBody) => Promise<void>
  readonly state: () => LoopState
  /** Whether this run has touched the repository. */
  readonly begun: () => boolean
  readonly begin: () => Promise<void>
  readonly stopping: AbortSignal
  /** Ends the completion question: a stop that led to it must not answer it, the next one does. */
  readonly question: AbortSignal
  readonly agentStop: () => AbortSignal
}

type Of<D extends Command['do']> = Extract<Command, { do: D }>

export async function perform(command: Command, context: Context): Promise<void> {
  const { ports, tell } = context
  switch (command.do) {
    case 'announce':
      return tell(command.event)
    case 'read_plan':
      return tell(planRead(await ports.spec.read(), context.state().settings))
    case 'ensure_checkpoint': {
      if (!context.begun() || ports.mode === 'resume') await context.begin()
      const { commit } = await ports.checkpoints.ensure(command.storyId)
      return tell({ type: 'checkpoint.verified', commit })
    }
    case 'open_iteration': {
      const { n, storyId, attempt, attempts, agent } = command
      const { checkpoint, maxIterations } = context.state()
      // Before the record that an iteration is open: a recovery puts back what was guarded, never an earlier story's bytes.
      await ports.spec.guard()
      return tell({
        type: 'iteration.started',
        n,
        story_id: storyId,
        attempt,
        attempts,
        max_iterations: maxIterations,
        agent,
        base_commit: checkpoint,
        log_file: ports.transcript(n),
      })
    }
    case 'run_agent':
      return runAgent(command, context)
    case 'keep_attempt':
      return keepAttempt(command, context)
    case 'check_gates':
      return checkGates(command, context)
    case 'settle_boxes':
      return settleBoxes(command, context)
    case 'save_checkpoint': {
      const { commit, changed } = await ports.checkpoints.save(command.storyId, command.message)
      const { n, storyId, message } = command
      return tell({ type: 'checkpoint.saved', n, story_id: storyId, message, commit, changed })
    }
    case 'revert': {
      const { commit } = await ports.checkpoints.restore()
      await ports.spec.putBack()
      return tell({ type: 'checkpoint.reverted', n: command.n, commit })
    }
    case 'record_iteration':
      return recordIteration(context)
    case 'wait': {
      const until = ports.clock.stamp(command.untilMs)
      await tell({
        type: 'waiting',
        for: command.for,
        until,
        until_ms: command.untilMs,
        agent: command.agent,
      })
      await ports.clock.until(command.untilMs, context.stopping)
      return tell({ type: 'wait.ended' })
    }
    case 'ask_done':
      return tell({ type: 'choice.made', choice: await ports.human.isDone(command.task, context.stopping) })
    case 'ask_choice':
      return askChoice(context)
    case 'finish':
      return finish(command, context)
    case 'end_agent':
      // The engine itself aborts the agent; it never queues this one.
      return undefined
  }
}

export function planRead(
  plan: Plan,
  settings: Pick<Settings, 'done_criteria' | 'task'> | undefined,
): EventBody {
  const manual = settings?.done_criteria === 'manual'
  // A manual loop has one story: the user's words, open until a human says otherwise.
  const stories = manual
    ? [{ id: 'manual', title: settings.task, status: 'open' as const, tasks_done: 0, tasks_total: 0 }]
    : plan.stories.map(summarize)
  const human = plan.stories.flatMap((story) => story.tasks.filter((task) => task.state === 'human'))
  return {
    type: 'plan.read',
    stories,
    human_tasks: human.map((task) => (task.text.startsWith(task.id) ? task.text : `${task.id} ${task.text}`)),
    tasks_done: plan.tasksDone,
    tasks_total: plan.tasksTotal,
  }
}

function summarize(story: Plan['stories'][number]): StorySummary {
  return {
    id: story.id,
    title: story.title,
    status: storyStatus(story),
    tasks_done: story.tasks.filter((task) => task.state === 'done').length,
    tasks_total: story.tasks.length,
  }
}

async function runAgent(command: Of<'run_agent'>, context: Context): Promise<void> {
  const { ports, tell } = context
  const { n, storyId, attempt, attempts, agent } = command
  const state = context.state()
  const { settings } = state
  if (settings === undefined) throw new TypeError('run_agent before loop.started')
  const prompt = await ports.spec.prompt({
    storyId,
    attempt,
    attempts,
    ...(command.previousFailure !== undefined && { previousFailure: command.previousFailure }),
    ...(command.feedback !== undefined && { feedback: command.feedback }),
  })
  await ports.usage.before(agent)
  const startedMs = ports.clock.monotonic()
  const ended = await ports.agent.work(
    {
      n,
      prompt,
      agent,
      cwd: state.worktree,
      env: {
        RALPH_CHANGE: state.changeId,
        RALPH_STORY: storyId,
        RALPH_ATTEMPT: String(attempt),
        RALPH_ITERATION: String(n),
        RALPH_RUN_ID: state.runId,
      },
      transcript: ports.transcript(n),
      timeoutMs: settings.iteration_timeout_min * 60_000,
      idleTimeoutMs: settings.idle_timeout_min * 60_000,
    },
    context.agentStop(),
    (signal) => {
      const body = agentEvent(n, signal)
      // Durability is awaited before the next command; the agent's talk must not wait for the disk.
      if (body !== undefined) tell(body).catch(() => undefined)
    },
  )
  if (ended.promise.kind === 'complete' && (ended.exit_code ?? 0) !== 0) {
    await tell({
      type: 'warning',
      code: 'exit_code',
      message: `The agent said COMPLETE and then exited with code ${ended.exit_code}; its word counts, the gates decide.`,
    })
  }
  if (ended.survivors.length > 0) {
    await tell({
      type: 'warning',
      code: 'survivors',
      message: `Could not end these processes of the agent: ${ended.survivors.join(', ')}`,
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

function agentEvent(n: number, signal: AgentSignal): EventBody | undefined {
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
    case 'activity':
      return undefined
  }
}

async function keepAttempt(command: Of<'keep_attempt'>, context: Context): Promise<void> {
  const { ports, tell } = context
  const kept = await ports.checkpoints.keep(command.n)
  const judged = await ports.spec.judge(command.storyId)
  for (const message of kept.warnings) await tell({ type: 'warning', code: 'agent_git', message })
  for (const message of judged.putBack) await tell({ type: 'warning', code: 'put_back', message })
  if (judged.lost !== '') await tell({ type: 'warning', code: 'plan_lost', message: judged.lost })
  await tell({
    type: 'attempt.kept',
    n: command.n,
    ref: kept.ref,
    commit: kept.commit,
    commits: [...kept.commits],
    changed: kept.changed,
    history_rewritten: kept.historyRewritten,
    spec_lost: judged.lost,
    ticked: judged.ticked,
    still_open: judged.stillOpen,
    not_asked: judged.notAsked ?? 0,
  })
}

async function checkGates(command: Of<'check_gates'>, context: Context): Promise<void> {
  const { ports, tell } = context
  const state = context.state()
  const env = { RALPH_CHANGE: state.changeId, RALPH_STORY: command.storyId, RALPH_RUN_ID: state.runId }
  let failed = ''
  for (const gate of command.commands) {
    await tell({ type: 'gate.started', n: command.n, command: gate })
    const result = await ports.gates.check(gate, env, context.stopping)
    await tell({
      type: 'gate.ended',
      n: command.n,
      command: gate,
      outcome: result.outcome,
      ...(result.exitCode !== undefined && { exit_code: result.exitCode }),
      duration_ms: Math.round(result.durationMs),
      output_tail: result.outputTail,
    })
    if (result.outcome === 'could_not_run') {
      throw new RalphError('config', `The gate could not be run: ${gate}\n${result.outputTail}`, {
        hint: `The attempt is kept as ${state.current?.kept?.ref ?? 'an attempt ref'}. Mend the gate, then type: ralph resume ${state.changeId}`,
        exitCode: 1,
      })
    }
    if (result.outcome !== 'passed') {
      failed = `The gate \`${gate}\` ${result.outcome === 'stopped' ? 'was stopped' : `failed (exit code ${result.exitCode ?? 'none'})`}:\n${result.outputTail}`
      break
    }
  }
  await tell({ type: 'gates.checked', n: command.n, failed })
}

async function settleBoxes(command: Of<'settle_boxes'>, context: Context): Promise<void> {
  const forgot = command.ticked === 0 && command.stillOpen > 0
  const tickedByRalph = forgot ? await context.ports.spec.tick(command.storyId) : 0
  await context.tell({
    type: 'boxes.settled',
    n: command.n,
    remaining: forgot ? 0 : command.stillOpen,
    not_asked: command.notAsked,
    ticked_by_ralph: tickedByRalph,
  })
}

async function recordIteration(context: Context): Promise<void> {
  const { ports, tell } = context
  const current = context.state().current
  if (current === undefined) return
  const measured = await ports.usage.after(
    current.agent,
    current.ended?.usage ?? current.usage,
    current.ended?.session_id ?? current.sessionId,
    current.ended?.model ?? context.state().settings?.model,
    { started: current.started, hurry: context.state().stop !== undefined },
  )
  if (measured.warning !== '') await tell({ type: 'warning', code: 'usage', message: measured.warning })
  // A plan that cannot be read is never "done"; the next reading of it stops the loop with its own error.
  const plan = await ports.spec.read().catch(() => undefined)
  if (plan !== undefined) await tell(planRead(plan, context.state().settings))
  await tell({
    type: 'iteration.ended',
    iteration: toRecord(context.state(), current, measured, plan !== undefined, ports.clock.stamp()),
  })
}

function toRecord(
  state: LoopState,
  current: Current,
  measured: MeasuredUsage,
  planKnown: boolean,
  nowStamp: string,
): Extract<EventBody, { type: 'iteration.ended' }>['iteration'] {
  const { ended, kept, saved } = current
  const tasksMode = state.settings?.done_criteria === 'tasks'
  const done =
    planKnown &&
    tasksMode &&
    selectedStories(state).every((story) => story.status !== 'open' && story.status !== 'human')
  const commits = [...(kept?.commits ?? [])]
  if (saved !== undefined && state.settings?.checkpoint !== 'stash' && !commits.includes(saved.commit))
    commits.push(saved.commit)
  return {
    n: current.n,
    started: current.started,
    // A clock that was set back must not make an iteration end before it began.
    ended: nowStamp < current.started ? current.started : nowStamp,
    done_check: done,
    commits,
    tokens_used: measured.input_tokens + measured.output_tokens,
    ...(ended?.ending === 'timeout' || ended?.ending === 'idle' ? { timed_out: true as const } : {}),
    ...(measured.estimated && { tokens_estimated: true as const }),
    story_id: current.storyId,
    attempt: current.attempt,
    verdict: current.verdict ?? 'interrupted',
    reason: current.reason,
    ...(ended?.exit_code !== undefined && { exit_code: ended.exit_code }),
    ...(ended?.signal !== undefined && { signal: ended.signal }),
    ...(kept !== undefined && { attempt_ref: kept.ref }),
    input_tokens: measured.input_tokens,
    output_tokens: measured.output_tokens,
    cache_read_tokens: measured.cache_read_tokens,
    cache_creation_tokens: measured.cache_creation_tokens,
    ...(measured.cost_usd !== undefined && { cost_usd: measured.cost_usd }),
    agent: current.agent,
    log_file: current.logFile,
    tokens_source: measured.source,
    ...(measured.note !== undefined && measured.note !== '' && { tokens_note: measured.note }),
    duration_ms: ended?.duration_ms ?? 0,
    ...(kept?.historyRewritten === true && { history_rewritten: true as const }),
  }
}

async function askChoice(context: Context): Promise<void> {
  const { ports, tell } = context
  const state = context.state()
  await tell({
    type: 'choice.needed',
    original_branch: state.originalBranch,
    branch: state.branch,
    status: state.outcome?.status ?? 'stopped',
  })
  const summary = state.outcome?.reason ?? ''
  const choice = await ports.human.choose(
    { originalBranch: state.originalBranch, branch: state.branch, summary },
    context.question,
  )
  await tell({ type: 'choice.made', choice })
}

async function wrapUp({ ports, tell }: Context): Promise<void> {
  const { warnings, checkpoint } = await ports.wrapUp()
  for (const message of warnings) await tell({ type: 'warning', code: 'wrap_up', message })
  if (checkpoint === undefined) return
  const saved = await ports.checkpoints.save('archive', checkpoint)
  await tell({ type: 'checkpoint.saved', message: checkpoint, ...saved })
}

async function finish(command: Of<'finish'>, context: Context): Promise<void> {
  const { ports, tell } = context
  try {
    if (!context.begun()) {
      await tell({ type: 'loop.finished', choice: command.choice, ok: true, message: 'Nothing was changed.' })
      return
    }
    if (context.state().outcome?.status === 'done') await wrapUp(context)
    const report = await ports.checkpoints.finish(command.choice)
    await tell({ type: 'loop.finished', choice: command.choice, ok: true, message: report.message })
  } catch (error) {
    if (!(error instanceof RalphError)) throw error
    // The loop's own status and exit code stand.
    await tell({ type: 'warning', code: error.code, message: `${error.message} ${error.hint}` })
    await tell({ type: 'loop.finished', choice: command.choice, ok: false, message: error.message })
  }
}
