// What a successful story costs in processes: each takes milliseconds, and they creep back one by one.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'

/** Fewer is welcome: then the new number goes here. */
const most = { git: 9, others: 1 }

test('a successful story starts no more processes than it did', async () => {
  const at = scratch({ tasks: tasksOf(3) })
  const record = join(at.root, 'started')
  const env = { NODE_OPTIONS: `--require=${at.script('record.cjs', recorder(record))}` }
  const { code } = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'], { env })
  expect(code).toBe(0)

  const started = readFileSync(record, 'utf8').trimEnd().split('\n')
  const agents = started.flatMap((command, index) => (command.includes(goodAgent) ? [index] : []))
  expect(agents).toHaveLength(3)
  // The first story also begins the loop, the last one also ends it.
  const between = started
    .slice((agents[1] ?? 0) + 1, agents[2])
    .map((command) => command.replaceAll(/ (?:--git-dir=|--work-tree=|-c )\S+/g, ''))
  const git = between.filter((command) => command.startsWith('git '))
  const others = between.filter((command) => !git.includes(command))
  // Nothing seen would mean nothing proved.
  expect(git.length).toBeGreaterThan(0)
  expect(git.length, `of git:\n${git.join('\n')}\n`).toBeLessThanOrEqual(most.git)
  expect(others.length, `others:\n${others.join('\n')}\n`).toBeLessThanOrEqual(most.others)
})

/** Writes down every process that the program starts, whichever way. */
function recorder(record: string): string {
  return `
const { appendFileSync } = require('node:fs')
const child = require('node:child_process')
const started = (words) => appendFileSync(${JSON.stringify(record)}, words.flat().join(' ').replaceAll('\\n', ' ') + '\\n')
const { spawn } = child.ChildProcess.prototype
child.ChildProcess.prototype.spawn = function (options) {
  started([options.file, (options.args ?? []).slice(1)])
  return spawn.call(this, options)
}
for (const name of ['spawnSync', 'execFileSync', 'execSync']) {
  const real = child[name]
  child[name] = (file, ...more) => {
    started([file, Array.isArray(more[0]) ? more[0] : []])
    return real(file, ...more)
  }
}
require('node:module').syncBuiltinESMExports()
`
}
