// A pipe, a socket, a device or a folder in the place of a file that ralph reads: no command waits for ever, and none calls it a bug.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'

const own = '.git/ralph/changes/demo'

const kinds: Readonly<Record<string, (path: string) => void>> = {
  'a pipe': (path) => void execFileSync('mkfifo', [path]),
  'a socket': (path) => {
    const server = createServer().listen(path)
    onTestFinished(() => void server.close())
  },
  'a device': (path) => symlinkSync('/dev/zero', path),
  'a folder': (path) => mkdirSync(path),
}

test.each([
  ['.claude/loop-state.json', 'a pipe'],
  ['.claude/loop-state.json', 'a socket'],
  ['.claude/loop-state.json', 'a device'],
  ['ralph.yaml', 'a pipe'],
  ['openspec/changes/demo/tasks.md', 'a pipe'],
  [`${own}/lock.json`, 'a pipe'],
] as const)('U1: %s is %s: who needs it ends with 2 and names it, nobody waits', async (file, kind) => {
  const at = scratch({ tasks: tasksOf(1) })
  await ralph(at, ['loop', 'demo', '--agent-command', 'false', '--max-retries', '0'])
  rmSync(join(at.repo, file), { force: true })
  mkdirSync(dirname(join(at.repo, file)), { recursive: true })
  kinds[kind]?.(join(at.repo, file))
  const codes = []
  for (const words of [['status'], ['doctor'], ['logs'], ['list']]) {
    const { code, stderr } = await ralph(at, words)
    codes.push(code)
    expect(stderr).not.toContain('bug in ralph')
  }
  expect(codes.filter((code) => code !== 0 && code !== 2)).toEqual([])
  const end = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
  expect([end.code, end.stderr]).toEqual([2, expect.stringContaining(file)])
})

test.each(['a pipe', 'a folder'])(
  'U1: %s in the place of the journal is a journal that cannot be read: resume and finish tell the git commands, --fresh archives it',
  async (kind) => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', 'false', '--max-retries', '0'])
    const journal = join(at.repo, own, 'journal.ndjson')
    rmSync(journal)
    kinds[kind]?.(journal)
    for (const words of [['status'], ['doctor'], ['logs'], ['list']]) {
      const { code, stderr } = await ralph(at, words)
      expect([0, 2]).toContain(code)
      expect(stderr).not.toContain('bug in ralph')
    }
    for (const words of [
      ['resume', 'demo'],
      ['finish', 'demo', '--cleanup'],
    ]) {
      const { code, stderr } = await ralph(at, words)
      expect([code, stderr]).toEqual([1, expect.stringContaining(`journal.ndjson is ${kind}, not a file`)])
      expect(stderr).toContain('git merge --squash ralph/demo')
    }
    const end = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect([end.code, end.stderr]).toEqual([0, expect.any(String)])
  },
)

test('U1: a pipe that an agent puts where its next output is to be kept stops nothing', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const agent = `mkfifo ${own}/transcripts/2.log; ${goodAgent}`
  const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
  expect([end.code, end.stderr + end.stdout]).toEqual([0, expect.stringContaining('cannot be kept in')])
  expect(readdirSync(join(at.repo, own, 'transcripts'))).toContain('1.log')
})
