// Every setting with its value and its origin.
import type { SettingEntry } from '../../config/load.ts'
import type { Paint } from '../io.ts'
import { table } from './table.ts'
import { clip, oneLine } from './text.ts'

export function configText(entries: readonly SettingEntry[], paint: Paint): string {
  const rows = entries.map((entry) => {
    const set = entry.origin !== 'default'
    return [
      entry.key,
      { text: clip(valueText(entry), 60), paint: set ? paint.bold : paint.dim },
      { text: entry.origin, paint: set ? paint.cyan : paint.dim },
      { text: oneLine(entry.where), paint: paint.dim },
    ]
  })
  return table(['setting', 'value', 'origin', 'where'], rows, paint)
}

function valueText({ key, value }: SettingEntry): string {
  const shown = publicValue(key, value)
  if (shown === undefined || (Array.isArray(shown) && shown.length === 0)) return '-'
  if (Array.isArray(shown)) return shown.map((entry) => oneLine(String(entry))).join(' | ')
  return oneLine(typeof shown === 'string' ? shown : JSON.stringify(shown))
}

export function configJson(entries: readonly SettingEntry[]) {
  const shown = entries.map(({ key, value, origin, where }) => [
    key,
    { value: publicValue(key, value) ?? null, origin, where },
  ])
  return { settings: Object.fromEntries(shown) as Record<string, unknown> }
}

/** Values of agent_env may be secrets: its names only. */
function publicValue(key: SettingEntry['key'], value: unknown): unknown {
  return key === 'agent_env' && typeof value === 'object' && value !== null ? Object.keys(value) : value
}
