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
    const record = join(at.root, 'record')
    at.script('record.cjs', recorder(record))
    const env = {
      PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}`,
      NODE_OPTIONS: `--require=${join(at.root, 'record.cjs')}`,
    }
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
    expect(runs('write-tree').some(({ sid }) => flushed.has(sid))).toBe(true)
    const done = readFileSync(record, 'utf8').split('\n')
    const commits = at.git('log', '--author=ralph', '--format=%H', '--glob=refs/ralph').split('\n')
    expect(commits.length).toBeGreaterThan(2)
    for (const hash of commits) {
      const folder = join(at.repo, '.git', 'objects', hash.slice(0, 2))
      const named = done.findIndex((line) => line.endsWith(` ${join(folder, hash.slice(2))}`))
      const [, temporary = ''] = done[named]?.split(' ') ?? []
      expect(done.slice(0, named)).toContain(`synced ${temporary}`)
      expect(done.slice(named)).toContain(`synced ${folder}`)
    }
    // A ref that is there already is not written: of the three checkpoints and two attempts each was.
    expect(runs('update-ref').filter(({ sid }) => flushed.has(sid)).length).toBeGreaterThanOrEqual(3)
    for (const n of [1, 2]) {
      const ref = join(at.repo, `.git/refs/ralph/demo/attempts/${n}`)
      const named = done.indexOf(`renamed ${ref}.lock ${ref}`)
      expect(done.slice(0, named)).toContain(`synced ${ref}.lock`)
    }
  },
)

/** Writes down what the program itself syncs and renames. */
function recorder(record: string): string {
  return `
const { appendFileSync } = require('node:fs')
const promises = require('node:fs/promises')
const { open, rename } = promises
const done = (line) => appendFileSync(${JSON.stringify(record)}, line + '\\n')
promises.open = async (path, ...more) => {
  const handle = await open(path, ...more)
  const sync = handle.sync.bind(handle)
  handle.sync = async () => {
    await sync()
    done('synced ' + path)
  }
  return handle
}
promises.rename = async (from, to) => {
  await rename(from, to)
  done('renamed ' + from + ' ' + to)
}
require('node:module').syncBuiltinESMExports()
`
}
