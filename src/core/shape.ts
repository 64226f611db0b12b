// Says quickly yes to what the zod schemas would take as it is; never no: what does not fit is zod's to judge.
// Reading a journal for `ralph status` would otherwise spend most of its time on loading zod.
import type { LoopEvent } from './event.ts'
import type { StateFile } from './state-file.ts'
import shapes from './shapes.json' with { type: 'json' }

/** The part of JSON Schema that zod's own export of our schemas uses. */
type Shape = Readonly<Record<string, unknown>>

/** No event is called `state_file`. */
const { state_file: stateFile, ...eventShapes } = shapes
const events: ReadonlyMap<unknown, Shape> = new Map(Object.entries(eventShapes))

export function isSurelyEvent(value: unknown): value is LoopEvent {
  const shape = isRecord(value) ? events.get(value['type']) : undefined
  return shape !== undefined && fits(shape, value)
}

export function isSurelyStateFile(value: unknown): value is StateFile {
  return fits(stateFile, value)
}

/** A keyword that is not known here is a "perhaps not": a schema that learns a new one is slower, not wrong. */
export function fits(shape: Shape, value: unknown): boolean {
  return Object.entries(shape).every(([keyword, wanted]) => keywords.get(keyword)?.(value, wanted, shape))
}

type Check = (value: unknown, wanted: unknown, shape: Shape) => boolean

const types: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map([
  ['string', (value: unknown) => typeof value === 'string'],
  ['boolean', (value: unknown) => typeof value === 'boolean'],
  ['number', Number.isFinite],
  ['integer', Number.isSafeInteger],
  ['object', isRecord],
  ['array', Array.isArray],
])

const keywords: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['type', (value, wanted) => types.get(wanted)?.(value) === true],
  ['const', (value, wanted) => value === wanted],
  ['enum', (value, wanted) => Array.isArray(wanted) && wanted.includes(value)],
  ['minimum', (value, wanted) => Number(value) >= Number(wanted)],
  ['maximum', (value, wanted) => Number(value) <= Number(wanted)],
  ['exclusiveMinimum', (value, wanted) => Number(value) > Number(wanted)],
  ['minItems', (value, wanted) => Array.isArray(value) && value.length >= Number(wanted)],
  ['items', (value, wanted) => Array.isArray(value) && value.every((item) => fits(asShape(wanted), item))],
  ['oneOf', (value, wanted) => Array.isArray(wanted) && wanted.some((each) => fits(asShape(each), value))],
  [
    'required',
    (value, wanted) =>
      isRecord(value) && Array.isArray(wanted) && wanted.every((name) => Object.hasOwn(value, String(name))),
  ],
  [
    'properties',
    (value, wanted) =>
      isRecord(value) &&
      Object.entries(asShape(wanted)).every(
        ([name, shape]) => !Object.hasOwn(value, name) || fits(asShape(shape), value[name]),
      ),
  ],
  // Keys of JSON are always texts.
  ['propertyNames', (_, wanted) => asShape(wanted)['type'] === 'string'],
  ['additionalProperties', hasNoStranger],
])

/** `__proto__` is nobody's field: zod leaves it out. */
function hasNoStranger(value: unknown, wanted: unknown, { properties }: Shape): boolean {
  const known = asShape(properties)
  if (!isRecord(value) || Object.hasOwn(value, '__proto__')) return false
  const strangers = Object.keys(value).filter((name) => !Object.hasOwn(known, name))
  return strangers.every((name) => wanted !== false && fits(asShape(wanted), value[name]))
}

function asShape(value: unknown): Shape {
  return isRecord(value) ? value : {}
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
