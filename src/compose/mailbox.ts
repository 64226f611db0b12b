// Between those who tell and one who reads at his own pace: in order, and those who tell can wait for room.

export interface Mailbox<T> {
  put(item: T): void
  /** Until the promise resolves no more should be put; undefined: there is room. */
  room(): Promise<void> | undefined
  /** What was put before is still read; then the reader ends, or gets the error. */
  close(error?: { readonly error: unknown }): void
  read(): AsyncGenerator<T, void>
}

/** What one waits for. */
interface Bell {
  readonly rung: Promise<void>
  readonly ring: () => void
}

function bell(): Bell {
  let ring = (): void => undefined
  const rung = new Promise<void>((resolve) => {
    ring = resolve
  })
  return { rung, ring }
}

const most = 1000

export function mailbox<T>(): Mailbox<T> {
  let items: T[] = []
  let closed: { readonly error?: unknown } | undefined
  let came = bell()
  let taken: Bell | undefined
  return {
    put(item) {
      items.push(item)
      came.ring()
    },
    room() {
      if (items.length < most || closed !== undefined) return undefined
      taken ??= bell()
      return taken.rung
    },
    close(error) {
      closed ??= error ?? {}
      came.ring()
      taken?.ring()
    },
    async *read() {
      for (;;) {
        const batch = items
        items = []
        came = bell()
        taken?.ring()
        taken = undefined
        yield* batch
        if (items.length > 0) continue
        if (closed !== undefined) break
        await came.rung
      }
      if (closed !== undefined && 'error' in closed) throw closed.error
    },
  }
}
