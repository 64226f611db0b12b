import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { agentEndings, bodySchema } from '../../src/core/event.ts'
import type { EventBody, LoopEvent } from '../../src/core/event.ts'
import { next, reduce, replay } from '../../src/core/loop.ts'
import { gateTimes } from '../../src/core/hand-work.ts'
import { initialState } from '../../src/core/state.ts'
import { unrecorded } from '../../src/core/unrecorded.ts'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { toStateFile } from '../../src/core/state-snapshot.ts'
import type { Deed, Run, World } from './world.ts'
import { good, ofType, play, settings } from './world.ts'

const failed: Deed = { ...good, promise: 'failed' }
const silent: Deed = { ...good, promise: 'none' }

const deeds: fc.Arbitrary<Deed> = fc.record({
  ending: fc.constantFrom(
    ...agentEndings.filter((ending) => ending !== 'stopped'),
    'finished',
    'finished',
    'finished',
  ),
  promise: fc.constantFrom<Deed['promise']>('complete', 'failed', 'none'),
  ticks: fc.constantFrom<Deed['ticks']>('all', 'some', 'none'),
  gatesPass: fc.boolean(),
  stop: fc.integer({ min: 0, max: 19 }).map((roll) => roll === 0),
  pause: fc.boolean(),
  claims: fc.integer({ min: 0, max: 3 }),
  changesTree: fc.boolean(),
  tokens: fc.integer({ min: 0, max: 1000 }),
})

const worlds: fc.Arbitrary<World> = fc.record({
  settings: fc
    .record({
      max_retries: fc.integer({ min: 0, max: 4 }),
      stall: fc.integer({ min: 1, max: 8 }),
      gates: fc.boolean(),
      agents: fc.constantFrom<string[]>(['claude'], ['claude', 'codex']),
      max_tokens: fc.option(fc.integer({ min: 1, max: 5000 }), { nil: undefined }),
    })
    .map(({ max_retries, stall, gates, agents, max_tokens }) => ({
      ...settings,
      max_retries,
      stall_threshold: stall,
      gates: gates ? ['true'] : [],
      agents,
      ...(max_tokens !== undefined && { max_tokens }),
    })),
  tasks: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 }),
  deeds: fc.array(deeds, { maxLength: 60 }),
})

describe('properties of the loop', () => {
  test('no story ever gets more than 1 + max_retries attempts that were its own doing', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const run = play(world)
        const used = new Map<string, number>()
        for (const { iteration } of ofType(run, 'iteration.ended')) {
          if (['limit', 'fatal', 'interrupted', 'budget'].includes(iteration.verdict)) continue
          used.set(iteration.story_id, (used.get(iteration.story_id) ?? 0) + 1)
        }
        for (const count of used.values()) expect(count).toBeLessThanOrEqual(1 + world.settings.max_retries)
        for (const started of ofType(run, 'iteration.started'))
          expect(started.attempt).toBeLessThanOrEqual(started.attempts)
      }),
    )
  })

  test('no story is skipped or run out of order', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const run = play(world)
        let last = 1
        const complete = new Set<number>()
        for (const event of run.events) {
          if (event.type === 'iteration.started') {
            const story = Number(event.story_id)
            expect(story).toBeGreaterThanOrEqual(last)
            for (let earlier = 1; earlier < story; earlier += 1) expect(complete.has(earlier)).toBe(true)
            last = story
          }
          if (event.type === 'iteration.ended' && event.iteration.verdict === 'complete')
            complete.add(Number(event.iteration.story_id))
        }
      }),
    )
  })

  test('every run ends in exactly one complete, and it is the last event', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const run = play(world)
        expect(ofType(run, 'complete')).toHaveLength(1)
        expect(run.events.at(-1)?.type).toBe('complete')
        expect(run.state.phase).toBe('ended')
      }),
    )
  })

  test('U1: exit code 0 if and only if every story is complete', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const run = play(world)
        const end = ofType(run, 'complete')[0]
        const allDone = run.state.stories.every((story) => story.status === 'done')
        expect(end?.exit_code === 0).toBe(allDone && end?.stop_reason !== 'signal')
        expect(end?.exit_code === 0).toBe(end?.status === 'done')
      }),
    )
  })

  test('replay(journal) == state, at every prefix', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), (world, cut) => {
        const run = play(world)
        expect(replay(initialState('demo'), run.events)).toEqual(run.state)
        const prefix = run.events.slice(0, cut % (run.events.length + 1))
        const half = replay(initialState('demo'), prefix)
        expect(replay(half, run.events.slice(prefix.length))).toEqual(run.state)
      }),
    )
  })

  test('U3: every iteration that started is recorded exactly once, and its tokens are in the total', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const run = play(world)
        const started = ofType(run, 'iteration.started').map((event) => event.n)
        expect(run.state.iterations.map((iteration) => iteration.n)).toEqual(started)
        const file = toStateFile(run.state)
        expect(file.total_tokens).toBe(
          run.state.iterations.reduce((sum, iteration) => sum + iteration.tokens_used, 0),
        )
        expect(stateFileSchema.safeParse(file).success).toBe(true)
      }),
    )
  })

  test('a loop killed at any event is brought to a recorded end by loop.died, without a look at its tree', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), (world, cut) => {
        const run = play(world)
        const prefix = run.events.slice(0, 1 + (cut % run.events.length))
        const dead = replay(initialState('demo'), prefix)
        if (dead.phase === 'ended') return
        const { state } = reduce(dead, event({ type: 'loop.died', at_ms: 1, now_ms: 2, orphans: [] }))
        expect(state.phase).toBe(dead.current === undefined ? 'completing' : 'recording')
        // What its attempt left waits for a command that may repair.
        const isSettled = dead.current === undefined || dead.phase === 'recording'
        expect(state.unsettled?.n).toBe(isSettled ? undefined : dead.current?.n)
        const { current } = state
        const recorded =
          current === undefined
            ? state
            : reduce(
                state,
                event({
                  type: 'iteration.ended',
                  iteration: {
                    ...unrecorded(current, 'now', current.reason),
                    verdict: current.verdict ?? 'none',
                  },
                }),
              ).state
        // A choice counts only when it was carried out.
        const choice = dead.phase === 'completing' ? dead.choice : 'later'
        expect(next(recorded)).toMatchObject({ do: 'announce', event: { type: 'complete', choice } })
      }),
    )
  })

  test('a random event never breaks it', () => {
    const anyEvent = fc.constantFrom(
      ...play({ settings, tasks: [1, 2], deeds: [failed, silent, { ...good, ticks: 'some' }] }).events,
    )
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 120 }), (events) => {
        const state = replay(initialState('demo'), events)
        expect(Number.isInteger(state.step)).toBe(true)
        expect(state.iterations.length).toBeLessThanOrEqual(events.length)
      }),
    )
  })
})

describe('rules of the loop', () => {
  test('S000-story-iteration: three stories run one after another and the loop is done', () => {
    const run = play({ settings, tasks: [1, 1, 1], deeds: [] })
    expect(ofType(run, 'story.started').map((event) => event.story_id)).toEqual(['1', '2', '3'])
    expect(ofType(run, 'complete')[0]).toMatchObject({ status: 'done', exit_code: 0 })
  })

  test('a plan that was finished before it began asks nothing: there is no branch to decide about', () => {
    const asks = { ...settings, on_complete: 'ask' as const }
    const asked = (tasks: readonly number[]): boolean =>
      play({ settings: asks, tasks, deeds: [] }).commands.some((command) => command.do === 'ask_choice')
    expect([asked([0]), asked([1])]).toEqual([false, true])
  })

  test('S000-retry-with-reason: the reason of FAILED is handed to the next attempt of that story and to no other', () => {
    const run = play({ settings, tasks: [1, 1], deeds: [failed, good, good] })
    const prompts = run.commands.filter((command) => command.do === 'run_agent')
    expect(prompts.map((command) => command.previousFailure)).toEqual([undefined, 'reason 1', undefined])
  })

  test('S000-abnormal-termination: no promise is retried without added context', () => {
    const run = play({ settings, tasks: [1], deeds: [failed, silent, good] })
    const prompts = run.commands.filter((command) => command.do === 'run_agent')
    expect(prompts.map((command) => command.previousFailure)).toEqual([undefined, 'reason 1', undefined])
  })

  test('S000-max-retries: 4 attempts by default, then error, max_retries_exceeded, no further story, exit 3', () => {
    const run = play({ settings, tasks: [1, 1], deeds: [failed, failed, failed, failed, failed] })
    expect(ofType(run, 'iteration.started').map((event) => [event.story_id, event.attempt])).toEqual([
      ['1', 1],
      ['1', 2],
      ['1', 3],
      ['1', 4],
    ])
    const tail = run.events
      .map((event) => event.type)
      .filter((type) => ['error', 'max_retries_exceeded', 'complete'].includes(type))
    expect(tail).toEqual(['error', 'max_retries_exceeded', 'complete'])
    expect(ofType(run, 'complete')[0]).toMatchObject({
      status: 'stuck',
      exit_code: 3,
      stop_reason: 'retries',
    })
  })

  test('--max-retries 0 means one attempt', () => {
    const run = play({ settings: { ...settings, max_retries: 0 }, tasks: [1], deeds: [failed] })
    expect(ofType(run, 'iteration.started')).toHaveLength(1)
  })

  test('O1: whether work lies elsewhere is asked of an attempt that says COMPLETE, and of no other', () => {
    const run = play({ settings, tasks: [1], deeds: [failed, silent, good] })
    const keeps = run.commands.filter((command) => command.do === 'keep_attempt')
    expect(keeps.map(({ mayBeSaved }) => mayBeSaved)).toEqual([false, false, true])
  })

  test('P6: COMPLETE without a ticked box counts as complete; some ticked keeps the work and uses a retry', () => {
    const none = play({ settings, tasks: [3], deeds: [{ ...good, ticks: 'none' }] })
    expect(none.state.iterations.map((iteration) => iteration.verdict)).toEqual(['complete'])
    const some = play({ settings, tasks: [4], deeds: [{ ...good, ticks: 'some' }, good] })
    expect(some.state.iterations.map((iteration) => [iteration.verdict, iteration.attempt])).toEqual([
      ['partial', 1],
      ['complete', 2],
    ])
  })

  test('a failed gate is a failed attempt whose reason reaches the next one', () => {
    const run = play({
      settings: { ...settings, gates: ['npm test'] },
      tasks: [1],
      deeds: [{ ...good, gatesPass: false }, good],
    })
    expect(run.state.iterations.map((iteration) => iteration.verdict)).toEqual(['gate_failed', 'complete'])
    expect(run.commands.filter((command) => command.do === 'run_agent')[1]?.previousFailure).toBe(
      'gate failed',
    )
  })

  test('B15: with --story the tasks are those of the stories that were asked for', () => {
    const run = play({ settings: { ...settings, stories: ['2'] }, tasks: [3, 2], deeds: [good] })
    const end = ofType(run, 'complete')[0]
    expect(end?.totals).toMatchObject({ stories_total: 1, tasks_done: 2, tasks_total: 2 })
  })

  const runAgents = (run: Run) => run.commands.filter((command) => command.do === 'run_agent')
  const gated = { ...settings, gates: ['npm test'] }
  const red: Deed = { ...good, gatesPass: false }

  test('F1: a failed gate is run once without the work before its retry is paid, and what came of it stands in each prompt and at the end', () => {
    const run = play({ settings: gated, tasks: [1], deeds: [red, red, red, red], baseline: 'same' })
    const asked = runAgents(run)
    const compared = { gate: 'npm test', reason: 'gate failed' }
    expect(asked.map(({ compares }) => compares)).toEqual([undefined, compared, undefined, undefined])
    expect(asked[2]?.previousFailure).toMatch(/^gate failed\n\nralph has run this gate without your changes/)
    expect(run.state.status).toBe('stuck')
    expect(run.state.outcome?.hint).toBe(
      "npm test fails without the agent's work, too: fix that first, then type: ralph resume demo",
    )
  })

  test('F1: where it passes without the work the agent is told that, and the end blames nobody else', () => {
    const run = play({ settings: gated, tasks: [1], deeds: [red, red, red, red], baseline: 'passed' })
    expect(runAgents(run)[2]?.previousFailure).toContain('Without your changes this gate passes')
    expect(run.state.outcome?.hint).toBe('To try again, and tell it more: ralph resume demo --feedback "…"')
  })

  test('F1: a gate that a resume has put another in the place of is not run for that', () => {
    const { state } = play({ settings: { ...gated, max_retries: 0 }, tasks: [1], deeds: [red] })
    expect(state.failure?.gate?.gate).toBe('npm test')
    const goOn = (gates: string[]) =>
      runAgents(play({ settings: { ...settings, gates }, tasks: [1], deeds: [], goesOn: state }))[0]
    expect(goOn(['npm test'])?.compares?.gate).toBe('npm test')
    expect(goOn(['true'])?.compares).toBeUndefined()
  })

  test('F1: a gate that has passed in this loop, or that failed where nothing was changed, is not run for that', () => {
    const passed = play({ settings: gated, tasks: [1, 1], deeds: [good, red, good] })
    expect(runAgents(passed).map(({ compares }) => compares)).toEqual([undefined, undefined, undefined])
    expect(runAgents(passed)[2]?.previousFailure).toContain('Without your changes this gate passes')
    const same = play({ settings: gated, tasks: [1], deeds: [{ ...red, changesTree: false }, red] })
    expect(runAgents(same)[1]?.compares).toBeUndefined()
    expect(runAgents(same)[1]?.previousFailure).toContain('it fails there in the same way')
  })

  test('R8: a limit uses no retry, counts toward no stall, and max_iterations grows by one', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none' }
    const run = play({
      settings: { ...settings, max_retries: 0, stall_threshold: 1 },
      tasks: [1],
      deeds: [limit, limit, good],
    })
    expect(run.state.status).toBe('done')
    expect(run.state.maxIterations).toBe(3)
    expect(ofType(run, 'waiting')).toHaveLength(2)
    expect(ofType(run, 'iteration.started').map((event) => event.attempt)).toEqual([1, 1, 1])
  })

  test('R8: a limit past --limit-wait ends with exit 6', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none' }
    const run = play({ settings: { ...settings, limit_wait_min: 0.5 }, tasks: [1], deeds: [limit] })
    expect(ofType(run, 'complete')[0]).toMatchObject({
      status: 'stopped',
      exit_code: 6,
      stop_reason: 'limit',
    })
  })

  test('Q16: a limit that another loop was told of is waited for like an own one, and costs neither an iteration nor a retry', () => {
    const claude = { ...settings, agents: ['claude'] }
    const run = play({ settings: claude, tasks: [1], deeds: [good], limitedElsewhere: { claude: 2_000_000 } })
    const types = run.events.map(({ type }) => type)
    expect(types.indexOf('waiting')).toBeLessThan(types.indexOf('iteration.started'))
    expect(ofType(run, 'waiting')).toMatchObject([{ for: 'limit', until_ms: 2_000_000, agent: 'claude' }])
    expect(ofType(run, 'iteration.started')).toMatchObject([{ n: 1, attempt: 1 }])
    expect(ofType(run, 'complete')).toMatchObject([{ exit_code: 0 }])
    const brief = { ...claude, limit_wait_min: 0.5 }
    const ended = play({ settings: brief, tasks: [1], deeds: [], limitedElsewhere: { claude: 2_000_000 } })
    expect(ofType(ended, 'iteration.started')).toEqual([])
    expect(ofType(ended, 'complete')).toMatchObject([{ exit_code: 6, stop_reason: 'limit' }])
  })

  test('Q16: a chain takes the next agent while another loop waits for the first one', () => {
    const run = play({
      settings: { ...settings, agents: ['claude', 'codex'] },
      tasks: [1],
      deeds: [good],
      limitedElsewhere: { claude: 2_000_000 },
    })
    expect(ofType(run, 'iteration.started').map(({ agent }) => agent)).toEqual(['codex'])
    expect(ofType(run, 'waiting')).toEqual([])
  })

  test('a chain takes the next agent at once when the first hits its limit, and returns after the reset', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none' }
    const run = play({
      settings: { ...settings, agents: ['claude', 'codex'] },
      tasks: [1, 1],
      deeds: [limit, good, good],
    })
    expect(ofType(run, 'iteration.started').map((event) => event.agent)).toEqual(['claude', 'codex', 'codex'])
    expect(ofType(run, 'waiting')).toHaveLength(0)
  })

  test('a missing agent ends with exit 6, unless the chain has another', () => {
    const missing: Deed = { ...good, ending: 'missing', promise: 'none' }
    expect(ofType(play({ settings, tasks: [1], deeds: [missing] }), 'complete')[0]).toMatchObject({
      exit_code: 6,
      stop_reason: 'missing',
    })
    const chain = play({
      settings: { ...settings, agents: ['claude', 'codex'] },
      tasks: [1],
      deeds: [missing, good],
    })
    expect(chain.state.status).toBe('done')
  })

  test.each(['auth', 'model'] as const)(
    'R16: %s of the first agent stops at once with exit 6, chain or not',
    (ending) => {
      const deeds = Array.from({ length: 99 }, (): Deed => ({ ...good, ending, promise: 'none' }))
      for (const agents of [['claude'], ['claude', 'codex']]) {
        const run = play({ settings: { ...settings, agents }, tasks: [1], deeds })
        expect(run.state.iterations.map(({ agent }) => agent)).toEqual(['claude'])
        expect(ofType(run, 'complete')[0]).toMatchObject({ exit_code: 6, stop_reason: ending })
      }
    },
  )

  test.each(['missing', 'auth', 'model'] as const)(
    'R8: a fallback that cannot run (%s) is left out, and the limit of the first is waited for',
    (ending) => {
      const limit: Deed = { ...good, ending: 'limit', promise: 'none', resetsAt: (nowMs) => nowMs + 50_000 }
      const run = play({
        settings: { ...settings, agents: ['claude', 'codex'], max_retries: 0 },
        tasks: [1, 1],
        deeds: [limit, { ...good, ending, promise: 'none' }, good, good],
      })
      expect(run.state.status).toBe('done')
      expect(run.state.iterations.map(({ agent }) => agent)).toEqual(['claude', 'codex', 'claude', 'claude'])
      expect(ofType(run, 'waiting')).toMatchObject([{ agent: 'claude', for: 'limit' }])
    },
  )

  test('F45: a story has its own gates after those of all, and its own model; the others have not', () => {
    const story_settings = { '2': { gates: ['e2e', 'npm test'], model: 'opus' } }
    const own = {
      ...settings,
      gates: ['npm test'],
      agents: ['claude', 'codex'],
      model: 'haiku',
      story_settings,
    }
    const limit: Deed = { ...good, ending: 'limit', promise: 'none' }
    const run = play({ settings: own, tasks: [1, 1], deeds: [good, limit, good] })
    const asked = run.commands.flatMap((command) =>
      command.do === 'run_agent' ? [[command.storyId, command.agent, command.model]] : [],
    )
    expect(asked).toEqual([
      ['1', 'claude', 'haiku'],
      ['2', 'claude', 'opus'],
      ['2', 'codex', undefined],
    ])
    const gates = run.commands.flatMap((command) => (command.do === 'check_gates' ? [command.commands] : []))
    expect(gates).toEqual([['npm test'], ['npm test', 'e2e']])
    const alone = play({ settings: { ...own, gates: [] }, tasks: [1, 1], deeds: [good, good] })
    expect(alone.commands.filter((command) => command.do === 'check_gates')).toHaveLength(1)
  })

  test('F45: a pause that is asked for while an agent works begins before the next iteration; without one, or after a stop, there is none', () => {
    const pause: Deed = { ...good, pause: true }
    const run = play({ settings, tasks: [1, 1], deeds: [pause, good] })
    expect(ofType(run, 'waiting')).toMatchObject([{ for: 'pause', agent: '' }])
    const told = run.events.map(({ type }) => type)
    expect(told.indexOf('waiting')).toBeGreaterThan(told.indexOf('iteration.ended'))
    expect(told.indexOf('waiting')).toBeLessThan(told.lastIndexOf('iteration.started'))
    expect([run.state.status, run.state.pause, run.state.iterations.length]).toEqual(['done', false, 2])
    expect(ofType(play({ settings, tasks: [1], deeds: [pause] }), 'waiting')).toEqual([])
    const stopped = play({ settings, tasks: [1, 1], deeds: [{ ...pause, stop: true }] })
    expect([stopped.state.status, ofType(stopped, 'waiting')]).toEqual(['stopped', []])
  })

  test('F45: a pause uses up no time of --limit-wait', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none', resetsAt: (nowMs) => nowMs + 50_000 }
    const run = play({
      settings: { ...settings, limit_wait_min: 1 },
      tasks: [1],
      deeds: [{ ...limit, pause: true }, good],
    })
    expect(ofType(run, 'waiting').map((event) => event.for)).toEqual(['limit', 'pause'])
    expect(run.state.status).toBe('done')
  })

  test('a note that is given while an agent works is in the next prompt, and in no other; a limit keeps it', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none' }
    const run = play({
      settings,
      tasks: [1, 1, 1],
      deeds: [{ ...good, note: 'one' }, limit, { ...good, note: 'two' }, good],
    })
    const asked = run.commands.flatMap((command) =>
      command.do === 'run_agent' ? [[command.n, command.feedback]] : [],
    )
    expect(asked).toEqual([
      [1, undefined],
      [2, 'one'],
      [3, 'one'],
      [4, 'two'],
    ])
    expect(run.state.notes).toEqual([])
  })

  test('a wait that a human ends: its agent is asked at once, and only what was waited counts toward --limit-wait', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none', resetsAt: (nowMs) => nowMs + 50_000 }
    const agents = ['claude', 'codex']
    const run = play({
      settings: { ...settings, agents, limit_wait_min: 1 },
      tasks: [1],
      deeds: [limit, { ...limit, skipsAfterMs: 5_000 }, { ...limit, skipsAfterMs: 5_000 }, good],
    })
    expect(ofType(run, 'waiting').map(({ agent }) => agent)).toEqual(['claude', 'codex'])
    expect(run.state.iterations.map(({ agent, verdict }) => [agent, verdict])).toEqual([
      ['claude', 'limit'],
      ['codex', 'limit'],
      ['claude', 'limit'],
      ['codex', 'complete'],
    ])
    expect(run.state.status).toBe('done')
  })

  test('R8: a fallback that cannot run, and a limit longer than --limit-wait: exit 6 for the limit', () => {
    const limit: Deed = { ...good, ending: 'limit', promise: 'none', resetsAt: (nowMs) => nowMs + 600_000 }
    const run = play({
      settings: { ...settings, agents: ['claude', 'codex'], limit_wait_min: 1 },
      tasks: [1],
      deeds: [limit, { ...good, ending: 'auth', promise: 'none' }],
    })
    expect(ofType(run, 'complete')[0]).toMatchObject({ exit_code: 6, stop_reason: 'limit' })
    expect(ofType(run, 'complete')[0]?.reason).toMatch(/^claude is at its limit, and the agent's login/)
  })

  test('R8: with the whole chain at its limit, the one that is back first is waited for by name', () => {
    const until = (ms: number): Deed => ({
      ...good,
      ending: 'limit',
      promise: 'none',
      resetsAt: (nowMs) => nowMs + ms,
    })
    const run = play({
      settings: { ...settings, agents: ['claude', 'codex'] },
      tasks: [1],
      deeds: [until(50_000), until(900_000)],
    })
    expect(ofType(run, 'waiting')).toMatchObject([{ agent: 'claude' }])
    expect(run.state.iterations.at(-1)?.agent).toBe('claude')
  })

  const resets: readonly [string, (nowMs: number) => number][] = [
    ['past', (nowMs) => nowMs - 100_000],
    ['now', (nowMs) => nowMs],
    ['always a second ahead', (nowMs) => nowMs + 1000],
    ['fixed', () => 1_004_000],
    ['in the year 5138', () => 99_999_999_999_999],
    ['beyond every date', () => 1e300],
    ['not a number', () => Number.NaN],
    ['infinite', () => Number.POSITIVE_INFINITY],
    ['negative', () => -5],
  ]
  test.each(resets)('R8: a reset time that is %s is no spin, and --limit-wait ends it', (_name, resetsAt) => {
    const deeds = Array.from({ length: 99 }, (): Deed => ({
      ...good,
      ending: 'limit',
      promise: 'none',
      resetsAt,
    }))
    const run = play({ settings: { ...settings, limit_wait_min: 60 }, tasks: [1], deeds })
    expect(ofType(run, 'complete')[0]).toMatchObject({ exit_code: 6, stop_reason: 'limit' })
    // 1 + 2 + 4 + 8 minutes, then 15 each.
    expect(run.state.iterations.length).toBeLessThanOrEqual(9)
    expect(run.state.waitedMs).toBeGreaterThan(40 * 60_000)
    expect(run.state.waitedMs).toBeLessThanOrEqual(60 * 60_000)
  })

  test('an agent that never does anything but fail in one way ends the loop, whatever the way', () => {
    for (const ending of agentEndings) {
      for (const promise of ['complete', 'failed', 'none'] as const) {
        const deeds = Array.from({ length: 200 }, (): Deed => ({
          ...good,
          ending,
          promise,
          gatesPass: false,
        }))
        const run = play({ settings: { ...settings, gates: ['false'] }, tasks: [1], deeds })
        expect([ending, run.state.iterations.length < 150, run.state.status]).toEqual([
          ending,
          true,
          expect.not.stringMatching('done'),
        ])
      }
    }
  })

  test('stall: commit-less iterations in a row end the loop with exit 4', () => {
    const idle: Deed = { ...silent, changesTree: false }
    const run = play({ settings: { ...settings, stall_threshold: 2 }, tasks: [1], deeds: [idle, idle] })
    expect(ofType(run, 'complete')[0]).toMatchObject({
      status: 'stalled',
      exit_code: 4,
      // Of a change that the queue parks it is all that is said.
      reason: `No progress: 2 attempts in a row kept nothing; last: ${run.state.iterations.at(-1)?.reason}`,
    })
    expect(run.state.iterations.at(-1)?.reason).toMatch(/\S/)
    expect(run.state.iterations).toHaveLength(2)
  })

  test('precedence: done beats stall and budget; retries beat stall; stall beats iterations', () => {
    const doneFirst = play({
      settings: { ...settings, stall_threshold: 1, max_tokens: 5 },
      tasks: [1],
      deeds: [{ ...good, changesTree: false }],
    })
    expect(doneFirst.state.status).toBe('done')
    const retriesFirst = play({
      settings: { ...settings, max_retries: 0, stall_threshold: 1, max_iterations: 1 },
      tasks: [1],
      deeds: [failed],
    })
    expect(retriesFirst.state.outcome?.stopReason).toBe('retries')
    const stallFirst = play({
      settings: { ...settings, stall_threshold: 1, max_iterations: 1 },
      tasks: [1],
      deeds: [silent],
    })
    expect(stallFirst.state.outcome?.stopReason).toBe('stall')
    const iterations = play({ settings: { ...settings, max_iterations: 1 }, tasks: [1], deeds: [failed] })
    expect(iterations.state.outcome).toMatchObject({ stopReason: 'iterations', exitCode: 3, status: 'stuck' })
  })

  test('a stop is recorded once, uses no retry and exits 143', () => {
    const run = play({ settings, tasks: [1], deeds: [{ ...good, stop: true }] })
    expect(run.state.iterations.map((iteration) => iteration.verdict)).toEqual(['interrupted'])
    expect(run.state.retries).toEqual({})
    expect(ofType(run, 'complete')[0]).toMatchObject({ status: 'stopped', exit_code: 143 })
  })

  test('a finished list spawns no agent', () => {
    const run = play({ settings, tasks: [0, 0], deeds: [] })
    expect(ofType(run, 'iteration.started')).toHaveLength(0)
    expect(run.state.status).toBe('done')
    expect(toStateFile(run.state).current_iteration).toBe(0)
  })

  test('resume after a stuck story starts it with fresh attempts and keeps the history', () => {
    const stuck = play({ settings, tasks: [1], deeds: [failed, failed, failed, failed] }).state
    const resumed = reduce(stuck, event(startedBody(true))).state
    expect(resumed.iterations).toHaveLength(4)
    expect(resumed.retries).toEqual({})
    expect(resumed.startedAt).toBe(stuck.startedAt)
  })

  test('every event of a run is valid by the schema', () => {
    const run = play({
      settings: { ...settings, gates: ['true'] },
      tasks: [2, 1],
      deeds: [failed, { ...good, gatesPass: false }, silent, good],
    })
    for (const each of run.events) expect(bodySchema.safeParse(each).error).toBeUndefined()
  })
})

describe('manual mode', () => {
  const manual = { ...settings, done_criteria: 'manual' as const }

  test('an iteration without a promise keeps its work; without a change it is commit-less', () => {
    const run = play({
      settings: { ...manual, stall_threshold: 2 },
      tasks: [1],
      deeds: [silent, { ...silent, changesTree: false }, { ...silent, changesTree: false }],
    })
    expect(run.state.iterations.map((iteration) => iteration.verdict)).toEqual(['kept', 'none', 'none'])
    expect(run.commands.find((command) => command.do === 'save_checkpoint')?.message).toBe(
      'checkpoint: iteration-1',
    )
    expect(run.state.status).toBe('stalled')
  })

  test('COMPLETE waits for the human: exit 5 where nobody answers, done after their word', () => {
    const run = play({ settings: manual, tasks: [1], deeds: [good] })
    expect(ofType(run, 'complete')[0]).toMatchObject({
      status: 'stopped',
      exit_code: 5,
      stop_reason: 'human',
    })
    const said = reduce(run.state, event({ type: 'human.done' }))
    expect(said.commands).toHaveLength(1)
    expect(said.commands[0]).toMatchObject({
      do: 'announce',
      event: { type: 'complete', status: 'done', exit_code: 0 },
    })
  })

  test('ten iterations by default', () => {
    const run = play({
      settings: { ...manual, stall_threshold: 99 },
      tasks: [1],
      deeds: Array.from({ length: 20 }, () => failed),
    })
    expect(run.state.iterations).toHaveLength(10)
    expect(run.state.outcome?.stopReason).toBe('iterations')
  })
})

function startedBody(resumed: boolean): EventBody {
  return {
    type: 'loop.started',
    run_id: 'r2',
    resumed,
    settings,
    pid: 2,
    worktree: '/w',
    worktree_name: 'w',
    root: '/w',
    tasks_file: 'tasks.md',
    original_branch: 'main',
    branch: 'ralph/demo',
  }
}

function event(body: EventBody): LoopEvent {
  return { v: 1, seq: 99_999, time: '2026-01-01T00:00:01+00:00', change_id: 'demo', ...body }
}

describe('16: claims', () => {
  const gated = { ...settings, gates: ['make'], story_settings: { '1': { gates: ['own'] } } }

  test('each calls for one judgement, with the gates of its story; the verdict is made as without any', () => {
    const claimed = play({ settings: gated, tasks: [2], deeds: [{ ...good, claims: 2 }] })
    const judged = claimed.commands.filter((command) => command.do === 'judge_claim')
    expect(judged).toEqual(
      [1, 2].map((claim) => ({ do: 'judge_claim', n: 1, claim, storyId: '1', commands: ['make', 'own'] })),
    )
    const plain = play({ settings: gated, tasks: [2], deeds: [good] })
    const rest = claimed.commands.filter((command) => command.do !== 'judge_claim')
    expect(rest).toEqual(plain.commands)
    expect(claimed.state.iterations).toEqual(plain.state.iterations)
  })

  test('one that comes when its agent has ended calls for nothing', () => {
    const { state } = play({ settings: gated, tasks: [2], deeds: [good] })
    const late = {
      v: 1,
      seq: 99,
      time: '2026-01-01T00:00:00+00:00',
      change_id: 'demo',
      type: 'claim.made',
      n: 1,
      claim: 1,
      summary: 'done',
    } as const
    expect(reduce(state, late).commands).toEqual([])
  })

  test('the gates that an agent waited for are its own time', () => {
    expect(
      gateTimes([
        { type: 'gate.ended', n: 1, duration_ms: 500, claim: 1 },
        { type: 'gate.ended', n: 1, duration_ms: 70 },
      ]),
    ).toEqual(new Map([[1, 70]]))
  })

  test('B8: the gates that judge what a person has ticked take no time of the attempt before it', () => {
    expect(
      gateTimes([
        { type: 'gate.ended', n: 1, duration_ms: 70 },
        { type: 'iteration.ended', iteration: { n: 1 } },
        { type: 'gate.ended', n: 1, duration_ms: 500 },
      ]),
    ).toEqual(new Map([[1, 70]]))
  })
})
