// A run's history as a report: what each story and attempt took, and how much of it went into attempts that were not kept.
// Long because its types say what every format of a report prints.
import type { HandCheck, HandWork } from './hand-work.ts'
import type { IterationRecord, LoopStatus, StorySummary, Verdict } from './event.ts'
import { epochMs } from './stamp.ts'
import { ownStories } from './story.ts'

export interface RunHistory extends RunWork {
  readonly change_id: string
  readonly status: LoopStatus
  /** Why it ended, in words; empty while it runs. */
  readonly reason: string
  /** As the state file has it; absent while it runs. */
  readonly stop_reason?: string
  /** When its loop was killed; absent once that is repaired. */
  readonly died_at?: string
  readonly parked?: ParkedWork
  /** What makes its "done" worth less. */
  readonly warnings?: readonly string[]
  readonly tests_changed?: readonly string[]
  readonly stories: readonly StorySummary[]
  readonly about?: RunAbout
  /** The attempt that is under way; it has no record yet. */
  readonly current?: { readonly n: number; readonly story_id: string }
  /** The runs that this one goes on with: it puts what they did together with what landed meanwhile. The first one first. */
  readonly earlier?: readonly (RunWork & { readonly number: number })[]
}

/** What was done in a run, by whom, and what came of it. */
export interface RunWork {
  readonly iterations: readonly IterationRecord[]
  /** By iteration: what its gates took. */
  readonly gates_ms?: ReadonlyMap<number, number>
  /** By iteration: what the user's own agent was called then; a resume may name another. */
  readonly programs?: ReadonlyMap<number, string>
  /** By story: what its checkpoints changed. */
  readonly files?: ReadonlyMap<string, readonly string[]>
  /** Those of them that are gone by it. */
  readonly deleted?: ReadonlyMap<string, readonly string[]>
  /** What people did between two attempts, in its order. */
  readonly by_hand?: readonly HandWork[]
}

/** What the merge queue does not land, though its run may be done. */
export interface ParkedWork {
  readonly why: string
  /** What the user can do: a sentence, then lines to type. */
  readonly hint: string
  /** Its loop ended by itself before it was done: what happened then is told as of any run. */
  readonly byLoop?: true
  /** Given back to the queue: it is parked no longer, and has not landed yet. */
  readonly waits?: true
}

/** How it was run, and where. */
interface RunAbout {
  readonly agents: readonly string[]
  /** What the user's own agent is called; absent where none was set. */
  readonly agent_program?: string
  /** Empty: the agent's own. */
  readonly model: string
  readonly gates: readonly string[]
  readonly branch: string
  readonly original_branch: string
  /** Where the work is since it was brought back; absent before. */
  readonly work?: string
}

export interface Spending {
  readonly iterations: number
  /** Input and output. */
  readonly tokens: number
  /** Some of them are a guess, or not known at all. */
  readonly tokens_estimated?: true
  /** Of the iterations that have a price; absent when none has. */
  readonly cost_usd?: number
  /** Time of the agents, without waits. */
  readonly duration_ms: number
  /** Time of the gates; absent where none ran. */
  readonly gates_ms?: number
}

/** What was waited for: the agent, then the gates. */
export function tookMs(spent: Pick<Spending, 'duration_ms' | 'gates_ms'>): number {
  return spent.duration_ms + (spent.gates_ms ?? 0)
}

export interface AttemptReport {
  readonly n: number
  /** Of an earlier run, which has numbers of its own: as `ralph history --run` takes it. */
  readonly run?: number
  readonly attempt: number
  readonly agent: string
  /** Of a program of the user's own: its name. */
  readonly agent_program?: string
  readonly verdict: Verdict
  /** Whether its work stayed in the tree. */
  readonly kept: boolean
  readonly reason: string
  readonly started: string
  readonly ended: string
  /** Since the run's first iteration. */
  readonly from_ms: number
  readonly to_ms: number
  readonly duration_ms: number
  readonly gates_ms?: number
  readonly tokens: number
  readonly tokens_estimated: boolean
  readonly cost_usd?: number
  readonly commits: number
  /** Complete, and nothing but its boxes changed. */
  readonly unchanged?: true
}

export interface StoryReport extends Spending {
  readonly story_id: string
  readonly title: string
  /** Empty when the plan no longer has this story. */
  readonly status: StorySummary['status'] | ''
  readonly tasks_done: number
  readonly tasks_total: number
  readonly not_kept: Spending
  /** The number of its attempt that is under way. */
  readonly running?: number
  readonly attempts: readonly AttemptReport[]
  /** Changed by what was kept of it. */
  readonly files?: readonly string[]
  /** Those of `files` that it deleted; absent when there is none. */
  readonly deleted?: readonly string[]
  /** A person did it, or what was left of it, and ticked it; the gates were asked then. */
  readonly by_hand?: StoryByHand
  /** Changed by somebody else before one of its attempts, and saved with it; absent when there is none. */
  readonly adopted?: readonly string[]
}

export interface StoryByHand extends HandCheck {
  /** Others that were ticked at the same time; absent when there is none. */
  readonly with?: readonly string[]
}

export interface RunReport {
  readonly change_id: string
  readonly status: LoopStatus
  readonly reason: string
  readonly stop_reason?: string
  readonly died_at?: string
  readonly parked?: ParkedWork
  /** What makes its "done" worth less; absent when there is none. */
  readonly warnings?: readonly string[]
  /** Tests that were there before the run, and are not as they were; absent when there is none. */
  readonly tests_changed?: readonly string[]
  /** Empty when no iteration ran. */
  readonly started: string
  readonly ended: string
  /** From the first start to the last end, waits too. */
  readonly wall_ms: number
  readonly stories_done: number
  readonly stories_total: number
  readonly totals: Spending & {
    readonly input_tokens: number
    readonly output_tokens: number
    readonly cache_read_tokens: number
    readonly cache_creation_tokens: number
    /** Iterations with tokens but without a price: their cost is not in the sum. */
    readonly unpriced: number
    /** Iterations whose tokens are a guess. */
    readonly estimated: number
  }
  readonly not_kept: Spending
  readonly stories: readonly StoryReport[]
  readonly about?: RunAbout
}

export function runReport(history: RunHistory): RunReport {
  const { stories, earlier = [] } = history
  const works: readonly (RunWork & { readonly number?: number })[] = [...earlier, history]
  const iterations = works.flatMap((work) => work.iterations)
  const first = iterations[0]
  const startMs = first === undefined ? 0 : epochMs(first.started)
  const byStory = new Map<string, AttemptReport[]>()
  const attempts = works.flatMap(({ number, gates_ms: gates, programs, iterations: all }) =>
    all.map((iteration) => {
      const attempt = attemptReport(iteration, startMs, {
        run: number,
        gatesMs: gates?.get(iteration.n),
        program: programs?.get(iteration.n),
      })
      const own = byStory.get(iteration.story_id)
      if (own === undefined) byStory.set(iteration.story_id, [attempt])
      else own.push(attempt)
      return attempt
    }),
  )
  const refused = (id: string): boolean =>
    refusing.has(works.flatMap((work) => handOf(work, id).byHand ?? []).at(-1)?.gates ?? 'none')
  const counted = ownStories(stories)
  const sum = (count: (iteration: IterationRecord) => number): number =>
    iterations.reduce((total, iteration) => total + count(iteration), 0)
  return {
    change_id: history.change_id,
    status: history.status,
    reason: history.reason,
    ...(history.stop_reason !== undefined && { stop_reason: history.stop_reason }),
    ...(history.died_at !== undefined && { died_at: history.died_at }),
    ...(history.parked !== undefined && { parked: history.parked }),
    ...(history.warnings !== undefined && history.warnings.length > 0 && { warnings: history.warnings }),
    ...(history.tests_changed !== undefined &&
      history.tests_changed.length > 0 && { tests_changed: history.tests_changed }),
    ...(history.about !== undefined && { about: history.about }),
    started: first?.started ?? '',
    ended: iterations.at(-1)?.ended ?? '',
    // Stamps are whole seconds: what the attempts took is known better.
    wall_ms: attempts.reduce(
      (latest, attempt) => Math.max(latest, attempt.to_ms),
      tookMs(spending(attempts)),
    ),
    stories_done: counted.filter(({ id, status }) => status === 'done' && !refused(id)).length,
    stories_total: counted.length,
    totals: {
      ...spending(attempts),
      input_tokens: sum((iteration) => iteration.input_tokens),
      output_tokens: sum((iteration) => iteration.output_tokens),
      cache_read_tokens: sum((iteration) => iteration.cache_read_tokens),
      cache_creation_tokens: sum((iteration) => iteration.cache_creation_tokens),
      unpriced: attempts.filter((attempt) => attempt.tokens > 0 && attempt.cost_usd === undefined).length,
      estimated: attempts.filter((attempt) => attempt.tokens_estimated).length,
    },
    not_kept: spending(attempts.filter((attempt) => !attempt.kept)),
    stories: knownStories(stories, iterations).map((story) => {
      const own = byStory.get(story.id) ?? []
      const hands = works.map((work) => handOf(work, story.id))
      const byHand = hands.findLast((hand) => hand.byHand !== undefined)?.byHand
      const adopted = hands.flatMap((hand) => hand.adopted)
      const files = works.flatMap((work) => work.files?.get(story.id) ?? [])
      const deleted = new Set([
        ...works.flatMap((work) => work.deleted?.get(story.id) ?? []),
        ...hands.flatMap((hand) => hand.deleted),
      ])
      return {
        story_id: story.id,
        title: story.title,
        status: story.status,
        tasks_done: story.tasks_done,
        tasks_total: story.tasks_total,
        ...spending(own),
        not_kept: spending(own.filter((attempt) => !attempt.kept)),
        attempts: own,
        ...(history.current?.story_id === story.id && { running: history.current.n }),
        ...(history.files !== undefined && {
          files: [...new Set([...files, ...hands.flatMap((hand) => hand.files)])].toSorted(),
        }),
        ...(deleted.size > 0 && { deleted: [...deleted].toSorted() }),
        ...(byHand !== undefined && { by_hand: byHand }),
        ...(adopted.length > 0 && { adopted: [...new Set(adopted)].toSorted() }),
      }
    }),
  }
}

/** A box is ticked, and not done. */
const refusing: ReadonlySet<HandCheck['gates']> = new Set(['failed', 'could_not_run'])

/** What people did of a story and before its attempts. Of several that were ticked at once the first has the files. */
function handOf({ by_hand: all = [], files: saved, iterations }: RunWork, id: string) {
  const own = all.filter(({ story_ids: ids }) => ids.includes(id))
  const last = own.findLast(({ checked }) => checked !== undefined)
  // A box that was unticked again is an agent's.
  const isStill = !iterations.some((each) => each.story_id === id && each.n > (last?.after ?? 0))
  const isMine = ({ checked, story_ids: [first] }: HandWork): boolean => checked !== undefined && first === id
  const mine = isStill ? own.filter(isMine) : []
  const others = last?.story_ids.filter((other) => other !== id) ?? []
  const adopted = own.flatMap((hand) =>
    hand.checked === undefined || (!isStill && isMine(hand)) ? hand.files : [],
  )
  return {
    files: mine.flatMap(({ files }) => files),
    deleted: mine.flatMap(({ deleted = [] }) => deleted).filter((file) => !saved?.get(id)?.includes(file)),
    byHand:
      last?.checked === undefined || !isStill
        ? undefined
        : { ...last.checked, ...(others.length > 0 && { with: others }) },
    adopted,
  }
}

/** What went into attempts whose work was not kept. */
export function notKept(iterations: readonly IterationRecord[]): Spending {
  return spending(
    iterations.map((iteration) => attemptReport(iteration, 0)).filter((attempt) => !attempt.kept),
  )
}

/** The plan's stories in their order, then those that only the history knows. */
function knownStories(stories: readonly StorySummary[], iterations: readonly IterationRecord[]) {
  const planned = new Set(stories.map((story) => story.id))
  const gone = new Set(iterations.map((iteration) => iteration.story_id).filter((id) => !planned.has(id)))
  return [
    ...stories,
    ...[...gone].map((id) => ({ id, title: '', status: '' as const, tasks_done: 0, tasks_total: 0 })),
  ]
}

function attemptReport(
  iteration: IterationRecord,
  startMs: number,
  {
    run,
    gatesMs = 0,
    program,
  }: {
    readonly run?: number | undefined
    readonly gatesMs?: number | undefined
    readonly program?: string | undefined
  } = {},
): AttemptReport {
  const from = Math.max(0, epochMs(iteration.started) - startMs)
  return {
    n: iteration.n,
    ...(run !== undefined && { run }),
    attempt: iteration.attempt,
    agent: iteration.agent,
    ...(iteration.agent === 'command' && program !== undefined && { agent_program: program }),
    verdict: iteration.verdict,
    kept: keepsWork[iteration.verdict],
    reason: iteration.reason,
    started: iteration.started,
    ended: iteration.ended,
    from_ms: from,
    // A clock that was set back must not turn a bar around.
    to_ms: Math.max(from, epochMs(iteration.ended) - startMs),
    duration_ms: iteration.duration_ms,
    ...(gatesMs > 0 && { gates_ms: gatesMs }),
    tokens: iteration.tokens_used,
    tokens_estimated: iteration.tokens_estimated === true,
    ...(iteration.cost_usd !== undefined && { cost_usd: iteration.cost_usd }),
    commits: iteration.commits.length,
    ...(iteration.unchanged === true && { unchanged: true as const }),
  }
}

/** The stories of which the agent's word is all there is: nothing that was kept of them changed a file. */
export function wordOnly(
  attempts: readonly Readonly<Pick<IterationRecord, 'story_id' | 'verdict' | 'unchanged'>>[],
): readonly string[] {
  // What was refused is not what counts, whoever made it.
  const kept = attempts.filter(({ verdict }) => keepsWork[verdict] && verdict !== 'refused')
  const changed = new Set(kept.filter(({ unchanged }) => unchanged !== true).map(({ story_id: id }) => id))
  return [...new Set(kept.map(({ story_id: id }) => id))].filter((id) => !changed.has(id))
}

/** A table, so that a new verdict has to be decided here. */
export const keepsWork: Readonly<Record<Verdict, boolean>> = {
  complete: true,
  partial: true,
  progress: true,
  kept: true,
  refused: true,
  failed: false,
  gate_failed: false,
  none: false,
  timeout: false,
  idle: false,
  crash: false,
  limit: false,
  fatal: false,
  interrupted: false,
  budget: false,
  error: false,
}

function spending(attempts: readonly AttemptReport[]): Spending {
  const costs = attempts.flatMap((attempt) => attempt.cost_usd ?? [])
  const gatesMs = attempts.reduce((sum, attempt) => sum + (attempt.gates_ms ?? 0), 0)
  return {
    iterations: attempts.length,
    tokens: attempts.reduce((sum, attempt) => sum + attempt.tokens, 0),
    ...(attempts.some((attempt) => attempt.tokens_estimated) && { tokens_estimated: true }),
    ...(costs.length > 0 && { cost_usd: costs.reduce((sum, cost) => sum + cost, 0) }),
    duration_ms: attempts.reduce((sum, attempt) => sum + attempt.duration_ms, 0),
    ...(gatesMs > 0 && { gates_ms: gatesMs }),
  }
}
