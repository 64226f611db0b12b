// What a successful story costs in processes, files and syncs: each takes its time, and they creep back one by one.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ralph, scratch, tasksOf } from './harness.ts'

/** Fewer is welcome: then the new number goes here. `forks`: of ralph itself, which is large. */
const most = { git: 2, others: 0, forks: 1, made: 26, syncs: 36 }

/** What was started, by lines, in a loop over three stories: an agent tells of itself. */
async function recorded(script: string): Promise<readonly string[]> {
  const at = scratch({ tasks: tasksOf(3) })
  const record = join(at.root, 'started')
  mkdirSync(join(at.root, 'bin'))
  for (const name of ['git', 'mkfifo']) {
    const real = execFileSync('sh', ['-c', `command -v ${name}`], { env: at.env, encoding: 'utf8' }).trim()
    at.script(
      `bin/${name}`,
      `#!/bin/sh\necho "${name} $*" | tr '\\n' ' ' >> '${record}'\necho >> '${record}'\nexec '${real}' "$@"\n`,
    )
  }
  const env = {
    PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}`,
    NODE_OPTIONS: `--require=${at.script('record.cjs', recorder(record))}`,
  }
  const agent = `echo agent >> '${record}'; echo x > $RALPH_STORY.txt; ${script}`
  const { code } = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--json'], { env })
  expect(code).toBe(0)
  return readFileSync(record, 'utf8')
    .trimEnd()
    .split('\n')
    .map((command) => command.replaceAll(/ (?:--git-dir=|--work-tree=|-c )\S+/g, ''))
}

const complete = `sed -i "s/\\[ \\] $RALPH_STORY/[x] $RALPH_STORY/" openspec/changes/demo/tasks.md; echo '<promise>COMPLETE</promise>'`

test('a successful story starts no more processes than it did, and makes and syncs no more files', async () => {
  const started = await recorded(complete)
  const agents = started.flatMap((line, index) => (line === 'agent' ? [index] : []))
  expect(agents).toHaveLength(3)
  // The first story also begins the loop, the last one also ends it.
  const between = started.slice((agents[1] ?? 0) + 1, agents[2])
  const git = between.filter((command) => command.startsWith('git '))
  const forks = between.filter((command) => command === 'fork')
  const syncs = between.filter((line) => line === 'sync')
  // Which folders of objects are there already is a matter of chance.
  const made = between.filter((line) => line.startsWith('made ') && !/objects\/[0-9a-f]{2}$/.test(line))
  const others = between.filter((line) => !/^(?:git |made |fork$|sync$)/.test(line))
  // Nothing seen would mean nothing proved.
  expect([git, forks, made, syncs].map(({ length }) => length > 0)).toEqual([true, true, true, true])
  expect(made.length, made.join('\n')).toBeLessThanOrEqual(most.made)
  expect(syncs.length).toBeLessThanOrEqual(most.syncs)
  expect(git.length, `of git:\n${git.join('\n')}\n`).toBeLessThanOrEqual(most.git)
  expect(others.length, `others:\n${others.join('\n')}\n`).toBeLessThanOrEqual(most.others)
  expect(forks.length, between.join('\n')).toBeLessThanOrEqual(most.forks)
})

test('a failed attempt has the whole tree looked at three times: what it left, whether that is undone, and before the next agent', async () => {
  const started = await recorded(
    `if [ $RALPH_STORY-$RALPH_ATTEMPT = 2-1 ]; then echo more >> 1.txt; echo '<promise>FAILED: no</promise>'; else ${complete}; fi`,
  )
  const agents = started.flatMap((line, index) => (line === 'agent' ? [index] : []))
  expect(agents).toHaveLength(4)
  const between = started.slice((agents[1] ?? 0) + 1, agents[2])
  const names = between.filter((command) => command.startsWith('git ')).map((line) => line.split(' ')[1])
  expect(names.filter((name) => name === 'status')).toHaveLength(3)
  // Each of these writes an index, which is as large as the repository.
  const writing = names.filter((name) =>
    /^(update-index|write-tree|checkout-index|read-tree)$/.test(name ?? ''),
  )
  expect(writing).toContain('checkout-index')
  expect(writing.length, writing.join()).toBeLessThanOrEqual(3)
})

/** Writes down every process that the program itself starts, whichever way, every file and folder that it makes, and every sync. */
function recorder(record: string): string {
  return `
const fs = require('node:fs')
const { appendFileSync, existsSync } = fs
const child = require('node:child_process')
const write = (line) => appendFileSync(${JSON.stringify(record)}, line + '\\n')
const forked = () => write('fork')
// One of them may call another.
let isInside = false
for (const name of ['openSync', 'writeFileSync', 'copyFileSync', 'mkdirSync', 'mkdtempSync']) {
  const real = fs[name]
  fs[name] = (...words) => {
    const path = name === 'copyFileSync' ? words[1] : words[0]
    const isNew = !isInside && typeof path !== 'number' && !existsSync(path)
    isInside = true
    try {
      const made = real(...words)
      if (name === 'mkdtempSync' || (isNew && existsSync(path))) write('made ' + (name === 'mkdtempSync' ? made : path))
      return made
    } finally {
      isInside = false
    }
  }
}
for (const name of ['fsync', 'fdatasync', 'fsyncSync', 'fdatasyncSync']) {
  const real = fs[name]
  fs[name] = (...words) => {
    write('sync')
    return real(...words)
  }
}
const { spawn } = child.ChildProcess.prototype
child.ChildProcess.prototype.spawn = function (options) {
  forked()
  return spawn.call(this, options)
}
for (const name of ['spawnSync', 'execFileSync', 'execSync']) {
  const real = child[name]
  child[name] = (...words) => {
    forked()
    return real(...words)
  }
}
require('node:module').syncBuiltinESMExports()
`
}
