// Settles every setting: flag, then variable, then project file, then user file, then default; and remembers which it was.
import { homedir } from 'node:os'
import { join } from 'node:path'
import { nearest } from '../core/nearest.ts'
import { readSettingsFile } from './files.ts'
import type { SettingsFile } from './files.ts'
import { flagOf, isFileOnly, optionKeys, specOf, variableOf } from './options.ts'
import type { Config, OptionKey } from './options.ts'
import { parseSetting } from './parse.ts'

/** `run`: kept since the start of a run that a resume goes on with. */
type OriginKind = 'flag' | 'variable' | 'project' | 'user' | 'run' | 'default'

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
  /** The two files as they are now; a project's is absent outside a repository. */
  readonly files: { readonly project?: SettingsFile; readonly user: SettingsFile }
  /** Misspelt variables: to be said, not refused. */
  readonly warnings: readonly string[]
  /** The same with the files as they are then: a repair may have put them back. */
  readonly again: () => Promise<LoadedConfig>
}

/** As written on the command line: texts, lists of texts, or true. */
export type RawFlags = Readonly<Partial<Record<OptionKey, unknown>>>

export interface ConfigSources {
  readonly flags: RawFlags
  readonly env: NodeJS.ProcessEnv
  /** The repository's root; absent outside one. */
  readonly projectFolder?: string
  /** A run that goes on has its settings already: a file that cannot be used now is told, not refused. */
  readonly isResumed?: boolean
}

export async function loadConfig(sources: ConfigSources): Promise<LoadedConfig> {
  const project =
    sources.projectFolder === undefined ? undefined : await readSettingsFile(sources.projectFolder)
  const user = await readSettingsFile(userFolder(sources.env))
  const problem = project?.problem ?? user.problem
  if (problem !== undefined && sources.isResumed !== true) throw problem
  const entries = optionKeys.map((key) => settle(key, sources, project, user))
  const config = Object.fromEntries(
    entries.filter((entry) => 'value' in entry).map((entry) => [entry.key, entry.value]),
  )
  // Each value has passed the schema of its own key
  return {
    config: config as unknown as Config,
    entries,
    files: { ...(project !== undefined && { project }), user },
    warnings: misspeltVariables(sources.env),
    again: () => loadConfig(sources),
  }
}

export function userFolder(env: NodeJS.ProcessEnv): string {
  const base = env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config')
  return join(base, 'ralph')
}

/** Every level is checked, also one that another overrides: a wrong line must not wait for the day it counts. */
function settle(
  key: OptionKey,
  { flags, env }: ConfigSources,
  project: SettingsFile | undefined,
  user: SettingsFile,
): SettingEntry {
  const found: SettingEntry[] = []
  const take = (origin: OriginKind, where: string, raw: unknown): void => {
    found.push({ key, origin, where, value: parseSetting(key, raw, where) })
  }
  const variable = variableOf(key)
  if (flags[key] !== undefined) take('flag', flagOf(key), flags[key])
  if (env[variable] && !isFileOnly(key) && !isLoopsOwn(variable, env)) {
    take('variable', variable, env[variable])
  }
  return found[0] ?? fromFiles(key, { ...(project && { project }), user })
}

/** What the files alone say, and the default below them. */
export function fromFiles(key: OptionKey, { project, user }: LoadedConfig['files']): SettingEntry {
  if (project?.values.has(key))
    return { key, origin: 'project', where: project.path, value: project.values.get(key) }
  if (user.values.has(key)) return { key, origin: 'user', where: user.path, value: user.values.get(key) }
  return byDefault(key)
}

export function byDefault(key: OptionKey): SettingEntry {
  const spec = specOf(key)
  const where = spec.defaultText ?? 'built in'
  return { key, origin: 'default', where, ...(spec.default !== undefined && { value: spec.default }) }
}

/** Variables that ralph sets for its agents, or reads elsewhere. */
const otherVariables = [
  'RALPH_CHANGE',
  'RALPH_ATTEMPT',
  'RALPH_ITERATION',
  'RALPH_RUN_ID',
  'RALPH_SLOT',
  'RALPH_PORT_BASE',
]

/** Inside a loop RALPH_STORY says which story the agent works on; an inner ralph must not take it for --story. */
function isLoopsOwn(variable: string, env: NodeJS.ProcessEnv): boolean {
  return variable === 'RALPH_STORY' && env['RALPH_RUN_ID'] !== undefined
}

/** A budget in a misspelt variable does not hold. Only near misses, and no refusal: other programs may use the prefix. */
function misspeltVariables(env: NodeJS.ProcessEnv): readonly string[] {
  const prefix = 'RALPH_'
  const known = [...optionKeys.filter((key) => !isFileOnly(key)).map(variableOf), ...otherVariables]
  // What all have in common makes nothing alike.
  const ends = known.map((name) => name.slice(prefix.length))
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith(prefix) || known.includes(name)) return []
    const fileOnly = optionKeys.find((key) => isFileOnly(key) && variableOf(key) === name)
    if (fileOnly !== undefined)
      return [`the variable ${name} is not used: ${fileOnly} is set in ralph.yaml only`]
    const near = nearest(name.slice(prefix.length), ends)
    if (near === undefined) return []
    return [`unknown variable ${name}. Did you mean ${prefix}${near}?`]
  })
}
