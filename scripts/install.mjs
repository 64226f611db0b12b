// Installs the pinned packages when they are missing or older than the lockfile; the scripts begin with it.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** bubblewrap, for the tests of `--sandbox`: Debian's package where this is root's to install, else it is said what is left out. */
export function ensureSandbox() {
  const has = () => spawnSync('bwrap', ['--version']).status === 0
  if (process.platform !== 'linux' || has()) return
  if (process.getuid?.() === 0) {
    const options = {
      timeout: 120_000,
      stdio: /** @type {const} */ ('ignore'),
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }
    const install = ['install', '--yes', '--no-install-recommends', 'bubblewrap']
    if (
      spawnSync('apt-get', install, options).status !== 0 &&
      spawnSync('apt-get', ['update'], options).status === 0
    )
      spawnSync('apt-get', install, options)
  }
  if (!has())
    console.log(
      'bubblewrap is not installed: the tests of --sandbox are left out (apt-get install bubblewrap).',
    )
}

export function ensureInstalled() {
  const marker = join(root, 'node_modules', '.package-lock.json')
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(join(root, 'package-lock.json')).mtimeMs)
    return
  console.log('Installing what the build needs (once) …')
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
