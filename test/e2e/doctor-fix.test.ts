// `ralph doctor --fix`: what is ralph's own and left over is put in order and named; nothing else is touched.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Diagnosis } from '../../src/ui/app.ts'
import { goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

const waiting = 'echo working > half; echo working; exec tail -f /dev/null'

/** Exit 2 only says that this machine has no agent. */
async function doctor(at: Scratch, ...flags: readonly string[]): Promise<Diagnosis> {
  const end = await ralph(at, ['doctor', '--json', ...flags])
  expect(end.stderr).toBe('')
  return JSON.parse(end.stdout) as Diagnosis
}

const fixable = ({ checks }: Diagnosis): readonly string[] =>
  checks.flatMap(({ name, fix }) => (fix === 'ralph doctor --fix' ? [name] : []))

async function done(at: Scratch, ...more: readonly string[]): Promise<void> {
  expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, ...more])).code).toBe(0)
}

/** A lock as a process leaves it that is gone: this one ended before it was waited for. */
async function deadLock(at: Scratch, path: string): Promise<string> {
  const loop = start(at, ['loop', 'demo', '--json', '--agent-command', waiting, '--fresh'])
  await loop.seen((out) => out.includes('working'))
  const lock = readFileSync(path, 'utf8')
  expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
  await loop.ended
  return lock
}

describe('ralph doctor --fix', () => {
  test('a healthy repository: nothing to fix, and doctor names nothing', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await done(at)
    expect(fixable(await doctor(at))).toEqual([])
    expect((await doctor(at, '--fix')).fixes).toEqual([])
    expect((await ralph(at, ['doctor', '--fix'])).stdout).toContain('found nothing that is safe to fix')
  })

  test('locks of a process that is gone, where no loop has to be put in order, are removed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const paths = ['.git/ralph/changes/demo/lock.json', '.git/ralph/lock.json'].map((path) =>
      join(at.repo, path),
    )
    const lock = await deadLock(at, paths[0] ?? '')
    for (const path of paths) writeFileSync(path, lock)
    expect(fixable(await doctor(at))).toEqual(['lock of demo'])
    expect(paths.map((path) => existsSync(path))).toEqual([true, true])
    const { fixes } = await doctor(at, '--fix')
    expect(fixes).toMatchObject([{ name: 'lock of demo', after: 'removed' }])
    expect(paths.map((path) => existsSync(path))).toEqual([false, false])
    writeFileSync(paths[1] ?? '', lock)
    expect((await doctor(at, '--fix')).fixes).toMatchObject([
      { name: `lock of the work tree ${at.repo}`, after: 'removed' },
    ])
    expect(existsSync(paths[1] ?? '')).toBe(false)
  })

  test('half-written files of processes that are gone are deleted; those of a living one, young ones and the user’s stay', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await done(at)
    const gone = 2 ** 22 + 1
    const long = new Date(Date.now() - 2 * 3_600_000)
    const put = (path: string, age: Date | undefined): string => {
      const file = join(at.repo, path)
      mkdirSync(join(file, '..'), { recursive: true })
      writeFileSync(file, 'x')
      if (age !== undefined) utimesSync(file, age, age)
      return file
    }
    const stray = [
      put(`.git/ralph/changes/demo/journal.ndjson.${gone}.tmp`, long),
      put(`.git/ralph/changes/demo/lock.json.draft-${gone}-a-b`, long),
      put(`.claude/loop-state.json.${gone}.3.tmp`, long),
    ]
    const others = [
      put(`.git/ralph/changes/demo/journal.ndjson.${process.pid}.tmp`, long),
      put(`.git/ralph/changes/demo/young.${gone}.tmp`, undefined),
      put(`.git/ralph/changes/demo/guard/notes.${gone}.tmp`, long),
      put(`.claude/mine.${gone}.tmp`, long),
      put(`mine.${gone}.tmp`, long),
    ]
    expect(fixable(await doctor(at))).toEqual(['temporary files'])
    expect(stray.every((file) => existsSync(file))).toBe(true)
    const { fixes = [] } = await doctor(at, '--fix')
    expect(fixes).toMatchObject([{ name: 'temporary files', after: 'deleted' }])
    expect(fixes[0]?.before).toContain('3 half-written')
    expect(stray.map((file) => existsSync(file))).toEqual([false, false, false])
    expect(others.every((file) => existsSync(file))).toBe(true)
  })

  test('the temporary folder of a loop that has ended is deleted', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.env['TMPDIR'] = join(at.root, 'tmp')
    mkdirSync(at.env['TMPDIR'])
    const end = await ralph(at, ['loop', 'demo', '--json', '--agent-command', goodAgent])
    const [, runId = ''] = /"run_id":"([^"]+)"/.exec(end.stdout) ?? []
    const folder = join(at.env['TMPDIR'], `ralph-${runId.slice(0, 13)}-abcdef`)
    mkdirSync(join(folder, 'cache'), { recursive: true })
    const mine = join(at.env['TMPDIR'], 'ralph-notes')
    mkdirSync(mine)
    expect((await doctor(at, '--fix')).fixes).toMatchObject([{ name: 'temporary folders', after: 'deleted' }])
    expect(readdirSync(at.env['TMPDIR'])).toEqual(['ralph-notes'])
  })

  test('the line that hides the state file from git is written again, and the rest of that file stays', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await done(at)
    writeFileSync(join(at.repo, '.git/info/exclude'), 'mine')
    expect(fixable(await doctor(at))).toEqual(['info/exclude'])
    expect((await doctor(at, '--fix')).fixes).toMatchObject([{ name: 'info/exclude' }])
    expect(at.read('.git/info/exclude')).toMatch(/^mine\n\/\.claude\/loop-state\.json\n/)
    expect(at.git('status', '--porcelain', '--', '.claude')).toBe('')
  })

  test('a removed work tree of a loop that is done and cleaned up is no longer listed; one that may have been moved stays', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/next/tasks.md', tasksOf(1))
    at.git('add', '-A')
    at.git('commit', '-qm', 'next')
    const trees = ['demo', 'next'].map((name) => join(at.root, `repo-ralph-${name}`))
    await done(at, '--worktree', '--on-complete', 'cleanup')
    expect((await ralph(at, ['loop', 'next', '--worktree', '--agent-command', goodAgent])).code).toBe(0)
    for (const tree of trees) rmSync(tree, { recursive: true, force: true })
    at.git('worktree', 'add', '-q', join(at.root, 'mine'))
    rmSync(join(at.root, 'mine'), { recursive: true })
    expect((await doctor(at, '--fix')).fixes).toMatchObject([{ name: 'work tree of demo' }])
    const listed = at.git('worktree', 'list', '--porcelain')
    expect(listed).not.toContain(trees[0])
    expect(listed).toContain(trees[1])
    expect(listed).toContain(join(at.root, 'mine'))
  })

  test('a loop that was killed: its death is recorded, its files and its agent are left to the user, who is told', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const loop = start(at, ['loop', 'demo', '--json', '--agent-command', waiting])
    await loop.seen((out) => out.includes('working'))
    loop.child.kill('SIGKILL')
    await loop.ended
    const [head, status] = [at.git('rev-parse', 'HEAD'), at.git('status', '--porcelain')]
    const found = await doctor(at, '--fix')
    expect(found.fixes).toMatchObject([
      { name: 'loop demo', after: expect.stringContaining('stopped') as string },
    ])
    expect(at.state()).toMatchObject({ status: 'stopped' })
    const told = found.checks.find(({ name }) => name === 'loop demo')
    expect(told?.verdict).toBe('warning')
    expect(told?.fix).toContain('ralph stop demo')
    expect(at.git('rev-parse', 'HEAD')).toBe(head)
    expect(at.git('status', '--porcelain')).toBe(status)
    expect(at.read('half')).toBe('working\n')
    expect((await doctor(at, '--fix')).fixes).toEqual([])
  })
})
