// Finds the files of a folder that a pattern of an OpenSpec schema names: `tasks.md`, `**/tasks.md`, `{api,web}/*.md`.
import type { Dirent } from 'node:fs'
import { join } from 'node:path'
import { readdir, stat } from '../files/now.ts'
import { isMissing } from '../files/whole.ts'

/** Relative paths, sorted; dot files and dot folders never match, as in OpenSpec. */
export async function findFiles(folder: string, pattern: string): Promise<readonly string[]> {
  if (!/[*?[{]/.test(pattern)) return (await isFile(join(folder, pattern))) ? [pattern] : []
  // As fast-glob asks it, which is what OpenSpec uses.
  const { default: picomatch } = await import('picomatch')
  const isWanted = picomatch(pattern, { posix: true })
  const found: string[] = []
  for await (const path of walk(folder, '', 0)) if (isWanted(path)) found.push(path)
  return found.sort()
}

/** For one path at a time; a name with brackets or stars of its own matches itself. */
export async function pathMatcher(pattern: string): Promise<(path: string) => boolean> {
  const { default: picomatch } = await import('picomatch')
  const isWanted = picomatch(pattern, { posix: true, dot: true })
  return (path) => path === pattern || isWanted(path)
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** Deeper than any real change folder; ends a cycle of links. */
const maxDepth = 12

async function* walk(folder: string, prefix: string, depth: number): AsyncIterable<string> {
  if (depth > maxDepth) return
  for (const entry of await readdir(join(folder, prefix), { withFileTypes: true })) {
    if (entry.name.startsWith('.')) continue
    const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`
    const kind = await kindOf(entry, join(folder, path))
    if (kind === 'folder') yield* walk(folder, path, depth + 1)
    else if (kind === 'file') yield path
  }
}

async function kindOf(entry: Dirent, path: string): Promise<'file' | 'folder' | 'other'> {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  if (!entry.isSymbolicLink()) return 'other'
  try {
    const stats = await stat(path)
    return stats.isDirectory() ? 'folder' : stats.isFile() ? 'file' : 'other'
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (isMissing(error) || code === 'ELOOP') return 'other'
    throw error
  }
}
