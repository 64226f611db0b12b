// The record of an iteration: what it used, what it left, whether the plan is done now.
import type { AgentEnding, EventBody, Settings, StorySummary } from '../core/event.ts'
import { modelOf, untilOf } from '../core/limits.ts'
import type { Current, StartedState } from '../core/state.ts'
import { selectedStories } from '../core/state.ts'
import type { Plan } from '../core/story.ts'
import { manualStory, mergeStory, storyStatus } from '../core/story.ts'
import type { Clock, MeasuredUsage } from '../ports.ts'
import type { Context } from './context.ts'

export async function recordIteration(context: Context): Promise<void> {
  const { ports, tell } = context
  const current = context.state().current
  if (current === undefined) return
  const measured = await ports.usage.after(
    current.agent,
    current.ended?.usage ?? current.usage,
    current.ended?.session_id ?? current.sessionId,
    current.ended?.model ?? modelOf(context.state().settings, current.agent, current.storyId),
    {
      started: current.started,
      hurry: context.state().stop !== undefined,
      stop: context.stopping,
      isUnanswered: isUnanswered(current.ended?.ending),
    },
  )
  if (measured.warning !== undefined)
    await tell({ type: 'warning', code: 'usage', message: measured.warning })
  // A plan that cannot be read is never "done"; the next reading of it stops the loop with its own error.
  // Boxes of an attempt that was neither saved nor reverted are only the agent's word.
  const isSettled = context.state().unsettled === undefined
  const plan = isSettled ? await ports.spec.read().catch(() => undefined) : undefined
  if (plan !== undefined) await tell(planRead(plan, context.state()))
  await tell({
    type: 'iteration.ended',
    iteration: toRecord(context.state(), current, measured, plan !== undefined, ports.clock.stamp),
  })
  if (current.ended?.ending === 'limit')
    await ports.logins.limited(current.agent, untilOf(context.state(), current.agent))
}

/** Its session file grows all the same: by the prompt, which nobody has read. */
function isUnanswered(ending: AgentEnding | undefined): boolean {
  return ending !== undefined && unanswered.has(ending)
}

const unanswered: ReadonlySet<AgentEnding> = new Set([
  'limit',
  'overloaded',
  'offline',
  'auth',
  'model',
  'missing',
  'no_turn',
])

function toRecord(
  state: StartedState,
  current: Current,
  measured: MeasuredUsage,
  planKnown: boolean,
  stamp: Clock['stamp'],
): Extract<EventBody, { type: 'iteration.ended' }>['iteration'] {
  const { ended, kept, saved } = current
  // A dead loop ended at its last sign of life, whenever somebody looks.
  const nowStamp = stamp(state.stop === 'killed' ? state.absence?.diedMs : undefined)
  const tasksMode = state.settings.done_criteria === 'tasks'
  const done =
    planKnown &&
    tasksMode &&
    selectedStories(state).every((story) => story.status !== 'open' && story.status !== 'human')
  const commits = [...(kept?.commits ?? [])]
  if (saved !== undefined && state.settings.checkpoint !== 'stash' && !commits.includes(saved.commit))
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
    reason:
      ended?.resets_at_ms === undefined
        ? current.reason
        : `${current.reason} (until ${stamp(ended.resets_at_ms).slice(0, 16).replace('T', ' ')})`,
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
    ...(measured.note !== undefined && { tokens_note: measured.note }),
    duration_ms: durationOf(state, current, nowStamp),
    ...(kept?.historyRewritten === true && { history_rewritten: true as const }),
    ...(current.verdict === 'complete' && (saved?.isPlanOnly === true || kept?.changed === false)
      ? { unchanged: true as const }
      : {}),
    ...(current.claims > 0 && { claims: current.claims }),
  }
}

/** With all stories in each, the journal of a long plan would grow by its square. */
export function planRead(
  plan: Plan,
  {
    settings,
    stories: known,
  }: { readonly settings?: PlanSettings | undefined; readonly stories: readonly StorySummary[] },
): Extract<EventBody, { type: 'plan.read' }> {
  const manual = settings?.done_criteria === 'manual'
  // A manual loop has one story: the user's words, of which the first line is its name, open until a human says otherwise.
  // A merge of the queue's comes after those of the change, which are done.
  const stories = manual
    ? [
        ...plan.stories.map(summarize).filter(({ status }) => status !== 'open'),
        {
          id: plan.stories.length > 0 ? mergeStory : manualStory,
          title: settings.task.split('\n')[0] ?? '',
          status: 'open' as const,
          tasks_done: 0,
          tasks_total: 0,
        },
      ]
    : plan.stories.map(summarize)
  const human = plan.stories.flatMap((story) => story.tasks.filter((task) => task.state === 'human'))
  return {
    type: 'plan.read',
    ...changedSince(known, stories),
    human_tasks: human.map((task) => (task.text.startsWith(task.id) ? task.text : `${task.id} ${task.text}`)),
    tasks_done: plan.tasksDone,
    tasks_total: plan.tasksTotal,
  }
}

type PlanSettings = Pick<Settings, 'done_criteria' | 'task'>

function changedSince(
  known: readonly StorySummary[],
  stories: readonly StorySummary[],
): { readonly stories: StorySummary[]; readonly only_changed?: true } {
  const isSamePlan = known.length === stories.length && known.every(({ id }, at) => id === stories[at]?.id)
  if (!isSamePlan) return { stories: [...stories] }
  const changed = stories.filter((story, at) => JSON.stringify(story) !== JSON.stringify(known[at]))
  return { stories: changed, only_changed: true }
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

/** Of a killed loop only the stamps are known: its agent lived at most until now, and at most as long as it was allowed to. */
function durationOf(state: StartedState, { ended, started }: Current, nowStamp: string): number {
  if (state.stop !== 'killed' || (ended?.duration_ms ?? 0) > 0) return ended?.duration_ms ?? 0
  const allowedMs = state.settings.iteration_timeout_min * 60_000
  return Math.max(0, Math.min(Date.parse(nowStamp) - Date.parse(started), Math.round(allowedMs)))
}
