// Where the programs are measured: the stand-in for Claude Code, the repositories, and the three that run a plan of stories.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { cleanEnv, commitRepository, watch, type Sample, type Watched } from './measure.ts'
import { installPeers, program } from './peer-programs.ts'

export type Who = 'floor' | 'ralph' | 'ralph-tui'
/** By row, then by who: all that was measured. */
export type Samples = Record<string, Partial<Record<Who, Sample[]>>>

export interface Size {
  readonly rounds: number
  readonly stories: number
  readonly megabytes: number
  readonly longStories: number
  readonly longestStories: number
  readonly refs: number
  readonly files: number
  readonly looks: number
  /** How long an agent sleeps. */
  readonly napSeconds: number
}

/** One turn of an agent, by its own clock. */
export interface Turn {
  readonly beganMs: number
  readonly endedMs: number
}

export interface Ran extends Watched {
  readonly folder: string
  readonly turns: readonly Turn[]
}

export interface Bed {
  readonly root: string
  readonly size: Size
  readonly env: NodeJS.ProcessEnv
  /** Who takes part: the floor and ralph, and ralph-tui with `--peers`. */
  readonly who: readonly Who[]
  /**
   * `work` gets the repository when all is over. It goes with the bed: ext4 without a journal passes over every file that was removed in the
   * last minutes whenever it makes one, and the next run would pay for that, twice as much in the kernel for ralph.
   */
  plan<T>(
    who: Who,
    stories: number,
    behaviour: Behaviour,
    work: (ran: Ran) => T | Promise<T>,
    how?: HowToRun,
  ): Promise<T>
  /** A repository with so many stories, and what the stand-in needs to behave so in it. */
  place(stories: number, behaviour: Behaviour): { readonly cwd: string; readonly env: NodeJS.ProcessEnv }
  /** The stand-in's turns since the last time they were asked for. */
  turns(): readonly Turn[]
}

interface HowToRun {
  /** Where what it prints goes; nowhere by default. */
  readonly stdout?: string
  /** What else the repository has. */
  readonly before?: (folder: string) => unknown
  readonly env?: NodeJS.ProcessEnv
}

/** What the stand-in does besides a line in `work.txt`: nothing, or 200 MB of talk. */
type Behaviour = 'works' | 'floods'

export function makeBed(size: Size, withPeers: boolean): Bed {
  const root = mkdtempSync(join(tmpdir(), 'ralph-bench-'))
  const bin = join(root, 'bin')
  const peers = withPeers ? join(installPeers(['ralph-tui@0.11.0', 'bun@1.4.4']), 'node_modules', '.bin') : ''
  const turnsFile = join(root, 'turns')
  for (const folder of [bin, join(root, 'home', '.config')]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(bin, 'claude'), standIn(root), { mode: 0o755 })
  const modules = resolve(import.meta.dirname, '../node_modules')
  symlinkSync(join(modules, '@fission-ai/openspec/bin/openspec.js'), join(bin, 'openspec'))
  const path = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
  const env: NodeJS.ProcessEnv = {
    ...cleanEnv(),
    PATH: [bin, ...path].join(delimiter),
    // Settings and caches stay out of the user's home.
    HOME: join(root, 'home'),
    XDG_CONFIG_HOME: join(root, 'home', '.config'),
    GIT_CONFIG_NOSYSTEM: '1',
    OPENSPEC_TELEMETRY: '0',
  }
  const commands: Record<Who, (stories: number, behaviour: Behaviour) => readonly string[]> = {
    floor: (stories, behaviour) => ['sh', '-c', behaviour === 'floods' ? plainFlood : plainStories(stories)],
    ralph: () => [process.execPath, program, 'loop', 'demo', '--agent', 'claude'],
    'ralph-tui': () => [join(peers, 'ralph-tui'), ...tuiArguments.split(' ')],
  }
  const turns = (): readonly Turn[] => {
    const lines = existsSync(turnsFile) ? readFileSync(turnsFile, 'utf8').trimEnd().split('\n') : []
    rmSync(turnsFile, { force: true })
    return lines.map((line) => {
      const [beganMs = 0, endedMs = 0] = line.split(' ').map((seconds) => Number(seconds) * 1000)
      if (!(beganMs > 0)) throw new Error('the stand-in needs bash 5, for its clock')
      return { beganMs, endedMs }
    })
  }
  return {
    root,
    size,
    env,
    turns,
    place: (stories, behaviour) => ({
      cwd: repository(root, stories),
      env: { ...env, STAND_IN: behaviour },
    }),
    who: withPeers ? ['floor', 'ralph', 'ralph-tui'] : ['floor', 'ralph'],
    async plan(who, stories, behaviour, work, { stdout, before, env: own } = {}) {
      const folder = repository(root, stories)
      before?.(folder)
      const more = {
        STAND_IN: behaviour,
        ...(who === 'ralph-tui' && { PATH: `${bin}:${peers}:${env['PATH']}` }),
        ...own,
      }
      const how = { cwd: folder, env: { ...env, ...more }, ...(stdout !== undefined && { stdout }) }
      const ran = { ...(await watch(commands[who](stories, behaviour), how)), folder, turns: turns() }
      // Exit codes do not tell with all of them.
      if (ran.code !== 0 || ran.turns.length !== stories)
        throw new Error(
          `${who} ran its agent ${ran.turns.length} times, not ${stories}, exit code ${ran.code}: ${ran.said}`,
        )
      return await work(ran)
    },
  }
}

const plainFlood = 'echo prompt | claude -p | cat > /dev/null'
const plainStories = (stories: number): string =>
  `for i in $(seq ${stories}); do git rev-parse HEAD; echo prompt | claude -p; git add -A; git commit -qm "checkpoint: $i" || exit 1; done`
const tuiArguments = 'run --headless --prd prd.json --iterations 1000 --no-notify'

/** A copy of one that is made once for each number of stories. */
function repository(root: string, stories: number): string {
  const template = join(root, `template-${stories}`)
  if (!existsSync(template)) {
    mkdirSync(template)
    writePlan(template, 'demo', stories)
    commitRepository(template)
  }
  const folder = mkdtempSync(join(root, 'repository-'))
  cpSync(template, folder, { recursive: true })
  return folder
}

/** The same plan for ralph and for ralph-tui. */
export function writePlan(folder: string, change: string, stories: number): void {
  const numbers = Array.from({ length: stories }, (_, n) => n + 1)
  mkdirSync(join(folder, 'openspec/changes', change), { recursive: true })
  const tasks = numbers.map((n) => `## ${n}. Story\n\n- [ ] ${n}.1 task\n`)
  writeFileSync(join(folder, 'openspec/changes', change, 'tasks.md'), tasks.join('\n'))
  const userStories = numbers.map((n) => ({
    id: `US-${String(n).padStart(3, '0')}`,
    title: 'Story',
    description: 'task',
    acceptanceCriteria: ['done'],
    priority: 1,
    passes: false,
    dependsOn: [],
  }))
  writeFileSync(join(folder, 'prd.json'), JSON.stringify({ name: 'bench', userStories }))
  mkdirSync(join(folder, '.ralph-tui'), { recursive: true })
  writeFileSync(
    join(folder, '.ralph-tui', 'config.toml'),
    'configVersion = "2.1"\nagent = "claude"\ntracker = "json"\niterationDelay = 0\nautoCommit = true\n',
  )
  writeFileSync(join(folder, '.gitignore'), '.ralph-tui/\n')
}

/**
 * In bash, which knows the time without a process: a Node for each story would hide the differences. `large` is an attempt in a large
 * repository, ten files changed, five new and one gone: every other one fails.
 */
function standIn(root: string): string {
  const text = (words: string): string =>
    JSON.stringify({
      type: 'assistant',
      message: { id: 'm', content: [{ type: 'text', text: words }] },
      parent_tool_use_id: null,
    })
  const end = { type: 'result', subtype: 'success', is_error: false, num_turns: 1, result: 'Done.' }
  return `#!/bin/bash
LC_ALL=C
began=$EPOCHREALTIME
if [ "$1" = --version ]; then echo 9.9.9; exit 0; fi
cat > /dev/null
promise='${text('Done.\n<promise>COMPLETE</promise>')}'
case "$STAND_IN" in
  works) echo x >> work.txt ;;
  sleeps) sleep "$NAP"; echo x > "$RALPH_CHANGE.txt" ;;
  floods) echo x >> work.txt; cat '${join(root, 'flood.ndjson')}' ;;
  large)
    for n in 0 1 2 3 4 5 6 7 8 9; do echo "$began $n" > d$n/f$n.txt; done
    for n in 0 1 2 3 4; do echo "$began" > d$n/new-$began-$n.txt; done
    set -- d11/*; rm "$1"
    if [ $((RALPH_ITERATION % 2)) = 1 ]; then promise='${text('<promise>FAILED: no</promise>')}'; fi ;;
esac
printf '%s\\n' "$promise" '${JSON.stringify(end)}'
echo "$began $EPOCHREALTIME" >> '${join(root, 'turns')}'
`
}
