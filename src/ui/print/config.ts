// Every setting with its value, its origin and what it is for, and the files that were looked for.
import type { LoadedConfig, SettingEntry } from '../../config/load.ts'
import { specOf } from '../../config/options.ts'
import { agentHomes, caches, closed, movedSecrets, secrets } from '../../core/cage-homes.ts'
import type { Paint } from '../io.ts'
import { entryLines } from './layout.ts'
import { table } from './table.ts'
import { clip, oneLine, widthOf } from './text.ts'

export interface ConfigPage {
  readonly paint: Paint
  /** Absent in a pipe, where a line stays a line. */
  readonly columns: number | undefined
}

export function configText(
  { entries, files }: Pick<LoadedConfig, 'entries' | 'files'>,
  { paint, columns }: ConfigPage,
): string {
  const rows = entries.filter(isSetting).map((entry) => {
    const set = entry.origin !== 'default'
    return [
      entry.key,
      { text: clip(valueText(entry), mostCells), paint: set ? paint.bold : paint.dim },
      { text: fromWord(entry), paint: set ? paint.cyan : paint.dim },
      { text: specOf(entry.key).help, paint: paint.dim },
    ]
  })
  // In its row it would push all others off the screen.
  const long = entries
    .filter(isSetting)
    .filter((entry) => entry.origin !== 'default' && widthOf(valueText(entry)) > mostCells)
    .flatMap((entry) => entryLines({ text: `${entry.key}: ${valueText(entry)}` }, { paint, columns }))
  const levels = [['project', files.project] as const, ['user', files.user] as const]
  const looked = levels.flatMap(([name, file]) =>
    file === undefined
      ? []
      : [`  ${name.padEnd(8)} ${oneLine(file.path)}${file.sha === '' ? ' (not there)' : ''}`],
  )
  const order = 'A flag beats a RALPH_ variable, that beats these files, and the first beats the second:'
  return [
    table(['setting', 'value', 'from', 'what it is for'], rows, paint, columns),
    '',
    ...(long.length === 0 ? [] : [...long, '']),
    ...entryLines({ text: order }, { paint, columns }),
    ...looked,
    ...sandboxLines(entries).flatMap((text) => entryLines({ text }, { paint, columns })),
  ].join('\n')
}

/** Where there is one: what it lets through, by agent. */
function sandboxLines(entries: readonly SettingEntry[]): readonly string[] {
  const mode = entries.find(({ key }) => key === 'sandbox')?.value
  if (mode === undefined || mode === 'off') return []
  const { agents, caches: cached, hidden, closed: shut } = sandboxPlaces()
  return [
    '',
    'The sandbox can write the work tree, its TMPDIR, sandbox_allow, and:',
    ...Object.entries(agents).map(([name, paths]) => `  ${name.padEnd(8)} ${paths.join(', ')}`),
    `  caches   ${cached.join(', ')}`,
    'Hidden in it, unless sandbox_allow or PATH names it:',
    ...shut.map(({ folder, but }) => `  ${folder} but ${but.join(', ')}`),
    `Always hidden: ${hidden.join(', ')}`,
  ]
}

/** As a user writes them; a variable of the agent's, such as CODEX_HOME, can name another place. */
function sandboxPlaces(): {
  readonly agents: Readonly<Record<string, readonly string[]>>
  readonly caches: readonly string[]
  readonly hidden: readonly string[]
  readonly closed: readonly { readonly folder: string; readonly but: readonly string[] }[]
} {
  const named = (places: readonly { readonly path: string }[]): string[] => [
    ...new Set(places.map(({ path }) => `~/${path}`)),
  ]
  const states = Object.entries(agentHomes).map(([name, { state }]) => [name, named(state)] as const)
  return {
    agents: Object.fromEntries(states),
    caches: named(caches),
    hidden: named([...secrets, ...movedSecrets]),
    closed: closed.map(({ folder, but }) => ({
      folder: folder.path === '' ? '~/.*' : `~/${folder.path}/*`,
      but: [...but],
    })),
  }
}

const mostCells = 26

/** The files are named below the table. */
export function fromWord({ origin, where }: SettingEntry): string {
  if (origin === 'run') return 'from its start'
  return origin === 'flag' || origin === 'variable' ? oneLine(where) : origin
}

/** What belongs to one command is no setting, unless somebody made it one. */
export function isSetting({ key, origin }: SettingEntry): boolean {
  return origin !== 'default' || !['fresh', 'dry_run', 'json', 'story', 'task'].includes(key)
}

export function valueText(entry: SettingEntry): string {
  const { key, value } = entry
  const shown = publicValue(key, value)
  const { defaultText, kind } = specOf(key)
  if (shown === undefined) return defaultText ?? 'none'
  if (Array.isArray(shown)) return shown.map((each) => oneLine(String(each))).join(' | ') || 'none'
  if (typeof shown === 'object' && shown !== null && Object.keys(shown).length === 0) return 'none'
  const word = oneLine(typeof shown === 'string' ? shown : JSON.stringify(shown))
  if (kind === 'switch') return shown === true ? 'on' : 'off'
  if (kind === 'minutes' || kind === 'minutes_or_off') return shown === 0 ? 'off' : `${word} min`
  if (kind === 'seconds') return `${word} s`
  return kind === 'usd' ? `$${word}` : word
}

export function configJson(entries: readonly SettingEntry[]) {
  const shown = entries.map(({ key, value, origin, where }) => [
    key,
    { value: publicValue(key, value) ?? null, origin, where },
  ])
  return { settings: Object.fromEntries(shown) as Record<string, unknown>, sandbox: sandboxPlaces() }
}

/** Values of agent_env may be secrets: its names only. */
function publicValue(key: SettingEntry['key'], value: unknown): unknown {
  return key === 'agent_env' && typeof value === 'object' && value !== null ? Object.keys(value) : value
}
