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
    const done = readFileSync(record, 'utf8').split('\n')
    const placed = (hash: string): { folder: string; named: number } => {
      const folder = join(at.repo, '.git', 'objects', hash.slice(0, 2))
      return { folder, named: done.findIndex((line) => line.endsWith(` ${join(folder, hash.slice(2))}`)) }
    }
    const commits = at.git('log', '--committer=ralph', '--format=%H', '--glob=refs/ralph').split('\n')
    expect(commits.length).toBeGreaterThan(2)
    expect(commits.filter((hash) => placed(hash).named < 0)).toEqual([])
    const objects = at.git('rev-list', '--objects', '--glob=refs/ralph', '^main').split('\n')
    const own = objects.map((line) => line.split(' ')[0] ?? '').filter((hash) => placed(hash).named >= 0)
    // The tree and the files of a story, too; what ralph did not write git did, and says that it was flushed.
    expect(own.length).toBeGreaterThan(commits.length)
    const byGits = own.length < objects.length
    expect(
      !byGits ||
        ['write-tree', 'update-index'].some((name) => runs(name).some(({ sid }) => flushed.has(sid))),
    ).toBe(true)
    for (const hash of own) {
      const { folder, named } = placed(hash)
      const [, temporary = ''] = done[named]?.split(' ') ?? []
      expect(done.slice(0, named)).toContain(`synced ${temporary}`)
      expect(done.slice(named)).toContain(`synced ${folder}`)
    }
    // A ref that is there already is not written: of the three checkpoints and two attempts each was.
    const byGit = runs('update-ref').filter(({ sid }) => flushed.has(sid))
    const refs = done.flatMap((line, at) => (/^renamed \S+\.lock \S+\/\.git\/refs\//.test(line) ? [at] : []))
    const checkpoints = refs.filter((at) => done[at]?.endsWith('/refs/ralph/demo/checkpoint') === true)
    expect(byGit.length + checkpoints.length).toBeGreaterThanOrEqual(3)
    for (const at of refs) {
      const [, lock = ''] = done[at]?.split(' ') ?? []
      // Since its lock was taken, which the rename before it took away.
      const before = done.slice(0, at)
      expect(before.slice(before.lastIndexOf(done[at] ?? '') + 1)).toContain(`synced ${lock}`)
    }
    for (const n of [1, 2]) {
      const ref = join(at.repo, `.git/refs/ralph/demo/attempts/${n}`)
      expect(done).toContain(`renamed ${ref}.lock ${ref}`)
    }
  },
)

/** Writes down what the program itself syncs and renames. */
function recorder(record: string): string {
  return `
const fs = require('node:fs')
const { openSync, writeSync, fsync, renameSync } = fs
const record = openSync(${JSON.stringify(record)}, 'a')
const done = (line) => writeSync(record, line + '\\n')
const paths = new Map()
fs.openSync = (path, ...more) => {
  const file = openSync(path, ...more)
  paths.set(file, path)
  return file
}
fs.fsync = (file, then) => {
  const path = paths.get(file)
  fsync(file, (error) => {
    if (!error) done('synced ' + path)
    then(error)
  })
}
fs.renameSync = (from, to) => {
  renameSync(from, to)
  done('renamed ' + from + ' ' + to)
}
require('node:module').syncBuiltinESMExports()
`
}
