// A little room on the disk, taken while there is some: given back when the disk is full, so that a loop's last words can be written.
import { randomBytes } from 'node:crypto'
import { constants, rmSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isFull } from '../../core/disk.ts'
import { ifThere } from './whole.ts'

/** Not a wait for ever where a pipe is in its place. */
const writing = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK

/** The last lines of a journal and a state file of some fifty iterations. */
const reserveBytes = 64 * 1024

export interface Reserve {
  /** Throws where there is no room: a loop that cannot even take this had better not begin. */
  fill(): Promise<void>
  onSpent(listener: (error: unknown) => void): void
  /** Gives the room back for an error that room helps against; says whether there is more of it now. */
  readonly spend: (error: unknown) => boolean
  close(): Promise<void>
}

export function diskReserve(path: string): Reserve {
  let isThere = false
  let tell: (error: unknown) => void = () => undefined
  return {
    async fill() {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      try {
        // Random: zeros would take no room on a disk that compresses.
        await writeFile(path, randomBytes(reserveBytes), { flag: writing, mode: 0o600, flush: true })
      } catch (error) {
        await rm(path, { force: true })
        throw error
      }
      isThere = true
    },
    onSpent(listener) {
      tell = listener
    },
    spend(error) {
      if (!isThere || !isFull(error)) return false
      isThere = false
      rmSync(path, { force: true })
      tell(error)
      return true
    },
    close: async () => {
      await ifThere(rm(path, { force: true }))
    },
  }
}
