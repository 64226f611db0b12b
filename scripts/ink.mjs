// What Ink brings along and the program does without, or needs in another form: for the build.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const ink = fileURLToPath(import.meta.resolve('ink'))

/**
 * Yoga waits for its WebAssembly at the top level of its module, which only a module can do, and the packs are scripts: here it is begun
 * there, and waited for by whoever opens the screens. Whether this is a CI decides ralph itself; and nobody looks at it with React's tools.
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
}

export const inkPlugin = {
  name: 'ink',
  setup(build) {
    build.onResolve({ filter: /^(?:ink|yoga-layout|is-in-ci)$/ }, ({ path }) => ({ path, namespace: 'ink' }))
    build.onLoad({ filter: /ink\/build\/reconciler\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8'))
        .replaceAll('isDev()', 'false')
        .replaceAll('await loadPackageJson()', '{}'),
    }))
    build.onLoad({ filter: /.*/, namespace: 'ink' }, ({ path }) => ({
      contents: instead[path],
      resolveDir: ink.slice(0, ink.lastIndexOf('/')),
    }))
  },
}
