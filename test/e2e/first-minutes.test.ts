// The first five minutes of a new user: what is counted, what is checked before a start, what is said, and the demo.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { StateFile } from '../../src/core/state-file.ts'
import { eventsOf, goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { onTerminal } from './on-terminal.ts'
import { installClaude, installWtUsage, spawned, tokenWarnings, works } from './usage-kit.ts'

/** What Claude Code writes of a prompt that no model has answered. */
const growsOnly = `mkdirSync(session.slice(0, session.lastIndexOf('/')), { recursive: true })
appendFileSync(session, JSON.stringify({ type: 'user', cwd: process.cwd(), text: 'p'.repeat(90_000) }) + '\\n')
`
const error = (status: number | null, message: string): string =>
  `success('${message}', { is_error: true, api_error_status: ${status}, terminal_reason: 'api_error', modelUsage: {}, total_cost_usd: 0 })`

describe('tokens', () => {
  const unanswered: [name: string, ending: string][] = [
    ['overloaded', error(529, 'API Error: 529 overloaded_error')],
    ['limit', error(429, 'Claude AI usage limit reached')],
    ['login', error(null, 'Not logged in · Please run /login')],
  ]
  test.each(unanswered)(
    'B1: %s: the model never answered, so nothing was used, nothing is guessed, nothing is warned of',
    async (_, ending) => {
      const at = scratch({ tasks: tasksOf(1) })
      installClaude(at, `${growsOnly}${ending}`)
      const how = ['--agent', 'claude', '--limit-wait', '0', '--max-tokens', '40000']
      const end = await ralph(at, ['loop', 'demo', ...how])
      expect(end.code).toBe(6)
      expect(tokenWarnings(end)).toEqual([])
      expect(end.stdout + end.stderr).not.toMatch(/wt-usage|~\d|--max-tokens/)
      const state = at.state()
      expect(state).toMatchObject({ total_tokens: 0, iterations: [{ tokens_used: 0 }] })
      expect(state.iterations[0]).not.toHaveProperty('tokens_estimated')
    },
  )

  test('B1: what the agent itself reported before its limit counts', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const ending = `${growsOnly}success('usage limit reached', { is_error: true, api_error_status: 429, terminal_reason: 'api_error' })`
    installClaude(at, ending)
    await ralph(at, ['loop', 'demo', '--agent', 'claude', '--limit-wait', '0'])
    expect(at.state()).toMatchObject({ total_tokens: 120, iterations: [{ verdict: 'limit' }] })
  })

  test('B1: one warning in plain words; wt-usage is named only to those who have it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    installClaude(at, `${growsOnly}${works.replace("success('')", "success('', { modelUsage: {} })")}`)
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude'])
    expect(end.code).toBe(0)
    expect(tokenWarnings(end)).toHaveLength(1)
    expect(tokenWarnings(end)[0]).toMatch(
      /The tokens of this attempt are unknown: the agent did not report them\. About \d+, estimated from/,
    )
    expect(end.stderr).not.toContain('wt-usage')
    installWtUsage(at, 'exit 3')
    const again = await ralph(at, [
      'loop',
      'demo',
      '--fresh',
      '--agent-command',
      goodAgent,
      '--done',
      'manual',
    ])
    expect(tokenWarnings(again)[0]).toContain('wt-usage: exit code 3')
  })

  test('B14: a guess keeps its ~ in every sum, and what is not known is never 0', async () => {
    const guessed = scratch({ tasks: tasksOf(1) })
    installClaude(guessed, `${growsOnly}${works.replace("success('')", "success('', { modelUsage: {} })")}`)
    const end = await ralph(guessed, ['loop', 'demo', '--agent', 'claude'])
    expect(end.stdout.match(/~22\.5k tokens/g)).toHaveLength(2)
    for (const command of ['status', 'history', 'report'])
      expect((await ralph(guessed, [command, 'demo'])).stdout, command).not.toMatch(/(?<!~)22\.5k/)

    const unknown = scratch({ tasks: tasksOf(1) })
    const silent = await ralph(unknown, ['loop', 'demo', '--agent-command', goodAgent])
    expect(silent.stdout.match(/tokens unknown/g)).toHaveLength(1)
    for (const command of ['history', 'report', 'status'])
      expect(
        (await ralph(unknown, [command, 'demo'])).stdout.match(/tokens:? +unknown/g),
        command,
      ).toHaveLength(1)
    expect(tokenWarnings(silent)).toEqual([])
    const page = (await ralph(unknown, ['report', 'demo', '--format', 'html'])).stdout
    expect(page).toContain('Attempts by story')
    expect(page).not.toContain('Tokens over time')
    // That its boxes were ticked goes without saying.
    expect(page).toContain('<summary>1 file: 1 Story 1</summary><ul><li><code>story-1.txt</code></li></ul>')
  })
})

interface Check {
  readonly name: string
  readonly verdict: string
  readonly detail: string
  readonly fix: string
}

async function doctor(
  at: Scratch,
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; all: Check[] }> {
  const end = await ralph(at, ['doctor', '--json'], { env })
  return { code: end.code, all: (JSON.parse(end.stdout) as { checks: Check[] }).checks }
}

const called = (all: readonly Check[], name: string): Check | undefined =>
  all.find((check) => check.name === name)

describe('ralph doctor', () => {
  test('F4: --gates runs each gate once, before an agent is paid for it: which passes now, which fails and why; without it none is run', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('red.sh', 'echo ran >> ../ran; echo "not ok 1 - widget 3 is missing"; exit 4\n')
    at.write(
      'ralph.yaml',
      'agent_command: "true"\nverify: ["true", "sh red.sh"]\nstories: { "1": { verify: "test -f README.md" } }\n',
    )
    const plain = await ralph(at, ['doctor'])
    expect(plain.stdout).toMatch(/^✓ gates +true \| sh red\.sh$/m)
    const { stdout, code } = await ralph(at, ['doctor', '--gates'])
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('can run here, but 1 gate fails without an agent'),
    ])
    expect(stdout).toMatch(/^✓ gates +true: passes now$/m)
    expect(stdout).toMatch(
      /^! gates +sh red\.sh: fails now \(exit 4: .*widget 3 is missing.*\)\n +fix: If the plan is not about that/m,
    )
    expect(stdout).toMatch(/^✓ gates +test -f README\.md: passes now$/m)
    expect(readFileSync(join(at.root, 'ran'), 'utf8')).toBe('ran\n')
    // As a loop with these flags would: nothing of ralph.yaml is run.
    const named = await ralph(at, ['doctor', '--verify', 'exit 3', '--verify', 'true'])
    const rows = named.stdout.split('\n').filter((line) => /^. gates/.test(line))
    expect(rows).toEqual([
      expect.stringMatching(/^! gates +exit 3: fails now \(exit 3\)$/),
      expect.stringMatching(/^✓ gates +true: passes now$/),
    ])
  })

  test('B8: a merge that is half done is a problem, as it is for a loop', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('checkout', '-qb', 'other')
    at.git('commit', '-q', '--allow-empty', '-m', 'other')
    at.git('checkout', '-q', 'main')
    at.git('merge', '-q', '--no-ff', '--no-commit', 'other')
    const merging = await doctor(at)
    expect([merging.code, called(merging.all, 'repository')]).toMatchObject([
      2,
      { verdict: 'problem', detail: expect.stringContaining('a merge is in progress') },
    ])
  })

  test('B2: no login is a problem with its fix; a key is a set-up like any other; a login is named', async () => {
    const at = scratch()
    installClaude(at)
    const without = await doctor(at)
    expect(without.code).toBe(2)
    expect(called(without.all, 'agent claude')).toMatchObject({
      verdict: 'problem',
      detail: expect.stringContaining('no login found'),
      fix: expect.stringMatching(/\/login.*ANTHROPIC_API_KEY/),
    })
    const { stdout } = await ralph(at, ['loop', 'demo', '--dry-run'])
    expect(stdout).toContain('claude (no login found)')
    const key = await doctor(at, { ANTHROPIC_API_KEY: 'k' })
    expect(key.code).toBe(0)
    expect(called(key.all, 'agent claude')).toMatchObject({ verdict: 'ok', fix: '' })
    mkdirSync(join(at.root, 'home', '.claude'), { recursive: true })
    writeFileSync(join(at.root, 'home', '.claude', '.credentials.json'), '{}')
    expect(called((await doctor(at)).all, 'agent claude')?.detail).toContain('subscription login')
    at.write('ralph.yaml', 'agent: demo\n')
    expect(called((await doctor(at)).all, 'agent demo')).toMatchObject({ verdict: 'ok' })
  })

  test('F4: doctor checks the agent that a loop is to be given: by --agent or --agent-command', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const none = await ralph(at, ['doctor'])
    expect([none.code, none.stdout]).toEqual([2, expect.stringContaining('none of claude, codex')])
    const demo = await ralph(at, ['doctor', '--agent', 'demo'])
    expect([demo.code, demo.stdout]).toEqual([0, expect.stringMatching(/^✓ agent demo /m)])
    at.write('../agent.sh', '#!/bin/sh\n')
    chmodSync(join(at.root, 'agent.sh'), 0o755)
    expect((await ralph(at, ['doctor', '--agent-command', '../agent.sh'])).code).toBe(0)
    const missing = await ralph(at, ['doctor', '--agent-command', './nothing.sh'])
    expect([missing.code, missing.stdout]).toEqual([2, expect.stringContaining('nothing.sh')])
    const typo = await ralph(at, ['doctor', '--agent', 'cluade'])
    expect([typo.code, typo.stdout + typo.stderr]).toEqual([2, expect.stringContaining('claude')])
  })

  test('B2: no openspec folder, no change, no tasks.md, no commit: each is said with its fix', async () => {
    const at = scratch({ commit: false, tasks: '' })
    const at0 = await doctor(at)
    expect(called(at0.all, 'repository')).toMatchObject({
      verdict: 'warning',
      detail: expect.stringContaining('has no commit yet'),
      fix: expect.stringContaining('git commit'),
    })
    expect(called(at0.all, 'change demo')).toMatchObject({ verdict: 'warning', detail: 'no tasks.md' })
    rmSync(join(at.repo, 'openspec', 'changes', 'demo'), { recursive: true })
    const empty = await doctor(at)
    expect(empty.code).toBe(2)
    expect(called(empty.all, 'changes')).toMatchObject({
      verdict: 'problem',
      detail: expect.stringContaining('no change'),
    })
    rmSync(join(at.repo, 'openspec'), { recursive: true })
    expect(called((await doctor(at)).all, 'changes')).toMatchObject({
      verdict: 'problem',
      detail: expect.stringContaining('There is no openspec/ folder'),
      fix: expect.stringContaining('tasks.md'),
    })
    at.write('tasks.md', tasksOf(1))
    expect(called((await doctor(at)).all, 'changes')?.verdict).toBe('ok')
  })

  test('F4: gates that are there and not used are offered; those that are set are named', async () => {
    const at = scratch()
    at.write('package.json', '{"scripts":{"lint":"true","test":"true"}}')
    expect(called((await doctor(at)).all, 'gates')).toMatchObject({
      verdict: 'warning',
      fix: expect.stringContaining('--verify "npm test"'),
    })
    at.write('ralph.yaml', 'verify: ["npm test"]\n')
    expect(called((await doctor(at)).all, 'gates')).toEqual({
      name: 'gates',
      verdict: 'ok',
      detail: 'npm test',
      fix: '',
    })
  })
})

test('B12: a resume with nothing to run names the agent of the run, not one that nobody gave', async () => {
  const at = scratch({ tasks: '## 1. A\n\n- [ ] 1.1 code it\n- [ ] 1.2 (manual) call the bank\n' })
  installClaude(at, works)
  expect((await ralph(at, ['loop', 'demo'])).code).toBe(5)
  const plan = 'openspec/changes/demo/tasks.md'
  at.write(plan, at.read(plan).replaceAll('[ ]', '[x]'))
  const end = await ralph(at, ['resume', 'demo', '--json'], { env: { PATH: '/usr/bin:/bin' } })
  expect(end.code).toBe(0)
  expect(eventsOf(end)[0]).toMatchObject({ type: 'loop.started', settings: { agents: ['claude'] } })
})

describe('a gate whose program is not there', () => {
  test('is a problem of doctor and --dry-run with the nearest name, and no loop starts; exit 2, nothing touched', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = ['loop', 'demo', '--agent-command', goodAgent]
    const plan = await ralph(at, [...args, '--dry-run', '--verify', 'true', '--verify', 'noed --test'])
    expect([plan.code, plan.stderr]).toEqual([2, ''])
    expect(plan.stdout).toContain(
      'A start would be refused now: The gate `noed --test` cannot run: there is no program noed on PATH.',
    )
    expect(plan.stdout).toContain('Did you mean node? Then: --verify "node --test"')
    const before = [at.git('for-each-ref'), at.git('status', '--porcelain')]
    const start = await ralph(at, [...args, '--verify', 'noed --test'])
    expect([start.code, start.stdout]).toEqual([2, ''])
    expect(start.stderr).toContain('there is no program noed on PATH')
    expect([at.git('for-each-ref'), at.git('status', '--porcelain')]).toEqual(before)
    at.write('ralph.yaml', 'agent: demo\nverify: ["noed --test"]\n')
    const told = await doctor(at)
    expect(told.code).toBe(2)
    expect(called(told.all, 'gates')).toMatchObject({
      verdict: 'problem',
      detail: expect.stringContaining('noed'),
      fix: expect.stringContaining('node --test'),
    })
  })

  test('B4: a mistyped script or target is refused with the right name; one without a near name is told, and stops the loop instead of its retries', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('package.json', '{"scripts":{"test":"true","lint":"true"}}')
    at.write('Makefile', 'check: all\nall:\n\ttrue\n')
    const loop = (...gates: string[]): string[] => [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      ...gates.flatMap((gate) => ['--verify', gate]),
    ]
    for (const [gate, what, right] of [
      ['npm tets', 'npm has no command tets', 'npm test'],
      ['true && npm run lnit', 'package.json has no script lnit', 'true && npm run lint'],
      ['make chekc', 'Makefile has no target chekc', 'make check'],
    ] as const) {
      const start = await ralph(at, loop(gate))
      expect([start.code, start.stdout]).toEqual([2, ''])
      expect(start.stderr).toContain(`The gate \`${gate}\` cannot run: ${what}.`)
      expect(start.stderr).toContain(`--verify "${right}"`)
    }
    const gate = 'npm run smoke'
    const told =
      'package.json has no script smoke: until a story adds it, the gate `npm run smoke` cannot run'
    expect((await ralph(at, [...loop(gate), '--dry-run'])).stdout).toContain(told)
    const end = await ralph(at, loop('npm test', gate))
    expect(end.code).toBe(1)
    expect(end.stderr).toContain(told)
    expect(end.stdout).toContain('npm run smoke could not be run (exit 1)')
    expect(end.stdout).toMatch(/try again +ralph resume demo +when the gate can run/)
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'gate', iterations: [{}] })
    const mended = await ralph(at, ['resume', 'demo', '--verify', 'npm test'])
    expect(mended.code).toBe(0)
  })

  test('B3: a gate of npm’s without a package.json is told before the start, and stops the loop instead of its retries', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const loop = ['loop', 'demo', '--agent-command', goodAgent, '--verify', 'npm test']
    const told = 'there is no package.json: until a story adds it, the gate `npm test` cannot run'
    expect((await ralph(at, [...loop, '--dry-run'])).stdout).toContain(told)
    at.write('ralph.yaml', 'verify: ["npm test"]\n')
    expect((await ralph(at, ['doctor'])).stdout.replaceAll(/\s+/g, ' ')).toContain(told)
    const end = await ralph(at, loop)
    expect([end.code, at.state().stop_reason]).toEqual([1, 'gate'])
    expect(end.stderr).toContain(told)
    expect(end.stdout).toContain('Could not read package.json')
    expect((await ralph(at, ['why', 'demo'])).stdout).toContain('Could not read package.json')
  })

  test('B7: a path outside the work tree that is not there is refused; one inside it is told, for a story may bring it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const loop = [
      'loop',
      'demo',
      '--agent-command',
      `printf '#!/bin/sh\\n' > own.sh; chmod +x own.sh; ${goodAgent}`,
    ]
    const refused = await ralph(at, [...loop, '--verify', `${at.root}/no/gate.sh --a`])
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain(`cannot run: there is no ${at.root}/no/gate.sh.`)
    expect(at.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
    const gated = [...loop, '--verify', './own.sh --a']
    const told = 'there is no ./own.sh: until a story adds it, the gate `./own.sh --a` cannot run'
    expect((await ralph(at, [...gated, '--dry-run'])).stdout).toContain(told)
    const end = await ralph(at, gated)
    expect([end.code, end.stderr]).toEqual([0, expect.stringContaining(told)])
  })

  test('F10: no program is named for a gate that is more than a slip away, and none of those that are everywhere, and no folder', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    mkdirSync(join(at.root, 'bin/tessts'), { recursive: true })
    at.env['PATH'] = `${join(at.root, 'bin')}:${at.env['PATH']}`
    for (const gate of ['tesst', 'tru3', 'pyt3st-all', 'catt'])
      expect(
        (await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--verify', gate])).stderr,
      ).toMatch(new RegExp(`there is no program ${gate} on PATH\\.[^]*Install ${gate}`))
  })

  test("B4: a script that was there when the loop began, and that the agent took away, is the story's own fault", async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('package.json', '{"scripts":{"smoke":"true"}}')
    const agent = `[ $RALPH_ITERATION != 1 ] || echo '{"scripts":{}}' > package.json; ${goodAgent}`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--verify', 'npm run smoke'])
    expect(end.code).toBe(0)
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['gate_failed', 'complete'])
  })

  const left = [
    ['a word of the shell', 'test -e README.md'],
    ['a file that an agent may still write', './check.sh'],
    ['a variable in front', 'CI=1 no-such-thing'],
    ['a shell line', 'if true; then true; fi'],
    ['a program by its path', process.execPath],
  ] as const
  let plan: Finished | undefined

  test.each(left)('%s is left to the shell: %s', async (_, gate) => {
    const args = ['loop', 'demo', '--dry-run', '--agent-command', 'true']
    for (const [, each] of left) args.push('--verify', each)
    plan ??= await ralph(scratch({ tasks: tasksOf(1) }), args)
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining(gate)])
    expect(plan.stdout).not.toContain(`The gate \`${gate}\` cannot run`)
  })
})

test('F9, B12: in a repository without a commit nobody is told that main is there', async () => {
  const at = scratch({ tasks: tasksOf(1), commit: false })
  const plan = await ralph(at, ['loop', 'demo', '--dry-run', '--agent-command', goodAgent])
  const { stdout } = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
  expect(stdout).toContain('The work is on ralph/demo (you are on it). main has no commit yet.')
  expect(plan.stdout).toContain('warning: main has no commit yet, so there is nothing to come back to')
  expect(stdout).not.toContain('has not changed main')
  const end = await ralph(at, ['finish', 'demo', '--cleanup'])
  expect([end.code, at.git('branch', '--show-current')]).toEqual([0, 'main'])
})

describe('at 80 columns', () => {
  test.each([
    ['doctor'],
    ['loop', 'demo', '--dry-run', '--agent-command', 'true', '--on-complete', 'keep'],
    ['config'],
    ['list'],
  ])('F13: %s wraps at words below themselves; in a pipe a line stays a line', async (...args) => {
    const at = scratch({ tasks: tasksOf(3) })
    at.write('package.json', '{"scripts":{"test":"node --test"}}')
    at.write(
      'openspec/changes/bare/proposal.md',
      '# A change without a plan, whose title is longer than the screen is wide\n',
    )
    const screen = onTerminal(at, args, at.repo, 80)
    await screen.exited
    const piped = (await ralph(at, args, { env: { RALPH_NO_TUI: 'true' } })).stdout.split('\n')
    const words = (all: readonly string[]): string =>
      all
        .filter((line) => !/^. terminal /.test(line))
        .join(' ')
        .replaceAll(/\s+/g, ' ')
    // A path is one word, and a command is there to be copied.
    const isOne = (line: string): boolean => line.includes(at.root) || / {2}ralph loop /.test(line)
    // The end of a program is heard before its last bytes now and then.
    await expect.poll(() => words(screen.raw().split('\r\n'))).toBe(words(piped))
    const lines = screen.raw().split('\r\n')
    expect(lines.filter((line) => line.length > 79 && !isOne(line))).toEqual([])
    expect(piped.some((line) => line.length > 80)).toBe(true)
  })

  test('F13: so do the words around the demo', async () => {
    const at = scratch()
    const screen = onTerminal(at, ['demo', '--remove'], at.repo, 80)
    expect((await screen.exited).exitCode).toBe(0)
    const around = screen
      .raw()
      .split('\r\n')
      .filter((line) => !line.includes('\u001B'))
    expect(around.filter((line) => line.length > 79)).toEqual([])
    expect(screen.raw()).toMatch(/^\$ ralph loop .* \\\r\n {4}[a-z -]*cleanup\r$/m)
    expect(screen.raw()).toMatch(
      /^Your turn, in your own repository\. .*\r\n {2}## 1\. A story\r\n {2}- \[ \] 1\.1 A task\r\nThen:\r\n {2}ralph doctor {3,}what is there, what is missing\r$/m,
    )
  })
})

describe('--dry-run', () => {
  test('B3, F6: names the agent that the loop takes, who pays and the gates there are, in about ten lines', async () => {
    const at = scratch()
    installClaude(at)
    at.write('package.json', '{"scripts":{"test":"true"}}')
    const { stdout, code } = await ralph(at, ['loop', 'demo', '--dry-run'], {
      env: { ANTHROPIC_API_KEY: 'k' },
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/agent +claude \(API key ANTHROPIC_API_KEY\)/)
    expect(stdout).toContain('(found npm test: add --verify "npm test")')
    expect(stdout.split('\n').length).toBeLessThan(14)
    const named = await ralph(at, [
      'loop',
      'demo',
      '--dry-run',
      '--agent-command',
      'true',
      '--verify',
      'true',
    ])
    expect(named.stdout).toMatch(/agent +true\n.*gates +true\n/s)
  })

  test('F6: of a change that is done it says that nothing would run, and names no command that does nothing', async () => {
    const at = scratch({ tasks: '## 1. A\n\n- [x] 1.1 done\n' })
    const { stdout, code } = await ralph(at, ['loop', 'demo', '--dry-run', '--agent-command', 'true'])
    expect(code).toBe(0)
    expect(stdout).toContain('nothing would run')
    expect(stdout).not.toMatch(/limits|ralph loop/)
  })

  test('B3: says that a start would be refused, and why: no agent, an unfinished run, a story that is not there', async () => {
    const at = scratch()
    const none = await ralph(at, ['loop', 'demo', '--dry-run'])
    const real = await ralph(at, ['loop', 'demo'])
    expect([none.code, real.code]).toEqual([6, 6])
    expect(none.stdout).toContain('A start would be refused now: None of the coding agents')
    const fails = ['--agent-command', 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0']
    expect((await ralph(at, ['loop', 'demo', ...fails])).code).toBe(3)
    const again = await ralph(at, ['loop', 'demo', '--dry-run', ...fails])
    expect(again.code).toBe(2)
    expect(again.stdout).toMatch(/would be refused now: There is an unfinished run.*\n.*ralph resume demo/)
    const anew = await ralph(at, ['loop', 'demo', '--dry-run', '--fresh', ...fails])
    expect([anew.code, anew.stdout.includes('refused')]).toEqual([0, false])
    const wrong = await ralph(at, ['loop', 'demo', '--dry-run', '--fresh', '--story', '9', ...fails])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('has no story 9')])
  })
})

describe('a start', () => {
  const words =
    'demo has no tasks.md, so the agent is asked up to 10 times to do "Demo change", until you say that it is done. Stop it with Ctrl-C or ralph stop demo.'

  test('B4: without tasks.md it says in one line what will happen, before an agent is started; in a pipe it goes on', async () => {
    const at = scratch({ tasks: '' })
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(end.code).toBe(5)
    expect(end.stderr.indexOf(words)).toBeGreaterThan(-1)
    expect(end.stderr.indexOf(words)).toBeLessThan(
      end.stderr.indexOf('No tasks.md found, using manual done criteria'),
    )
    const meant = scratch({ tasks: '' })
    const said = await ralph(meant, ['loop', 'demo', '--done', 'manual', '--agent-command', goodAgent])
    expect([said.code, said.stderr.includes('has no tasks.md')]).toEqual([5, false])
  })

  test.each([
    ['\r', 2, []],
    ['y\r', 6, ['manual']],
  ])('B4: on a terminal it asks once, and %j is an answer', async (typed, code, started) => {
    const at = scratch({ tasks: '' })
    installClaude(at, error(null, 'Not logged in · Please run /login'))
    const shell = onTerminal(at, ['loop', 'demo', '--agent', 'claude'])
    await shell.until((raw) => raw.includes('Start it? [y/N]'))
    shell.type(typed)
    expect((await shell.exited).exitCode).toBe(code)
    expect(shell.raw().replaceAll(/\s+/g, ' ')).toContain(words)
    expect(spawned(at)).toEqual(started)
    if (code === 2) expect(at.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
  })

  test('B2: where there is no openspec folder, a name alone starts no agent: its way out is said, and words or a plan are enough', async () => {
    const at = scratch()
    at.git('rm', '-rqf', 'openspec')
    at.git('commit', '-qm', 'no openspec')
    const agent = ['--agent-command', goodAgent]
    for (const command of [
      ['loop', 'add-logn', ...agent],
      ['loop', 'add-logn', '--dry-run', ...agent],
      ['prompt', 'add-logn'],
    ]) {
      const refused = await ralph(at, command)
      expect(refused.code).toBe(2)
      expect(refused.stderr).toMatch(/There is no change "add-logn"[^]*Nothing was touched[^]*--task "…"/)
    }
    expect(at.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
    expect([existsSync(join(at.repo, '.git', 'ralph')), existsSync(join(at.repo, '.claude'))]).toEqual([
      false,
      false,
    ])
    expect((await ralph(at, ['loop', 'add-login', '--task', 'a login', ...agent])).code).toBe(5)
    expect((await ralph(at, ['resume', 'add-login', '--feedback', 'more'])).code).toBe(5)
    at.git('checkout', '-q', 'main')
    at.write('tasks.md', tasksOf(1))
    expect((await ralph(at, ['loop', 'other', ...agent])).code).toBe(0)
  })

  test('F4: gates that are there and not used are offered', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('package.json', '{"scripts":{"test":"true"}}')
    const offer = `no gates: the agent's word counts (found npm test: add --verify "npm test")`
    expect((await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])).stdout).toContain(offer)
    const gated = await ralph(scratch(), ['loop', 'demo', '--verify', 'true', '--agent-command', goodAgent])
    expect(gated.stdout).not.toContain('no gates')
  })

  test('F19: a key is no warning; a key beside a login is', async () => {
    const env = { ANTHROPIC_API_KEY: 'k' }
    const at = scratch({ tasks: tasksOf(1) })
    installClaude(at)
    const end = await ralph(at, ['loop', 'demo', '--agent', 'claude'], { env })
    expect(end.stdout + end.stderr).not.toMatch(/\)\)|will be billed/)
    const both = scratch({ tasks: tasksOf(1) })
    installClaude(both)
    mkdirSync(join(both.root, 'home', '.claude'), { recursive: true })
    writeFileSync(join(both.root, 'home', '.claude', '.credentials.json'), '{}')
    const warned = await ralph(both, ['loop', 'demo', '--agent', 'claude'], { env })
    expect(warned.stderr).toContain(
      'claude will be billed by API key ANTHROPIC_API_KEY, although there is a subscription login; --no-api-key uses that instead',
    )
  })

  test('F3: what an agent of one’s own must print is in the help and in the error', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const help = (await ralph(at, ['loop', '--help'])).stdout.replaceAll(/\s+/g, ' ')
    expect(help).toContain(
      'it must say <promise>COMPLETE</promise> or <promise>FAILED: why</promise> on a line of its own',
    )
    await ralph(at, ['loop', 'demo', '--agent-command', 'echo hi there', '--max-retries', '0'])
    expect(at.state().iterations[0]?.reason).toBe(
      'the agent did not say whether it was done (it must say <promise>COMPLETE</promise> on a line of its own); it said: hi there',
    )
  })
})

describe('outside of a repository', () => {
  test('F5: one sentence without git’s own words', async () => {
    const at = scratch()
    const end = await ralph(at, ['list'], { cwd: at.root })
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(/^error: \S+ is not in a git repository\n +Go to your project.*ralph demo\n$/)
  })

  test('F5, B4: bare ralph on a terminal says where it is and what to do, and where the help is', async () => {
    const at = scratch()
    const shell = onTerminal(at, [], at.root)
    expect((await shell.exited).exitCode).toBe(2)
    expect(shell.raw()).toMatch(/is not in a git repository[^]*ralph\s+demo[^]*all commands: ralph --help/)
    expect(shell.raw()).not.toContain('Usage:')
    expect(existsSync(join(at.root, '.git'))).toBe(false)
  })
})

describe('ralph demo', () => {
  /** Node, git and sh, and nothing else of this machine. */
  function bare(at: Scratch): NodeJS.ProcessEnv {
    const bin = join(at.root, 'bare')
    mkdirSync(bin)
    for (const name of ['git', 'sh', 'node']) symlinkSync(onPath(name), join(bin, name))
    return { PATH: bin, TMPDIR: at.root, XDG_CONFIG_HOME: at.root }
  }
  const onPath = (name: string): string => execFileSync('which', [name], { encoding: 'utf8' }).trim()

  test('F1: a whole loop with an undo and a retry, outside of any repository, with Node and git alone; it says where and what next', async () => {
    const at = scratch()
    mkdirSync(join(at.root, 'ralph'))
    writeFileSync(join(at.root, 'ralph', 'ralph.yaml'), 'verify: ["false"]\nmax_retries: 0\n')
    const env = { ...bare(at), npm_command: 'exec', RALPH_WORKTREE: '1', RALPH_MAX_RETRIES: '0' }
    const end = await ralph(at, ['demo'], { cwd: at.root, env })
    expect([end.code, end.stderr]).toEqual([0, ''])
    const repo = /A throw-away repository: (\S+)/.exec(end.stdout)?.[1] ?? ''
    const git = (...args: string[]): string =>
      execFileSync('git', args, { cwd: repo, env: at.env, encoding: 'utf8' }).trimEnd()
    expect(git('branch', '--show-current')).toBe('main')
    expect(git('status', '--porcelain')).toBe(' M openspec/changes/add-greeting/tasks.md\n?? ralph-demo/')
    const state = JSON.parse(readFileSync(join(repo, '.claude', 'loop-state.json'), 'utf8')) as StateFile
    expect(state.iterations.map((iteration) => iteration.verdict)).toEqual([
      'complete',
      'failed',
      'complete',
      'complete',
    ])
    expect(end.stdout).toContain('npx ralphtool doctor')
    expect(end.stdout).toContain(`rm -rf ${dirname(repo)}`)
  })

  test('F1: --agent takes a real one; --remove leaves nothing; one that there is not is refused and leaves nothing', async () => {
    const at = scratch()
    installClaude(at)
    const env = { TMPDIR: join(at.root, 'tmp') }
    mkdirSync(env.TMPDIR)
    const end = await ralph(at, ['demo', '--agent', 'claude', '--remove'], { cwd: at.root, env })
    expect(end.code).toBe(0)
    expect(spawned(at)).toEqual(['1', '2', '3'])
    expect(end.stdout).toMatch(/is deleted\.\n$/)
    const wrong = await ralph(at, ['demo', '--agent', 'clod'], { cwd: at.root, env })
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('claude')])
    expect(readdirSync(env.TMPDIR).filter((name) => name.startsWith('ralph-demo'))).toEqual([])
  })
})

describe('F44: GitHub Actions', () => {
  const inActions = (at: Scratch): NodeJS.ProcessEnv => ({
    GITHUB_ACTIONS: 'true',
    GITHUB_STEP_SUMMARY: join(at.root, 'summary.md'),
  })

  test('a group for each attempt, an annotation for the story that failed, and the report as the job’s summary', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `echo "  ::error::said the agent"; echo "x ##[group]y"; case $RALPH_STORY in 1) ${goodAgent};; *) echo "<promise>FAILED: 100% no</promise>";; esac`
    const env = inActions(at)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '1'], { env })
    expect(end.code).toBe(3)
    const commands = end.stdout.split('\n').filter((line) => /^\s*::/.test(line))
    expect(commands).toEqual([
      '::group::#1 story 1 Story 1, your own agent',
      '::endgroup::',
      '::group::#2 story 2 Story 2, your own agent',
      '::endgroup::',
      '::group::#3 story 2 Story 2, your own agent',
      '::endgroup::',
      expect.stringMatching(/^::error title=ralph%3A story 2 Story 2::.*100%25 no$/),
    ])
    expect(end.stdout + end.stderr).not.toContain('##[')
    const summary = readFileSync(env['GITHUB_STEP_SUMMARY'] ?? '', 'utf8')
    expect(summary).toMatch(/^# ralph: demo\n[^]*\| 2 Story 2 \|/)
  })

  test('with --json stdout has events alone; elsewhere nothing of it is printed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = ['loop', 'demo', '--agent-command', goodAgent]
    const json = await ralph(at, [...args, '--json'], { env: inActions(at) })
    expect(eventsOf(json).at(-1)).toMatchObject({ type: 'complete', exit_code: 0 })
    expect(existsSync(join(at.root, 'summary.md'))).toBe(true)
    const outside = await ralph(scratch({ tasks: tasksOf(1) }), args)
    expect(outside.stdout).not.toMatch(/^::/m)
  })
})
