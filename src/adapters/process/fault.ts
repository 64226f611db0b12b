// Reads what Node's own errors carry, without trusting that a caught value is one.

/** `ENOENT`, `EPIPE` …, or empty. */
export function faultCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** What to do about a program that could not be started: a machine at its limits needs no installation. */
export function startHint(error: unknown, otherwise: string): string {
  return ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes(faultCode(error))
    ? 'This machine is out of processes, open files or memory (ulimit -a shows your limits). Nothing was lost: free some, then type the command again.'
    : otherwise
}

export function faultMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
