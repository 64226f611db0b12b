// What OpenSpec's own files say about a project and a change: context, guidance, and which files hold the tasks.
import { join } from 'node:path'
import * as z from 'zod'
import { once } from '../../core/once.ts'
import { isMissing, readIfThere } from '../files/whole.ts'

export interface ProjectFacts {
  readonly schemaName: string
  /** To be honoured by every agent. */
  readonly context: string
  /** Where `context` stands, for pointing at it. */
  readonly contextPath: string
  /** Advice. */
  readonly guidance: readonly string[]
  /** Id of a store, where the plans of this project live in another repository. */
  readonly store: string
  /** What could not be read, one line each; the built-in rules were used instead. */
  readonly notes: readonly string[]
}

const configSchema = once(() =>
  z.looseObject({
    schema: z.string().optional().catch(undefined),
    context: z.string().optional().catch(undefined),
    store: z.string().optional().catch(undefined),
    operations: z
      .looseObject({ apply: z.looseObject({ guidance: z.array(z.string()).catch([]) }).optional() })
      .optional()
      .catch(undefined),
  }),
)

const schemaSchema = once(() =>
  z.looseObject({
    artifacts: z.array(z.looseObject({ id: z.string(), generates: z.string() })),
    apply: z.looseObject({ tracks: z.string().nullable().optional() }).optional(),
  }),
)

const metadataSchema = once(() => z.looseObject({ schema: z.string() }))

const defaultSchema = 'spec-driven'
const maxBytes = 128 * 1024

export async function readProject(root: string): Promise<ProjectFacts> {
  const notes: string[] = []
  const folder = join(root, 'openspec')
  const name = (await readIfThere(join(folder, 'config.yaml'))) === undefined ? 'config.yml' : 'config.yaml'
  const config = await readYaml(join(folder, name), configSchema, notes)
  const older = config?.context === undefined ? await readIfThere(join(folder, 'project.md')) : undefined
  return {
    schemaName: config?.schema ?? defaultSchema,
    context: config?.context ?? older?.toString('utf8') ?? '',
    contextPath: join(folder, older === undefined ? name : 'project.md'),
    guidance: config?.operations?.apply?.guidance ?? [],
    store: config?.store ?? '',
    notes,
  }
}

/** Pattern, relative to the change folder, of the files that hold the boxes; resolved as `openspec list` does. */
export async function taskPattern(root: string, changeDir: string, env: NodeJS.ProcessEnv): Promise<string> {
  const fallback = 'tasks.md'
  for (const path of await schemaFiles(root, changeDir, env)) {
    if ((await readIfThere(path)) === undefined) continue
    const schema = await readYaml(path, schemaSchema, [])
    const tracks = schema?.apply?.tracks ?? undefined
    const artifact = schema?.artifacts.find((each) =>
      tracks === undefined ? each.id === 'tasks' : each.generates === tracks,
    )
    const pattern = artifact?.generates ?? tracks ?? fallback
    return pattern.startsWith('/') || pattern.split(/[\\/]/).includes('..') ? fallback : pattern
  }
  return fallback
}

/** Where the schema of the change can be, the first that is there counts. */
export async function schemaFiles(
  root: string,
  changeDir: string,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const metadataPath = join(changeDir, '.openspec.yaml')
  const metadata = await readYaml(metadataPath, metadataSchema, [])
  if (metadata === undefined && (await readIfThere(metadataPath)) !== undefined) return []
  const name = (metadata?.schema ?? (await readProject(root)).schemaName).replace(/\.ya?ml$/, '')
  // The only schema that ships with OpenSpec tracks tasks.md; a name that is no folder name resolves to nothing.
  if (name === '' || /[\\/]|^\.\.?$/.test(name)) return []
  const data = env['XDG_DATA_HOME'] ?? join(env['HOME'] ?? '', '.local', 'share')
  return [root, data].map((folder) => join(folder, 'openspec', 'schemas', name, 'schema.yaml'))
}

async function readYaml<T extends z.ZodType>(
  path: string,
  schema: () => T,
  notes: string[],
): Promise<z.infer<T> | undefined> {
  const bytes = await readIfThere(path)
  if (bytes === undefined) return undefined
  // OpenSpec itself takes 50 KB of context; a YAML of megabytes keeps its parser busy for hours.
  if (bytes.length > maxBytes) {
    notes.push(`${path} is too large (${bytes.length} bytes); the built-in rules are used`)
    return undefined
  }
  try {
    const { parse } = await import('./yaml.ts')
    const parsed = schema().safeParse(parse(bytes.toString('utf8'), { logLevel: 'error' }))
    if (parsed.success) return parsed.data
    notes.push(`${path} has an unexpected shape; the built-in rules are used`)
  } catch (error) {
    if (isMissing(error)) return undefined
    notes.push(`${path} is not valid YAML; the built-in rules are used`)
  }
  return undefined
}
