// Input that somebody else wrote: bytes at random, what is known to break readers, and real files with a few wounds.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'

/** RALPH_FUZZ_RUNS=5000 for a long night; RALPH_SEED plays one of its seeds again. Short runs are the same every time. */
const runs = process.env['RALPH_FUZZ_RUNS']
const seed = Number(process.env['RALPH_SEED'] ?? (runs === undefined ? 11 : Date.now() % 1_000_000_000))
/** For a test's name. */
export const seeded = `(seed ${seed})`

/** `cost`: how many times dearer than a pure function one run is. */
export function settings(cost = 1): fc.Parameters<unknown> {
  return {
    seed,
    numRuns: Math.ceil(Number(runs ?? 400) / cost),
    interruptAfterTimeLimit: 20_000 * (runs === undefined ? 1 : 60),
  }
}

export const fixtures = join(import.meta.dirname, '..', 'fixtures')

/** Every file below a folder of the fixtures. */
export function recorded(folder: string): Buffer[] {
  return readdirSync(join(fixtures, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .toSorted((one, other) => one.name.localeCompare(other.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
}

/** Text that has broken readers before. */
const nasties: readonly string[] = [
  '',
  '\0',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\ud800',
  '\r',
  '\r\n',
  '\n\n',
  '\u001b[2J\u001b]52;c;AAAA\u0007',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '{"__proto__":{"polluted":true}}',
  '1e999',
  '-1e999',
  '9007199254740993',
  '-0',
  'NaN',
  'null',
  'true',
  '[]',
  '{}',
  '"',
  '\\',
  '\\u0000',
  '```',
  '<!--',
  '-->',
  '<promise>COMPLETE</promise>',
  '<promise>FAILED: ',
  '</promise>',
  '- [ ] ',
  '- [x] ',
  '## ',
  '### Requirement: ',
  '#### Scenario: ',
  '&a [*a]',
  '*a',
  '<<: *a',
  '!!js/function "x"',
  '? ',
  '%YAML 9.9',
  '2026-02-30T25:61:61Z',
  'x'.repeat(5000),
]

/** Stands for a nesting that no recursive reader survives; see `jsonOf`. */
const deepMark = '@deep@'
const deep = `${'[{"input":'.repeat(30_000)}1${'}]'.repeat(30_000)}`

const values: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...nasties) },
  fc.constantFrom<unknown>(null, true, 0, -1, 1e308, 2 ** 53, 0.1, '', [], {}, [[]], [null], {
    a: { b: {} },
  }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constant(deepMark),
)

/** Any bytes: at random, from the nasty ones, or a mix. */
export const anyBytes: fc.Arbitrary<Buffer> = fc.oneof(
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
  fc
    .array(fc.oneof(fc.constantFrom(...nasties), fc.string({ unit: 'binary', maxLength: 30 })), {
      maxLength: 30,
    })
    .map((parts) => Buffer.from(parts.join(''))),
)

/** A real file with wounds: bytes flipped, cut out, doubled, nasty ones put in, lines swapped. */
export function wounded(originals: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const wound = fc.record({
    kind: fc.constantFrom('flip', 'cut', 'double', 'insert', 'truncate', 'swap'),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    size: fc.nat(200),
    text: fc.constantFrom(...nasties),
  })
  return fc
    .tuple(fc.constantFrom(...originals), fc.array(wound, { minLength: 1, maxLength: 6 }))
    .map(([original, wounds]) => {
      let bytes = original
      for (const { kind, at, size, text } of wounds) {
        const start = Math.floor(at * bytes.length)
        const [before, after] = [bytes.subarray(0, start), bytes.subarray(start)]
        if (kind === 'flip') {
          bytes = Buffer.from(bytes)
          if (start < bytes.length) bytes[start] = (bytes[start] ?? 0) ^ (1 << (size % 8))
        } else if (kind === 'cut') bytes = Buffer.concat([before, after.subarray(size)])
        else if (kind === 'double') bytes = Buffer.concat([before, after.subarray(0, size), after])
        else if (kind === 'insert') bytes = Buffer.concat([before, Buffer.from(text), after])
        else if (kind === 'truncate') bytes = before
        else {
          const lines = bytes.toString('latin1').split('\n')
          const [moved = ''] = lines.splice(Math.floor(at * lines.length), 1)
          lines.splice(size % (lines.length + 1), 0, moved)
          bytes = Buffer.from(lines.join('\n'), 'latin1')
        }
      }
      return bytes
    })
}

/** One of these JSON documents in which some values, however deep inside, are others. */
export function twisted(documents: readonly unknown[]): fc.Arbitrary<unknown> {
  const change = fc.record({ at: fc.nat(10_000), value: values, drop: fc.boolean() })
  return fc
    .tuple(fc.constantFrom(...documents), fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([document, changes]) => {
      let result = structuredClone(document)
      for (const { at, value, drop } of changes) result = replaced(result, at, structuredClone(value), drop)
      return result
    })
}

/** The n-th value of a walk, counted round and round. */
function replaced(document: unknown, n: number, value: unknown, drop: boolean): unknown {
  const places: { holder: Record<string, unknown>; key: string }[] = []
  const walk = (holder: unknown, depth: number): void => {
    if (typeof holder !== 'object' || holder === null || depth > 30) return
    for (const key of Object.keys(holder)) {
      places.push({ holder: holder as Record<string, unknown>, key })
      walk((holder as Record<string, unknown>)[key], depth + 1)
    }
  }
  walk(document, 0)
  const place = places[n % Math.max(1, places.length)]
  if (place === undefined) return value
  if (drop && !Array.isArray(place.holder)) Reflect.deleteProperty(place.holder, place.key)
  else place.holder[place.key] = value
  return document
}

/** Of files of JSON lines: each line that is one. */
export function documentsOf(files: readonly Buffer[]): unknown[] {
  return files.flatMap((file) =>
    file
      .toString('utf8')
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as unknown),
  )
}

export function jsonOf(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replaceAll(`"${deepMark}"`, deep)
}

/** Nothing that was read may have got into what every object has. */
export function isUnspoilt(): boolean {
  return !('polluted' in {}) && Object.keys(Object.prototype).length === 0
}
