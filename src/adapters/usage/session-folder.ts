// Lists the session files below a folder with their sizes; what cannot be read is not there.
import { readdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, sep } from 'node:path'
import type { SessionFile } from './usage-record.ts'

/** Synchronous on purpose: 2,000 stats through the thread pool take five times as long. */
export function listJsonl(folder: string): readonly SessionFile[] {
  return names(folder, true)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => statFile(join(folder, name)) ?? [])
}

export function listNames(folder: string): readonly string[] {
  return names(folder, false)
}

export function statFile(path: string): SessionFile | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() ? { path, bytes: stats.size, mtimeMs: stats.mtimeMs } : undefined
  } catch (error) {
    return undefinedIfUnreadable(error)
  }
}

/** Agents record the folder with symlinks resolved; older ones did not. */
export function bothPaths(folders: readonly string[]): readonly string[] {
  return [...new Set(folders.flatMap((folder) => [folder, realPath(folder)]))]
}

export function isInside(folder: string, roots: readonly string[]): boolean {
  return roots.some((root) => folder === root || folder.startsWith(root + sep))
}

export function homeOf(env: NodeJS.ProcessEnv): string {
  return env['HOME'] ?? homedir()
}

function names(folder: string, recursive: boolean): string[] {
  try {
    return readdirSync(folder, { recursive, encoding: 'utf8' })
  } catch (error) {
    return undefinedIfUnreadable(error) ?? []
  }
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder)
  } catch (error) {
    return undefinedIfUnreadable(error) ?? folder
  }
}

/** Usage is never worth a crash: a folder that is missing, foreign or vanishing counts as empty. */
function undefinedIfUnreadable(error: unknown): undefined {
  if (error instanceof Error && 'code' in error) return undefined
  throw error
}
