// Iterations that an error of ralph's own cut off: their boxes count for nothing, and what they earned is not lost (G11, P9).
import { describe, expect, test } from 'vitest'
import { eventsOf, ralph, scratch, tasksOf, type Finished, type Scratch } from './harness.ts'

const tasks = 'openspec/changes/demo/tasks.md'
/** A ref below the one that ralph has to write: git refuses, until somebody takes it away. */
const block = (ref: string): string =>
  `{ git update-ref -d refs/ralph/demo/${ref}; git update-ref refs/ralph/demo/${ref}/in-the-way HEAD; }`
const unblock = (at: Scratch, ref: string): string =>
  at.git('update-ref', '-d', `refs/ralph/demo/${ref}/in-the-way`)

describe.each(['branch', 'stash'])('--checkpoint %s', (checkpoint) => {
  const liar = `echo bad > mine.txt; sed -i 's/\\[ \\]/[x]/' ${tasks}; ${block('attempts/1')}; echo "<promise>FAILED: I broke it</promise>"`

  function loop(at: Scratch, agent: string, gate: string): Promise<Finished> {
    const flags = ['--checkpoint', checkpoint, '--verify', gate, '--max-retries', '0', '--json']
    return ralph(at, ['loop', 'demo', '--agent-command', agent, ...flags])
  }

  test('G11: a failed attempt that could not be kept is never done, and the user’s file is back', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('mine.txt', 'hours of work\n')
    const cut = await loop(at, liar, 'false')
    expect(cut.code).toBe(1)
    expect(at.state()).toMatchObject({ status: 'stopped' })
    expect(eventsOf(cut).at(-1)).toMatchObject({
      type: 'complete',
      totals: { stories_done: 0, tasks_done: 0 },
    })

    unblock(at, 'attempts/1')
    const again = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      'echo "<promise>FAILED: no</promise>"',
      '--json',
    ])
    expect(again.code).toBe(3)
    expect(at.read('mine.txt')).toBe('hours of work\n')
    expect(at.read(tasks)).toBe(tasksOf(2))
    expect(at.git('show', 'refs/ralph/demo/attempts/1:mine.txt')).toBe('bad')
    expect(again.stderr + again.stdout).toContain('refs/ralph/demo/attempts/1')
  })

  test('G11: a cleanup right after it brings the user’s own work back', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('mine.txt', 'hours of work\n')
    expect((await loop(at, liar, 'false')).code).toBe(1)
    unblock(at, 'attempts/1')
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(at.git('symbolic-ref', '--short', 'HEAD')).toBe('main')
    expect([at.read('mine.txt'), at.read(tasks)]).toEqual(['hours of work\n', tasksOf(2)])
  })

  test('U3: a story whose checkpoint failed after its gates had passed is saved by the resume, not run again', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = 'echo "$RALPH_STORY" >> ran.txt; echo "<promise>COMPLETE</promise>"'
    const gate = `[ "$RALPH_STORY" = 2 ] || ${block('checkpoint')}`
    expect((await loop(at, agent, gate)).code).toBe(1)
    expect(at.state()).toMatchObject({ status: 'stopped' })

    unblock(at, 'checkpoint')
    const again = await ralph(at, ['resume', 'demo', '--json'])
    expect(again.code).toBe(0)
    expect(at.read('ran.txt')).toBe('1\n2\n')
    expect(eventsOf(again).at(-1)).toMatchObject({ type: 'complete', totals: { tasks_done: 4 } })
    if (checkpoint === 'stash') return
    const messages = at.git('log', '--format=%s', 'ralph/demo').split('\n')
    expect(messages).toEqual(['checkpoint: 2', 'checkpoint: 1', 'initial state', 'start'])
  })
})
