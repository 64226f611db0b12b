// Says quickly yes to what the zod schemas would take as it is; never no: what does not fit is zod's to judge.
// Reading a journal for `ralph status` would otherwise spend most of its time on loading zod.
import type { LoopEvent } from './event.ts'
import { isRecord } from './json.ts'
import type { StateFile } from './state-file.ts'
import shapes from './shapes.json' with { type: 'json' }

/** The part of JSON Schema that zod's own export of our schemas uses. */
type Shape = Readonly<Record<string, unknown>>

/** No event is called `state_file`. */
const { state_file: stateFile, ...eventShapes } = shapes
const events: ReadonlyMap<unknown, Shape> = new Map(Object.entries(eventShapes))

/** Fields of the state file that ralph writes; anything else in it belongs to somebody else. */
export const ownFields: readonly string[] = Object.keys(stateFile.properties)

export function isSurelyEvent(value: unknown): value is LoopEvent {
  const shape = isRecord(value) ? events.get(value['type']) : undefined
  return shape !== undefined && fits(shape, value)
}

export function isSurelyStateFile(value: unknown): value is StateFile {
  return fits(stateFile, value)
}

type Test = (value: unknown) => boolean

/** Each shape is read once: a long journal asks the same few thousands of times. */
const tests = new WeakMap<Shape, Test>()

/** A keyword that is not known here is a "perhaps not": a schema that learns a new one is slower, not wrong. */
export function fits(shape: Shape, value: unknown): boolean {
  return testOf(shape)(value)
}

function testOf(shape: Shape): Test {
  const known = tests.get(shape)
  if (known !== undefined) return known
  const all = Object.entries(shape).map(
    ([keyword, wanted]) => keywords.get(keyword)?.(wanted, shape) ?? (() => false),
  )
  const [first = () => true] = all
  const test: Test = all.length < 2 ? first : (value) => all.every((each) => each(value))
  tests.set(shape, test)
  return test
}

const types: ReadonlyMap<unknown, Test> = new Map([
  ['string', (value: unknown) => typeof value === 'string'],
  ['boolean', (value: unknown) => typeof value === 'boolean'],
  ['number', Number.isFinite],
  ['integer', Number.isSafeInteger],
  ['object', isRecord],
  ['array', Array.isArray],
])

const keywords: ReadonlyMap<string, (wanted: unknown, shape: Shape) => Test> = new Map<
  string,
  (wanted: unknown, shape: Shape) => Test
>([
  ['type', (wanted) => types.get(wanted) ?? (() => false)],
  ['const', (wanted) => (value) => value === wanted],
  ['enum', (wanted) => (value) => Array.isArray(wanted) && wanted.includes(value)],
  ['minimum', (wanted) => (value) => Number(value) >= Number(wanted)],
  ['maximum', (wanted) => (value) => Number(value) <= Number(wanted)],
  ['exclusiveMinimum', (wanted) => (value) => Number(value) > Number(wanted)],
  ['minItems', (wanted) => (value) => Array.isArray(value) && value.length >= Number(wanted)],
  [
    'items',
    (wanted) => {
      const test = testOf(asShape(wanted))
      return (value) => Array.isArray(value) && value.every(test)
    },
  ],
  [
    'oneOf',
    (wanted) => {
      const each = Array.isArray(wanted) ? wanted.map((shape) => testOf(asShape(shape))) : []
      return (value) => each.some((test) => test(value))
    },
  ],
  [
    'required',
    (wanted) => {
      const names = Array.isArray(wanted) ? wanted.map(String) : undefined
      return (value) =>
        isRecord(value) && names !== undefined && names.every((name) => Object.hasOwn(value, name))
    },
  ],
  [
    'properties',
    (wanted) => {
      const each = Object.entries(asShape(wanted)).map(([name, shape]) => ({
        name,
        test: testOf(asShape(shape)),
      }))
      return (value) =>
        isRecord(value) && each.every(({ name, test }) => !Object.hasOwn(value, name) || test(value[name]))
    },
  ],
  // Keys of JSON are always texts.
  ['propertyNames', (wanted) => () => asShape(wanted)['type'] === 'string'],
  ['additionalProperties', noStranger],
])

/** `__proto__` is nobody's field: zod leaves it out. */
function noStranger(wanted: unknown, { properties }: Shape): Test {
  const known = new Set(Object.keys(asShape(properties)))
  const test = wanted === false ? () => false : testOf(asShape(wanted))
  return (value) => {
    if (!isRecord(value) || Object.hasOwn(value, '__proto__')) return false
    return Object.keys(value).every((name) => known.has(name) || test(value[name]))
  }
}

function asShape(value: unknown): Shape {
  return isRecord(value) ? value : {}
}
