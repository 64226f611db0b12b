// Reads JSON that somebody else wrote: every step may be missing or of another type.
import { readJson } from '../../core/json.ts'

export function parseJson(line: Buffer): unknown {
  // Agents print stray words between their events; only an object can be one.
  return line[0] === openBrace ? readJson(line.toString('utf8')) : undefined
}

export function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value
  for (const key of path) {
    if (typeof here !== 'object' || here === null) return undefined
    here = Object.hasOwn(here, key) ? Reflect.get(here, key) : undefined
  }
  return here
}

export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path)
  return typeof found === 'string' ? found : ''
}

/** A finite number that is not negative, or 0: figures of others never make ours negative. */
export function countAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path)
  return typeof found === 'number' && Number.isFinite(found) && found > 0 ? found : 0
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : []
}

/** A tool's input in a line: the field that tells most, else all of it. */
export function shortInput(input: unknown): string {
  const name = telling.find((field) => {
    const value = at(input, field)
    return value !== undefined && value !== ''
  })
  const chosen = (name === undefined ? undefined : at(input, name)) ?? input ?? ''
  const text = typeof chosen === 'string' ? chosen : jsonOf(chosen)
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > inputLimit ? `${line.slice(0, inputLimit - 1)}…` : line
}

/** What can be parsed cannot always be written: that goes by the stack, and an input may be nested deeper. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return '…'
    throw error
  }
}

const openBrace = 0x7b
const telling = [
  'command',
  'cmd',
  'file_path',
  'filePath',
  'path',
  'pattern',
  'query',
  'url',
  'description',
  'prompt',
]
const inputLimit = 200
