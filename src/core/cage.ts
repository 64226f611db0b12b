// The cage around an agent or a gate, as a pure function: which places there are, what becomes of each, and the words that bubblewrap or macOS want for it.

export type CageMode = 'workspace' | 'strict'

/** Absolute paths, links resolved, all of them there; a deeper one wins over what it lies in. */
export interface CagePlaces {
  /** Cannot be seen. */
  readonly hiddenFolders: readonly string[]
  readonly hiddenFiles: readonly string[]
  /** To be seen, though they lie in something that is hidden. */
  readonly shown: readonly string[]
  /** Those among what is shown that are links: they lead where they did. */
  readonly links: readonly { readonly at: string; readonly to: string }[]
  readonly writable: readonly string[]
  /** Though they lie in something that can be written. */
  readonly readOnly: readonly string[]
  /** A file that is seen in place of another; what is written to it is thrown away with the cage's own folder. */
  readonly instead: readonly { readonly at: string; readonly from: string; readonly isWritable: boolean }[]
  /** The cage's own folder: its TMPDIR, and what it sees as /tmp. */
  readonly temp: string
  /** An empty file, which is seen in place of those that are hidden. */
  readonly nothing: string
  /** Of those that every program may write to: seen as the cage's own folder, where they are there. */
  readonly commonTemps: readonly string[]
}

/** What TMPDIR is in bubblewrap. */
export function tempSeen({ commonTemps, temp }: Pick<CagePlaces, 'commonTemps' | 'temp'>): string {
  return commonTemps[0] ?? temp
}

interface Mount {
  readonly at: string
  readonly words: readonly string[]
  /** What it hides cannot be seen where it is not, either. */
  readonly hides?: 'folder' | 'file'
}

/** What stands before the command. */
export function bwrapWords(
  mode: CageMode,
  places: CagePlaces,
  cwd: string,
  memoryBytes?: number,
): readonly string[] {
  const mounts = mountsOf(places, memoryBytes === undefined ? [] : ['--size', '65536'])
  return [
    // Outside no process of it is left when its first one ends, and it knows of none.
    '--unshare-pid',
    '--unshare-ipc',
    '--die-with-parent',
    // Root keeps its rights in bubblewrap unless they are named; others have none.
    '--cap-drop',
    'ALL',
    ...(mode === 'strict' ? ['--unshare-net'] : []),
    ...'--ro-bind / / --dev /dev --proc /proc'.split(' '),
    ...(memoryBytes === undefined
      ? []
      : ['--perms', '1777', '--size', String(memoryBytes), '--tmpfs', '/dev/shm']),
    ...mounts.flatMap(({ words }) => words),
    '--chdir',
    cwd,
    '--',
  ]
}

/**
 * Parents before what they hold; of two for one place the later kind wins. With each bind bubblewrap reads the list of all mounts there are: what
 * lies in something that is hidden is left out, and what hides a whole folder comes last.
 */
function mountsOf(places: CagePlaces, size: readonly string[]): readonly Mount[] {
  const bind = (how: string, from: string, at: string): Mount => ({ at, words: [how, from, at] })
  // Sealed by its rights: to mount it again as read-only costs a millisecond each.
  const empty = (at: string): Mount => ({
    at,
    words: ['--perms', '0555', ...size, '--tmpfs', at],
    hides: 'folder',
  })
  const all: readonly Mount[] = [
    ...places.commonTemps.map((at) => bind('--bind', places.temp, at)),
    ...places.hiddenFolders.map(empty),
    ...places.hiddenFiles.map((at): Mount => ({ ...bind('--ro-bind', places.nothing, at), hides: 'file' })),
    ...places.links.map(({ at, to }): Mount => ({ at, words: ['--symlink', to, at] })),
    // The user may take it away at this moment.
    ...places.shown.map((at) => bind('--ro-bind-try', at, at)),
    ...places.writable.map((at) => bind('--bind', at, at)),
    // Each bind costs: it is not seen by its own name as well.
    ...(tempSeen(places) === places.temp ? [bind('--bind', places.temp, places.temp)] : []),
    ...places.instead.map(({ at, from, isWritable }) => bind(isWritable ? '--bind' : '--ro-bind', from, at)),
    ...places.readOnly.map((at) => bind('--ro-bind', at, at)),
  ]
  const byPlace = new Map(all.map((mount) => [mount.at, mount]))
  const mounts: Mount[] = []
  const above: Mount[] = []
  const holders = new Set<Mount>()
  for (const mount of inOrder([...byPlace.values()])) {
    while (above.length > 0 && !isWithin(mount.at, above.at(-1)?.at ?? '')) above.pop()
    const holder = above.at(-1)
    if (mount.hides !== undefined && holder?.hides === 'folder') continue
    // To be seen in what is seen already.
    if (mount.words[0] === '--ro-bind-try' && holder?.words[0] === '--ro-bind-try') continue
    if (holder !== undefined) holders.add(holder)
    mounts.push(mount)
    above.push(mount)
  }
  const isLast = (mount: Mount): boolean => mount.hides === 'folder' && !holders.has(mount)
  return [...mounts.filter((mount) => !isLast(mount)), ...mounts.filter(isLast)]
}

/** A folder comes right before what it holds: `a/b` before `a.b`. */
function inOrder(mounts: readonly Mount[]): readonly Mount[] {
  return mounts
    .map((mount) => ({ mount, by: mount.at.replaceAll('/', '\0') }))
    .sort((one, other) => (one.by < other.by ? -1 : 1))
    .map(({ mount }) => mount)
}

/** The same as a profile of `sandbox-exec`: of two rules that meet, the later counts. */
export function seatbeltProfile(mode: CageMode, places: CagePlaces, proxyPort?: number): string {
  const rules = (verb: 'allow' | 'deny', what: string, paths: readonly string[]): string[] =>
    paths.map((path) => `(${verb} ${what} (subpath ${quoted(path)}))`)
  /** In order of depth: a deeper place wins. */
  const ranked: readonly { readonly at: string; readonly lines: readonly string[] }[] = [
    ...[...places.hiddenFolders, ...places.hiddenFiles].map((at) => ({
      at,
      lines: rules('deny', 'file-read* file-write*', [at]),
    })),
    ...[...places.links.map(({ at }) => at), ...places.shown].map((at) => ({
      at,
      lines: [...rules('allow', 'file-read*', [at]), ...rules('deny', 'file-write*', [at])],
    })),
    ...[places.temp, ...places.writable].map((at) => ({
      at,
      lines: rules('allow', 'file-read* file-write*', [at]),
    })),
    ...[...places.readOnly, ...places.instead.map(({ at }) => at)].map((at) => ({
      at,
      lines: rules('deny', 'file-write*', [at]),
    })),
  ]
  const byPlace = new Map(ranked.map((rule) => [rule.at, rule]))
  return [
    '(version 1)',
    '(allow default)',
    '(deny file-write*)',
    ...['/dev/null', '/dev/zero', '/dev/tty', '/dev/ptmx', '/dev/dtracehelper'].map(
      (device) => `(allow file-write* (literal ${quoted(device)}))`,
    ),
    '(allow file-write* (regex #"^/dev/tty[a-z0-9]+$"))',
    ...rules('deny', 'file-read*', places.commonTemps),
    ...[...byPlace.values()].sort((one, other) => (one.at < other.at ? -1 : 1)).flatMap(({ lines }) => lines),
    // There are no process namespaces: it can at least signal and trace none but its own.
    '(deny signal)',
    '(allow signal (target same-sandbox))',
    '(deny process-info* (target others))',
    '(allow process-info* (target same-sandbox))',
    ...(mode === 'strict'
      ? [
          '(deny network*)',
          '(allow network* (local unix-socket))',
          ...(proxyPort === undefined
            ? []
            : [`(allow network-outbound (remote ip ${quoted(`localhost:${proxyPort}`)}))`]),
        ]
      : []),
    '',
  ].join('\n')
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`)
}
