// A scratch repository as a plan has it, with the scripts by which its agent, its gate and ralph's own git meet the driver.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { run } from '../shell.ts'
import { openLedger, tokenPattern, type Ledger, type Place } from './ledger.ts'
import type { Belonging, Plan } from './plan.ts'

export const change = 'demo'

export interface World {
  readonly plan: Plan
  readonly root: string
  /** The user's checkout. */
  readonly repo: string
  /** Where scripts, rendezvous and the log of ralph's git calls lie. */
  readonly desk: string
  readonly temp: string
  readonly env: NodeJS.ProcessEnv
  readonly ledger: Ledger
  /** The start of the user's own work: where HEAD was. */
  readonly origin: { readonly ref: string; readonly commit: string }
  readonly folder: (place: Place) => string
  readonly git: (args: readonly string[], place?: Place) => string
  /** Empty when git refuses. */
  readonly tryGit: (args: readonly string[], place?: Place) => string
}

/** Committed in every repository (untracked in one without a commit); the user's own, too. */
const committed = ['README.md', 'src/shared.txt', ...[1, 2, 3].map((n) => `src/old-${n}.txt`), ...users(8)]

function users(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `src/user-${index + 1}.txt`)
}

export function buildWorld(plan: Plan): World {
  const root = mkdtempSync(join(tmpdir(), `ralph-torture-${plan.round}-`))
  const [repo, home, desk, temp, bin] = ['repo', 'home', 'desk', 'tmp', 'bin'].map((name) => {
    mkdirSync(join(root, name))
    return join(root, name)
  }) as [string, string, string, string, string]
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((each) => !each.includes('node_modules'))
  const plainEnv: NodeJS.ProcessEnv = {
    PATH: path.join(delimiter),
    HOME: home,
    TMPDIR: temp,
    LANG: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    OPENSPEC_TELEMETRY: '0',
    NO_COLOR: '1',
  }
  const realGit = path.map((each) => join(each, 'git')).find((each) => existsSync(each)) ?? 'git'
  const ledger = openLedger(plan.round)
  const folder = (place: Place): string =>
    place === 'loop' && plan.mode === 'worktree' ? join(root, `repo-ralph-${change}`) : repo
  const git: World['git'] = (args, place = 'checkout') =>
    run(realGit, args, { cwd: folder(place), env: plainEnv }).trimEnd()
  const tryGit: World['tryGit'] = (args, place) => {
    try {
      return git(args, place)
    } catch {
      return ''
    }
  }
  const origin = { ref: '', commit: '' }
  const world: World = {
    plan,
    root,
    repo,
    desk,
    temp,
    env: { ...plainEnv, PATH: [bin, ...path].join(delimiter), RALPH_TORTURE: root },
    ledger,
    origin,
    folder,
    git,
    tryGit,
  }
  writeScripts(world, bin, realGit)
  settle(world)
  Object.assign(origin, {
    ref: tryGit(['symbolic-ref', '-q', 'HEAD']),
    commit: tryGit(['rev-parse', '-q', '--verify', 'HEAD']),
  })
  for (const { path, isCommitted } of ledger.liveOf('checkout'))
    if (!isCommitted) ledger.modes.set(path, modeOf(repo, path))
  for (const [path, entry] of stagedOf(world)) ledger.staged.set(path, entry)
  for (const [name, hash] of refsOf(world)) ledger.refs.set(name, hash)
  for (const hash of stashesOf(world)) ledger.stashes.add(hash)
  ledger.configFile = join(desk, 'config')
  copyFileSync(join(repo, '.git', 'config'), ledger.configFile)
  return world
}

/** Kind and permissions. */
export function modeOf(folder: string, path: string): string {
  return existsSync(join(folder, path)) || isLink(join(folder, path))
    ? lstatSync(join(folder, path)).mode.toString(8)
    : 'absent'
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

/** Path -> what is staged of it; empty before the first commit, where everything would be. */
export function stagedOf(world: World): Map<string, string> {
  const [, ...entries] = world
    .tryGit(['diff', '--cached', '--raw', '--no-renames', '-z', '--abbrev=40', 'HEAD'])
    .split(':')
  return new Map(
    entries.map((entry) => {
      const [facts = '', path = ''] = entry.split('\0')
      return [path, facts]
    }),
  )
}

/** All but ralph's own and HEAD. */
export function refsOf(world: World): Map<string, string> {
  const lines = world.tryGit(['for-each-ref', '--format=%(refname) %(objectname)']).split('\n')
  return new Map(
    lines
      .map((line) => line.split(' ') as [string, string])
      .filter(([name]) => name !== '' && name !== 'refs/stash' && !/^refs\/(heads\/)?ralph\//.test(name)),
  )
}

export function stashesOf(world: World): string[] {
  return world
    .tryGit(['stash', 'list', '--format=%H %gs'])
    .split('\n')
    .filter((line) => line !== '' && !line.includes(`ralph:${change}:`))
    .map((line) => line.split(' ')[0] ?? '')
}

/** Token -> the paths that hold it, one for each time. Nested repositories' own data and ours apart. */
export function tokensIn(folder: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  const look = (path: string, text: string): void => {
    for (const token of text.match(tokenPattern) ?? []) found.set(token, [...(found.get(token) ?? []), path])
  }
  walk(folder, '', (path, kind) => {
    if (kind === 'file') look(path, readFileSync(join(folder, path), 'latin1'))
    if (kind === 'link') look(path, readlinkSync(join(folder, path)))
  })
  return found
}

export function walk(
  folder: string,
  below: string,
  visit: (path: string, kind: 'file' | 'link' | 'folder') => void,
): void {
  if (!existsSync(join(folder, below))) return
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.name === '.git' || path === '.claude') continue
    if (entry.isDirectory()) {
      visit(path, 'folder')
      walk(folder, path, visit)
    } else if (entry.isSymbolicLink()) visit(path, 'link')
    else if (entry.isFile()) visit(path, 'file')
  }
}

function put(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

export function appendLine(folder: string, path: string, line: string): void {
  const at = join(folder, path)
  const isThere = existsSync(at) && lstatSync(at).isFile()
  put(folder, path, `${isThere ? readFileSync(at, 'utf8') : ''}${line}\n`)
}

/** For `sh`. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

// --- the repository -----------------------------------------------------------------------------------------------

function settle(world: World): void {
  const { plan, repo, git, ledger } = world
  git(['init', '-q', '-b', 'main'])
  git(['config', 'user.name', 'User'])
  git(['config', 'user.email', 'user@example.invalid'])
  git(['config', 'gc.auto', '0'])
  for (const path of committed) put(repo, path, `${path}\n${own(world, path)}\n`)
  put(repo, 'odd "näme".txt', `${own(world, 'odd "näme".txt')}\n`)
  put(repo, 'run.sh', `#!/bin/sh\n# ${own(world, 'run.sh')}\n`)
  chmodSync(join(repo, 'run.sh'), 0o755)
  symlinkSync('src/shared.txt', join(repo, 'link'))
  put(repo, '.gitignore', '.env\nbuild/\n')
  put(repo, `openspec/changes/${change}/proposal.md`, '# Demo change\n\n## Why\nBecause.\n')
  put(repo, `openspec/changes/${change}/tasks.md`, tasks(plan.stories))
  if (plan.gate) put(repo, 'ralph.yaml', `verify:\n  - sh ${join(world.desk, 'gate.sh')}\n`)
  if (plan.mode === 'unborn') {
    for (const thing of plan.has) have[thing](world)
    return
  }
  if (plan.mode === 'submodules') addSubmodule(world)
  git(['add', '-A'])
  git(['commit', '-qm', 'start'])
  git(['commit', '-q', '--allow-empty', '-m', 'second'])
  for (const token of ledger.tokens) token.isCommitted = true
  for (const thing of plan.has) have[thing](world)
  if (plan.mode === 'submodules') {
    appendLine(repo, 'sub/lib.txt', own(world, 'sub/lib.txt'))
    put(repo, 'sub/mine.txt', `${own(world, 'sub/mine.txt')}\n`)
  }
  if (plan.isDetached) git(['checkout', '-q', '--detach'])
}

function addSubmodule({ root, git }: World): void {
  const inner = join(root, 'inner')
  git(['init', '-q', '-b', 'main', inner])
  put(inner, 'lib.txt', 'lib\n')
  const named = ['-c', 'user.name=Other', '-c', 'user.email=other@example.invalid']
  git(['-C', inner, 'add', '-A'])
  git(['-C', inner, ...named, 'commit', '-qm', 'inner'])
  git(['-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner, 'sub'])
  git(['-C', 'sub', 'config', 'user.name', 'User'])
  git(['-C', 'sub', 'config', 'user.email', 'user@example.invalid'])
}

function tasks(stories: number): string {
  return Array.from(
    { length: stories },
    (_, index) =>
      `## ${index + 1}. Story ${index + 1}\n\n- [ ] ${index + 1}.1 first\n- [ ] ${index + 1}.2 second\n`,
  ).join('\n')
}

function own(world: World, path: string, where: 'tree' | 'index' | 'ignored' = 'tree'): string {
  return world.ledger.mint('user', { path, place: 'checkout', where, moment: 'before the loop' })
}

function write(world: World, path: string): void {
  put(world.repo, path, `${own(world, path)}\n`)
}

/** The user's own version before is no longer wanted. */
function retire(world: World, path: string): void {
  for (const token of world.ledger.tokens)
    if (token.path === path && !token.isCommitted) token.isRetired = true
}

const have: Readonly<Record<Belonging, (world: World) => void>> = {
  edited: (world) => appendLine(world.repo, 'src/user-1.txt', own(world, 'src/user-1.txt')),
  'staged-edit': (world) => {
    appendLine(world.repo, 'src/user-2.txt', own(world, 'src/user-2.txt'))
    world.git(['add', 'src/user-2.txt'])
  },
  'partly-staged': (world) => {
    put(world.repo, 'src/user-3.txt', `staged\n${own(world, 'src/user-3.txt', 'index')}\n`)
    retire(world, 'src/user-3.txt')
    const staged = world.ledger.tokens.at(-1)
    if (staged !== undefined) staged.isRetired = false
    world.git(['add', 'src/user-3.txt'])
    put(world.repo, 'src/user-3.txt', `not staged\n${own(world, 'src/user-3.txt')}\n`)
  },
  'staged-new': (world) => {
    write(world, 'new staged.txt')
    world.git(['add', 'new staged.txt'])
  },
  deleted: (world) => rmSync(join(world.repo, 'src/user-4.txt')),
  'staged-delete': (world) => void world.git(['rm', '-q', 'src/user-5.txt']),
  renamed: (world) => void world.git(['mv', 'src/user-6.txt', 'src/user-6 moved.txt']),
  'intent-to-add': (world) => {
    write(world, 'intended.txt')
    world.git(['add', '-N', 'intended.txt'])
  },
  untracked: (world) => write(world, 'notes.txt'),
  'untracked-odd': (world) => {
    write(world, 'it\'s a "näme" with $blanks and\ttab.txt')
    write(world, '-dash\nline.txt')
  },
  'untracked-deep': (world) => write(world, 'deep/er/still/notes.txt'),
  'untracked-link': (world) => symlinkSync(own(world, 'a-link'), join(world.repo, 'a-link')),
  private: (world) => {
    write(world, 'private.txt')
    chmodSync(join(world.repo, 'private.txt'), 0o600)
  },
  executable: (world) => {
    write(world, 'tool.sh')
    chmodSync(join(world.repo, 'tool.sh'), 0o755)
  },
  'empty-folder': (world) => void mkdirSync(join(world.repo, 'empty/folder'), { recursive: true }),
  ignored: (world) => {
    put(world.repo, '.env', `SECRET=${own(world, '.env', 'ignored')}\n`)
    put(world.repo, 'build/out.txt', `${own(world, 'build/out.txt', 'ignored')}\n`)
  },
  stash: (world) => stashAway(world, 'src/user-7.txt', []),
  'stash-untracked': (world) => stashAway(world, 'stashed away.txt', ['-u']),
  branch: (world) => void world.git(['branch', 'user-branch', 'HEAD~1']),
  tag: (world) => void world.git(['tag', 'user-tag']),
  'annotated-tag': (world) => void world.git(['tag', '-a', '-m', 'by the user', 'user-annotated']),
  'linked-tree': (world) => void world.git(['worktree', 'add', '-q', '-b', 'user-linked', '../linked']),
  remote: (world) => {
    world.git(['clone', '-q', '--bare', '.', '../remote.git'])
    world.git(['remote', 'add', 'origin', '../remote.git'])
    world.git(['fetch', '-q', 'origin'])
  },
  hook: (world) => {
    put(world.repo, '.git/hooks/pre-commit', '#!/bin/sh\nexit 0\n')
    chmodSync(join(world.repo, '.git/hooks/pre-commit'), 0o755)
  },
  attributes: (world) => put(world.repo, '.git/info/attributes', '*.bin binary\n'),
}

/** Only that file: what else lies in the tree stays. */
function stashAway(world: World, path: string, options: readonly string[]): void {
  appendLine(world.repo, path, own(world, path))
  const token = world.ledger.tokens.at(-1)
  world.git(['stash', 'push', '-q', ...options, '-m', 'by the user', '--', path])
  if (token !== undefined) token.isCommitted = true
}

// --- the scripts --------------------------------------------------------------------------------------------------

function writeScripts({ desk }: World, bin: string, realGit: string): void {
  execFileSync('mkfifo', [join(desk, 'bell')])
  writeFileSync(join(desk, 'armed'), '')
  writeFileSync(join(desk, 'git.log'), '')
  const script = (path: string, body: string): void => {
    writeFileSync(`${path}.new`, `#!/bin/sh\ndesk=${quoted(desk)}\n${body}`)
    chmodSync(`${path}.new`, 0o755)
    renameSync(`${path}.new`, path)
  }
  // The rendezvous: says where it is, and goes on when the driver says so.
  const ring = `mkfifo "$desk/reply.$$"
ring() { printf '%s\\n' "$$ $*" > "$desk/bell"; read -r answer < "$desk/reply.$$"; }
`
  script(
    join(desk, 'agent.sh'),
    `cat > /dev/null
${ring}
ring agent begin "$RALPH_STORY" "$RALPH_ITERATION"
. "$answer"
`,
  )
  script(
    join(desk, 'gate.sh'),
    `${ring}
ring gate start
test -f "work/story-$RALPH_STORY.txt"
code=$?
ring gate end
exit "$code"
`,
  )
  // ralph's own git is told by its environment; the agent's and the user's go straight through. The log is appended to
  // atomically, so that the n-th call is the n-th line, calls side by side included.
  script(
    join(bin, 'git'),
    `git=${quoted(realGit)}
[ -s "$desk/armed" ] && [ "$GIT_AUTHOR_EMAIL" = ralph@localhost ] && [ -z "$RALPH_ITERATION" ] || exec "$git" "$@"
case " $* " in *" status --porcelain"*) look=look ;; *) look= ;; esac
echo "$$ $look" >> "$desk/git.log"
n=0
while read -r pid look; do n=$((n + 1)); [ "$pid" = $$ ] && break; done < "$desk/git.log"
while read -r at when whom; do [ "$at" = "$n" ] && break; done < "$desk/armed"
[ "$at" = "$n" ] || exec "$git" "$@"
echo "$$ $when $whom $*" >> "$desk/struck"
ulimit -c 0
ralph=$PPID
# Most are started by the small shell of ralph's own.
[ "$(cat /proc/$PPID/comm)" = sh ] && read -r _ _ _ ralph _ < /proc/$PPID/stat
strike() { [ "$whom" = git ] || kill -KILL $ralph; }
case $when in
  bell)
    # Nobody can save what is written in the instant in which git itself rewrites the file.
    case " $* " in *" checkout-index "*) exec "$git" "$@" ;; esac
    mkfifo "$desk/reply.$$"
    printf '%s\\n' "$$ git $n" > "$desk/bell"
    read -r answer < "$desk/reply.$$"
    exec "$git" "$@" ;;
  before) strike; exit 1 ;;
  after) "$git" "$@"; strike; exit 1 ;;
esac
# What ralph had to say to it is said; then ralph is gone, and git dies in its own write.
cat > "$desk/input.$$"
strike
case $when in
  torn)
    head -c $(($(wc -c < "$desk/input.$$") / 2)) "$desk/input.$$" | "$git" "$@" ;;
  middle-*)
    (ulimit -f "\${when#middle-}"; exec "$git" "$@" < "$desk/input.$$") ;;
esac
kill -KILL $$
`,
  )
}
