// Many changes at once: loops side by side, landed one after another, each merge proven, and the user's checkout never touched.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ralph, start } from './harness.ts'
import { events, landedTree, picture, project, ranUp, report } from './queue-kit.ts'

describe('ralph up', () => {
  it('Q2: six changes, three at once: a conflict is resolved, a dependency begins at what landed, a red merge and a failed loop are parked, the checkout is untouched', async () => {
    const resolving = `case "$prompt" in *"Put two changes together"*) echo "$prompt" > "$HOME/asked"; printf 'of c\\nof d\\n' > shared.txt; echo '<promise>COMPLETE</promise>'; exit;; esac\n`
    // So that each time the same one comes first.
    const whenLanded = (path: string): string =>
      `until git cat-file -e "refs/ralph-landed/main:${path}" 2> /dev/null; do sleep 0.05; done\n`
    const changes = {
      a: 'echo 1 > one.txt',
      e: `${whenLanded('one.txt')}echo 2 > two.txt`,
      c: 'echo "of c" > shared.txt',
      d: `${resolving}${whenLanded('work/c.txt')}echo "of d" > shared.txt`,
      b: 'test -f work/a.txt || { echo "<promise>FAILED: a is not there</promise>"; exit; }',
      f: 'echo "<promise>FAILED: on purpose</promise>"; exit',
    }
    const at = project(changes, 1)
    at.write('mine.txt', 'not committed\n')
    at.write('README.md', '# edited\n')
    const before = picture(at)
    const done = await ralph(at, [
      'up',
      'a',
      'e',
      'c',
      'd',
      'b',
      'f',
      '--jobs',
      '3',
      '--after',
      'b:a',
      ...at.args,
    ])
    expect([done.code, done.stderr]).toEqual([3, ''])
    expect(picture(at)).toBe(before)
    const { entries, target_commit: main } = await report(at)
    expect(Object.fromEntries(entries.map(({ change, state }) => [change, state]))).toEqual({
      a: 'landed',
      b: 'landed',
      c: 'landed',
      d: 'landed',
      e: 'parked',
      f: 'parked',
    })
    expect(entries.find(({ change }) => change === 'e')?.why).toMatch(
      /`sh gate.sh` fails after the merge: it printed nothing/,
    )
    expect(entries.find(({ change }) => change === 'f')?.why).toMatch(/on purpose/)
    expect(main).toBe(at.git('rev-parse', 'HEAD'))
    const show = (path: string): string => at.git('show', `refs/ralph-landed/main:${path}`)
    expect(show('shared.txt')).toBe('of c\nof d')
    // The plans of what landed there, and of no change whose path has a c in it.
    expect(at.read('../home/asked')).toContain(
      'Its plans: openspec/changes/c/proposal.md, openspec/changes/c/tasks.md.\n',
    )
    for (const name of ['a', 'b', 'c', 'd']) expect(show(`work/${name}.txt`)).toBe('1')
    expect(landedTree(at)).not.toMatch(/two\.txt|work\/[ef]\.txt/)
    // Uncommitted files are in the way of nothing that landed: the checkout follows when it is told to.
    const pulled = await ralph(at, ['queue', 'pull'])
    expect([pulled.code, at.git('rev-parse', 'HEAD')]).toEqual([
      0,
      at.git('rev-parse', 'refs/ralph-landed/main'),
    ])
    expect([at.read('mine.txt'), at.read('README.md')]).toEqual(['not committed\n', '# edited\n'])
  })

  it('Q6: more changes than places, and gates that take no time: each lands once; plans that nobody has committed land, too', async () => {
    const at = project({ a: '', b: '', c: '' }, 1)
    at.write('openspec/changes/d/tasks.md', at.read('openspec/changes/a/tasks.md'))
    const done = await ralph(at, ['up', '--json', ...at.args])
    expect([done.code, done.stderr]).toEqual([0, ''])
    const landed = events(done).flatMap((event) => (event.type === 'landed' ? [event.change] : []))
    expect(landed.toSorted()).toEqual(['a', 'b', 'c', 'd'])
    expect(at.git('rev-list', '--count', 'main..refs/ralph-landed/main')).toBe('4')
  })

  it('I4: where refs/ralph-landed was deleted before anybody took it, nothing is built without it, and pull takes no strange one', async () => {
    const at = await ranUp({ a: '', b: '' }, ['a'])
    const landed = at.git('rev-parse', 'refs/ralph-landed/main')
    at.git('update-ref', '-d', 'refs/ralph-landed/main')
    const halted = await ralph(at, ['up', 'b', ...at.args])
    expect([halted.code, halted.stdout]).toEqual([
      5,
      expect.stringContaining('refs/ralph-landed/main is gone'),
    ])
    at.git(
      'update-ref',
      'refs/ralph-landed/main',
      at.git('commit-tree', '-p', landed, '-m', 'x', `${landed}^{tree}`),
    )
    expect((await ralph(at, ['queue', 'pull'])).code).toBe(1)
    at.git('update-ref', 'refs/ralph-landed/main', landed)
    expect((await ralph(at, ['up', 'b', '--pull', ...at.args])).code).toBe(0)
    expect(at.git('log', '--format=%s').split('\n').slice(0, 2)).toEqual(['The change b', 'The change a'])
  })

  it('Q7 Q8: a second one is refused with exit 7; after kill -9 its loops go on and the next one takes them up, none twice', async () => {
    const at = project({ a: '', b: '' }, 1)
    at.write('../home/habits/a.sh', `until [ -f "$HOME/go" ]; do sleep 0.05; done`)
    at.write('../home/habits/b.sh', `until [ -f "$HOME/go" ]; do sleep 0.05; done`)
    const first = start(at, ['up', '--json', ...at.args])
    await first.seen((out) => out.split('loop.spawned').length > 2)
    const second = await ralph(at, ['up', ...at.args])
    expect([second.code, second.stderr]).toEqual([7, expect.stringContaining(`pid ${first.pid}`)])
    first.child.kill('SIGKILL')
    await first.ended
    at.write('../home/go', '')
    const third = await ralph(at, ['up', '--json', ...at.args])
    expect([third.code, third.stderr]).toEqual([0, ''])
    expect(events(third).filter(({ type }) => type === 'loop.spawned')).toEqual([])
    expect(at.git('log', '--format=%s', 'main..refs/ralph-landed/main').split('\n').toSorted()).toEqual([
      'The change a',
      'The change b',
    ])
  })

  it('Q11: where the target itself is red the queue halts, nobody is blamed, and it goes on when the target is mended', async () => {
    const at = await ranUp({ a: '' }, ['--no-land'])
    expect((await report(at)).entries).toMatchObject([{ change: 'a', state: 'done' }])
    at.write('gate.sh', 'echo "the gate is broken"; exit 1\n')
    at.git('commit', '-qam', 'breaks the gate')
    const halted = await ralph(at, ['up', ...at.args])
    expect([halted.code, halted.stdout]).toEqual([5, expect.stringContaining('fails on main without a, too')])
    expect((await report(at)).entries).not.toMatchObject([{ state: 'parked' }])
    at.write('gate.sh', 'true\n')
    at.git('commit', '-qam', 'mends it')
    expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
    expect(at.git('show', 'refs/ralph-landed/main:gate.sh')).toBe('true')
  })

  it('Q4 Q5: the user commits on the target, and on the change, while it is gated: it is built again, and what lands has both', async () => {
    const at = await ranUp({ a: '' }, ['--no-land'])
    const gate = at.script(
      'slow.sh',
      '#!/bin/sh\n[ -f "$HOME/go" ] || touch "$HOME/waiting"\nuntil [ -f "$HOME/go" ]; do sleep 0.05; done\n',
    )
    const landing = start(at, ['up', '--json', ...at.args, '--verify', gate])
    await landing.seen((out) => out.includes('candidate.gated'))
    at.write('later.txt', 'of the user\n')
    at.git('add', 'later.txt')
    at.git('commit', '-qm', 'meanwhile')
    at.write('../home/go', '')
    const done = await landing.ended
    expect([done.code, events(done).map(({ type }) => type)]).toEqual([
      0,
      expect.arrayContaining(['base.moved']),
    ])
    expect(landedTree(at)).toMatch(/later\.txt[^]*work\/a\.txt/)
  })

  it('I1: what somebody else puts on refs/ralph-landed lands with nobody: the queue halts and says what to do', async () => {
    const at = await ranUp({ a: '', b: '' }, ['a'])
    const landed = at.git('rev-parse', 'refs/ralph-landed/main')
    const strange = at.git('commit-tree', '-p', landed, '-m', 'not gated', `${landed}^{tree}`)
    at.git('update-ref', 'refs/ralph-landed/main', strange)
    const halted = await ralph(at, ['up', 'b', ...at.args])
    expect([halted.code, halted.stdout]).toEqual([
      5,
      expect.stringContaining('the queue has not landed that'),
    ])
    at.git('update-ref', 'refs/ralph-landed/main', landed)
    expect((await ralph(at, ['up', 'b', ...at.args])).code).toBe(0)
    expect(at.git('merge-base', '--is-ancestor', landed, 'refs/ralph-landed/main')).toBe('')
  })

  it('Q12 Q13: a flaky gate runs once more and is told as flaky; one that cannot run parks the change for a person', async () => {
    const at = await ranUp({ a: '' }, ['--no-land'])
    const broken = at.script('broken.sh', '#!/no/such/program\n')
    const parked = await ralph(at, ['land', 'a', '--verify', broken])
    expect([parked.code, (await report(at)).entries]).toMatchObject([
      5,
      [{ change: 'a', state: 'parked', why: expect.stringContaining('could not run') }],
    ])
    const flaky = at.script(
      'flaky.sh',
      '#!/bin/sh\n[ -f "$HOME/second" ] && exit 0\ntouch "$HOME/second"; exit 1\n',
    )
    const done = await ralph(at, ['up', 'a', '--json', ...at.args, '--verify', flaky])
    expect(events(done)).toContainEqual(
      expect.objectContaining({ gate: flaky, outcome: 'passed', flaky: true }),
    )
  })

  it.each([
    ['an unknown change', ['up', 'nope'], /There is no open change nope/],
    ['an unknown dependency', ['up', 'a', '--after', 'a:nope'], /no open change nope/],
    ['a circle', ['up', 'a', 'b', '--after', 'a:b', '--after', 'b:a'], /wait for one another: a → b → a/],
    ['no number', ['up', '--jobs', 'x'], /--jobs must be a whole number/],
  ])('Q14: %s is refused with exit 2, and nothing is touched', async (_, args, words) => {
    const at = project({ a: '', b: '' }, 1)
    const before = [at.git('for-each-ref'), readdirSync(join(at.repo, '.git')).toSorted().join(' ')]
    const { code, stderr } = await ralph(at, [...args, ...at.args])
    expect([code, stderr]).toEqual([2, expect.stringMatching(words)])
    expect([at.git('for-each-ref'), readdirSync(join(at.repo, '.git')).toSorted().join(' ')]).toEqual(before)
  })
})
