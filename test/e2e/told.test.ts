// The commands that tell and clean up, as a user reads them: each says what is so, of which change, and what to type.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import { after, scene } from './scenes.ts'
import { onTerminal } from './on-terminal.ts'
import type { Scratch } from './harness.ts'

const failing = 'echo try > try.txt; echo "<promise>FAILED: no luck</promise>"'

/** Story 1 complete, every other fails. */
const half = `case $RALPH_STORY in 1) ${goodAgent};; *) ${failing};; esac`

function words(change: string, agent: string, ...more: string[]): string[] {
  return ['loop', change, '--agent-command', agent, '--max-retries', '0', ...more]
}

function loop(at: Scratch, change: string, agent: string, ...more: string[]) {
  return ralph(at, words(change, agent, ...more))
}

const done = (stories: number, ...more: string[]): Promise<Scratch> =>
  after(words('demo', goodAgent, ...more), { tasks: tasksOf(stories), code: 0 })
const failedOnce = (...more: string[]): Promise<Scratch> =>
  after(words('demo', failing, ...more), { tasks: tasksOf(1), code: 3 })
const changedNothing = (): Promise<Scratch> =>
  after(words('demo', 'echo "<promise>FAILED: no luck</promise>"'), { tasks: tasksOf(1), code: 3 })
const halfDone = (): Promise<Scratch> => after(words('demo', half), { tasks: tasksOf(2), code: 3 })

/** `demo`, and a second change `other`. */
function twoChanges(tasks = tasksOf(1)): Scratch {
  const at = scratch({ tasks })
  at.write('openspec/changes/other/proposal.md', '# Other\n')
  at.write('openspec/changes/other/tasks.md', tasks)
  at.git('add', '-A')
  at.git('commit', '-qm', 'other')
  return at
}

describe('clean', () => {
  test('B5: deletes nothing without a yes; in a pipe it names --yes; with two changes it wants a name', async () => {
    const at = twoChanges()
    await loop(at, 'demo', failing, '--on-complete', 'cleanup')
    const refs = () => at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/attempts')
    const kept = refs()
    expect(kept).toBe('refs/ralph/demo/attempts/1')
    const asked = await ralph(at, ['clean', '--attempts'])
    expect([asked.code, asked.stdout]).toEqual([2, ''])
    expect(asked.stderr).toContain('Delete 1 attempt of demo? They cannot be brought back.')
    expect(asked.stderr).toContain('--yes')
    await loop(at, 'other', failing, '--on-complete', 'cleanup')
    const unnamed = await ralph(at, ['clean', '--attempts', '--yes'])
    expect(unnamed.code).toBe(2)
    // Both may have ended in the same second.
    expect(unnamed.stderr).toMatch(/Which change\? There are (?:other, demo|demo, other)\./)
    expect(refs()).toBe(kept)
    const { stdout } = await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    expect([stdout, refs()]).toEqual(['Deleted 1 attempt of demo.\n', ''])
    expect(at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/other/attempts')).not.toBe('')
    expect((await ralph(at, ['clean', 'demo', '--attempts'])).stdout).toBe('No attempt of demo is kept.\n')
  })

  test('G25: what ralph holds of the user’s own stays, and is named; what a branch has too, and what the agent made, goes', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('branch', 'topic')
    // Without the loop's environment it is nobody's that ralph has watched: the user's, who commits and drops a branch beside the agent.
    const user = at.script(
      'user',
      '#!/bin/sh\necho mine > mine.txt; git add mine.txt; git commit -qm "my commit"; git update-ref refs/heads/topic $(git commit-tree -m "elsewhere too" HEAD^{tree}); git branch keep topic; git update-ref -d refs/heads/topic\n',
    )
    const agent = `cat > /dev/null; git branch agents $(git commit-tree -m "agents" HEAD^{tree}); env -i PATH="$PATH" HOME="$HOME" '${user}'; ${failing}`
    await loop(at, 'demo', agent)
    const [mine] = at.git('log', '--all', '--format=%H', '--grep=my commit').split('\n')
    const holders = (): string => at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/moved')
    expect(holders()).toContain('/heads/agents')
    const asked = await ralph(at, ['clean', 'demo', '--attempts'])
    expect(asked.stderr).toMatch(
      /They cannot be brought back\. What ralph keeps of your own work \(1 ref\) stays\./,
    )
    const { stdout } = await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    const kept = `refs/ralph/demo/moved/1/beside/${mine?.slice(0, 12)}`
    expect(holders()).toBe(kept)
    expect(stdout).toContain('Deleted 1 attempt of demo.\nThese stay: they may be your own work')
    expect(stdout).toContain(`  ${kept}   ${mine?.slice(0, 12)} (my commit)\n`)
    await ralph(at, ['finish', 'demo', '--cleanup'])
    await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    at.git('reflog', 'expire', '--expire=now', '--all')
    at.git('gc', '-q', '--prune=now')
    expect(at.git('show', `${mine}:mine.txt`)).toBe('mine')
  })
})

test('after clean --attempts neither status nor why sends anybody to an attempt that is gone', async () => {
  const at = await failedOnce()
  const told = async (): Promise<string> =>
    (await ralph(at, ['status', 'demo'])).stdout + (await ralph(at, ['why', 'demo'])).stdout
  expect((await told()).match(/ralph diff 1 demo/g)).toHaveLength(2)
  await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
  expect(await told()).not.toMatch(/ralph (?:diff|restore)/)
})

describe('what is true of the change', () => {
  const stateOf = async (at: Scratch): Promise<string> => {
    const row = (await ralph(at, ['list'])).stdout.split('\n').find((line) => line.startsWith('demo '))
    return row?.split(/ {2,}/)[3] ?? ''
  }

  test('B6: done is what the boxes say: after --story, and after the work was thrown away, list and status say open', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, 'demo', goodAgent, '--story', '1', '--on-complete', 'cleanup')
    expect(at.state().status).toBe('done')
    expect(await stateOf(at)).toBe('○ open (last run: done)')
    const part = (await ralph(at, ['status', 'demo'])).stdout
    expect(part).toMatch(/^demo {2}○ open {2}\(last run: done\)\n {2}stories +1\/2 done\n/)
    expect(part).toMatch(/^ {2}next +ralph loop demo +run the 1 open story$/m)
    await loop(at, 'demo', goodAgent, '--on-complete', 'cleanup')
    expect(await stateOf(at)).toBe('✓ done')
    at.git('restore', '.')
    expect(await stateOf(at)).toBe('○ open (last run: done)')
    const thrown = (await ralph(at, ['status', 'demo'])).stdout
    expect(thrown).toContain('0/2 done in this checkout (the run had 2)')
    expect(JSON.parse((await ralph(at, ['status', '--json'])).stdout)).toMatchObject({ status: 'done' })
  })

  test.each([
    ['a box is opened again', (text: string) => text.replace(/\[x\](?![\s\S]*\[x\])/, '[ ]'), '1/2'],
    ['a story is added', (text: string) => `${text}\n## 3. Three\n\n- [ ] 3.1 more\n`, '2/3'],
  ])(
    'B6, found by an attack: %s after the run was done, before it is finished: nothing says done or advises to archive',
    async (_, edit, count) => {
      const at = await done(2)
      expect((await ralph(at, ['statusline'])).stdout).toContain('2/2 done')
      const tasks = 'openspec/changes/demo/tasks.md'
      at.write(tasks, edit(at.read(tasks)))
      const shown = (await ralph(at, ['status', 'demo'])).stdout
      expect(shown).toMatch(/^demo {2}○ open {2}\(last run: done\)\n/)
      expect(shown).toContain(`${count} done`)
      expect(shown).toMatch(/^ {2}next +ralph resume demo +run the 1 open story$/m)
      expect((await ralph(at, ['statusline'])).stdout).toBe(`○ demo ${count} open\n`)
      const why = (await ralph(at, ['why', 'demo'])).stdout
      expect(why).toContain('every story that it was asked for was complete; 1 story is open now')
      const squashed = (await ralph(at, ['finish', 'demo', '--squash'])).stdout
      expect(squashed).toContain('  next   ralph loop demo   run what is open')
      expect(squashed).not.toContain('archive demo')
    },
  )

  test('F15: a squash of some of the stories says how many they are', async () => {
    const at = await halfDone()
    const { stdout } = await ralph(at, ['finish', 'demo', '--squash'])
    expect(stdout).toMatch(/one commit on main[^]*It has 1 of 2 stories\./)
  })

  test('B6: in a work tree of its own: a box that is opened again there is open', async () => {
    const at = await done(1, '--worktree')
    const tasks = join(`${at.repo}-ralph-demo`, 'openspec/changes/demo/tasks.md')
    writeFileSync(tasks, readFileSync(tasks, 'utf8').replaceAll('[x]', '[ ]'))
    const shown = (await ralph(at, ['status', 'demo'])).stdout
    expect(shown).toMatch(/^demo {2}○ open {2}\(last run: done\)\n/)
    expect(shown).toContain('0/1 done there now (the run had 1)')
  })

  test('B6: kept on its branch: list says where it is done, and nothing is called open', async () => {
    const at = await done(1)
    expect(await stateOf(at)).toBe('✓ done')
    at.git('switch', '-q', 'main')
    expect(await stateOf(at)).toBe('✓ done on ralph/demo')
  })

  test('B12: a cleanup ends a run that was not done: no unfinished run, and the next loop runs what is left', async () => {
    const at = await halfDone()
    const { stdout } = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(stdout).toContain('  next   ralph resume demo   run what is left, with the same agent')
    at.git('add', '-A')
    at.git('commit', '-qm', 'half of it')
    const looked = (await ralph(at, ['status', 'demo'])).stdout
    expect(looked).toMatch(/^ {2}next +ralph resume demo +run the 1 open story$/m)
    expect(looked.match(/next/g)).toHaveLength(1)
    const again = await loop(at, 'demo', goodAgent)
    expect([again.code, at.state().iterations.map((each) => each.story_id)]).toEqual([0, ['2']])
    expect((await ralph(at, ['attempts', 'demo', '--json'])).stdout).toContain('no luck')
  })

  test('B12: the resume that is advised after the cleanup of a halted run keeps its agent and gates', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `[ -e ../well ] && { ${goodAgent}; exit; }; ${half}`
    expect((await loop(at, 'demo', agent, '--verify', 'touch ../gated')).code).toBe(3)
    await ralph(at, ['finish', 'demo', '--cleanup'])
    for (const command of ['status', 'why'])
      expect((await ralph(at, [command, 'demo'])).stdout).not.toContain('ralph loop')
    at.write('../well', '')
    rmSync(join(at.root, 'gated'))
    const resumed = await ralph(at, ['resume', 'demo'])
    expect(resumed.code).toBe(0)
    // The whole is shown where it goes on, too.
    expect(resumed.stdout).toMatch(/^[▸✓○] 1 Story 1.* {3}1 of 2 stories done, 4 tasks/m)
    expect(existsSync(join(at.root, 'gated'))).toBe(true)
  })

  test('B12: merged by hand and the branch deleted: nothing is left to finish', async () => {
    const at = await done(1)
    at.git('switch', '-q', 'main')
    at.git('merge', '-q', 'ralph/demo')
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('it is merged: only its branch is deleted')
    at.git('branch', '-d', 'ralph/demo')
    const { stdout } = await ralph(at, ['status', 'demo'])
    expect(stdout).toContain('merged into main; ralph/demo is deleted')
    expect(stdout).not.toContain('next')
  })

  test('B6: resume without a name, and no run is left: said so, with no advice to start one again', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    at.git('add', '-A')
    at.git('commit', '-qm', 'other')
    const none = await ralph(at, ['resume'])
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('There is no run to resume.')])
    for (const name of ['demo', 'other']) {
      expect((await loop(at, name, goodAgent)).code).toBe(0)
      expect((await ralph(at, ['finish', name, '--squash'])).code).toBe(0)
    }
    const { code, stderr } = await ralph(at, ['resume'])
    expect([code, stderr]).toEqual([
      2,
      // Two that began in the same second have no order.
      expect.stringMatching(
        /There is no run left to resume: (?:other, demo|demo, other) are done\.\n.*ralph list/,
      ),
    ])
    expect(stderr).not.toMatch(/open changes|ralph loop/)
    const start = await ralph(at, ['loop'])
    expect(start.stderr).toContain('No task is open in any of the 2 changes: demo, other')
    at.write(
      'openspec/changes/demo/tasks.md',
      `${at.read('openspec/changes/demo/tasks.md')}\n${tasksOf(2).slice(tasksOf(1).length)}`,
    )
    expect((await ralph(at, ['resume', '--agent-command', goodAgent])).code).toBe(0)
    expect(at.read('story-2.txt')).toBe('work of 2\n')
  })

  test('B13: after a cleanup the own work tree is named with the command that removes it, until it is removed', async () => {
    const at = await done(1, '--worktree', '--on-complete', 'cleanup')
    const tree = join(at.root, 'repo-ralph-demo')
    const { stdout } = await ralph(at, ['status', 'demo'])
    const command = `git worktree remove ${tree}`
    expect(stdout).toContain(`then        ${command}   the loop's own folder`)
    at.git(...command.split(' ').slice(1))
    expect(existsSync(tree)).toBe(false)
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('worktree remove')
  })
})

test("E2: what is ignored or hidden in the loop's own work tree is named before its removal is advised", async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('.gitignore', '*.env\ngen/\nnode_modules/\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'rules')
  at.write('copied.env', 'the same\n')
  const agent = `mkdir -p gen node_modules; echo w > gen/w.js; echo m > node_modules/m; ${goodAgent}`
  const { code } = await loop(at, 'demo', agent, '--worktree', '--verify', 'test -f gen/w.js')
  expect(code).toBe(0)
  const tree = join(at.root, 'repo-ralph-demo')
  at.write('../repo-ralph-demo/prod.env', 'precious\n')
  at.write('../repo-ralph-demo/copied.env', 'the same\n')
  at.git('-C', tree, 'update-index', '--skip-worktree', 'README.md')
  at.write('../repo-ralph-demo/README.md', 'edited in hiding\n')
  const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
  const status = await ralph(at, ['status', 'demo'])
  expect([finish.code, status.code]).toEqual([0, 0])
  expect(finish.stdout).not.toMatch(/everything/i)
  for (const { stdout } of [finish, status]) {
    expect(stdout).toMatch(/README\.md, gen\/, prod\.env, node_modules\//)
    expect(stdout).not.toMatch(/copied\.env|next\s+git worktree remove|then\s+git worktree remove/)
  }
  // What can be made again, and what the checkout has, is no reason to wait.
  at.git('-C', tree, 'checkout', '-q', '--', '.')
  at.git('-C', tree, 'update-index', '--no-skip-worktree', 'README.md')
  at.git('-C', tree, 'checkout', '-q', '--', '.')
  for (const name of ['prod.env', 'gen']) rmSync(join(tree, name), { recursive: true })
  expect((await ralph(at, ['status', 'demo'])).stdout).toContain(`git worktree remove ${tree}`)
})

for (const choice of ['cleanup', 'squash'])
  test(`O12: finish --${choice} leaves the loop's own work tree on a branch of the user's, and no advice removes it`, async () => {
    const at = await done(1, '--worktree')
    const tree = join(at.root, 'repo-ralph-demo')
    at.git('-C', tree, 'switch', '-qc', 'mine')
    at.write('../repo-ralph-demo/own.txt', 'my own\n')
    at.git('-C', tree, 'add', '-A')
    at.git('-C', tree, 'commit', '-qm', 'my own')
    const own = at.git('-C', tree, 'rev-parse', 'HEAD')
    const finish = await ralph(at, ['finish', 'demo', `--${choice}`])
    expect([finish.code, at.git('-C', tree, 'symbolic-ref', 'HEAD')]).toEqual([0, 'refs/heads/mine'])
    expect([at.git('-C', tree, 'rev-parse', 'HEAD'), at.git('-C', tree, 'status', '--short')]).toEqual([
      own,
      '',
    ])
    expect(finish.stdout + finish.stderr).not.toMatch(/worktree remove|not brought/)
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('worktree remove')
  })

test("O12: a commit that only the loop's own work tree leads to is named before its removal is advised", async () => {
  const at = await done(1, '--worktree', '--on-complete', 'cleanup')
  const tree = join(at.root, 'repo-ralph-demo')
  at.write('../repo-ralph-demo/own.txt', 'my own\n')
  at.git('-C', tree, 'add', '-A')
  at.git('-C', tree, 'commit', '-qm', 'my own')
  const own = at.git('-C', tree, 'rev-parse', 'HEAD').slice(0, 12)
  const { stdout } = await ralph(at, ['status', 'demo'])
  expect(stdout).toContain(`commit ${own} (git branch NAME ${own} keeps it)`)
  expect(stdout).not.toMatch(/(?:next|then)\s+git worktree remove/)
  at.git('branch', 'mine', own)
  expect((await ralph(at, ['status', 'demo'])).stdout).toContain(`git worktree remove ${tree}`)
})

describe('what happened', () => {
  const gate = 'test ! -f try.txt || { echo "TAP version 13"; echo "not ok 1 - says hello"; exit 1; }'
  const stuck = (): Promise<Scratch> => {
    const agent = `case $RALPH_STORY in 1) ${goodAgent};; *) echo try > try.txt; echo "<promise>COMPLETE</promise>";; esac`
    const args = ['loop', 'demo', '--agent-command', agent, '--max-retries', '1', '--verify', gate]
    return after(args, { tasks: tasksOf(2), code: 3 })
  }
  /** The user's own file was there before. */
  const savedNothing = (): Promise<Scratch> =>
    scene('an own file, then a gate that fails', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('mine.txt', 'mine\n')
      expect((await loop(at, 'demo', goodAgent, '--verify', 'false')).code).toBe(3)
      return at
    })

  test('B5: of a gate whose format nobody knows why shows the last lines, and the reason is the one that complains', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const check = at.script(
      'check',
      '#!/bin/sh\nseq 9; echo "widget 3 is missing"; echo "see the manual"; echo bye; exit 4\n',
    )
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      '--max-retries',
      '0',
      '--verify',
      check,
    ])
    expect(end.stdout).toContain('failed (exit 4): widget 3 is missing')
    const { stdout } = await ralph(at, ['why'])
    expect(stdout).toContain(
      `because  ${check} failed (exit 4):\n             8\n             9\n             widget 3 is missing\n             see the manual\n             bye\n`,
    )
    expect(stdout).not.toContain('the same failure')
    expect(stdout).toContain(
      'safe     0 of 1 story done; no attempt is saved yet on ralph/demo (you are on it), from main',
    )
    expect(JSON.parse((await ralph(at, ['why', '--json'])).stdout)).toMatchObject({
      failed_gate: {
        command: check,
        exit_code: 4,
        lines: ['8', '9', 'widget 3 is missing', 'see the manual', 'bye'],
      },
    })
  })

  test('F29: after restore and resume, in a pipe, what was brought back is not called nothing', async () => {
    const at = await savedNothing()
    await ralph(at, ['restore', '1', 'demo'])
    const end = await ralph(at, ['resume', 'demo', '--agent-command', failing])
    expect(end.stdout).toContain(
      'No story of this run is done yet: ralph/demo (you are on it) is as it began.',
    )
    expect(end.stdout).not.toMatch(/nothing/i)
    expect(at.git('ls-tree', '-r', '--name-only', 'ralph/demo')).toContain('story-1.txt')
  })

  test('F29: a run in a work tree that saved nothing, while main moved on: its branch and main each have a sentence that is true', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const how = ['--agent-command', failing, '--max-retries', '0']
    await ralph(at, ['loop', 'demo', '--worktree', ...how])
    at.git('commit', '-q', '--allow-empty', '-m', 'of the user')
    const { stdout } = await ralph(at, ['resume', 'demo', ...how])
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /No story of this run is done yet: ralph\/demo \(in the work tree \S+\) is as it began; main has moved since the loop began \(\w+ → \w+\)\. This loop has not changed main\./,
    )
  })

  test('the plan is on the branch of the loop alone, and stories are open there: resume runs what status says that it runs', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/two/tasks.md', tasksOf(2))
    at.write('openspec/changes/two/proposal.md', '# Two\n')
    await ralph(at, ['loop', 'two', '--story', '1', '--agent-command', goodAgent])
    at.git('switch', '-q', 'main')
    expect((await ralph(at, ['status', 'two'])).stdout).toMatch(
      /\n {2}next +ralph resume two +run the 1 open story\n/,
    )
    const end = await ralph(at, ['resume', 'two'])
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining('✓ done   2 of 2 stories')])
  })

  test("B9, F11: finish of a run that saved nothing says so, in sentences; what is the user's own is back", async () => {
    const at = await savedNothing()
    const { stdout } = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(stdout).toMatch(
      /^The loop has saved nothing, so nothing is brought to main but your own uncommitted files\. The branch ralph\/demo is deleted, its commits are kept as refs\/ralph\/demo\/archive\/\w+\.\n/,
    )
    expect([at.git('branch', '--show-current'), at.git('status', '--porcelain')]).toEqual([
      'main',
      '?? mine.txt',
    ])
    // Nor does anything else call the user's own file the loop's work.
    const [status, why, report, again] = await Promise.all(
      [['status'], ['why'], ['report'], ['finish', '--cleanup']].map((words) => ralph(at, words)),
    )
    expect(status?.stdout).toMatch(/^ {2}work +nothing was saved; main is as you left it$/m)
    expect(why?.stdout).toMatch(/^ {2}safe +0 of 1 story done; nothing was saved; main is as you left it$/m)
    expect(report?.stdout).toMatch(/^ *work +nothing was saved; main is as it was left$/m)
    expect(again?.stdout).toContain('demo is finished already: it had saved nothing')
    for (const said of [status, why]) {
      expect(said?.stdout).not.toContain('git status')
      // As the loop's own last lines: without other words the same comes again.
      expect(said?.stdout).toContain('ralph resume demo --feedback "…"')
    }
  })

  test('F13: history, attempts and config show long values whole: wrapped on a terminal, not cut', async () => {
    const at = await stuck()
    const long = `${'--flag '.repeat(14)}last-word`
    at.write('ralph.yaml', `agent_command: ./agent ${long}\n`)
    for (const [command, word] of [
      ['history', 'says hello'],
      ['attempts', 'says hello'],
      ['config', 'last-word'],
    ] as const) {
      const screen = onTerminal(at, [command], at.repo, 80)
      await screen.exited
      const text = screen.raw().replaceAll(/\s+/g, ' ')
      expect(text, command).toContain(word)
    }
  })

  test('F26: why says what, since when, what is safe and where, and what to type; each advised command works; the trace is apart', async () => {
    const at = await stuck()
    const { stdout, stderr } = await ralph(at, ['why'])
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^demo {2}✕ stuck {2}since \d\d:\d\d, (?:just now|\S+.* ago)\n/)
    expect(stdout).toContain('what     story 2 "Story 2" failed 2 times in a row (#2, #3); no retry is left')
    expect(stdout).toMatch(
      /because .*failed \(exit 1\):\n {13}says hello\n {11}the gate passes without the agent's work\n {11}the same failure each time\n/,
    )
    expect(stdout).toContain(
      'safe     1 of 2 stories done; the work is on ralph/demo (you are on it), from main',
    )
    expect(stdout).not.toMatch(/^ +rule:/m)
    const advised = [...stdout.matchAll(/ralph ((?:diff|logs|why) (?:\S+ )+?) /g)].map(([, words = '']) =>
      words.trim(),
    )
    expect(advised).toEqual(['diff 3 demo', 'logs demo --gate 3', 'logs 3 demo', 'why demo --trace'])
    for (const words of advised) expect((await ralph(at, words.split(' '))).code, words).toBe(0)
    for (const words of [
      ['demo', '--gate'],
      ['--gate', 'demo'],
    ])
      expect((await ralph(at, ['logs', ...words])).stdout).toContain('not ok 1')
    expect((await ralph(at, ['why', '--trace'])).stdout).toMatch(/^demo\n[^]*^ +rule:/m)
    await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect((await ralph(at, ['why'])).stdout).toContain('all stories are complete')
  })

  test('B7: after a resume a story that failed before has not failed "once"', async () => {
    const at = await changedNothing()
    const end = await ralph(at, ['resume', 'demo'])
    expect([end.code, end.stdout]).toEqual([
      3,
      expect.stringContaining('story 1 "Story 1" failed once more (2 times in all)'),
    ])
  })

  test('F31: a story or a task where a number is wanted: its attempts are named, with the command', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, 'demo', half, '--max-retries', '1')
    const said = async (...args: string[]) => {
      const { code, stdout, stderr } = await ralph(at, args)
      expect([code, stdout]).toEqual([2, ''])
      return stderr
    }
    expect(await said('diff', '2.1')).toBe(
      'error: 2.1 is not the number of an attempt: the attempts of story 2 of demo are #2 (failed), #3 (failed).\n  See one: ralph diff 3 demo. All of them: ralph attempts demo\n',
    )
    expect(await said('diff', '1.2', 'demo')).toContain('story 1 of demo are #1 (complete)')
    expect(await said('diff', '7.1')).toContain('the attempts of demo are #1 (complete), #2 (failed), #3')
    expect(await said('restore', '2.1')).toContain('the number of an attempt, such as 3')
  })

  test('F32: diff alone is the last attempt that failed, --stat only how much, --all all that was saved; nothing changed is said', async () => {
    const at = await stuck()
    const alone = (await ralph(at, ['diff'])).stdout
    expect(alone).toBe((await ralph(at, ['diff', '3', 'demo'])).stdout)
    expect(alone).toContain('+try')
    expect((await ralph(at, ['diff', '--stat'])).stdout).toBe(
      ' try.txt | 1 +\n 1 file changed, 1 insertion(+)\n',
    )
    const all = (await ralph(at, ['diff', 'demo', '--all'])).stdout
    expect(all).toContain('+work of 1')
    expect(all).not.toContain('try.txt')
    at.git('stash', '-uq')
    at.git('switch', '-q', 'main')
    execFileSync('git', ['apply', '--check', '-'], { cwd: at.repo, env: at.env, input: all })
    const idle = await changedNothing()
    expect(await ralph(idle, ['diff'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '#1 of demo changed no file.\n',
    })
  })

  test('F32: what its user has committed between a cleanup and a resume is not the work of the run', async () => {
    const at = await stuck()
    await ralph(at, ['finish', 'demo', '--cleanup'])
    at.git('add', '-A')
    at.git('commit', '-qm', 'taken')
    at.write('other.txt', 'mine\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'mine')
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect([resumed.code, resumed.stderr]).toEqual([0, ''])
    const all = (await ralph(at, ['diff', 'demo', '--all', '--stat'])).stdout
    expect(all).toContain(' story-1.txt ')
    expect(all).toContain(' story-2.txt ')
    expect(all).not.toContain('other.txt')
    expect((await ralph(at, ['report', 'demo'])).stdout).not.toContain('other.txt')
  })

  test('B16: without a name every report says of which change it is', async () => {
    const at = twoChanges()
    await loop(at, 'demo', failing, '--on-complete', 'cleanup')
    await loop(at, 'other', failing, '--on-complete', 'cleanup')
    // Both may have ended in the same second.
    const { change_id: name } = JSON.parse((await ralph(at, ['history', '--json'])).stdout) as {
      change_id: string
    }
    expect(['demo', 'other']).toContain(name)
    for (const command of ['history', 'attempts', 'why', 'report'])
      expect((await ralph(at, [command])).stdout, command).toMatch(new RegExp(`^${name}\\b`))
    expect((await ralph(at, ['learnings'])).stdout).toContain(name)
    expect(JSON.parse((await ralph(at, ['diff', '--json'])).stdout)).toMatchObject({
      change_id: name,
      n: 1,
    })
    for (const command of ['history', 'attempts', 'why', 'logs', 'diff', 'report'])
      expect((await ralph(at, [command, '--help'])).stdout.replaceAll(/\s+/g, ' '), command).toContain(
        'default: the running one, else the one of this work tree, else the latest',
      )
  })

  test('F29: restore into a folder says so, and that the work tree is as it was', async () => {
    const at = await stuck()
    const to = join(at.root, 'out')
    const { stdout } = await ralph(at, ['restore', '3', '--to', to])
    expect(stdout).toBe(`What #3 of demo had left is in ${to} now; your work tree is as it was.\n`)
    expect(existsSync(join(to, 'try.txt'))).toBe(true)
  })
})

describe('the report', () => {
  test('F41: names agent, model, gates, branch and the files of each story, in every format; --output and --open', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, 'demo', goodAgent, '--model', 'm-1', '--verify', 'true')
    for (const format of ['text', 'md', 'html', 'json']) {
      const { stdout } = await ralph(at, ['report', '--format', format])
      const agent = format === 'json' ? '"command"' : 'your own agent'
      for (const word of [agent, 'm-1', 'true', 'ralph/demo', 'main', 'story-1.txt'])
        expect(stdout, format).toContain(word)
    }
    const bin = join(at.root, 'bin')
    mkdirSync(bin)
    const seen = join(at.root, 'seen')
    for (const name of ['xdg-open', 'open']) at.script(`bin/${name}`, `#!/bin/sh\necho "$1" > "${seen}"\n`)
    const env = { PATH: `${bin}:${at.env['PATH'] ?? ''}` }
    const shown = await ralph(at, ['report', '--output', '../r.html', '--open'], { env })
    const file = join(at.root, 'r.html')
    expect(shown).toMatchObject({ code: 0, stdout: `The report of demo is in ${file}\n`, stderr: '' })
    expect(readFileSync(file, 'utf8')).toBe((await ralph(at, ['report', '--format', 'html'])).stdout)
    expect(readFileSync(seen, 'utf8')).toBe(`${file}\n`)
    const failed = at.script('bin/xdg-open', '#!/bin/sh\nexit 3\n')
    at.script('bin/open', readFileSync(failed, 'utf8'))
    const unopened = await ralph(at, ['report', '--output', '../r.md', '--open'], { env })
    expect(unopened.stderr).toContain('could not be opened')
    expect(readFileSync(join(at.root, 'r.md'), 'utf8')).toContain('# ralph: demo')
  })
})

describe('the small ones', () => {
  test('F30: --feedback is acknowledged', async () => {
    const at = await failedOnce()
    const words = ['--feedback', 'mind the gap']
    const { stdout } = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, ...words])
    expect(stdout).toContain('The next prompt has your words: mind the gap')
  })

  test('F10: -C works from another folder, -v and version tell the version', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const there = await ralph(at, ['-C', at.repo, 'list'], { cwd: at.root })
    expect([there.code, there.stdout]).toEqual([0, (await ralph(at, ['list'])).stdout])
    const inside = await ralph(at, ['show', 'demo', '-C', 'repo'], { cwd: at.root })
    expect(inside.stdout).toContain('Story 1')
    const { stdout } = await ralph(at, ['--version'])
    for (const word of ['-v', '-V', 'version']) expect((await ralph(at, [word])).stdout).toBe(stdout)
  })

  test('F7: show of a change without a plan says so, and what to write', async () => {
    const at = scratch({ tasks: '' })
    const { stdout } = await ralph(at, ['show', 'demo'])
    expect(stdout).toContain('It has no tasks yet.')
    expect(stdout).toContain('- [ ] 1.1')
  })
})

describe('what is not there', () => {
  test('logs --gate and diff say which: no such attempt, no gate ran, nothing is kept', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, 'demo', failing, '--verify', 'true')
    const said = async (...args: string[]) => (await ralph(at, args)).stderr
    expect(await said('logs', '--gate', '99')).toContain('There is no attempt #99 of demo.')
    expect(await said('logs', '--gate', '1')).toContain('Attempt #1 of demo ended before a gate ran')
    expect(await said('logs', '--gate')).toContain('No gate has run for demo')
    await ralph(at, ['clean', 'demo', '--attempts', '--yes'])
    const cleaned = await said('diff', '1', 'demo')
    expect(cleaned).toContain('None is kept. What ran: ralph history demo')
    expect(cleaned).not.toContain('yet')
  })
})

test('on the branch of another change: it names that branch, and the switch that leads home works', async () => {
  const at = twoChanges()
  await loop(at, 'demo', goodAgent)
  const { code, stderr } = await loop(at, 'other', goodAgent)
  expect(code).toBe(2)
  expect(stderr).toContain('you are still on ralph/demo')
  const [, home = ''] = /First: git switch (\S+)/.exec(stderr) ?? []
  at.git('switch', '-q', home)
  expect((await loop(at, 'other', goodAgent)).code).toBe(0)
})

test('a story whose agent only ticked its boxes is told as one that changed no file', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const ticks = `sed -i "s/^- \\[ \\] $RALPH_STORY/- [x] $RALPH_STORY/" openspec/changes/demo/tasks.md`
  const both = `${ticks}; [ $RALPH_STORY = 1 ] || echo work > work.txt; echo "<promise>COMPLETE</promise>"`
  const { code, stdout } = await loop(at, 'demo', both)
  expect(code).toBe(0)
  expect(stdout.match(/saved \w+.*/g)?.map((line) => line.includes('(no file changed)'))).toEqual([
    true,
    false,
  ])
  const words = "story 1 changed no file: the agent's word only"
  expect(stdout.match(/story \S+ changed no file.*/g)).toEqual([words])
  for (const look of [['status'], ['why'], ['history'], ['report'], ['report', '--format', 'html']])
    expect((await ralph(at, look)).stdout.replaceAll('&#39;', "'")).toContain(words)
})

test('a story called complete that changed no file is marked where it is saved, and named at the end', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const idle = `case $RALPH_STORY in 1) ${goodAgent};; *) echo "<promise>COMPLETE</promise>";; esac`
  const { code, stdout } = await loop(at, 'demo', idle)
  expect(code).toBe(0)
  expect(stdout.match(/saved \w+.*/g)?.map((line) => line.includes('(no file changed)'))).toEqual([
    false,
    true,
  ])
  expect(stdout.match(/story \S+ changed no file.*/g)).toEqual([
    "story 2 changed no file: the agent's word only",
  ])
})

test('usage where no agent reported any says so, and calls nothing free', async () => {
  const at = await done(2)
  const { stdout } = await ralph(at, ['usage', '--since', '1h'])
  expect(stdout).toContain('2 attempts reported no tokens')
  expect(stdout).not.toContain('$0.00')
})

describe('report into a file', () => {
  test('a folder that is not there, a folder, and an ending that is no format are each a sentence and exit 2', async () => {
    const at = await done(1)
    const into = async (...args: string[]) => {
      const { code, stderr } = await ralph(at, ['report', 'demo', '--output', ...args])
      expect(stderr).not.toMatch(/^\s+at |node:/m)
      return [code, stderr] as const
    }
    expect(await into('../nope/x.md')).toEqual([2, expect.stringContaining('there is no such folder')])
    expect(await into('openspec')).toEqual([2, expect.stringContaining('it is a folder')])
    expect(await into('../x.pdf')).toEqual([2, expect.stringContaining('.md, .html, .json or .txt')])
    expect(existsSync(join(at.root, 'x.pdf'))).toBe(false)
    expect((await into('../x.pdf', '--format', 'html'))[0]).toBe(0)
    expect(readFileSync(join(at.root, 'x.pdf'), 'utf8')).toContain('<html')
    expect((await into('../x.txt'))[0]).toBe(0)
  })
})

test('after a resume the time of the run has that of the gates before it, too', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const gated = await loop(at, 'demo', goodAgent, '--verify', 'sleep 0.2; false', '--json')
  const gates = eventsOf(gated).flatMap((event) => (event.type === 'gate.ended' ? [event.duration_ms] : []))
  expect(gates).toHaveLength(1)
  const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
  const begun = eventsOf(resumed).find((event) => event.type === 'loop.started')
  expect(begun?.type === 'loop.started' && (begun.spent?.duration_ms ?? 0)).toBeGreaterThanOrEqual(
    gates[0] ?? 0,
  )
})

describe('hints', () => {
  test('B11: attempts advises no diff of an attempt that changed nothing, and diff alone takes the last that changed anything', async () => {
    const at = await changedNothing()
    const none = (await ralph(at, ['attempts', 'demo'])).stdout
    expect(none).toMatch(/^#1 .*no luck \(no file changed\)$/m)
    expect(none).not.toMatch(/ralph (?:diff|restore)/)
    const idle =
      'case $RALPH_ITERATION in 2) echo try > try.txt;; esac; echo "<promise>FAILED: again</promise>"'
    await ralph(at, ['resume', 'demo', '--max-retries', '1', '--agent-command', idle])
    expect(at.state().iterations).toHaveLength(3)
    expect((await ralph(at, ['attempts', 'demo'])).stdout).toContain('ralph diff 2 demo')
    expect((await ralph(at, ['diff'])).stdout).toContain('try.txt')
  })

  test('name their change: where another has run since, each printed command still opens the one it was printed for', async () => {
    const at = twoChanges()
    const fails = `echo $RALPH_CHANGE > try.txt; ${goodAgent}`
    const { stdout } = await loop(
      at,
      'demo',
      fails,
      '--worktree',
      '--verify',
      'seq 30; echo demo-gate; exit 1',
    )
    expect(stdout).toMatch(/^ {4}kept as #1: ralph diff 1 demo$/m)
    const told = (await ralph(at, ['attempts', 'demo'])).stdout + (await ralph(at, ['status', 'demo'])).stdout
    await loop(at, 'other', goodAgent, '--worktree')
    const hints = [...`${stdout}\n${told}`.matchAll(/ralph ((?:diff|logs|restore)(?: (?:\d+|demo|--\S+))+)/g)]
    const lines = [...new Set(hints.map(([, line = '']) => line))]
    expect(lines.toSorted()).toEqual(['diff 1 demo', 'logs demo --gate 1', 'restore 1 demo'])
    expect((await ralph(at, ['diff', '1', 'demo'])).stdout).toContain('try.txt')
    expect((await ralph(at, ['logs', 'demo', '--gate', '1'])).stdout).toContain('demo-gate')
    expect((await ralph(at, ['restore', '1', 'demo'])).code).toBe(0)
    expect(existsSync(join(at.repo, 'try.txt'))).toBe(true)
  })

  test('a change whose name begins with a digit is no number of an attempt', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('mv', 'openspec/changes/demo', 'openspec/changes/2-step')
    at.git('commit', '-qm', 'named')
    const { stdout } = await loop(at, '2-step', goodAgent)
    expect(stdout).toContain('ralph diff --all 2-step ')
    expect((await ralph(at, ['diff', '--all', '2-step'])).stdout).toContain('diff --git')
  })
})

test.each(['branch', 'stash'])(
  'status does not count boxes that an agent has ticked in an attempt that died (%s)',
  async (strategy) => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `cat > /dev/null; sed -i 's/\\[ \\]/[x]/' openspec/changes/demo/tasks.md; touch ../ticked; exec sleep 600`
    const running = start(at, ['loop', 'demo', '--checkpoint', strategy, '--agent-command', agent])
    while (!existsSync(join(at.root, 'ticked'))) await delay(20)
    running.child.kill('SIGKILL')
    await running.ended
    await ralph(at, ['stop', 'demo'])
    const { stdout } = await ralph(at, ['status', 'demo'])
    expect(stdout).toContain('died')
    expect(stdout).toMatch(/stories +0\/1 done\n/)
  },
)

describe('a file that the user saves in the very moment in which ralph writes it', () => {
  const writes = '*"checkout-index --ignore-skip-worktree-bits"*'
  const adds = (line: string): string => `echo ${line} >> README.md; `

  /** A git before which, once, the user saves README.md. */
  function savedBefore(at: Scratch, pattern: string): NodeJS.ProcessEnv {
    const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim()
    const save = `[ -e ../saved ] || { : > ../saved; echo saved > "${at.repo}/README.md"; }`
    mkdirSync(join(at.root, 'bin'))
    at.script('bin/git', `#!/bin/sh\ncase "$*" in ${pattern}) ${save};; esac\nexec ${git} "$@"\n`)
    return { PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}` }
  }

  test.for([{ where: 'from a work tree of its own' }, { where: 'to the branch that the user has gone to' }])(
    'O3: finish --cleanup $where: it stays, and is named with what was to be there; never everything',
    async ({ where }) => {
      const at = scratch({ tasks: tasksOf(1) })
      const own = where.startsWith('from') ? ['--worktree'] : []
      await loop(at, 'demo', adds('loop') + goodAgent, '--on-complete', 'keep', ...own)
      if (own.length === 0) at.git('switch', '-q', 'main')
      const end = await ralph(at, ['finish', 'demo', '--cleanup'], { env: savedBefore(at, writes) })
      expect([end.code, at.read('README.md'), at.read('story-1.txt')]).toEqual([0, 'saved\n', 'work of 1\n'])
      expect(end.stdout).not.toMatch(/everything/i)
      expect(end.stdout).toContain('on main, uncommitted, but for README.md')
      const [instead = 'false'] = /git restore --source=\S+ -- \S*README.md'?/.exec(end.stdout) ?? []
      execFileSync('sh', ['-ec', instead], { cwd: at.repo, env: at.env })
      expect(at.read('README.md')).toBe('# scratch\nloop\n')
    },
  )

  test.for([{ when: writes }, { when: '*"ralph: restore --create"*' }])(
    'O3: restore ($when): it stays, and is named with the command that brings the attempt’s; exit 1',
    async ({ when }) => {
      const args = words('demo', adds('loop') + failing, '--on-complete', 'cleanup')
      const at = await after(args, { tasks: tasksOf(1), code: 3 })
      const end = await ralph(at, ['restore', '1', 'demo'], { env: savedBefore(at, when) })
      expect([end.code, at.read('README.md'), at.read('try.txt')]).toEqual([1, 'saved\n', 'try\n'])
      expect(end.stderr).toContain('in the same moment README.md was saved')
      expect(end.stderr).toContain('The rest is there, uncommitted: try.txt')
      const [instead = 'false'] = /git restore --source=\S+ -- \S*README.md'?/.exec(end.stderr) ?? []
      const [, undo = 'false'] = /undo: (.+)$/m.exec(end.stderr) ?? []
      execFileSync('sh', ['-ec', undo], { cwd: at.repo, env: at.env })
      expect([existsSync(join(at.repo, 'try.txt')), at.read('README.md')]).toEqual([false, 'saved\n'])
      execFileSync('sh', ['-ec', instead], { cwd: at.repo, env: at.env })
      expect(at.read('README.md')).toBe('# scratch\nloop\n')
    },
  )
})
