// Bundles the program: one entry, lazy chunks for what only some commands need, no dependency at run time.
import { build } from 'esbuild'
import { chmod, readFile, rm } from 'node:fs/promises'

const root = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))

await rm(new URL('dist', root), { recursive: true, force: true })
await build({
  absWorkingDir: root.pathname,
  entryPoints: { main: 'src/main.ts' },
  outdir: 'dist',
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
await chmod(new URL('dist/main.js', root), 0o755)
