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
})
