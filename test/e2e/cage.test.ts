// The threat table of docs/security.md, row by row: an agent that tries all of it, in every mode, judged by what is there afterwards.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { agentPath } from '../agents/kit.ts'
import { program, ralph, scratch, tasksOf, type Finished, type Scratch } from './harness.ts'

const isRoot = process.getuid?.() === 0
const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
const skipped = hasBwrap ? '' : ' (skipped: bubblewrap is not installed, or may make no namespaces here)'

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

async function attempt(mode: Mode): Promise<Facts> {
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
  const beside = { refs: at.git('for-each-ref', 'refs/heads/other', 'refs/heads/main'), config: configOf(at) }
  onTestFinished(() => {
    agent.close()
    rmSync(sockets, { recursive: true, force: true })
    rmSync(`/etc/${mark}`, { force: true })
    endDaemons(mark)
  })
  const flags = Object.entries({
    VICTIMS: victims,
    AGENT_SOCKET: join(sockets, 'agent'),
    PORT: String(unlisted.port),
    LISTED: String(listed.port),
    MARK: mark,
  }).flatMap(([name, value]) => ['--agent-env', `${name}=${value}`])
  const end = await ralph(
    at,
    [
      ...['loop', 'demo', '--sandbox', mode, '--sandbox-hosts', `127.0.0.1:${listed.port}`],
      ...['--verify', 'test -f story-1.txt', ...flags, '--agent-command', agentPath('breaks-out.sh')],
    ],
    { env: { SSH_AUTH_SOCK: join(sockets, 'agent'), GITHUB_TOKEN: 'secret token' } },
  )
  const loot = at.read('loot.txt')
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
      'write into another repository': done(holds(join(victims, 'other/planted.txt'))),
      'write into another worktree': done(holds(join(victims, 'tree/planted.txt'))),
      "write into another worktree's git folder": done(holds(join(at.repo, '.git/worktrees/tree/planted'))),
      'read keys and logins of other programs': done(loot.includes('secret')),
      'find the ssh agent': done(loot.includes('ssh agent')),
      'move `.git` away': done(loot.includes('moved .git')),
      'plant a hook': undone(existsSync(join(at.repo, '.git/hooks/post-checkout'))),
      'set an alias, a filter, `core.fsmonitor`': undone(configOf(at) !== beside.config),
      'write `.git/info/attributes`': undone(existsSync(join(at.repo, '.git/info/attributes'))),
      'change `ralph.yaml`': end.stdout.includes('gate: test -f') ? 'not used' : 'done',
      "write into ralph's own data": done(holds(join(at.repo, '.git/ralph/changes/demo/planted'))),
      'move another branch':
        at.git('for-each-ref', 'refs/heads/other', 'refs/heads/main') === beside.refs ? 'undone' : 'done',
      'signal ralph': done(loot.includes('signalled ralph')),
      "look into ralph's memory": done(loot.includes('looked into ralph')),
      'leave a daemon that has cleared its environment': daemons(mark).length > 0 ? 'done' : 'ended',
      'reach a loopback port that is not listed': done(unlisted.calls > 0),
      'reach a loopback port that is listed': done(listed.calls > 0),
    },
  }
}

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
