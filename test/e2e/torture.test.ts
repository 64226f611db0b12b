import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

/** RALPH_KILLS=500 for a long night; the seed is printed and can be given back as RALPH_SEED. */
const kills = Number(process.env['RALPH_KILLS'] ?? 8)
const seed = Number(process.env['RALPH_SEED'] ?? Date.now() % 1_000_000)

/** mulberry32: the same moments again for the same seed. */
function randomFrom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Edits, adds, deletes and commits; the same in the end however often it is cut short. */
const agent = `
echo "story $RALPH_STORY" > "story-$RALPH_STORY.txt"
mkdir -p "dir-$RALPH_STORY"; echo x > "dir-$RALPH_STORY/file"
git rm -q --cached "old-$RALPH_STORY.txt" 2>/dev/null; rm -f "old-$RALPH_STORY.txt"
git add -A; git commit -qm "agent's own commit"
echo more >> "story-$RALPH_STORY.txt"
sleep 0.05
echo "<promise>COMPLETE</promise>"`

function prepare(): Scratch {
  const at = scratch({ tasks: tasksOf(3), commit: false })
  for (const story of [1, 2, 3]) at.write(`old-${story}.txt`, 'old\n')
  at.write('.gitignore', '.env\n')
  at.write('.env', 'SECRET=1\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'start')
  at.write('mine.txt', "the user's own, never committed\n")
  return at
}

function treeOf(at: Scratch): string {
  const listed = execFileSync('git', ['ls-files', '-s', '-o', '-c', '--exclude-standard'], {
    cwd: at.repo,
    env: at.env,
    encoding: 'utf8',
  })
  return `${listed}\n${at.git('log', '-1', '--format=%T')}`
}

describe('torture', () => {
  test(`G25: a run killed (-9) at ${kills} random moments always resumes to done with the same final tree (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const calm = prepare()
    const args = ['--agent-command', agent, '--json']
    const whole = performance.now()
    expect((await ralph(calm, ['loop', 'demo', ...args])).code).toBe(0)
    const wholeMs = performance.now() - whole
    const expected = treeOf(calm)

    let killed = 0
    while (killed < kills) {
      const at = prepare()
      let isFirst = true
      for (;;) {
        const running = start(at, [isFirst ? 'loop' : 'resume', 'demo', ...args])
        isFirst = false
        const timer = setTimeout(() => running.child.kill('SIGKILL'), random() * wholeMs)
        const end = await running.ended
        clearTimeout(timer)
        if (end.signal !== 'SIGKILL') {
          // Killed before its journal began there is nothing to resume.
          if (end.code === 2 && end.stderr.includes('ralph loop demo')) {
            isFirst = true
            continue
          }
          expect([end.code, end.stderr.split('\n').filter((line) => line.startsWith('error'))]).toEqual([
            0,
            [],
          ])
          break
        }
        killed += 1
        if (killed >= kills + 10) break
        if (killed >= kills) {
          const last = await ralph(at, ['resume', 'demo', ...args])
          if (last.code === 2) expect((await ralph(at, ['loop', 'demo', ...args])).code).toBe(0)
          else expect([last.code, last.stderr]).toEqual([0, expect.any(String)])
          break
        }
      }
      expect(treeOf(at)).toBe(expected)
      expect(at.state().status).toBe('done')
      expect(at.git('log', '--format=%s', '--reverse', '--grep=initial', '--grep=checkpoint', 'main..')).toBe(
        'initial state\ncheckpoint: 1\ncheckpoint: 2\ncheckpoint: 3',
      )
      expect(readFileSync(join(at.repo, '.env'), 'utf8')).toBe('SECRET=1\n')
      const { iterations } = at.state()
      expect(iterations.map((iteration) => iteration.n)).toEqual(iterations.map((_, index) => index + 1))
    }
  }, 1_200_000)
})
