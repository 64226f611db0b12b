// The built program on the newest Node that people have, which knows other flags than the oldest one here.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
// For what it waits for: this Node is installed beside the real agents.
import '../model-stub/real-agents.ts'
import { goodAgent, program, scratch, tasksOf } from './harness.ts'

const cache = resolve(import.meta.dirname, '../../.cache/agents')
const newer = (existsSync(cache) ? readdirSync(cache) : [])
  .filter((folder) => folder.startsWith('node-'))
  .map((folder) => join(cache, folder, 'node_modules', '.bin', 'node'))
  .find((file) => existsSync(file))

test.skipIf(newer === undefined)(
  'on a newer Node a loop says nothing that it does not say on this one (needs scripts/install-agents.mjs)',
  () => {
    const at = scratch({ tasks: tasksOf(1) })
    const run = (...args: string[]): string => {
      const { status, stdout, stderr } = spawnSync(newer ?? '', [program, ...args], {
        cwd: at.repo,
        env: at.env,
        encoding: 'utf8',
      })
      expect([args, status, stderr]).toEqual([args, 0, ''])
      return stdout
    }
    const events = run('loop', 'demo', '--json', '--agent-command', goodAgent).trim().split('\n')
    expect(events.map((line) => (JSON.parse(line) as { type: string }).type)).toEqual(
      expect.arrayContaining(['loop.started', 'checkpoint.saved', 'complete']),
    )
    expect(run('status')).toContain('done')
    expect(run('list')).toContain('demo')
    expect(run('why')).toContain('done')
    expect(run('finish', 'demo', '--cleanup')).toContain('main')
    expect(at.read('story-1.txt')).toBe('work of 1\n')
  },
)
