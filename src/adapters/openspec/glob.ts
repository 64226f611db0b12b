// Finds the files of a folder that a pattern of an OpenSpec schema names: `tasks.md`, `**/tasks.md`, `{api,web}/*.md`.
import type { Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from './files.ts'

/** Relative paths, sorted; dot files and dot folders never match, as in OpenSpec. */
export async function findFiles(folder: string, pattern: string): Promise<readonly string[]> {
  if (!/[*?[{]/.test(pattern)) return (await isFile(join(folder, pattern))) ? [pattern] : []
  const wanted = new RegExp(`^(?:${globSource(pattern)})$`, 'u')
  const found: string[] = []
  for await (const path of walk(folder, '', 0)) if (wanted.test(path)) found.push(path)
  return found.sort()
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

function globSource(pattern: string): string {
  let source = ''
  let braces = 0
  for (let at = 0; at < pattern.length; at += 1) {
    const rest = pattern.slice(at)
    const character = pattern.charAt(at)
    const set = /^\[([!^]?)([^\]/]+)\]/.exec(rest)
    if (rest.startsWith('**/')) {
      source += '(?:[^/]+/)*'
      at += 2
    } else if (rest.startsWith('**')) {
      source += '.*'
      at += 1
    } else if (character === '*') source += '[^/]*'
    else if (character === '?') source += '[^/]'
    else if (set !== null) {
      source += `[${set[1] === '' ? '' : '^'}${(set[2] ?? '').replaceAll(/[\\[\]^&]/g, String.raw`\$&`)}]`
      at += set[0].length - 1
    } else if (character === '{' && rest.includes('}')) {
      source += '(?:'
      braces += 1
    } else if (character === '}' && braces > 0) {
      source += ')'
      braces -= 1
    } else if (character === ',' && braces > 0) source += '|'
    else source += character.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
  }
  return source + ')'.repeat(braces)
}
