// Bundles the program: one entry, lazy chunks for what only some commands need, no dependency at run time.
import { build } from 'esbuild'
import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

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
// A page of help for each command, made by the program itself; the door prints it without loading anything.
const ralph = async (...args) => {
  const main = new URL(`${fresh.href}/main.js`).pathname
  const env = { ...process.env, NO_COLOR: '1' }
  return (await promisify(execFile)(process.execPath, [main, ...args], { env })).stdout
}
const names = (await ralph('complete', '--', ''))
  .trim()
  .split('\n')
  .map((line) => line.split('\t')[0])
await mkdir(new URL(`${fresh.href}/help`))
await writeFile(new URL(`${fresh.href}/help/ralph.txt`), await ralph('help'))
await Promise.all(
  names.map(async (name) => {
    const page = await ralph('help', name)
    const called = /^Usage: ralph (\S+)/.exec(page)?.[1]?.split('|') ?? []
    if (!called.includes(name)) throw new Error(`the built program cannot say the help of ${name}: ${page}`)
    for (const alias of called) await writeFile(new URL(`${fresh.href}/help/${alias}.txt`), page)
  }),
)
// Put in place at the end: whoever runs the program meanwhile never sees half of it.
await rename(ready, old).catch((error) => {
  if (error.code !== 'ENOENT') throw error
})
await rename(fresh, ready)
await rm(old, { recursive: true, force: true })
