// Whose settings are they? What an agent writes into ralph.yaml, the git directory or a gate's script takes effect for nobody until the user agreed.
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Finished, Scratch } from './harness.ts'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'

/** Passes once somebody has put the story's proof there. */
const gate = 'test -f proof-$RALPH_STORY'
const complete = 'echo "work of $RALPH_STORY" > "story-$RALPH_STORY.txt"; echo "<promise>COMPLETE</promise>"'
const failing = 'echo "<promise>FAILED: no</promise>"'
/** In iteration 1 only. */
const once = (deed: string): string => `cat > /dev/null; if [ $RALPH_ITERATION = 1 ]; then ${deed}; fi;`

const warnings = (end: Finished): string[] =>
  eventsOf(end).flatMap((event) => (event.type === 'warning' ? [event.message] : []))

/** Story 1 passes, and its agent does something to the settings; story 2 fails its gate: exit 3. */
async function stuckAfter(at: Scratch, deed: string, more: readonly string[] = []): Promise<Finished> {
  const agent = `${once(`touch proof-1; ${deed}`)} ${complete}`
  const end = await ralph(at, [
    'loop',
    'demo',
    '--json',
    '--max-retries',
    '0',
    '--agent-command',
    agent,
    ...more,
  ])
  expect(end.code).toBe(3)
  return end
}

function withGate(tasks = tasksOf(3)): Scratch {
  const at = scratch({ tasks })
  at.write('ralph.yaml', `verify: ${gate}\n`)
  at.git('add', '-A')
  at.git('commit', '-qm', 'gate')
  return at
}

describe('H4, O10, section 6.3: the settings of a run are those of its start', () => {
  test('H4: an agent that takes the gates out of ralph.yaml does not get rid of them by the next resume', async () => {
    const at = withGate()
    const loop = await stuckAfter(at, 'echo "max_retries: 0" > ralph.yaml')
    expect(warnings(loop).filter((message) => message.includes('ralph.yaml'))).toEqual([
      expect.stringMatching(/#1 .*ralph\.yaml.*verify: .*test -f proof.* -> not set/),
    ])
    const resumed = await ralph(at, ['resume', 'demo', '--json'])
    expect(resumed.code).toBe(3)
    expect(eventsOf(resumed).filter(({ type }) => type === 'gate.ended')).not.toEqual([])
    expect(warnings(resumed)).toContainEqual(
      expect.stringMatching(/ralph\.yaml.*#1.*verify: .*-> not set.*--accept-config/),
    )
  })

  test('section 6.3: a gate, a command and a webhook that an agent adds run for nobody', async () => {
    const at = withGate()
    const mark = join(at.root, 'ran')
    const evil = `verify: touch ${mark}-gate\\nnotify_command: touch ${mark}-notify\\nagent_command: touch ${mark}-agent\\nagent_env:\\n  BASH_ENV: x\\n`
    await stuckAfter(at, `printf '${evil}' > ralph.yaml`)
    const resumed = await ralph(at, ['resume', 'demo', '--json'])
    expect(resumed.code).toBe(3)
    for (const what of ['gate', 'notify', 'agent']) expect(existsSync(`${mark}-${what}`)).toBe(false)
    expect(warnings(resumed).join('\n')).toMatch(
      /agent_env: not set -> BASH_ENV;.*notify_command: not set -> /,
    )
  })

  test('H4: --accept-config takes the files as they are now; flags of the start stay', async () => {
    const at = withGate()
    await stuckAfter(at, 'printf "verify: \\"true\\"\\nmax_retries: 5\\n" > ralph.yaml')
    const resumed = await ralph(at, ['resume', 'demo', '--accept-config', '--json'])
    expect(resumed.code).toBe(0)
    const [started] = eventsOf(resumed)
    expect(started).toMatchObject({ settings: { gates: ['true'], max_retries: 0 } })
    expect(warnings(resumed)).toContainEqual(expect.stringMatching(/ralph\.yaml.*verify: .* -> "?true/))
    // Agreed once is agreed: it is the user's now.
    const again = await ralph(at, ['loop', 'demo', '--fresh', '--dry-run', '--json'])
    expect(again.code).toBe(0)
  })

  test('H4: flags of the resume win, and stay for the next one', async () => {
    const at = withGate()
    await stuckAfter(at, 'rm ralph.yaml')
    const resumed = await ralph(at, ['resume', 'demo', '--json', '--verify', 'test $RALPH_STORY = 2'])
    expect(resumed.code).toBe(3)
    expect(at.state().stories.map(({ status }) => status)).toEqual(['done', 'done', 'open'])
    const [started] = eventsOf(await ralph(at, ['resume', 'demo', '--json']))
    expect(started).toMatchObject({ settings: { gates: ['test $RALPH_STORY = 2'] } })
  })

  test('H4: a variable that is another now is not used, and is named with its flag', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = ['demo', '--json']
    const agent = ['--agent-command', failing]
    const from = { env: { RALPH_MAX_RETRIES: '1', RALPH_VERIFY: 'false' } }
    expect((await ralph(at, ['loop', ...args, ...agent], from)).code).toBe(3)
    const resumed = await ralph(at, ['resume', ...args, '--agent-command', complete], {
      env: { RALPH_MAX_RETRIES: '7', RALPH_VERIFY: 'true' },
    })
    expect(resumed.code).toBe(3)
    expect(eventsOf(resumed)[0]).toMatchObject({ settings: { gates: ['false'], max_retries: 1 } })
    expect(warnings(resumed)).toContainEqual(expect.stringMatching(/RALPH_MAX_RETRIES.*--max-retries 7/))
  })

  test('H4: a file that the agent broke stops no resume', async () => {
    const at = withGate()
    await stuckAfter(at, 'echo "{{{" > ralph.yaml')
    for (const story of [2, 3]) at.write(`proof-${story}`, '')
    const resumed = await ralph(at, ['resume', 'demo', '--json'])
    expect(resumed.code).toBe(0)
    expect(warnings(resumed)).toContainEqual(expect.stringMatching(/ralph\.yaml.*not valid YAML/))
  })

  test('H4: without the record of its settings a run goes on with none that nobody agreed to', async () => {
    const at = withGate()
    await stuckAfter(at, 'rm -f "$(git rev-parse --git-common-dir)"/ralph/changes/demo/settings.json')
    const refused = await ralph(at, ['resume', 'demo'])
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/settings.*\n.*--accept-config/) as string,
    })
    expect((await ralph(at, ['resume', 'demo', '--accept-config', '--agent-command', failing])).code).toBe(3)
  })

  test('H4: values of agent_env are on no disk; those of the file go on while they are what they were', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('ralph.yaml', 'agent_env:\n  MINE: file-secret\n')
    const seen = join(at.root, 'seen.txt')
    const agent = `cat > /dev/null; echo "$MINE." > ${seen}; ${failing}`
    await ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent])
    const kept = readFileSync(join(at.repo, '.git/ralph/changes/demo/settings.json'), 'utf8')
    expect(kept).toContain('MINE')
    expect(kept).not.toContain('file-secret')
    await ralph(at, ['resume', 'demo', '--json'])
    expect(readFileSync(seen, 'utf8')).toBe('file-secret.\n')
    at.write('ralph.yaml', 'agent_env:\n  MINE: another\n')
    const changed = await ralph(at, ['resume', 'demo', '--json'])
    expect(readFileSync(seen, 'utf8')).toBe('.\n')
    expect(warnings(changed).join('\n')).toMatch(/agent_env: MINE -> MINE[^]*not set any more: MINE/)
  })
})

describe('H4: what an agent wrote takes effect for no later start', () => {
  const edit = 'echo "notify_command: touch ../ran" > ralph.yaml'

  test.each([
    ['another change', ['loop', 'other', '--json', '--agent-command', goodAgent]],
    ['the same anew', ['loop', 'demo', '--fresh', '--json', '--agent-command', goodAgent]],
  ])('H4: %s: exit 2, the difference and the flag are shown, nothing is touched', async (_, args) => {
    const at = withGate(tasksOf(1))
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    at.git('add', '-A')
    at.git('commit', '-qm', 'other')
    const agent = `cat > /dev/null; touch proof-1; ${edit}; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
    expect(end.code).toBe(0)
    expect(end.stdout).toMatch(/ralph\.yaml.*notify_command/)
    // With nothing left to do nothing would begin anew.
    at.write('openspec/changes/demo/tasks.md', tasksOf(1))
    const before = [at.git('for-each-ref'), at.git('status', '--porcelain'), at.git('rev-parse', 'HEAD')]
    const refused = await ralph(at, args)
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(
        /ralph\.yaml.*#1 of demo[^]*verify: .* -> not set[^]*--accept-config/,
      ) as string,
    })
    expect([at.git('for-each-ref'), at.git('status', '--porcelain'), at.git('rev-parse', 'HEAD')]).toEqual(
      before,
    )
    expect(existsSync(join(at.root, 'ran'))).toBe(false)
    const agreed = await ralph(at, [...args, '--accept-config'])
    expect(agreed.code).toBe(0)
    expect(existsSync(join(at.root, 'ran'))).toBe(true)
  })

  test('H4, H5: after a kill that had hidden it: what was repaired is said, not that nothing was touched', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const deed = `case $RALPH_STORY in 1) echo 'max_retries: 9' > ralph.yaml;; 2) rm ralph.yaml; kill -9 $PPID; exit;; esac`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', `cat > /dev/null; ${deed}; ${complete}`])
    expect(end.signal).toBe('SIGKILL')
    const { code, stderr } = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect([code, existsSync(join(at.repo, 'ralph.yaml'))]).toEqual([2, true])
    expect(stderr).toMatch(
      /Repaired first: the last loop was killed .* Nothing else was touched\. .*--accept-config/,
    )
  })

  test('H4: it is named by ralph config; an edit of the user’s own needs no flag', async () => {
    const at = withGate(tasksOf(1))
    const agent = `cat > /dev/null; touch proof-1; ${edit}; ${complete}`
    await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
    const config = await ralph(at, ['config'])
    expect(config.stderr).toMatch(/ralph\.yaml.*#1 of demo.*--accept-config/)
    at.write('ralph.yaml', 'max_retries: 1\n')
    expect((await ralph(at, ['config'])).stderr).toBe('')
    expect((await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])).code).toBe(0)
  })

  test('H4: a config file that the agent deleted is not agreed to either', async () => {
    const at = withGate(tasksOf(1))
    const agent = 'cat > /dev/null; touch proof-1; rm ralph.yaml; echo "<promise>COMPLETE</promise>"'
    await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
    expect((await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])).code).toBe(2)
  })

  test('H4: in a work tree of its own the agent’s version arrives with the cleanup, merged, and is not agreed to', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const lines = (...last: string[]): string => ['# one', '# two', '# three', '# four', ...last].join('\n')
    at.write('ralph.yaml', `max_retries: 1\n${lines('verify: "true"')}\n`)
    at.git('add', '-A')
    at.git('commit', '-qm', 'gate')
    const agent = `cat > /dev/null; sed -i 's/^verify.*/webhook: http:\\/\\/127.0.0.1:9/' ralph.yaml; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', agent])
    expect(end.code).toBe(0)
    at.write('ralph.yaml', `max_retries: 2\n${lines('verify: "true"')}\n`)
    at.git('commit', '-qam', 'mine')
    expect((await ralph(at, ['config'])).stderr).toBe('')
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(at.read('ralph.yaml')).toMatch(/^max_retries: 2[^]*webhook/)
    const refused = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--accept-config')])
    expect((await ralph(at, ['finish', 'demo', '--accept-config'])).stdout).toMatch(/ralph\.yaml.*agreed/)
    expect((await ralph(at, ['config'])).stderr).toBe('')
  })

  test('H4: the user’s own file outside the repository is named when it changes during an attempt, and not agreed to', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const file = join(at.root, 'home', '.config', 'ralph', 'ralph.yaml')
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, 'max_retries: 1\n')
    const agent = `cat > /dev/null; echo "notify_command: x" > ${file}; ${failing}`
    const end = await ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent])
    expect(end.code).toBe(3)
    expect(warnings(end)).toContainEqual(
      expect.stringMatching(/\.config\/ralph\/ralph\.yaml.*notify_command/),
    )
    expect(readFileSync(file, 'utf8')).toBe('notify_command: x\n')
    expect((await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])).code).toBe(2)
  })
})

describe('O10, M3: what git would obey later', () => {
  test('O10, M3: after COMPLETE it is put back, shown, and taken over by finish --accept-config alone', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const deed = `git config core.pager "touch ${at.root}/ran"; printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit`
    const agent = `${once(deed)} ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'cleanup'])
    expect(end.code).toBe(0)
    expect(end.stdout).toMatch(
      /note: changed while #1 ran.*core\.pager.*post-commit \(new\).*ralph finish demo --accept-config/,
    )
    expect(at.git('config', '--list', '--local')).not.toContain('core.pager')
    expect(existsSync(join(at.repo, '.git/hooks/post-commit'))).toBe(false)
    const taken = await ralph(at, ['finish', 'demo', '--accept-config'])
    expect([taken.code, taken.stdout]).toEqual([
      0,
      expect.stringMatching(/core\.pager = touch.*post-commit \(new\)/),
    ])
    expect(at.git('config', 'core.pager')).toBe(`touch ${at.root}/ran`)
    expect(statSync(join(at.repo, '.git/hooks/post-commit')).mode & 0o777).toBe(0o755)
  })

  test('O10, M3: after FAILED it is put back and told in one line; resume --accept-config does not bring it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    chmodSync(join(at.repo, '.git/config'), 0o600)
    const before = readFileSync(join(at.repo, '.git/config'), 'utf8')
    const agent = `${once('git config alias.st "!touch ran"')} ${failing}`
    const end = await ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent])
    expect(end.code).toBe(3)
    expect(warnings(end).filter((message) => message.includes('alias.st'))).toHaveLength(1)
    await ralph(at, ['resume', 'demo', '--accept-config', '--agent-command', failing])
    expect(readFileSync(join(at.repo, '.git/config'), 'utf8')).toBe(before)
    expect(statSync(join(at.repo, '.git/config')).mode & 0o777).toBe(0o600)
  })

  test('O10: after a kill -9 in the attempt the next resume puts it back before any git of its own runs', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const mark = join(at.root, 'ran')
    const evil = `git config filter.x.clean "touch ${mark}; cat"; echo "* filter=x" > .git/info/attributes; echo x >> README.md; echo working`
    const agent = `cat > /dev/null; ${evil}; exec tail -f /dev/null`
    const loop = start(at, ['loop', 'demo', '--json', '--agent-command', agent])
    await loop.seen((stdout) => stdout.includes('"text":"working'))
    loop.child.kill('SIGKILL')
    await loop.ended
    const resumed = await ralph(at, ['resume', 'demo', '--json', '--agent-command', goodAgent])
    expect(resumed.code).toBe(0)
    expect(existsSync(mark)).toBe(false)
    expect(at.git('config', '--list', '--local')).not.toContain('filter.x')
    expect(existsSync(join(at.repo, '.git/info/attributes'))).toBe(false)
  })

  test('O10: a line above the first section, which git lists and cannot unset, is put back with the file', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const config = at.read('.git/config')
    const agent = `cat > /dev/null; echo notes > .git/config; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect([end.code, at.read('.git/config')]).toEqual([0, config])
    expect(end.stdout).toContain('changed while #1 ran, and put back: .git/config')
  })

  test('O10: a hook in the work tree, even an ignored one, that core.hooksPath names is told when it changed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('.husky/_/pre-commit', '#!/bin/sh\n')
    at.write('.husky/_/.gitignore', '*\n')
    at.git('config', 'core.hooksPath', '.husky/_')
    const agent = `cat > /dev/null; echo "touch x" >> .husky/_/pre-commit; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect(end.code).toBe(0)
    expect(end.stdout).toMatch(/note: #1 changed what git runs: \.husky\/_\/pre-commit/)
  })
})

test.each([complete, failing])(
  'O10: a hook that a link leads to, in the work tree or elsewhere, is told: %s',
  async (end) => {
    const at = scratch({ tasks: tasksOf(1) })
    const elsewhere = at.script('elsewhere.sh', '#!/bin/sh\n')
    at.write('scripts/check', '#!/bin/sh\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'a script')
    symlinkSync('../../scripts/check', join(at.repo, '.git/hooks/pre-push'))
    symlinkSync(elsewhere, join(at.repo, '.git/hooks/post-merge'))
    const agent = `cat > /dev/null; echo x >> scripts/check; echo x >> '${elsewhere}'; ${end}`
    const { stderr } = await ralph(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent])
    const [, names = ''] = /#1 changed what git runs: (.*)/.exec(stderr) ?? []
    // In the work tree a failed attempt is undone.
    expect(names.split(', ').toSorted()).toEqual(end === failing ? [elsewhere] : [elsewhere, 'scripts/check'])
  },
)

describe('O10, L: what a gate runs', () => {
  test.each([
    ['./check.sh', 'check.sh', 'echo "exit 0" > check.sh'],
    ['sh scripts/test.sh --all', 'scripts/test.sh', 'echo "exit 0" > scripts/test.sh'],
    ['npm test', 'package.json: test', `printf '{"scripts":{"test":"true"}}' > package.json`],
    ['make check', 'Makefile', `printf 'check:\\n' > Makefile`],
    [`CI=1 bash -c 'set -e; sh ./check.sh'`, 'check.sh', 'echo "exit 0" > check.sh'],
    [
      'cat --config=lint.config.json lint.config.json || true',
      'lint.config.json',
      'echo "{}" > lint.config.json',
    ],
  ])(
    'L, O10: changed by the attempt, it is named at the checkpoint and in the summary: %s',
    async (command, name, deed) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('check.sh', 'true\n')
      chmodSync(join(at.repo, 'check.sh'), 0o755)
      at.write('scripts/test.sh', 'true\n')
      at.write('package.json', '{"scripts":{"test":"sh check.sh"}}\n')
      at.write('Makefile', 'check:\n\ttrue\n')
      const agent = `cat > /dev/null; ${deed}; ${complete}`
      const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--verify', command])
      expect(end.code).toBe(0)
      const said = `#1 changed what a gate runs: ${name} (gate \`${command}\`)`
      expect(end.stderr).toContain(`warning: ${said}`)
      expect(end.stdout).toContain(`note: ${said}`)
    },
  )

  test.each([
    ['npm run lint', 'the script of package.json'],
    ['node --check src/greet.js', 'node'],
    ['grep -q . src/greet.js', 'another program'],
    [`sh -c 'cd . && wc -l < src/greet.js'`, 'a shell'],
  ])('W: a file that a gate only looks at is the work itself: %s (by %s)', async (command) => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('package.json', '{"scripts":{"lint":"node --check src/greet.js"}}\n')
    at.write('src/greet.js', '// old\n')
    const agent = `cat > /dev/null; echo "// new" >> src/greet.js; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--verify', command])
    expect(end.code).toBe(0)
    expect(end.stdout + end.stderr).not.toContain('what a gate runs')
  })

  test.each([
    ['node test/greet.test.mjs', 'test/greet.test.mjs', false],
    ['npm run check', 'test/greet.mjs', false],
    ['node test/run.mjs', 'test/run.mjs', true],
    ['sh test/check.sh', 'test/check.sh', true],
  ])(
    'W: a test that a gate names is a test, told as such; a runner among the tests is not: %s',
    async (command, file, isGate) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('package.json', '{"scripts":{"check":"node test/greet.mjs"}}\n')
      at.write('test/greet.mjs', "import assert from 'node:assert'\nassert.equal(1, 1)\n")
      at.write('test/greet.test.mjs', "import test from 'node:test'\ntest('a', () => {})\n")
      at.write('test/run.mjs', "import './greet.mjs'\n")
      at.write('test/check.sh', 'node test/greet.mjs; exit\n')
      const agent = `cat > /dev/null; echo "// new" >> ${file}; ${complete}`
      const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--verify', command])
      expect(end.code).toBe(0)
      expect(end.stdout.includes('what a gate runs')).toBe(isGate)
      expect(end.stdout).toContain(`tests changed: ${file}`)
    },
  )

  test('W: a script that each story changes is told once', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    at.write('check.sh', 'true\n')
    const agent = `cat > /dev/null; echo ": $RALPH_STORY" >> check.sh; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--verify', 'sh check.sh'])
    expect(end.code).toBe(0)
    expect(end.stderr.match(/changed what a gate runs/g)).toHaveLength(1)
    expect(end.stderr).toContain('#1 changed what a gate runs: check.sh')
  })

  test('L: a gate whose script is as it was is not mentioned', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('check.sh', 'true\n')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--verify', 'sh check.sh'])
    expect(end.stdout + end.stderr).not.toContain('what a gate runs')
  })
})

test('L: ralph logs takes no control characters into a pipe; --raw has every byte', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `cat > /dev/null; printf 'before \\033]52;c;ZXZpbA==\\007\\033[2J\\000after\\n'; ${failing}`
  await ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent])
  expect((await ralph(at, ['logs', 'demo'])).stdout).toMatch(
    /^▸ 1\/1 Story 1 {3}#1 of demo {3}[\d:]{8}\nbefore after\n/,
  )
  expect((await ralph(at, ['logs', 'demo', '--raw'])).stdout).toContain(
    '\u001B]52;c;ZXZpbA==\u0007\u001B[2J\u0000after',
  )
})

test('L: text that an agent adds to tasks.md stays, and is told with its size', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `cat > /dev/null; head -c 5000 /dev/zero | tr "\\0" x >> openspec/changes/demo/tasks.md; printf "\\nmore\\n" >> openspec/changes/demo/tasks.md; ${complete}`
  const end = await ralph(at, ['loop', 'demo', '--json', '--agent-command', agent])
  expect(end.code).toBe(0)
  expect(warnings(end)).toContainEqual(
    expect.stringMatching(/2 lines were added to tasks\.md \(5006 bytes\)/),
  )
})

describe('O10: which file is the plan is a setting of the run, too', () => {
  const schema =
    'name: evil\\nversion: 1\\nartifacts:\\n  - id: tasks\\n    generates: done.md\\n    description: x\\n    template: tasks.md\\n    requires: []\\napply:\\n  requires: [tasks]\\n  tracks: done.md\\n'
  const evil = `mkdir -p openspec/schemas/evil; printf '${schema}' > openspec/schemas/evil/schema.yaml; printf 'schema: evil\\n' > openspec/config.yaml; printf '## 1. One\\n- [x] 1.1 a\\n' > openspec/changes/demo/done.md`
  const saysOpen = async (at: Scratch, open: number): Promise<void> => {
    const listed = await ralph(at, ['list', '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject({
      changes: [{ name: 'demo', stories_total: 2, stories_done: 2 - open }],
    })
  }

  test.each(['COMPLETE', 'FAILED: no'])(
    'O10: an agent whose schema names another plan, already ticked (%s), makes nothing done: not now, not by resume, list, --fresh',
    async (promise) => {
      const at = scratch({ tasks: tasksOf(2) })
      // Out of git's sight: no revert would bring it back.
      at.write('.gitignore', 'openspec/config.yaml\nopenspec/schemas\n')
      at.git('add', '-A')
      at.git('commit', '-qm', 'ignored')
      const agent = `cat > /dev/null; if [ $RALPH_STORY = 1 ]; then ${evil}; echo w > w; echo "<promise>${promise}</promise>"; else ${failing}; fi`
      const loop = await ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent])
      expect(loop.code).toBe(3)
      const open = promise === 'COMPLETE' ? 1 : 2
      expect(existsSync(join(at.repo, 'openspec/config.yaml'))).toBe(false)
      expect(warnings(loop)).toContainEqual(
        expect.stringMatching(
          /^openspec\/config\.yaml was changed, and would have made done\.md the plan instead of tasks\.md; put back\. If it was you: cp -r /,
        ),
      )
      await saysOpen(at, open)
      expect(
        (await ralph(at, ['resume', 'demo', '--agent-command', `cat > /dev/null; ${failing}`])).code,
      ).toBe(3)
      await ralph(at, ['finish', 'demo', '--cleanup'])
      const fresh = await ralph(at, ['loop', 'demo', '--fresh', '--json', '--agent-command', goodAgent])
      expect(fresh.code).toBe(0)
      expect(eventsOf(fresh).filter(({ type }) => type === 'iteration.started')).toHaveLength(open)
      expect(at.read('openspec/changes/demo/tasks.md')).not.toContain('- [ ]')
    },
  )

  test('O10: a gate that does it, and a link in the place of the folder of schemas, are put back as well', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('openspec/schemas/own/schema.yaml', 'artifacts: []\napply:\n  tracks: tasks.md\n')
    at.write('openspec/config.yaml', 'schema: own\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'own schema')
    const swap = `mkdir -p x/own; printf 'artifacts: []\\napply:\\n  tracks: done.md\\n' > x/own/schema.yaml; printf '## 1. One\\n- [x] 1.1 a\\n' > openspec/changes/demo/done.md; mv openspec/schemas openspec/away; ln -s ../x openspec/schemas`
    const verify = at.script(
      'gate.sh',
      `if [ $RALPH_STORY = 1 ] && [ ! -e x ]; then ${swap}; fi; [ $RALPH_STORY = 1 ]`,
    )
    const loop = await ralph(at, [
      'loop',
      'demo',
      '--json',
      '--max-retries',
      '0',
      '--agent-command',
      goodAgent,
      '--verify',
      `sh ${verify}`,
    ])
    expect(loop.code).toBe(3)
    expect(at.read('openspec/schemas/own/schema.yaml')).toContain('tracks: tasks.md')
    expect(at.read('x/own/schema.yaml')).toContain('tracks: done.md')
    await saysOpen(at, 1)
  })

  test("O10: the schema that the user has changed since counts with --accept-config; what changes nothing about the plan is the agent's work", async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const context = 'printf "schema: spec-driven\\ncontext: We write Ada.\\n" > openspec/config.yaml'
    const agent = `cat > /dev/null; if [ $RALPH_STORY = 1 ]; then ${context}; ${complete}; else ${failing}; fi`
    const loop = await ralph(at, ['loop', 'demo', '--json', '--max-retries', '0', '--agent-command', agent])
    expect(loop.code).toBe(3)
    expect(at.read('openspec/config.yaml')).toContain('We write Ada')
    at.write('openspec/schemas/own/schema.yaml', 'artifacts: []\napply:\n  tracks: steps.md\n')
    at.write('openspec/config.yaml', 'schema: own\n')
    at.write('openspec/changes/demo/steps.md', '## 1. One\n- [x] 1.1 a\n')
    const resumed = await ralph(at, ['resume', 'demo', '--json'])
    expect(resumed.code).toBe(3)
    expect(warnings(resumed)).toContainEqual(
      expect.stringMatching(
        /the plan of this run is tasks\.md, as when it began; .* now say steps\.md.*--accept-config/,
      ),
    )
    const accepted = await ralph(at, ['resume', 'demo', '--json', '--accept-config'])
    expect(accepted.code).toBe(0)
    expect(at.state().tasks_file).toBe('openspec/changes/demo/steps.md')
  })
})
