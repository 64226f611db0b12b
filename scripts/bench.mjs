// `npm run bench`: the built program as a whole (bench/program.ts says how); `npm run bench follow`, `parse`, `scenarios` or `sessions`: one of its parts.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './install.mjs'

const parts = ['follow', 'parse', 'scenarios', 'sessions']
const args = process.argv.slice(2)
const name = parts.includes(args[0] ?? '') ? args.shift() : 'program'
const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exit(1)
const bench = spawnSync(join(root, 'node_modules', '.bin', 'tsx'), [join('bench', `${name}.ts`), ...args], {
  cwd: root,
  stdio: 'inherit',
})
process.exit(bench.status ?? 1)
