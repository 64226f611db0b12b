// Every command line of README and docs is run as it stands, in a scratch repository with stand-ins for the agents; or it is on the list, with the reason.
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath } from '../agents/kit.ts'
import { keep, program, ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { install, installClaude } from './usage-kit.ts'

const root = resolve(import.meta.dirname, '../..')
const pages = ['README.md', 'docs', 'docs/how-to'].flatMap((path) =>
  path.endsWith('.md')
    ? [path]
    : readdirSync(join(root, path))
        .filter((name) => name.endsWith('.md'))
        .map((name) => `${path}/${name}`),
)

const network = 'from the network'
const login = 'asks a person to log in'
const long = 'takes minutes, or installs other programs; run by hand before a release'
/** By page and line: why it is not run here. */
const notRun: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': { 'npm install --global ralphtool': network, 'npx ralphtool demo': network },
  'docs/how-to/your-agent.md': {
    'npm install --global @anthropic-ai/claude-code': network,
    claude: login,
    'npm install --global @openai/codex': network,
    'codex login': login,
    'npm install --global opencode-ai': network,
    'opencode auth login': login,
    'npm install --global @google/gemini-cli': network,
    gemini: login,
  },
  'docs/comparison.md': { 'npm run bench scenarios': long, 'npx tsx bench/scenarios.ts 9': long },
  'docs/performance.md': {
    'npm run bench': long,
    'npm run bench -- --peers': long,
    'npm run bench -- between status': long,
    'npm run bench -- --quick': long,
  },
  'docs/torture.md': {
    'npm run torture': long,
    'npm run torture -- --rounds 500 --seed 11': long,
    'npm run torture -- --seed 11 --only 37': long,
    'npm run torture -- --seed 11 --only 37 --plan': long,
    'npm run torture -- --rounds 100 --mode worktree': long,
  },
}

interface Block {
  readonly page: string
  readonly lines: readonly string[]
}

/** Without its comment and its blanks, as the list names it. */
function bare(line: string): string {
  return line.replace(/\s+#\s.*$/, '').trim()
}

/** `sh` as it is, of a crontab what follows the time. A file that begins with #! is one that another line runs. */
function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  const found = text.matchAll(/^```(sh|bash|shell|console|crontab)\n(.*?)^```$/gms)
  return [...found].map(([, language, body = '']) => {
    const lines = body.replaceAll(/\\\n\s*/g, '').split('\n')
    const typed = language === 'crontab' ? lines.map((line) => line.replace(/^(?:\S+\s+){5}/, '')) : lines
    return { page, lines: typed }
  })
}

const blocks = pages.flatMap(blocksOf)
const isFile = ({ lines: [first = ''] }: Block): boolean => first.startsWith('#!')
const startsLoop = (line: string): boolean =>
  /\bralph (?:loop|run)\b/.test(line) && !line.includes('--dry-run')

const others = ['add-logout', 'add-greeting', 'add-export', 'fix-menu', 'polish']

/** What a reader of these pages has: the plans that the lines name, scripts that pass, a remote, and the programs that they name. */
function readersRepository(part: readonly string[]): Scratch {
  const at = scratch({ tasks: tasksOf(1) })
  at.git('mv', 'openspec/changes/demo', 'openspec/changes/add-login')
  const named = others.filter((change) => part.some((line) => line.includes(change)))
  for (const change of named) at.write(`openspec/changes/${change}/tasks.md`, tasksOf(1))
  const scripts = { test: 'true', lint: 'true', unit: 'true', typecheck: 'true' }
  at.write('package.json', JSON.stringify({ scripts }))
  at.write('src/x', 'x\n')
  at.write('notes.md', 'mine\n')
  for (const block of blocks.filter(isFile)) at.write('my-agent.sh', `${block.lines.join('\n')}\n`)
  chmodSync(join(at.repo, 'my-agent.sh'), 0o755)
  at.git('add', '-A')
  at.git('commit', '-qm', 'plans')
  at.git('init', '-q', '--bare', join(at.root, 'origin.git'))
  at.git('remote', 'add', 'origin', join(at.root, 'origin.git'))
  install(at, 'ralph', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
  installClaude(at)
  install(at, 'codex', `#!/bin/sh\nexec "${process.execPath}" '${agentPath('codex-works.mjs')}'\n`)
  install(at, 'copilot', `#!/bin/sh\nexec "${process.execPath}" '${agentPath('acp-works.mjs')}'\n`)
  const lines = (...events: readonly object[]): string =>
    `#!/bin/sh\ncat > /dev/null\necho x > "$RALPH_STORY.txt"\ncat <<'END'\n${events.map((event) => JSON.stringify(event)).join('\n')}\nEND\n`
  const promise = '<promise>COMPLETE</promise>'
  install(
    at,
    'gemini',
    lines(
      { type: 'init', session_id: 's', model: 'm' },
      { type: 'message', role: 'assistant', content: promise },
      { type: 'result', status: 'success', stats: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
    ),
  )
  install(
    at,
    'opencode',
    lines(
      { type: 'text', sessionID: 's', part: { text: promise } },
      {
        type: 'step_finish',
        sessionID: 's',
        part: { reason: 'stop', cost: 0, tokens: { input: 1, output: 1 } },
      },
    ),
  )
  for (const name of ['my-model', 'gh', 'mail', 'npm', 'npx'])
    install(at, name, `#!/bin/sh\n${name === 'my-model' ? `echo '${promise}'` : 'cat > /dev/null'}\n`)
  install(at, 'jq', '#!/bin/sh\nexec cat\n')
  // Runs at once what it would run in a window of its own.
  install(
    at,
    'tmux',
    '#!/bin/sh\n[ "$1" = new-session ] || exit 0\nfor last in "$@"; do :; done\nexec sh -c "$last"\n',
  )
  symlinkSync(at.repo, join(at.root, 'home/project'))
  at.env['ANTHROPIC_API_KEY'] = 'k'
  // As a job has it: no line asks anything.
  at.env['GIT_TERMINAL_PROMPT'] = '0'
  return at
}

/** With a run as most pages speak of one: the first story is done, the second has failed at its gate. */
async function withStuckRun(): Promise<Scratch> {
  if (stuckAgain !== undefined) return stuckAgain()
  const at = readersRepository([])
  at.write('openspec/changes/add-login/tasks.md', tasksOf(2))
  at.git('commit', '-qam', 'two stories')
  const broken = join(at.root, 'broken')
  writeFileSync(broken, '')
  const gate = `[ "$RALPH_STORY" = 1 ] || ! [ -e '${broken}' ] || { echo "expected 1, got 2"; exit 1; }`
  const words = ['loop', 'add-login', '--agent', 'claude', '--verify', gate, '--max-retries', '1']
  expect((await ralph(at, words)).code).toBe(3)
  rmSync(broken)
  stuckAgain = keep(at)
  return at
}

let stuckAgain: (() => Scratch) | undefined
let queueAgain: (() => Scratch) | undefined

/** A change that is done in a work tree of its own, one that is parked, and one that waits. */
async function withQueue(): Promise<Scratch> {
  if (queueAgain !== undefined) return queueAgain()
  const at = readersRepository(others)
  const fails = ['--agent-command', 'false', '--max-retries', '0']
  expect((await ralph(at, ['loop', 'add-login', '--agent', 'claude', '--worktree'])).code).toBe(0)
  expect((await ralph(at, ['up', 'add-export', ...fails])).code).toBe(3)
  expect((await ralph(at, ['queue', 'add', 'polish'])).code).toBe(0)
  queueAgain = keep(at)
  return at
}

/** For the ways back by plain git: a branch that was archived, and a stash. Each line is a way of its own. */
async function byGit(at: Scratch, lines: readonly string[]): Promise<readonly string[]> {
  const failing = ['--agent', 'claude', '--fresh', '--verify', 'false', '--max-retries', '2']
  expect((await ralph(at, ['loop', 'add-login', ...failing])).code).toBe(3)
  at.write('noted.txt', 'x')
  at.git('stash', 'push', '-qu')
  const archive = 'refs/ralph/add-login/archive'
  const [archived = ''] = at.git('for-each-ref', '--format=%(refname:lstrip=4)', archive).split('\n')
  const names = { '<change>': 'add-login', '<base>': 'main', '<time>': archived, '<hash>': 'stash@{0}' }
  const named = (line: string): string =>
    Object.entries(names).reduce((text, [name, value]) => text.replaceAll(name, value), line)
  return lines.filter(Boolean).flatMap((line) => ['git reset -q --hard && git clean -qfd', named(line)])
}

/** The last line is one for after the end. */
async function inSubmodule(lines: readonly string[]): Promise<[Scratch, readonly string[]]> {
  const at = readersRepository([])
  at.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', at.repo, 'sub')
  at.git('commit', '-qm', 'a submodule')
  at.write('sub/x', 'mine\n')
  const agent = `echo x >> sub/x; echo '<promise>COMPLETE</promise>'`
  expect((await ralph(at, ['loop', 'add-login', '--agent-command', agent])).code).toBe(0)
  const archive = 'refs/ralph/add-login/superproject/archive'
  const time = `$(git -C sub for-each-ref --format='%(refname:lstrip=5)' ${archive})`
  const named = lines
    .filter(Boolean)
    .map((line) => line.replace('<change>', 'add-login').replace('<time>', time))
  return [at, [...named.slice(0, -1), 'ralph finish --cleanup', ...named.slice(-1), 'grep mine sub/x']]
}

/** Where the lines are typed, and with the names that things have there. */
async function sceneOf(page: string, part: readonly string[]): Promise<[Scratch, readonly string[]]> {
  if (part.some((line) => line.includes('git -C sub'))) return inSubmodule(part)
  const isFresh = part.some((line) => /\bralph (?:loop|run|demo|init|up)\b/.test(bare(line)))
  if (isFresh) return [readersRepository(part), part]
  if (page === 'docs/parallel.md')
    return [await withQueue(), part.map((line) => line.replace('../greeter-', '../repo-'))]
  const at = await withStuckRun()
  return [at, part.every((line) => /^(?:git |$)/.test(line)) ? await byGit(at, part) : part]
}

/** As one script of a shell: a line may use what another has set. Says which line failed. */
function typed(at: Scratch, lines: readonly string[]): Promise<{ code: number | null; said: string }> {
  const script = `set -eo pipefail\ntrap 'echo "FAILED: $BASH_COMMAND" >&2' ERR\n${lines.join('\n')}\nwait\n`
  const child = spawn('bash', ['-c', script], { cwd: at.repo, env: at.env })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')))
  child.stdin.on('error', () => undefined)
  child.stdin.end('{}')
  return new Promise((done) => child.on('close', (code) => done({ code, said })))
}

/** At a run that is there. */
const looks = /\bralph (?:status|usage|report|why|logs|history|attempts|diff|restore|finish|resume|stop)\b/

/** Each loop that a block starts is started in a repository of its own; what follows it looks at that one. */
function partsOf(lines: readonly string[]): readonly (readonly string[])[] {
  const parts: string[][] = [[]]
  for (const line of lines) {
    const last = parts.at(-1) ?? []
    // Of several that run side by side each has its own work tree.
    const isAnother =
      startsLoop(line) &&
      last.some((each) => startsLoop(each) || looks.test(each)) &&
      !line.trim().endsWith('&')
    if (isAnother) parts.push([line])
    else last.push(line)
  }
  return parts
}

describe('the lines of README and docs', () => {
  test('every line on the list is in its page, and has a reason', () => {
    const stale = Object.entries(notRun).flatMap(([page, lines]) => {
      const there = new Set(
        blocks.filter((block) => block.page === page).flatMap(({ lines: all }) => all.map(bare)),
      )
      return Object.keys(lines).filter((line) => !there.has(line))
    })
    expect(stale).toEqual([])
    // Of those that take long, at least the name.
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
    const named = blocks.flatMap(({ lines }) =>
      lines.flatMap((line) => /^npm run (\S+)/.exec(line)?.[1] ?? []),
    )
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named))
    expect(named).toContain('torture')
    expect(blocks.flatMap(({ lines }) => lines).length).toBeGreaterThan(60)
  })

  const cases = blocks.flatMap((block) => {
    const left = notRun[block.page] ?? {}
    const lines = isFile(block) ? [] : block.lines.filter((line) => left[bare(line)] === undefined)
    return lines.every((line) => bare(line) === '')
      ? []
      : partsOf(lines).map((part) => ({
          page: block.page,
          part,
          first: bare(part.find((line) => bare(line) !== '') ?? ''),
        }))
  })

  test.each(cases)('$page: $first', async ({ page, part }) => {
    const { code, said } = await typed(...(await sceneOf(page, part)))
    expect({ code, said: code === 0 ? '' : said }).toEqual({ code: 0, said: '' })
  })

  test('a line that is neither run nor on the list cannot be: a new one is run, and fails if it does not work', async () => {
    const at = readersRepository([])
    expect(await typed(at, ['ralph loop add-logn'])).toMatchObject({
      code: 2,
      said: expect.stringContaining('FAILED: ralph loop add-logn') as string,
    })
    expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
  })
})
