// The 17 scenarios in which a loop can lie or lose work, played on ralph and on ralph-tui with the same stand-in for Claude Code; prints the table of docs/comparison.md.
// Long because each scenario has its own agent, its own wish and its own judge, and they are read side by side.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { cleanEnv, commitRepository } from './measure.ts'
import { installPeers, program } from './peer-programs.ts'

const temp = mkdtempSync(join(tmpdir(), 'ralph-scenarios-'))
const bin = join(installPeers(['ralph-tui@0.11.0', 'bun@1.4.4']), 'node_modules', '.bin')
const home = join(temp, 'home')
/** A single one, by its number. */
const only = process.argv[2] === undefined ? undefined : Number(process.argv[2])

interface Wish {
  readonly stories?: number
  readonly iterations?: number
  readonly timeoutSec?: number
}
interface Ended {
  /** The exit code, or the signal. */
  readonly code: number | string
  readonly ms: number
  readonly said: string
}
interface Seen extends Ended {
  readonly folder: string
  readonly tool: Tool
  /** How often an agent was started. */
  readonly runs: number
  readonly done: number
  readonly alive: readonly number[]
}
interface Tool {
  readonly name: string
  readonly plan: string
  readonly lock: string
  readonly config: string
  readonly typo: string
  readonly command: (wish: Wish) => readonly string[]
  readonly again: readonly string[]
  readonly prepare: (folder: string, wish: Wish) => void
  readonly done: (folder: string) => number
  /** Bytes of agents' output that were kept. */
  readonly kept: (folder: string) => number
}
interface Scenario {
  readonly name: string
  readonly wish?: Wish
  /** Shell: what the stand-in does; `$RUN` counts its starts from 1, `$STORY` is the story's number. `say TEXT` is the assistant's. */
  readonly agent: string
  readonly before?: (folder: string, tool: Tool) => void
  /** Called while it runs. */
  readonly during?: (pid: number, folder: string) => Promise<void>
  /** After the run: another command, as a user would type it. */
  readonly rerun?: boolean
  /** What was seen, in a few words, and whether that is what a user may expect. */
  readonly judge: (seen: Seen) => readonly [boolean, string]
}

const ralph: Tool = {
  name: 'ralph',
  plan: 'openspec/changes/demo/tasks.md',
  lock: '.git/ralph/lock.json',
  config: 'ralph.yaml',
  typo: 'max_retrys: 1\n',
  command: ({ iterations, timeoutSec }) => [
    process.execPath,
    program,
    'loop',
    'demo',
    '--agent',
    'claude',
    '--json',
    '--on-complete',
    'keep',
    ...(iterations === undefined ? [] : ['--max-iterations', String(iterations)]),
    ...(timeoutSec === undefined ? [] : ['--iteration-timeout', String(timeoutSec / 60)]),
  ],
  again: [process.execPath, program, 'resume', 'demo', '--json'],
  prepare(folder, { stories = 2 }) {
    mkdirSync(join(folder, 'openspec/changes/demo'), { recursive: true })
    const tasks = numbers(stories).map((n) => `## ${n}. Story ${n}\n\n- [ ] ${n}.1 task\n`)
    writeFileSync(join(folder, this.plan), tasks.join('\n'))
  },
  done: (folder) => readFileSync(join(folder, ralph.plan), 'utf8').match(/- \[x\]/g)?.length ?? 0,
  kept: (folder) => bytesIn(join(folder, '.git/ralph/changes/demo/transcripts')),
}

const tui: Tool = {
  name: 'ralph-tui 0.11.0',
  plan: 'prd.json',
  lock: '.ralph-tui/ralph.lock',
  config: '.ralph-tui/config.toml',
  typo: 'configVersion = "2.1"\nagent = "claude"\ntracker = "json"\nautoComit = true\n',
  command: ({ iterations = 20 }) => [
    join(bin, 'ralph-tui'),
    'run',
    '--headless',
    '--prd',
    'prd.json',
    '--iterations',
    String(iterations),
    '--no-notify',
  ],
  again: [
    join(bin, 'ralph-tui'),
    'run',
    '--headless',
    '--prd',
    'prd.json',
    '--iterations',
    '20',
    '--no-notify',
  ],
  prepare(folder, { stories = 2, timeoutSec }) {
    const userStories = numbers(stories).map((n) => ({
      id: `US-00${n}`,
      title: `Story ${n}`,
      description: 'task',
      acceptanceCriteria: ['done'],
      priority: n,
      passes: false,
      dependsOn: n === 1 ? [] : [`US-00${n - 1}`],
    }))
    writeFileSync(join(folder, this.plan), JSON.stringify({ name: 'demo', userStories }))
    mkdirSync(join(folder, '.ralph-tui'))
    const timeout = timeoutSec === undefined ? '' : `[agentOptions]\ntimeout = ${timeoutSec * 1000}\n`
    writeFileSync(
      join(folder, this.config),
      `configVersion = "2.1"\nagent = "claude"\ntracker = "json"\niterationDelay = 0\nautoCommit = true\n${timeout}[errorHandling]\nstrategy = "retry"\nmaxRetries = 3\nretryDelayMs = 0\n`,
    )
  },
  done: (folder) => readFileSync(join(folder, tui.plan), 'utf8').match(/"passes":\s*true/g)?.length ?? 0,
  kept: (folder) => bytesIn(join(folder, '.ralph-tui/iterations')),
}

const works = 'echo "$STORY" >> work.txt; say "Done.\\n<promise>COMPLETE</promise>"'
const isHonest = ({ code, done }: Seen, stories = 2): boolean => (done === stories) === (code === 0)

const scenarios: readonly Scenario[] = [
  {
    name: '10 stories, 5 iterations allowed',
    wish: { stories: 10, iterations: 5 },
    agent: works,
    judge: (seen) => [isHonest(seen, 10) && seen.done === 5, `exit ${seen.code}, ${seen.done} of 10 done`],
  },
  {
    name: 'the promise stands in a tool result only',
    wish: { iterations: 2 },
    agent: 'tool_result "<promise>COMPLETE</promise>"; say "I have read the file."',
    judge: (seen) => [seen.done === 0 && seen.code !== 0, `exit ${seen.code}, ${seen.done} of 2 done`],
  },
  {
    name: 'the agent says FAILED and leaves files',
    wish: { iterations: 4 },
    agent: 'echo junk > junk.txt; say "<promise>FAILED: cannot</promise>"',
    judge: (seen) => [
      seen.done === 0 && seen.code !== 0 && !isThere(seen, 'junk.txt'),
      `exit ${seen.code}, ${seen.runs} runs, its files ${isThere(seen, 'junk.txt') ? 'stay' : 'are gone'}`,
    ],
  },
  {
    name: 'exit 1 with junk left, then a good attempt',
    wish: { stories: 1, iterations: 4 },
    agent: `if [ $RUN = 1 ]; then echo junk > junk.txt; git add junk.txt; exit 1; fi; ${works}`,
    judge: (seen) => [
      seen.done === 1 && !isCommitted(seen, 'junk.txt'),
      `${seen.done} of 1 done, the junk is ${isCommitted(seen, 'junk.txt') ? 'in its commit' : 'in no commit'}`,
    ],
  },
  {
    name: 'COMPLETE, then exit 1',
    wish: { stories: 1, iterations: 4 },
    agent: `${works}; exit 1`,
    judge: (seen) => [
      seen.runs === 1 && isHonest(seen, 1),
      `exit ${seen.code}, ${seen.runs} runs, ${seen.done} of 1 done`,
    ],
  },
  {
    name: 'never a promise',
    wish: { stories: 1, iterations: 12 },
    agent: 'say "I have thought about it."',
    judge: (seen) => [seen.runs <= 5 && seen.code !== 0, `exit ${seen.code} after ${seen.runs} runs`],
  },
  {
    name: 'the agent destroys the plan, then COMPLETE',
    wish: { iterations: 4 },
    agent:
      'for f in prd.json openspec/changes/demo/tasks.md; do [ -f $f ] && echo "{broken" > $f; done; say "<promise>COMPLETE</promise>"',
    judge: (seen) => [
      seen.code !== 0 && !readFileSync(join(seen.folder, seen.tool.plan), 'utf8').includes('{broken'),
      `exit ${seen.code}, the plan is ${readFileSync(join(seen.folder, seen.tool.plan), 'utf8').includes('{broken') ? 'broken' : 'back'}`,
    ],
  },
  {
    name: 'SIGTERM, the agent ignores it',
    wish: { stories: 1 },
    agent:
      "trap '' TERM INT; touch started; i=0; while [ $i -lt 300 ]; do sleep 0.1; echo $i > half.txt; i=$((i+1)); done",
    during: async (pid, folder) => {
      await fileThere(join(folder, 'started'))
      process.kill(pid, 'SIGTERM')
    },
    judge: (seen) => [
      seen.code === 143 && seen.alive.length === 0,
      `exit ${seen.code}, ${seen.alive.length === 0 ? 'nothing left running' : 'the agent keeps running'}`,
    ],
  },
  {
    name: 'kill -9, then started again',
    wish: { stories: 1 },
    agent: `if [ $RUN = 1 ]; then trap '' TERM INT; touch started; i=0; while [ $i -lt 300 ]; do sleep 0.1; echo half > half.txt; i=$((i+1)); done; fi; ${works}`,
    during: async (pid, folder) => {
      await fileThere(join(folder, 'half.txt'))
      process.kill(pid, 'SIGKILL')
    },
    rerun: true,
    judge: (seen) => [
      seen.alive.length === 0 && seen.done === 1 && !isCommitted(seen, 'half.txt'),
      `${seen.done} of 1 done, ${seen.alive.length === 0 ? 'orphan stopped' : 'the orphan keeps running'}, half-written file ${isCommitted(seen, 'half.txt') ? 'committed' : 'not committed'}`,
    ],
  },
  {
    name: 'the agent leaves a server running',
    wish: { stories: 1 },
    agent: `sleep 25 & ${works}`,
    judge: (seen) => [
      seen.ms < 20_000 && seen.alive.length === 0 && seen.done === 1,
      `${seen.ms < 20_000 ? 'continues' : 'waits for it'} (${seconds(seen)}), ${seen.alive.length === 0 ? 'server stopped' : 'server left'}`,
    ],
  },
  {
    name: 'timeout of 2 s, a grandchild holds the pipe',
    wish: { stories: 1, iterations: 1, timeoutSec: 2 },
    agent: "(trap '' TERM; sleep 20) & sleep 20; wait",
    judge: (seen) => [
      seen.ms < 12_000 && seen.alive.length === 0,
      `over after ${seconds(seen)}, ${seen.alive.length} processes left`,
    ],
  },
  {
    name: 'a usage limit that resets in 5 s, headless',
    wish: { stories: 1 },
    agent: `if [ $RUN = 1 ]; then limit 5; exit 1; fi; ${works}`,
    judge: (seen) => [
      seen.done === 1 && seen.code === 0,
      seen.code === 'SIGKILL' ? 'hangs (stopped after 60 s)' : `exit ${seen.code}, ${seen.done} of 1 done`,
    ],
  },
  {
    name: '50 lines of 200 KB each',
    wish: { stories: 1 },
    agent: `flood 50; ${works}`,
    judge: (seen) => {
      const share = Math.min(100, Math.round((seen.tool.kept(seen.folder) / 10_000_000) * 100))
      return [share === 100, `${share} % of the output kept`]
    },
  },
  {
    name: 'a pre-commit hook that fails',
    wish: { stories: 1 },
    agent: works,
    before: (folder) =>
      writeFileSync(join(folder, '.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 }),
    judge: (seen) => [
      isCommitted(seen, 'work.txt') || seen.code !== 0,
      `exit ${seen.code}, the work is ${isCommitted(seen, 'work.txt') ? 'saved' : 'in no commit'}`,
    ],
  },
  {
    name: 'a typing error in the settings',
    wish: { stories: 1 },
    agent: works,
    before: (folder, tool) => writeFileSync(join(folder, tool.config), tool.typo),
    judge: (seen) => [
      seen.code !== 0 &&
        seen.runs === 0 &&
        readFileSync(join(seen.folder, seen.tool.config), 'utf8') === seen.tool.typo,
      `exit ${seen.code}, ${seen.runs} runs, file ${readFileSync(join(seen.folder, seen.tool.config), 'utf8') === seen.tool.typo ? 'as it was' : 'rewritten'}`,
    ],
  },
  {
    name: 'the story that others build on fails',
    wish: { stories: 3, iterations: 12 },
    agent: `if [ $STORY = 1 ]; then say "<promise>FAILED: no</promise>"; exit 1; fi; ${works}`,
    judge: (seen) => [
      seen.done === 0 && seen.code !== 0,
      `exit ${seen.code}, ${seen.done} of 3 done, the later ones ${seen.done === 0 ? 'not run' : 'run'}`,
    ],
  },
  {
    name: 'an empty lock file',
    wish: { stories: 1 },
    agent: works,
    before: (folder, tool) => {
      mkdirSync(join(folder, tool.lock, '..'), { recursive: true })
      writeFileSync(join(folder, tool.lock), '')
    },
    judge: (seen) => [seen.done === 1, seen.done === 1 ? 'recovered' : `blocked, exit ${seen.code}`],
  },
]

try {
  standIn()
  console.log(`| | scenario | ${ralph.name} | | ${tui.name} | |\n|---|---|---|---|---|---|`)
  const passed = new Map([
    [ralph, 0],
    [tui, 0],
  ])
  for (const [index, scenario] of scenarios.entries()) {
    if (only !== undefined && index + 1 !== only) continue
    const cells: string[] = []
    for (const tool of [ralph, tui]) {
      const [ok, words] = await play(scenario, tool)
      if (ok) passed.set(tool, (passed.get(tool) ?? 0) + 1)
      cells.push(words, ok ? 'yes' : 'no')
    }
    console.log(`| ${index + 1} | ${scenario.name} | ${cells.join(' | ')} |`)
  }
  console.log(
    `\n${ralph.name}: ${passed.get(ralph)} of ${scenarios.length}, ${tui.name}: ${passed.get(tui)} of ${scenarios.length}`,
  )
  process.exitCode = passed.get(ralph) === (only === undefined ? scenarios.length : 1) ? 0 : 1
} finally {
  rmSync(temp, { recursive: true, force: true })
}

async function play(scenario: Scenario, tool: Tool): Promise<readonly [boolean, string]> {
  const folder = mkdtempSync(join(temp, 'repository-'))
  const wish = scenario.wish ?? {}
  writeFileSync(join(folder, '.gitignore'), '.ralph-tui/\n/started\n/runs\n')
  tool.prepare(folder, wish)
  commitRepository(folder)
  scenario.before?.(folder, tool)
  const agent = join(folder, '..', `${folder.split('-').at(-1)}.sh`)
  writeFileSync(agent, scenario.agent)
  const marker = `SCENARIO=${folder}`
  const env = {
    ...cleanEnv(),
    PATH: [join(temp, 'bin'), bin, process.env['PATH']].join(delimiter),
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    STAND_IN: agent,
    SCENARIO: folder,
  }
  const one = async (argv: readonly string[], during?: Scenario['during']): Promise<Ended> => {
    const began = performance.now()
    const child = spawn(argv[0] ?? '', argv.slice(1), { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')))
    const patience = setTimeout(() => child.kill('SIGKILL'), 60_000)
    const exit = once(child, 'exit')
    await during?.(child.pid ?? 0, folder)
    const [code, signal] = (await exit) as [number | null, string | null]
    clearTimeout(patience)
    return { code: code ?? signal ?? '', ms: performance.now() - began, said }
  }
  let ended = await one(tool.command(wish), scenario.during)
  if (scenario.rerun === true) ended = await one(tool.again)
  const alive = marked(marker)
  const runs = existsSync(join(folder, 'runs')) ? readFileSync(join(folder, 'runs'), 'utf8').length : 0
  const result = scenario.judge({ ...ended, folder, tool, runs, done: tool.done(folder), alive })
  for (const pid of alive) process.kill(pid, 'SIGKILL')
  return result
}

/** The same program for both: a shell that speaks Claude's stream-json. */
function standIn(): void {
  mkdirSync(join(temp, 'bin'), { recursive: true })
  mkdirSync(join(home, '.config'), { recursive: true })
  const script = String.raw`#!/bin/bash
if [ "$1" = --version ]; then echo 9.9.9; exit 0; fi
prompt=$(cat)
printf x >> runs
RUN=$(wc -c < runs)
STORY=$(printf '%s' "$prompt" | grep -oE 'US-00[0-9]+|Story [0-9]+' | head -1 | grep -oE '[0-9]+$' | sed 's/^0*//')
say() { printf '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1"; printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"ok"}\n'; }
tool_result() { printf '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"%s"}]}}\n' "$1"; }
limit() {
  at=$(( $(date +%s) + $1 ))
  printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' "$at"
  printf '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"You have hit your limit"}\n'
  echo 'Error: 429 rate limit exceeded, retry-after: 5' >&2
}
flood() { text=$(head -c 200000 /dev/zero | tr '\0' x); for i in $(seq "$1"); do printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$i" "$text"; done; }
. "$STAND_IN"
`
  writeFileSync(join(temp, 'bin', 'claude'), script, { mode: 0o755 })
}

function marked(marker: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => {
    try {
      return pid !== process.pid && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(marker)
    } catch {
      // Gone meanwhile.
      return false
    }
  })
}

async function fileThere(path: string): Promise<void> {
  while (!existsSync(path)) await new Promise((done) => setTimeout(done, 20))
}

function isThere({ folder }: Seen, path: string): boolean {
  return existsSync(join(folder, path))
}

function isCommitted({ folder }: Seen, path: string): boolean {
  return spawnSync('git', ['cat-file', '-e', `HEAD:${path}`], { cwd: folder }).status === 0
}

function bytesIn(folder: string): number {
  if (!existsSync(folder)) return 0
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

function seconds({ ms }: Seen): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}
