// The quick look at journals and state files: its yes must be zod's yes, on exactly the same value.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LoopEvent } from '../../src/core/event.ts'
import { bodySchema, envelopeSchema } from '../../src/core/event.ts'
import { fits, isSurelyEvent, isSurelyStateFile } from '../../src/core/shape.ts'
import { stateFileSchema } from '../../src/core/state-file.ts'
import { toStateFile } from '../../src/core/state-snapshot.ts'
import { good, play, settings } from './world.ts'

const failed = { ...good, promise: 'failed' as const }
const runs = [
  play({ settings: { ...settings, gates: ['npm test'] }, tasks: [2, 1], deeds: [failed, good] }),
  play({ settings, tasks: [1], deeds: [failed, failed, failed, failed] }),
  play({ settings, tasks: [1], deeds: [{ ...good, stop: true }] }),
]
/** As a reader gets them: from JSON. */
const events = runs.flatMap((run) => JSON.parse(JSON.stringify(run.events)) as LoopEvent[])
const stateFiles = runs.map((run) => JSON.parse(JSON.stringify(toStateFile(run.state))) as object)

function zodEvent(value: unknown): unknown {
  const [body, envelope] = [bodySchema.safeParse(value), envelopeSchema.safeParse(value)]
  return body.success && envelope.success ? { ...body.data, ...envelope.data } : undefined
}

function zodStateFile(value: unknown): unknown {
  return stateFileSchema.safeParse(value).data
}

/** Every place in a value: its path of keys. */
function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, key]))]
}

const badValues: readonly unknown[] = [
  undefined,
  null,
  '',
  'x',
  true,
  false,
  0,
  1,
  -1,
  1.5,
  Infinity,
  2 ** 53,
  [],
  [1],
  ['x'],
  {},
  { x: 1 },
  JSON.parse('{"__proto__": {"x": 1}}'),
]
const rubbish = fc.constantFrom(...badValues)

/** Whatever a file can hold, and nothing else; 1e999 is JSON. */
function asRead(value: unknown): unknown {
  const text = JSON.stringify(value ?? null, (_, inner: unknown) => (inner === Infinity ? '1e999' : inner))
  return JSON.parse(text.replaceAll('"1e999"', '1e999')) as unknown
}

/** The value with something else, or something more, in one place. */
function damaged(whole: unknown, path: readonly string[], key: string | undefined, other: unknown): unknown {
  const copy = { whole: structuredClone(whole) }
  let holder: object = copy
  let name = 'whole'
  for (const step of [...path, ...(key === undefined ? [] : [key])]) {
    const inner: unknown = Reflect.get(holder, name)
    if (typeof inner !== 'object' || inner === null) break
    holder = inner
    name = step
  }
  if (other === undefined) Reflect.deleteProperty(holder, name)
  else
    Object.defineProperty(holder, name, {
      value: other,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return asRead(copy.whole)
}

const damages = (values: readonly unknown[]): fc.Arbitrary<unknown> =>
  fc
    .constantFrom(...values)
    .chain((value) =>
      fc
        .tuple(
          fc.constantFrom(...placesIn(value)),
          fc.option(fc.constantFrom('extra', '__proto__', 'cost_usd'), { nil: undefined }),
          rubbish,
        )
        .map(([path, key, other]) => damaged(value, path, key, other)),
    )

describe('the quick look', () => {
  test('knows every event and every state file that ralph writes: zod stays unloaded', () => {
    expect(events.length).toBeGreaterThan(50)
    expect(events.filter((event) => !isSurelyEvent(event))).toEqual([])
    expect(stateFiles.filter((file) => !isSurelyStateFile(file))).toEqual([])
  })

  test('U4: never says yes to an event that zod refuses, or would give back otherwise', () => {
    let refused = 0
    fc.assert(
      fc.property(damages(events), (value) => {
        if (isSurelyEvent(value)) expect(zodEvent(value)).toEqual(value)
        else refused += 1
      }),
      { numRuns: 3000 },
    )
    expect(refused).toBeGreaterThan(100)
  })

  test('U4: never says yes to a state file that zod refuses, or would give back otherwise', () => {
    let refused = 0
    fc.assert(
      fc.property(damages(stateFiles), (value) => {
        if (isSurelyStateFile(value)) expect(zodStateFile(value)).toEqual(value)
        else refused += 1
      }),
      { numRuns: 3000 },
    )
    expect(refused).toBeGreaterThan(100)
  })

  test('a keyword it does not know is no yes', () => {
    expect(fits({ type: 'string' }, 'x')).toBe(true)
    expect(fits({ type: 'string', pattern: '^x$' }, 'x')).toBe(false)
  })
})
