import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

/** Commits something, says that it is there, and then never ends. */
const hangingAgent = `echo $$ > "$PIDS/agent"; echo work > half.txt; git add half.txt; git commit -qm "half done"; echo working; exec tail -f /dev/null`

/** Pids of this scratch's agents that are alive. */
function alive(at: Scratch): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`PIDS=${at.root}`) && pid !== process.pid
      } catch {
        return false
      }
    })
}

const isWorking = (stdout: string): boolean => stdout.includes('"text":"working')

describe('signals', () => {
  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)(
    'S004-killed-by-signal: %s in mid-iteration is recorded once, with its commits, exit %i',
    async (signal, code) => {
      const at = scratch({ tasks: tasksOf(1) })
      const running = start(at, ['loop', 'demo', '--agent-command', hangingAgent, '--json'], {
        env: { PIDS: at.root },
      })
      await running.seen(isWorking)
      running.child.kill(signal)
      const end = await running.ended
      expect(end.code).toBe(code)
      expect(eventsOf(end).at(-1)).toMatchObject({ type: 'complete', status: 'stopped', exit_code: code })
      const state = at.state()
      expect(stateFileSchema.safeParse(state).success).toBe(true)
      expect(state.status).toBe('stopped')
      expect(state.current).toBeUndefined()
      expect(state.iterations).toHaveLength(1)
      expect(state.iterations[0]).toMatchObject({ n: 1, verdict: 'interrupted', attempt: 1 })
      expect(state.iterations[0]?.ended).not.toBe('')
      expect(state.iterations[0]?.commits).toHaveLength(1)
      expect(alive(at)).toEqual([])
      expect(existsSync(join(at.repo, 'half.txt'))).toBe(false)
      expect(at.git('status', '--porcelain')).toBe('')
    },
  )

  test('R5: under nohup a HUP is ignored, as the user asked', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `kill -HUP $PPID; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'], {
      env: { _: '/usr/bin/nohup' },
    })
    expect(end.code).toBe(0)
    expect(at.state()).toMatchObject({ status: 'done' })
  })

  test('R5: a second signal forces: gone at once, and the next command puts it in order', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const stubborn = `trap "" INT TERM; echo working; while :; do sleep 1; done`
    const running = start(at, ['loop', 'demo', '--agent-command', stubborn, '--json'], {
      env: { PIDS: at.root },
    })
    await running.seen(isWorking)
    running.child.kill('SIGTERM')
    running.child.kill('SIGINT')
    const end = await running.ended
    expect([130, 143]).toContain(end.code)
    expect(end.stderr).toContain('Repair it and continue: ralph resume demo')
    const status = await ralph(at, ['status', '--json'])
    expect(status.code).toBe(0)
    expect(at.state()).toMatchObject({ status: 'stopped' })
    expect(at.state().iterations).toHaveLength(1)
    expect(alive(at)).toEqual([])
  })

  test('R6: kill -9 leaves an orphan; status records the iteration and says stopped, resume ends it and goes on', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const running = start(at, ['loop', 'demo', '--agent-command', hangingAgent, '--json'], {
      env: { PIDS: at.root },
    })
    await running.seen(isWorking)
    running.child.kill('SIGKILL')
    await running.ended
    expect(at.state().status).toBe('running')
    expect(alive(at).length).toBeGreaterThan(0)
    const status = await ralph(at, ['status', '--json'])
    expect(status.code).toBe(0)
    expect(alive(at).length).toBeGreaterThan(0)
    const state = at.state()
    expect(state.status).toBe('stopped')
    expect(state.iterations).toHaveLength(1)
    expect(state.iterations[0]).toMatchObject({ verdict: 'interrupted' })
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect(resumed.code).toBe(0)
    expect(alive(at)).toEqual([])
    expect(at.state().iterations[0]?.commits).toHaveLength(1)
    expect(at.git('status', '--porcelain')).toBe('')
    expect(
      at.state().iterations.map((iteration) => [iteration.n, iteration.verdict, iteration.attempt]),
    ).toEqual([
      [1, 'interrupted', 1],
      [2, 'complete', 1],
    ])
  })

  test.each<[string, (loop: ChildProcess) => void]>([
    ['a signal', (loop) => loop.kill('SIGTERM')],
    [
      'two signals',
      (loop) => {
        loop.kill('SIGTERM')
        loop.kill('SIGTERM')
      },
    ],
    ['kill -9', (loop) => loop.kill('SIGKILL')],
    ['a reader that goes away', (loop) => loop.stdout?.destroy()],
  ])('U3: an iteration that is open when the loop ends is in the state file once: %s', async (_, end) => {
    const at = scratch({ tasks: tasksOf(1) })
    const talks = 'echo working; while :; do sleep 0.05; echo more; done'
    const running = start(at, ['loop', 'demo', '--agent-command', talks, '--json'])
    await running.seen(isWorking)
    end(running.child)
    expect((await running.ended).code).not.toBe(0)
    // A death is recorded by the next command that looks.
    expect((await ralph(at, ['status'])).code).toBe(0)
    const state = at.state()
    expect([state.status, state.current]).toEqual(['stopped', undefined])
    expect(state.iterations).toMatchObject([{ n: 1, story_id: '1', attempt: 1, verdict: 'interrupted' }])
    expect(state.iterations[0]?.ended).toMatch(/^\d{4}-/)
  })

  test('stop asks the loop, waits, and it exits 143; with no loop it says so and exits 0', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const none = await ralph(at, ['stop'])
    expect(none.code).toBe(0)
    const running = start(at, ['loop', 'demo', '--agent-command', hangingAgent, '--json'], {
      env: { PIDS: at.root },
    })
    await running.seen(isWorking)
    const stop = await ralph(at, ['stop'])
    expect(stop.code).toBe(0)
    expect((await running.ended).code).toBe(143)
    expect(at.state().status).toBe('stopped')
    expect(alive(at)).toEqual([])
  })

  test('stop --force kills the loop and leaves nothing of it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const running = start(at, ['loop', 'demo', '--agent-command', hangingAgent, '--json'], {
      env: { PIDS: at.root },
    })
    await running.seen(isWorking)
    const stop = await ralph(at, ['stop', '--force'])
    expect(stop.code).toBe(0)
    expect(stop.stdout).toContain('It was killed: what its attempt left is not cleaned up yet.')
    await running.ended
    expect(at.state().status).toBe('stopped')
    expect(alive(at)).toEqual([])
  })

  test('G26: a second start in the same work tree exits 7 and names the pid', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const running = start(at, ['loop', 'demo', '--agent-command', hangingAgent, '--json'], {
      env: { PIDS: at.root },
    })
    await running.seen(isWorking)
    for (const args of [
      ['loop', 'demo', '--agent', 'demo'],
      ['resume', 'demo', '--agent', 'demo'],
      ['loop', 'demo', '--fresh', '--agent', 'demo'],
    ]) {
      const second = await ralph(at, args)
      expect(second.code).toBe(7)
      expect(second.stderr).toContain(String(running.pid))
    }
    const status = JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as {
      alive: boolean
      status: string
    }
    expect(status).toMatchObject({ alive: true, status: 'running' })
    running.child.kill('SIGTERM')
    await running.ended
  })

  test('a reader that goes away (broken pipe) stops the loop in order', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const chatty = 'while :; do echo working; sleep 0.05; done'
    const running = start(at, ['loop', 'demo', '--agent-command', chatty, '--json'], {
      env: { PIDS: at.root },
    })
    await running.seen(isWorking)
    running.child.stdout?.destroy()
    await running.ended
    expect(at.state()).toMatchObject({ status: 'stopped' })
    expect(at.state().iterations).toHaveLength(1)
    expect(alive(at)).toEqual([])
  })

  test('B10: a reader of the pipe that has left is called that, not a signal; the last lines are on stderr', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const chatty = 'while :; do echo working; sleep 0.05; done'
    const running = start(at, ['loop', 'demo', '--agent-command', chatty], { env: { PIDS: at.root } })
    await running.seen((stdout) => stdout.includes('working'))
    running.child.stdout?.destroy()
    const end = await running.ended
    expect(end.code).toBe(129)
    expect(end.stderr).toContain('Stopping… (the program that read the output has ended)')
    expect(end.stderr).toContain('stopped by a closed pipe: the program that read its output has ended')
    expect(end.stderr).toContain('continue    ralph resume demo')
    expect(end.stderr).not.toContain('SIGHUP')
    const why = (await ralph(at, ['why', 'demo'])).stdout
    expect(why).toContain('stopped by a closed pipe: the program that read its output has ended')
    const status = (await ralph(at, ['status', 'demo'])).stdout
    expect(status).toContain('stopped by  a closed pipe')
  })

  test('U4: 1,000 reads during a run are all valid and have all fields', async () => {
    const at = scratch({ tasks: tasksOf(6) })
    const chatty = `i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); done; ${goodAgent}`
    const running = start(at, ['loop', 'demo', '--agent-command', chatty, '--json'])
    await running.seen((stdout) => stdout.includes('iteration.started'))
    let reads = 0
    let ended = false
    const end = running.ended.then(() => {
      ended = true
    })
    while (reads < 1_000 || !ended) {
      const text = readFileSync(join(at.repo, '.claude', 'loop-state.json'), 'utf8')
      expect(stateFileSchema.safeParse(JSON.parse(text)).error).toBeUndefined()
      reads += 1
      if (reads % 20 === 0) await new Promise((done) => setImmediate(done))
    }
    await end
    expect(at.state().status).toBe('done')
  })
})
