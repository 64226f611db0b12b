// Bundles the program: one entry, lazy chunks for what only some commands need, no dependency at run time.
import { build } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises'

const root = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))

const [ready, fresh, old] = ['dist', `dist-new-${process.pid}`, `dist-old-${process.pid}`].map(
  (name) => new URL(name, root),
)
await build({
  absWorkingDir: root.pathname,
  entryPoints: { main: 'src/main.ts' },
  outdir: fresh.pathname,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'external',
  define: { RALPH_VERSION: JSON.stringify(version) },
  // Bundled CommonJS packages call require() for Node's own modules and look at __filename.
  banner: {
    js: "import { createRequire as ralphRequire } from 'node:module'; const require = ralphRequire(import.meta.url); const __filename = import.meta.filename ?? new URL(import.meta.url).pathname;",
  },
  logLevel: 'warning',
})
await chmod(new URL(`${fresh.href}/main.js`), 0o755)
// `ralph help` is the same text, made by the program itself.
const help = spawnSync(process.execPath, [new URL(`${fresh.href}/main.js`).pathname, 'help'], {
  encoding: 'utf8',
  env: { ...process.env, NO_COLOR: '1' },
})
if (help.status !== 0) throw new Error(`the built program cannot say its help: ${help.stderr}`)
await writeFile(new URL(`${fresh.href}/help.txt`), help.stdout)
// Put in place at the end: whoever runs the program meanwhile never sees half of it.
await rename(ready, old).catch((error) => {
  if (error.code !== 'ENOENT') throw error
})
await rename(fresh, ready)
await rm(old, { recursive: true, force: true })
