// Small file steps of the OpenSpec room.
import { basename, dirname, join } from 'node:path'
import { replaceSeen } from '../files/replace.ts'
import { writeDurably } from '../files/whole.ts'

const temporary = /^\..+\.ralph-tmp$/

/** Left by a ralph that was killed in mid-write; the name is fixed per file, so there is never more than one. */
export function isTemporary(name: string): boolean {
  return temporary.test(name)
}

/** Replaces the file in one step; after a crash the old bytes are there or the new ones. `beside`: what must be done by then. */
export async function writeWhole(
  path: string,
  bytes: Uint8Array,
  mode: number,
  beside?: () => Promise<void>,
): Promise<void> {
  await writeDurably(path, bytes, {
    rights: { mode },
    ...(beside && { beside }),
    by: draftOf(path),
  })
}

/** A file of the user's, who may save it meanwhile; false where they did: theirs is there, see replace.ts. */
export async function replaceWhole(
  guardDir: string,
  path: string,
  seen: Buffer | undefined,
  bytes: Uint8Array,
  mode: number,
): Promise<boolean> {
  return await replaceSeen(path, seen, bytes, {
    rights: { mode },
    by: draftOf(path),
    aside: asideIn(guardDir),
  })
}

/** What stood where ralph wrote. */
export function asideIn(guardDir: string): string {
  return join(guardDir, 'aside')
}

function draftOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.ralph-tmp`)
}
