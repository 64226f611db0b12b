// `--json` into a real pipe whose reader stops reading: the agent waits, memory does not grow, and nothing is lost.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { eventsOf, program, scratch, tasksOf, type Scratch } from './harness.ts'
import { install } from './usage-kit.ts'

const calls = 40_000

test('a reader of --json that stops reading stops the agent, and gets every event when it goes on', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const [flood, finished] = [join(at.root, 'flood.ndjson'), join(at.root, 'finished')]
  const call = {
    type: 'tool_use',
    id: 't',
    name: 'Write',
    input: { file_path: 'a', content: 'x'.repeat(500) },
  }
  const line = (content: object): string =>
    JSON.stringify({ type: 'assistant', message: { id: 'm', content: [content] }, parent_tool_use_id: null })
  writeFileSync(flood, `${line(call)}\n`.repeat(calls))
  const promise = line({ type: 'text', text: '<promise>COMPLETE</promise>' })
  const over = JSON.stringify({ type: 'result', subtype: 'success', is_error: false, result: 'Done.' })
  install(
    at,
    'claude',
    `#!/bin/sh\ncat > /dev/null\necho x >> work.txt\ncat '${flood}'\n: > '${finished}'\nprintf '%s\\n' '${promise}' '${over}'\n`,
  )
  const child = spawn(process.execPath, [program, 'loop', 'demo', '--agent', 'claude', '--json'], {
    cwd: at.repo,
    env: at.env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  // Nobody reads. The agent is stuck when nothing of what it says arrives any more.
  let [heard, unchanged] = [-1, 0]
  while (unchanged < 25 && !existsSync(finished)) {
    await delay(20)
    const now = transcribed(at)
    unchanged = now === heard && now > 0 ? unchanged + 1 : 0
    heard = now
  }
  expect(existsSync(finished)).toBe(false)
  expect(heard).toBeLessThan(statSync(flood).size / 2)
  let stdout = ''
  for await (const chunk of child.stdout) stdout += String(chunk)
  const code = await ended
  const events = eventsOf({ code, signal: null, stdout, stderr: '' })
  expect(code).toBe(0)
  expect(events.filter(({ type }) => type === 'agent.tool')).toHaveLength(calls)
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
  expect(events.at(-1)).toMatchObject({ type: 'complete', status: 'done' })
})

function transcribed(at: Scratch): number {
  const folder = join(at.repo, '.git/ralph/changes/demo/transcripts')
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}
