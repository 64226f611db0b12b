// What the tests of the merge queue share: a project of several changes, an agent with habits, and pictures of what must not change.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { QueueEvent } from '../../src/core/queue-event.ts'
import type { QueueReport } from '../../src/ui/app.ts'
import { expect } from 'vitest'
import { keep, ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'

/** Writes a file of its own for each story; a change's habits are in a file beside the repository. */
const agent = `#!/bin/sh
prompt=$(cat)
habit="$HOME/habits/$RALPH_CHANGE.sh"
[ -f "$habit" ] && . "$habit"
mkdir -p work
echo "$RALPH_STORY" >> "work/$RALPH_CHANGE.txt"
echo '<promise>COMPLETE</promise>'
`

type Project = Scratch & { readonly args: readonly string[] }

/** The demo change of the scratch repository is not among them. */
export function project(changes: Readonly<Record<string, string>>, stories = 3): Project {
  const at = scratch()
  at.git('rm', '-rq', 'openspec/changes/demo')
  for (const name of Object.keys(changes)) {
    at.write(`openspec/changes/${name}/tasks.md`, tasksOf(stories))
    at.write(`openspec/changes/${name}/proposal.md`, `# The change ${name}\n`)
  }
  at.write('shared.txt', 'as it was\n')
  at.write('gate.sh', 'test ! -f one.txt || test ! -f two.txt\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'plans')
  for (const [name, habit] of Object.entries(changes)) at.write(`../home/habits/${name}.sh`, habit)
  const command = at.script('agent.sh', agent)
  return { ...at, args: ['--agent-command', command, '--verify', 'sh gate.sh', '--max-retries', '0'] }
}

/** Of the worker, not of this module: vitest loads that anew for each file. */
const worker = globalThis as { ranUp?: Map<string, () => Project & { readonly up: Finished }> }

/** Such a project of one story each in which `ralph up` has run with these words, and what it said: run once in a worker, then copied. */
export async function ranUp(
  changes: Readonly<Record<string, string>>,
  words: readonly string[],
): Promise<Project & { readonly up: Finished }> {
  const key = JSON.stringify([changes, words])
  const again = worker.ranUp?.get(key)
  if (again !== undefined) return again()
  const at = project(changes, 1)
  const up = await ralph(at, ['up', ...words, ...at.args])
  expect([up.code, up.stderr]).toEqual([0, ''])
  const made = { ...at, up }
  ;(worker.ranUp ??= new Map()).set(key, keep(made))
  return made
}

export function events({ stdout }: Finished): QueueEvent[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as QueueEvent)
}

export async function report(at: Scratch): Promise<QueueReport> {
  return JSON.parse((await ralph(at, ['queue', '--json'])).stdout) as QueueReport
}

/** HEAD, index and every file of the checkout, byte by byte. */
export function picture(at: Scratch): string {
  const sum = createHash('sha256')
  const walk = (folder: string): void => {
    for (const name of readdirSync(folder).toSorted()) {
      if (name === '.git' || name === '.claude') continue
      const path = join(folder, name)
      if (statSync(path).isDirectory()) walk(path)
      else sum.update(path).update(readFileSync(path))
    }
  }
  walk(at.repo)
  sum.update(readFileSync(join(at.repo, '.git', 'HEAD'))).update(at.git('rev-parse', 'HEAD'))
  return sum.update(at.git('ls-files', '--stage', '--debug')).digest('hex')
}

export const landedTree = (at: Scratch): string =>
  at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/main')
