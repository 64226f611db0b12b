// What an attacker found who had only the contract and the packed program, each as the shortest story that shows it.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { goodAgent, killRalph, longDead, ralph, scratch, start, tasksOf, type Scratch } from './harness.ts'
import { after, scene } from './scenes.ts'

const complete = "echo '<promise>COMPLETE</promise>'"
const failed = "echo '<promise>FAILED: no</promise>'"

function loop(agent: string, ...flags: string[]): string[] {
  return ['loop', 'demo', '--max-retries', '0', '--agent-command', `cat > /dev/null; ${agent}`, ...flags]
}

/** A file more. */
const works = `echo x > made; ${complete}`
const done = (agent = works): Promise<Scratch> => after(loop(agent), { tasks: tasksOf(1), code: 0 })
const stuck = (checkpoint = 'branch'): Promise<Scratch> =>
  after(loop(`echo x > new.txt; ${failed}`, '--checkpoint', checkpoint), { tasks: tasksOf(1), code: 3 })

/** A loop whose agent works, until all of it is killed. */
async function killedAll(at: Scratch, ...flags: string[]): Promise<void> {
  const running = start(at, loop(`echo AG >> README.md; touch ../started; exec sleep 600`, ...flags))
  while (!existsSync(join(at.root, 'started'))) await delay(20)
  running.child.kill('SIGKILL')
  await running.ended
  await ralph(at, ['stop', 'demo'])
}

test('O11: a stash entry of the user’s that has a name like ralph’s own is never touched', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('README.md', 'stashed by the user\n')
  const hash = at.git('stash', 'create')
  at.git('checkout', '-q', 'README.md')
  for (const name of ['ralph:demo:mynotes', 'ralph:demo:1']) at.git('stash', 'store', '-m', name, hash)
  const before = at.git('stash', 'list', '--format=%H %gs')
  const end = await ralph(at, ['loop', 'demo', '--checkpoint', 'stash', '--agent-command', goodAgent])
  expect([end.code, at.git('stash', 'list', '--format=%H %gs')]).toEqual([0, before])
})

test('G8: a branch that is another name for one (a symbolic ref) is refused at the start, and at the end where it became one', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  at.git('branch', 'trunk')
  at.git('symbolic-ref', 'refs/heads/main', 'refs/heads/trunk')
  const all = (): string => [at.git('for-each-ref'), at.git('status', '--porcelain')].join('\n')
  const before = all()
  for (const mode of [[], ['--worktree'], ['--checkpoint', 'stash']]) {
    const end = await ralph(at, loop(goodAgent, ...mode))
    expect(end.code).toBe(2)
    expect(end.stderr).toContain('main is another name for trunk (a symbolic ref)')
    expect(end.stderr).toContain('git switch trunk')
  }
  expect([all(), existsSync(join(at.root, 'repo-ralph-demo'))]).toEqual([before, false])
  at.git('switch', '-q', 'trunk')
  expect((await ralph(at, loop(goodAgent, '--max-iterations', '1'))).code).toBe(3)
  at.git('branch', 'other', 'trunk')
  at.git('symbolic-ref', 'refs/heads/trunk', 'refs/heads/other')
  const kept = all()
  for (const command of [
    ['finish', 'demo', '--squash'],
    ['finish', 'demo', '--cleanup'],
    ['resume', 'demo'],
  ]) {
    const end = await ralph(at, command)
    expect([end.code === 0, all()]).toEqual([false, kept])
    expect(end.stderr).toContain('trunk, where the work came from, is only another name for other now')
  }
  const said = (await ralph(at, ['finish', 'demo', '--squash'])).stderr
  execFileSync('sh', ['-c', /`(git symbolic-ref [^`]+)`/.exec(said)?.[1] ?? 'false'], {
    cwd: at.repo,
    env: at.env,
  })
  expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(0)
  expect(at.git('log', '--format=%s', 'trunk').split('\n').length).toBe(2)
  expect(at.git('ls-tree', '--name-only', 'trunk')).toContain('README.md')
})

test('O14: a story that the user adds while an attempt fails stays one of its own, and has to be done', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `cat > /dev/null; echo $RALPH_STORY >> ../asked; case $RALPH_STORY$RALPH_ATTEMPT in 11) touch ../started; while [ ! -e ../added ]; do sleep .05; done; ${failed};; *) ${complete};; esac`
  const running = start(at, [
    'loop',
    'demo',
    '--max-retries',
    '1',
    '--max-iterations',
    '9',
    '--agent-command',
    agent,
  ])
  while (!existsSync(join(at.root, 'started'))) await delay(20)
  const tasks = at.read('openspec/changes/demo/tasks.md')
  at.write(
    'openspec/changes/demo/tasks.md',
    `${tasks}\n## 2. By the user\n\nIn their words.\n\n- [ ] 2.1 theirs\n`,
  )
  writeFileSync(join(at.root, 'added'), '')
  const end = await running.ended
  expect([end.code, readFileSync(join(at.root, 'asked'), 'utf8')]).toEqual([0, '1\n1\n2\n'])
  expect(at.read('openspec/changes/demo/tasks.md')).toMatch(
    /## 2\. By the user\n\nIn their words\.\n\n- \[x\] 2\.1 theirs/,
  )
})

test('O14: a task that the user adds while an attempt fails stays in the plan, and has to be done', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `cat > /dev/null; case $RALPH_ATTEMPT in 1) touch ../started; while [ ! -e ../added ]; do sleep .05; done; ${failed};; *) cat openspec/changes/demo/tasks.md > ../seen; ${complete};; esac`
  const running = start(at, ['loop', 'demo', '--max-retries', '1', '--agent-command', agent])
  while (!existsSync(join(at.root, 'started'))) await delay(20)
  const tasks = at.read('openspec/changes/demo/tasks.md')
  at.write('openspec/changes/demo/tasks.md', `${tasks}- [ ] 1.9 by the user\n`)
  writeFileSync(join(at.root, 'added'), '')
  const end = await running.ended
  expect([end.code, at.state().status]).toEqual([0, 'done'])
  expect(readFileSync(join(at.root, 'seen'), 'utf8')).toContain('- [ ] 1.9 by the user')
  expect(at.read('openspec/changes/demo/tasks.md')).toContain('- [x] 1.9 by the user')
  expect(end.stdout + end.stderr).toMatch(/a task was added to tasks\.md while the attempt ran.*it stays/)
})

describe('links that appear in place of the state file', () => {
  test.each([
    [
      'its folder',
      'until rm -rf .claude && ln -sT ../outside .claude; do :; done',
      /was replaced by a file; that is kept as .*\.claude\.backup-\d+/,
    ],
    [
      'the file',
      'rm -f .claude/loop-state.json; ln -s ../../outside/loop-state.json .claude/loop-state.json',
      /Story 1 +#1/,
    ],
    [
      'its folder, and no link but a file',
      'until rm -rf .claude && echo mine > .claude; do :; done',
      /was replaced by a file; that is kept as .*\.claude\.backup-\d+/,
    ],
  ])(
    'O15: in place of %s: what it leads to is not written over, and the loop goes on',
    async (_what, deed, told) => {
      const at = scratch({ tasks: tasksOf(1) })
      const outside = join(at.root, 'outside')
      mkdirSync(outside)
      writeFileSync(join(outside, 'loop-state.json'), 'of the user\n')
      // Output moves the file's time of last activity, so that it is written while the link is there. `until`: a
      // write of the state file that is under way makes the folder again under the agent's hands.
      const agent = `${deed}; for i in 1 2 3 4 5 6; do echo working; sleep .5; done; ${failed}`
      const end = await ralph(at, loop(agent))
      expect([end.code, end.stdout + end.stderr]).toEqual([3, expect.stringMatching(told)])
      const held = execFileSync('sh', ['-c', `cat ${outside}/*`], { encoding: 'utf8' })
      expect(held).toBe('of the user\n')
      expect(at.state().status).toBe('stuck')
    },
  )
})

test.for([
  { git: 'git', said: 'the agent left a bisect half done; it was ended' },
  // As a person's: nobody watches it.
  { git: 'env -i PATH="$PATH" git', said: 'a bisect was begun while the agent worked, not by the agent' },
])(
  'O12, G21: what $git leaves half done is ended, and blamed on nobody who has not begun it',
  async ({ git, said }) => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `cat > /dev/null; ${git} bisect start > /dev/null; ${complete}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect([end.code, existsSync(join(at.repo, '.git/BISECT_LOG'))]).toEqual([0, false])
    expect(end.stderr.replaceAll(/\s+/g, ' ')).toContain(said)
    const kept = join(at.repo, '.git/ralph/checkpoints/demo/half-done')
    const [folder = ''] = readdirSync(kept)
    expect(readFileSync(join(kept, folder, 'BISECT_LOG'), 'utf8')).toContain('git bisect start')
  },
)

test.each([
  ['commit --amend -qm mine', 'Everything is on main', false],
  ['reset -q --hard HEAD~1', 'ralph/demo was set back', true],
])(
  'O3: after `git %s` on the branch of a loop that is done, finish says what is true: %s',
  async (typed, said, isOff) => {
    const at = await done()
    at.git(...typed.split(' '))
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(end.code).toBe(0)
    expect(end.stdout).toContain(said)
    expect([end.stdout.includes('set back'), existsSync(join(at.repo, 'made'))]).toEqual([isOff, !isOff])
  },
)

test('O10: a folder in the place of HEAD or of the index is moved aside and told, and the loop goes on', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('mine.txt', 'of the user\n')
  const agent = `rm .git/HEAD .git/index; mkdir .git/HEAD .git/index; echo x > .git/index/notes; ${complete}`
  const end = await ralph(at, [...loop(agent), '--on-complete', 'cleanup'])
  const said = end.stderr.replaceAll(/\s+/g, ' ')
  const [, aside = ''] = /index was a folder, where git needs a file; it was moved to (\S+)/.exec(said) ?? []
  expect([end.code, readFileSync(join(aside, 'notes'), 'utf8')]).toEqual([0, 'x\n'])
  expect(at.git('status', '--porcelain', '--', 'mine.txt')).toBe('?? mine.txt')
})

test('O15: an agent that leaves a pipe where git reads: no command hangs, and the file is back', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('.gitignore', '*.log\n')
  at.git('add', '.gitignore')
  at.git('commit', '-qm', 'rules')
  const end = await ralph(at, loop(`rm .gitignore; mkfifo .gitignore; ${failed}`, '--command-timeout', '5'))
  expect([end.code, at.read('.gitignore')]).toEqual([3, '*.log\n'])
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
})

test('O15: the mode of a private file that is committed comes back', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  chmodSync(join(at.repo, 'README.md'), 0o600)
  expect((await ralph(at, loop(`echo j > README.md; ${failed}`))).code).toBe(3)
  expect(statSync(join(at.repo, 'README.md')).mode & 0o777).toBe(0o600)
})

test('O3: staged versions that an agent has pruned: said, and the index is one that works', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('README.md', 'staged\n')
  at.git('add', 'README.md')
  at.write('README.md', 'unstaged\n')
  const prune = `git for-each-ref --format='delete %(refname)' refs/ralph | git update-ref --stdin; git reflog expire --expire=now --all; git gc -q --prune=now`
  await ralph(at, loop(`${prune}; ${failed}`))
  const end = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect(end.stdout + end.stderr).toContain('What you had staged of README.md is lost')
  expect(at.read('README.md')).toBe('unstaged\n')
  at.git('commit', '-qam', 'works')
})

test('O12: a repository inside the work tree that goes, a checkout that is swept, a stash that is dropped unseen: each is told', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('README.md', 'stashed\n')
  at.git('stash', '-q')
  execFileSync(
    'sh',
    [
      '-c',
      'git init -q own && cd own && git -c user.name=u -c user.email=u@example.org commit -q --allow-empty -m o',
    ],
    {
      cwd: at.repo,
      env: at.env,
    },
  )
  const unseen = 'env -i PATH="$PATH" HOME="$HOME" git stash drop -q'
  const end = await ralph(at, loop(`rm -rf own; ${unseen}; ${failed}`))
  const said = end.stdout + end.stderr
  expect(said).toContain('the repository own/ disappeared while the attempt ran')
  expect(said).not.toContain('gone since the attempt began')
  const command = /git stash store \w+/.exec(said)?.[0] ?? 'false'
  execFileSync('sh', ['-c', command], { cwd: at.repo, env: at.env })
  expect(at.git('show', 'stash:README.md')).toBe('stashed')
})

test('O7: --worktree: an agent that sweeps the user’s own checkout is named', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `cd '${at.repo}'; git reset -q --hard; git clean -qfd; ${complete}`
  const end = await ralph(at, loop(agent, '--worktree'))
  expect(end.stdout + end.stderr).toMatch(/the agent ran git in your own checkout.*git reset -q --hard/)
})

test('O7: a cleanup does not take a branch that another work tree stands on', async () => {
  const at = await done()
  at.git('worktree', 'add', '-q', '../other', 'main')
  const refused = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/main is checked out in another work tree: .*other/),
  ])
  expect(at.git('branch', '--show-current')).toBe('ralph/demo')
  const free = /git -C \S+ switch --detach/.exec(refused.stderr)?.[0] ?? 'false'
  execFileSync('sh', ['-c', free], { cwd: at.repo, env: at.env })
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
})

test.each([['cleanup'], ['squash']])(
  'O7: a %s does not delete the loop’s branch under another work tree that stands on it',
  async (choice) => {
    const at = await done()
    at.git('switch', '-q', 'main')
    at.git('worktree', 'add', '-q', '../other', 'ralph/demo')
    const there = (...args: string[]): string => at.git('-C', '../other', ...args)
    writeFileSync(join(at.root, 'other', 'mine.txt'), 'staged there\n')
    there('add', 'mine.txt')
    const before = [
      at.git('status', '--short'),
      at.git('for-each-ref'),
      there('status', '--short', '--branch'),
    ]
    const refused = await ralph(at, ['finish', 'demo', `--${choice}`])
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(
          `ralph/demo is checked out in another work tree: .*other\n.*${choice === 'squash' ? 'Nothing was touched' : 'touched nothing'}.*ralph finish demo --${choice}. again`,
          's',
        ),
      ),
    ])
    expect([
      at.git('status', '--short'),
      at.git('for-each-ref'),
      there('status', '--short', '--branch'),
    ]).toEqual(before)
    const free = /git -C \S+ switch --detach/.exec(refused.stderr)?.[0] ?? 'false'
    execFileSync('sh', ['-c', free], { cwd: at.repo, env: at.env })
    expect((await ralph(at, ['finish', 'demo', `--${choice}`])).code).toBe(0)
    expect(at.git('branch', '--list', 'ralph/demo')).toBe('')
    expect(there('status', '--short')).toBe('A  mine.txt')
  },
)

test('O7: a loop that is stuck is not gone on with on a branch that another work tree stands on, and it is said how', async () => {
  const at = await stuck()
  at.git('switch', '-q', 'main')
  at.git('worktree', 'add', '-q', '../other', 'ralph/demo')
  const refused = await ralph(at, ['resume', 'demo'])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(
      /ralph\/demo is checked out in another work tree: .*other\n.*git -C \S+other switch --detach/s,
    ),
  ])
  // Its folder is gone: nobody stands there.
  rmSync(join(at.root, 'other'), { recursive: true })
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
})

test('L: `restore --to` a file is refused with the reason', async () => {
  const at = await stuck()
  for (const to of ['README.md', 'README.md/below']) {
    const end = await ralph(at, ['restore', '1', 'demo', '--to', to])
    expect([end.code, end.stderr]).toEqual([
      2,
      expect.stringMatching(/README\.md.* is not a folder\n.*Name a folder/),
    ])
  }
  expect(at.read('README.md')).toBe('# scratch\n')
})

test('L: an agent that puts a file in the place of .git is told as one that moved it, and resume goes on', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const moves = `[ -e ../moved ] || { touch ../moved; mv .git ../real; echo "gitdir: $PWD/../real" > .git; ${failed}; exit; }; ${complete}`
  const end = await ralph(at, loop(moves))
  expect([end.code, end.stdout + end.stderr]).toEqual([
    1,
    expect.stringContaining('.git is gone: it was deleted or moved'),
  ])
  expect(end.stderr).not.toMatch(/ENOTDIR|bug in ralph/)
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
})

test('L: a folder in the place of the state file is moved aside and told, during the loop and before it', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const takes = 'until rm -rf .claude && mkdir -p .claude/loop-state.json/mine; do :; done'
  const end = await ralph(at, loop(`${takes}; ${complete}`))
  expect([end.code, end.stdout + end.stderr]).toEqual([
    0,
    expect.stringMatching(/loop-state\.json was not a state file of ralph’?'?s; it is kept as .*backup/),
  ])
  rmSync(join(at.repo, '.claude'), { recursive: true })
  mkdirSync(join(at.repo, '.claude/loop-state.json/mine'), { recursive: true })
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  const held = execFileSync('sh', ['-c', 'ls -d .claude/loop-state.json.backup-*/mine'], {
    cwd: at.repo,
    encoding: 'utf8',
  })
  expect(held).toContain('mine')
})

test.each([
  ['git branch -f main HEAD'],
  ['git update-ref refs/heads/main $(git commit-tree -m amended main^{tree})'],
])(
  'L, O12: where the user moves or amends the branch that they came from (%s), only what ralph did to it is said',
  async (move) => {
    const at = scratch({ tasks: tasksOf(1) })
    const typed = at.script('typed.sh', `#!/bin/sh\ncd "${at.repo}"\n${move}\n`)
    const agent = `env -i PATH="$PATH" HOME="$HOME" GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u@x GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u@x sh -e "${typed}"; ${complete}`
    const end = await ralph(at, loop(agent))
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining('This loop has not changed main.')])
    expect(end.stdout).not.toContain('main is not changed')
    expect(at.git('rev-parse', 'main')).not.toBe(at.git('rev-list', '--max-parents=0', 'ralph/demo'))
  },
)

test('L: where the branch that the user came from is deleted meanwhile, nobody says that ralph has not changed it', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const end = await ralph(at, loop(`rm .git/refs/heads/main; ${complete}`))
  expect([end.code, end.stdout]).toEqual([
    0,
    expect.stringContaining('The branch main is gone (renamed or deleted)'),
  ])
  expect(end.stdout).not.toContain('has not changed')
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).stdout).toContain('is made again')
})

test.each([
  [
    'archived',
    'mkdir -p openspec/changes/archive && git mv openspec/changes/demo openspec/changes/archive/2026-01-01-demo',
  ],
  ['renamed', 'git mv openspec/changes/demo openspec/changes/other'],
  ['deleted', 'git rm -rq openspec/changes/demo'],
])('L: finish of a change that was %s meanwhile does not advise to resume it', async (_what, deed) => {
  const at = await stuck()
  execFileSync('sh', ['-c', `${deed} && git commit -qm moved`], { cwd: at.repo, env: at.env })
  const end = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect([end.code, end.stdout]).toEqual([0, expect.not.stringMatching(/next +ralph resume/)])
  expect(end.stdout).toMatch(
    /next: the change demo is not in .*changes any more; to continue it, bring its folder back, then ralph resume demo/,
  )
})

test.each([
  ['a cleanup', ['--on-complete', 'cleanup']],
  ['stashes', ['--checkpoint', 'stash']],
  ['its branch', []],
])(
  'L: status of a change that was archived after %s does not advise to resume it; once it is back, it does',
  async (_, flags) => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `[ "$RALPH_STORY" = 1 ] && { ${complete}; } || ${failed}`
    expect((await ralph(at, [...loop(agent), ...flags])).code).toBe(3)
    const [from, to] = ['demo', 'archive/2026-01-01-demo'].map((name) =>
      join(at.repo, 'openspec/changes', name),
    ) as [string, string]
    mkdirSync(join(at.repo, 'openspec/changes/archive'))
    renameSync(from, to)
    for (const command of ['status', 'why']) {
      const { stdout } = await ralph(at, [command, 'demo'])
      expect(stdout).toMatch(/only with its folder back:\s+it is not in openspec\/changes any more/)
      expect(stdout).not.toMatch(/(next|then|or) +ralph resume|--feedback/)
    }
    renameSync(to, from)
    expect((await ralph(at, ['status'])).stdout).toMatch(/(next|then) +ralph resume demo/)
  },
)

describe('right after a death', () => {
  test.each([['branch'], ['stash']])(
    'O5: %s: what the user changes once `ralph stop` has returned stays, at once',
    async (strategy) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.write('older.txt', 'typed before the loop\n')
      await killedAll(at, '--checkpoint', strategy)
      at.write('hand.txt', 'typed at once\n')
      at.write('older.txt', 'typed after it\n')
      const end = await ralph(at, ['finish', 'demo', '--cleanup'])
      expect([end.code, at.read('hand.txt')]).toEqual([0, 'typed at once\n'])
      expect(at.read('older.txt')).toBe('typed after it\n')
      expect(end.stderr).toMatch(/so yours; it stays as it is: older\.txt, hand\.txt/)
      const earlier = /git show .*/.exec(end.stderr)?.[0] ?? 'false'
      const shows = execFileSync('sh', ['-c', earlier], { cwd: at.repo, env: at.env, encoding: 'utf8' })
      expect(shows).toBe('typed before the loop\n')
      const diff = await ralph(at, ['diff', '1'])
      expect([diff.stdout, diff.stderr]).toEqual([
        expect.stringContaining('+AG'),
        expect.stringMatching(/in this attempt, too: .*so yours.*hand\.txt/),
      ])
    },
  )

  test.each([['branch'], ['stash']])(
    'O5: %s: a commit of the user’s after the death: nothing untrue is said of it, and its content stays',
    async (strategy) => {
      const at = scratch({ tasks: tasksOf(1) })
      await killedAll(at, '--checkpoint', strategy)
      longDead(at)
      at.write('mine.txt', 'mine\n')
      at.git('add', 'mine.txt')
      at.git('commit', '-qam', 'mine')
      const commit = at.git('rev-parse', 'HEAD')
      const end = await ralph(at, ['finish', 'demo', '--cleanup'])
      const said = end.stdout + end.stderr
      expect([end.code, at.read('mine.txt'), said.includes('made while the agent ran')]).toEqual([
        0,
        'mine\n',
        false,
      ])
      expect(said).not.toContain('the work tree is back')
      const typed = (command = 'false'): string =>
        execFileSync('sh', ['-c', command], { cwd: at.repo, env: at.env, encoding: 'utf8' })
      if (strategy === 'stash') {
        // The attempt's line is in the commit, and stays with it.
        const diff = /what the attempt had changed is in it too: README\.md \((git diff .*)\)/.exec(said)?.[1]
        expect([at.git('rev-parse', 'HEAD'), typed(diff)]).toEqual([commit, expect.stringContaining('+AG')])
      } else {
        expect(said).toMatch(/your commit \w+ \(mine\).*is in the work tree, uncommitted, but for 1 of/)
        typed(/\((git restore .*README\.md')\)/.exec(said)?.[1])
        expect(at.read('README.md')).toBe('# scratch\nAG\n')
      }
    },
  )

  test('O10: status and doctor say which settings and hooks of the dead attempt are in force, until they are put back', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = 'git config core.hooksPath .evil; git config user.name A; echo exit > .git/hooks/pre-commit'
    const running = start(at, loop(`${agent}; touch ../started; exec sleep 600`))
    while (!existsSync(join(at.root, 'started'))) await delay(20)
    running.child.kill('SIGKILL')
    await running.ended
    const live =
      /left settings or hooks that git uses: \.git\/config \(core\.hookspath = \.evil\), \.git\/hooks\/pre-commit; they stay active until ralph resume demo/
    for (const command of [['status', 'demo'], ['doctor']])
      expect((await ralph(at, command)).stdout).toMatch(live)
    const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
    // F20: the name that the agent took is the user's from now on, so it is said.
    expect([finish.code, finish.stderr]).toEqual([
      0,
      expect.stringMatching(/user\.name = A was set .* git config user\.name User\n/),
    ])
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('in force')
  })

  test('O5: a fresh start names a commit that still has what it undid', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const running = start(at, loop('touch ../started; exec sleep 600'))
    while (!existsSync(join(at.root, 'started'))) await delay(20)
    running.child.kill('SIGKILL')
    await running.ended
    longDead(at)
    at.write('README.md', 'beside the orphan\n')
    const end = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    const command = /git restore --source=\w+ -- \S+README\.md\S*/.exec(end.stderr)?.[0] ?? 'false'
    mkdirSync(join(at.repo, 'folder'))
    execFileSync('sh', ['-c', command], { cwd: join(at.repo, 'folder'), env: at.env })
    expect(at.read('README.md')).toBe('beside the orphan\n')
  })

  test('O10: a git setting that may be the user’s is put back with the command that sets it again', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await killedAll(at)
    at.git('config', 'alias.mine', 'status -s')
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(end.stderr).toMatch(/changed while #1 ran, or after the loop had died/)
    const command = /If it was you: (git config .*)$/m.exec(end.stderr)?.[1] ?? 'false'
    execFileSync('sh', ['-c', command], { cwd: at.repo, env: at.env })
    expect(at.git('config', 'alias.mine')).toBe('status -s')
  })
})

describe('third look', () => {
  test('O7, O16: an ignored file that the branch of the run has is in nobody’s way: resume and finish refuse, and it stays', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('.gitignore', 'conf.local\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignored')
    const agent = `[ "$RALPH_STORY" = 2 ] && echo '<promise>FAILED: no</promise>' && exit; : > .gitignore; echo agent > conf.local; ${goodAgent}`
    expect((await ralph(at, ['loop', 'demo', '--max-retries', '0', '--agent-command', agent])).code).toBe(3)
    at.git('switch', '-q', 'main')
    at.write('conf.local', 'precious\n')
    const refused = await ralph(at, ['resume', 'demo'])
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/git ignores in .*: conf\.local/),
    })
    expect([at.read('conf.local'), at.git('symbolic-ref', '--short', 'HEAD')]).toEqual(['precious\n', 'main'])
  })

  test('O8: --fresh begins where the user stands, also where the dead run had to be put in order elsewhere first', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const bin = join(at.root, 'bin')
    mkdirSync(bin)
    at.script(
      'bin/git',
      `#!/bin/sh\n[ -e '${at.root}/second' ] && { ${killRalph}; }\nPATH="\${PATH#*:}" exec git "$@"\n`,
    )
    const agent = `[ "$RALPH_STORY" = 1 ] && echo x > story-1.txt || touch '${at.root}/second'; echo '<promise>COMPLETE</promise>'`
    const env = { PATH: `${bin}:${at.env['PATH']}` }
    expect((await ralph(at, ['loop', 'demo', '--agent-command', agent], { env })).signal).toBe('SIGKILL')
    longDead(at)
    at.git('switch', '-q', 'main')
    const fresh = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect(fresh.code).toBe(0)
    expect(fresh.stderr).toContain('begins where you stand, main at')
    expect(at.git('log', '--format=%s', 'ralph/demo')).toBe(
      'checkpoint: 2\ncheckpoint: 1\ninitial state\nstart',
    )
  })
})

describe.each(['--skip-worktree', '--assume-unchanged'])('an edit behind %s', (flag) => {
  const hide = (at: Scratch): void => {
    at.git('update-index', flag, 'README.md')
    at.write('README.md', 'hidden\n')
  }
  const overwrite = `echo agent > README.md; ${complete}`
  /** A commit on main, made elsewhere, so that a cleanup has to write the file. */
  const moveMain = (at: Scratch): void => {
    at.git('worktree', 'add', '-q', '../other', 'main')
    writeFileSync(join(at.root, 'other/README.md'), 'on main\n')
    execFileSync('git', ['commit', '-qam', 'moved'], { cwd: join(at.root, 'other'), env: at.env })
    at.git('worktree', 'remove', '../other')
  }

  test.each(['--cleanup', '--squash'])(
    'G22: finish %s of a loop in a work tree of its own refuses, touches nothing, and its command works',
    async (how) => {
      const at = await scene(`an edit behind ${flag}, then a loop elsewhere`, async () => {
        const made = scratch({ tasks: tasksOf(1) })
        hide(made)
        expect((await ralph(made, loop(overwrite, '--worktree'))).code).toBe(0)
        return made
      })
      const end = await ralph(at, ['finish', 'demo', how])
      expect(end).toMatchObject({ code: 1, stderr: expect.stringMatching(/in the way: README\.md\n/) })
      expect(at.read('README.md')).toBe('hidden\n')
      const show = /show them to git: `([^`]*--no-skip-worktree[^`]*)`/.exec(end.stderr)?.[1] ?? 'false'
      execFileSync('sh', ['-c', show], { cwd: at.root, env: at.env })
      at.git('stash', 'push', '-q')
      expect((await ralph(at, ['finish', 'demo', how])).code).toBe(0)
      expect([at.read('README.md'), at.git('show', 'stash@{0}:README.md')]).toEqual(['agent\n', 'hidden'])
    },
  )

  test.each(['--cleanup', '--squash'])(
    'G22: made after the loop, on its branch or on main: finish %s refuses, and touches nothing',
    async (how) => {
      const at = await done()
      moveMain(at)
      hide(at)
      const refused = { code: 1, stderr: expect.stringMatching(/in the way: README\.md\n.*no-skip-worktree/) }
      expect(await ralph(at, ['finish', 'demo', how])).toMatchObject(refused)
      expect([at.read('README.md'), at.git('symbolic-ref', '--short', 'HEAD')]).toEqual([
        'hidden\n',
        'ralph/demo',
      ])
    },
  )

  test('G22: made on main, where the loop has changed the file: finish refuses, and touches nothing', async () => {
    const at = await done(overwrite)
    at.git('switch', '-q', 'main')
    hide(at)
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(end).toMatchObject({ code: 1, stderr: expect.stringMatching(/in the way: README\.md\n/) })
    expect(at.read('README.md')).toBe('hidden\n')
    const back = await ralph(at, ['resume', 'demo', '--accept-config'])
    expect([back.code === 0, at.read('README.md')]).toEqual([true, 'hidden\n'])
  })

  test.each(['branch', 'stash'])('G22: resume (%s) refuses, and touches nothing', async (mode) => {
    const at = await stuck(mode)
    hide(at)
    const end = await ralph(at, ['resume', 'demo', '--agent-command', overwrite])
    expect(end).toMatchObject({ code: 2, stderr: expect.stringMatching(/would be lost: README\.md\n/) })
    expect(at.read('README.md')).toBe('hidden\n')
  })

  test.each(['branch', 'stash'])(
    'G22: no edit behind it (%s): what an agent writes there is undone or saved as everywhere',
    async (mode) => {
      const at = scratch({ tasks: tasksOf(1) })
      at.git('update-index', flag, 'README.md')
      const before = at.git('ls-files', '-v', 'README.md')
      expect((await ralph(at, loop(`echo agent > README.md; ${failed}`, '--checkpoint', mode))).code).toBe(3)
      expect(at.read('README.md')).toBe('# scratch\n')
      expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
      expect(at.git('ls-files', '-v', 'README.md')).toBe(before)
      const gate = ['--verify', 'grep -q agent README.md', '--on-complete', 'cleanup']
      expect((await ralph(at, loop(overwrite, '--checkpoint', mode, '--fresh', ...gate))).code).toBe(0)
      expect([at.read('README.md'), at.git('status', '--short', 'README.md')]).toEqual([
        'agent\n',
        ' M README.md',
      ])
    },
  )
})

describe('what is staged, and in no file', () => {
  /** Staged, then set back in the file; and staged as a new file that is gone again. */
  const stage = (at: Scratch): void => {
    at.write('README.md', 'staged only\n')
    at.write('fresh.txt', 'staged new\n')
    at.git('add', 'README.md', 'fresh.txt')
    at.write('README.md', '# scratch\n')
    rmSync(join(at.repo, 'fresh.txt'))
  }
  const staged = (at: Scratch): string[] => [at.git('show', ':README.md'), at.git('show', ':fresh.txt')]
  const all = ['staged only', 'staged new']
  /** As told, typed in a folder of the repository. */
  const typed = (at: Scratch, said: string): void => {
    const command = /this stages it again: (git restore --staged .*?)(; |$)/m.exec(said)?.[1] ?? 'false'
    mkdirSync(join(at.repo, 'folder'), { recursive: true })
    execFileSync('sh', ['-c', command], { cwd: join(at.repo, 'folder'), env: at.env })
  }

  test.each(['--cleanup', '--squash'])('G15: after the loop: finish %s leaves it staged', async (how) => {
    const at = await done()
    stage(at)
    expect((await ralph(at, ['finish', 'demo', how])).code).toBe(0)
    expect([at.git('symbolic-ref', '--short', 'HEAD'), ...staged(at)]).toEqual(['main', ...all])
    expect(at.read('README.md')).toBe('# scratch\n')
  })

  test.each(['--cleanup', '--squash'])(
    'G15: before the loop, then back on the branch by hand: finish %s stages it again, but nothing over what is staged since',
    async (how) => {
      const plan = 'openspec/changes/demo/proposal.md'
      const index = (where: Scratch, text: string): void => {
        const was = where.read(plan)
        where.write(plan, text)
        where.git('add', plan)
        where.write(plan, was)
      }
      const at = await scene('staged only, then done', async () => {
        const made = scratch({ tasks: tasksOf(1) })
        stage(made)
        index(made, 'then\n')
        expect((await ralph(made, loop(works))).code).toBe(0)
        return made
      })
      at.git('switch', '-q', 'main')
      index(at, 'since\n')
      expect((await ralph(at, ['finish', 'demo', how])).code).toBe(0)
      expect([...staged(at), at.git('show', `:${plan}`)]).toEqual([...all, 'since'])
      expect(at.read('made')).toBe('x\n')
    },
  )

  test.each(['main', 'ralph/demo'])(
    'G15: before a loop that changes the file: finish on %s tells the command that stages it again',
    async (branch) => {
      const at = await scene('staged only, then a loop that changes it', async () => {
        const made = scratch({ tasks: tasksOf(1) })
        stage(made)
        made.write('in-file.txt', 'in a file, too\n')
        made.git('add', 'in-file.txt')
        const agent = `for file in README.md fresh.txt in-file.txt; do echo a > $file; done; ${complete}`
        expect((await ralph(made, loop(agent))).code).toBe(0)
        return made
      })
      at.git('switch', '-q', branch)
      const end = await ralph(at, ['finish', 'demo', '--cleanup'])
      const line = end.stdout.split('\n').find((each) => each.includes('stages it again'))
      expect(line).not.toContain('in-file.txt')
      at.git('gc', '-q', '--prune=now')
      typed(at, end.stdout)
      expect([end.code, ...staged(at)]).toEqual([0, ...all])
    },
  )

  test.each(['main', 'ralph/demo'])(
    'G15: what git add -N announces is no staged version: finish on %s tells nothing of it, and stages no empty file',
    async (branch) => {
      const at = await scene('announced, then done', async () => {
        const made = scratch({ tasks: tasksOf(1) })
        made.write('announced.txt', 'mine\n')
        made.git('add', '-N', 'announced.txt')
        expect((await ralph(made, loop(works))).code).toBe(0)
        return made
      })
      at.git('switch', '-q', branch)
      const end = await ralph(at, ['finish', 'demo', '--cleanup'])
      expect([end.code, end.stdout]).toEqual([0, expect.not.stringContaining('announced.txt')])
      expect([at.git('diff', '--cached', '--name-only'), at.read('announced.txt')]).toEqual(['', 'mine\n'])
    },
  )

  test('G15: of a file that the loop has changed: finish tells the command that stages it again', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    expect((await ralph(at, loop(`echo a > README.md; echo b > fresh.txt; ${complete}`))).code).toBe(0)
    stage(at)
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    at.git('gc', '-q', '--prune=now')
    typed(at, end.stdout)
    expect([end.code, ...staged(at)]).toEqual([0, ...all])
  })

  test('G15: in the very moment in which finish goes back to the branch: it is kept and told', async () => {
    const at = await done()
    // Without it git is asked to move HEAD, which is the moment.
    rmSync(join(at.repo, '.git/logs/HEAD'))
    mkdirSync(join(at.root, 'bin'))
    at.script(
      'bin/git',
      `#!/bin/sh
export PATH="\${PATH#*:}"
case "$*" in *symbolic-ref*"ralph: cleanup"*) [ -e ../struck ] || { touch ../struck; echo 'staged only' > README.md; echo 'staged new' > fresh.txt; git add README.md fresh.txt; printf '# scratch\\n' > README.md; rm fresh.txt; };; esac
exec git "$@"
`,
    )
    const env = { PATH: `${join(at.root, 'bin')}:${at.env['PATH']}` }
    const end = await ralph(at, ['finish', 'demo', '--cleanup'], { env })
    expect(existsSync(join(at.root, 'struck'))).toBe(true)
    at.git('gc', '-q', '--prune=now')
    typed(at, end.stdout)
    expect([end.code, ...staged(at)]).toEqual([0, ...all])
  })

  test('G15: before a resume: it is told, and staged again at the cleanup', async () => {
    const at = await stuck()
    stage(at)
    const end = await ralph(at, ['resume', 'demo', '--agent-command', `cat > /dev/null; ${works}`])
    at.git('gc', '-q', '--prune=now')
    expect([end.code, end.stderr]).toEqual([0, expect.stringMatching(/kept, and this stages it again: /)])
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect(staged(at)).toEqual(all)
  })

  test.each(
    ['branch', 'stash'].flatMap((mode) => [
      [mode, 'fails', failed, 3] as const,
      [mode, 'is saved', works, 0] as const,
    ]),
  )('G15: beside an attempt (%s) that %s: it is kept and told', async (mode, _how, end, code) => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `touch ../started; while [ ! -e ../staged ]; do sleep .05; done; ${end}`
    const running = start(at, loop(agent, '--checkpoint', mode))
    while (!existsSync(join(at.root, 'started'))) await delay(20)
    stage(at)
    writeFileSync(join(at.root, 'staged'), '')
    const ended = await running.ended
    at.git('gc', '-q', '--prune=now')
    typed(at, ended.stderr)
    expect([ended.code, ...staged(at)]).toEqual([code, ...all])
  })

  test('G15: after a kill: finish keeps it and tells it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await killedAll(at)
    stage(at)
    const end = await ralph(at, ['finish', 'demo', '--cleanup'])
    at.git('gc', '-q', '--prune=now')
    typed(at, end.stdout + end.stderr)
    expect([end.code, ...staged(at)]).toEqual([0, ...all])
  })

  test('G15: what an agent stages, commits and changes again is no news', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `echo 1 > a; git add a; git commit -qm a; echo 2 > a; echo 1 > b; git add -A; ${complete}`
    const end = await ralph(at, loop(agent))
    expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('staged')])
  })

  test('G15: before a first start, then stuck, then --fresh: it is staged again at the cleanup', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    stage(at)
    expect((await ralph(at, loop(failed))).code).toBe(3)
    at.write('more.txt', 'more\n')
    at.git('add', 'more.txt')
    expect((await ralph(at, loop(works, '--fresh'))).code).toBe(0)
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
    expect([...staged(at), at.git('show', ':more.txt')]).toEqual([...all, 'more'])
  })
})
