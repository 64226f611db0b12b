// Turns what was written in a flag, a variable or a file into the value of a setting, or says what it should have been.
import { RalphError } from '../core/error.ts'
import { nearest } from '../core/nearest.ts'
import { agentNames, durationPattern } from './option.ts'
import { specOf } from './options.ts'
import type { OptionKey } from './options.ts'
import type { OptionKind, OptionSpec } from './option.ts'
import { schemaOf, wantsOf } from './schema.ts'

/** `name` is the setting as the user wrote it: `--max-retries`, `RALPH_MAX_RETRIES`, `max_retries in ralph.yaml`. */
export function parseSetting(key: OptionKey, raw: unknown, name: string): unknown {
  const spec = specOf(key)
  const result = schemaOf(spec).safeParse(normalize(spec.kind, raw))
  if (result.success) return result.data
  const unknown = spec.kind === 'agents' ? unknownAgent(raw) : undefined
  const message =
    unknown === undefined
      ? `${name} must be ${wantsOf(spec)}, not ${quote(raw)}`
      : `${name}: there is no agent ${quote(unknown)}`
  throw new RalphError('config', message, { hint: suggestion(key, raw) ?? example(spec, name) })
}

function unknownAgent(raw: unknown): string | undefined {
  const named = normalize('agents', raw)
  const known: readonly string[] = agentNames
  return Array.isArray(named)
    ? named.find((each): each is string => typeof each === 'string' && each !== '' && !known.includes(each))
    : undefined
}

const numeric: ReadonlySet<OptionKind> = new Set([
  'count',
  'positive',
  'minutes',
  'minutes_or_off',
  'seconds',
  'usd',
])
const switchWords = new Map([
  ['1', true],
  ['true', true],
  ['yes', true],
  ['on', true],
  ['0', false],
  ['false', false],
  ['no', false],
  ['off', false],
])

/** Flags and variables are texts, files have types: brings both to the form the schema checks. */
function normalize(kind: OptionKind, raw: unknown): unknown {
  if (numeric.has(kind)) {
    // Only plain decimals: Number() alone would take '', '0x10' and '1e9'.
    if (typeof raw !== 'string') return raw
    return /^\s*\d+(\.\d+)?\s*$/.test(raw) ? Number(raw) : (withUnits(kind, raw) ?? raw)
  }
  if (kind === 'switch' || kind === 'folder') {
    const word = typeof raw === 'string' ? switchWords.get(raw.trim().toLowerCase()) : undefined
    return kind === 'switch' || word === true ? (word ?? raw) : raw
  }
  if (kind === 'size' && typeof raw === 'string') return raw.trim().toUpperCase().replace(/I?B$/, '')
  if (kind === 'agents' && typeof raw === 'string') return raw.split(',').map((name) => name.trim())
  if (kind === 'texts') return texts(raw)
  if (kind === 'pairs') return pairs(raw)
  if (kind === 'stories') return stories(raw)
  return raw
}

/** `1h`, `90s`, `1h 30m`: as many of the setting's own unit. */
function withUnits(kind: OptionKind, raw: string): number | undefined {
  const inOne = secondsInOne.get(kind)
  const [said, ...parts] = durationPattern.exec(raw.trim()) ?? []
  if (inOne === undefined || said === undefined) return undefined
  const [hours = 0, minutes = 0, seconds = 0] = parts.map((part: string | undefined) => Number(part ?? 0))
  return (hours * 3600 + minutes * 60 + seconds) / inOne
}

const secondsInOne: ReadonlyMap<OptionKind, number> = new Map([
  ['minutes', 60],
  ['minutes_or_off', 60],
  ['seconds', 1],
])

/** `story: 2` means the text 2; `story: 1.10` was read as the number 1.1 and must be quoted. */
function texts(raw: unknown): unknown {
  if (typeof raw === 'string') return lines(raw)
  const entries: readonly unknown[] = Array.isArray(raw) ? raw : [raw]
  return entries.map((entry) => (Number.isInteger(entry) ? String(entry) : entry))
}

/** A variable holds several values one per line: commands have commas and spaces of their own. */
function lines(raw: string): string[] {
  return raw
    .split('\n')
    .map((entry) => entry.trim())
    .filter((entry, _, all) => entry !== '' || all.length === 1)
}

function pairs(raw: unknown): unknown {
  const entries = typeof raw === 'string' ? lines(raw) : raw
  if (!Array.isArray(entries)) return typeof raw === 'object' ? textValues(raw) : raw
  const found: [string, string][] = []
  for (const entry of entries) {
    const equals = typeof entry === 'string' ? entry.indexOf('=') : -1
    if (typeof entry !== 'string' || equals < 1) return raw
    found.push([entry.slice(0, equals), entry.slice(equals + 1)])
  }
  return Object.fromEntries(found)
}

/** A gate alone need not be a list, here as elsewhere. */
function stories(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw
  return Object.fromEntries(
    Object.entries(raw).map(([id, wish]: [string, unknown]) => {
      if (typeof wish !== 'object' || wish === null || !('verify' in wish)) return [id, wish]
      return [id, { ...wish, verify: texts(wish.verify) }]
    }),
  )
}

/** `PORT: 8080` in a file means the text 8080. */
function textValues(raw: object | null): unknown {
  if (raw === null) return raw
  return Object.fromEntries(
    Object.entries(raw).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'number' || typeof value === 'boolean' ? String(value) : value,
    ]),
  )
}

function suggestion(key: OptionKey, raw: unknown): string | undefined {
  const { kind, choices = [] }: OptionSpec = specOf(key)
  if (choices.length === 0) return undefined
  const words = typeof raw === 'string' ? raw.split(',').map((word) => word.trim()) : []
  const wrong = words.find((word) => !choices.includes(word))
  if (key === 'on_complete' && wrong === 'squash')
    return 'squash when the loop has ended: ralph finish --squash'
  const near = wrong === undefined ? undefined : nearest(wrong, choices)
  // The message has the list already.
  if (kind === 'choice') return near === undefined ? undefined : `Did you mean ${near}?`
  return near === undefined
    ? `it can be: ${choices.join(', ')}`
    : `Did you mean ${near}? It can be: ${choices.join(', ')}`
}

/** In a file the line as it should be, where it can be said. */
function example(spec: OptionSpec, name: string): string {
  const [, value] = /such as (\{.*\}|\S+)/.exec(wantsOf(spec)) ?? []
  const [, key, file = ''] = /^(\w+) in (?:.*[\\/])?(.*?)(?::\d+:\d+)?$/s.exec(name) ?? []
  return value === undefined || key === undefined
    ? `what it is for: ${spec.help}`
    : `in ${file}: ${key}: ${value}`
}

function quote(raw: unknown): string {
  if (raw === null || raw === undefined) return 'nothing'
  if (typeof raw === 'number') return String(raw)
  try {
    return JSON.stringify(raw).slice(0, 80)
  } catch {
    // YAML can say what JSON cannot: a list that holds itself, or a nesting deeper than the stack.
    return 'that'
  }
}
