// `npm run torture [-- --rounds N --seed S --only ROUND --mode M]`: builds, then plays random rounds against the built program.
// `npm run torture -- --queue [--kills N --seed S]`: the merge queue and its loops, killed at every line of their journals and at N random moments.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureInstalled, root } from './install.mjs'

ensureInstalled()
// RALPH_PROGRAM names another build of it.
if (process.env.RALPH_PROGRAM === undefined) {
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
const args = process.argv.slice(2)
const valueOf = (flag, otherwise) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : otherwise)
const [tool, words, more] = args.includes('--queue')
  ? [
      'vitest',
      ['run', join('test', 'e2e', 'queue-kill.test.ts')],
      { RALPH_QUEUE_KILLS: valueOf('--kills', '200'), RALPH_QUEUE_SEED: valueOf('--seed', '1') },
    ]
  : ['tsx', [join('test', 'torture', 'torture-driver.ts'), ...args], {}]
const { status } = spawnSync(join(root, 'node_modules', '.bin', tool), words, {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, ...more },
})
process.exit(status ?? 1)
