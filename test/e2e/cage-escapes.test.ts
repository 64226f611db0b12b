// Ways out of the cage that an attacker with the packed program has found, each as that attacker would use it.
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, watch, writeFileSync } from 'node:fs'
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
forge refs/heads/fresh missing $zero $(git rev-parse fresh)
echo "switched fresh $zero $(git rev-parse fresh) 1 ref: refs/heads/fresh" >> $ledger
git worktree add -q own -b own
echo x > x; echo '<promise>COMPLETE</promise>'
`,
    )
    at.git('worktree', 'add', '-q', join(at.root, 'beside'), '-b', 'held')
    const words = ['--sandbox', 'workspace', '--worktree', tree, '--agent-command', agent]
    const running = start(at, ['loop', 'demo', ...words])
    await appears(join(tree, 'started'))
    at.git('commit', '-q', '--allow-empty', '-m', 'of the user')
    const mine = at.git('rev-parse', 'main')
    at.git('worktree', 'add', '-q', join(at.root, 'fresh'), '-b', 'fresh')
    at.git('branch', 'feature')
    expect((await running.ended).code).toBe(0)
    const branches = ['main', 'feature', 'held', 'fresh']
    expect(at.git('rev-parse', ...branches).split('\n')).toEqual([mine, mine, first, mine])
    // Its own one went.
    expect(['fresh/.git', 'tree/own'].map((path) => existsSync(join(at.root, path)))).toEqual([true, false])
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

describe.skipIf(!hasBwrap)(`what a build and a commit need in a cage${skipped}`, () => {
  const user = '[user]\n\tname = Una User\n\temail = una@example.invalid\n'
  /** In the home. */
  const homes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'a link to dotfiles': { '.dotfiles/git': user, '.gitconfig': '-> .dotfiles/git' },
    'a link in a linked ~/.config': { '.dotfiles/config/git/config': user, '.config': '-> .dotfiles/config' },
    'an include': { '.gitconfig': '[include]\n\tpath = ~/.identity\n', '.identity': user },
    'an include by folder, which wins': {
      '.gitconfig': `[user]\n\tname = Wrong\n\temail = w@example.invalid\n[includeIf "gitdir:ROOT/"]\n\tpath = .ids/work\n`,
      '.ids/work': user,
    },
  }
  test.each(Object.entries(homes))('the name of the user behind %s, without logins', async (_, files) => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    const login = '[github]\n\ttoken = secret\n[url "https://me:secret@example.invalid/"]\n\tinsteadOf = x:\n'
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      if (text.startsWith('-> ')) symlinkSync(text.slice(3), join(home, path))
      else writeFileSync(join(home, path), text === user ? `${user}${login}` : text.replace('ROOT', at.root))
    }
    const agent = `git config --list > said.txt; cat ~/.dotfiles/* ~/.identity ~/.ids/* >> said.txt; git add said.txt; git commit -qm own; git log -1 --format='%an %ae %cn' > name.txt; ${goodAgent}`
    for (const key of ['user.name', 'user.email']) at.git('config', '--unset', key)
    const end = await ralph(at, ['loop', 'demo', '--sandbox', 'workspace', '--agent-command', agent])
    expect([end.code, at.read('name.txt')]).toEqual([0, 'Una User una@example.invalid Una User\n'])
    expect(at.read('said.txt')).not.toContain('secret')
  })

  test('caches of build tools can be written, also new ones of a tool that is there; settings, logins and scripts beside them cannot', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    const put = (path: string): void => {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), 'secret')
    }
    const beside =
      '.gradle/gradle.properties .gradle/init.d/x.gradle .m2/settings.xml .cargo/credentials.toml .cargo/config.toml .cargo/bin/x .bun/install/x .npmrc .local/share/pnpm/x go/bin/x .yarn/x'.split(
        ' ',
      )
    beside.forEach(put)
    at.script('repo/gradlew', '#!/bin/sh\n')
    const written =
      '.cache/pip .cache/uv .cache/go-build .cache/yarn .npm/_cacache .gradle/caches .gradle/wrapper/dists .gradle/daemon .gradle/native .m2/repository .m2/wrapper .cargo/registry .cargo/git .bun/install/cache .local/share/pnpm/store .yarn/berry go/pkg/mod'.split(
        ' ',
      )
    const refused = [
      ...beside,
      '.gradle/init.gradle',
      '.cargo/config',
      '.m2/extensions.xml',
      '.config/x',
      'x',
    ]
    const agent = [
      ...written.map((path) => `mkdir -p ~/${path} && echo x > ~/${path}/new`),
      ...refused.map((path) => `echo planted > ~/${path}`),
      'cat ~/.gradle/gradle.properties ~/.m2/settings.xml ~/.cargo/credentials.toml > seen.txt',
      // A link that the next one would follow.
      'mkdir -p ~/.cache; rm -rf ~/.cache/moved; ln -s ~/.ssh ~/.cache/moved',
      'cat ~/.ssh/id >> seen.txt',
      goodAgent,
    ].join('\n')
    put('.ssh/id')
    const env = { GOCACHE: join(home, '.cache/moved') }
    for (const fresh of [[], ['--fresh']]) {
      const words = ['--sandbox', 'workspace', '--agent-command', agent]
      const end = await ralph(at, ['loop', 'demo', ...fresh, ...words], { env })
      expect([end.code, at.read('seen.txt')]).toEqual([0, ''])
      at.git('checkout', '-q', 'main')
    }
    expect(written.filter((path) => !existsSync(join(home, path, 'new')))).toEqual([])
    const holds = (path: string): boolean =>
      existsSync(join(home, path)) && readFileSync(join(home, path), 'utf8').includes('planted')
    expect(refused.filter(holds)).toEqual([])
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

test.each(['.bashrc', '.gitconfig', '.config/git', '.identity', '.config'])(
  'a repository that holds ~/%s, by a link, has no cage: exit 2, and nothing is touched',
  async (name) => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    const kept = join(at.repo, 'kept')
    const isFolder = name.startsWith('.config')
    at.write(isFolder ? 'kept/x' : 'kept', '')
    mkdirSync(dirname(join(home, name)), { recursive: true })
    symlinkSync(kept, join(home, name))
    if (name === '.identity') writeFileSync(join(home, '.gitconfig'), '[include]\n\tpath = .identity\n')
    // A file without settings is obeyed as soon as it has some.
    if (name === '.identity') at.write('kept', '[user]\n\tname = U\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'dotfiles')
    const words = ['--sandbox', 'workspace', '--agent-command', goodAgent]
    const end = await ralph(at, ['loop', 'demo', ...words])
    expect([end.code, end.stderr]).toEqual([2, expect.stringContaining('programs outside obey it')])
    expect(existsSync(join(at.repo, 'story-1.txt'))).toBe(false)
    const beside = await ralph(at, ['loop', 'demo', '--worktree', join(at.root, 'tree'), ...words])
    expect([beside.code, existsSync(join(at.root, 'tree/story-1.txt'))]).toEqual([0, true])
  },
)

test.skipIf(!hasBwrap).each(['workspace', 'strict'])(
  'sockets of other programs cannot be reached wherever they are, but for those of the work tree: %s',
  async (sandbox) => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    const places = [join(home, 'app/control'), join(home, '.cache/go-build/daemon'), join(at.repo, 'own')]
    const called = new Set<string>()
    for (const path of places) {
      mkdirSync(dirname(path), { recursive: true })
      const server = createServer((socket) => {
        called.add(path)
        socket.end()
      }).listen(path)
      onTestFinished(() => void server.close())
    }
    const calls = `node -e 'for (const path of process.argv.slice(1)) require("node:net").connect(path, function () { this.end() }).on("error", () => {})' ~/app/control ~/.cache/go-build/daemon "$PWD/own"`
    const words = ['--sandbox', sandbox, '--agent-command', `${calls}; ${goodAgent}`]
    const end = await ralph(at, ['loop', 'demo', ...words])
    expect([end.code, [...called]]).toEqual([0, [join(at.repo, 'own')]])
  },
)

test.skipIf(!hasBwrap)(
  'the socket of a program at a place that cannot be looked at, here below a file, keeps nobody from a cage',
  async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const folder = join(at.root, 'app')
    mkdirSync(folder)
    const server = createServer().listen(join(folder, 'control'))
    onTestFinished(() => void server.close())
    renameSync(folder, join(at.root, 'moved'))
    writeFileSync(folder, '')
    const end = await ralph(at, ['loop', 'demo', '--sandbox', 'workspace', '--agent-command', goodAgent])
    expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('sandbox could not')])
  },
)

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
