// The user's bytes after a failed attempt: whatever filters an agent installs, and whatever it leaves that is no file.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ralph, scratch, tasksOf } from './harness.ts'

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
  expect(loop.stderr).toContain('lies deeper than a path can be long')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  expect(at.git('status', '--porcelain', '--ignored')).toBe('!! .claude/')
  expect(existsSync(join(at.repo, 'dddddd'))).toBe(false)
})
