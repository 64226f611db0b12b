// Whether a cage that stands already is what its words say, by the kernel's own list of what is mounted in it.

interface Mount {
  readonly at: string
  readonly isReadOnly: boolean
  readonly isGone: boolean
  readonly kind: string
}

/**
 * Whoever deletes or replaces a file takes away the mount on it, in every cage: what is missing is not hidden, or not protected, any more. And what came
 * to be mounted outside meanwhile could be written in there. False: nothing may begin in it.
 */
export function isAsMade(words: readonly string[], mountinfo: string): boolean {
  const mounts = mountinfo.split('\n').flatMap((line) => mountOf(line) ?? [])
  const wanted = new Map(wantedBy(words))
  const isThere = ([at, how]: readonly [string, string]): boolean =>
    mounts.some(
      (mount) =>
        mount.at === at &&
        !mount.isGone &&
        mount.isReadOnly === how.startsWith('--ro-bind') &&
        (how !== '--tmpfs' || mount.kind === 'tmpfs'),
    )
  const isMeant = ({ at, isReadOnly }: Mount): boolean => {
    if (isReadOnly || wanted.has(at) || /^\/(?:dev|proc)(?:\/|$)/.test(at)) return true
    const holders = [...wanted].filter(([place]) => at.startsWith(place === '/' ? '/' : `${place}/`))
    return holders.toSorted(([one], [other]) => other.length - one.length)[0]?.[1] === '--bind'
  }
  return [...wanted].every(isThere) && mounts.every(isMeant)
}

/** The last for a place is the one that is seen. */
function wantedBy(words: readonly string[]): (readonly [at: string, how: string])[] {
  return words.flatMap((how, n) => {
    const at = words[n + (how === '--tmpfs' ? 1 : 2)]
    return /^--(?:tmpfs|bind|ro-bind|ro-bind-try)$/.test(how) && at !== undefined ? [[at, how] as const] : []
  })
}

/** proc(5): id, parent, device, what of it, where, how, more words up to a dash, then the kind. */
function mountOf(line: string): Mount | undefined {
  const [, , , root, at, how, ...rest] = line.split(' ')
  if (root === undefined || at === undefined || how === undefined) return undefined
  return {
    at: at.replaceAll(/\\(\d{3})/g, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 8))),
    isReadOnly: how.split(',').includes('ro'),
    isGone: root.endsWith('//deleted'),
    kind: rest[rest.indexOf('-') + 1] ?? '',
  }
}
