// What a run says of itself: that it saved, took away, left open or brought back just what it did.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { goodAgent, program, ralph, scratch, start, tasksOf } from './harness.ts'
import { onTerminal } from './on-terminal.ts'
import type { Scratch } from './harness.ts'

const complete = 'cat > /dev/null; echo "<promise>COMPLETE</promise>"'

function loop(at: Scratch, agent: string, ...more: string[]) {
  return ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '0', ...more])
}

describe('what was saved', () => {
  const realTest =
    "import assert from 'node:assert'\nimport test from 'node:test'\ntest('a', () => assert.ok(1))\n"

  const idle = 'the gate passed and ran 0 tests: node --test'
  const looks = [
    ['status'],
    ['why'],
    ['report'],
    ['report', '--format', 'md'],
    ['report', '--format', 'html'],
    ['report', '--json'],
  ]

  function withTest(tasks = tasksOf(1)): Scratch {
    const at = scratch({ tasks })
    at.write('test/a.test.mjs', realTest)
    at.write('old.txt', 'old\n')
    at.write('zz.txt', 'old\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'a test')
    return at
  }

  test('a saved story names its files, the deleted ones as such, the first ones where there are many', async () => {
    const at = withTest(tasksOf(2))
    const many = 'rm zz.txt; for i in 1 2 3 4 5 6 7; do echo $i > new-$i.txt; done'
    const work = `case $RALPH_STORY in 1) rm old.txt; echo work > src.txt;; *) ${many};; esac; ${complete}`
    const { stdout } = await loop(at, work)
    expect(stdout).toMatch(/✓ saved \w+, 2 files: old\.txt \(deleted\), src\.txt /)
    expect(stdout).toMatch(/✓ saved \w+, 8 files: zz\.txt \(deleted\), new-1\.txt, .*new-4\.txt, and 3 more /)
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
    expect(stdout).toMatch(/^! done, but node --test ran 0 tests {3}1 of 1 story/m)
    for (const look of looks) {
      const { stdout: said } = await ralph(at, look)
      expect([look, said.includes(words), said.includes(idle)]).toEqual([look, true, true])
    }
    expect((await ralph(at, ['report'])).stdout).toContain('1 file: test/a.test.mjs (deleted)')
  })

  test('what weakens a gate is in the headline, and no resume and no other look forgets it; once the gate runs tests again, that is over', async () => {
    const at = withTest(tasksOf(3))
    at.write('package.json', '{"scripts":{"test":"node --test"}}\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'a gate')
    const weak =
      'rm -r test; sed s/--test/--test\\ --test-reporter=tap/ package.json > new; mv new package.json'
    const again = `mkdir test; echo "import t from 'node:test'; t('a', () => {})" > test/a.test.mjs`
    const work = `echo $RALPH_STORY >> src.txt; case $RALPH_STORY in 1) ${weak};; 2) ${again};; esac; ${complete}`
    const args = ['--verify', 'npm test']
    const first = await loop(at, work, ...args, '--story', '1')
    const changed = '#1 changed what a gate runs: package.json: test (gate '
    for (const words of [
      changed,
      'the gate passed and ran 0 tests: npm test',
      '\n! story 1 is done, 2 others are open',
    ])
      expect(first.stdout).toContain(words)
    const resumed = await ralph(at, ['resume', 'demo', '--story', '3'])
    expect([resumed.code, resumed.stdout]).toEqual([0, expect.stringContaining(changed)])
    expect((await ralph(at, ['why'])).stdout).toContain(changed)
    const last = await ralph(at, ['resume', 'demo'])
    expect(last.stdout).toMatch(/^! done, but #1 changed what npm test runs {3}3 of 3 stories/m)
    for (const look of looks) expect((await ralph(at, look)).stdout).toContain(changed)
    expect(last.stdout).not.toContain('ran 0 tests')
    const headline = 'done, but #1 changed what npm test runs'
    for (const look of [['why'], ['status'], ['report']])
      expect((await ralph(at, look)).stdout).toMatch(new RegExp(`^demo +! ${headline}`))
    expect((await ralph(at, ['list'])).stdout).toMatch(new RegExp(`^demo .*! ${headline}`, 'm'))
    for (const format of ['md', 'html'])
      expect((await ralph(at, ['report', '--format', format])).stdout).toContain(headline)
    const { changes } = JSON.parse((await ralph(at, ['list', '--json'])).stdout) as {
      changes: { warnings: string[] }[]
    }
    expect(changes[0]?.warnings.join()).toContain(changed)
  })

  test('a test that was there and is not as it was is a plain fact of the summary and the report, also after a resume; a new one is not', async () => {
    const at = withTest(tasksOf(2))
    const work = `case $RALPH_STORY in 1) echo >> test/a.test.mjs; cp test/a.test.mjs test/b.test.mjs;; *) echo work > src.txt;; esac; ${complete}`
    const words = /^ +tests changed: test\/a\.test\.mjs$/m
    const first = await loop(at, work, '--story', '1')
    expect(first.stdout).toMatch(words)
    const { stdout } = await ralph(at, ['resume', 'demo'])
    expect(stdout).toMatch(words)
    expect(stdout).toMatch(/^✓ done {3}2 of 2 stories/m)
    expect((await ralph(at, ['report'])).stdout).toMatch(/^ +tests +changed: test\/a\.test\.mjs$/m)
    expect((await ralph(at, ['report', '--format', 'md'])).stdout).toContain(
      '- tests: changed: test/a.test.mjs\n',
    )
    expect((await ralph(at, ['report', '--json'])).stdout).toContain('"tests_changed"')
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

  test('a branch that is kept is to be pushed, and to become a pull request; what is uncommitted on it is named', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('init', '-q', '--bare', join(at.repo, '../remote.git'))
    at.git('remote', 'add', 'origin', '../remote.git')
    await loop(at, good, '--on-complete', 'keep')
    const status = async () => (await ralph(at, ['status', 'demo'])).stdout
    const kept = await status()
    expect(kept).toMatch(
      /next +git push -u origin ralph\/demo .*\n +then +gh pr create --head ralph\/demo\n +or +ralph finish demo --cleanup/,
    )
    expect(kept).not.toContain('uncommitted here')
    at.write('README.md', '# mine\n')
    expect(await status()).toContain('note: uncommitted here, so ralph/demo does not have it: README.md')
    at.git('push', '-q', '-u', 'origin', 'ralph/demo')
    expect(await status()).toMatch(/next +gh pr create --head ralph\/demo +the branch is pushed/)
  })

  test('in the first commit of a kept branch: status names the squash that leaves them out, and no push', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('remote', 'add', 'origin', '../remote.git')
    at.write('notes.txt', 'secret\n')
    await loop(at, good, '--on-complete', 'keep')
    const { stdout } = await ralph(at, ['status', 'demo'])
    expect(stdout).toMatch(/next +ralph finish demo --squash +one commit, without your own notes\.txt/)
    expect(stdout).not.toContain('git push')
  })

  test('where only the plan was uncommitted, or nothing, nothing is said', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/demo/tasks.md', `${tasksOf(1)}- [ ] 1.3 third\n`)
    const { stdout } = await loop(at, good)
    expect(stdout).not.toMatch(begins)
    expect(stdout).not.toContain('first commit')
  })
})

describe('what is done', () => {
  test('a run with --story says which story is done and how many are open; the change is called open', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    const { code, stdout } = await loop(at, goodAgent, '--story', '1')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^✓ story 1 is done, 2 others are open {3}2 tasks, 1 attempt /m)
    expect(stdout).not.toContain('✓ done')
    const report = async (format: string): Promise<string> =>
      (await ralph(at, ['report', 'demo', '--format', format])).stdout
    expect((await ralph(at, ['report', 'demo'])).stdout).toMatch(/^demo {3}○ open$/m)
    expect(await report('md')).toMatch(/○ \*\*open\*\*: 1 of 3 stories/)
    expect(await report('html')).toContain('<span class="status open">open</span>')
    expect(JSON.parse(await report('json'))).toMatchObject({ status: 'done' })
  })

  test('where no story changed a file, the first line of the summary says so, and is no tick; the exit code stays', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { code, stdout } = await loop(at, complete)
    expect(code).toBe(0)
    const headline = "! done, but no file was changed: the agent's word only"
    expect(stdout).toMatch(new RegExp(`^${headline} {3}2 of 2 stories`, 'm'))
    for (const look of [['status'], ['report']]) expect((await ralph(at, look)).stdout).toContain(headline)
    expect((await ralph(at, ['list'])).stdout).toMatch(/^demo .*! done, but no file was changed {2}/m)
    const other = scratch({ tasks: tasksOf(2) })
    const half = await loop(other, `[ $RALPH_STORY = 1 ] || echo work > work.txt; ${complete}`)
    expect(half.stdout).toMatch(/^✓ done {3}2 of 2 stories/m)
  })
})

test('the time that is suggested after one that ran out is one that people type', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const { stdout } = await loop(at, 'cat > /dev/null; sleep 60', '--idle-timeout', '2s')
  expect(stdout).toMatch(/ralph resume demo --idle-timeout 4s {3}with more time/)
})

test('after Ctrl-C a file that came while it ran is not called as it was; the command that is named brings it back', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = 'cat > /dev/null; echo note > note.md; echo working; sleep 60'
  const screen = onTerminal(at, ['loop', 'demo', '--agent-command', agent, '--no-tui'])
  await screen.until((raw) => raw.includes('working'))
  screen.type('\u0003')
  expect((await screen.exited).exitCode).toBe(130)
  const said = screen.raw().replaceAll(/\s+/g, ' ')
  expect(said).toContain('with your files as at the start.')
  expect(said).toContain('Is one of the undone files yours? All of them back: ralph restore 1 demo')
  expect((await ralph(at, ['restore', '1', 'demo'])).code).toBe(0)
  expect(at.read('note.md')).toBe('note\n')
})

test('where git knows no name of the user, start and doctor say who the author of the commits is, and how to change it', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const named = await ralph(at, ['doctor'])
  expect(named.stdout).toMatch(/author +User <user@example\.invalid>/)
  const known = await loop(at, goodAgent, '--dry-run')
  at.git('config', '--unset', 'user.name')
  const words = 'git knows no name of yours, so the author of the commits is ralph <ralph@localhost>'
  const doctor = JSON.parse((await ralph(at, ['doctor', '--json'])).stdout) as { checks: object[] }
  expect(doctor.checks).toContainEqual(
    expect.objectContaining({ name: 'author', verdict: 'warning', detail: words }),
  )
  const { stderr } = await loop(at, goodAgent)
  expect([known.stdout + known.stderr, stderr].map((said) => said.includes(words))).toEqual([false, true])
  expect(at.git('log', '-1', '--format=%an <%ae>', 'ralph/demo')).toBe('ralph <ralph@localhost>')
})

test('F15: a gate that cannot fail is named before the agent is paid: at the start, in a dry run and by doctor', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('ralph.yaml', 'verify: ["false | tee log.txt"]\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'gates')
  const why = 'the gate `false | tee log.txt` cannot fail: a pipe ends as its last program does'
  for (const [stream, ...words] of [
    ['stdout', 'doctor'],
    ['stdout', 'loop', 'demo', '--dry-run', '--agent-command', goodAgent],
    ['stderr', 'loop', 'demo', '--agent-command', goodAgent],
  ] as const)
    expect((await ralph(at, words))[stream].replaceAll(/\s+/g, ' ')).toContain(why)
})

describe('a loop that runs', () => {
  test('24: while its gates run, status names the agent, what it does now, and the time', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = at.script('agent.sh', `#!/bin/sh\n${goodAgent}\n`)
    const look = `"${process.execPath}" "${program}" status demo > "${join(at.root, 'status.txt')}"`
    expect((await loop(at, agent, '--verify', look)).code).toBe(0)
    const said = readFileSync(join(at.root, 'status.txt'), 'utf8')
    expect(said).toMatch(/attempt +#1, try 1, by agent\.sh, for/)
    expect(said).toMatch(/doing +running the gates\n/)
    expect(said).toMatch(/time +\d/)
  })

  test('25: what waits for its provider is called as everywhere else', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = at.script(
      'agent.sh',
      "#!/bin/sh\necho 'usage limit reached, try again in 3 hours' >&2\nexit 1\n",
    )
    const asked = ['loop', 'demo', '--agent-command', agent, '--limit-wait', '300']
    const running = start(at, asked)
    await running.seen((text) => text.includes('usage limit reached: agent.sh is asked again at'))
    expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
    await running.ended
  })
})
