// The session files of Gemini CLI, as version 0.61.0 wrote them.
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { measureUsage } from '../../../src/adapters/usage/measure.ts'
import type { MeasuredUsage } from '../../../src/ports.ts'
import { clockAt, sandbox, turnStartMs } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'

let box: Sandbox
beforeEach(async () => {
  box = await sandbox()
})
afterEach(() => box.remove())

test('each answer once, although the file tells of it twice; thoughts are output, the cache is no input', async () => {
  expect(await turn(box.worktree)).toMatchObject({
    input_tokens: 2400,
    output_tokens: 150,
    cache_read_tokens: 600,
    source: 'sessions',
    cost_usd: expect.any(Number),
  })
})

test('a project of the same name in another place is not counted', async () => {
  expect(await turn(`/elsewhere${box.worktree}`)).toMatchObject({ input_tokens: 0, estimated: true })
})

async function turn(projectRoot: string): Promise<MeasuredUsage> {
  const measure = measureUsage({
    worktree: box.worktree,
    env: box.env,
    clock: clockAt(turnStartMs),
    loopStarted: '2026-02-09T08:30:00+00:00',
    source: 'auto',
  })
  await measure.before('gemini')
  const project = join(box.home, '.gemini', 'tmp', 'my-work-tree')
  await box.write(join(project, '.project_root'), projectRoot)
  await box.place(
    'recorded/gemini-0.61.0.jsonl',
    join(project, 'chats', 'session-2026-11-16T01-57-47ee1115.jsonl'),
  )
  return measure.after('gemini', undefined, '47ee1115-6b33-4a9c-bfa6-25c89881eab1')
}
