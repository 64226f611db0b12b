// A pure stand-in for the engine and the world: answers each command of the reducer with the events that would follow.
import type { AgentEnding, Baseline, EventBody, LoopEvent, Settings } from '../../src/core/event.ts'
import type { Command } from '../../src/core/loop.ts'
import { next, reduce } from '../../src/core/loop.ts'
import type { LoopState } from '../../src/core/state.ts'
import { initialState } from '../../src/core/state.ts'

/** What the agent of one iteration does. */
export interface Deed {
  readonly ending: AgentEnding
  readonly promise: 'complete' | 'failed' | 'none'
  /** Boxes of its story that it ticks. */
  readonly ticks: 'all' | 'some' | 'none'
  readonly gatesPass: boolean
  /** A stop request arrives while it works. */
  readonly stop: boolean
  /** So does one for a pause, which is lifted once it has begun. */
  readonly pause?: boolean
  /** So often it claims while it works that its story is complete. */
  readonly claims?: number
  /** A human says this while it works. */
  readonly note?: string
  /** A human ends the wait after it, so many ms after it began. */
  readonly skipsAfterMs?: number
  readonly changesTree: boolean
  readonly tokens: number
  /** Files that change while the gates run, round by round. */
  readonly stirs?: readonly (readonly string[])[]
  /** Which of them the trees before do not have. */
  readonly makes?: readonly string[]
  /** Files that change between the gates and the checkpoint, save by save. */
  readonly stirsLate?: readonly (readonly string[])[]
  /** Why the work is gone after the gates. */
  readonly lost?: string
  /** Why nothing of it may be saved. */
  readonly refused?: string
  /** What the provider says of a limit's end. */
  readonly resetsAt?: (nowMs: number) => number
}

export const good: Deed = {
  ending: 'finished',
  promise: 'complete',
  ticks: 'all',
  gatesPass: true,
  stop: false,
  changesTree: true,
  tokens: 10,
}

export const settings: Settings = {
  max_retries: 3,
  stall_threshold: 5,
  done_criteria: 'tasks',
  task: 'demo',
  iteration_timeout_min: 45,
  idle_timeout_min: 10,
  limit_wait_min: 360,
  gates: [],
  stories: [],
  agents: ['command'],
  checkpoint: 'branch',
  on_complete: 'keep',
}

export interface World {
  readonly settings: Settings
  /** Open tasks by story. */
  readonly tasks: readonly number[]
  readonly deeds: readonly Deed[]
  /** What a gate says without the agent's work. */
  readonly baseline?: Baseline
  /** The end of the loop that this one resumes. */
  readonly goesOn?: LoopState
  /** Until when other loops were told that an agent is at its limit; the clock begins at 1,000,000. */
  readonly limitedElsewhere?: Readonly<Record<string, number>>
}

export interface Run {
  readonly state: LoopState
  readonly events: readonly LoopEvent[]
  readonly commands: readonly Command[]
}

export function play(world: World): Run {
  const events: LoopEvent[] = []
  const commands: Command[] = []
  const open = [...world.tasks]
  let state = world.goesOn ?? initialState('demo')
  let due: Command[] = []
  let nowMs = 1_000_000
  const tell = (body: EventBody): void => {
    const event = {
      v: 1,
      seq: events.length + 1,
      time: '2026-01-01T00:00:00+00:00',
      change_id: 'demo',
      ...body,
    } as LoopEvent
    events.push(event)
    const reduced = reduce(state, event)
    state = reduced.state
    due = [...due, ...reduced.commands]
  }
  const planRead = (): void =>
    tell({
      type: 'plan.read',
      stories: open.map((left, index) => ({
        id: String(index + 1),
        title: `Story ${index + 1}`,
        status: left > 0 ? 'open' : 'done',
        tasks_done: (world.tasks[index] ?? 0) - left,
        tasks_total: world.tasks[index] ?? 0,
      })),
      human_tasks: [],
      tasks_done: 0,
      tasks_total: world.tasks.reduce((sum, count) => sum + count, 0),
    })
  const storyIndex = (): number => Number(state.current?.storyId ?? '1') - 1
  const deedOf = (n: number): Deed => world.deeds[n - 1] ?? good
  let before = 0

  tell({
    type: 'loop.started',
    run_id: 'r',
    resumed: world.goesOn !== undefined,
    settings: world.settings,
    pid: 1,
    worktree: '/w',
    worktree_name: 'w',
    root: '/w',
    tasks_file: 'tasks.md',
    original_branch: 'main',
    branch: 'ralph/demo',
  })
  for (let command = due.shift(); command !== undefined; command = due.shift()) {
    commands.push(command)
    if (commands.length > 5_000) throw new Error('the loop does not end')
    switch (command.do) {
      case 'announce':
        tell(command.event)
        break
      case 'read_plan':
        planRead()
        break
      case 'check_hand':
        tell({ type: 'hand.checked', story_ids: [...command.storyIds] })
        break
      case 'ensure_checkpoint':
        tell({ type: 'checkpoint.verified', commit: 'c0' })
        break
      case 'open_iteration': {
        const elsewhereMs = world.limitedElsewhere?.[command.agent]
        if (elsewhereMs !== undefined && elsewhereMs > nowMs) {
          const { agent } = command
          tell({ type: 'login.limited', agent, until: 'then', until_ms: elsewhereMs, now_ms: nowMs })
          break
        }
        tell({
          type: 'iteration.started',
          n: command.n,
          story_id: command.storyId,
          attempt: command.attempt,
          attempts: command.attempts,
          max_iterations: state.maxIterations,
          agent: command.agent,
          base_commit: 'c0',
          log_file: '',
        })
        break
      }
      case 'run_agent': {
        const deed = deedOf(command.n)
        before = open[storyIndex()] ?? 0
        if (command.compares !== undefined) {
          const { gate } = command.compares
          const outcome = world.baseline ?? 'passed'
          tell({ type: 'baseline.started', n: command.n, command: gate })
          tell({ type: 'baseline.ended', n: command.n, command: gate, outcome, duration_ms: 1, reason: '' })
        }
        if (deed.pause === true) tell({ type: 'pause.requested' })
        if (deed.note !== undefined) tell({ type: 'note.added', id: String(command.n), text: deed.note })
        for (let claim = 1; claim <= (deed.claims ?? 0); claim += 1)
          tell({ type: 'claim.made', n: command.n, claim, summary: 'done' })
        if (deed.stop) tell({ type: 'stop.requested', signal: 'SIGTERM' })
        nowMs += 1000
        tell({
          type: 'agent.ended',
          n: command.n,
          now_ms: nowMs,
          duration_ms: 1000,
          ending: deed.stop ? 'stopped' : deed.ending,
          promise:
            deed.promise === 'failed'
              ? { kind: 'failed', reason: `reason ${command.n}` }
              : { kind: deed.promise },
          last_words: '',
          ...(deed.resetsAt !== undefined && { resets_at_ms: deed.resetsAt(nowMs) }),
          survivors: [],
        })
        break
      }
      case 'keep_attempt': {
        const deed = deedOf(command.n)
        const ticked = deed.ticks === 'all' ? before : deed.ticks === 'some' ? Math.floor(before / 2) : 0
        tell({
          type: 'attempt.kept',
          n: command.n,
          ref: `refs/${command.n}`,
          commit: 'c',
          commits: [],
          changed: deed.changesTree,
          history_rewritten: false,
          ticked,
          still_open: before - ticked,
          not_asked: 0,
          tree: 't0',
          ...(deed.refused !== undefined && { refused: deed.refused }),
        })
        break
      }
      case 'check_gates': {
        const { gatesPass, stirs, makes = [], lost } = deedOf(command.n)
        const [gate] = command.commands
        const stirred = [...(stirs?.[state.current?.rounds ?? 0] ?? [])]
        const tree = stirred.length > 0 ? `${command.tree}+` : command.tree
        tell({
          type: 'gates.checked',
          n: command.n,
          tree,
          stirred,
          made: [...makes],
          ...(!gatesPass && { failed: 'gate failed', ...(gate !== undefined && { gate }) }),
          ...(lost !== undefined && { lost }),
        })
        break
      }
      case 'settle_boxes': {
        const remaining = command.ticked === 0 ? 0 : command.stillOpen
        open[storyIndex()] = remaining
        tell({ type: 'boxes.settled', n: command.n, remaining, not_asked: 0, ticked_by_ralph: 0 })
        break
      }
      case 'save_checkpoint': {
        const late = deedOf(command.n).stirsLate?.[(state.current?.rounds ?? 1) - 1] ?? []
        if (late.length > 0) {
          const tree = `${command.judged?.tree ?? ''}~`
          tell({ type: 'checkpoint.refused', n: command.n, tree, stirred: [...late] })
          break
        }
        tell({
          type: 'checkpoint.saved',
          n: command.n,
          story_id: command.storyId,
          message: command.message,
          commit: `c${command.n}`,
          changed: deedOf(command.n).changesTree,
        })
        break
      }
      case 'revert':
        tell({ type: 'checkpoint.reverted', n: command.n, commit: 'c0' })
        break
      case 'record_iteration': {
        const current = state.current
        planRead()
        if (current !== undefined) {
          tell({
            type: 'iteration.ended',
            iteration: {
              n: current.n,
              started: '',
              ended: '',
              done_check: open.every((left) => left === 0),
              commits: [],
              tokens_used: deedOf(current.n).tokens,
              story_id: current.storyId,
              attempt: current.attempt,
              verdict: current.verdict ?? 'interrupted',
              reason: current.reason,
              input_tokens: deedOf(current.n).tokens,
              output_tokens: 0,
              cache_read_tokens: 0,
              cache_creation_tokens: 0,
              agent: current.agent,
              log_file: '',
              duration_ms: 1000,
            },
          })
        }
        break
      }
      case 'wait': {
        tell({
          type: 'waiting',
          for: command.for,
          until: '',
          until_ms: command.untilMs,
          agent: command.agent,
        })
        if (command.for === 'pause') tell({ type: 'pause.lifted' })
        const { skipsAfterMs } = deedOf(state.iterations.length)
        nowMs = skipsAfterMs === undefined ? Math.max(nowMs, command.untilMs) : nowMs + skipsAfterMs
        tell({ type: 'wait.ended', ...(skipsAfterMs !== undefined && { skipped_ms: nowMs }) })
        break
      }
      case 'ask_done':
        tell({ type: 'choice.made', choice: 'later' })
        break
      case 'ask_choice':
        tell({ type: 'choice.needed', original_branch: 'main', branch: 'ralph/demo', status: 'done' })
        tell({ type: 'choice.made', choice: 'keep' })
        break
      case 'finish':
        tell({ type: 'loop.finished', choice: command.choice, ok: true, message: '' })
        break
      case 'judge_claim': {
        // Too late for a loop that was stopped meanwhile: it counts for nothing.
        const { n, claim } = command
        tell({ type: 'claim.judged', n, claim, outcome: 'refused', reason: 'make failed' })
        break
      }
      case 'end_agent':
        break
    }
  }
  if (next(state) !== undefined) throw new Error(`the loop stands still in ${state.phase}`)
  return { state, events, commands }
}

export function ofType<T extends LoopEvent['type']>(
  run: Run,
  type: T,
): readonly Extract<LoopEvent, { type: T }>[] {
  return run.events.filter((event): event is Extract<LoopEvent, { type: T }> => event.type === type)
}
