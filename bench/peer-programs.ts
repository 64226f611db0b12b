// The peers as programs: installed pinned into a folder of the project's own, and where ralph itself was built.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
export const program = join(root, 'dist/main.js')

/** Returns the folder whose `node_modules/.bin` has them. */
export function installPeers(packages: readonly string[]): string {
  const prefix = join(root, '.cache', 'peers')
  const isThere = packages.every((name) => existsSync(join(prefix, 'node_modules', name.split('@')[0] ?? '')))
  if (isThere) return prefix
  mkdirSync(prefix, { recursive: true })
  console.log('installing the peers into .cache/peers (400 MB) …')
  const options = ['--prefix', prefix, '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, stderr } = spawnSync('npm', ['install', ...options, ...packages], {
    cwd: prefix,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the peers could not be installed: ${stderr}`)
  return prefix
}
