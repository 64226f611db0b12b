// Whether a cage can be made on this machine, by making one; and if not, why, and what to do.
import { readFileSync } from 'node:fs'
import { callFilter } from '../../core/cage-filter.ts'
import { exec } from './exec.ts'
import { onPath } from './on-path.ts'

export type Probe = { readonly program: string } | { readonly why: string; readonly fix: string }

export async function probeCage(
  env: NodeJS.ProcessEnv,
  {
    isStrict = false,
    isLimited = false,
    platform = process.platform,
  }: { isStrict?: boolean; isLimited?: boolean; platform?: NodeJS.Platform } = {},
): Promise<Probe> {
  if (platform !== 'linux' && platform !== 'darwin')
    return { why: `there is none for ${platform}`, fix: 'Use Linux or macOS, or a container.' }
  const kind = platform === 'linux' ? bubblewrap(isStrict, isLimited) : seatbelt
  if (isStrict && kind === seatbelt)
    return { why: 'strict is not there on macOS yet', fix: 'Use --sandbox workspace, and a firewall.' }
  const program = onPath(kind.program, env)
  if (program === undefined) return { why: `${kind.name} is not installed`, fix: kind.howToInstall }
  // Its own `true` may be anywhere, or nowhere; the shell is where POSIX says.
  const words = [...kind.words, '/bin/sh', '-c', 'exit 0']
  const filter = kind === seatbelt ? undefined : callFilter(isStrict ? 'strict' : 'workspace', process.arch)
  const filtered = filter === undefined ? words : ['--seccomp', '0', ...words]
  const input = filter === undefined ? {} : { input: filter }
  const tried = await exec(program, filtered, { cwd: '/', env, timeoutMs: 10_000, ...input })
  if (tried.exitCode === 0) return { program }
  const said = tried.stderr.trim().split('\n').at(-1) ?? ''
  return {
    why: `${kind.name} cannot make one: ${said || 'it said nothing'}`,
    fix: /--size/.test(said) ? 'It needs 0.7 or newer for --max-memory.' : kind.fix(),
  }
}

interface Kind {
  readonly program: string
  readonly name: string
  readonly words: readonly string[]
  readonly howToInstall: string
  readonly fix: () => string
}

function bubblewrap(isStrict: boolean, isLimited: boolean): Kind {
  return {
    program: 'bwrap',
    name: 'bubblewrap (bwrap)',
    words: [
      ...'--unshare-pid --unshare-ipc --cap-drop ALL'.split(' '),
      ...(isStrict ? ['--unshare-net'] : []),
      ...'--ro-bind / / --dev /dev --proc /proc --perms 0555'.split(' '),
      // Since 0.7.
      ...(isLimited ? ['--size', '65536'] : []),
      ...'--tmpfs /tmp'.split(' '),
    ],
    howToInstall:
      'Install it: sudo apt install bubblewrap (Debian, Ubuntu), sudo dnf install bubblewrap (Fedora), sudo pacman -S bubblewrap (Arch).',
    fix: fixOf,
  }
}

const seatbelt: Kind = {
  program: 'sandbox-exec',
  name: 'sandbox-exec',
  words: ['-p', '(version 1)(allow default)'],
  howToInstall: 'It is a part of macOS, in /usr/bin: put that on PATH, or use a container.',
  fix: () => 'Inside another sandbox there can be none: run ralph outside of it.',
}

/** What keeps an ordinary user from namespaces of their own. */
function fixOf(): string {
  const is = (file: string, value: string): boolean => {
    try {
      return readFileSync(file, 'utf8').trim() === value
    } catch {
      return false
    }
  }
  if (is('/proc/sys/user/max_user_namespaces', '0'))
    return 'User namespaces are off: sudo sysctl user.max_user_namespaces=15000'
  if (is('/proc/sys/kernel/unprivileged_userns_clone', '0'))
    return 'User namespaces are off: sudo sysctl kernel.unprivileged_userns_clone=1'
  if (is('/proc/sys/kernel/apparmor_restrict_unprivileged_userns', '1'))
    return 'AppArmor blocks user namespaces: allow it for bwrap (an AppArmor profile with "userns,"), or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0'
  return 'In a container it needs user namespaces: run ralph on the machine itself, or start the container with more rights.'
}
