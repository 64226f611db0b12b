// Errors of the disk itself, and of who may use it: nobody's bug, and the user's to mend.
import { RalphError } from './error.ts'

interface Trouble {
  /** As git says it; where there are none, whoever met it may have told it better already. */
  readonly words?: RegExp
  readonly message: string
  readonly mend: string
}

const refused: Trouble = {
  message: 'Access was refused',
  mend: "Give yourself access (chmod u+rwX, or sudo chown if it is another user's)",
}

const troubles: Readonly<Record<string, Trouble>> = {
  ENOSPC: {
    words: /No space left on device|Out of diskspace/,
    message: 'The disk is full',
    mend: 'Free some space',
  },
  EDQUOT: {
    words: /Disk quota exceeded/,
    message: 'Your quota of the disk is used up',
    mend: 'Free some space',
  },
  EROFS: { words: /Read-only file system/, message: 'The disk is read-only', mend: 'Make it writable' },
  EIO: {
    words: /Input\/output error/,
    message: 'The disk cannot be read or written',
    mend: 'Check the disk',
  },
  ENXIO: { message: 'A pipe or a socket is in the place of a file', mend: 'Move it away' },
  EACCES: refused,
  EPERM: refused,
}

/** What to say of an error that the disk is the cause of; undefined for any other. `hint` is handed what is to be done first. */
export function diskError(error: unknown, hint: (mend: string) => string): RalphError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const trouble = 'code' in cause && typeof cause.code === 'string' ? troubles[cause.code] : undefined
    if (trouble === undefined || (trouble.words === undefined && error instanceof RalphError)) continue
    return new RalphError('disk', `${trouble.message} (${cause.message}).`, {
      hint: hint(trouble.mend),
      cause,
    })
  }
  return undefined
}

/** The errno that another program's words stand for. */
export function diskCode(words: string): string | undefined {
  return Object.entries(troubles).find(([, trouble]) => trouble.words?.test(words))?.[0]
}

/** Whether room would help. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
