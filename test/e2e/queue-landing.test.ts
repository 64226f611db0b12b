// The landing itself: what a set-up and gates leave behind, gates that outlive their queue, and the user's checkout when it follows.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ralph, start, tasksOf } from './harness.ts'
import { events, landedTree, project, ranUp, report } from './queue-kit.ts'

it('I1 I6: a change called landing lands; of the set-up only what is ignored stays, for the gates; a target that is not there is refused before anything is begun, and pull stashes nothing', async () => {
  const at = project({ landing: 'echo "of the change" > shared.txt' }, 1)
  at.write('.gitignore', '*.ign\n')
  at.git('add', '.gitignore')
  at.git('commit', '-qm', 'ignore')
  const refused = await ralph(at, ['up', '--into', 'nope', ...at.args])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('There is no branch nope')])
  expect(existsSync(`${at.repo}/.git/ralph/queue/journal.ndjson`)).toBe(false)
  at.write('.git/info/exclude', 'venv/\n')
  const setup =
    'mkdir -p venv && echo x > venv/x && echo x > env.ign && [ "$(basename "$PWD")" != repo-ralph--landing ] || { echo edited >> README.md; echo new > made.txt; }'
  const gate = 'test -f env.ign && test -f venv/x && test ! -f made.txt'
  const done = await ralph(at, ['up', '--setup', setup, ...at.args, '--verify', gate])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(landedTree(at)).not.toMatch(/made\.txt|env\.ign|venv/)
  expect(at.git('show', 'refs/ralph-landed/main:README.md')).toBe('# scratch')
  expect(existsSync(`${at.repo}-ralph-landing/work/landing.txt`)).toBe(true)
  expect(existsSync(`${at.repo}-ralph--landing`)).toBe(false)

  at.git('config', 'merge.autoStash', 'true')
  at.write('shared.txt', 'mine, not committed\n')
  const pull = await ralph(at, ['queue', 'pull'])
  expect([pull.code, at.read('shared.txt'), at.git('stash', 'list')]).toEqual([
    1,
    'mine, not committed\n',
    '',
  ])
  at.git('restore', 'shared.txt')
  expect((await ralph(at, ['queue', 'pull'])).code).toBe(0)
})

/** One that nobody has waited for yet is not. */
function isRunning(pid: number): boolean {
  const stat = `/proc/${pid}/stat`
  return existsSync(stat) && !/\) Z /.test(readFileSync(stat, 'utf8'))
}

it('Q12 Q6: a gate that a killed queue left running is ended by the next; one that fails runs again in a fresh tree, and its output is kept and named', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  appendFileSync(join(at.repo, '.git/info/exclude'), '*.ign\n')
  const gate = at.script(
    'gate.sh',
    `#!/bin/sh
[ -f work/a.txt ] || exit 0
[ -f "$HOME/go" ] || echo $$ > "$HOME/pid"
until [ -f "$HOME/go" ]; do [ ! -f "$HOME/pid" ] || touch "$HOME/waits"; sleep 0.05; done
[ -f left.ign ] && exit 0
touch left.ign; echo "this is red"; exit 1
`,
  )
  const first = start(at, ['up', '--json', ...at.args, '--verify', gate])
  await first.seen((out) => out.includes('candidate.gated'))
  while (!existsSync(`${at.root}/home/waits`)) await new Promise((resolve) => setTimeout(resolve, 20))
  first.child.kill('SIGKILL')
  await first.ended
  const pid = Number(at.read('../home/pid'))
  expect(isRunning(pid)).toBe(true)
  const next = start(at, ['up', '--json', ...at.args, '--verify', gate])
  while (Number(at.read('../home/pid')) === pid) await new Promise((resolve) => setTimeout(resolve, 20))
  expect(isRunning(pid)).toBe(false)
  at.write('../home/go', '')
  expect((await next.ended).code).toBe(3)
  const [entry] = (await report(at)).entries
  expect(entry).toMatchObject({ state: 'parked', why: expect.stringContaining('this is red') as string })
  const [, log = ''] = /Its output: (\S+)\. /.exec(entry?.hint ?? '') ?? []
  expect(readFileSync(log, 'utf8')).toContain('this is red')
  expect(at.git('for-each-ref', 'refs/ralph-landed')).toBe('')
})

it('I1 I2: no ref that is there moves while a merge is tested, whatever the git of a gate writes; a branch that it makes and deletes is its own affair', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  for (const name of ['branch', 'tag']) at.git(name, 'there')
  at.write('shared.txt', 'put aside\n')
  at.git('stash')
  const refs = (): string =>
    at.git('for-each-ref', 'refs/heads/main', 'refs/heads/there', 'refs/tags', 'refs/stash')
  const before = [refs(), at.git('status', '--porcelain')]
  const gate = at.script(
    'gate.sh',
    `#!/bin/sh
case $PWD in *--landing) ;; *) exit 0 ;; esac
evil=$(git commit-tree -m evil -p main "main^{tree}")
for ref in refs/heads/main refs/heads/there refs/tags/there refs/stash refs/ralph-landed/main refs/heads/ralph/a refs/heads/ralph/b; do
  git update-ref $ref $evil && echo $ref >> "$HOME/moved"
  git update-ref -d $ref $(git rev-parse -q --verify $ref) && echo $ref >> "$HOME/moved"
done
git -C "$HOME/../repo" commit -q --allow-empty -m evil && echo commit >> "$HOME/moved"
git for-each-ref >> "$HOME/seen"
git update-ref refs/heads/main main && git branch tmp $evil && git branch -q -D tmp && git commit -q --allow-empty -m here
`,
  )
  const done = await ralph(at, ['up', ...at.args, '--verify', gate])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(existsSync(`${at.root}/home/moved`)).toBe(false)
  expect(at.read('../home/seen')).not.toContain('ralph-landed')
  expect([refs(), at.git('status', '--porcelain')]).toEqual(before)
  expect(at.git('log', '--format=%s', 'refs/ralph-landed/main')).not.toContain('evil')
  expect(existsSync(`${at.repo}/.git/ralph/queue/closed-refs`)).toBe(false)
})

it('I1 I2: a gate that fails because it may not move the target says so', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  const gate = at.script('gate.sh', '#!/bin/sh\ncase $PWD in *--landing) git branch -f main main~1 ;; esac\n')
  at.git('switch', '-qc', 'mine')
  expect((await ralph(at, ['up', '--into', 'main', ...at.args, '--verify', gate])).code).toBe(5)
  expect((await report(at)).halted).toContain(
    'it may not write main: refs stay as they are while a merge is tested',
  )
})

it('I1 I2: a gate whose git is not ralph’s to watch and that moves the target to what it is to check has not passed, and the target is back', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  const before = [at.git('rev-parse', 'main'), at.git('status', '--porcelain')]
  const gate = at.script(
    'gate.sh',
    `#!/bin/sh
unset GIT_CONFIG_PARAMETERS
case $PWD in *--landing) [ -f work/a.txt ] && git update-ref refs/heads/main HEAD && git branch also
git branch -q -D mine; git stash drop -q 2> /dev/null;; esac; exit 0
`,
  )
  const mine = at.git('commit-tree', '-p', 'main', '-m', 'of the user', 'main^{tree}')
  at.git('branch', 'mine', mine)
  at.write('shared.txt', 'put aside\n')
  at.git('stash', 'push', '-q', '-m', 'for later')
  const stashed = at.git('rev-parse', 'stash')
  const done = await ralph(at, ['up', ...at.args, '--verify', gate])
  expect([done.code, done.stdout]).toEqual([
    3,
    expect.stringMatching(
      /a: mine was deleted while a gate ran, and [^]* kept as refs\/ralph\/a\/moved[^]*“On main: for later” was dropped/,
    ),
  ])
  const held = at.git('for-each-ref', '--format=%(objectname)', 'refs/ralph/a/moved/0/beside')
  expect(held.split('\n').toSorted()).toEqual([mine, stashed].toSorted())
  const [entry] = (await report(at)).entries
  expect(entry).toMatchObject({
    state: 'parked',
    why: expect.stringContaining('it moved also, main to what it was to check; they are back') as string,
  })
  expect([at.git('rev-parse', 'main'), at.git('status', '--porcelain')]).toEqual(before)
  expect(at.git('for-each-ref', 'refs/heads/also', 'refs/ralph-landed')).toBe('')
})

it('I1 Q4: what a gate whose git has its hooks off commits to the target lands with nothing that was not tested with it, and is named as not made by the queue', async () => {
  const at = await ranUp({ a: '' }, ['--no-land'])
  at.git('switch', '-qc', 'mine')
  const gate = at.script(
    'gate.sh',
    `#!/bin/sh
case $PWD in *--landing) ;; *) exit 0 ;; esac
ls strange.txt >> "$HOME/tested" 2>&1 && exit 0
export GIT_INDEX_FILE="$HOME/index"
git read-tree main && git update-index --add --cacheinfo "100644,$(echo strange | git hash-object -w --stdin),strange.txt"
git -c core.hooksPath=/dev/null update-ref refs/heads/main "$(git commit-tree -p main -m strange "$(git write-tree)")"
`,
  )
  const done = await ralph(at, ['up', '--into', 'main', '--json', ...at.args, '--verify', gate])
  expect([done.code, at.read('../home/tested').trim().split('\n')]).toEqual([
    0,
    [expect.stringContaining('No such file'), 'strange.txt'],
  ])
  const moved = events(done).filter(({ type }) => type === 'base.moved')
  expect(moved).toMatchObject([{ came: [expect.stringMatching(/^[0-9a-f]+ \(strange\)$/)] }])
  expect(at.git('log', '--format=%s', '-2', 'main')).toBe('The change a\nstrange')
  expect((await ralph(at, ['queue'])).stdout).toMatch(
    /its target got [0-9a-f]+ \(strange\) while its gates ran, not made by the queue/,
  )
})

it('I1 I2: a set-up or a gate that puts the HEAD of the landing tree on a branch moves none: ralph goes back to its commit on no branch', async () => {
  const at = project({ a: '' }, 1)
  const refs = (): string[] => [at.git('for-each-ref', 'refs/heads/main'), at.git('status', '--porcelain')]
  const before = refs()
  const setup = 'case $PWD in *--landing) git symbolic-ref HEAD refs/heads/main ;; esac'
  expect((await ralph(at, ['up', 'a', '--setup', setup, ...at.args])).code).toBe(0)
  expect(refs()).toEqual(before)

  at.write('openspec/changes/c/tasks.md', tasksOf(1))
  const landing = '#!/bin/sh\ncase $PWD in *--landing) ;; *) exit 0 ;; esac\n'
  const own = at.script(
    'own.sh',
    `${landing}git branch own $(git commit-tree -m own "HEAD^{tree}") && git symbolic-ref HEAD refs/heads/own\nexit 0\n`,
  )
  const unseen = at.script(
    'unseen.sh',
    `${landing}unset GIT_CONFIG_PARAMETERS\n[ ! -f work/c.txt ] || git update-ref refs/heads/main HEAD\nexit 1\n`,
  )
  before[1] = at.git('status', '--porcelain')
  expect((await ralph(at, ['up', 'c', ...at.args, '--verify', own, '--verify', unseen])).code).not.toBe(0)
  expect(refs()).toEqual(before)
  expect(at.git('log', '--format=%s', 'own')).toBe('own')
})

it('ralph up without gates says that the agent’s word counts, with the command that would make one; with a gate it does not', async () => {
  const at = await ranUp({ a: '', b: '' }, ['a'])
  at.write('package.json', '{"scripts":{"test":"node --test"}}\n')
  const [flag = '', command = ''] = at.args
  const bare = await ralph(at, ['up', 'b', flag, command])
  expect(bare.stdout).toMatch(/queue → main, 2 at once; no gates: the agent's word counts \(found npm test: /)
  expect(at.up.stdout).toContain('queue → main')
  expect(at.up.stdout).not.toContain('no gates')
})
