// Keeps the direction of imports, the purity of the core and the size of files: main -> compose -> { ui, engine, adapters, config } -> ports -> core.
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, posix, relative, resolve, sep } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

interface Import {
  /** Path below src/ for our own files, the specifier as written for everything else. */
  readonly to: string
  readonly isOwn: boolean
}

interface SourceFile {
  /** Below src/, with forward slashes. */
  readonly path: string
  readonly text: string
  readonly imports: readonly Import[]
}

const files = readSources(join(root, 'src'))

/** What each folder may import, its own files apart. A folder that is not here has no place yet. */
const mayImport: Record<string, readonly string[]> = {
  core: [],
  ports: ['core'],
  config: ['core'],
  engine: ['ports', 'core'],
  adapters: ['ports', 'core'],
  ui: ['config', 'ports', 'core'],
  compose: ['ui', 'engine', 'adapters', 'config', 'ports', 'core'],
  main: ['program', 'statusline'],
  statusline: ['compose', 'ui', 'core'],
  library: ['compose', 'ui', 'config', 'ports', 'core'],
  program: ['compose', 'ui', 'engine', 'adapters', 'config', 'ports', 'core'],
}

describe('the direction of imports', () => {
  test('every file was seen, in every folder', () => {
    const rooms = new Set(files.map((file) => folderOf(file.path)))
    expect([...rooms].toSorted()).toEqual(Object.keys(mayImport).toSorted())
    expect(files.length).toBeGreaterThan(100)
    expect(files.flatMap((file) => file.imports).length).toBeGreaterThan(files.length)
  })

  test('main -> program -> compose -> { ui, engine, adapters, config } -> ports -> core', () => {
    const wrong = ownImports().filter(([from, to]) => {
      const [folder, target] = [folderOf(from), folderOf(to)]
      return folder !== target && mayImport[folder]?.includes(target) !== true
    })
    expect(wrong.map(arrow)).toEqual([])
  })

  test('adapters import one another only by way of process/ and files/', () => {
    const shared = new Set(['process', 'files'])
    const wrong = ownImports().filter(([from, to]) => {
      if (folderOf(from) !== 'adapters' || folderOf(to) !== 'adapters') return false
      return adapterOf(from) !== adapterOf(to) && !shared.has(adapterOf(to))
    })
    expect(wrong.map(arrow)).toEqual([])
  })
})

describe('the core is pure', () => {
  const core = files.filter((file) => folderOf(file.path) === 'core')

  test('core imports only core and zod', () => {
    expect(core.length).toBeGreaterThan(10)
    const wrong = core.flatMap((file) =>
      file.imports.filter(({ isOwn, to }) => !isOwn && to !== 'zod').map(({ to }) => `${file.path} -> ${to}`),
    )
    expect(wrong).toEqual([])
  })

  test('core has no clock, chance, process or console', () => {
    const impure =
      /\bnode:|\bDate\b|\bMath\.random\b|\bprocess\.|\bconsole\.|\bglobalThis\b|\bset(?:Timeout|Interval|Immediate)\(|\bperformance\.|\bcrypto\./
    const wrong = core.flatMap((file) =>
      withoutComments(file.text)
        .split('\n')
        .filter((line) => impure.test(line))
        .map((line) => `${file.path}: ${line.trim()}`),
    )
    expect(wrong).toEqual([])
  })
})

describe('the process belongs to the door', () => {
  test('its streams, signals and exit are used in src/ui/cli, src/main.ts, src/program.ts and src/statusline.ts only', () => {
    const ofProcess =
      /\bprocess\.(?:stdin|stdout|stderr|exit|exitCode|on|once|off|addListener|removeListener|title)\b/
    const users = files.filter((file) => ofProcess.test(withoutComments(file.text))).map(({ path }) => path)
    expect(users).toContain('main.ts')
    // A program of its own, run by `--agent demo`.
    const own = new Set(['main.ts', 'program.ts', 'statusline.ts', 'adapters/agents/demo.ts'])
    expect(users.filter((path) => !path.startsWith('ui/cli/') && !own.has(path))).toEqual([])
  })
})

describe('the shape of files', () => {
  test('the first line says what the file is for', () => {
    const wrong = files.filter((file) => {
      const [first = '', second = ''] = file.text.split('\n')
      return !(first.startsWith('#!') ? second : first).startsWith('// ')
    })
    expect(wrong.map((file) => file.path)).toEqual([])
  })
})

function readSources(folder: string): readonly SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => {
      const text = readFileSync(join(folder, name), 'utf8')
      const path = name.split(sep).join(posix.sep)
      return { path, text, imports: importsOf(join(folder, name), folder, text) }
    })
}

/** `import … from`, `export … from`, `import '…'`, `import('…')`, also in types. */
function importsOf(file: string, folder: string, text: string): readonly Import[] {
  const specifiers = withoutComments(text).matchAll(
    /(?:^\s*(?:import|export|\})[^'"();]*?\bfrom\s*|^\s*import\s*|\bimport\(\s*)['"]([^'"]+)['"]/gm,
  )
  return [...specifiers].map(([, specifier = '']) => {
    if (!specifier.startsWith('.')) return { to: specifier, isOwn: false }
    const to = relative(folder, resolve(dirname(file), specifier))
    return { to: to.split(sep).join(posix.sep), isOwn: true }
  })
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '$1')
}

function ownImports(): readonly (readonly [from: string, to: string])[] {
  return files.flatMap((file) =>
    file.imports.filter(({ isOwn }) => isOwn).map(({ to }) => [file.path, to] as const),
  )
}

/** `adapters/git/branch.ts` is in adapters, `compose.ts` in compose. */
function folderOf(path: string): string {
  return (path.split('/')[0] ?? '').replace(/\.tsx?$/, '')
}

function adapterOf(path: string): string {
  return path.split('/')[1] ?? ''
}

function arrow([from, to]: readonly [string, string]): string {
  return `${from} -> ${to}`
}
