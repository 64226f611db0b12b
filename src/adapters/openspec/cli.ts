// The installed `openspec` program: found once, asked at the edges of a loop, never needed in its middle.
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { isWithin } from '../../core/cage.ts'
import { once } from '../../core/once.ts'
import { readJson } from '../../core/json.ts'
import { exec } from '../process/exec.ts'
import { isProgram, onPath, ownEnv } from '../process/on-path.ts'
import { realpath } from '../files/now.ts'
import { readIfThere } from '../files/whole.ts'

export interface OpenSpecCli {
  readonly path: string
  readonly version: string
  /** Runs it in `cwd` with `--json` among `args`; never throws for what it does. */
  run(args: readonly string[], cwd: string, stop?: AbortSignal): Promise<CliAnswer>
}

type CliAnswer =
  | { readonly ok: true; readonly json: unknown }
  | { readonly ok: false; readonly json: unknown; readonly message: string; readonly fix: string }

export interface CliSearch {
  /** Any folder of the project; `node_modules/.bin` is looked for from here upward. */
  readonly from: string
  readonly env: NodeJS.ProcessEnv
  readonly timeoutMs?: number
  /** A work tree that an agent in a cage may write in: what lies there is never run outside of it. */
  readonly notIn?: string | undefined
}

/** `note` is one line for the user when the program is not there or too old; the built-in rules serve then. */
export async function findCli(
  search: CliSearch,
): Promise<{ readonly cli?: OpenSpecCli; readonly note: string; readonly isAbsent?: true }> {
  const { path, passedOver } = findProgram(search)
  const builtIn = 'the built-in rules are used; validate and archive are not available'
  if (path === undefined && passedOver !== undefined)
    return {
      note: `${passedOver} is not run, for a sandboxed agent may have changed it: ${builtIn}. Install it elsewhere: npm install --global @fission-ai/openspec`,
    }
  if (path === undefined) return { note: `openspec is not installed: ${builtIn}`, isAbsent: true }
  const timeoutMs = search.timeoutMs ?? 30_000
  const env = { ...search.env, ...quietEnv }
  const version = (await packagedVersion(path)) ?? (await toldVersion(path, search.from, env, timeoutMs))
  if (version === undefined) return { note: `${path} does not tell its version: ${builtIn}` }
  // Before 1.5 the answers have other shapes.
  if (!isAtLeast(version, [1, 5, 0])) return { note: `openspec ${version} is older than 1.5: ${builtIn}` }
  const run: OpenSpecCli['run'] = async (args, cwd, signal) => {
    const limits = { cwd, env, timeoutMs, ...(signal !== undefined && { signal }) }
    const { stdout, stderr, exitCode, timedOut, spawnError } = await exec(path, args, limits)
    const json = readJson(stdout.toString('utf8'))
    if (exitCode === 0 && json !== undefined) return { ok: true, json }
    const said = statusSchema().safeParse(json).data?.status[0]
    const died = timedOut
      ? `no answer within ${timeoutMs / 1000} s`
      : (spawnError?.message ?? lastLine(stderr))
    return { ok: false, json, message: said?.message ?? died, fix: said?.fix ?? '' }
  }
  return { cli: { path, version, run }, note: '' }
}

/** Without telemetry, update check, banner, colour: nothing is sent and nothing is written to the home folder. */
const quietEnv = {
  OPENSPEC_TELEMETRY: '0',
  DO_NOT_TRACK: '1',
  OPENSPEC_NO_UPDATE_CHECK: '1',
  OPENSPEC_NO_COMPLETIONS: '1',
  OPENSPEC_NO_ANIMATION: '1',
  NO_COLOR: '1',
}

const statusSchema = once(() =>
  z.looseObject({
    status: z.array(z.looseObject({ message: z.string(), fix: z.string().optional() })).min(1),
  }),
)

export function isAtLeast(version: string, wanted: readonly [number, number, number]): boolean {
  const parts = version.split('.').map(Number)
  for (const [index, least] of wanted.entries()) {
    const part = parts[index] ?? 0
    if (part !== least) return part > least
  }
  return true
}

function findProgram({ from, env, notIn }: CliSearch): { path?: string | undefined; passedOver?: string } {
  const local = localPrograms(from)
  const path = local.find((program) => notIn === undefined || !isWithin(program, notIn))
  const [passedOver] = path === undefined ? local : []
  return {
    path: path ?? onPath('openspec', notIn === undefined ? env : ownEnv(env, notIn)),
    ...(passedOver !== undefined && { passedOver }),
  }
}

/** The nearest first. */
function localPrograms(from: string): string[] {
  const local = join(from, 'node_modules', '.bin', 'openspec')
  const above = dirname(from) === from ? [] : localPrograms(dirname(from))
  return isProgram(local) ? [local, ...above] : above
}

/** npm links the program to its package, which says the version without half a second of start-up. */
async function packagedVersion(path: string): Promise<string | undefined> {
  const home = dirname(dirname(await realpath(path)))
  const text = (await readIfThere(join(home, 'package.json')))?.toString('utf8') ?? ''
  const { name, version } = (readJson(text) ?? {}) as Partial<Record<string, unknown>>
  const isVersion = typeof version === 'string' && /^\d+\.\d+\.\d+/.test(version)
  return name === '@fission-ai/openspec' && isVersion ? version : undefined
}

async function toldVersion(
  path: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<string | undefined> {
  const asked = await exec(path, ['--version'], { cwd, env, timeoutMs })
  return /\d+\.\d+\.\d+/.exec(asked.stdout.toString('utf8'))?.[0]
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
