// What is left of a loop for colleagues to see: its commits, one commit, or commits with the names of the stories.
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'

describe('commits', () => {
  test('F37: a checkpoint tells its story, its tasks and its agent, in the name of the user', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(at.git('log', '-1', '--format=%an <%ae>%n%cn%n%B').trim()).toBe(
      [
        'User <user@example.invalid>',
        'ralph',
        'checkpoint: 1',
        '',
        'Story 1',
        '',
        '- [x] 1.1 first',
        '- [x] 1.2 second',
        '',
        'Ralph-Change: demo',
        'Ralph-Story: 1',
        'Ralph-Agent: command',
      ].join('\n'),
    )
    expect(at.git('log', '-1', '--format=%B', 'HEAD~1').trim()).toBe(
      'initial state\n\nempty\n\nRalph-Change: demo',
    )
  })
})
