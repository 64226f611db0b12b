// The flags that a run was started with: a resume goes on with them, unless it names others.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import type { LoadedConfig } from '../config/load.ts'
import type { Config, OptionKey } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { KnownRun } from './site.ts'

/** Of one command only; or kept elsewhere (budget, work tree); or secret (the values of --agent-env: its names are kept apart). */
const passing: ReadonlySet<OptionKey> = new Set<OptionKey>([
  'fresh',
  'dry_run',
  'json',
  'no_tui',
  'agent_env',
  'max_tokens',
  'max_cost',
  'worktree',
])

type Flags = Partial<Record<OptionKey, unknown>>

const fileOf = (run: KnownRun): string => join(run.paths.root, 'flags.json')

/** What a resume runs with: its own flags, then the run's, then variables, files and defaults as they are now. */
export async function resumedConfig(run: KnownRun, loaded: LoadedConfig): Promise<Config> {
  const named = new Set(loaded.entries.filter((entry) => entry.origin === 'flag').map((entry) => entry.key))
  const { flags: kept } = await readKept(run)
  // An agent and its command belong together: naming one anew leaves the other behind.
  if (named.has('agent_command') && !named.has('agent')) delete kept.agent
  if (named.has('agent') && !named.has('agent_command')) delete kept.agent_command
  for (const key of named) delete kept[key]
  const { checkpoint, done_criteria: criteria } = run.state.settings ?? {}
  if (checkpoint !== undefined && named.has('checkpoint') && loaded.config.checkpoint !== checkpoint) {
    throw new RalphError(
      'usage',
      `This run keeps its checkpoints by ${checkpoint}; that cannot be changed half-way.`,
      {
        hint: `Go on without --checkpoint, or start anew: ralph loop ${run.change} --fresh --checkpoint ${loaded.config.checkpoint}`,
        exitCode: 2,
      },
    )
  }
  // Each value has passed the schema of its own key when it was a flag.
  return {
    ...loaded.config,
    ...(kept as Partial<Config>),
    ...(checkpoint !== undefined && { checkpoint }),
    // A plan that has gone missing since must not turn the run into one that a word can end.
    ...(criteria !== undefined && !named.has('done') && { done: criteria }),
  }
}

/** A warning where the run was given by --agent-env what this resume is not: the values may be secret and are on no disk. */
export async function unsetEnv(run: KnownRun, { agent_env: given }: Config): Promise<string> {
  const { names } = await readKept(run)
  const unset = names.filter((name) => !(name in given))
  if (unset.length === 0) return ''
  const flags = unset.map((name) => `--agent-env ${name}=VALUE`).join(' ')
  return `not set any more: ${unset.join(', ')}. The values of --agent-env are not kept, as they may be secret; to set them again: ralph resume ${run.change} ${flags}`
}

/** Call when the run has begun: what was said on the command line, and on earlier ones, is what the next resume takes. */
export async function keepFlags(run: KnownRun, loaded: LoadedConfig, isResumed: boolean): Promise<void> {
  const said = loaded.entries.filter((entry) => entry.origin === 'flag')
  const flags = Object.fromEntries(
    said.filter((entry) => !passing.has(entry.key)).map((entry) => [entry.key, entry.value]),
  )
  const { flags: earlier, names } = isResumed ? await readKept(run) : { flags: {} as Flags, names: [] }
  if ('agent_command' in flags && !('agent' in flags)) delete earlier.agent
  if ('agent' in flags && !('agent_command' in flags)) delete earlier.agent_command
  const saidNames = said.some((entry) => entry.key === 'agent_env')
    ? Object.keys(loaded.config.agent_env)
    : names
  const kept = { ...earlier, ...flags, ...(saidNames.length > 0 && { [namesKey]: saidNames }) }
  await writeFileAtomic(fileOf(run), `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 })
}

const namesKey = 'agent_env_names'

async function readKept(run: KnownRun): Promise<{ flags: Flags; names: readonly string[] }> {
  try {
    const file = JSON.parse(await readFile(fileOf(run), 'utf8')) as Flags & { [namesKey]?: readonly string[] }
    const { [namesKey]: names = [], ...flags } = file
    // The named stories are done: what is left is what a resume is for.
    if (run.state.status === 'done') delete flags.story
    return { flags, names }
  } catch (error) {
    // A run of an earlier ralph, or one that was killed before it wrote them.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError)
      return { flags: {}, names: [] }
    throw error
  }
}
