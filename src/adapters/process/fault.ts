// Reads what Node's own errors carry, without trusting that a caught value is one.

/** `ENOENT`, `EPIPE` …, or empty. */
export function faultCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

export function faultMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
