// Replaces a file that somebody may be saving in this very moment: what they save is never written over unseen.
import { randomUUID } from 'node:crypto'
import { linkSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { drop, mkdir, readNow } from './now.ts'
import { ifThereNow, writeDurably, type WriteOptions } from './whole.ts'

interface ReplaceOptions extends Pick<WriteOptions, 'rights' | 'by'> {
  /** A folder of ralph's own. On another device than the file, the look after the write is left out. */
  readonly aside: string
  /** At the file when the new bytes are on the disk; at the old one after that. */
  readonly look?: (path: string) => Buffer | undefined
}

/**
 * False where the file holds other bytes than were `seen` (undefined: there was none): those stay, and the caller begins anew with them.
 * An editor that has the old file open may write into it while the new one takes its place: then that very file is back. Where there is
 * a newer one by then, it lies in `aside`.
 */
export async function replaceSeen(
  path: string,
  seen: Buffer | undefined,
  bytes: Uint8Array,
  { aside, look = lookAt, ...how }: ReplaceOptions,
): Promise<boolean> {
  await mkdir(aside, { recursive: true })
  const old = join(aside, `${randomUUID()}-${basename(path)}`)
  let isIn = false
  let isHeld = false
  const put = (draft: Buffer): void => {
    if (!isSame(look(path), seen)) return
    const made = seen === undefined ? linkNow(draft, path) : linkNow(path, old)
    if (made === 'no') return
    // The next call after the link: what comes to this name in between is the one thing that no look could find.
    if (seen !== undefined || made === 'never') renameSync(draft, path)
    isHeld = seen !== undefined && made === 'yes'
    isIn = true
  }
  await writeDurably(path, bytes, { ...how, put })
  if (!isHeld) return isIn
  if (isSame(look(old), seen)) {
    await drop(old)
    return true
  }
  if (isSame(look(path), bytes)) renameSync(old, path)
  return false
}

function lookAt(path: string): Buffer | undefined {
  return ifThereNow(() => readNow(path))
}

function isSame(one: Buffer | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined ? one === other : one.equals(other)
}

/** `never`: this disk knows no second names, or not across these folders. */
function linkNow(from: string | Buffer, to: string): 'yes' | 'no' | 'never' {
  try {
    linkSync(from, to)
    return 'yes'
  } catch (error) {
    return ['EEXIST', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '') ? 'no' : 'never'
  }
}
