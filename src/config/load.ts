// Settles every setting: flag, then variable, then project file, then user file, then default; and remembers which it was.
import { homedir } from 'node:os'
import { join } from 'node:path'
import { nearest } from '../core/nearest.ts'
import { readSettingsFile } from './files.ts'
import type { SettingsFile } from './files.ts'
import { flagOf, optionKeys, specOf, variableOf } from './options.ts'
import type { Config, OptionKey } from './options.ts'
import { parseSetting } from './parse.ts'

type OriginKind = 'flag' | 'variable' | 'project' | 'user' | 'default'

export interface SettingEntry {
  readonly key: OptionKey
  /** Absent where the default is worked out later. */
  readonly value?: unknown
  readonly origin: OriginKind
  /** `--max-retries`, `RALPH_MAX_RETRIES`, the file's path, or how the default comes about. */
  readonly where: string
}

export interface LoadedConfig {
  readonly config: Config
  readonly entries: readonly SettingEntry[]
  /** Misspelt variables: to be said, not refused. */
  readonly warnings: readonly string[]
}

/** As written on the command line: texts, lists of texts, or true. */
export type RawFlags = Readonly<Partial<Record<OptionKey, unknown>>>

export interface ConfigSources {
  readonly flags: RawFlags
  readonly env: NodeJS.ProcessEnv
  /** The repository's root; absent outside one. */
  readonly projectFolder?: string
}

export async function loadConfig(sources: ConfigSources): Promise<LoadedConfig> {
  const project =
    sources.projectFolder === undefined ? undefined : await readSettingsFile(sources.projectFolder)
  const user = await readSettingsFile(userFolder(sources.env))
  const entries = optionKeys.map((key) => settle(key, sources, project, user))
  const config = Object.fromEntries(
    entries.filter((entry) => 'value' in entry).map((entry) => [entry.key, entry.value]),
  )
  // Each value has passed the schema of its own key
  return { config: config as unknown as Config, entries, warnings: misspeltVariables(sources.env) }
}

function userFolder(env: NodeJS.ProcessEnv): string {
  const base = env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config')
  return join(base, 'ralph')
}

/** Every level is checked, also one that another overrides: a wrong line must not wait for the day it counts. */
function settle(
  key: OptionKey,
  { flags, env }: ConfigSources,
  project: SettingsFile | undefined,
  user: SettingsFile | undefined,
): SettingEntry {
  const found: SettingEntry[] = []
  const take = (origin: OriginKind, where: string, raw: unknown, name = where): void => {
    found.push({ key, origin, where, value: parseSetting(key, raw, name) })
  }
  const variable = variableOf(key)
  if (flags[key] !== undefined) take('flag', flagOf(key), flags[key])
  if (env[variable] !== undefined && env[variable] !== '' && !isLoopsOwn(variable, env)) {
    take('variable', variable, env[variable])
  }
  if (project?.values.has(key))
    take('project', project.path, project.values.get(key), `${key} in ${project.path}`)
  if (user?.values.has(key)) take('user', user.path, user.values.get(key), `${key} in ${user.path}`)
  return found[0] ?? byDefault(key)
}

function byDefault(key: OptionKey): SettingEntry {
  const spec = specOf(key)
  const where = spec.defaultText ?? 'built in'
  return { key, origin: 'default', where, ...(spec.default !== undefined && { value: spec.default }) }
}

/** Variables that ralph sets for its agents, or reads elsewhere. */
const otherVariables = ['RALPH_CHANGE', 'RALPH_ATTEMPT', 'RALPH_ITERATION', 'RALPH_RUN_ID']

/** Inside a loop RALPH_STORY says which story the agent works on; an inner ralph must not take it for --story. */
function isLoopsOwn(variable: string, env: NodeJS.ProcessEnv): boolean {
  return variable === 'RALPH_STORY' && env['RALPH_RUN_ID'] !== undefined
}

/** A budget in a misspelt variable does not hold. Only near misses, and no refusal: other programs may use the prefix. */
function misspeltVariables(env: NodeJS.ProcessEnv): readonly string[] {
  const prefix = 'RALPH_'
  const known = [...optionKeys.map(variableOf), ...otherVariables]
  // What all have in common makes nothing alike.
  const ends = known.map((name) => name.slice(prefix.length))
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith(prefix) || known.includes(name)) return []
    const near = nearest(name.slice(prefix.length), ends)
    if (near === undefined) return []
    return [`the variable ${name} means nothing to ralph; did you mean ${prefix}${near}?`]
  })
}
