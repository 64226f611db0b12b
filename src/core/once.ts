// Made when it is first asked for, and kept: to build the schemas of what a command never reads takes longer than the command.
export function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
