// `ralph mcp`: what the official client sees, what a second one hears, what a bad one cannot do, and that a look never writes.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { pointedAt, realAgent, type RealAgent } from '../model-stub/real-agents.ts'
import { goodAgent, program, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { connect, inspect, installInspector, pictureOf } from './mcp-kit.ts'
import type { McpClient, Message } from './mcp-kit.ts'
import { onTerminal } from './on-terminal.ts'
import { install } from './usage-kit.ts'

const looks = [
  'list_loops',
  'get_ralph_status',
  'get_loop_history',
  'get_loop_log',
  'get_attempt_diff',
  'list_changes',
  'get_change',
]
const controls = ['start_loop', 'resume_loop', 'stop_loop', 'finish_loop']

/** Says something, and waits until the test lets it go on. */
const waits = (at: Scratch): string =>
  `echo "story $RALPH_STORY begins"; until [ -e '${at.root}/go' ]; do sleep 0.05; done; echo x > "story-$RALPH_STORY.txt"; echo "<promise>COMPLETE</promise>"`

/** The first attempt fails, and the rest is done. */
const failsOnce =
  'echo "work of $RALPH_STORY" > "story-$RALPH_STORY.txt"; if [ "$RALPH_ITERATION" = 1 ]; then echo "<promise>FAILED: not yet</promise>"; else echo "<promise>COMPLETE</promise>"; fi'

function loopsIn(data: unknown): Record<string, unknown>[] {
  return (data as { loops: Record<string, unknown>[] }).loops
}

async function namesOf(client: McpClient): Promise<string[]> {
  const { result = {} } = await client.ask('tools/list')
  return (result['tools'] as { name: string }[]).map(({ name }) => name)
}

/** A work tree of the same repository, with a state file as wt-tools writes them. */
function wtTree(at: Scratch, name: string, state: object): string {
  const tree = join(at.root, name)
  at.git('worktree', 'add', '-q', '--detach', tree)
  mkdirSync(join(tree, '.claude'))
  writeFileSync(join(tree, '.claude/loop-state.json'), JSON.stringify(state))
  return tree
}

beforeAll(installInspector)

test('MCP: the official inspector lists and calls every tool and reads every resource', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  expect((await ralph(at, ['loop', 'demo', '--agent-command', failsOnce, '--verify', 'true'])).code).toBe(0)
  const call = (name: string, ...args: string[]): readonly string[] => {
    const pairs = args.flatMap((pair) => ['--tool-arg', pair])
    return ['--method', 'tools/call', '--tool-name', name, ...pairs]
  }
  const read = (uri: string): readonly string[] => ['--method', 'resources/read', '--uri', uri]
  // The inspector checks each answer against the schema that the tool is listed with.
  const answers = await inspect(
    at,
    [],
    [
      ['--method', 'tools/list', '--strict'],
      call('list_loops'),
      call('get_ralph_status', 'change_id=demo'),
      call('get_loop_history', 'change_id=demo', 'last=2'),
      call('get_loop_log', 'iteration=1', 'tail=5'),
      call('get_attempt_diff', 'n=1'),
      call('list_changes'),
      call('get_change', 'change_id=demo'),
      ['--method', 'resources/list'],
      ['--method', 'resources/templates/list'],
      read('ralph://loops'),
      read('ralph://loops/demo'),
    ],
  )
  expect(answers.filter(({ isError }) => isError === true)).toEqual([])
  const [{ tools = [] }, loops, status, history, log, diff, changes, change, listed, templates, all, one] =
    answers
  expect(tools.map(({ name }) => name)).toEqual(looks)
  expect(tools.filter((tool) => tool.outputSchema === undefined || !tool.annotations?.readOnlyHint)).toEqual(
    [],
  )
  expect(loops.structuredContent).toMatchObject({
    loops: [{ change_id: 'demo', status: 'done', freshness: 'ended' }],
  })
  expect(status.content?.[0]?.text).toMatch(
    /^Ralph Loop Status:\n\n {2}✅ demo \(repo\)\n {5}Status: done\n {5}Iteration: 3\/8\n {5}Ran for: 0m\n {5}Task: Demo change\n/,
  )
  expect(loopsIn(status.structuredContent)[0]).toMatchObject({
    stories: [{ status: 'done' }, { status: 'done' }],
    last_iteration: { n: 3, verdict: 'complete' },
    branch: 'ralph/demo',
  })
  expect(history.structuredContent).toMatchObject({
    iterations_total: 3,
    iterations: [{ n: 2 }, { n: 3 }],
  })
  expect(log.structuredContent).toMatchObject({
    iteration: 1,
    story_id: '1',
    is_cut: false,
    text: expect.stringContaining('FAILED: not yet'),
  })
  expect(diff.structuredContent).toMatchObject({ n: 1, patch: expect.stringContaining('+work of 1') })
  expect(changes.structuredContent).toMatchObject({
    changes: [{ name: 'demo', stories_done: 2, status: 'done' }],
  })
  expect(change.structuredContent).toMatchObject({ stories: [{ id: '1' }, { id: '2' }] })

  expect(listed.resources?.map(({ uri }) => uri)).toEqual(['ralph://loops', 'ralph://loops/demo'])
  expect(templates.resourceTemplates).toMatchObject([{ uriTemplate: 'ralph://loops/{change_id}' }])
  expect(JSON.parse(all.contents?.[0]?.text ?? '')).toEqual(loops.structuredContent)
  expect(JSON.parse(one.contents?.[0]?.text ?? '')).toMatchObject({ change_id: 'demo', status: 'done' })
})

test('MCP: the official inspector lists and calls every tool that controls, too', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('ralph.yaml', `agent_command: ${JSON.stringify(waits(at))}\n`)
  at.git('add', '-A')
  at.git('commit', '-qm', 'settings')
  const allowed = ['--allow-control']
  const deed = (name: string, ...args: string[]): readonly string[] => {
    const pairs = ['change_id=demo', ...args].flatMap((pair) => ['--tool-arg', pair])
    return ['--method', 'tools/call', '--tool-name', name, ...pairs]
  }
  const [{ tools = [] }, begun, stopped, resumed] = await inspect(at, allowed, [
    ['--method', 'tools/list', '--strict'],
    deed('start_loop', 'max_retries=0'),
    deed('stop_loop'),
    deed('resume_loop', 'feedback=go on'),
  ])
  expect(tools.map(({ name }) => name)).toEqual([...looks, ...controls])
  expect(tools.filter(({ outputSchema }) => outputSchema === undefined)).toEqual([])
  expect(begun.structuredContent).toMatchObject({ started: true, change_id: 'demo' })
  expect(stopped.structuredContent).toMatchObject({ stopped: true })
  expect(resumed.structuredContent).toMatchObject({ started: true })
  writeFileSync(join(at.root, 'go'), '')
  const client = await connect(at)
  await expect
    .poll(async () => loopsIn((await client.call('list_loops')).data))
    .toMatchObject([{ status: 'done', freshness: 'ended' }])
  const [finished] = await inspect(at, allowed, [deed('finish_loop', 'choice=cleanup')])
  expect(finished.structuredContent).toMatchObject({ message: expect.any(String) })
  expect(at.git('branch', '--show-current')).toBe('main')
  expect(at.read('story-1.txt')).toBe('x\n')
})

const page = readFileSync(resolve(import.meta.dirname, '../../docs/mcp.md'), 'utf8')

/** In a repository where `ralph` is on PATH, with the real CLI. */
function hostOf(agent: RealAgent): { at: Scratch; sh: (command: string) => string } {
  const at = scratch()
  install(at, 'ralph', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
  const { bin } = realAgent(agent)
  const env = { ...at.env, ...pointedAt(agent, 'http://127.0.0.1:9', at.env['HOME'] ?? '').env }
  env['PATH'] = `${at.env['PATH']}:${bin}`
  env['GEMINI_CLI_TRUST_WORKSPACE'] = 'true'
  // It would begin a second time, for a larger heap: a third of its work.
  env['GEMINI_CLI_NO_RELAUNCH'] = 'true'
  const sh = (command: string): string =>
    execFileSync('sh', ['-c', `${command} 2>&1`], { cwd: at.repo, env, encoding: 'utf8' })
  return { at, sh }
}

for (const [agent, listed] of [
  ['claude', /ralph mcp - .*Connected/],
  ['codex', /ralph +ralph +mcp/],
  ['gemini', /ralph: ralph mcp .*Connected/],
] as const) {
  const { missing } = realAgent(agent)
  test.skipIf(agent === 'gemini' && missing !== '')(
    `MCP: what docs/mcp.md tells to type is understood by the real ${agent}`,
    () => {
      expect(missing).toBe('')
      const { sh } = hostOf(agent)
      const [, line = ''] = new RegExp(`\`(${agent} mcp add [^\`]+)\``).exec(page) ?? []
      expect(sh(line)).toContain('ralph')
      expect(sh(`${agent} mcp list`)).toMatch(listed)
    },
  )
}

test.skipIf(realAgent('opencode').missing !== '')(
  'MCP: what docs/mcp.md tells to write for the real OpenCode connects',
  () => {
    const { at, sh } = hostOf('opencode')
    const [, entry = ''] = /`(\{ "mcp": [^`]+)`/.exec(page) ?? []
    at.write('opencode.json', entry)
    expect(sh('opencode mcp list')).toMatch(/ralph .*connected/)
  },
)

test.each(['2025', '2026'] as const)(
  'MCP: a second client subscribes and hears of a loop while it runs, in the protocol of %s',
  async (era) => {
    const at = scratch({ tasks: tasksOf(1) })
    const [one, two] = await Promise.all([connect(at), connect(at, [], { era })])
    if (era === '2025') {
      await two.ask('resources/subscribe', { uri: 'ralph://loops' })
      await two.ask('resources/subscribe', { uri: 'ralph://loops/demo' })
    } else {
      // Answered when it ends, which it does not.
      void two
        .ask('subscriptions/listen', {
          notifications: {
            resourceSubscriptions: ['ralph://loops', 'ralph://loops/demo'],
            resourcesListChanged: true,
          },
        })
        .catch(() => undefined)
      await two.hears(({ method }) => method === 'notifications/subscriptions/acknowledged')
    }
    const isOf =
      (uri: string) =>
      ({ method, params }: Message): boolean =>
        method === 'notifications/resources/updated' && params?.['uri'] === uri
    const loop = start(at, ['loop', 'demo', '--agent-command', waits(at)])
    await two.hears(isOf('ralph://loops/demo'))
    await two.hears(isOf('ralph://loops'))
    await two.hears(({ method }) => method === 'notifications/resources/list_changed')
    await loop.seen((out) => out.includes('story 1 begins'))
    expect(await two.read('ralph://loops/demo')).toMatchObject({ freshness: 'alive', status: 'running' })
    expect(loopsIn((await one.call('list_loops')).data)).toMatchObject([{ freshness: 'alive' }])
    const before = two.heard.length
    writeFileSync(join(at.root, 'go'), '')
    expect((await loop.ended).code).toBe(0)
    await two.hears((message) => two.heard.indexOf(message) >= before && isOf('ralph://loops/demo')(message))
    await expect
      .poll(() => two.read('ralph://loops/demo'))
      .toMatchObject({ freshness: 'ended', status: 'done', stories_done: 1 })
    // Whoever did not ask hears nothing.
    expect(one.heard.filter(({ method }) => method !== undefined)).toEqual([])
    expect(await Promise.all([one.close(), two.close()])).toMatchObject([{ code: 0 }, { code: 0 }])
  },
)

test('MCP: a look at a dead loop writes nothing, not in the work tree, not in .git; it says dead, and stale of one that hangs', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const loop = start(at, ['loop', 'demo', '--agent-command', waits(at)])
  await loop.seen((out) => out.includes('story 1 begins'))
  const client = await connect(at)
  process.kill(loop.pid, 'SIGSTOP')
  const old = Date.now() / 1000 - 120
  for (const name of ['alive', 'journal.ndjson'])
    utimesSync(join(at.repo, '.git/ralph/changes/demo', name), old, old)
  expect(loopsIn((await client.call('get_ralph_status')).data)).toMatchObject([
    { status: 'running', freshness: 'stale' },
  ])
  process.kill(loop.pid, 'SIGKILL')
  await loop.ended
  const before = pictureOf(at.repo)
  const refs = at.git('for-each-ref')
  const answers = [
    await client.call('list_loops'),
    await client.call('get_ralph_status', { change_id: 'demo' }),
    await client.call('get_loop_history'),
    await client.call('get_loop_log'),
    await client.call('get_attempt_diff'),
    await client.call('list_changes'),
    await client.call('get_change', { change_id: 'demo' }),
  ]
  expect(answers.map(({ isError, text }) => (isError ? text : '')).filter((text) => text !== '')).toEqual([
    // No attempt has ended: there is none to show.
    expect.stringContaining('demo'),
  ])
  const [status] = loopsIn(answers[1]?.data)
  expect(status).toMatchObject({ status: 'stopped', freshness: 'dead', died_at: expect.any(String) })
  // The agent outlived its loop, and a look ends nobody.
  expect(status?.['orphan_pids']).not.toEqual([])
  expect(answers[1]?.text).toContain('Process: dead')
  // B6: nobody has reported any.
  expect(answers[1]?.text).toMatch(/Tokens: unknown\n +Cost: unknown/)
  expect(status?.['cost_usd']).toBeUndefined()
  await client.ask('resources/subscribe', { uri: 'ralph://loops/demo' })
  await client.ask('resources/list')
  expect(await client.read('ralph://loops/demo')).toMatchObject({ freshness: 'dead' })
  expect((await client.close()).code).toBe(0)
  expect(pictureOf(at.repo)).toBe(before)
  expect(at.git('for-each-ref')).toBe(refs)
  expect(at.state().status).toBe('running')
})

test('MCP: loops of the main checkout, of work trees and of wt-tools are all there, each with what is known of its process', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('openspec/changes/other/tasks.md', tasksOf(1))
  at.git('add', '-A')
  at.git('commit', '-qm', 'another')
  await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'cleanup'])
  at.git('add', '-A')
  at.git('commit', '-qm', 'done')
  const beside = await ralph(at, ['loop', 'other', '--worktree', '--agent-command', goodAgent])
  expect(beside.code).toBe(0)
  const local = '2026-02-09T14:03:22+01:00'
  // As of its first versions, and as of the later ones, which name the work tree instead of the change.
  const first = {
    change_id: 'old-one',
    status: 'running',
    current_iteration: 3,
    max_iterations: 10,
    started_at: local,
    task: 'Do it\n',
    iterations: [
      { n: 1, started: local, ended: local, done_check: false, commits: ['abc1234'], tokens_used: 12 },
    ],
    terminal_pid: process.pid,
    iteration_timeout_min: 45,
    total_tokens: 12,
  }
  const later = {
    ...first,
    change_id: undefined,
    worktree_name: 'repo-wt-budgeted',
    change: null,
    label: null,
    status: 'waiting:budget',
    terminal_pid: deadPid(),
  }
  wtTree(at, 'repo-wt-old-one', first)
  const tree = wtTree(at, 'repo-wt-budgeted', later)
  wtTree(at, 'repo-wt-starting', {
    ...later,
    worktree_name: 'repo-wt-starting',
    status: 'starting',
    terminal_pid: null,
    task: null,
  })
  wtTree(at, 'repo-wt-broken', { status: 7 })
  const ancient = Date.now() / 1000 - 3 * 3600
  utimesSync(join(at.root, 'repo-wt-starting/.claude/loop-state.json'), ancient, ancient)
  // From within a work tree: the same.
  const client = await connect(at, [], { cwd: tree })
  const loops = loopsIn((await client.call('list_loops')).data)
  const briefly = loops.map(({ change_id: change, status, freshness, worktree }) =>
    [change, status, freshness, basename(String(worktree))].join(' '),
  )
  expect(briefly.toSorted()).toEqual([
    'budgeted waiting:budget dead repo-wt-budgeted',
    'demo done ended repo',
    'old-one running alive repo-wt-old-one',
    'other done ended repo-ralph-other',
    'starting starting stale repo-wt-starting',
  ])
  const { text } = await client.call('get_ralph_status', { change_id: 'old-one' })
  expect(text).toContain(
    '  🔄 old-one (repo-wt-old-one)\n     Status: running\n     Iteration: 3/10\n     Running for: ',
  )
  expect(text).toContain('\n     Task: Do it\n')
  expect((await client.call('get_loop_history', { change_id: 'old-one' })).data).toMatchObject({
    iterations_total: 1,
    iterations: [{ n: 1, commits: ['abc1234'], tokens_used: 12 }],
  })
  expect((await client.call('get_ralph_status', { change_id: 'nobody' })).text).toBe(
    'No Ralph loop found for: nobody',
  )
  expect((await client.close()).code).toBe(0)
})

/** Of one that has just ended. */
function deadPid(): number {
  return Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }))
}

test('MCP: where only wt-tools has run a loop its history needs no name', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const time = '2026-02-09T14:03:22+01:00'
  const iteration = {
    n: 1,
    started: time,
    ended: time,
    done_check: false,
    commits: ['abc1234'],
    tokens_used: 12,
  }
  wtTree(at, 'repo-wt-old-one', {
    change_id: 'old-one',
    status: 'done',
    current_iteration: 1,
    max_iterations: 10,
    started_at: time,
    task: 'Do it',
    iterations: [iteration],
    iteration_timeout_min: 45,
    total_tokens: 12,
  })
  const client = await connect(at)
  expect((await client.call('get_loop_history')).data).toMatchObject({ iterations_total: 1 })
})

test('MCP: nonsense, a flood and a closed pipe hurt nobody: the answers come, the loop goes on, the server ends', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const loop = start(at, ['loop', 'demo', '--agent-command', waits(at)])
  await loop.seen((out) => out.includes('story 1 begins'))
  const client = await connect(at)
  const nonsense = [
    'what?',
    '{',
    '[]',
    'null',
    '{"jsonrpc":"1.0"}',
    '{"jsonrpc":"2.0","id":{},"method":7}',
    '\u0000\u001B[2J',
    '{"jsonrpc":"2.0","id":9001,"method":"no/such/method"}',
    '{"jsonrpc":"2.0","id":9002,"method":"tools/call","params":{"name":"get_loop_log","arguments":{"tail":-1}}}',
    '{"jsonrpc":"2.0","id":9003,"method":"tools/call","params":{"name":"get_change","arguments":{"change_id":"../../etc"}}}',
    '{"jsonrpc":"2.0","id":9004,"method":"resources/read","params":{"uri":"ralph://loops/%zz"}}',
    '{"jsonrpc":"2.0","id":9005,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
    '{"jsonrpc":"2.0","id":9006,"method":"tools/call","params":{"name":"no_such_tool","arguments":{}}}',
  ]
  client.raw(`${nonsense.join('\n')}\n`)
  for (const id of [9001, 9002, 9003, 9004, 9005, 9006]) {
    const { error, result } = await client.hears((message) => message.id === id)
    expect(error !== undefined || result?.['isError'] === true).toBe(true)
  }
  expect(loopsIn((await client.call('list_loops')).data)).toMatchObject([{ freshness: 'alive' }])
  // More at once than any client has to ask, without reading an answer in between (test/ui/mcp-flow.test.ts has what it may take in).
  const ids = Array.from({ length: 3000 }, (_, index) => 10_000 + index)
  const params = { name: 'list_loops', arguments: {} }
  client.child.stdout?.pause()
  client.raw(
    ids.map((id) => `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`).join(''),
  )
  const other = await connect(at)
  expect(loopsIn((await other.call('list_loops')).data)).toMatchObject([{ freshness: 'alive' }])
  client.child.stdout?.resume()
  await client.hears(({ id }) => id === ids.at(-1))
  expect(memoryOf(client.child.pid ?? 0)).toBeLessThan(250)
  const answered = new Set(client.heard.map(({ id }) => id))
  expect(ids.filter((id) => !answered.has(id))).toEqual([])
  // A line without an end is nobody's message.
  other.raw('x'.repeat(3 * 1024 * 1024))
  expect((await other.ended).code).toBe(0)
  // One that goes away in the middle of a question, with both ends of its pipe.
  const third = await connect(at)
  void third.ask('tools/call', { name: 'list_changes', arguments: {} }).catch(() => undefined)
  third.child.stdout?.destroy()
  third.child.stdin?.destroy()
  expect((await third.ended).code).toBe(0)
  const { code, stderr } = await client.close()
  expect(code).toBe(0)
  expect(stderr.split('\n').length).toBeLessThan(30)
  writeFileSync(join(at.root, 'go'), '')
  expect((await loop.ended).code).toBe(0)
})

/** In MB. */
function memoryOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

test('MCP: a signal ends the server with its own exit code, and a folder that becomes a repository later is seen', async () => {
  const at = scratch()
  const empty = join(at.root, 'empty')
  mkdirSync(empty)
  const client = await connect(at, [], { cwd: empty })
  const refused = await client.call('list_loops')
  expect(refused.isError).toBe(true)
  expect(refused.text).toContain('is not in a git repository')
  expect(await client.read('ralph://loops')).toEqual({ loops: [] })
  execFileSync('git', ['init', '-q'], { cwd: empty, env: at.env })
  expect((await client.call('list_loops')).data).toEqual({ loops: [] })
  client.child.kill('SIGTERM')
  expect((await client.ended).code).toBe(143)
})

test('MCP: on a terminal it says what it is for; Ctrl-C and Ctrl-D end it', async () => {
  const at = scratch()
  for (const [key, code] of [
    ['\u0003', 130],
    ['\u0004', 0],
  ] as const) {
    const terminal = onTerminal(at, ['mcp'])
    await terminal.until((raw) => raw.includes('Ctrl-C ends it.'))
    expect(terminal.raw()).toContain('claude mcp add ralph -- ralph mcp')
    terminal.type(key)
    expect((await terminal.exited).exitCode).toBe(code)
  }
})

test('MCP: a loop whose journal is gone is shown by its state file, with a word that this may not be all', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
  rmSync(join(at.repo, '.git/ralph'), { recursive: true })
  const client = await connect(at)
  const [loop] = loopsIn((await client.call('get_ralph_status', { change_id: 'demo' })).data)
  expect(loop).toMatchObject({ status: 'done', freshness: 'ended', stories_done: 1 })
  expect(loop?.['problem']).toContain('journal')
  expect((await client.close()).code).toBe(0)
})

test('MCP: control is refused without --allow-control', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('ralph.yaml', `agent_command: ${JSON.stringify(goodAgent)}\n`)
  const client = await connect(at)
  expect(await namesOf(client)).toEqual(looks)
  const before = pictureOf(at.repo)
  for (const name of controls) {
    const { error, result } = await client.ask('tools/call', { name, arguments: { change_id: 'demo' } })
    expect(error?.message ?? JSON.stringify(result)).toContain('not found')
  }
  expect(pictureOf(at.repo)).toBe(before)
  expect((await client.close()).code).toBe(0)
})

test.each(['--agent-command=touch pwned', '--verify=true', '--fresh', '-h'])(
  'MCP: a name that looks like an option (%s) is no change: nothing is started',
  async (name) => {
    const at = scratch({ tasks: tasksOf(1) })
    const client = await connect(at, ['--allow-control'])
    for (const tool of ['start_loop', 'resume_loop'])
      expect(JSON.stringify(await client.call(tool, { change_id: name }))).toContain(
        'There is no change called',
      )
    expect(at.git('status', '--porcelain')).toBe('')
    expect(at.git('for-each-ref', 'refs/ralph', 'refs/heads/ralph')).toBe('')
  },
)

test('MCP: with --allow-control a loop is started, stopped, resumed with feedback and finished; cleanup only by its name', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const prompts = join(at.root, 'prompts')
  const agent = `cat >> '${prompts}'; ${waits(at)}`
  at.write('ralph.yaml', `agent_command: ${JSON.stringify(agent)}\n`)
  at.git('add', '-A')
  at.git('commit', '-qm', 'settings')
  const client = await connect(at, ['--allow-control'])
  expect(await namesOf(client)).toEqual([...looks, ...controls])
  const started = await client.call('start_loop', { change_id: 'demo' })
  expect(started).toMatchObject({ isError: false, data: { started: true, change_id: 'demo' } })
  const again = await client.call('start_loop', { change_id: 'demo' })
  expect(again.isError).toBe(true)
  expect(again.text).toContain('A loop is running already')
  await expect.poll(() => existsSync(prompts)).toBe(true)
  expect(await client.call('stop_loop', { change_id: 'demo' })).toMatchObject({
    isError: false,
    data: { stopped: true },
  })
  expect(loopsIn((await client.call('get_ralph_status', { change_id: 'demo' })).data)).toMatchObject([
    { status: 'stopped', freshness: 'ended' },
  ])
  const resumed = await client.call('resume_loop', {
    change_id: 'demo',
    feedback: 'the greeting is in src/hello',
  })
  expect(resumed).toMatchObject({ isError: false, data: { started: true } })
  await expect.poll(() => readFileSync(prompts, 'utf8')).toContain('the greeting is in src/hello')
  // The loop outlives who has started it.
  expect((await client.close()).code).toBe(0)
  writeFileSync(join(at.root, 'go'), '')
  const later = await connect(at, ['--allow-control'])
  await expect
    .poll(async () => loopsIn((await later.call('list_loops')).data))
    .toMatchObject([{ status: 'done', freshness: 'ended' }])
  expect(at.git('branch', '--show-current')).toBe('ralph/demo')
  const kept = await later.call('finish_loop', { change_id: 'demo' })
  expect(kept.isError).toBe(false)
  expect(at.git('branch', '--show-current')).toBe('ralph/demo')
  expect(at.state().choice).toBe('keep')
  const cleaned = await later.call('finish_loop', { change_id: 'demo', choice: 'cleanup' })
  expect(cleaned).toMatchObject({ isError: false })
  expect(at.git('branch', '--show-current')).toBe('main')
  expect(at.read('story-1.txt')).toBe('x\n')
  expect((await later.call('finish_loop', { change_id: 'nobody' })).isError).toBe(true)
  expect((await later.close()).code).toBe(0)
})

test('MCP: a start that would surprise is refused and says what to ask for; a manual loop is asked for by name', async () => {
  const at = scratch({ tasks: '' })
  at.write('ralph.yaml', `agent_command: ${JSON.stringify(goodAgent)}\n`)
  at.git('add', '-A')
  at.git('commit', '-qm', 'settings')
  const client = await connect(at, ['--allow-control'])
  const refused = await client.call('start_loop', { change_id: 'demo' })
  expect(refused.isError).toBe(true)
  expect(refused.text).toContain('Not started')
  const started = await client.call('start_loop', {
    change_id: 'demo',
    manual: true,
    task: 'Greet',
    max_iterations: 1,
  })
  expect(started).toMatchObject({ isError: false, data: { started: true } })
  await expect
    .poll(async () => loopsIn((await client.call('list_loops')).data))
    .toMatchObject([{ freshness: 'ended', task: 'Greet' }])
  expect((await client.close()).code).toBe(0)
})
