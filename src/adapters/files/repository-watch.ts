// Whether a git directory has lost a part of itself, and whether a folder holds it: a copy that is the only one must not be removed with a temp folder.
import { existsSync, readdirSync, type Dirent } from 'node:fs'
import { join } from 'node:path'

/** As it is now; asked later, it is true for a folder in which what is missing by then may lie. */
export function watchRepository(gitDirs: readonly string[]): (folder: string) => boolean {
  const files = [...new Set(gitDirs)].flatMap((dir) =>
    ['HEAD', 'config', 'objects', 'refs', 'reftable', 'packed-refs'].map((name) => join(dir, name)),
  )
  const objects = [...new Set(gitDirs)].map((dir) => join(dir, 'objects'))
  const there = files.filter((path) => existsSync(path))
  const stored = objects.map(partsOf)
  return (folder) => {
    if (there.some((path) => !existsSync(path))) return true
    const now = objects.map(partsOf)
    const gone = new Set(
      stored.flatMap((parts, at) => parts.filter((part) => now[at]?.includes(part) !== true)),
    )
    // Packed anew, as a rule: then nothing of it lies there.
    return gone.size > 0 && isIn(folder, gone)
  }
}

/** Folders of loose objects and packs: `0a`, `pack-….pack`. */
function partsOf(objects: string): string[] {
  return [...namesIn(objects), ...namesIn(join(objects, 'pack'))].filter((name) =>
    /^[0-9a-f]{2}$|\.pack$/.test(name),
  )
}

function isIn(folder: string, parts: ReadonlySet<string>): boolean {
  return entriesOf(folder).some((entry) => {
    const path = join(folder, entry.name)
    if (!entry.isDirectory()) return parts.has(entry.name)
    return (parts.has(entry.name) && namesIn(path).some((name) => isObject.test(name))) || isIn(path, parts)
  })
}

const isObject = /^(?:[0-9a-f]{38}|[0-9a-f]{62})$/

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
