// Tells a folder from another one that stands in its place.
import { fstatSync, statSync, type BigIntStats } from 'node:fs'

/** What is known of this folder; answers whether the one that stands there now, or that is open, is another. */
export function folderWatch(folder: string): (open?: number) => boolean {
  const known = statsOf(folder)
  return (open) => {
    const now = open === undefined ? statsOf(folder) : fstatSync(open, { bigint: true })
    if (known === undefined || now === undefined) return false
    if (known.dev !== now.dev || known.ino !== now.ino) return true
    // The number of one that is gone is given again.
    const [one, other] = [known, now].map(birthOf)
    return one !== undefined && other !== undefined && one !== other
  }
}

/** Undefined where the system has none, and gives another time instead. */
function birthOf({ birthtimeNs, ctimeNs }: BigIntStats): bigint | undefined {
  return birthtimeNs === ctimeNs ? undefined : birthtimeNs
}

/** Undefined where there is none, or where it cannot be seen. */
function statsOf(folder: string): BigIntStats | undefined {
  try {
    return statSync(folder, { bigint: true })
  } catch {
    return undefined
  }
}
