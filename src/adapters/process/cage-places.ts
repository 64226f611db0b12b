// Looks at the disk for what a cage has to know: homes and their secrets, caches, programs that lie in strange places.
import { copyFileSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { basename, delimiter, dirname, isAbsolute, join, relative } from 'node:path'
import {
  agentHomes,
  caches,
  closed,
  gitSettingsText,
  movedSecrets,
  namedSockets,
  registrySettings,
  secrets,
  systemSecrets,
  withoutLogins,
  type AgentHome,
  type HomePlace,
} from '../../core/cage-homes.ts'
import { hostOf, type Host } from '../../core/cage-hosts.ts'
import { isWithin, type CagePlaces } from '../../core/cage.ts'
import type { CageOptions, Inmate, OwnFolder, Start } from './cage.ts'
import {
  boundSockets,
  costOf,
  halved,
  homesOf,
  othersHomes,
  isFolder,
  isUsed,
  linkedFrom,
  made,
  placeIn,
  placesIn,
  there,
} from './cage-home.ts'
import { foldersAbove, ownFolders } from './cage-own.ts'
import { tempBase } from './temp.ts'

/** For one that enters now: what is there changes. */
export function placesOf(
  { env, git, writable, readOnly, hidden: kept, reports, shown: needed }: CageOptions,
  start: Start,
  inmate: Inmate,
  { room, temp }: { readonly room: OwnFolder; readonly temp: string },
): CagePlaces {
  const allowed = writable.flatMap((path) => there(path) ?? [])
  const own = homesOf(env)
  const others = othersHomes(own)
  // One that holds the work tree is seen as the user's own.
  const isUsedHome = (home: string): boolean => allowed.some((path) => isWithin(path, home))
  const homes = [...own, ...others.filter(isUsedHome)]
  const inHomes = placesIn(homes, env)
  /** Whoever has none has no places in it. */
  const firstOf = (
    places: readonly HomePlace[],
    look: (path: string) => string | false | undefined,
  ): string[] =>
    homes.slice(0, 1).flatMap((home) => places.flatMap((place) => look(placeIn(home, place, env)) || []))
  const mine = ownHomes(inmate)
  const foreign = Object.values(agentHomes).filter((home) => !mine.includes(home))
  /** By some agent, earlier or later. */
  const written = new Set([
    ...allowed,
    ...inHomes([...caches, ...Object.values(agentHomes).flatMap((home) => home.state)]).flatMap(
      (path) => there(path) ?? [],
    ),
  ])
  const found = (places: readonly HomePlace[]): string[] => [
    ...new Set(inHomes(places).flatMap((path) => unlinked(written, path) ?? [])),
  ]
  const state = firstOf(
    mine.flatMap((home) => home.state),
    (path) => apartFrom(allowed, path) && made(path),
  )
  const usual = firstOf(caches.slice(0, 2), (path) => apartFrom(allowed, path) && made(path))
  const cached = caches
    .slice(2)
    .flatMap((cache) =>
      firstOf(
        [cache],
        (path) =>
          isUsed(path, cache, start) && apartFrom([...allowed, ...state, ...usual], path) && made(path),
      ),
    )
  const nothing = room.same('nothing', new Uint8Array())
  const foreignLogins = foreign.flatMap((home) => home.logins)
  const hidden = [
    // Where a variable has moved one, the old place may still hold something.
    ...found([
      ...secrets,
      ...[...movedSecrets, ...foreignLogins].flatMap((place) => [place, { path: place.path }]),
    ]),
    ...(process.getuid?.() === 0 ? systemSecrets.flatMap((path) => there(path) ?? []) : []),
    ...namedSockets(env).flatMap((path) => unlinked(written, path) ?? []),
  ]
    .flatMap((path) => [path, ...(written.has(path) ? [] : linkedFrom(path))])
    .concat(others.filter((home) => !isUsedHome(home)))
  const open = [...allowed, ...state, ...usual, ...cached]
  const halves = homes.flatMap((home) =>
    closed.flatMap(({ folder, but }) =>
      // Where a variable has moved it, programs that do not know that keep theirs in the old place.
      [...new Set([placeIn(home, folder, env), join(home, folder.path)])].flatMap((path) =>
        halved(path, but, folder.path === '', written),
      ),
    ),
  )
  // Whoever may write a folder may see it; what holds a home is no secret of it.
  const isHidden = (path: string): boolean =>
    !allowed.some((folder) => isWithin(path, folder)) && !homes.some((home) => isWithin(home, path))
  const unnamed = halves
    .flatMap((half) => half.hidden)
    .filter((path) => isHidden(path) && !hidden.includes(path))
  // What is made in a cache has to stay there.
  const shut = halves
    .map((half) => ({ ...half, kept: [...half.kept, ...half.hidden.filter((path) => !isHidden(path))] }))
    .filter(
      ({ folder, hidden: some, kept, links }) =>
        !open.includes(folder) && costOf(some.filter(isHidden)) > kept.length - links.size,
    )
  const commonTemps = ['/tmp', '/var/tmp', ...(process.platform === 'darwin' ? [tempBase(env)] : [])].flatMap(
    (path) => there(path) ?? [],
  )
  const sockets = there('/run') ?? []
  // All of /dev is the cage's own.
  const unseen = [...commonTemps, '/dev/shm'].concat(sockets)
  /** A link out of there is not followed: outside all is read-only already, or hidden. */
  const isIn = (path: string): boolean => {
    const depth = depthIn(open, path)
    return depth > 0 && depth >= depthIn(hidden, path)
  }
  const shown = [
    ...homes,
    ...programFolders(start.env),
    ...namedIn(start.args),
    ...(inmate.shown ?? []),
    ...git.settings
      .filter(({ key }) => /^(?:core\.(?:excludes|attributes)file|commit\.template)$/.test(key))
      .map(({ value }) => value.replace(/^~(?=\/)/, homes[0] ?? '~')),
    // Whoever named them: an agent may have, to look into what is hidden of a home.
    ...needed().filter((path) => !unnamed.some((place) => isWithin(there(path) ?? '', place))),
    ...alwaysShown,
  ]
    .map((path) => ({ path, real: there(path) ?? '' }))
    .filter(
      ({ real }) =>
        unseen.some((place) => real !== place && isWithin(real, place)) ||
        unnamed.some((place) => isWithin(real, place)),
    )
    .filter(({ path, real }) => apartFrom(open, path) && !shut.some(({ folder }) => folder === real))
    .map(({ real }) => real)
  const isSeen = (path: string): boolean => {
    const real = there(path) ?? ''
    const depth = depthIn([...hidden, ...unnamed, ...unseen], real)
    return depth === 0 || depthIn([...open, ...shown], real) >= depth
  }
  // Of other programs: Docker's and LXD's give whoever may connect the whole machine.
  const reachable = [...allowed, ...(inmate.shown ?? []), ...alwaysShown, nixDaemon]
  const bound = boundSockets().filter(
    (path) => isSeen(path) && !reachable.some((place) => isWithin(path, place)),
  )
  const inside = (folders: readonly string[], paths: readonly string[]): string[] =>
    paths.flatMap((path) => unlinked(written, path) ?? []).filter((real) => isInside(folders, real))
  // With `npx` these are ralph itself, and what it would start outside.
  const programs = [
    ...inside([...state, ...usual, ...cached], programFolders(env)),
    // What V8 has compiled of ralph for Node, too.
    ...inside(open, [...ownFolders(), process.execPath, env['NODE_COMPILE_CACHE'] ?? '']),
  ]
  return {
    hiddenFolders: [...hidden, ...unnamed].filter(isFolder).concat(
      kept().flatMap((path) => there(path) ?? []),
      sockets,
      shut.map(({ folder }) => folder),
    ),
    hiddenFiles: [...hidden, ...unnamed].filter((path) => !isFolder(path)).concat(bound),
    shown: shut
      .flatMap(({ kept, links }) => kept.filter((path) => !links.has(path) && there(path) === path))
      .concat(shown),
    links: shut.flatMap(({ links }) => [...links].map((path) => ({ at: path, to: readlinkSync(path) }))),
    writable: [
      ...open,
      ...programs.flatMap((path) => foldersAbove(path).filter((folder) => isInside(open, folder))),
      ...reports().flatMap((path) => there(path) ?? []),
    ],
    readOnly: [
      ...[
        ...readOnly().flatMap((path) => there(path) ?? []),
        ...mine.flatMap((home) => found(home.settings)),
        ...programs,
      ].filter(isIn),
      ...(process.getuid?.() === 0 ? rootsOwn : []).flatMap((path) => there(path) ?? []),
    ],
    instead: [
      ...mine
        .flatMap((home) => found(home.copied))
        .filter((path) => depthIn(hidden, path) === 0)
        .map((at, n) => copied(at, room.path(`copy-${n}`))),
      ...found(registrySettings).flatMap((at, n) => stripped(at, isIn(at), () => room.path(`registry-${n}`))),
      ...gitsOwn(git, isSeen, () => room.path('gitconfig')),
    ],
    temp,
    nothing,
    commonTemps,
  }
}

function isInside(folders: readonly string[], path: string): boolean {
  return folders.some((folder) => path !== folder && isWithin(path, folder))
}

/** Of the deepest place that holds it; 0: of none. */
function depthIn(places: readonly string[], path: string): number {
  return Math.max(0, ...places.filter((place) => isWithin(path, place)).map((place) => place.length))
}

/** What an earlier one could write it could make a link, too: it is seen there as it is, and leads nowhere else. */
function apartFrom(open: readonly string[], path: string): boolean {
  return !foldersAbove(path).some((folder) => open.includes(there(folder) ?? ''))
}

/** Undefined where a link in what an agent can write leads there: it could hide the tests from a gate, or show a secret. */
function unlinked(written: ReadonlySet<string>, path: string): string | undefined {
  const real = there(path)
  if (real === undefined || real === path) return real
  const isPlain = foldersAbove(path).every((above) => {
    const folder = there(above) ?? ''
    return !written.has(folder) || real === join(folder, relative(above, path))
  })
  return isPlain ? real : undefined
}

function copied(at: string, from: string): CagePlaces['instead'][number] {
  copyFileSync(at, from)
  return { at, from, isWritable: true }
}

/** Nothing where it holds no login and cannot be written anyway: each mount costs. */
function stripped(at: string, mayBeWritten: boolean, place: () => string): CagePlaces['instead'] {
  const text = readFileSync(at, 'utf8')
  const rest = withoutLogins(text)
  if (rest === text && !mayBeWritten) return []
  const from = place()
  writeFileSync(from, rest, { mode: 0o600 })
  return [{ at, from, isWritable: false }]
}

/** Where some of it lies in a place that cannot be seen (dotfiles that are linked, an include): without it no commit has a name. */
function gitsOwn(
  { file, settings }: CageOptions['git'],
  isSeen: (path: string) => boolean,
  place: () => string,
): CagePlaces['instead'] {
  const at = file === undefined ? undefined : there(file)
  if (at === undefined || settings.every((setting) => isSeen(setting.file))) return []
  const from = place()
  writeFileSync(from, gitSettingsText(settings, isSeen), { encoding: 'latin1', mode: 0o600 })
  return [{ at, from, isWritable: false }]
}

export function hostsOf({ hosts }: CageOptions, inmate: Inmate): readonly Host[] {
  const own = ownHomes(inmate).flatMap((home) => home.hosts)
  return [...hosts, ...own.flatMap((name) => hostOf(name) ?? [])]
}

/** Of the agent; of a command of the user's, of those that it names. */
export function ownHomes({ agent, command = '' }: Inmate): AgentHome[] {
  const words = command.split(/[^\w-]+/)
  return Object.entries(agentHomes).flatMap(([name, home]) =>
    name === agent || ((agent === 'command' || agent === 'acp') && words.includes(name)) ? [home] : [],
  )
}

/** Scripts of the user's that are called by their whole path. */
function namedIn(args: readonly string[]): string[] {
  return args.flatMap((arg) => arg.match(/(?<![\w/.~-])\/[\w@%+:,./-]+/g) ?? [])
}

/** With what lies beside a `bin`: `lib`, or the packages. */
function programFolders(env: NodeJS.ProcessEnv): string[] {
  const folders = [
    ...(env['PATH'] ?? '').split(delimiter).filter((path) => isAbsolute(path)),
    dirname(process.execPath),
  ]
  return folders.flatMap((folder) =>
    /^\.?bin$/.test(basename(folder)) ? [folder, dirname(folder)] : [folder],
  )
}

/** Where root could set what the kernel runs, also without any rights. */
const rootsOwn = ['/proc/sys', '/proc/sysrq-trigger']

/** Without it nothing can be built there. */
const nixDaemon = '/nix/var/nix/daemon-socket'

/** Names of hosts, and the programs of NixOS. */
const alwaysShown = [
  'systemd/resolve, resolvconf, NetworkManager/resolv.conf, nscd',
  'current-system, booted-system, opengl-driver, wrappers',
].flatMap((line) => line.split(', ').map((name) => `/run/${name}`))
