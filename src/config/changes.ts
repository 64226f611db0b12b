// What differs between two versions of a settings file, key by key, in words that give no secret away.
import { optionKeys } from './options.ts'
import type { OptionKey } from './options.ts'

/** As they are kept: of `agent_env` never the values. */
export type KeptValues = Readonly<Partial<Record<OptionKey, unknown>>>

/** `verify: ["npm test"] -> not set`, one for each key that differs; empty when none does. */
export function settingChanges(before: KeptValues, now: KeptValues): readonly string[] {
  return optionKeys
    .filter((key) => JSON.stringify(before[key]) !== JSON.stringify(now[key]))
    .map((key) => `${key}: ${shownValue(key, before[key])} -> ${shownValue(key, now[key])}`)
}

function shownValue(key: OptionKey, value: unknown): string {
  if (value === undefined) return 'not set'
  // Of `agent_env` the names only.
  if (key === 'agent_env' && typeof value === 'object' && value !== null) return Object.keys(value).join(', ')
  const text = Array.isArray(value) && value.length === 1 ? JSON.stringify(value[0]) : JSON.stringify(value)
  return text.length > 160 ? `${text.slice(0, 159)}…` : text
}
