// The kill test itself, for one strategy: every operation as a kill before and after each of its git commands would leave it, and within some.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { withShell } from '../../../src/adapters/process/launcher.ts'
import { bundle } from '../../bundle.ts'
import { run as type } from '../../shell.ts'
import { killable, openCheckpoints, type Killable } from './kill-driver.ts'
import { filesOf, gits, makeWorld, stashLooks, type Strategy, type World } from './world.ts'

/** The git commands of an operation, and everything as it was before and after each: a kill leaves nothing but the disk. */
interface Run {
  readonly commands: readonly string[]
  readonly state: (n: number, side: 'before' | 'after') => { readonly files: string; readonly world: string }
}

/** What has happened before the operation that is killed. */
type Prelude = readonly (Killable | 'agent' | 'elsewhere')[]

interface More {
  /** What the user has besides. */
  readonly setUp: (world: World) => void
  /** What the agent does besides. */
  readonly agent: (world: World) => void
  /** Submodules that are looked at, too. */
  readonly inside: readonly string[]
  /** Not each git command but every so many of them. */
  readonly every: number
}

export function testKills(
  strategy: Strategy,
  preludes: readonly (readonly [Killable, Prelude])[],
  more: More = { setUp: () => undefined, agent: () => undefined, inside: [], every: 1 },
): void {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'ralph-kill-')))
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  const driver = join(root, 'driver.cjs')
  bundle(join(import.meta.dirname, 'kill-driver.ts'), driver)
  const shim = makeShim(root)

  describe(`G25: checkpoints by ${strategy}`, () => {
    it.each(preludes)(
      '%s, killed between any two git commands, is finished or undone (after %s)',
      async (operation, prelude) => {
        const template = join(root, `template-${operation}-${prelude.length}`)
        const { env, name } = await prepare(template, strategy, prelude, more)
        const copy = (to: string): { dir: string; journal: string } => {
          rmSync(to, { recursive: true, force: true })
          type('cp', ['-a', template, to], { cwd: '/', env })
          return { dir: join(to, name), journal: join(to, 'journal') }
        }
        const run = (place: { dir: string; journal: string }, at: number): Run => {
          const count = mkdtempSync(join(root, 'count-'))
          spawnSync(process.execPath, [driver, place.dir, place.journal, strategy, operation], {
            env: {
              ...env,
              PATH: `${shim}:${env['PATH']}`,
              RALPH_KILL_DRIVER: '1',
              SHIM_COUNT: count,
              SHIM_AT: `${at}`,
              SHIM_EVERY: `${more.every}`,
              SHIM_WORLD: join(place.dir, '..'),
            },
          })
          const names = readdirSync(count)
          const read = (name: string): string => readFileSync(join(count, name), 'utf8')
          return {
            commands: names
              .filter((name) => /^\d+$/.test(name))
              .sort((a, b) => Number(a) - Number(b))
              .map(read),
            state: (n, side) => ({ files: read(`${n}.${side}`), world: join(count, `${n}.${side}.world`) }),
          }
        }
        const place = copy(join(root, 'killed'))
        const before = view(place.dir, env, more.inside)
        const { commands, state } = run(place, 0)
        const after = view(place.dir, env, more.inside)
        // The shortest, a rename and a start with stashes, are two looks and one transaction.
        expect(commands.length).toBeGreaterThan(2)

        const tested = new Set<string>()
        /** Two moments with the same files are one. */
        const isNew = (files: string): boolean => !tested.has(files) && tested.add(files).has(files)
        const recovers = (where: string): Promise<void> =>
          withShell(async () => {
            const checkpoints = openCheckpoints(place.dir, place.journal, strategy, env)
            await checkpoints.recover()
            expect(await checkpoints.recover(), where).toEqual({})
            if (!isDone(place.journal, operation)) {
              expect(visible(view(place.dir, env, more.inside)), where).toEqual(visible(before))
              await killable[operation](checkpoints)
            }
            expect(view(place.dir, env, more.inside), where).toEqual(after)
          })
        for (let at = 1; at <= commands.length; at += more.every) {
          const command = commands[at - 1] ?? ''
          const where = (when: string): string =>
            `${operation}: killed ${when} git command ${at} of ${commands.length}`
          for (const side of ['before', 'after'] as const) {
            const { files, world } = state(at, side)
            if (!isNew(files)) continue
            rmSync(join(root, 'killed'), { recursive: true, force: true })
            renameSync(world, join(root, 'killed'))
            await recovers(where(side))
          }
          const isFirst = commands.findIndex((each) => wordOf(each) === wordOf(command)) === at - 1
          if (!isFirst || !/--stdin/.test(command)) continue
          run(copy(join(root, 'killed')), at)
          await recovers(where('within'))
        }
      },
    )
  })
}

function wordOf(command: string): string {
  const words = command.replace(/-c \S+ /g, '').split(' ')
  return words.find((argument) => !argument.startsWith('-')) ?? ''
}

function makeShim(root: string): string {
  const folder = join(root, 'bin')
  mkdirSync(folder)
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const script = `#!/bin/sh
set -C
n=1
while ! { echo "$*" > "$SHIM_COUNT/$n"; } 2>/dev/null; do n=$((n + 1)); done
# All but objects that nothing points to yet. Nobody else goes on meanwhile.
state() {
  [ "$SHIM_AT" = 0 ] && [ $(((n - 1) % SHIM_EVERY)) = 0 ] || return 0
  kill -STOP $PPID
  find "$SHIM_WORLD" -name objects -prune -o -printf '%p %y %m %l ' -type f -exec md5sum {} + > "$SHIM_COUNT/$n.$1"
  cp -a "$SHIM_WORLD" "$SHIM_COUNT/$n.$1.world"
  kill -CONT $PPID
}
state before
# Its locks taken or, where it takes none, all of its input read, which is not at its end: killed, it leaves them as a power cut would.
if [ "$n" = "$SHIM_AT" ]; then
  mkfifo "$SHIM_COUNT.fifo"
  "${real}" "$@" < "$SHIM_COUNT.fifo" > "$SHIM_COUNT.out" &
  git=$!
  exec 9> "$SHIM_COUNT.fifo"
  # A transaction that would only be said at its end is prepared all the same.
  case "$*" in
  *update-ref*) { sed '/^prepare$/d; /^commit$/d'; echo prepare; } >&9 ;;
  *) cat >&9 ;;
  esac
  # For more input. In the middle of a file it would leave half of it, and here no death is on record that explains it.
  waits() { read -r _ _ state _ < /proc/$git/stat && [ "$state" = S ]; }
  case "$*" in
  *update-ref*) reached() { grep -q 'prepare: ok' "$SHIM_COUNT.out"; } ;;
  *update-index* | *--index*) reached() { [ -e "$GIT_INDEX_FILE.lock" ] && waits; } ;;
  *) reached() { waits; } ;;
  esac
  until reached || ! kill -0 $git; do :; done
  kill -9 $git $PPID
  wait $git
  exit 1
fi
"${real}" "$@"
code=$?
state after
exit $code
`
  writeFileSync(join(folder, 'git'), script)
  chmodSync(join(folder, 'git'), 0o755)
  return folder
}

async function prepare(
  to: string,
  strategy: Strategy,
  prelude: Prelude,
  more: More,
): Promise<{ env: NodeJS.ProcessEnv; name: string }> {
  const world = makeWorld()
  const { env, dir } = world
  world.git('branch', 'other')
  world.write('a.txt', 'one\nstaged\n')
  world.git('add', 'a.txt')
  world.write('a.txt', 'one\nstaged\nunstaged\n')
  world.write('untracked.txt', 'u')
  world.write('.env', 'S')
  mkdirSync(join(dir, 'empty'))
  more.setUp(world)
  const journal = join(world.root, 'journal')
  writeFileSync(journal, '')
  const checkpoints = openCheckpoints(dir, journal, strategy, env)
  for (const step of prelude) {
    if (step === 'agent') {
      const watched = { ...env, ...(await checkpoints.watch('agent', 1)) }
      const agent = (...args: string[]): void => {
        type('git', args, { cwd: dir, env: watched })
      }
      world.write('src/b.txt', 'agent\n')
      agent('commit', '-qam', 'agent')
      agent('branch', '-f', 'other', 'HEAD')
      agent('checkout', '-q', '-b', 'mine')
      world.write('new.txt', 'n')
      agent('rm', '-qf', 'run.sh')
      more.agent(world)
    } else if (step === 'elsewhere') {
      world.git(
        'update-ref',
        'refs/heads/main',
        world.git('commit-tree', '-p', 'main', '-m', 'moved', await movedTree(world.gitPort)).trim(),
      )
    } else {
      await killable[step](checkpoints)
    }
  }
  cpSync(world.root, to, { recursive: true, verbatimSymlinks: true })
  world.end()
  return {
    env: { ...env, HOME: join(to, 'home'), GIT_CONFIG_GLOBAL: join(to, 'home', '.gitconfig') },
    name: 'repo',
  }
}

/** The tree of main with one file more. */
async function movedTree(git: ReturnType<typeof makeWorld>['gitPort']): Promise<string> {
  const blob = await git.line(['hash-object', '-w', '--stdin'], { input: 'moved\n' })
  const entries = await git.line(['ls-tree', 'main'])
  return await git.line(['mktree'], { input: `${entries}\n100644 blob ${blob}\tmoved.txt\n` })
}

/** Everything that has to be equal; commits by their trees, because their times differ. */
function view(dir: string, env: NodeJS.ProcessEnv, inside: readonly string[] = []): Record<string, unknown> {
  const [refs = '', index, status, log, ...printed] = gits(dir, env, [
    ['for-each-ref', '--format=%(refname) %(tree) %(contents:subject)'],
    ['ls-files', '-s', '-v'],
    ['status', '--porcelain', '-uall'],
    ['log', '--format=%T %s'],
    ...inside.flatMap((path) => looks.map((args) => ['-C', path, ...args])),
    ...stashLooks(join(dir, '.git'), '%T %gs'),
  ])
  return {
    files: filesOf(dir, ['.git', ...inside.map((path) => `${path}/.git`)]),
    head: readFileSync(join(dir, '.git', 'HEAD'), 'utf8'),
    // Pins are named by the hashes of commits.
    refs: refs
      .replace(/\/pins\/\S+/g, '/pins')
      .split('\n')
      .sort()
      .join('\n'),
    index,
    status,
    log,
    // And the stashes.
    inside: printed,
  }
}

/** In a submodule: HEAD, refs, kept attempts, index, stashes, status. */
const looks = [
  ['rev-parse', '--symbolic-full-name', 'HEAD'],
  ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags'],
  ['for-each-ref', '--format=%(refname) %(tree)', 'refs/ralph/demo/superproject/attempts'],
  ['ls-files', '-s', '-v'],
  ['stash', 'list', '--format=%H %gs'],
  ['status', '--porcelain', '-uall'],
]

/** What a person sees; an operation that was undone may leave refs of ralph's own. */
function visible(seen: Record<string, unknown>): Record<string, unknown> {
  const refs = String(seen['refs'])
    .split('\n')
    .filter((line) => !line.startsWith('refs/ralph/'))
  return { ...seen, refs }
}

function isDone(journal: string, operation: Killable): boolean {
  const events = readFileSync(journal, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, string>)
  const op = operation === 'ensure' ? 'take' : operation === 'squash' ? 'finish' : operation
  const last = events.findLastIndex((event) => event['type'] === 'git.began')
  const steps = events.slice(last)
  return (
    events[last]?.['op'] === op &&
    steps.some((e) => e['type'] === 'git.ended') &&
    !steps.some((e) => e['step'] === 'undone')
  )
}
