// What ralph calls saved is on the disk: git itself reports its syncs.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'

interface Traced {
  readonly sid: string
  readonly event: string
  readonly argv?: readonly string[]
  readonly key?: string
  readonly value?: string
}

test.each(['branch', 'stash'])(
  'O18: every commit and every ref of a checkpoint is synced before the journal says saved (%s)',
  async (strategy) => {
    const at = scratch({ tasks: tasksOf(2) })
    const trace = join(at.root, 'trace.json')
    const real = execFileSync('sh', ['-c', 'command -v git'], { env: at.env, encoding: 'utf8' }).trim()
    mkdirSync(join(at.root, 'bin'))
    at.script('bin/git', `#!/bin/sh\nGIT_TRACE2_EVENT='${trace}' exec '${real}' "$@"\n`)
    const env = { PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}` }
    const args = ['--agent-command', goodAgent, '--checkpoint', strategy, '--json']
    expect((await ralph(at, ['loop', 'demo', ...args], { env })).code).toBe(0)

    const events = readFileSync(trace, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Traced)
    const flushed = new Set(
      events
        .filter(({ key, value }) => key === 'fsync/hardware-flush' && value !== '0')
        .map(({ sid }) => sid),
    )
    const runs = (command: string): readonly Traced[] =>
      events.filter(({ event, argv }) => event === 'start' && argv?.includes(command) === true)
    const commits = runs('commit-tree')
    expect(commits.length).toBeGreaterThan(2)
    expect(commits.filter(({ sid }) => !flushed.has(sid)).map(({ argv }) => argv)).toEqual([])
    // A ref that is there already is not written: of the three checkpoints and two attempts each was.
    expect(runs('update-ref').filter(({ sid }) => flushed.has(sid)).length).toBeGreaterThanOrEqual(5)
  },
)
