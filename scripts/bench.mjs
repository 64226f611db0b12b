// `npm run bench [name …]`: the benchmarks in bench/, one after the other, on the built program; `peers` and `scenarios` only by name, for they install them.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const wanted = process.argv.slice(2)
const all = readdirSync(join(root, 'bench'))
  .filter((name) => name.endsWith('.ts') && !['measure.ts', 'peer-programs.ts'].includes(name))
  .map((name) => name.slice(0, -3))
const unknown = wanted.find((name) => !all.includes(name))
if (unknown !== undefined) {
  console.error(`There is no benchmark ${unknown}; there are: ${all.join(', ')}`)
  process.exit(2)
}
spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
let failed = 0
for (const name of wanted.length > 0
  ? wanted
  : all.filter((each) => each !== 'peers' && each !== 'scenarios')) {
  const { status } = spawnSync(join(root, 'node_modules', '.bin', 'tsx'), [join('bench', `${name}.ts`)], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) failed += 1
}
process.exit(failed === 0 ? 0 : 1)
