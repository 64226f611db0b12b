// An agent that removes `.git/ralph`: every command tells the same way out, and it works as it is typed.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

const vandal = 'cat > /dev/null; rm -rf .git/ralph; echo half > half.txt; echo "<promise>COMPLETE</promise>"'

async function vandalised(): Promise<{ at: Scratch; said: string }> {
  const at = scratch({ tasks: tasksOf(1) })
  writeFileSync(join(at.repo, 'mine.txt'), 'precious')
  const end = await ralph(at, ['loop', 'demo', '--agent-command', vandal])
  expect(end.code).toBe(1)
  return { at, said: end.stderr + end.stdout }
}

/** The commands after these words, up to the end of the sentence. */
function commands(said: string, after: string): string {
  const found = new RegExp(`${after}[^:]*: (git .*?)\\.(?:\\s|$)`).exec(said.replaceAll(/\s+/g, ' '))?.[1]
  if (found === undefined) throw new Error(`no commands in: ${said}`)
  return found
}

function type(at: Scratch, line: string): void {
  execFileSync('sh', ['-c', line], { cwd: at.repo, env: at.env, stdio: 'ignore' })
}

describe('G1: a run whose record is gone', () => {
  test('resume, loop, --fresh and finish all tell the way out, and it brings everything back', async () => {
    const { at, said } = await vandalised()
    const out = commands(said, 'All of it')
    for (const args of [
      ['resume', 'demo'],
      ['loop', 'demo', '--agent', 'demo'],
      ['loop', 'demo', '--fresh', '--agent', 'demo'],
      ['finish', 'demo', '--cleanup'],
    ]) {
      const end = await ralph(at, args)
      expect(end.code).toBe(2)
      expect(commands(end.stderr, 'All of it')).toBe(out)
    }
    type(at, out)
    expect(at.git('symbolic-ref', '--short', 'HEAD').trim()).toBe('main')
    expect(readFileSync(join(at.repo, 'mine.txt'), 'utf8')).toBe('precious')
    expect(readFileSync(join(at.repo, 'half.txt'), 'utf8')).toBe('half\n')
    const again = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect(again.code).toBe(0)
    expect(readFileSync(join(at.repo, 'mine.txt'), 'utf8')).toBe('precious')
  })

  test('a new run from another branch says where the uncommitted files of the user are', async () => {
    const { at } = await vandalised()
    at.git('switch', '-q', 'main')
    expect(existsSync(join(at.repo, 'mine.txt'))).toBe(false)
    const end = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect(end.code).toBe(0)
    type(at, commands(end.stderr + end.stdout, 'Only what you had not committed'))
    expect(readFileSync(join(at.repo, 'mine.txt'), 'utf8')).toBe('precious')
  })

  test.each([
    ['branch', ['--checkpoint', 'branch']],
    ['stash', ['--checkpoint', 'stash']],
    ['a work tree of its own', ['--worktree']],
  ])(
    'U5: a gate that removes it (%s): exit 1 without a stack, the way out works as typed, and no command is a dead end',
    async (mode, flags) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('mine.txt', 'precious')
      const gate = 'rm -rf "$(git rev-parse --git-common-dir)/ralph"'
      const loop = ['loop', 'demo', '--agent-command', goodAgent]
      const end = await ralph(at, [...loop, ...flags, '--verify', gate])
      expect([end.code, end.stderr]).toEqual([
        1,
        expect.stringContaining('ralph’s record of this run was removed while the loop ran'),
      ])
      expect(end.stderr).not.toMatch(/\n {4}at |bug/)
      expect(end.stdout).not.toContain('ralph resume')
      expect((await ralph(at, ['status'])).stdout).toMatch(
        /ralph resume demo +says how to get everything back/,
      )
      const asked = await ralph(at, ['resume', 'demo'])
      expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('ralph loop demo --fresh')])
      if (mode === 'stash') {
        at.write('mine.txt', 'as an agent might leave it')
        type(at, /git restore \S+ -- :\//.exec(end.stderr)?.[0] ?? 'false')
      } else type(at, commands(end.stderr, 'All of it'))
      const [, away = 'true'] =
        /`(git -C .*? switch --detach)`/.exec((await ralph(at, [...loop, '--fresh'])).stderr) ?? []
      type(at, away)
      expect((await ralph(at, [...loop, '--fresh'])).code).toBe(0)
      expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
      expect([at.read('mine.txt'), at.read('story-1.txt')]).toEqual(['precious', 'work of 1\n'])
    },
  )
})
