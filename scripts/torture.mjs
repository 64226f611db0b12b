// `npm run torture [-- --rounds N --seed S --only ROUND --mode M]`: builds, then plays random rounds against the built program.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureInstalled, root } from './install.mjs'

ensureInstalled()
// RALPH_PROGRAM names another build of it.
if (process.env.RALPH_PROGRAM === undefined) {
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
const { status } = spawnSync(
  join(root, 'node_modules', '.bin', 'tsx'),
  [join('test', 'torture', 'torture-driver.ts'), ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
)
process.exit(status ?? 1)
