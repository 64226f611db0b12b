// Which contents of the config files the user has agreed to: what changed while an agent ran is used by no later start until then.
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import * as z from 'zod'
import { once } from '../core/once.ts'
import { readRecord, writeDurably } from '../adapters/files/whole.ts'
import type { SettingsFile } from '../config/files.ts'
import type { LoadedConfig } from '../config/load.ts'
import { RalphError } from '../core/error.ts'
import { optionKeys, type OptionKey } from '../config/options.ts'

export type Level = 'project' | 'user'

/** A settings file as it was; of `agent_env` only hashes, for its values may be secret. */
export const keptFileSchema = once(() =>
  z.object({
    path: z.string(),
    sha: z.string(),
    salt: z.string(),
    values: z.record(z.string(), z.unknown()),
  }),
)
export type KeptFile = z.infer<ReturnType<typeof keptFileSchema>>

const changeSchema = once(() => z.object({ change: z.string(), n: z.number() }))
/** The iteration during which a file came to be as it is. */
export type FileChange = z.infer<ReturnType<typeof changeSchema>>

export function keptFile({ path, sha, values }: SettingsFile, salt: string = randomUUID()): KeptFile {
  return { path, sha, salt, values: keptValues(Object.fromEntries(values), salt) }
}

/** What differs now, key by key; what a run uses already, by whatever way it came to that, is no difference to it. */
export function changesSince(
  before: KeptFile,
  now: SettingsFile,
  inUse: Readonly<Record<string, { readonly value?: unknown }>> = {},
): readonly string[] {
  if (now.problem !== undefined) return before.sha === now.sha ? [] : [now.problem.message]
  return settingChanges(before.values, keptFile(now, before.salt).values, inUse)
}

function keptValues(values: KeptValues, salt: string): KeptValues {
  const { agent_env: env } = values
  if (typeof env !== 'object' || env === null) return values
  return { ...values, agent_env: hiddenEnv(env as Readonly<Record<string, string>>, salt) }
}

/** Says whether a value is the same as before, and nothing else. */
export function hiddenEnv(env: Readonly<Record<string, string>>, salt: string): Record<string, string> {
  const hidden = (name: string, value: string): string =>
    createHash('sha256').update(`${salt}\0${name}\0${value}`).digest('hex')
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, hidden(name, value)]))
}

/** Durable: the file was changed to this while the iteration ran, and nobody has agreed. */
export async function distrust(common: string, level: Level, sha: string, by: FileChange): Promise<void> {
  await write(recordOf(common, level, sha), by)
}

/** Undefined where it is the user's own. */
export async function changedBy(common: string, level: Level, sha: string): Promise<FileChange | undefined> {
  return await readRecord(recordOf(common, level, sha), { parse: (value) => changeSchema().parse(value) })
}

/** The user starts with these, or has said --accept-config: from now on they are the user's. */
export async function agree(common: string, files: LoadedConfig['files']): Promise<void> {
  for (const [level, file] of levels(files)) {
    await rm(recordOf(common, level, file.sha), { force: true })
    const last = await lastAgreed(common, level)
    if (last?.sha !== file.sha) await write(agreedOf(common, level), keptFile(file))
  }
}

/** What the user started with last. */
async function lastAgreed(common: string, level: Level): Promise<KeptFile | undefined> {
  return await readRecord(agreedOf(common, level), { parse: (value) => keptFileSchema().parse(value) })
}

/** Before anything is touched. */
export async function refuseUnagreed(common: string, files: LoadedConfig['files']): Promise<void> {
  const [first] = await unagreed(common, files)
  if (first === undefined) return
  throw new RalphError('config', `${first}.`, {
    hint: `Nothing was touched. If you want this, type the same command again with --accept-config. If not, restore your version (git diff shows it) or edit the file: your own version needs no flag.`,
  })
}

/** One clause for each file that no start would use. */
export async function unagreed(common: string, files: LoadedConfig['files']): Promise<readonly string[]> {
  const found: string[] = []
  for (const [level, file] of levels(files)) {
    const by = await changedBy(common, level, file.sha)
    if (by === undefined) continue
    const last = await lastAgreed(common, level)
    const changes = last === undefined ? [] : changesSince(last, file)
    const what = changes.length === 0 ? '' : ` (${changes.join('; ')})`
    found.push(
      `${nameOf(level, file)} was ${file.sha === '' ? 'removed' : 'changed'} while #${by.n} of ${by.change} ran${what}, and you have not accepted that`,
    )
  }
  return found
}

/** The project's own by its bare name. */
export function nameOf(level: Level, { path }: SettingsFile): string {
  return level === 'project' ? basename(path) : path
}

export function levels(files: LoadedConfig['files']): readonly (readonly [Level, SettingsFile])[] {
  return [...(files.project === undefined ? [] : [['project', files.project] as const]), ['user', files.user]]
}

function recordOf(common: string, level: Level, sha: string): string {
  return join(common, 'ralph', 'trust', `${level}-${sha === '' ? 'none' : sha}.json`)
}

function agreedOf(common: string, level: Level): string {
  return join(common, 'ralph', 'trust', `${level}-agreed.json`)
}

async function write(file: string, value: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeDurably(file, `${JSON.stringify(value, null, 2)}\n`, { rights: { mode: 0o600 } })
}

/** As they are kept: of `agent_env` never the values. */
type KeptValues = Readonly<Partial<Record<OptionKey, unknown>>>

/** `verify: ["npm test"] -> not set`, one for each key that differs; empty when none does. */
function settingChanges(
  before: KeptValues,
  now: KeptValues,
  inUse: Parameters<typeof changesSince>[2] = {},
): readonly string[] {
  const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
  return (
    optionKeys
      .filter((key) => !isSame(before[key], now[key]))
      // What the file no longer says is a difference, whatever the run uses: a gate that is gone has to be told.
      .filter((key) => now[key] === undefined || !isSame(inUse[key]?.value, now[key]))
      .map((key) => `${key}: ${shownValue(key, before[key])} -> ${shownValue(key, now[key])}`)
  )
}

function shownValue(key: OptionKey, value: unknown): string {
  if (value === undefined) return 'not set'
  // Of `agent_env` the names only.
  if (key === 'agent_env' && typeof value === 'object' && value !== null) return Object.keys(value).join(', ')
  const text = Array.isArray(value) && value.length === 1 ? JSON.stringify(value[0]) : JSON.stringify(value)
  return text.length > 160 ? `${text.slice(0, 159)}…` : text
}
