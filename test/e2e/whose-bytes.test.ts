// The user's bytes after a failed attempt: whatever filters an agent installs, and whatever it leaves that is no file.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ralph, scratch, tasksOf, type Scratch } from './harness.ts'

/** What `nbstripout --install` does, in a story that is complete; the next one touches the notebook and fails. */
const installs = (config: string): string =>
  `if [ $RALPH_STORY = 1 ]; then ${config} filter.strip.clean 'grep -v OUTPUT'; echo '*.ipynb filter=strip' >> .gitattributes; echo more >> user.ipynb; echo "<promise>COMPLETE</promise>"; else echo broken >> user.ipynb; echo "<promise>FAILED: no</promise>"; fi`

describe('O15: filters that an agent installs', () => {
  test.each([
    ['in this repository', 'git config'],
    ['for all repositories', 'git config --global'],
  ])('M1: %s: the user’s notebook comes back with its output', async (_where, config) => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('user.ipynb', 'code\nOUTPUT of a long night\n')
    const options = ['--agent-command', installs(config), '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...options])).code).toBe(3)
    expect(at.read('user.ipynb')).toBe('code\nOUTPUT of a long night\nmore\n')
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(at.read('user.ipynb')).toBe('code\nOUTPUT of a long night\nmore\n')
  })
})

test('L: PATH_MAX: an agent that makes a folder of 900 levels and fails: the loop, resume and finish go on', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const dig = `node -e 'const fs = require("fs"); for (let i = 0; i < 900; i++) { fs.mkdirSync("dddddd"); process.chdir("dddddd") }'`
  const options = ['--agent-command', `${dig}; echo "<promise>FAILED: no</promise>"`, '--max-retries', '0']
  const loop = await ralph(at, ['loop', 'demo', ...options])
  expect(loop.code).toBe(3)
  expect(loop.stderr).toContain('is nested too deeply')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  expect(at.git('status', '--porcelain', '--ignored')).toBe('!! .claude/')
  expect(existsSync(join(at.repo, 'dddddd'))).toBe(false)
})

describe('O15: a file in the change folder whose name is not UTF-8', () => {
  const folder = 'openspec/changes/demo'
  const odd = (at: Scratch): Buffer =>
    Buffer.concat([Buffer.from(join(at.repo, folder, 'x')), Buffer.from([0xff, 0xfe])])
  const flags = ['--max-retries', '1', '--agent-command']

  test.each([['branch'], ['stash']])(
    '%s: goes with the plan, and comes back as it was',
    async (checkpoint) => {
      const at = scratch({ tasks: tasksOf(1) })
      writeFileSync(odd(at), 'the user’s\n')
      const deed = `for file in ${folder}/x*; do echo x >> "$file"; done`
      const agent = `cat > /dev/null; if [ $RALPH_ATTEMPT = 1 ]; then rm -rf ${folder}; echo '<promise>FAILED: no</promise>'; else ${deed}; echo '<promise>COMPLETE</promise>'; fi`
      const end = await ralph(at, ['loop', 'demo', '--checkpoint', checkpoint, ...flags, agent])
      expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('ENOENT')])
      expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
      expect(readFileSync(odd(at), 'utf8')).toBe('the user’s\nx\n')
    },
  )

  test('made by an agent that fails: gone again; that completes: kept, and the next story runs', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `cat > /dev/null; ls ${folder} | wc -l >> ../seen; echo x > ${folder}/x$(printf '\\377\\376'); [ $RALPH_ATTEMPT = 1 ] && echo '<promise>FAILED: no</promise>' || echo '<promise>COMPLETE</promise>'`
    const end = await ralph(at, ['loop', 'demo', ...flags, agent])
    expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('ENOENT')])
    expect(readFileSync(join(at.root, 'seen'), 'utf8').split(/\s+/)).toEqual(['2', '2', '3', '3', ''])
  })

  test('in a work tree of the loop’s own: goes along', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    writeFileSync(odd(at), 'the user’s\n')
    execFileSync('mkfifo', [join(at.repo, folder, 'pipe')])
    const agent = `cat > /dev/null; cat ${folder}/x* > seen; echo '<promise>COMPLETE</promise>'`
    const end = await ralph(at, ['loop', 'demo', '--worktree', '--on-complete', 'cleanup', ...flags, agent])
    expect([end.code, at.read('seen')]).toEqual([0, 'the user’s\n'])
  })
})
