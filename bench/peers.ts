// ralph beside its peers, in one run: start-up, overhead per story, and a flood of output, all with the same stand-in for Claude Code.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { commitRepository, compare, print, timed, type Competitor } from './measure.ts'
import { installPeers, program } from './peer-programs.ts'

const stories = Number(process.argv[2] ?? 10)
const rounds = Number(process.argv[3] ?? 3)
const megabytes = 50
const packages = ['ralph-tui@0.11.0', 'ralphy-cli@4.7.2', 'bun@1.4.4']

const bin = join(installPeers(packages), 'node_modules', '.bin')
const temp = mkdtempSync(join(tmpdir(), 'ralph-bench-peers-'))
const env = {
  PATH: [join(temp, 'bin'), bin, process.env['PATH']].join(delimiter),
  // Their settings and caches stay out of the user's home.
  HOME: join(temp, 'home'),
  XDG_CONFIG_HOME: join(temp, 'home', '.config'),
}
const peer = (file: string, args: readonly string[], cwd = temp, more = {}): number =>
  timed(join(bin, file), args, { cwd, env: { ...env, ...more } })
const ralph = (args: readonly string[], cwd = temp, more = {}): number =>
  timed(process.execPath, [program, ...args], { cwd, env: { ...env, ...more } })
const plainLoop = 'git rev-parse HEAD; echo prompt | claude -p; git add -A; git commit -qm checkpoint'

try {
  standIn()
  print(
    'start-up: --version',
    compare(
      [
        { name: 'node -e 0', sample: () => timed(process.execPath, ['-e', '0']) },
        { name: 'ralph', sample: () => ralph(['--version']) },
        { name: 'ralph-tui', sample: () => peer('ralph-tui', ['--version']) },
        { name: 'ralphy', sample: () => peer('ralphy', ['--version']) },
      ],
      rounds * 3,
    ),
  )
  print(
    `a story of ${stories}, 100 files (ralphy does no git work)`,
    compare(perStory(stories, 'works'), rounds),
  )
  print(`one story with ${megabytes} MB of stream-json`, compare(perStory(1, 'floods'), rounds))
} finally {
  rmSync(temp, { recursive: true, force: true })
}

function perStory(count: number, behaviour: 'works' | 'floods'): Competitor[] {
  const more = { STAND_IN: behaviour }
  const per = (name: string, work: (folder: string) => number): Competitor => ({
    name,
    sample() {
      const folder = repository(count)
      const ms = work(folder)
      const lines = readFileSync(join(folder, 'work.txt'), 'utf8').split('\n').length - 1
      // Exit codes do not tell with all of them.
      if (lines !== count) throw new Error(`${name} ran its agent ${lines} times, not ${count}`)
      rmSync(folder, { recursive: true })
      return ms / count
    },
  })
  const shell = `for i in $(seq ${count}); do ${plainLoop}; done > /dev/null`
  return [
    per('shell loop: rev-parse, agent, add -A, commit', (cwd) =>
      timed('sh', ['-c', shell], { cwd, env: { ...env, ...more } }),
    ),
    per('ralph loop --json', (cwd) => ralph(['loop', 'demo', '--agent', 'claude', '--json'], cwd, more)),
    per('ralph-tui run --headless', (cwd) =>
      peer(
        'ralph-tui',
        ['run', '--headless', '--prd', 'prd.json', '--iterations', '1000', '--no-notify'],
        cwd,
        more,
      ),
    ),
    per('ralphy --fast', (cwd) => peer('ralphy', ['--claude', '--fast', '--prd', 'PRD.md'], cwd, more)),
  ]
}

function repository(count: number): string {
  const folder = mkdtempSync(join(temp, 'repository-'))
  const numbers = Array.from({ length: count }, (_, n) => n + 1)
  mkdirSync(join(folder, 'openspec/changes/demo'), { recursive: true })
  const tasks = numbers.map((n) => `## ${n}. Story\n\n- [ ] ${n}.1 task\n`)
  writeFileSync(join(folder, 'openspec/changes/demo/tasks.md'), tasks.join('\n'))
  writeFileSync(join(folder, 'PRD.md'), `${numbers.map((n) => `- [ ] task ${n}`).join('\n')}\n`)
  const userStories = numbers.map((n) => ({
    id: `US-${String(n).padStart(3, '0')}`,
    title: `Story ${n}`,
    description: 'task',
    acceptanceCriteria: ['done'],
    priority: 1,
    passes: false,
    dependsOn: [],
  }))
  writeFileSync(join(folder, 'prd.json'), JSON.stringify({ name: 'bench', userStories }))
  mkdirSync(join(folder, '.ralph-tui'))
  writeFileSync(
    join(folder, '.ralph-tui', 'config.toml'),
    'configVersion = "2.1"\nagent = "claude"\ntracker = "json"\niterationDelay = 0\nautoCommit = true\n',
  )
  writeFileSync(join(folder, '.gitignore'), '.ralph-tui/\n.ralphy/\n')
  commitRepository(folder)
  return folder
}

/** A shell script: starting a Node for each story would hide the differences. It ticks ralphy's boxes, whose agents must. */
function standIn(): void {
  mkdirSync(join(temp, 'bin'), { recursive: true })
  mkdirSync(join(temp, 'home', '.config'), { recursive: true })
  const result = JSON.stringify({
    type: 'user',
    message: {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 't', content: 'x'.repeat(8000) }],
    },
  })
  writeFileSync(
    join(temp, 'flood.ndjson'),
    `${result}\n`.repeat(Math.ceil((megabytes * 1024 ** 2) / result.length)),
  )
  const text = JSON.stringify({
    type: 'assistant',
    message: { id: 'm', content: [{ type: 'text', text: 'Done.\n<promise>COMPLETE</promise>' }] },
    parent_tool_use_id: null,
  })
  const end = JSON.stringify({
    type: 'result',
    subtype: 'success',
    is_error: false,
    num_turns: 1,
    result: 'Done.',
  })
  const script = `#!/bin/sh
if [ "$1" = --version ]; then echo 9.9.9; exit 0; fi
[ -t 0 ] || cat > /dev/null
echo x >> work.txt
if [ "$STAND_IN" = floods ]; then cat '${join(temp, 'flood.ndjson')}'; fi
cat <<'END'
${text}
${end}
END
`
  writeFileSync(join(temp, 'bin', 'claude'), script, { mode: 0o755 })
}
