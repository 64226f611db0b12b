// Whether a cage can be made on this machine, by making one; and if not, why, and what to do.
import { readFileSync } from 'node:fs'
import { exec } from './exec.ts'
import { isProgram, onPath } from './on-path.ts'

export type Probe = { readonly program: string } | { readonly why: string; readonly fix: string }

export async function probeCage(
  env: NodeJS.ProcessEnv,
  { isStrict = false, platform = process.platform }: { isStrict?: boolean; platform?: NodeJS.Platform } = {},
): Promise<Probe> {
  if (platform === 'darwin') return probeMac(isStrict)
  if (platform !== 'linux')
    return { why: `there is none for ${platform}`, fix: 'Use Linux or macOS, or a container.' }
  const program = onPath('bwrap', env)
  if (program === undefined) return { why: 'bubblewrap (bwrap) is not installed', fix: howToInstall }
  const words = [
    '--unshare-pid',
    '--unshare-ipc',
    '--cap-drop',
    'ALL',
    ...(isStrict ? ['--unshare-net'] : []),
  ]
  const mounts = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp']
  const options = { cwd: '/', env, timeoutMs: 10_000 }
  // Its own `true` may be anywhere, or nowhere; the shell is where POSIX says.
  const tried = await exec(program, [...words, ...mounts, '/bin/sh', '-c', 'exit 0'], options)
  if (tried.exitCode === 0) return { program }
  const said = tried.stderr.trim().split('\n').at(-1) ?? ''
  return { why: `bubblewrap cannot make one: ${said || 'it said nothing'}`, fix: fixOf() }
}

const howToInstall =
  'Install it: sudo apt install bubblewrap (Debian, Ubuntu), sudo dnf install bubblewrap (Fedora), sudo pacman -S bubblewrap (Arch).'

function probeMac(isStrict: boolean): Probe {
  const program = '/usr/bin/sandbox-exec'
  if (!isProgram(program)) return { why: 'there is no sandbox-exec', fix: 'Use a container.' }
  return isStrict
    ? { why: 'strict is not available on macOS yet', fix: 'Use --sandbox workspace, and a firewall.' }
    : { program }
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
