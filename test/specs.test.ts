// The papers of the house agree with the code: every scenario names a test that exists, examples validate, tables are complete.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { iterationSchema, loopStatuses, publicEventSchema } from '../src/core/event.ts'
import { stateFileSchema } from '../src/core/state-file.ts'

const root = resolve(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

interface Scenario {
  /** `capability: name` */
  readonly title: string
  readonly file: string
  readonly test: string
}

const capabilities = readdirSync(join(root, 'openspec/specs'))
const blocks = capabilities.flatMap((capability) =>
  read(`openspec/specs/${capability}/spec.md`)
    .split(/^#### Scenario: /m)
    .slice(1)
    .map((block) => ({ capability, block: block.split(/^###? /m)[0] ?? '' })),
)
const scenarios = blocks.map(({ capability, block }): Scenario => {
  const [, file = '', name = ''] = /^- \*\*TEST\*\* (test\/\S+\.ts): (.+)$/m.exec(block) ?? []
  return { title: `${capability}: ${block.split('\n', 1)[0]}`, file, test: name }
})

describe('openspec/specs', () => {
  test('holds the capabilities of the contract, with scenarios', () => {
    expect(capabilities.toSorted()).toEqual([
      'agents',
      'checkpoint',
      'configuration',
      'control',
      'done-criteria',
      'events',
      'library',
      'loop',
      'mcp',
      'merge-queue',
      'openspec-plan',
      'promise',
      'sandbox',
      'signals-and-recovery',
      'state-file',
      'status-line',
      'terminal-title',
      'tokens',
    ])
    expect(scenarios.length).toBeGreaterThan(150)
  })

  test('every scenario says when, then, and which test proves it, in this order', () => {
    const wrong = blocks.filter(({ block }) => {
      const steps = [...block.matchAll(/^- \*\*(\w+)\*\*/gm)].map(([, keyword]) => keyword)
      return !/^WHEN( AND)* THEN( AND)* TEST$/.test(steps.join(' '))
    })
    expect(wrong.map(({ capability, block }) => `${capability}: ${block.split('\n', 1)[0]}`)).toEqual([])
  })

  test('every scenario names a test that is there', () => {
    const missing = scenarios
      .filter(({ file, test: name }) => !hasTest(file, name))
      .map(({ title, file, test: name }) => `${title}\n    ${file}: ${name}`)
    expect(missing).toEqual([])
  })

  test('no test that a scenario names is skipped', () => {
    const skipping = [...new Set(scenarios.map(({ file }) => file))].filter(
      (file) =>
        existsSync(join(root, file)) && /^\s*(?:test|it|describe)\.(?:skip|todo|only)\b/m.test(read(file)),
    )
    expect(skipping).toEqual([])
  })

  test('a test that a scenario names and that a condition has left out is found after the run', async () => {
    interface Result {
      readonly title: string
      readonly fullName: string
      readonly ancestorTitles: readonly string[]
      readonly status: 'passed' | 'skipped'
    }
    const script = join(root, 'scripts/scenarios.mjs')
    const { unproved } = (await import(script)) as {
      readonly unproved: (
        root: string,
        report: { testResults: { name: string; assertionResults: Result[] }[] },
      ) => { failed: string[]; elsewhere: string[] }
    }
    const left = scenarios[0]
    const report = (of: (each: Scenario) => Result['status']): Parameters<typeof unproved>[1] => ({
      testResults: scenarios.map((each) => ({
        name: join(root, each.file),
        assertionResults: [
          { title: each.test, fullName: each.test, ancestorTitles: ['all'], status: of(each) },
        ],
      })),
    })
    expect(
      unproved(
        root,
        report(() => 'passed'),
      ).failed,
    ).toEqual([])
    const skipping = report(({ file, test: name }) =>
      file === left?.file && name === left.test ? 'skipped' : 'passed',
    )
    expect(new Set(unproved(root, skipping).failed)).toEqual(new Set([`${left?.file}: ${left?.test}`]))
  })

  test('every scenario of the seeds has its test by number', () => {
    const seeds = [
      'S000-start-loop',
      'S000-story-iteration',
      'S000-checkpoint-before-spawn',
      'S000-abnormal-termination',
      'S000-retry-with-reason',
      'S000-max-retries',
      'S000-cli-flag-max-retries',
      'S002-D2',
      'S002-D3',
      'S003-cleanup',
      'S003-keep',
      'S004-state-file-schema',
      'S004-default-done-criteria-with-tasks',
      'S004-default-done-criteria-without-tasks',
      'S004-explicit-manual-override',
      'S004-killed-by-signal',
      'S004: tokens',
      'S004-title',
    ]
    const named = scenarios.map(({ test: name }) => name)
    expect(seeds.filter((seed) => !named.some((name) => name.startsWith(seed)))).toEqual([])
  })
})

test('docs/hazards.md has every row, and each names a test that carries its number', () => {
  const rows = [
    ...read('docs/hazards.md').matchAll(/^\| ([GPRUOQI]\d+) \| .* \| (test\/\S+\.ts): (.+) \|$/gm),
  ].map(([, number = '', file = '', name = '']) => ({ number, file, name }))
  const sections = { G: 29, P: 14, R: 18, U: 5, O: 20, Q: 25, I: 8 }
  const wanted = Object.entries(sections).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, at) => `${letter}${at + 1}`),
  )
  expect(rows.map(({ number }) => number)).toEqual(wanted)
  const carries = (name: string, number: string): boolean => new RegExp(`\\b${number}\\b`).test(name)
  const wrong = rows.filter(({ number, file, name }) => !carries(name, number) || !hasTest(file, name))
  expect(wrong.map(({ number }) => number)).toEqual([])
})

describe('docs/state-file.md', () => {
  const page = read('docs/state-file.md')

  test('docs/state-file.md has one valid example per status, and its sums are right', () => {
    const examples = [...page.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, text = '']) =>
      stateFileSchema.strict().parse(JSON.parse(text)),
    )
    expect(examples.map(({ status }) => status)).toEqual(loopStatuses)
    for (const example of examples) {
      const tokens = example.iterations.map(({ tokens_used }) => tokens_used)
      expect(example.total_tokens).toBe(tokens.reduce((sum, count) => sum + count, 0))
      expect(example.iterations.map(({ n }) => n)).toEqual(example.iterations.map((_, index) => index + 1))
      expect(example.current_iteration).toBe(
        example.iterations.length + (example.current === undefined ? 0 : 1),
      )
    }
  })

  test('its tables name every field of the schema, and no other', () => {
    const tables = page.split('## One example per status')[0] ?? ''
    const [top = '', ofIteration = '', ofCurrent = ''] = tables
      .slice(tables.indexOf('## Fields'))
      .split(/^### /m)
    expect(fieldsOf(top)).toEqual(Object.keys(stateFileSchema.shape).toSorted())
    expect(fieldsOf(ofIteration)).toEqual(Object.keys(iterationSchema.shape).toSorted())
    expect(fieldsOf(ofCurrent)).toEqual(Object.keys(stateFileSchema.shape.current.unwrap().shape).toSorted())
  })
})

test('docs/pins.md names every dependency with its version', () => {
  const { dependencies, devDependencies } = z
    .object({
      dependencies: z.record(z.string(), z.string()).default({}),
      devDependencies: z.record(z.string(), z.string()),
    })
    .parse(JSON.parse(read('package.json')))
  expect(dependencies).toEqual({})
  const page = read('docs/pins.md')
  const missing = Object.entries(devDependencies).filter(
    ([name, version]) => !page.includes(`| ${name} | ${version} |`),
  )
  expect(missing).toEqual([])
})

test('every native tool in the lockfile has its package for each platform that we develop and run on', () => {
  const platforms = {
    'darwin-arm64': /darwin-(?:arm64|universal)/,
    'darwin-x64': /darwin-(?:x64|universal)/,
    'linux-arm64 (glibc)': /linux-arm64(?!-musl)/,
    'linux-arm64 (musl)': /linux-arm64(?:-musl|$)/,
    'linux-x64 (glibc)': /linux-x64(?!-musl)/,
    'linux-x64 (musl)': /linux-x64(?:-musl|$)/,
    'win32-x64': /win32-x64/,
  }
  const { packages } = z
    .object({
      packages: z.record(
        z.string(),
        z.object({ optionalDependencies: z.record(z.string(), z.string()).optional() }),
      ),
    })
    .parse(JSON.parse(read('package-lock.json')))
  const native = Object.entries(packages).flatMap(([name, { optionalDependencies = {} }]) => {
    const wanted = Object.keys(optionalDependencies).filter((each) => /darwin|linux|win32/.test(each))
    return wanted.length < 3 ? [] : [{ name, wanted }]
  })
  expect(native.length).toBeGreaterThan(5)
  const missing = native.flatMap(({ name, wanted }) => [
    ...wanted
      .filter((each) => packages[`node_modules/${each}`] === undefined)
      .filter((each) => packages[`${name}/node_modules/${each}`] === undefined),
    ...Object.entries(platforms)
      .filter(([, pattern]) => !wanted.some((each) => pattern.test(each)))
      .map(([platform]) => `${name} for ${platform}`),
  ])
  expect(missing).toEqual([])
})

test('schema/ is what the zod schemas say', () => {
  const schemas = { 'loop-state': stateFileSchema, event: publicEventSchema }
  for (const [name, schema] of Object.entries(schemas)) {
    const written = z.record(z.string(), z.unknown()).parse(JSON.parse(read(`schema/${name}.schema.json`)))
    const { title, ...rest } = written
    expect(title).toContain('version 1')
    expect(rest).toEqual(JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input' }))))
  }
})

test('links between the papers lead somewhere', () => {
  const decisions = readdirSync(join(root, 'docs/decisions')).map((name) => `docs/decisions/${name}`)
  const papers = ['CONTEXT.md', 'AGENTS.md', 'CONTRIBUTING.md', 'docs/tour.md', 'docs/pins.md', ...decisions]
  const links = papers.flatMap((paper) =>
    [...read(paper).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target = '']) => ({
      paper,
      target: resolve(root, paper, '..', target),
    })),
  )
  expect(links.length).toBeGreaterThan(10)
  expect(links.filter(({ target }) => !existsSync(target))).toEqual([])
})

/** A literal of the file begins with the name; names in rows of `test.each` are literals too. Two that begin so are ambiguous. */
function hasTest(file: string, name: string): boolean {
  if (file === '' || !existsSync(join(root, file))) return false
  const wanted = name.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`).replaceAll("'", String.raw`\\?'`)
  const literal = new RegExp(String.raw`(['"\`])(${wanted})((?:(?!\1)[^\\\n]|\\.)*)\1`, 'g')
  const rests = new Set([...read(file).matchAll(literal)].map(([, , , rest]) => rest))
  return rests.has('') || rests.size === 1
}

/** First cells of the table's rows; a cell may name several fields. */
function fieldsOf(table: string): readonly string[] {
  return [...table.matchAll(/^\| (`[^|]*) \|/gm)]
    .flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, field = '']) => field))
    .toSorted()
}
