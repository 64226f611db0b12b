// Reads ralph.yaml or ralph.json: data only, nothing in it is ever executed while reading.
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { RalphError } from '../core/error.ts'
import { nearest } from '../core/nearest.ts'
import { optionKeys } from './options.ts'
import type { OptionKey } from './options.ts'
import { parseSetting } from './parse.ts'

export interface SettingsFile {
  /** Where it lies, or would lie. */
  readonly path: string
  /** Hash of the names and bytes of all there is in its folder: what the settings of this level come from. Empty where there is none. */
  readonly sha: string
  /** Checked, under the canonical key. */
  readonly values: ReadonlyMap<OptionKey, unknown>
  /** Why it cannot be used; then it has no values. */
  readonly problem?: RalphError
}

const maxChars = 64 * 1024
export const settingsFileNames = ['ralph.yaml', 'ralph.yml', 'ralph.json']
/** A settings file of more than a megabyte is none. */
const mostBytes = 1_000_000

/** The settings file of a folder; none there is no problem, two are. */
export async function readSettingsFile(folder: string): Promise<SettingsFile> {
  const hashed: (string | Buffer)[] = []
  const found: { path: string; text: string }[] = []
  let problem: RalphError | undefined
  for (const name of settingsFileNames) {
    const path = join(folder, name)
    try {
      const bytes = readIfThere(path)
      if (bytes === undefined) continue
      hashed.push(`${name}\0${bytes.length}\0`, bytes)
      found.push({ path, text: bytes.toString('utf8') })
    } catch (error) {
      if (!(error instanceof RalphError)) throw error
      problem ??= error
      hashed.push(`${name}\0${error.message}\0`)
      found.push({ path, text: '' })
    }
  }
  const [file, second] = found
  if (file === undefined)
    return { path: join(folder, settingsFileNames[0] ?? ''), sha: '', values: new Map<OptionKey, unknown>() }
  const hash = createHash('sha256')
  for (const part of hashed) hash.update(part)
  const read = { path: file.path, sha: hash.digest('hex') }
  const useless = (why: RalphError): SettingsFile => ({ ...read, values: new Map(), problem: why })
  if (problem !== undefined) return useless(problem)
  if (second !== undefined) {
    return useless(
      configError(
        `${file.path} and ${second.path} both exist, and ralph reads only one`,
        'remove one of them',
      ),
    )
  }
  try {
    return { ...read, values: await settings(await document(file), file) }
  } catch (error) {
    if (error instanceof RalphError) return useless(error)
    throw error
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return undefined
    // A pipe in its place would be waited for, for ever.
    if (stats.isFile() && stats.size <= mostBytes) return readFileSync(path)
    throw configError(
      `cannot read ${path} (it is ${stats.isFile() ? 'larger than a megabyte' : 'no file'})`,
      'move it away, or write settings into a file of that name',
    )
  } catch (error) {
    if (error instanceof RalphError) throw error
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new RalphError('config', `cannot read ${path} (${String(code ?? error)})`, {
      hint: 'make it readable, or move it away',
      cause: error,
    })
  }
}

async function document({ path, text }: { path: string; text: string }): Promise<Record<string, unknown>> {
  // Far above any settings; a YAML of megabytes keeps its parser busy for hours.
  if (text.length > maxChars)
    throw configError(
      `${path} is too large for settings (${text.length} characters)`,
      'keep only settings in it',
    )
  let parsed: unknown
  try {
    // JSON is YAML 1.2, but its own parser says better what is wrong with it.
    parsed = path.endsWith('.json')
      ? JSON.parse(text)
      : (await import('./yaml.ts')).parse(text, { logLevel: 'error' })
  } catch (error) {
    const [reason = ''] = String(error instanceof Error ? error.message : error).split('\n')
    throw configError(
      `${path} is not valid ${path.endsWith('.json') ? 'JSON' : 'YAML'}: ${reason.replace(/:$/, '')}`,
      faultyLine(text, error),
    )
  }
  if (parsed === null || parsed === undefined) return {}
  if (typeof parsed !== 'object' || Array.isArray(parsed)) {
    throw configError(`${path} must hold settings, one "name: value" per line`, 'an example: max_retries: 3')
  }
  return { ...parsed }
}

/** The line itself; where the parser noticed a fault only on an empty line after it, the last one that says something. */
function faultyLine(text: string, error: unknown): string {
  const places = error instanceof Error && 'linePos' in error ? error.linePos : undefined
  const at: unknown = Array.isArray(places) ? places[0] : undefined
  if (typeof at !== 'object' || at === null || !('line' in at) || typeof at.line !== 'number')
    return 'fix that line'
  const above = text.split('\n').slice(0, at.line)
  const found = above.findLastIndex((line) => line.trim() !== '')
  return found < 0
    ? 'fix that line'
    : `fix line ${String(found + 1)}: ${above[found]?.trim().slice(0, 80) ?? ''}`
}

async function settings(
  written: Record<string, unknown>,
  { path, text }: { readonly path: string; readonly text: string },
): Promise<ReadonlyMap<OptionKey, unknown>> {
  const values = new Map<OptionKey, unknown>()
  for (const [name, value] of Object.entries(written)) {
    const placed = async (what: 'name' | 'value'): Promise<string> =>
      path + (await import('./yaml.ts')).placeOf(text, name, what)
    // People copy names from the flags: max-retries is max_retries.
    const wanted = name.replaceAll('-', '_')
    const key = optionKeys.find((candidate) => candidate === wanted)
    if (key === undefined) {
      const near = nearest(wanted, optionKeys)
      throw configError(
        `unknown setting ${JSON.stringify(name)} in ${await placed('name')}`,
        near === undefined ? 'see all of them with: ralph loop --help' : `Did you mean ${near}?`,
      )
    }
    if (values.has(key))
      throw configError(`${key} is given twice in ${await placed('name')}`, 'remove one of the two lines')
    try {
      values.set(key, parseSetting(key, value, `${key} in ${path}`))
    } catch {
      // Only now is the place worth looking for.
      parseSetting(key, value, `${key} in ${await placed('value')}`)
    }
  }
  return values
}

function configError(message: string, hint: string): RalphError {
  return new RalphError('config', message, { hint })
}
