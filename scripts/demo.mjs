// `npm run demo`: builds the program, and lets its own `ralph demo` do the rest.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureInstalled, root } from './install.mjs'

ensureInstalled()
const call = (...args) => {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
call(join(root, 'scripts', 'build.mjs'))
call(join(root, 'dist', 'main.js'), 'demo', ...process.argv.slice(2))
