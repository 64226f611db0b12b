// The threat table of docs/security.md, row by row: an agent that tries all of it, in every mode, judged by what is there afterwards.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findAlive } from '../../src/adapters/process/reap.ts'
import { agentPath } from '../agents/kit.ts'
import { goodAgent, program, ralph, scratch, start, tasksOf, type Finished, type Scratch } from './harness.ts'

const isRoot = process.getuid?.() === 0
const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
const skipped = ` (needs bubblewrap${hasBwrap ? '' : ', which is not installed or may make no namespaces here'})`

/** Not everywhere: in Docker neither is there. */
const perl = (...words: string[]): boolean => spawnSync('perl', ['-e', ...words]).status === 0
const keyctl = process.arch === 'arm64' ? '219' : '250'
const hasKeyring = perl('syscall($ARGV[0], 0, -3, 0) >= 0 or exit 1', keyctl)
const hasVsock = perl('socket(my $s, 40, 1, 0) or exit 1')

const modes = ['off', 'workspace', 'strict'] as const
type Mode = (typeof modes)[number]

interface Facts {
  readonly end: Finished
  /** By the words of the table. */
  readonly rows: Readonly<Record<string, string>>
}

describe.skipIf(!hasBwrap)(`the threat table${skipped}`, () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/security.md'), 'utf8')
  const table = [...page.matchAll(/^\| (.+?) \| (\S[^|]*?) \| (\S[^|]*?) \| (\S[^|]*?) \|$/gm)]
    .map((match) => match.slice(1, 5))
    .filter(([, off]) => ['done', 'undone', 'refused', 'ended', 'not used'].includes(off ?? ''))

  for (const [column, mode] of modes.entries())
    test(`what an agent tries comes to what the table says: ${mode}`, async () => {
      const { end, rows } = await attempt(mode)
      expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('sandbox could not')])
      const said = Object.fromEntries(table.map((cells) => [cells[0], cells[column + 1]]))
      expect(rows).toEqual(Object.fromEntries(Object.keys(rows).map((row) => [row, said[row]])))
      expect(Object.keys(rows).length).toBe(table.length)
    })
})

describe.skipIf(!hasBwrap)(`a caged loop${skipped}`, () => {
  test('without the rights of root, too', async () => {
    const { end, rows } = await attempt('workspace', true)
    expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('sandbox could not')])
    const done = Object.entries(rows).filter(([, what]) => what === 'done')
    expect(done.map(([row]) => row)).toEqual([
      'reach a loopback port that is not listed',
      'reach a loopback port that is listed',
    ])
  })

  test('stops at TERM with time for a clean end, and a resume has the cage of the start', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const patient = `trap 'echo ended cleanly; exit 0' INT TERM; echo x > started.txt; setsid sleep 600 & while :; do sleep 0.05; done`
    const running = start(at, [
      'loop',
      'demo',
      '--json',
      '--sandbox',
      'workspace',
      '--agent-command',
      patient,
    ])
    await appears(join(at.repo, 'started.txt'))
    running.child.kill('SIGTERM')
    const stopped = await running.ended
    expect(stopped.code).toBe(143)
    expect(at.read('.git/ralph/changes/demo/transcripts/1.log')).toBe('ended cleanly\n')
    expect(findAlive({ marker: { HOME: join(at.root, 'home') } })).toEqual([])
    expect(at.state().iterations).toMatchObject([{ verdict: 'interrupted' }])
    const nosy = `cat ~/secret/../.ssh/id >> story-1.txt; echo x >> story-1.txt; echo '<promise>COMPLETE</promise>'`
    mkdirSync(join(at.root, 'home/.ssh'))
    writeFileSync(join(at.root, 'home/.ssh/id'), 'secret')
    const resumed = await ralph(at, ['resume', '--agent-command', nosy])
    expect([resumed.code, resumed.stdout]).toEqual([0, expect.stringContaining('sandbox: workspace')])
    expect(at.read('story-1.txt')).toBe('x\n')
  })

  test('asked for and not possible: exit 2, and nothing is touched; doctor says what is missing', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const bin = fakeBwrap(at, `echo "bwrap: No permissions to create new namespace" >&2; exit 1`)
    const env = { PATH: `${bin}:${at.env['PATH'] ?? ''}` }
    const before = at.git('status', '--porcelain', '--branch')
    const end = await ralph(at, ['loop', 'demo', '--sandbox', 'workspace', '--agent-command', goodAgent], {
      env,
    })
    expect([end.code, end.stderr]).toEqual([
      2,
      expect.stringContaining('No permissions to create new namespace'),
    ])
    expect(end.stderr).toContain('Nothing was touched')
    expect(at.git('status', '--porcelain', '--branch')).toBe(before)
    expect(at.git('for-each-ref', 'refs/ralph', 'refs/heads/ralph')).toBe('')
    const doctor = await ralph(at, ['doctor', '--json'], { env })
    expect(doctor.stdout).toContain('No permissions to create new namespace')
  })

  test('a link, or a folder to borrow objects from, that one agent leaves shows the next one and the gates nothing', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const [home, elsewhere] = [join(at.root, 'home'), mkdtempSync('/tmp/ralph-elsewhere-')]
    onTestFinished(() => rmSync(elsewhere, { recursive: true }))
    mkdirSync(join(home, '.ssh'))
    for (const path of [join(home, '.ssh/id'), join(elsewhere, 'socket')]) writeFileSync(path, 'secret')
    // A path that the command itself names would be shown.
    at.write('where', elsewhere)
    mkdirSync(join(home, '.dotfiles/objects/pack'), { recursive: true })
    writeFileSync(join(home, '.dotfiles/objects/pack/x'), 'secret')
    const look = 'cat ~/.ssh/id ~/.dotfiles/objects/pack/x "$(cat where)/socket" 2>/dev/null'
    const leave = [
      'mkdir -p .git/worktrees .git/objects/info bin',
      'ln -s ~/.ssh .git/worktrees/evil; ln -s ~/.ssh ~/.claude/hooks',
      'ln -s "$(cat where)" .git/worktrees/other; ln -s "$(cat where)" bin/more',
      'cat where > .git/objects/info/alternates; echo >> .git/objects/info/alternates; echo ~/.dotfiles/objects >> .git/objects/info/alternates',
    ].join('\n')
    const end = await ralph(
      at,
      [
        'loop',
        'demo',
        '--sandbox',
        'workspace',
        '--verify',
        `${look}; true`,
        '--agent-command',
        // Its name is what gives it the folder of claude.
        `: claude\n${look}\n${leave}\n${goodAgent}`,
      ],
      { env: { PATH: `${at.repo}/bin/more:${at.env['PATH'] ?? ''}` } },
    )
    expect(end.code).toBe(0)
    expect(readlinkSync(join(home, '.claude/hooks'))).toBe(join(home, '.ssh'))
    const said = ['1.log', '1.gates.log', '2.log', '2.gates.log'].map((name) =>
      at.read(`.git/ralph/changes/demo/transcripts/${name}`),
    )
    expect(said.filter((text) => text.includes('secret'))).toEqual([])
  })

  test('no bubblewrap on PATH: exit 2, nothing is touched, and it is said how to get it, by doctor too', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const bin = join(at.root, 'bin')
    mkdirSync(bin)
    for (const name of ['git', 'sh', 'node'])
      symlinkSync(
        execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(),
        join(bin, name),
      )
    const env = { PATH: bin, RALPH_SANDBOX: 'strict' }
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent], { env })
    expect(end.code).toBe(2)
    expect(end.stderr).toContain('--sandbox strict is not possible here: bubblewrap (bwrap) is not installed')
    expect(end.stderr).toContain('sudo apt install bubblewrap')
    expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
    expect(at.git('status', '--porcelain')).toBe('')
    const doctor = await ralph(at, ['doctor'], { env })
    expect(doctor.stdout).toContain('strict is not possible: bubblewrap (bwrap) is not installed')
  })

  test('fails in the middle of a run: the loop stops, and nothing runs without it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const real = execFileSync('sh', ['-c', 'command -v bwrap'], { encoding: 'utf8' }).trim()
    const bin = fakeBwrap(
      at,
      `if [ -e '${at.repo}/story-1.txt' ]; then echo "bwrap: out of mounts" >&2; exit 1; fi; exec ${real} "$@"`,
    )
    const env = { PATH: `${bin}:${at.env['PATH'] ?? ''}` }
    const end = await ralph(at, ['loop', 'demo', '--sandbox', 'workspace', '--agent-command', goodAgent], {
      env,
    })
    expect([end.code, end.stderr]).toEqual([1, expect.stringContaining('bwrap: out of mounts')])
    expect(existsSync(join(at.repo, 'story-2.txt'))).toBe(false)
    expect(at.state()).toMatchObject({ status: 'stopped' })
    const resumed = await ralph(at, ['resume', '--agent-command', goodAgent])
    expect(resumed.code).toBe(0)
  })

  test('with --worktree: its set-up and its gates are in it, its git folder is elsewhere, and it can commit', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const planted = join(at.root, 'home/planted')
    const plant = (name: string): string =>
      `echo x > '${planted}-${name}'; echo x > '${at.repo}/planted-${name}'`
    const agent = `${plant('agent')}; echo x > story-1.txt; git add -A; git commit -qm own && git log -1 --format=%s > said.txt; git -C '${at.repo}' commit -q --allow-empty -m theirs; echo '<promise>COMPLETE</promise>'`
    const end = await ralph(at, [
      'loop',
      'demo',
      '--sandbox',
      'workspace',
      '--worktree',
      join(at.root, 'tree'),
      '--agent-command',
      agent,
      '--setup',
      `${plant('setup')}; echo x > node_modules`,
      '--verify',
      `${plant('gate')}; test -s said.txt`,
    ])
    expect([end.code, end.stderr]).toEqual([0, expect.not.stringContaining('could not')])
    expect(readFileSync(join(at.root, 'tree/said.txt'), 'utf8')).toBe('own\n')
    expect(existsSync(join(at.root, 'tree/node_modules'))).toBe(true)
    expect(readdirSync(join(at.root, 'home')).filter((name) => name.startsWith('planted'))).toEqual([])
    expect(readdirSync(at.repo).filter((name) => name.startsWith('planted'))).toEqual([])
    expect(at.git('log', '-1', '--format=%s', 'main')).toBe('start')
  })

  test('sandbox_gates: false and sandbox_allow are the exceptions that the user makes', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = join(at.root, 'home')
    mkdirSync(join(home, 'shared/.ssh'), { recursive: true })
    at.write('ralph.yaml', 'sandbox: workspace\nsandbox_gates: false\nsandbox_allow: ["~/shared"]\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'settings')
    const agent = `echo x > ~/by-agent; echo x > ~/shared/by-agent; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--verify', 'echo x > ~/by-gate', '--agent-command', agent])
    expect(end.code).toBe(0)
    expect(['by-agent', 'shared/by-agent', 'by-gate'].map((name) => existsSync(join(home, name)))).toEqual([
      false,
      true,
      true,
    ])
    const missing = await ralph(at, ['loop', 'demo', '--fresh', '--sandbox-allow', '/not/there'])
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('/not/there')])
  })
})

test('a loop without a sandbox says so once in a repository', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const first = await ralph(at, ['loop', 'demo', '--agent-command', 'true', '--max-retries', '0'])
  expect(first.stdout).toContain('no sandbox: the agent can read and write what you can')
  const again = await ralph(at, ['resume', '--agent-command', goodAgent])
  expect([again.code, again.stdout]).toEqual([0, expect.not.stringContaining('no sandbox')])
})

function fakeBwrap(at: Scratch, body: string): string {
  mkdirSync(join(at.root, 'fake'))
  at.script('fake/bwrap', `#!/bin/sh\n${body}\n`)
  return join(at.root, 'fake')
}

async function appears(path: string): Promise<void> {
  const watcher = watch(dirname(path))
  onTestFinished(() => watcher.close())
  while (!existsSync(path)) await once(watcher, 'change')
}

async function attempt(mode: Mode, asPlainUser = false): Promise<Facts> {
  const at = scratch({ tasks: tasksOf(1) })
  const home = join(at.root, 'home')
  const victims = join(home, 'projects')
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  put('.bashrc', 'mine\n')
  put('.ssh/authorized_keys', 'mine\n')
  put('.ssh/id_ed25519', 'secret ssh\n')
  put('.aws/credentials', 'secret aws\n')
  put('.config/gh/hosts.yml', 'secret gh\n')
  put('.netrc', 'secret netrc\n')
  put('.npmrc', 'registry=https://registry.invalid/\n//registry.invalid/:_authToken=secret npm\n')
  put('.codex/auth.json', 'secret codex\n')
  put('keys/key', 'secret linked\n')
  mkdirSync(join(home, '.kube'))
  symlinkSync(join(home, 'keys/key'), join(home, '.kube/config'))
  symlinkSync(join(home, 'keys'), join(home, 'linked'))
  mkdirSync(victims)
  execFileSync('git', ['init', '-q', join(victims, 'other')], { env: at.env })
  at.git('branch', 'other')
  at.git('worktree', 'add', '-q', join(victims, 'tree'), '-b', 'beside')
  at.write('ralph.yaml', 'max_retries: 0\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'settings')
  const sockets = mkdtempSync('/tmp/ralph-ssh-')
  const [unlisted, listed] = [await listener(), await listener()]
  const agent = createServer().listen(join(sockets, 'agent'))
  const mark = String(process.pid)
  const othersHome = `/home/ralph-test-${mark}`
  if (isRoot) {
    mkdirSync(othersHome, { recursive: true, mode: 0o700 })
    writeFileSync(join(othersHome, 'diary.txt'), 'diary of another user', { mode: 0o600 })
  }
  const beside = { refs: at.git('for-each-ref', 'refs/heads/other', 'refs/heads/main'), config: configOf(at) }
  onTestFinished(() => {
    agent.close()
    rmSync(sockets, { recursive: true, force: true })
    rmSync(`/etc/${mark}`, { force: true })
    if (isRoot) rmSync(othersHome, { recursive: true, force: true })
    endDaemons(mark)
  })
  const flags = Object.entries({
    VICTIMS: victims,
    AGENT_SOCKET: join(sockets, 'agent'),
    PORT: String(unlisted.port),
    LISTED: String(listed.port),
    MARK: mark,
    KEYCTL: keyctl,
  }).flatMap(([name, value]) => ['--agent-env', `${name}=${value}`])
  const run = asPlainUser && isRoot ? plainly : ralph
  const end = await run(
    at,
    [
      'loop',
      'demo',
      '--sandbox',
      mode,
      '--sandbox-hosts',
      `127.0.0.1:${listed.port}`,
      '--verify',
      'test -f story-1.txt',
      ...flags,
      '--agent-command',
      agentPath('breaks-out.sh'),
    ],
    { env: { SSH_AUTH_SOCK: join(sockets, 'agent'), GITHUB_TOKEN: 'secret token' } },
  )
  const loot = at.read('loot.txt')
  await ralph(at, ['doctor'])
  const holds = (path: string): boolean => existsSync(path) && readFileSync(path, 'utf8').includes('planted')
  const done = (isDone: boolean): string => (isDone ? 'done' : 'refused')
  /** In the cage it never came to be; without, ralph puts it back. */
  const undone = (isThere: boolean): string => (isThere ? 'done' : mode === 'off' ? 'undone' : 'refused')
  return {
    end,
    rows: {
      'write to `~/.bashrc`': done(holds(join(home, '.bashrc'))),
      'add a key to `~/.ssh/authorized_keys`': done(holds(join(home, '.ssh/authorized_keys'))),
      'write into `/etc`, as root': done(holds(`/etc/${mark}`) || (!isRoot && mode === 'off')),
      'set what the kernel runs (`/proc/sys`), as root': done(
        existsSync(join(at.repo, 'kernel.txt')) || (!isRoot && mode === 'off'),
      ),
      'write into another repository': done(holds(join(victims, 'other/planted.txt'))),
      'write into another worktree': done(holds(join(victims, 'tree/planted.txt'))),
      "write into another worktree's git folder": done(holds(join(at.repo, '.git/worktrees/tree/planted'))),
      'read keys and logins of other programs': done(loot.includes('secret')),
      "read another user's home, as root": done(
        loot.includes('diary of another user') || (!isRoot && mode === 'off'),
      ),
      'find the ssh agent': done(loot.includes('ssh agent')),
      'move `.git` away': done(loot.includes('moved .git')),
      'plant a hook': undone(existsSync(join(at.repo, '.git/hooks/post-checkout'))),
      'set an alias, a filter, `core.fsmonitor`': undone(configOf(at) !== beside.config),
      'write `.git/info/attributes`': undone(existsSync(join(at.repo, '.git/info/attributes'))),
      'make git use another folder (`.git/commondir`)': existsSync(join(at.repo, '.git/commondir'))
        ? 'done'
        : loot.includes('has commondir')
          ? 'undone'
          : 'refused',
      'change `ralph.yaml`': end.stdout.includes('gate: test -f') ? 'not used' : 'done',
      'leave a program that ralph runs later (`node_modules/.bin/openspec`)': existsSync(
        join(home, 'openspec-ran'),
      )
        ? 'done'
        : 'not used',
      "write into ralph's own data": done(holds(join(at.repo, '.git/ralph/changes/demo/planted'))),
      "change ralph's journal, its lock": [/opened .*journal/, /opened .*lock/]
        .map((words) => done(words.test(loot)))
        .filter((word, index, words) => words.indexOf(word) === index)
        .join(' and '),
      'move another branch':
        at.git('for-each-ref', 'refs/heads/other', 'refs/heads/main') === beside.refs ? 'undone' : 'done',
      'signal ralph': done(loot.includes('signalled ralph')),
      "look into ralph's memory": done(loot.includes('looked into ralph')),
      "use the keys of the session's kernel keyring": done(
        loot.includes('has the keyring') || (!hasKeyring && mode === 'off'),
      ),
      'open a way to the host of a virtual machine (vsock)': done(
        loot.includes('has a vsock') || (!hasVsock && mode === 'off'),
      ),
      'leave a daemon that has cleared its environment': daemons(mark).length > 0 ? 'done' : 'ended',
      'reach a loopback port that is not listed': done(unlisted.calls > 0),
      'reach a loopback port that is listed': done(listed.calls > 0),
    },
  }
}

/** As root the test goes on as nobody, who may not look where the program lies: it takes a copy along. */
async function plainly(
  at: Scratch,
  args: readonly string[],
  { env }: { env: NodeJS.ProcessEnv },
): Promise<Finished> {
  const copy = join(at.root, 'ralph', 'dist')
  cpSync(dirname(program), copy, { recursive: true })
  writeFileSync(join(at.root, 'ralph', 'package.json'), '{"type":"module"}')
  cpSync(agentPath('breaks-out.sh'), join(at.root, 'breaks-out.sh'))
  execFileSync('chown', ['-R', `${nobody}:${nobody}`, at.root, dirname(env['SSH_AUTH_SOCK'] ?? '')])
  const words = args.map((arg) => (arg === agentPath('breaks-out.sh') ? join(at.root, 'breaks-out.sh') : arg))
  const child = spawn(process.execPath, [join(copy, 'main.js'), ...words], {
    cwd: at.repo,
    env: {
      ...at.env,
      ...env,
    },
    uid: nobody,
    gid: nobody,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  execFileSync('chown', ['-R', '0:0', at.root])
  return { code, signal: null, stdout, stderr }
}

const nobody = 65_534

function configOf(at: Scratch): string {
  return readFileSync(join(at.repo, '.git/config'), 'utf8')
}

async function listener(): Promise<{ readonly port: number; readonly calls: number }> {
  let calls = 0
  const server = createServer((socket) => {
    calls += 1
    socket.on('error', () => undefined).resume()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  return {
    port: (server.address() as AddressInfo).port,
    get calls() {
      return calls
    },
  }
}

function daemons(mark: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && commandOf(pid).includes(`31536000.${mark}`))
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

function endDaemons(mark: string): void {
  for (const pid of daemons(mark)) process.kill(pid, 'SIGKILL')
}

describe('limits', () => {
  const cases = [
    // One that would go on for ever takes the machine where the limit does not hold.
    {
      name: 'a fork bomb',
      flags: ['--max-processes', '100'],
      deed: 'for i in $(seq 1000); do sleep 60 & done',
    },
    {
      name: 'a program that takes all memory',
      flags: ['--max-memory', '300M'],
      deed: `node -e "const held = []; for (;;) held.push(Buffer.alloc(2e7, 1))"`,
    },
    { name: 'a file that fills the disk', flags: ['--max-file-size', '5M'], deed: 'cat /dev/zero > full' },
    {
      name: 'one that fills the disk with small files',
      flags: ['--max-disk', '40M'],
      deed: 'mkdir full; while :; do head -c 500000 /dev/urandom > full/$((n += 1)); done',
      // Known in the same way in each mode.
      only: hasBwrap ? 'workspace' : 'off',
    },
  ]
  for (const sandbox of hasBwrap ? modes : (['off'] as const))
    for (const { name, flags, deed } of cases.filter(({ only = sandbox }) => only === sandbox))
      test.each(['agent', 'gate'])(
        `${name} is held, and the reason says by what: sandbox ${sandbox}, %s`,
        async (who) => {
          const at = scratch({ tasks: tasksOf(1) })
          const words =
            who === 'agent'
              ? ['--agent-command', `${deed}; exit 1`]
              : ['--agent-command', goodAgent, '--verify', `${deed}; exit 1`]
          const limited = ['--sandbox', sandbox, '--max-retries', '0', ...flags]
          const end = await ralph(at, ['loop', 'demo', ...limited, ...words])
          expect(end.code).toBe(3)
          const reached = `it reached ${flags.join(' ')}`
          // First: what the program said of it may be long, and a screen shows its beginning.
          const before = who === 'agent' ? '^' : String.raw` failed(?: \(exit \d+\))?: (?:ended by \w+, )?`
          expect(at.state().iterations[0]?.reason).toMatch(new RegExp(`${before}${reached}`))
          expect(existsSync(join(at.repo, 'full'))).toBe(false)
          expect(findAlive({ marker: { HOME: join(at.root, 'home') } })).toEqual([])
        },
      )
})
