// What a run says of itself: that it saved, took away, left open or brought back just what it did.
import { describe, expect, test } from 'vitest'
import { ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

const complete = 'cat > /dev/null; echo "<promise>COMPLETE</promise>"'

function loop(at: Scratch, agent: string, ...more: string[]) {
  return ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '0', ...more])
}

describe('what was saved', () => {
  const realTest =
    "import assert from 'node:assert'\nimport test from 'node:test'\ntest('a', () => assert.ok(1))\n"

  function withTest(tasks = tasksOf(1)): Scratch {
    const at = scratch({ tasks })
    at.write('test/a.test.mjs', realTest)
    at.write('old.txt', 'old\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'a test')
    return at
  }

  test('a saved story names its files, the deleted ones as such, the first ones where there are many', async () => {
    const at = withTest(tasksOf(2))
    const many = 'for i in 1 2 3 4 5 6 7; do echo $i > new-$i.txt; done'
    const work = `case $RALPH_STORY in 1) rm old.txt; echo work > src.txt;; *) ${many};; esac; ${complete}`
    const { stdout } = await loop(at, work)
    expect(stdout).toMatch(/✓ saved \w+, 2 files: old\.txt \(deleted\), src\.txt /)
    expect(stdout).toMatch(/✓ saved \w+, 7 files: new-1\.txt, .*new-5\.txt, and 2 more /)
  })

  test('a story that deletes the only test is told so, with the command that shows it, and that its gate ran nothing', async () => {
    const at = withTest()
    const { code, stdout, stderr } = await loop(at, `rm -r test; ${complete}`, '--verify', 'node --test')
    expect(code).toBe(0)
    const words = '#1 deleted or emptied a test: test/a.test.mjs. Look: ralph diff 1 demo'
    expect(stderr).toContain(`warning: ${words}`)
    expect(stdout).toContain('✓ node --test (0 tests ran)')
    expect(stdout).toContain(`note: ${words}`)
    expect(stdout).toContain('the gate passed and ran 0 tests: node --test')
    expect((await ralph(at, ['status'])).stdout).toContain(words)
  })

  test('nothing is said of a test that was renamed, nor of one that the plan wants gone', async () => {
    const renamed = withTest()
    const moved = await loop(renamed, `git mv test/a.test.mjs test/b.test.mjs; ${complete}`)
    expect(moved.stdout).toMatch(/saved \w+, 2 files: test\/a\.test\.mjs \(deleted\), test\/b\.test\.mjs /)
    const asked = withTest('## 1. Clean up\n\n- [ ] 1.1 Remove test/a.test.mjs\n')
    const removed = await loop(asked, `rm test/a.test.mjs; ${complete}`)
    expect([moved, removed].map(({ stdout, stderr }) => /deleted or emptied/.test(stdout + stderr))).toEqual([
      false,
      false,
    ])
  })
})

describe("the user's own uncommitted files", () => {
  const begins = /Your .* kept in the first commit of ralph\/demo\./
  const good = `echo work > "work-$RALPH_STORY.txt"; ${complete}`

  test('are counted at the start, and named by keep and rename with the way that leaves them out', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('notes.txt', 'secret\n')
    at.write('README.md', '# mine\n')
    const { stdout } = await loop(at, good)
    expect(stdout).toContain('Your 2 uncommitted files are kept in the first commit of ralph/demo.')
    const words = [
      'Its first commit holds files that you had not committed, and a push publishes them: README.md, notes.txt.',
      '`ralph finish demo --squash` leaves them out.',
    ]
    for (const each of words) expect(stdout).toContain(each)
    for (const how of [['--keep'], ['--keep', '--rename']])
      for (const each of words) expect((await ralph(at, ['finish', 'demo', ...how])).stdout).toContain(each)
    await ralph(at, ['finish', 'demo', '--squash'])
    expect(at.git('log', '--format=', '--name-only', 'main')).not.toContain('notes.txt')
    expect(at.read('notes.txt')).toBe('secret\n')
  })

  test('where only the plan was uncommitted, or nothing, nothing is said', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/demo/tasks.md', `${tasksOf(1)}- [ ] 1.3 third\n`)
    const { stdout } = await loop(at, good)
    expect(stdout).not.toMatch(begins)
    expect(stdout).not.toContain('first commit')
  })
})
