import { describe, expect, test } from 'vitest'
import { beginning } from '../../src/core/cursor.ts'
import { RalphError } from '../../src/core/error.ts'
import type { AgentEnded, EventBody, LoopEvent } from '../../src/core/event.ts'
import { initialState } from '../../src/core/state.ts'
import type { Plan } from '../../src/core/story.ts'
import { createLoop, LoopBug } from '../../src/engine/run.ts'
import type { Loop, Ports as EnginePorts } from '../../src/engine/run.ts'
import { openStream } from '../../src/engine/stream.ts'
import type { Reader } from '../../src/engine/stream.ts'
import { noLogins } from '../../src/adapters/files/logins.ts'
import type { Journal, ClaimAnswer } from '../../src/ports.ts'
import { settings } from '../core/world.ts'

const ended: AgentEnded = { ending: 'finished', promise: { kind: 'complete' }, last_words: '', survivors: [] }

type Ports = EnginePorts & { readonly journal: Journal }

function open(ports: Ports, readers: readonly Reader[] = []): Loop {
  return createLoop(
    ports,
    openStream(ports, { state: initialState('demo'), seq: 0, cursor: beginning }),
    readers,
  )
}

/** Ports of memory: one story, an agent that completes it; `log` is the order of things. */
function world(overrides: Partial<Ports> = {}): { ports: Ports; log: string[]; events: LoopEvent[] } {
  const log: string[] = []
  const events: LoopEvent[] = []
  let done = false
  const plan = (): Plan => ({
    stories: [
      {
        id: '1',
        title: 'One',
        intro: '',
        tasks: [
          {
            id: '1.1',
            text: 'x',
            state: done ? 'done' : 'open',
            line: 1,
            file: 'tasks.md',
            depth: 0,
            body: '',
            subheading: '',
          },
        ],
      },
    ],
    tasksDone: done ? 1 : 0,
    tasksTotal: 1,
    lints: [],
    notes: [],
  })
  const did = (what: string): void => void log.push(what)
  const ports: Ports = {
    spec: {
      read: () => Promise.resolve(plan()),
      prompt: () => Promise.resolve('prompt'),
      guard: () => Promise.resolve(did('guard')),
      judge: () => Promise.resolve({ putBack: [], lost: undefined, ticked: 0, stillOpen: 1 }),
      added: () => Promise.resolve(() => Promise.resolve([])),
      watch: () => Promise.resolve(() => Promise.resolve({ putBack: [], lost: undefined })),
      putBack: () => {
        did('putBack')
        return Promise.resolve([])
      },
      learn: () => Promise.resolve(),
      tick: () => {
        done = true
        return Promise.resolve(1)
      },
    },
    checkpoints: {
      preflight: () =>
        Promise.resolve({ worktree: '/w', originalBranch: 'main', branch: 'ralph/demo', warnings: [] }),
      start: () => Promise.resolve({ commit: 'c0' }),
      ensure: () => Promise.resolve({ commit: 'c0' }),
      watch: () => Promise.resolve({}),
      keep: (n) =>
        Promise.resolve({
          ref: `refs/${n}`,
          commit: 'a',
          commits: [],
          changed: true,
          historyRewritten: false,
          warnings: [],
          notes: [],
          tree: 't1',
          refused: undefined,
          isElsewhere: false,
          gone: [],
        }),
      changed: () => Promise.resolve([]),
      look: (since) => Promise.resolve({ tree: since, stirred: [], lost: undefined }),
      without: () => Promise.resolve(undefined),
      made: () => Promise.resolve(() => Promise.resolve([])),
      save: () => Promise.resolve({ commit: 'c1', changed: true }),
      isAsLeft: () => Promise.resolve(true),
      restore: () => {
        did('restore')
        return Promise.resolve({ commit: 'c0', stays: [] })
      },
      finish: () => Promise.resolve({ message: 'kept', userPaths: [], loopPaths: [] }),
      recover: () => Promise.resolve({}),
    },
    agent: {
      work: () => {
        did('agent')
        return Promise.resolve(ended)
      },
    },
    gates: { check: () => Promise.resolve({ outcome: 'passed', outputTail: '', durationMs: 1 }) },
    usage: {
      before: () => Promise.resolve(),
      after: () =>
        Promise.resolve({
          input_tokens: 1,
          output_tokens: 2,
          cache_read_tokens: 0,
          cache_creation_tokens: 0,
          estimated: false,
          source: 'agent',
        }),
    },
    logins: noLogins,
    journal: {
      append: async (event) => {
        log.push(`told ${event.type}`)
        await new Promise((next) => setImmediate(next))
        log.push(`durable ${event.type}`)
        events.push(event)
      },
    },
    clock: {
      now: () => 1,
      monotonic: () => 1,
      stamp: () => '2026-01-01T00:00:00+00:00',
      until: () => Promise.resolve(),
      after: () => () => undefined,
    },
    human: { choose: () => Promise.resolve('keep'), isDone: () => Promise.resolve('later') },
    wrapUp: () => Promise.resolve({ warnings: [] }),
    mode: 'start',
    transcript: (n) => `${n}.log`,
    gateLog: (n) => `${n}.gates.log`,
    explain: (error) => Promise.resolve(error),
    ...overrides,
  }
  return { ports, log, events }
}

/** Every call of a port that does something is in the log, too. */
function everyCall(ports: Ports, log: string[]): Ports {
  const logged = <T extends object>(name: string, port: T): T =>
    new Proxy(port, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          log.push(`${name}.${String(key)}`)
          return Reflect.apply(value, target, args)
        }
      },
    })
  return {
    ...ports,
    spec: logged('spec', ports.spec),
    checkpoints: logged('checkpoints', ports.checkpoints),
    agent: logged('agent', ports.agent),
    gates: logged('gates', ports.gates),
    usage: logged('usage', ports.usage),
  }
}

const started: EventBody = {
  type: 'loop.started',
  run_id: 'r',
  resumed: false,
  settings,
  pid: 1,
  worktree: '/w',
  worktree_name: 'w',
  root: '/w',
  tasks_file: 'tasks.md',
  original_branch: 'main',
  branch: 'ralph/demo',
}

describe('engine', () => {
  test('each event is durable before the next command runs', async () => {
    const { ports, log, events } = world()
    const loop = open(everyCall(ports, log))
    await loop.tell(started)
    const state = await loop.run()
    expect(state.status).toBe('done')
    const waiting = new Set<string>()
    for (const line of log) {
      const [word = '', type = ''] = line.split(' ')
      if (word === 'told') waiting.add(type)
      else if (word === 'durable') waiting.delete(type)
      else expect([line, [...waiting]]).toEqual([line, []])
    }
    expect(log.filter((line) => line.startsWith('told '))).toHaveLength(events.length)
    for (const call of ['checkpoints.ensure', 'agent.work', 'checkpoints.keep', 'checkpoints.save'])
      expect(log).toContain(call)
    expect(log.indexOf('durable iteration.started')).toBeLessThan(log.indexOf('agent.work'))
    expect(log.indexOf('spec.guard')).toBeLessThan(log.indexOf('durable iteration.started'))
    expect(log.at(-1)).toBe('durable complete')
  })

  test('a port that fails in a way the user can mend ends the loop with its exit code, the iteration recorded, the tree as it is', async () => {
    const { ports, log, events } = world()
    const failing: Ports = {
      ...ports,
      checkpoints: {
        ...ports.checkpoints,
        save: () =>
          Promise.reject(
            new RalphError('checkpoint_failed', 'disk full', { hint: 'make room', exitCode: 1 }),
          ),
      },
    }
    const loop = open(failing)
    await loop.tell(started)
    const state = await loop.run()
    expect(state).toMatchObject({ status: 'stopped', outcome: { exitCode: 1, stopReason: 'error' } })
    expect(state.iterations.map((iteration) => iteration.verdict)).toEqual(['error'])
    expect(log).not.toContain('restore')
    expect(events.filter((event) => event.type === 'complete')).toHaveLength(1)
  })

  test('U1: a plan that cannot be read is exit 2 before anything ran, and 1 after', async () => {
    const lost = (): Promise<never> =>
      Promise.reject(new RalphError('spec_unreadable', 'it is gone', { hint: 'bring it back', exitCode: 2 }))
    const exitCodeWith = async (broken: Partial<Ports['spec']>): Promise<number | undefined> => {
      const { ports } = world()
      const loop = open({ ...ports, spec: { ...ports.spec, ...broken } })
      await loop.tell(started)
      return (await loop.run()).outcome?.exitCode
    }
    expect(await exitCodeWith({ read: lost })).toBe(2)
    expect(await exitCodeWith({ tick: lost })).toBe(1)
  })

  test('a bug in a port is thrown, but only after complete was told', async () => {
    const { ports, events } = world()
    const buggy: Ports = { ...ports, agent: { work: () => Promise.reject(new TypeError('a bug')) } }
    const loop = open(buggy)
    await loop.tell(started)
    await expect(loop.run()).rejects.toThrow(LoopBug)
    expect(events.at(-1)).toMatchObject({ type: 'complete', exit_code: 1, status: 'stopped' })
    expect(loop.state.iterations).toHaveLength(1)
  })

  test('a gate that cannot be run stops the loop: it neither passed nor failed', async () => {
    const { ports } = world({
      gates: {
        check: () => Promise.resolve({ outcome: 'could_not_run', outputTail: 'no sh', durationMs: 0 }),
      },
    })
    const loop = open(ports)
    await loop.tell({ ...started, settings: { ...settings, gates: ['x'] } })
    const state = await loop.run()
    expect(state).toMatchObject({ status: 'stopped', outcome: { exitCode: 1 } })
    expect(state.stories[0]?.status).toBe('open')
  })

  test('16: a claim that cannot be judged is refused, and ends nothing: the verdict takes its own look', async () => {
    const { ports, events } = world()
    let looks = 0
    const judge: Ports['spec']['judge'] = async (storyId) => {
      looks += 1
      if (looks === 1) throw new RalphError('disk', 'it vanished', { hint: '' })
      return ports.spec.judge(storyId)
    }
    const answers: ClaimAnswer[] = []
    const loop = open({
      ...ports,
      spec: { ...ports.spec, judge },
      agent: {
        takesClaims: () => true,
        async work({ claims }) {
          const { signal } = new AbortController()
          if (claims !== undefined) answers.push(await claims.complete('done', signal))
          return ended
        },
      },
    })
    await loop.tell({ ...started, settings: { ...settings, claims: 5 } })
    const state = await loop.run()
    expect(state.status).toBe('done')
    expect(answers[0]).toMatchObject({ isAccepted: false, claim: 1 })
    expect(answers[0]?.text).toContain('it vanished')
    expect(events.find((event) => event.type === 'claim.judged')).toMatchObject({ outcome: 'refused' })
  })

  test('a stop during the agent’s turn aborts it, restores, and is recorded once', async () => {
    const { ports, log } = world()
    const hanging: Ports = {
      ...ports,
      agent: {
        work: (_task, stop) =>
          new Promise((done) => {
            stop.addEventListener('abort', () =>
              done({ ...ended, ending: 'stopped', promise: { kind: 'none' } }),
            )
            loop.stop('SIGTERM')
            loop.stop('SIGTERM')
          }),
      },
    }
    const loop = open(hanging)
    await loop.tell(started)
    const state = await loop.run()
    expect(state).toMatchObject({ status: 'stopped', outcome: { exitCode: 143 } })
    expect(state.iterations).toHaveLength(1)
    expect(log).toContain('restore')
    expect(log.indexOf('durable stop.requested')).toBeGreaterThan(-1)
  })

  test('W17: a clock set back by an hour makes no iteration end before it began, and durations are monotonic', async () => {
    let wall = 0
    let ticks = 0
    const clock: Ports['clock'] = {
      now: () => 1,
      monotonic: () => (ticks += 500),
      // Each look is an hour before the last one.
      stamp: () => `2026-01-01T${String(20 - (wall += 1)).padStart(2, '0')}:00:00+00:00`,
      until: () => Promise.resolve(),
      after: () => () => undefined,
    }
    const hours = { ...clock, stamp: () => (wall >= 20 ? '2026-01-01T00:00:00+00:00' : clock.stamp()) }
    const { ports } = world({ clock: hours })
    const loop = open(ports)
    await loop.tell(started)
    const state = await loop.run()
    const [iteration] = state.iterations
    expect(state.status).toBe('done')
    expect(iteration?.ended).toBe(iteration?.started)
    expect(iteration?.duration_ms).toBe(500)
  })

  /** A journal that takes everything up to the event, and from then on nothing. */
  function fullFrom(type: LoopEvent['type'], events: LoopEvent[]): Ports['journal'] {
    let isFull = false
    return {
      append: async (event) => {
        await Promise.resolve()
        isFull ||= event.type === type
        if (isFull) throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
        events.push(event)
      },
    }
  }

  test.each([
    ['loop.started', 'ralph loop demo', []],
    ['plan.read', 'ralph resume demo', []],
    ['iteration.started', 'ralph resume demo', [1]],
    ['agent.ended', 'ralph resume demo', [1]],
    ['iteration.ended', 'ralph resume demo', [1]],
    ['loop.finished', 'ralph resume demo', [1]],
  ] as const)(
    'R14: a journal that is full from %s on is told once on the stream, and complete ends it',
    async (type, next, numbers) => {
      const { ports, log } = world()
      const events: LoopEvent[] = []
      const heard: LoopEvent[] = []
      const loop = open({ ...ports, journal: fullFrom(type, events) }, [(event) => heard.push(event)])
      await loop.tell(started).catch(() => undefined)
      await expect(loop.run()).rejects.toMatchObject({ code: 'disk', exitCode: 1 })
      const errors = heard.filter((event) => event.type === 'error')
      expect(errors).toHaveLength(1)
      expect(errors[0]).toMatchObject({ code: 'disk', hint: expect.stringContaining(`type: ${next}`) })
      expect(heard.at(-1)).toMatchObject({ type: 'complete', status: 'stopped', exit_code: 1 })
      expect(heard.filter((event) => event.type === 'complete')).toHaveLength(1)
      expect(loop.state.iterations.map(({ n }) => n)).toEqual(numbers)
      // No agent without a record that it runs.
      expect(log.includes('agent')).toBe(events.some((event) => event.type === 'iteration.started'))
    },
  )

  test('R14: a journal that fails ends the agent', async () => {
    const { ports, events } = world()
    const hanging: Ports['agent'] = {
      work: (_task, stop, tell) =>
        new Promise((done) => {
          stop.addEventListener('abort', () =>
            done({ ...ended, ending: 'stopped', promise: { kind: 'none' } }),
          )
          tell({ type: 'session', sessionId: 's' })
        }),
    }
    const loop = open({ ...ports, agent: hanging, journal: fullFrom('agent.session', events) })
    await loop.tell(started)
    await expect(loop.run()).rejects.toMatchObject({ code: 'disk' })
    expect(loop.state).toMatchObject({ phase: 'ended', iterations: [{ n: 1, verdict: 'error' }] })
  })

  test('R14: faults that come by the thousand are one error', async () => {
    const { ports, events } = world()
    const storm: Ports['agent'] = {
      work: () => {
        for (let n = 0; n < 1000; n += 1) loop.fail(new Error(`fault ${n}`))
        return Promise.resolve(ended)
      },
    }
    const loop = open({ ...ports, agent: storm })
    await loop.tell(started)
    const state = await loop.run()
    expect(state).toMatchObject({ status: 'stopped', outcome: { exitCode: 1 } })
    expect(events.filter((event) => event.type === 'error')).toHaveLength(1)
    expect(state.iterations).toHaveLength(1)
  })

  test('R14: a full disk that a port meets is no bug', async () => {
    const { ports, events } = world()
    const spec: Ports['spec'] = {
      ...ports.spec,
      guard: () => Promise.reject(Object.assign(new Error('ENOSPC, write'), { code: 'ENOSPC' })),
    }
    const loop = open({ ...ports, spec })
    await loop.tell(started)
    expect(await loop.run()).toMatchObject({ outcome: { exitCode: 1, stopReason: 'error' } })
    expect(events.find((event) => event.type === 'error')).toMatchObject({
      code: 'disk',
      message: 'The disk is full (ENOSPC, write).',
    })
  })
})
