// What `ralph --version`, `--help` and `status` have to load, read off the bundle: a slow start begins with one careless import.
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Metafile } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'

let outputs: Metafile['outputs']

beforeAll(async () => {
  const bundle = await build({
    absWorkingDir: fileURLToPath(new URL('../..', import.meta.url)),
    entryPoints: { main: 'src/main.ts', program: 'src/program.ts' },
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    metafile: true,
    external: ['ink', 'react'],
    write: false,
    define: { RALPH_VERSION: '"0"', RALPH_PROGRAM: '"x"', RALPH_PACKS: '"x"' },
    logLevel: 'silent',
  })
  outputs = bundle.metafile.outputs
})

/** Source files in the chunk that holds `source`, and in every chunk it imports without being asked. */
function loadedWith(source: string): string[] {
  const first = Object.keys(outputs).find((name) => source in (outputs[name]?.inputs ?? {}))
  const chunks = new Set(first === undefined ? [] : [first])
  for (const chunk of chunks) {
    for (const { path, kind } of outputs[chunk]?.imports ?? []) {
      if (kind === 'import-statement' && path in outputs) chunks.add(path)
    }
  }
  return (
    [...chunks]
      .flatMap((chunk) => Object.keys(outputs[chunk]?.inputs ?? {}))
      // What the build puts in for a name is no file.
      .filter((file) => !file.startsWith('<define:'))
  )
}

describe('start-up', () => {
  it('--version loads the door and nothing behind it', () => {
    expect(loadedWith('src/main.ts')).toEqual(['src/main.ts'])
  })

  it('no command loads a byte of the screens before it opens them', () => {
    const parts = Object.entries(outputs).filter(
      ([, { entryPoint = '' }]) => !entryPoint.startsWith('src/ui/tui/'),
    )
    const screens = parts.flatMap(([name]) => loadedWith(Object.keys(outputs[name]?.inputs ?? {})[0] ?? ''))
    expect(screens).toContain('src/ui/cli/tui.ts')
    expect(screens.filter((file) => file.startsWith('src/ui/tui/'))).toEqual([])
  })

  it('--help loads commander, the declarations of the commands and the table of settings, nothing else', () => {
    const loaded = loadedWith('src/ui/cli/run.ts')
    expect(loaded).toContain('src/ui/cli/commands.ts')
    const expected =
      /^(src\/program\.ts$|node_modules\/(commander|@commander-js)\/|src\/ui\/cli\/|src\/config\/options?\.ts$|src\/core\/error\.ts$)/
    expect(loaded.filter((file) => !expected.test(file))).toEqual([])
  })

  it.each(['src/compose.ts', 'src/compose/reports.ts', 'src/compose/stop.ts', 'src/compose/whereabouts.ts'])(
    'status and stop look at a loop without zod, yaml, the agents or the engine: %s',
    (part) => {
      const loaded = loadedWith(part)
      expect(loaded).toContain(part)
      const dear =
        /^node_modules\/|^src\/(engine|config)\/|^src\/adapters\/(agents|openspec|usage)\/|^src\/core\/event\.ts$/
      expect(loaded.filter((file) => dear.test(file))).toEqual([])
    },
  )

  it('of zod only what is used is in the bundle: `import { z }` would bring every language it speaks', () => {
    const inputs = Object.values(outputs).flatMap((output) =>
      Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0),
    )
    const locales = inputs.map(([file]) => file).filter((file) => file.includes('zod/v4/locales/'))
    expect(locales.map((file) => file.split('/').at(-1))).toEqual(['en.js'])
  })
})
