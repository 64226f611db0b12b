// Reads ralph.yaml or ralph.json: data only, nothing in it is ever executed while reading.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { RalphError } from '../core/error.ts'
import { nearest } from '../core/nearest.ts'
import { optionKeys } from './options.ts'
import type { OptionKey } from './options.ts'

export interface SettingsFile {
  readonly path: string
  /** As written, under the canonical key. */
  readonly values: ReadonlyMap<OptionKey, unknown>
}

const maxChars = 64 * 1024
const fileNames = ['ralph.yaml', 'ralph.yml', 'ralph.json']

/** The settings file of a folder; none there is no error, two are. */
export async function readSettingsFile(folder: string): Promise<SettingsFile | undefined> {
  const found: { path: string; text: string }[] = []
  for (const name of fileNames) {
    const path = join(folder, name)
    const text = await readIfThere(path)
    if (text !== undefined) found.push({ path, text })
  }
  const [file, second] = found
  if (file === undefined) return undefined
  if (second !== undefined) {
    throw configError(
      `both ${file.path} and ${second.path} are there, and only one can count`,
      'remove one of them',
    )
  }
  return { path: file.path, values: settings(document(file), file.path) }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new RalphError('config', `cannot read ${path} (${String(code ?? error)})`, {
      hint: 'make it readable, or move it away',
      exitCode: 2,
      cause: error,
    })
  }
}

function document({ path, text }: { path: string; text: string }): Record<string, unknown> {
  // Far above any settings; a YAML of megabytes keeps its parser busy for hours.
  if (text.length > maxChars)
    throw configError(
      `${path} is too large for settings (${text.length} characters)`,
      'keep only settings in it',
    )
  let parsed: unknown
  try {
    // JSON is YAML 1.2, but its own parser says better what is wrong with it.
    parsed = path.endsWith('.json') ? JSON.parse(text) : parse(text, { logLevel: 'error' })
  } catch (error) {
    const [reason = ''] = String(error instanceof Error ? error.message : error).split('\n')
    throw configError(
      `${path} is no valid ${path.endsWith('.json') ? 'JSON' : 'YAML'}: ${reason}`,
      'correct that line',
    )
  }
  if (parsed === null || parsed === undefined) return {}
  if (typeof parsed !== 'object' || Array.isArray(parsed)) {
    throw configError(`${path} must hold settings, one "name: value" per line`, 'an example: max_retries: 3')
  }
  return { ...parsed }
}

function settings(written: Record<string, unknown>, path: string): ReadonlyMap<OptionKey, unknown> {
  const values = new Map<OptionKey, unknown>()
  for (const [name, value] of Object.entries(written)) {
    // People copy names from the flags: max-retries is max_retries.
    const wanted = name.replaceAll('-', '_')
    const key = optionKeys.find((candidate) => candidate === wanted)
    if (key === undefined) {
      const near = nearest(wanted, optionKeys)
      throw configError(
        `unknown setting ${JSON.stringify(name)} in ${path}`,
        near === undefined ? 'see all of them with: ralph config' : `did you mean ${near}?`,
      )
    }
    if (values.has(key)) throw configError(`${key} stands twice in ${path}`, 'remove one of the two lines')
    values.set(key, value)
  }
  return values
}

function configError(message: string, hint: string): RalphError {
  return new RalphError('config', message, { hint, exitCode: 2 })
}
