// The settings of a run are those of its start: every one is kept with its origin, and a resume goes on with them unless its flags name others.
// Long because what is written at a start, read at a resume and compared with the flags are the same fields.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import * as z from 'zod'
import { once } from '../core/once.ts'
import { readJson } from '../core/json.ts'
import { readIfThere, writeDurably } from '../adapters/files/whole.ts'
import { shellWord } from '../core/shell-word.ts'
import { byDefault, fromFiles } from '../config/load.ts'
import type { LoadedConfig, RawFlags, SettingEntry } from '../config/load.ts'
import { flagOf, optionKeys } from '../config/options.ts'
import type { Config, OptionKey } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import {
  changedBy,
  changesSince,
  hiddenEnv,
  keptFile,
  keptFileSchema,
  levels,
  nameOf,
  type KeptFile,
} from './config-trust.ts'
import type { KnownRun } from './site.ts'

const keptSchema = once(() =>
  z.object({
    entries: z.record(
      z.string(),
      z.object({ value: z.unknown().optional(), origin: z.string(), where: z.string() }),
    ),
    /** Hashes: the values may be secret, and are on no disk. */
    agent_env: z.record(z.string(), z.string()),
    salt: z.string(),
    files: z.object({ project: keptFileSchema().optional(), user: keptFileSchema() }),
    /** Which files hold the boxes. */
    tasks_pattern: z.string().optional(),
  }),
)
export type KeptSettings = z.infer<ReturnType<typeof keptSchema>>

export interface RunSettings {
  readonly config: Config
  /** To be kept for the next resume. */
  readonly kept: KeptSettings
  readonly warnings: readonly string[]
}

/** Of one command only. */
const passing: ReadonlySet<OptionKey> = new Set<OptionKey>(['fresh', 'dry_run', 'worktree'])
/** How this command shows what it does: its own flags and variables count. */
const shown: ReadonlySet<OptionKey> = new Set<OptionKey>(['json', 'no_tui'])

/** Of a run that begins now. */
export function startedSettings({ config, entries, files }: LoadedConfig): RunSettings {
  const lasting = entries.map((entry) => (shown.has(entry.key) ? fromFiles(entry.key, files) : entry))
  return { config, kept: toKept(lasting, config, keptFiles(files)), warnings: [] }
}

/** What a resume runs with: its own flags, then the run's settings. The files as they are now only where the user says so. */
export async function resumedSettings(
  run: KnownRun,
  loaded: LoadedConfig,
  common: string,
  acceptsFiles: boolean,
): Promise<RunSettings> {
  const before = await readKept(settingsFile(run))
  if (before === undefined && !acceptsFiles) throw lostSettings(run)
  const problem = loaded.files.project?.problem ?? loaded.files.user.problem
  if (acceptsFiles && problem !== undefined) throw problem
  const flags = new Map(
    loaded.entries.filter(({ origin }) => origin === 'flag').map((entry) => [entry.key, entry]),
  )
  refuseOtherCheckpoint(run, flags.has('checkpoint') ? loaded.config.checkpoint : undefined)
  const files = before === undefined || acceptsFiles ? loaded.files : undefined
  /** As if this command had named nothing. */
  const lasting = (key: OptionKey): SettingEntry => {
    const kept = before?.entries[key]
    const isSaid = kept !== undefined && ['flag', 'variable'].includes(kept.origin)
    if (isReplaced(key, flags, run)) return byDefault(key)
    return files !== undefined && !isSaid ? fromFiles(key, files) : entryOf(key, kept)
  }
  const entries = optionKeys.map((key) => {
    const now = loaded.entries.find((entry) => entry.key === key) ?? byDefault(key)
    const isOfNow = before === undefined || flags.has(key) || passing.has(key)
    return isOfNow || (shown.has(key) && now.origin === 'variable') ? now : lasting(key)
  })
  const { checkpoint, done_criteria: criteria } = run.state.settings ?? {}
  const values = Object.fromEntries(
    entries.filter((entry) => 'value' in entry).map((entry) => [entry.key, entry.value]),
  )
  const config = {
    // Each value has passed the schema of its own key when the run began.
    ...(values as unknown as Config),
    ...(before !== undefined &&
      !flags.has('agent_env') && { agent_env: { ...sameEnv(before, loaded), ...envOf(files) } }),
    ...(checkpoint !== undefined && { checkpoint }),
    // A plan that has gone missing since must not turn the run into one that a word can end.
    ...(criteria !== undefined && !flags.has('done') && { done: criteria }),
  }
  const kept = toKept(
    entries.map((entry) => (shown.has(entry.key) ? lasting(entry.key) : entry)),
    config,
    files === undefined && before !== undefined ? before.files : keptFiles(loaded.files),
    before,
  )
  const pattern = acceptsFiles ? undefined : before?.tasks_pattern
  return {
    config,
    kept: { ...kept, ...(pattern !== undefined && { tasks_pattern: pattern }) },
    warnings: [
      ...(before === undefined ? [] : await fileWarnings(run, before, loaded, common, acceptsFiles)),
      ...variableWarnings(loaded, config),
      ...(before === undefined ? [] : unsetEnv(run, before, config)),
    ],
  }
}

/** The same for who only looks. */
export async function settingsToShow(
  run: KnownRun,
  loaded: LoadedConfig,
  common: string,
): Promise<LoadedConfig> {
  const { config, kept } = await resumedSettings(run, loaded, common, false)
  const entries = loaded.entries.map((entry): SettingEntry => {
    const { key } = entry
    if (entry.origin === 'flag') return entry
    const value = config[key]
    const isDefault = (kept.entries[key]?.origin ?? 'default') === 'default'
    return {
      ...(isDefault ? byDefault(key) : { key, origin: 'run' as const, where: 'the start of this run' }),
      ...(value !== undefined && { value }),
    }
  })
  return { ...loaded, config, entries }
}

/** Call when the run has begun. */
export async function keepSettings(run: KnownRun, kept: KeptSettings): Promise<void> {
  await writeDurably(settingsFile(run), `${JSON.stringify(kept, null, 2)}\n`, { rights: { mode: 0o600 } })
}

export function settingsFile({ paths }: Pick<KnownRun, 'paths'>): string {
  return join(paths.root, 'settings.json')
}

/** How the agent is run, and what it is kept in. */
const ofTheAgent = [
  'agent',
  'agent_command',
  'agent_args',
  'model',
  'prompt_append',
  'no_api_key',
  'iteration_timeout',
  'idle_timeout',
  'verify',
  'sandbox',
  'sandbox_allow',
  'sandbox_hosts',
] as const satisfies readonly OptionKey[]

/** What was typed for a run, for another one in its place: what is typed now counts more, and names the agent whole. */
export async function flagsOfRun(run: KnownRun, typed: RawFlags): Promise<RawFlags> {
  const kept = (await readKept(settingsFile(run)))?.entries ?? {}
  const isOther = typed.agent !== undefined || typed.agent_command !== undefined
  const said = ofTheAgent.flatMap((key) => {
    const { origin = '', value } = kept[key] ?? {}
    const isTyped = origin === 'flag' || origin === 'variable'
    const isReplaced = isOther && /^(agent|model)/.test(key)
    return isTyped && !isReplaced ? [[key, key === 'agent' ? String(value) : value] as const] : []
  })
  return { ...Object.fromEntries(said), ...typed }
}

/** One line for each open run that would not use the project's file as it is now. */
export async function keptByRuns(
  runs: readonly KnownRun[],
  { project }: LoadedConfig['files'],
): Promise<readonly string[]> {
  if (project === undefined) return []
  const lines = runs
    .filter(({ state, damage }) => damage === undefined && state.phase !== 'idle' && state.status !== 'done')
    .map(async (run) => {
      // The same file as ever: the schema of all that is kept is dear, and has no say in that.
      if ((await rawKept(settingsFile(run)))?.files?.project?.sha === project.sha) return []
      const kept = await readKept(settingsFile(run))
      const before = kept?.files.project
      const changes = before === undefined ? [] : changesSince(before, project, kept?.entries)
      return changes.length === 0
        ? []
        : [
            `the open run of ${run.change} continues with the settings of its start, not with ${nameOf('project', project)} as it is now (${changes.join('; ')}); to use the file: ralph resume ${run.change} --accept-config`,
          ]
    })
  return (await Promise.all(lines)).flat()
}

/** Undefined where there is none that can be read. */
export async function readKept(file: string): Promise<KeptSettings | undefined> {
  const raw = await rawKept(file)
  return raw === undefined ? undefined : keptSchema().safeParse(raw).data
}

async function rawKept(file: string): Promise<{ files?: { project?: { sha?: unknown } } } | undefined> {
  const raw = readJson((await readIfThere(file))?.toString('utf8') ?? '')
  return typeof raw === 'object' && raw !== null ? raw : undefined
}

function entryOf(key: OptionKey, kept: KeptSettings['entries'][string] | undefined): SettingEntry {
  if (kept === undefined) return byDefault(key)
  const { origin, ...rest } = kept
  return { key, origin: origin as SettingEntry['origin'], ...rest }
}

/** An agent and its command belong together. Naming one limit replaces both, so that a run can go on with an agent whose cost nobody knows. */
const replacedBy: Partial<Record<OptionKey, OptionKey>> = {
  agent: 'agent_command',
  agent_command: 'agent',
  max_tokens: 'max_cost',
  max_cost: 'max_tokens',
}

function isReplaced(key: OptionKey, flags: ReadonlyMap<OptionKey, unknown>, run: KnownRun): boolean {
  // The named stories are done: what is left is what a resume is for.
  if (key === 'story') return run.state.status === 'done'
  const other = replacedBy[key]
  return other !== undefined && flags.has(other)
}

function refuseOtherCheckpoint(run: KnownRun, wanted: string | undefined): void {
  const checkpoint = run.state.settings?.checkpoint
  if (checkpoint === undefined || wanted === undefined || wanted === checkpoint) return
  throw new RalphError('usage', `This run uses --checkpoint ${checkpoint}; that cannot be changed now.`, {
    hint: `Continue without --checkpoint, or start over: ralph loop ${run.change} --fresh --checkpoint ${wanted}`,
  })
}

/** A tree of its own is made where a run begins: this one is in the user's folder, and whoever names the flag means that it stays out of it. */
export function refuseNewTree({ change, state }: KnownRun, { entries }: LoadedConfig): void {
  const isAsked = entries.some(({ key, origin }) => key === 'worktree' && origin === 'flag')
  if (!isAsked || state.phase === 'idle' || state.home !== undefined) return
  throw new RalphError('usage', `--worktree is only for a start: the run of ${change} is in this folder.`, {
    hint: `Nothing was touched. Continue it here: ralph resume ${change}\nOr start over in a worktree of its own (this run is archived): ralph loop ${change} --fresh --worktree`,
  })
}

function lostSettings({ change }: KnownRun): RalphError {
  return new RalphError(
    'config',
    `The settings that the run of ${change} was started with are no longer known.`,
    {
      hint: `Nothing was touched. See the present ones (ralph config); to continue with them: ralph resume ${change} --accept-config`,
    },
  )
}

/** What `agent_env` is not given this time may be given the next. */
function toKept(
  entries: readonly SettingEntry[],
  { agent_env: env }: Config,
  files: KeptSettings['files'],
  { salt, agent_env: earlier }: Pick<KeptSettings, 'salt' | 'agent_env'> = {
    salt: randomUUID(),
    agent_env: {},
  },
): KeptSettings {
  const open = entries.filter(({ key }) => !passing.has(key) && key !== 'agent_env')
  return {
    entries: Object.fromEntries(open.map(({ key, ...entry }) => [key, entry])),
    agent_env: { ...earlier, ...hiddenEnv(env, salt) },
    salt,
    files,
  }
}

function envOf(files: LoadedConfig['files'] | undefined): Record<string, string> {
  const value = files === undefined ? undefined : fromFiles('agent_env', files).value
  return { ...(value as Readonly<Record<string, string>> | undefined) }
}

function keptFiles({ project, user }: LoadedConfig['files']): KeptSettings['files'] {
  return { ...(project !== undefined && { project: keptFile(project) }), user: keptFile(user) }
}

/** Those that are given now, by a file or a variable, and are what they were. */
function sameEnv(
  { agent_env: before, salt }: KeptSettings,
  { config }: LoadedConfig,
): Record<string, string> {
  const now = hiddenEnv(config.agent_env, salt)
  return Object.fromEntries(Object.entries(config.agent_env).filter(([name]) => now[name] === before[name]))
}

function unsetEnv(
  { change }: KnownRun,
  { agent_env: before }: KeptSettings,
  { agent_env: given }: Config,
): string[] {
  const unset = Object.keys(before).filter((name) => !(name in given))
  if (unset.length === 0) return []
  const flags = unset.map((name) => `--agent-env ${name}=VALUE`).join(' ')
  return [
    `not set any more: ${unset.join(', ')}. The values of --agent-env are not kept, as they may be secret; to set them again: ralph resume ${change} ${flags}`,
  ]
}

async function fileWarnings(
  { change }: KnownRun,
  before: KeptSettings,
  { files }: LoadedConfig,
  common: string,
  acceptsFiles: boolean,
): Promise<string[]> {
  const told: string[] = []
  for (const [level, file] of levels(files)) {
    const earlier: KeptFile = before.files[level] ?? { path: file.path, sha: '', salt: '', values: {} }
    const changes = changesSince(earlier, file, before.entries)
    if (changes.length === 0) continue
    const by = await changedBy(common, level, file.sha)
    const when = by === undefined ? '' : `, changed while #${by.n} of ${by.change} ran`
    told.push(
      acceptsFiles
        ? `${nameOf(level, file)} is used as it is now: ${changes.join('; ')}`
        : `${nameOf(level, file)} is not what it was when this run began${when}: ${changes.join('; ')}. The run continues with the settings of its start; to use the file as it is now: ralph resume ${change} --accept-config`,
    )
  }
  return told
}

function variableWarnings({ entries }: LoadedConfig, config: Config): string[] {
  return entries
    .filter(
      ({ key, origin }) =>
        origin === 'variable' && !passing.has(key) && !shown.has(key) && key !== 'agent_env',
    )
    .filter(({ key, value }) => JSON.stringify(config[key]) !== JSON.stringify(value))
    .map(({ key, value, where }) => {
      const values: readonly unknown[] = Array.isArray(value) && key !== 'agent' ? value : [value]
      const flags = values.map((one) =>
        one === true ? flagOf(key) : `${flagOf(key)} ${shellWord(String(one))}`,
      )
      return `${where} is not used: the settings of a run are those of its start. To change it: ${flags.join(' ')}`
    })
}
