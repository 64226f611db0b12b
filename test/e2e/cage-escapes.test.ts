// Ways out of the cage that an attacker with the packed program has found, each as that attacker would use it.
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, watch, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { goodAgent, program, ralph, scratch, start, tasksOf, type Scratch } from './harness.ts'

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
const skipped = ` (needs bubblewrap${hasBwrap ? '' : ', which is not installed or may make no namespaces here'})`

const caged = ['--sandbox', 'strict', '--agent-command']

describe.skipIf(!hasBwrap)(`programs that an agent leaves in the work tree${skipped}`, () => {
  /** An ignored `openspec` and a `git`, which tell that they ran. */
  function planting(at: Scratch): { readonly agent: string; readonly ran: string } {
    at.write('.gitignore', 'node_modules/\n.venv/\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignored')
    const ran = join(at.root, 'home/ran')
    const plant = (path: string): string =>
      `mkdir -p $(dirname ${path}); printf '#!/bin/sh\\necho "$0 $*" >> ${ran}\\necho 1.13.2\\n' > ${path}; chmod +x ${path}`
    const agent = `${plant('node_modules/.bin/openspec')}; ${plant('.venv/bin/git')}; ${goodAgent}`
    return { agent, ran }
  }

  test('are never run outside of it: neither an openspec of the project, nor a git on a PATH that leads there', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent, ran } = planting(at)
    const env = { PATH: `${join(at.repo, '.venv/bin')}:${at.env['PATH'] ?? ''}` }
    // The first one has no earlier run to learn from.
    const first = await ralph(at, ['loop', 'demo', ...caged, agent], { env })
    expect(first.code).toBe(0)
    expect(existsSync(join(at.repo, 'node_modules/.bin/openspec'))).toBe(true)
    for (const words of [
      ['loop', 'demo', '--dry-run', '--agent-command', goodAgent],
      ['doctor'],
      ['status'],
      ['loop', 'demo', '--fresh', '--archive', ...caged, goodAgent],
      ['loop', 'demo', '--fresh', '--sandbox', 'off', '--archive', '--agent-command', goodAgent],
    ])
      await ralph(at, words, { env })
    expect(existsSync(ran) ? readFileSync(ran, 'utf8') : '').toBe('')
    const doctor = await ralph(at, ['doctor'], { env })
    expect(doctor.stdout).toContain('a sandboxed agent may have changed it')
  })
})

test('an openspec of the project is used where no agent was ever in a cage', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  mkdirSync(join(at.repo, 'node_modules/.bin'), { recursive: true })
  const real = resolve(import.meta.dirname, '../../node_modules/.bin/openspec')
  symlinkSync(real, join(at.repo, 'node_modules/.bin/openspec'))
  const doctor = await ralph(at, ['doctor'])
  expect(doctor.stdout).toContain('node_modules/.bin/openspec')
})

describe('a repository in the work tree with settings of its own', () => {
  const settings = (at: Scratch): string => `touch ${join(at.root, 'home/escaped')}; false`

  function withSubmodule(): Scratch {
    const at = scratch({ tasks: tasksOf(1) })
    const source = join(at.root, 'source')
    at.git('init', '-q', source)
    at.git(
      '-C',
      source,
      '-c',
      'user.name=U',
      '-c',
      'user.email=u@example.invalid',
      'commit',
      '-q',
      '--allow-empty',
      '-m',
      's',
    )
    at.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', source, 'sub')
    at.git('commit', '-qm', 'a submodule')
    return at
  }

  const ways = {
    'a folder in place of the .git file of a submodule': 'mv evil sub/.git',
    'a link in place of it': 'ln -s ../evil sub/.git',
    'a way to another folder in it': 'echo "gitdir: ../evil" > sub/.git',
    'a way to a git directory that it made beside':
      'mkdir -p .git/modules; mv evil .git/modules/evil; echo "gitdir: ../.git/modules/evil" > sub/.git',
  }
  const cases = Object.entries(ways).flatMap(([what, deed]) => [
    { what, deed, sandbox: 'off', promise: 'FAILED: x' },
    { what, deed, sandbox: hasBwrap ? 'strict' : 'off', promise: 'COMPLETE' },
  ])
  test.each(cases)(
    '$what: the user’s git runs nothing of it, and the loop goes on ($sandbox, $promise)',
    async ({ deed, sandbox, promise }) => {
      const at = withSubmodule()
      const link = at.read('sub/.git')
      const agent = at.script(
        'agent.sh',
        `#!/bin/sh
cp -r .git/modules/sub evil; chmod -R u+w evil
git config -f evil/config core.fsmonitor '${settings(at)}'; git config -f evil/config --unset core.worktree
rm sub/.git; ${deed}
echo '<promise>${promise}</promise>'
`,
      )
      const words = ['--max-retries', '0', '--sandbox', sandbox, '--agent-command', agent]
      const end = await ralph(at, ['loop', 'demo', ...words])
      expect([end.code, end.stderr]).toEqual([
        promise === 'COMPLETE' ? 0 : 3,
        expect.not.stringContaining('bug in ralph'),
      ])
      at.git('status', '--porcelain')
      at.git('-C', 'sub', 'status', '--porcelain')
      expect(existsSync(join(at.root, 'home/escaped'))).toBe(false)
      if (!deed.includes('modules')) expect(at.read('sub/.git')).toBe(link)
      if (deed.startsWith('mv') && promise === 'COMPLETE')
        expect(end.stderr + end.stdout).toMatch(/what stood there is kept in \S+/)
      const ended = await ralph(at, ['finish', 'demo', '--cleanup'])
      expect([0, 2]).toContain(ended.code)
      expect(ended.stderr).not.toContain('bug in ralph')
    },
  )

  const nested = {
    'a new repository':
      'git init -q new; git -C new -c user.name=A -c user.email=a@example.invalid commit -q --allow-empty -m n',
    'a new submodule': 'git -c protocol.file.allow=always submodule add -q ./ new',
  }
  test.each(Object.entries(nested))('%s: the user’s git runs nothing of it', async (_, deed) => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh
${deed}
git add -A; git commit -qm own
git -C new config core.fsmonitor '${settings(at)}'
echo '<promise>COMPLETE</promise>'
`,
    )
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('bug in ralph')])
    at.git('status', '--porcelain')
    expect(existsSync(join(at.root, 'home/escaped'))).toBe(false)
    if (existsSync(join(at.repo, 'new/.git')))
      expect(at.git('-C', 'new', 'rev-parse', 'HEAD')).toMatch(/^[0-9a-f]{40}$/)
  })
})

test.each(['off', ...(hasBwrap ? ['workspace', 'strict'] : [])])(
  'a file that the caller has open for ralph is not open for agent and gates: sandbox %s',
  (sandbox) => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    const look = (who: string): string =>
      `for fd in 9 20 200; do [ -d /proc/self/fd/$fd/ ] && echo ${who} $fd >> found.txt; done; true`
    const words = [
      'loop',
      'demo',
      '--sandbox',
      sandbox,
      '--verify',
      look('gate'),
      '--agent-command',
      `${look('agent')}; ${goodAgent}`,
    ]
    // dash has no name for so high a number.
    execFileSync(
      'bash',
      ['-c', 'exec 9<"$HOME" 20<"$HOME" 200<"$HOME"; exec "$@"', 'bash', process.execPath, program, ...words],
      {
        cwd: at.repo,
        env: at.env,
        stdio: 'ignore',
      },
    )
    expect(existsSync(join(home, 'found.txt')) || existsSync(join(at.repo, 'found.txt'))).toBe(false)
    expect(at.state().status).toBe('done')
  },
)

test.skipIf(!hasBwrap)(
  'an agent that reports the deeds of the user as its own has nothing of them undone',
  async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const first = at.git('rev-parse', 'main')
    const tree = join(at.root, 'tree')
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh
evil=$(git commit-tree -p main -m evil main^{tree})
echo x > started
until git rev-parse -q --verify feature >/dev/null; do sleep 0.05; done
ledger=$(dirname $GIT_TRACE2_EVENT)/ledger; zero=0000000000000000000000000000000000000000
forge() { printf '%s %s\\nwrote . %s %s %s\\n' "$1" "$2" "$3" "$4" "$1" >> $ledger; }
forge refs/heads/main ${first} ${first} $(git rev-parse main)
forge refs/heads/feature missing $zero $(git rev-parse feature)
forge refs/heads/held $evil $evil $(git rev-parse held)
echo x > x; echo '<promise>COMPLETE</promise>'
`,
    )
    at.git('worktree', 'add', '-q', join(at.root, 'beside'), '-b', 'held')
    const words = ['--sandbox', 'workspace', '--worktree', tree, '--agent-command', agent]
    const running = start(at, ['loop', 'demo', ...words])
    await appears(join(tree, 'started'))
    at.git('commit', '-q', '--allow-empty', '-m', 'of the user')
    const mine = at.git('rev-parse', 'main')
    at.git('branch', 'feature')
    expect((await running.ended).code).toBe(0)
    expect(at.git('rev-parse', 'main', 'feature', 'held').split('\n')).toEqual([mine, mine, first])
  },
)

describe.skipIf(!hasBwrap)(`the home in a cage${skipped}`, () => {
  test('hidden is what begins with a dot and what programs keep their logins in, but for shells, toolchains and what the user names', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    const hidden =
      '.ssh/id .newtool/auth.json .newtoolrc .config/newtool/token .config/pip/pip.conf .local/share/newtool/key .local/state/newtool/key .cache/newtool/session .cache/huggingface/token .cargo/credentials.toml .qwen/settings.json .viminfo'.split(
        ' ',
      )
    const seen =
      '.bashrc .nvm/nvm.sh .cargo/bin/cargo .config/git/ignore .local/bin/tool .local/share/pnpm/store/x .cache/pip/x .allowed/x .path/bin/program .path/lib/x notes.txt projects/.env'.split(
        ' ',
      )
    for (const path of [...hidden, ...seen]) {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), path)
    }
    const server = createServer().listen(join(home, '.agent.sock'))
    onTestFinished(() => void server.close())
    const look = [...hidden, ...seen].map((path) => `[ -s ~/${path} ] && echo ${path} >> seen.txt`).join('; ')
    const agent = `${look}; [ -S ~/.agent.sock ] && echo socket >> seen.txt; echo x > ~/.cache/new-builder; ${goodAgent}`
    const env = {
      PATH: `${join(home, '.path/bin')}:${at.env['PATH'] ?? ''}`,
      SSH_AUTH_SOCK: join(home, '.agent.sock'),
    }
    const words = [
      '--sandbox',
      'workspace',
      '--sandbox-allow',
      join(home, '.allowed'),
      '--agent-command',
      agent,
    ]
    const end = await ralph(at, ['loop', 'demo', ...words], { env })
    expect([end.code, at.read('seen.txt').trim().split('\n')]).toEqual([0, seen])
    expect(existsSync(join(home, '.cache/new-builder'))).toBe(true)
  })
})

test.skipIf(!hasBwrap)('files in the memory of a cage count for --max-memory', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const agent = `head -c 400M /dev/zero > /dev/shm/x; sleep 60; ${goodAgent}`
  const words = [
    '--max-retries',
    '0',
    '--max-memory',
    '200M',
    '--sandbox',
    'workspace',
    '--agent-command',
    agent,
  ]
  const end = await ralph(at, ['loop', 'demo', ...words])
  expect([end.code, at.state().iterations[0]?.reason]).toEqual([
    3,
    expect.stringContaining('--max-memory 200M'),
  ])
})

test('a repository that holds the home has no cage: exit 2, and nothing is touched', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const words = ['loop', 'demo', '--sandbox', 'workspace', '--agent-command', goodAgent]
  for (const home of [at.repo, join(at.repo, 'home')]) {
    mkdirSync(home, { recursive: true })
    const end = await ralph(at, words, { env: { HOME: home } })
    expect([end.code, end.stderr]).toEqual([2, expect.stringContaining('your home lies in the work tree')])
  }
  expect(existsSync(join(at.repo, 'story-1.txt'))).toBe(false)
})

test('worktree_copy cannot name git’s own folder: exit 2', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('ralph.yaml', 'worktree_copy: [.git/config]\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'settings')
  const end = await ralph(at, [
    'loop',
    'demo',
    '--worktree',
    join(at.root, 'tree'),
    '--agent-command',
    goodAgent,
  ])
  expect([end.code, end.stderr]).toEqual([2, expect.stringContaining('which is git')])
})

/** Also where its folder is not there yet. */
async function appears(path: string): Promise<void> {
  if (!existsSync(dirname(path))) await appears(dirname(path))
  const watcher = watch(dirname(path))
  onTestFinished(() => watcher.close())
  while (!existsSync(path)) await once(watcher, 'change')
}
