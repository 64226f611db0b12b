// A folder as data: every file by hash, every link by target, every folder by mode; nothing is followed, nothing left out.
import { isUtf8 } from 'node:buffer'
import { lstat, readdir, readFile, readlink } from '../files/now.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import * as z from 'zod'
import { once } from '../../core/once.ts'
import { isTemporary } from './files.ts'

export const treeEntrySchema = once(() =>
  z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('folder'), path: z.string(), mode: z.number() }),
    z.object({ kind: z.literal('file'), path: z.string(), mode: z.number(), hash: z.string() }),
    z.object({ kind: z.literal('link'), path: z.string(), target: z.string() }),
  ]),
)
/** `path` is relative to the tree's base; '' is the base itself. */
export type TreeEntry = z.infer<ReturnType<typeof treeEntrySchema>>

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Parents before children. Sockets and devices are not ours; a nested repository's own data neither. */
export async function* readTree(
  base: string,
  path = '',
): AsyncIterable<{ readonly entry: TreeEntry; readonly bytes?: Buffer }> {
  const here = join(base, path)
  const stats = await lstat(here)
  const mode = stats.mode & 0o7777
  if (stats.isSymbolicLink()) yield { entry: { kind: 'link', path, target: await readlink(here) } }
  else if (stats.isFile()) {
    const bytes = await readFile(here)
    yield { entry: { kind: 'file', path, mode, hash: hashOf(bytes) }, bytes }
  } else if (stats.isDirectory()) {
    yield { entry: { kind: 'folder', path, mode } }
    for (const name of await namesIn(here)) {
      if (name === '.git' || isTemporary(name)) continue
      yield* readTree(base, path === '' ? name : `${path}/${name}`)
    }
  }
}

/** Sorted. One that is not UTF-8 is no part of a plan, for OpenSpec could not open it; git keeps it by its bytes. */
export async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { encoding: 'buffer' })
  return names
    .filter((name) => isUtf8(name))
    .map((name) => name.toString('utf8'))
    .sort()
}
