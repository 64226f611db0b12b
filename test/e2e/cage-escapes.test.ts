// Ways out of the cage that an attacker with the packed program has found, each as that attacker would use it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
const skipped = ` (needs bubblewrap${hasBwrap ? '' : ', which is not installed or may make no namespaces here'})`

const caged = ['--sandbox', 'strict', '--agent-command']

describe.skipIf(!hasBwrap)(`programs that an agent leaves in the work tree${skipped}`, () => {
  /** An ignored `openspec` and a `git`, which tell that they ran. */
  function planting(at: Scratch): { readonly agent: string; readonly ran: string } {
    at.write('.gitignore', 'node_modules/\n.venv/\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignored')
    const ran = join(at.root, 'home/ran')
    const plant = (path: string): string =>
      `mkdir -p $(dirname ${path}); printf '#!/bin/sh\\necho "$0 $*" >> ${ran}\\necho 1.13.2\\n' > ${path}; chmod +x ${path}`
    const agent = `${plant('node_modules/.bin/openspec')}; ${plant('.venv/bin/git')}; ${goodAgent}`
    return { agent, ran }
  }

  test('are never run outside of it: neither an openspec of the project, nor a git on a PATH that leads there', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent, ran } = planting(at)
    const env = { PATH: `${join(at.repo, '.venv/bin')}:${at.env['PATH'] ?? ''}` }
    // The first one has no earlier run to learn from.
    const first = await ralph(at, ['loop', 'demo', ...caged, agent], { env })
    expect(first.code).toBe(0)
    expect(existsSync(join(at.repo, 'node_modules/.bin/openspec'))).toBe(true)
    for (const words of [
      ['loop', 'demo', '--dry-run', '--agent-command', goodAgent],
      ['doctor'],
      ['status'],
      ['loop', 'demo', '--fresh', '--archive', ...caged, goodAgent],
      ['loop', 'demo', '--fresh', '--sandbox', 'off', '--archive', '--agent-command', goodAgent],
    ])
      await ralph(at, words, { env })
    expect(existsSync(ran) ? readFileSync(ran, 'utf8') : '').toBe('')
    const doctor = await ralph(at, ['doctor'], { env })
    expect(doctor.stdout).toContain('a sandboxed agent may have changed it')
  })
})

test('an openspec of the project is used where no agent was ever in a cage', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  mkdirSync(join(at.repo, 'node_modules/.bin'), { recursive: true })
  const real = resolve(import.meta.dirname, '../../node_modules/.bin/openspec')
  symlinkSync(real, join(at.repo, 'node_modules/.bin/openspec'))
  const doctor = await ralph(at, ['doctor'])
  expect(doctor.stdout).toContain('node_modules/.bin/openspec')
})
