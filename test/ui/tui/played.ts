// A recorded run for the screens: its events with the states that the reducer makes of them, played into a model.
import type { EventBody, LoopEvent } from '../../../src/core/event.ts'
import { reduce } from '../../../src/core/loop.ts'
import { initialState } from '../../../src/core/state.ts'
import type { Told } from '../../../src/ports.ts'
import { plain } from '../../../src/ui/io.ts'
import type { Act, Input } from '../../../src/ui/tui/inputs.ts'
import type { Key } from '../../../src/ui/tui/keys.ts'
import { keysOf } from '../../../src/ui/tui/keys.ts'
import { textOf } from '../../../src/ui/tui/spans.ts'
import { opened, update, view } from '../../../src/ui/tui/view-model.ts'
import type { Entry, Model } from '../../../src/ui/tui/view-model.ts'
import { iteration, started } from '../events.ts'

export const startMs = Date.parse('2026-02-09T14:00:00+01:00')

/** `14:00:00` and so many seconds. */
function stampAt(seconds: number): string {
  const at = new Date(startMs + 3_600_000 + seconds * 1000)
  return `${at.toISOString().slice(0, 19)}+01:00`
}

export interface At {
  readonly at: number
  readonly body: EventBody
}

const at = (seconds: number, body: EventBody): At => ({ at: seconds, body })
const hash = '1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d'

const names = ['Language table', 'Greet by name', 'Languages', 'Tell people']

function plan(done: number): EventBody {
  return {
    type: 'plan.read',
    stories: names.map((title, index) => ({
      id: String(index + 1),
      title,
      status: index < done ? 'done' : 'open',
      tasks_done: index < done ? 2 : 0,
      tasks_total: 2,
    })),
    human_tasks: [],
    tasks_done: done * 2,
    tasks_total: 8,
  }
}

const begun: readonly At[] = [
  at(1, { type: 'git.began', op: 'start', data: {} }),
  at(1, { type: 'git.ended', op: 'start' }),
  at(1, { type: 'checkpoint.saved', message: 'initial state', commit: hash, changed: true }),
]

interface Attempted {
  readonly n: number
  readonly story: number
  readonly attempt: number
  readonly from: number
  readonly seconds: number
  readonly isDone: boolean
}

function opening({ n, story, attempt, from }: Attempted): readonly At[] {
  const id = String(story)
  return [
    ...(attempt === 1
      ? [
          at(from, {
            type: 'story.started',
            story_id: id,
            title: names[story - 1] ?? '',
            index: story,
            total: 4,
            completed: story - 1,
          }),
        ]
      : []),
    ...(n === 1 ? begun : []),
    at(from, { type: 'checkpoint.verified', commit: hash }),
    at(from, {
      type: 'iteration.started',
      n,
      story_id: id,
      attempt,
      attempts: 4,
      max_iterations: 16,
      agent: 'claude',
      base_commit: hash,
      log_file: `${String(n)}.log`,
    }),
    at(from, { type: 'agent.started', n, pid: 7, pid_started: '7' }),
    at(from + 1, {
      type: 'agent.message',
      n,
      text: 'The parser rejects unknown flags, so I add `--lang` there **first**.',
    }),
    at(from + 2, { type: 'agent.tool', n, name: 'Read', input: '/repo/src/args.ts' }),
  ]
}

function closing(attempted: Attempted): readonly At[] {
  const { n, story, attempt, from, seconds, isDone } = attempted
  const to = from + seconds
  const id = String(story)
  const record = iteration({
    n,
    story_id: id,
    attempt,
    started: stampAt(from),
    ended: stampAt(to),
    duration_ms: seconds * 1000,
    cost_usd: 0.3,
    tokens_used: 40_000,
    verdict: isDone ? 'complete' : 'gate_failed',
    reason: isDone ? '' : "npm test failed: expected 'hello' to be 'szia'",
    done_check: isDone,
    attempt_ref: `refs/ralph/add-login/attempts/${String(n)}`,
  })
  return [
    at(to - 9, {
      type: 'agent.ended',
      n,
      now_ms: startMs + to * 1000,
      duration_ms: seconds * 1000,
      ending: 'finished',
      promise: { kind: 'complete' },
      last_words: 'done',
      survivors: [],
    }),
    at(to - 9, {
      type: 'attempt.kept',
      n,
      ref: `refs/ralph/add-login/attempts/${String(n)}`,
      commit: hash,
      commits: [],
      changed: true,
      history_rewritten: false,
      ticked: 2,
      still_open: 0,
      not_asked: 0,
    }),
    at(to - 8, { type: 'gate.started', n, command: 'npm test' }),
    at(to, {
      type: 'gate.ended',
      n,
      command: 'npm test',
      outcome: isDone ? 'passed' : 'failed',
      exit_code: isDone ? 0 : 1,
      duration_ms: 8100,
      output_tail: isDone
        ? ''
        : "FAIL test/greet.test.ts > greets in Hungarian\nexpected 'hello' to be 'szia'\n",
      output_lines: 36,
    }),
    at(to, {
      type: 'gates.checked',
      n,
      failed: isDone ? '' : 'npm test failed',
      ...(isDone ? {} : { reason: 'npm test failed' }),
    }),
    ...(isDone
      ? [
          at(to, { type: 'boxes.settled', n, remaining: 0, not_asked: 0, ticked_by_ralph: 0 }),
          at(to, {
            type: 'checkpoint.saved',
            n,
            story_id: id,
            message: `story ${id}`,
            commit: hash,
            changed: true,
          }),
        ]
      : [
          at(to, {
            type: 'checkpoint.reverted',
            n,
            commit: hash,
            files: ['src/args.ts', 'src/greet.ts'],
            files_total: 2,
          }),
        ]),
    at(to, plan(isDone ? story : story - 1)),
    at(to, { type: 'iteration.ended', iteration: record }),
  ] as readonly At[]
}

const asking = {
  ...started,
  branch: 'ralph/add-greeting',
  settings: { ...started.settings, on_complete: 'ask' },
} as const

const first: Attempted = { n: 1, story: 1, attempt: 1, from: 2, seconds: 121, isDone: true }
const second: Attempted = { n: 2, story: 2, attempt: 1, from: 124, seconds: 108, isDone: true }
const third: Attempted = { n: 3, story: 3, attempt: 1, from: 233, seconds: 182, isDone: false }
const fourth: Attempted = { n: 4, story: 3, attempt: 2, from: 416, seconds: 190, isDone: true }
const fifth: Attempted = { n: 5, story: 4, attempt: 1, from: 607, seconds: 60, isDone: true }

/** Two stories done, the third failed once and is at its second attempt. */
export const halfWay: readonly At[] = [
  at(0, asking),
  at(0, plan(0)),
  ...opening(first),
  ...closing(first),
  ...opening(second),
  ...closing(second),
  ...opening(third),
  ...closing(third),
  ...opening(fourth),
  at(420, { type: 'agent.tool', n: 4, name: 'Edit', input: '/repo/src/args.ts' }),
  at(431, { type: 'agent.tool', n: 4, name: 'Bash', input: 'npm test' }),
  at(431, {
    type: 'agent.usage',
    n: 4,
    input_tokens: 12_000,
    output_tokens: 900,
    cache_read_tokens: 0,
    cache_creation_tokens: 0,
    cost_usd: 0.08,
  }),
]

/** The same to its end. */
export const whole: readonly At[] = [
  ...halfWay,
  ...closing(fourth),
  ...opening(fifth),
  ...closing(fifth),
  at(668, {
    type: 'complete',
    status: 'done',
    reason: 'every story is complete',
    stop_reason: 'done',
    exit_code: 0,
    totals: {
      iterations: 5,
      stories_done: 4,
      stories_total: 4,
      tasks_done: 8,
      tasks_total: 8,
      tokens: 200_000,
      cost_usd: 1.5,
      duration_ms: 661_000,
      not_kept: { iterations: 1, tokens: 40_000, cost_usd: 0.3, duration_ms: 182_000 },
    },
    choice: 'later',
  }),
]

export function toldOf(run: readonly At[], change = 'add-greeting'): readonly Told[] {
  let state = initialState(change)
  let record = 0
  const records = run.map(({ at: seconds, body }): Told => {
    record += 1
    const event = { v: 1, seq: record, time: stampAt(seconds), change_id: change, ...body } as LoopEvent
    ;({ state } = reduce(state, event))
    return { type: 'event', event, state, cursor: { run: 'r', record, talk: 0 } }
  })
  const life = run.at(-1)?.body.type === 'complete' ? 'ended' : 'running'
  const cursor = { run: 'r', record: 0, talk: 0 }
  const begin: Told = { type: 'loop', loop: 'running', state: initialState(change), cursor }
  const end: Told = { type: 'loop', loop: life, state, cursor: { ...cursor, record } }
  return [begin, ...records, end]
}

/** A model that is driven like the real one, and remembers what it asked for. */
export class Player {
  model: Model
  acts: Act[] = []

  constructor(entry: Entry, size = { columns: 120, rows: 35 }) {
    const world = { size, nowMs: startMs + 440_000, place: '~/src/greeter' }
    const sheet = { paint: plain, columns: size.columns }
    const begun = opened(entry, world, sheet)
    this.model = begun.model
    this.acts.push(...begun.acts)
  }

  hear(...inputs: readonly Input[]): this {
    for (const input of inputs) {
      const { model, acts } = update(this.model, input)
      this.model = model
      this.acts.push(...acts)
    }
    return this
  }

  /** As a terminal sends it. */
  type(bytes: string): this {
    return this.hear(...keysOf(bytes).keys.map((key: Key): Input => ({ type: 'key', key })))
  }

  later(seconds: number): this {
    return this.hear({ type: 'tick', nowMs: this.model.nowMs + seconds * 1000 })
  }

  /** Long enough that what is on the screen has been read. */
  read(): this {
    return this.later(0.1).later(1)
  }

  /** What was asked for since the last time. */
  asked(): readonly Act[] {
    return this.acts.splice(0)
  }

  lines(): readonly string[] {
    return view(this.model).lines.map((line) => textOf(line).trimEnd())
  }

  text(): string {
    return this.lines().join('\n')
  }
}

export function playing(run: readonly At[], size?: { columns: number; rows: number }): Player {
  const player = new Player({ at: 'loop', change: 'add-greeting', isOwn: true }, size)
  return player.hear({ type: 'told', change: 'add-greeting', records: toldOf(run) })
}
