// What is told within one tick, in one write: agents talk in floods.

export interface Gathered {
  add(text: string): void
  /** Before anything else is written, so that the order stays. */
  readonly flush: () => void
}

/** A microtask comes before whatever else the process does next: nobody sees that it was not at once. */
export function gathered(write: (text: string) => void): Gathered {
  let waiting = ''
  const soon = Promise.resolve()
  const flush = (): void => {
    if (waiting === '') return
    const text = waiting
    waiting = ''
    write(text)
  }
  return {
    add(text) {
      if (waiting === '') void soon.then(flush)
      waiting += text
    },
    flush,
  }
}
