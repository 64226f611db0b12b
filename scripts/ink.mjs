// What Ink brings along and the program does without, or needs in another form: for the build.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const ink = fileURLToPath(import.meta.resolve('ink'))
const text = fileURLToPath(new URL('../src/ui/print/text.ts', import.meta.url))

/**
 * Yoga waits for its WebAssembly at the top level of its module, which only a module can do, and the packs are scripts: here it is begun
 * there, and waited for by whoever opens the screens. Whether this is a CI decides ralph itself; and nobody looks at it with React's tools.
 * A picture is rows that were cut to the width before (src/ui/tui/start.tsx): they need not be put together cell by cell, each one measured,
 * which was half of the work of a flood.
 */
const instead = {
  ink: `export * from ${JSON.stringify(ink)}; export { loaded } from 'yoga-layout'`,
  'yoga-layout': `
    import { loadYoga } from 'yoga-layout/load'
    export * from 'yoga-layout/load'
    let yoga
    export const loaded = loadYoga().then((made) => { yoga = made })
    export { yoga as default }`,
  'is-in-ci': 'export default false',
  'string-width': `
    import { widthOf } from ${JSON.stringify(text)}
    export default (painted) => widthOf(painted.replaceAll(/\\u001B\\[[\\d;]*m/g, ''))`,
}

const output = `
  export default class Output {
    constructor({ height }) {
      this.rows = Array.from({ length: height }, () => '')
    }
    write(x, y, text) {
      if (x !== 0 || text.includes('\\n')) throw new Error('a row is one line, and begins at the edge')
      if (y < this.rows.length) this.rows[y] = text.trimEnd()
    }
    get() {
      return { output: this.rows.join('\\n'), height: this.rows.length }
    }
  }`

export const inkPlugin = {
  name: 'ink',
  setup(build) {
    build.onResolve({ filter: /^(?:ink|yoga-layout|is-in-ci|string-width)$/ }, ({ path }) => ({
      path,
      namespace: 'ink',
    }))
    build.onLoad({ filter: /ink\/build\/reconciler\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8'))
        .replaceAll('isDev()', 'false')
        .replaceAll('await loadPackageJson()', '{}'),
    }))
    // It would be fetched from itself, and a third of the time to the first picture was the part of Node that fetches.
    build.onLoad({ filter: /yoga-wasm-base64-esm\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll('typeof fetch', '"none"'),
    }))
    build.onLoad({ filter: /ink\/build\/output\.js$/ }, () => ({ contents: output }))
    build.onLoad({ filter: /.*/, namespace: 'ink' }, ({ path }) => ({
      contents: instead[path],
      resolveDir: ink.slice(0, ink.lastIndexOf('/')),
    }))
  },
}
