// The flags that a run was started with: a resume goes on with them, unless it names others.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import type { LoadedConfig } from '../config/load.ts'
import type { Config, OptionKey } from '../config/options.ts'
import { RalphError } from '../core/error.ts'
import type { KnownRun } from './site.ts'

/** Of one command only; or kept elsewhere (budget, work tree); or secret (the values of --agent-env). */
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
  const kept = await readFlags(run)
  // An agent and its command belong together: naming one anew leaves the other behind.
  if (named.has('agent_command') && !named.has('agent')) delete kept.agent
  if (named.has('agent') && !named.has('agent_command')) delete kept.agent_command
  for (const key of named) delete kept[key]
  const checkpoint = run.state.settings?.checkpoint
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
  return { ...loaded.config, ...(kept as Partial<Config>), ...(checkpoint !== undefined && { checkpoint }) }
}

/** Call when the run has begun: what was said on the command line, and on earlier ones, is what the next resume takes. */
export async function keepFlags(run: KnownRun, loaded: LoadedConfig, isResumed: boolean): Promise<void> {
  const said = loaded.entries.filter((entry) => entry.origin === 'flag' && !passing.has(entry.key))
  const flags = Object.fromEntries(said.map((entry) => [entry.key, entry.value]))
  const earlier = isResumed ? await readFlags(run) : {}
  if ('agent_command' in flags && !('agent' in flags)) delete earlier.agent
  if ('agent' in flags && !('agent_command' in flags)) delete earlier.agent_command
  await writeFileAtomic(fileOf(run), `${JSON.stringify({ ...earlier, ...flags }, null, 2)}\n`, {
    mode: 0o600,
  })
}

async function readFlags(run: KnownRun): Promise<Flags> {
  try {
    const flags = JSON.parse(await readFile(fileOf(run), 'utf8')) as Flags
    // The named stories are done: what is left is what a resume is for.
    if (run.state.status === 'done') delete flags.story
    return flags
  } catch (error) {
    // A run of an earlier ralph, or one that was killed before it wrote them.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return {}
    throw error
  }
}
