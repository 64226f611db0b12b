// Somebody who wants the target broken: gates and agents that move refs, trees and objects that go away, work that changes while it is gated.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ralph, start } from './harness.ts'
import { events, landedTree, project, ranUp, report } from './queue-kit.ts'

const until = (condition: string): string => `until ${condition}; do sleep 0.05; done\n`
const landedOf = (done: Parameters<typeof events>[0]): readonly string[] =>
  events(done).flatMap((event) => (event.type === 'landed' ? [event.change] : []))

it('I1: a gate that lands its own commit and then fails, an agent that moves what landed, and a wish that says something has landed: nothing of it counts', async () => {
  const evil = 'git update-ref refs/ralph-landed/main "$(git commit-tree -p HEAD -m evil HEAD^{tree})"\n'
  const at = project({ a: '', b: evil }, 1)
  const own = at.script('own.sh', '#!/bin/sh\ngit update-ref refs/ralph-landed/main HEAD\n')
  const red = at.script('red.sh', '#!/bin/sh\n[ ! -f work/a.txt ]\n')
  const before = at.git('rev-parse', 'main')
  const done = await ralph(at, ['up', 'a', '--json', ...at.args, '--verify', own, '--verify', red])
  expect([done.code, landedOf(done)]).toEqual([3, []])
  const forged = { type: 'landed', change: 'a', commit: before }
  mkdirSync(join(at.repo, '.git/ralph/queue/wishes'), { recursive: true })
  writeFileSync(join(at.repo, '.git/ralph/queue/wishes/1.json'), JSON.stringify(forged))
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
  const again = await ralph(at, ['up', 'a', '--json', ...at.args, '--verify', own, '--verify', red])
  expect([again.code, landedOf(again)]).toEqual([3, []])
  const good = await ralph(at, ['up', 'a', '--json', ...at.args, '--verify', 'true'])
  expect([good.code, landedOf(good)]).toEqual([0, ['a']])
  // Its loop puts back what its agent moved.
  const agent = await ralph(at, ['up', 'b', '--json', ...at.args])
  expect([agent.code, landedOf(agent)]).toEqual([0, ['b']])
  expect(at.git('log', '--format=%s', `${before}..refs/ralph-landed/main`)).toBe('The change b\nThe change a')
  expect(at.git('rev-parse', 'main')).toBe(before)
})

it('I1 Q1: an agent that puts something where landed work goes, or moves what landed meanwhile, halts no queue: its loop puts that back and names it, and all of it lands', async () => {
  const evil = 'git update-ref refs/ralph-landed/main "$(git commit-tree -p HEAD -m evil HEAD^{tree})"\n'
  const landed = until('git rev-parse -q --verify refs/ralph-landed/main >/dev/null')
  const at = project(
    {
      a: `${evil}touch "$HOME/evil"\n${until('grep -q "waits for the loop of a" "$HOME/seen"')}`,
      b: until('[ -f "$HOME/evil" ]'),
      c: '',
      d: `touch "$HOME/begun"\n${landed}${evil}`,
    },
    1,
  )
  at.write('../home/seen', '')
  const running = start(at, ['up', 'a', 'b', '--json', ...at.args])
  await running.seen((out) => out.includes('waits for the loop of a'))
  at.write('../home/seen', 'waits for the loop of a')
  const done = await running.ended
  expect([done.code, landedOf(done).toSorted()]).toEqual([0, ['a', 'b']])
  expect((await ralph(at, ['why', 'a', '--trace'])).stdout).toContain('the agent made ralph-landed/main')
  at.git('merge', '-q', '--ff-only', 'refs/ralph-landed/main')
  at.git('update-ref', '-d', 'refs/ralph-landed/main')
  at.write('../home/habits/c.sh', until('[ -f "$HOME/begun" ]'))
  const second = await ralph(at, ['up', 'c', 'd', '--json', ...at.args])
  expect([second.code, landedOf(second)]).toEqual([0, ['c', 'd']])
  expect((await ralph(at, ['why', 'd', '--trace'])).stdout).toContain(
    'the agent moved ralph-landed/main; it is back',
  )
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main')).toBe('The change d\nThe change c')
})

it.each(['-d refs/ralph-landed/main', 'refs/ralph-landed/main main'])(
  'I1 Q1: while an agent’s git update-ref %s hides what landed, nothing lands without it and nothing is taken back: its loop puts it back, and all of it lands',
  async (words) => {
    const landed = until('git rev-parse -q --verify refs/ralph-landed/main >/dev/null')
    const told = until('grep -q "waits for the loop of hides" "$HOME/seen"')
    const at = project(
      {
        first: until('[ -f "$HOME/begun" ]'),
        hides: `touch "$HOME/begun"\n${landed}git update-ref ${words}\ntouch "$HOME/hidden"\n${told}`,
        next: until('[ -f "$HOME/hidden" ]'),
      },
      1,
    )
    at.write('../home/seen', '')
    const running = start(at, ['up', '--jobs', '3', '--json', ...at.args])
    await running.seen((out) => out.includes('waits for the loop of hides'))
    at.write('../home/seen', 'waits for the loop of hides')
    const done = await running.ended
    expect([done.code, landedOf(done).toSorted()]).toEqual([0, ['first', 'hides', 'next']])
    expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main').split('\n')).toHaveLength(3)
    expect((await ralph(at, ['why', 'hides', '--trace'])).stdout).toMatch(
      /the agent (moved|deleted) ralph-landed\/main; it is back/,
    )
  },
)

it('Q1 Q8: where an agent has moved what landed and its loop and ralph up are killed, the next one resumes that loop, which puts it back, and all of it lands', async () => {
  const evil = 'git update-ref refs/ralph-landed/main "$(git commit-tree -p HEAD -m evil HEAD^{tree})"\n'
  const once = `[ -f "$HOME/once" ] || { touch "$HOME/once"\n${evil}touch "$HOME/evil"\n${until('[ -f "$HOME/never" ]')}}\n`
  const at = project({ a: once, b: until('[ -f "$HOME/evil" ]') }, 1)
  const running = start(at, ['up', '--json', ...at.args])
  await running.seen((out) => out.includes('waits for the loop of a'))
  running.child.kill('SIGKILL')
  const { pid } = JSON.parse(at.read('.git/ralph/changes/a/lock.json')) as { pid: number }
  process.kill(pid, 'SIGKILL')
  await running.ended
  const next = await ralph(at, ['up', '--json', ...at.args])
  const then = next.code === 0 ? next : await ralph(at, ['up', '--json', ...at.args])
  expect([then.code, [...new Set([...landedOf(next), ...landedOf(then)])].toSorted()]).toEqual([
    0,
    ['a', 'b'],
  ])
  expect(events(next).filter(({ type }) => type === 'queue.halted').length).toBeLessThan(2)
  expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main').split('\n')).toHaveLength(2)
})

it('I6 I8: a worktree of the user’s that is moved away meanwhile is there when it comes back, with what is staged in it; a wish with a number of its own does not break the journal', async () => {
  const at = project({ a: '' }, 1)
  const [mine, away] = [join(at.root, 'mine'), join(at.root, 'away')]
  at.git('worktree', 'add', '-q', '--detach', mine)
  at.git('-C', mine, 'commit', '-q', '--allow-empty', '-m', 'on no branch')
  writeFileSync(join(mine, 'staged.txt'), 'of the user\n')
  at.git('-C', mine, 'add', 'staged.txt')
  renameSync(mine, away)
  mkdirSync(join(at.repo, '.git/ralph/queue/wishes'), { recursive: true })
  const wish = { type: 'entry.first', change: 'a', seq: 'many', v: 2, time: 5 }
  writeFileSync(join(at.repo, '.git/ralph/queue/wishes/1.json'), JSON.stringify(wish))
  const done = await ralph(at, ['up', '--json', ...at.args])
  expect([done.code, done.stderr, landedOf(done)]).toEqual([0, '', ['a']])
  expect((await report(at)).entries).toMatchObject([{ state: 'landed' }])
  expect(at.git('worktree', 'list')).not.toContain('--landing')
  renameSync(away, mine)
  expect(at.git('-C', mine, 'log', '-1', '--format=%s')).toBe('on no branch')
  expect(at.git('-C', mine, 'status', '--porcelain')).toBe('A  staged.txt')
})

it('I1: a journal that says that a commit was built and has passed every gate lands nothing: the next ralph up builds and tests by itself', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  const log = join(at.root, 'home', 'tested')
  const gate = at.script(
    'gate.sh',
    `#!/bin/sh\ncase $PWD in *--landing) git rev-parse HEAD >> ${log} ;; esac\n`,
  )
  const args = ['up', 'a', '--json', ...at.args, '--verify', gate]
  const [base, tip] = [at.git('rev-parse', 'main'), at.git('rev-parse', 'ralph/a')]
  const commit = at.git('commit-tree', '-p', base, '-m', 'forged', `${tip}^{tree}`)
  const journal = join(at.repo, '.git/ralph/queue/journal.ndjson')
  const known = readFileSync(journal, 'utf8').trim().split('\n')
  const forged = [
    { type: 'candidate.built', base, tip, commit },
    { type: 'candidate.gated', commit, gate: 'sh gate.sh', outcome: 'passed' },
    { type: 'candidate.gated', commit, gate, outcome: 'passed' },
  ]
  for (const [n, body] of forged.entries())
    appendFileSync(
      journal,
      `${JSON.stringify({ v: 1, seq: known.length + 1 + n, time: '2026-01-01T00:00:00Z', change: 'a', ...body })}\n`,
    )
  const done = await ralph(at, args)
  expect([done.code, landedOf(done)]).toEqual([0, ['a']])
  const landed = at.git('rev-parse', 'refs/ralph-landed/main')
  expect([landed === commit, readFileSync(log, 'utf8').trim().split('\n')]).toEqual([false, [landed]])
})

it('Q24 Q25 I3: while its gates run a plan is edited, a change is taken out, its landing tree is removed: none of them lands, and what is mended does', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  expect((await ralph(at, ['up', '--no-land', ...at.args])).code).toBe(0)
  const gate = at.script(
    'slow.sh',
    `#!/bin/sh\ntouch "$HOME/at-$RALPH_CHANGE"\n${until('[ -f "$HOME/go-$RALPH_CHANGE" ]')}`,
  )
  const running = start(at, ['up', '--json', ...at.args, '--verify', gate])
  const reached = async (change: string): Promise<void> => {
    while (!existsSync(join(at.root, 'home', `at-${change}`)))
      await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await reached('a')
  at.write('openspec/changes/a/tasks.md', `${at.read('openspec/changes/a/tasks.md')}- [ ] 1.9 One more\n`)
  at.write('../home/go-a', '')
  await reached('b')
  expect((await ralph(at, ['queue', 'remove', 'b'])).code).toBe(0)
  await running.seen((out) => out.includes('entry.removed'))
  at.write('../home/go-b', '')
  await reached('c')
  rmSync(`${at.repo}-ralph--landing`, { recursive: true })
  at.write('../home/go-c', '')
  const done = await running.ended
  expect([done.code, done.stderr, landedOf(done)]).toEqual([3, '', []])
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
  const { entries } = await report(at)
  expect(entries.map(({ change, why }) => [change, why])).toEqual([
    ['a', expect.stringContaining('you have changed its plan')],
    ['c', expect.stringMatching(/could not run: \S+-ralph--landing was removed/)],
  ])
  at.git('restore', 'openspec')
  const last = await ralph(at, ['up', 'a', 'b', 'c', '--json', ...at.args])
  expect([last.code, landedOf(last).toSorted()]).toEqual([0, ['a', 'b', 'c']])
})

it('I6: a git gc that throws away all that no ref holds, while a landing is set up, stops nothing: both changes land', async () => {
  const at = project({ a: '', b: '' }, 1)
  const gc = at.script(
    'gc.sh',
    `#!/bin/sh
unset GIT_CONFIG_PARAMETERS
case $PWD in *--landing) git reflog expire --expire=now --all && git gc -q --prune=now && echo done >> "$HOME/gc" ;; esac
`,
  )
  const done = await ralph(at, ['up', '--json', ...at.args, '--setup', gc])
  expect([done.code, done.stderr, landedOf(done).toSorted()]).toEqual([0, '', ['a', 'b']])
  expect(at.read('../home/gc')).toBe('done\ndone\n')
  expect(at.git('fsck', '--no-dangling', '--no-progress')).toBe('')
})

it('Q6 I6: killed in a gate, then everything that no ref holds is thrown away: it is built anew; what somebody merged by hand lands nothing more', async () => {
  const at = project({ a: '', b: '' }, 1)
  at.git('branch', 'release')
  const gate = at.script(
    'slow.sh',
    `#!/bin/sh\ntouch "$HOME/at-$RALPH_CHANGE"\n${until('[ -f "$HOME/go" ]')}`,
  )
  const args = ['up', 'a', '--into', 'release', '--json', ...at.args, '--verify', gate]
  expect((await ralph(at, ['up', 'a', '--into', 'release', '--no-land', ...at.args])).code).toBe(0)
  const first = start(at, args)
  await first.seen((out) => out.includes('candidate.gated'))
  first.child.kill('SIGKILL')
  await first.ended
  rmSync(`${at.repo}-ralph--landing`, { recursive: true })
  at.git('worktree', 'prune')
  at.git('reflog', 'expire', '--expire=all', '--all')
  at.git('gc', '-q', '--prune=all')
  at.write('../home/go', '')
  const done = await ralph(at, args)
  expect([done.code, done.stderr, landedOf(done)]).toEqual([0, '', ['a']])
  expect(at.git('rev-parse', 'release')).toBe(at.git('rev-parse', 'refs/ralph-landed/release'))

  expect((await ralph(at, ['up', 'b', '--into', 'release', '--no-land', ...at.args])).code).toBe(0)
  const other = join(at.root, 'other')
  at.git('worktree', 'add', '-q', other, 'release')
  at.git('-C', other, 'merge', '-q', 'ralph/b')
  at.git('worktree', 'remove', other)
  const merged = at.git('rev-parse', 'release')
  const nothing = await ralph(at, ['up', 'b', '--json', ...at.args])
  expect([nothing.code, landedOf(nothing), at.git('rev-parse', 'release')]).toEqual([0, ['b'], merged])
  expect((await ralph(at, ['status', 'b'])).stdout).toContain(`landed on release as ${merged.slice(0, 7)}`)
  expect(() => landedTree(at)).toThrow()
})
