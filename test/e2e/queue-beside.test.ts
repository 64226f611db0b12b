// What happens beside the merge queue: loops next to one another, a target that somebody works on, work and plans that change before they land.
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { runPaths } from '../../src/adapters/files/paths.ts'
import { ralph, start } from './harness.ts'
import { events, landedTree, picture, project, ranUp, report } from './queue-kit.ts'

const until = (condition: string): string => `until ${condition}; do sleep 0.05; done\n`

it('Q1 Q20: refs and stashes that the queue, another loop and the user move while a loop runs and fails stay, and no agent is blamed; git’s settings go back, kept and told', async () => {
  const at = project(
    {
      a: until('[ -f "$HOME/b-runs" ]'),
      b: `touch "$HOME/b-runs"\n${until('git cat-file -e release:work/a.txt 2> /dev/null')}${until('[ -f "$HOME/go" ]')}echo x > left.txt\necho '<promise>FAILED: on purpose</promise>'; exit\n`,
    },
    1,
  )
  at.git('branch', 'release')
  at.git('branch', 'old')
  const running = start(at, ['up', 'a', 'b', '--into', 'release', '--json', ...at.args])
  await running.seen((out) => out.includes('"type":"landed"'))
  at.write('README.md', '# mine\n')
  at.git('stash', '-q')
  at.git('config', 'mine.setting', 'yes')
  at.write('.git/info/exclude', '*.mine\n')
  at.git('branch', 'new')
  at.git('branch', '-qD', 'old')
  at.write('../home/go', '')
  const done = await running.ended
  expect([done.code, done.stderr]).toEqual([3, ''])
  expect((await report(at)).entries.map(({ change, state }) => [change, state])).toEqual([
    ['a', 'landed'],
    ['b', 'parked'],
  ])
  const landed = at.git('rev-parse', 'refs/ralph-landed/release')
  expect(at.git('rev-parse', 'release')).toBe(landed)
  expect(at.git('show', 'ralph/a:work/a.txt')).toBe('1')
  expect(at.git('stash', 'list').split('\n')).toHaveLength(1)
  expect(at.git('branch', '--list', 'new', 'old', '--format=%(refname:short)')).toBe('new')
  // Its own failure was undone all the same.
  expect(at.git('-C', `${at.repo}-ralph-b`, 'status', '--porcelain')).toBe('')
  const journal = readFileSync(runPaths(join(at.repo, '.git'), 'b').journal, 'utf8')
  expect(journal).not.toMatch(/"code":"agent_git"/)
  expect(journal).toMatch(
    /not by the agent as far as ralph can tell: release moved, old was deleted, new is new; they are left as they are/,
  )
  // Whoever wrote settings that git obeys: what they were is kept, and it is said how to get it back.
  const [, aside = ''] =
    /\(mine\.setting = yes\), \.git\/info\/exclude\. As it was then: \.\.\/repo\/(\S+)\. If it was you/.exec(
      journal,
    ) ?? []
  expect(existsSync(join(at.repo, aside)) && aside).toMatch(/^\.git\/ralph\/aside\/b\//)
})

it('Q3 I2: a target that is being rebased elsewhere stays as it is; the change lands beside it, and it is said where', async () => {
  const at = project({ a: '' }, 1)
  const other = join(at.root, 'other')
  at.git('branch', 'release')
  at.git('worktree', 'add', '-q', other, 'release')
  at.git('-C', other, 'commit', '-q', '--allow-empty', '-m', 'theirs')
  expect(() => at.git('-C', other, 'rebase', '-q', '--force-rebase', '--exec', 'false', 'HEAD~1')).toThrow()
  const before = at.git('rev-parse', 'release')
  const done = await ralph(at, ['up', '--into', 'release', ...at.args])
  expect([done.code, done.stderr, done.stdout]).toEqual([
    0,
    '',
    expect.stringMatching(/your release is not changed \(it is being rebased in \S*other\)/),
  ])
  expect(at.git('rev-parse', 'release')).toBe(before)
  expect(at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/release')).toContain('work/a.txt')
  const pull = await ralph(at, ['queue', 'pull'])
  expect([pull.code, pull.stderr]).not.toEqual([0, ''])
  expect(pull.stderr).toMatch(/being rebased in \S*other/)
  at.git('-C', other, 'rebase', '--abort')
  expect(at.git('rev-parse', 'release')).toBe(before)
})

it('Q5: the branch of a change moves while its merge is gated: that candidate is dropped, and what lands has it', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  const gate = at.script('slow.sh', `#!/bin/sh\n${until('[ -f "$HOME/go" ]')}`)
  const landing = start(at, ['up', '--json', ...at.args, '--verify', gate])
  await landing.seen((out) => out.includes('candidate.gated'))
  const tree = `${at.repo}-ralph-a`
  at.write('../repo-ralph-a/more.txt', 'of the user\n')
  at.git('-C', tree, 'add', 'more.txt')
  at.git('-C', tree, 'commit', '-qm', 'more')
  at.write('../home/go', '')
  const done = await landing.ended
  expect([done.code, events(done).map(({ type }) => type)]).toEqual([
    0,
    expect.arrayContaining(['base.moved']),
  ])
  expect(events(done).filter(({ type }) => type === 'landed')).toHaveLength(1)
  expect(landedTree(at)).toMatch(/more\.txt[^]*work\/a\.txt/)
})

it('Q9 Q10: a merge that git cannot make has its own reason; the change is parked, its branch stays, and it is never called landed', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  const alien = at.git('commit-tree', '-m', 'no history in common', 'ralph/a^{tree}')
  at.git('update-ref', 'refs/heads/ralph/a', alien)
  const done = await ralph(at, ['up', ...at.args])
  const [entry] = (await report(at)).entries
  expect([done.code, entry]).toEqual([
    3,
    expect.objectContaining({
      state: 'parked',
      landed: '',
      why: expect.stringMatching(/^git cannot merge it: /),
    }),
  ])
  expect(at.git('rev-parse', 'ralph/a')).toBe(alien)
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
})

it('Q24 Q25: uncommitted files in the worktree, and a plan that was edited or removed, park the change with their names; nothing is forced', async () => {
  const at = project({ a: '', b: '', c: '' }, 1)
  expect((await ralph(at, ['up', '--no-land', ...at.args])).code).toBe(0)
  at.write('../repo-ralph-a/half.txt', 'of the user\n')
  at.write('openspec/changes/b/tasks.md', `${at.read('openspec/changes/b/tasks.md')}- [ ] 1.9 One more\n`)
  rmSync(join(at.repo, 'openspec/changes/c'), { recursive: true })
  const done = await ralph(at, ['up', ...at.args])
  const { entries } = await report(at)
  const why = Object.fromEntries(entries.map((entry) => [entry.change, [entry.state, entry.why]]))
  expect([done.code, why]).toEqual([
    3,
    {
      a: ['parked', expect.stringMatching(/repo-ralph-a has files that are not committed: half\.txt/)],
      b: ['parked', expect.stringMatching(/changed its plan .*: git diff \w{12} -- openspec\/changes\/b/)],
      c: ['parked', expect.stringMatching(/openspec\/changes\/c is not in your checkout any more/)],
    },
  ])
  // An agent may write there; what is cut out of it is the agent's alone.
  appendFileSync(join(at.repo, '.git/ralph/queue/journal.ndjson'), 'garbage\n{"v":1}\n')
  const unread = await ralph(at, ['queue'])
  const [, cut = 'false'] = /stays as \.old\): (sed .*)/.exec(unread.stderr) ?? []
  expect([unread.code, unread.stderr]).toEqual([1, expect.stringContaining('knows nothing of what waits')])
  spawnSync('sh', ['-c', cut])
  expect((await report(at)).entries).toEqual(entries)
  // Archived by hand it has nothing to be mended.
  const remove = /ralph (queue remove c)\. Else/.exec(
    entries.find(({ change }) => change === 'c')?.hint ?? '',
  )
  expect((await ralph(at, remove?.[1]?.split(' ') ?? [])).code).toBe(0)
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
  expect(at.read('../repo-ralph-a/half.txt')).toBe('of the user\n')
  rmSync(join(at.root, 'repo-ralph-a/half.txt'))
  await ralph(at, ['up', 'a', ...at.args])
  expect(landedTree(at)).toContain('work/a.txt')
})

it('Q25 U1: what would land with an open story is parked, whoever opened it: the user on its branch, a plan that grew on the target, --story; what it says to type lands it', async () => {
  const at = project({ a: '', b: '' }, 2)
  const plan = (change: string): string => `openspec/changes/${change}/tasks.md`
  expect((await ralph(at, ['up', '--no-land', 'b', ...at.args])).code).toBe(0)
  const tree = `${at.repo}-ralph-b`
  at.write(
    `../repo-ralph-b/${plan('b')}`,
    readFileSync(join(tree, plan('b')), 'utf8').replace('[x] 2.', '[ ] 2.'),
  )
  at.git('-C', tree, 'commit', '-qam', 'not done after all')
  expect((await ralph(at, ['loop', 'a', '--story', '1', ...at.args, '--on-complete', 'keep'])).code).toBe(0)
  at.git('switch', '-q', 'main')
  for (const change of ['a', 'b']) {
    const { code, stdout } = await ralph(at, ['land', change, '--verify', 'true'])
    expect([code, stdout]).toEqual([3, expect.stringContaining('it is not done: 1 of 2 stories is open')])
  }
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
  const follow = async (change: string): Promise<void> => {
    const { hint = '' } = (await report(at)).entries.find((entry) => entry.change === change) ?? {}
    const [, lines = ''] = /^Run what is open: (.*)$/.exec(hint.replace('; then: ', '; ')) ?? []
    for (const line of lines.split('; ')) {
      const [program = '', ...words] = line.split(' ')
      if (program === 'git') at.git(...words)
      else expect((await ralph(at, words)).code).toBe(0)
    }
  }
  await follow('a')
  expect((await report(at)).entries.map(({ change, state }) => [change, state])).toContainEqual([
    'a',
    'landed',
  ])
  await follow('b')
  expect((await ralph(at, ['up', 'b', ...at.args])).code).toBe(0)
  const landed =
    at.git('show', `refs/ralph-landed/main:${plan('a')}`) +
    at.git('show', `refs/ralph-landed/main:${plan('b')}`)
  expect(landed).not.toContain('[ ]')
})

it('Q25: a branch of that name that no loop has made: its reason names sentences as sentences, and no loop in the user’s checkout', async () => {
  const at = project({ a: '' }, 1)
  at.git('branch', 'ralph/a')
  expect((await ralph(at, ['up', ...at.args])).code).toBe(3)
  expect((await report(at)).entries[0]?.why).toMatch(
    /^the branch ralph\/a exists, [^`]* Its work is on ralph\/a\. [^`]* start over: ralph loop a --fresh --worktree /,
  )
})

it('Q19: two loops at once have slots, ports and temporary folders of their own', async () => {
  const habit = `echo "$RALPH_SLOT $RALPH_PORT_BASE $TMPDIR" > "$HOME/env-$RALPH_CHANGE"\n${until('[ -f "$HOME/env-a" ] && [ -f "$HOME/env-b" ]')}`
  const at = project({ a: habit, b: habit }, 1)
  expect((await ralph(at, ['up', ...at.args])).code).toBe(0)
  const of = (change: string): string[] => at.read(`../home/env-${change}`).trim().split(' ')
  const [[slot, port, tmp], [otherSlot, otherPort, otherTmp]] = [of('a'), of('b')]
  expect([slot, port, otherSlot, otherPort]).toEqual(['1', '20100', '2', '20200'])
  expect(tmp).not.toBe(otherTmp)
})

it('B5: a run that was finished in the user’s own checkout is no obstacle: what helps is named, what is over leaves, new stories get a worktree', async () => {
  const at = project({ a: '' }, 1)
  const queue = async (...args: string[]): Promise<string> => {
    const { code, stdout } = await ralph(at, args)
    return `${String(code)} ${stdout}`
  }
  await ralph(at, ['loop', 'a', ...at.args, '--on-complete', 'keep'])
  at.git('checkout', '-q', 'main')
  expect(await queue('up', ...at.args)).toMatch(
    /^5 [^]*its run is done in your own checkout[^]*Land it: ralph land a/,
  )
  await ralph(at, ['finish', 'a', '--cleanup'])
  await ralph(at, ['queue', 'retry', 'a'])
  expect(await queue('up', ...at.args)).toMatch(/^5 [^]*uncommitted[^]*Commit it, then: ralph queue retry a/)
  at.git('add', '-A')
  at.git('commit', '-qm', 'mine')
  await ralph(at, ['queue', 'retry', 'a'])
  expect(await queue('up', ...at.args)).toMatch(
    /^0 [^]*a: removed from the queue: its work is in your checkout/,
  )
  const plan = 'openspec/changes/a/tasks.md'
  at.write(plan, `${at.read(plan)}\n## 2. More\n\n- [ ] 2.1 more\n`)
  at.git('commit', '-qam', 'more')
  expect(await queue('up', ...at.args)).toMatch(/^0 [^]*a: landed as/)
  expect(at.git('show', 'refs/ralph-landed/main:work/a.txt')).toBe('1\n2')
})

it('Q2: the user edits, commits, deletes a branch and fetches while two changes run and land: index, HEAD and every file stay as the user made them, and both land on that', async () => {
  const wait = `touch "$HOME/at-$RALPH_CHANGE"; until [ -f "$HOME/go" ]; do sleep 0.05; done`
  const at = project({ a: wait, b: wait }, 1)
  const remote = `${at.root}/remote`
  at.git('clone', '-q', '--bare', at.repo, remote)
  at.git('remote', 'add', 'origin', remote)
  at.git('branch', 'old')
  const running = start(at, ['up', ...at.args])
  while (!['a', 'b'].every((change) => existsSync(join(at.root, 'home', `at-${change}`)))) await delay(20)
  at.write('mine.txt', 'committed\n')
  at.git('add', 'mine.txt')
  at.git('commit', '-qm', 'mine')
  at.write('README.md', '# staged\n')
  at.git('add', 'README.md')
  at.write('shared.txt', 'not staged\n')
  at.write('new.txt', 'untracked\n')
  at.git('branch', '-qD', 'old')
  at.git('-C', remote, 'branch', 'theirs', 'main')
  at.git('fetch', '-q', 'origin')
  const during = [picture(at), at.git('status', '--porcelain')]
  at.write('../home/go', '')
  const done = await running.ended
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect([picture(at), at.git('status', '--porcelain')]).toEqual(during)
  expect(at.git('branch', '-r', '--format=%(refname:short)')).toContain('origin/theirs')
  expect(at.git('branch', '--list', 'old')).toBe('')
  const landed = at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/main')
  expect(landed).toMatch(/mine\.txt[^]*work\/a\.txt\nwork\/b\.txt/)
  expect(landed).not.toContain('new.txt')
})

it('Q24: a worktree and its branch that the user removes while its loop runs, or while its set-up does, park the change with what is gone; the printed commands work, and it lands', async () => {
  const at = project({ a: `touch "$HOME/at-work"\n${until('[ -f "$HOME/go" ]')}`, b: '' }, 1)
  const reached = async (file: string): Promise<void> => {
    while (!existsSync(join(at.root, 'home', file))) await delay(20)
  }
  const running = start(at, ['up', 'a', ...at.args])
  await reached('at-work')
  at.git('worktree', 'remove', '--force', '../repo-ralph-a')
  at.git('branch', '-qD', 'ralph/a')
  at.write('../home/go', '')
  expect((await running.ended).code).toBe(3)
  const gone = await ralph(at, ['up', 'a', ...at.args])
  const [, add = '', merge = ''] =
    /`git (worktree add --force [^`]*)`.*`git (merge --squash [^`]+)`/.exec(gone.stdout) ?? []
  at.git(...merge.split(' '))
  at.git(...add.split(' '))
  const setUp = `touch "$HOME/set-up"; ${until('[ -f "$HOME/further" ]').trim()}`
  const second = start(at, ['up', 'a', 'b', ...at.args, '--setup', setUp])
  await reached('set-up')
  rmSync(`${at.repo}-ralph-b`, { recursive: true })
  at.write('../home/further', '')
  const done = await second.ended
  expect([done.code, done.stdout]).toEqual([3, expect.stringMatching(/There is no folder \S*repo-ralph-b/)])
  expect(done.stdout).not.toContain('ENOENT')
  expect(landedTree(at)).toContain('work/a.txt')
  expect((await ralph(at, ['up', 'b', ...at.args])).code).toBe(0)
  expect(landedTree(at)).toContain('work/b.txt')
})

it('Q2: beside a bare repository the folder is named that has the target checked out, and where nobody has, the target follows', async () => {
  const at = project({ a: '', b: '' }, 1)
  const bare = join(at.root, 'bare.git')
  at.git('clone', '-q', '--bare', '.', bare)
  at.git('-C', bare, 'worktree', 'add', '-q', join(at.root, 'wt'), 'main')
  const there = { ...at, repo: join(at.root, 'wt') }
  const first = await ralph(there, ['up', 'a', ...at.args])
  expect([first.code, first.stdout]).toEqual([
    0,
    expect.stringContaining(`(it is checked out in ${there.repo})`),
  ])
  expect((await ralph(there, ['queue', 'pull'])).code).toBe(0)
  at.git('-C', there.repo, 'checkout', '-qb', 'mine')
  expect((await ralph(there, ['up', 'b', '--into', 'main', ...at.args])).code).toBe(0)
  expect(at.git('-C', bare, 'ls-tree', '-r', '--name-only', 'main')).toContain('work/b.txt')
})
