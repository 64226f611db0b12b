// What a repository looks like from outside: for "nothing was touched", and for commands that only look.
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { walk, type World } from './world.ts'

export type Picture = Readonly<Record<string, string>>

/** Files with kind, mode and bytes, both trees; index, HEAD, refs, stashes, settings, and who is alive. */
export function pictureOf(world: World): Picture {
  const picture: Record<string, string> = {}
  for (const place of world.plan.mode === 'worktree'
    ? (['checkout', 'loop'] as const)
    : (['checkout'] as const)) {
    const folder = world.folder(place)
    walk(folder, '', (path, kind) => {
      const at = join(folder, path)
      const { mode } = lstatSync(at)
      const bytes = kind === 'folder' ? '' : kind === 'link' ? readlinkSync(at) : hash(at)
      picture[`${place} file ${path}`] = `${kind} ${mode.toString(8)} ${bytes}`
    })
    const gitDir = gitDirOf(folder)
    for (const name of ['index', 'HEAD']) picture[`${place} ${name}`] = hash(join(gitDir, name))
  }
  const common = join(world.repo, '.git')
  for (const line of world.tryGit(['for-each-ref', '--format=%(refname) %(objectname)']).split('\n')) {
    const [name = '', value = ''] = line.split(' ')
    picture[`ref ${name}`] = value
  }
  picture['stash list'] = hash(join(common, 'logs/refs/stash'))
  picture['config'] = hash(join(common, 'config'))
  // Not what it runs: an orphan goes from one program to the next by itself.
  for (const pid of alive(world)) picture[`process ${pid}`] = 'alive'
  return picture
}

export function differences(before: Picture, after: Picture): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names]
    .filter((name) => before[name] !== after[name])
    .map((name) => `${name}: ${before[name] ?? 'absent'} -> ${after[name] ?? 'absent'}`)
}

/** Every process that carries the round's mark. */
export function alive(world: World): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isAlive(world, pid))
}

export function isAlive(world: World, pid: number): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1')
    if (!environment.split('\0').includes(`RALPH_TORTURE=${world.root}`)) return false
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** A git of ralph's own, or the small shell that starts them; the agents' carry their iteration. */
export function isRalphsGit(pid: number): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
    const isOfAttempt = environment.some((entry) => entry.startsWith('RALPH_ITERATION='))
    return environment.includes('GIT_AUTHOR_EMAIL=ralph@localhost') && !isOfAttempt
  } catch {
    return false
  }
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return 'gone meanwhile'
  }
}

export function gitDirOf(folder: string): string {
  const at = join(folder, '.git')
  if (!existsSync(at) || lstatSync(at).isDirectory()) return at
  return readFileSync(at, 'utf8')
    .trim()
    .replace(/^gitdir: /, '')
}

function hash(path: string): string {
  if (!existsSync(path)) return 'absent'
  return createHash('sha1').update(readFileSync(path)).digest('hex').slice(0, 12)
}
