// Misbehaving agents through the whole built program: a true verdict, a clean tree, no survivor, an exact state file.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath, standIn } from '../agents/kit.ts'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { expectTruth } from './truth.ts'

const oneStory = { tasks: tasksOf(1) }

describe('agents that do not do their work', () => {
  const rows: [string, string, string][] = [
    ['P1: speaks about the promise', 'quotes-promise.sh', 'none'],
    ['P2: echoes its prompt', 'echoes-prompt.sh', 'none'],
    ['P2: shows a file with the token', 'shows-promise-in-fence.sh', 'none'],
    ['P3: changes its mind', 'changes-its-mind.sh', 'failed'],
    ['P10: deletes the plan', 'deletes-plan.sh', 'failed'],
    ['P12: asks and stops', 'asks-and-stops.sh', 'none'],
    ['R1: is killed in the middle of its promise', 'dies-mid-line.sh', 'crash'],
    ['G2: commits half-done work and fails', 'commits.sh', 'failed'],
  ]
  test.each(rows)('%s (%s): nothing is done, the tree is clean, exit 3', async (_name, script, verdict) => {
    const at = scratch(oneStory)
    const end = await run(at, ['--agent-command', agentPath(script), '--max-retries', '0'])
    expect(end.code).toBe(3)
    expectTruth(at, end)
    expect(at.state()).toMatchObject({ status: 'stuck' })
    expect(at.state().iterations).toMatchObject([{ verdict, done_check: false }])
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(1))
    expect(at.git('log', '--format=%s', 'main..')).toBe('initial state')
  })

  test('R2: a timeout with a grandchild that ignores TERM is recorded as timed out', async () => {
    const at = scratch(oneStory)
    const end = await run(at, [
      '--agent-command',
      agentPath('ignores-term.sh'),
      '--max-retries',
      '0',
      '--iteration-timeout',
      '0.02',
    ])
    expect(end.code).toBe(3)
    expectTruth(at, end)
    expect(at.state().iterations).toMatchObject([{ verdict: 'timeout', timed_out: true }])
  })

  test('R16: an agent that hangs is idle', async () => {
    const at = scratch(oneStory)
    const end = await run(at, [
      '--agent-command',
      agentPath('hangs.sh'),
      '--max-retries',
      '0',
      '--idle-timeout',
      '0.01',
    ])
    expect(end.code).toBe(3)
    expectTruth(at, end)
    expect(at.state().iterations).toMatchObject([
      {
        verdict: 'idle',
        reason: expect.stringMatching(
          /^the agent was silent and did nothing for 1 s \(--idle-timeout\)(?!.*SIG)/,
        ),
      },
    ])
  })

  test('R10: an error result with exit code 0 and a COMPLETE before it', async () => {
    const at = scratch(oneStory)
    const end = await claude(at, 'claude-error-result.mjs', ['--max-retries', '0'])
    expect(end.code).toBe(3)
    expectTruth(at, end)
    expect(at.state().iterations).toMatchObject([{ verdict: 'crash' }])
  })

  test('P14: a turn without a model call', async () => {
    const at = scratch(oneStory)
    const end = await claude(at, 'claude-no-turn.mjs', ['--max-retries', '0'])
    expect(end.code).toBe(3)
    expectTruth(at, end)
    expect(at.state().iterations[0]?.reason).toContain('never asked its model')
  })
})

describe('agents that do their work and misbehave', () => {
  const rows: [string, string][] = [
    ['P9: ticks every box of every story', 'ticks-foreign-boxes.sh'],
    ['P9: rewrites the proposal', 'edits-specs.sh'],
    ['G3: works on a branch of its own', 'switches-branch.sh'],
    ['R3: leaves a server running', 'forks-daemon.sh'],
    ['R9: talks about limits', 'talks-about-limits.sh'],
    ['exits 1 after COMPLETE', 'complete-then-exit-1.sh'],
  ]
  test.each(rows)('%s (%s): both stories done one by one, exit 0', async (_name, script) => {
    const at = scratch({ tasks: tasksOf(2) })
    const proposal = at.read('openspec/changes/demo/proposal.md')
    const end = await run(at, ['--agent-command', agentPath(script)])
    expect(end.code).toBe(0)
    expectTruth(at, end)
    expect(at.state().iterations.map(({ story_id, verdict }) => [story_id, verdict])).toEqual([
      ['1', 'complete'],
      ['2', 'complete'],
    ])
    expect(at.git('branch', '--show-current')).toBe('ralph/demo')
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(2).replaceAll('[ ]', '[x]'))
    expect(at.read('openspec/changes/demo/proposal.md')).toBe(proposal)
  })

  test('P5: 50 MB of output: all of it in the transcript, memory of ralph below 150 MB', async () => {
    const at = scratch(oneStory)
    const running = start(at, [
      'loop',
      'demo',
      '--json',
      '--agent-command',
      `AGENT_MEGABYTES=50 ${agentPath('floods.mjs')}`,
    ])
    let peakKb = 0
    const look = setInterval(() => {
      const status = existsSync(`/proc/${running.pid}/status`)
        ? readFileSync(`/proc/${running.pid}/status`, 'utf8')
        : ''
      peakKb = Math.max(peakKb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0))
    }, 10)
    const end = await running.ended
    clearInterval(look)
    expect(end.code).toBe(0)
    const log = at.state().iterations[0]?.['log_file']
    expect(readFileSync(String(log)).length).toBe(50 * 1024 * 1024 + '\n<promise>COMPLETE</promise>\n'.length)
    expect(peakKb).toBeGreaterThan(0)
    expect(peakKb / 1024).toBeLessThan(150)
  })
})

describe('limits', () => {
  test('R8: a limit with a reset: waits, says until when, goes on with the same attempt, no retry used', async () => {
    const at = scratch(oneStory)
    const end = await claude(at, 'claude-limited-once.mjs', ['--max-retries', '0'], {
      AGENT_RESET_SECONDS: '2',
    })
    expect(end.code).toBe(0)
    expectTruth(at, end)
    const events = eventsOf(end)
    expect(events.filter((event) => event.type === 'waiting')).toMatchObject([
      { for: 'limit', until_ms: expect.any(Number) },
    ])
    expect(at.state().iterations.map(({ verdict, attempt }) => [verdict, attempt])).toEqual([
      ['limit', 1],
      ['complete', 1],
    ])
  })

  test('R8: stop works while it waits', async () => {
    const at = scratch(oneStory)
    standInClaude(at, 'claude-limited-once.mjs')
    const running = start(
      at,
      [
        'loop',
        'demo',
        '--json',
        '--agent',
        'claude',
        '--agent-env',
        `AGENT_STATE=${at.root}/runs`,
        '--agent-env',
        'AGENT_RESET_SECONDS=3600',
      ],
      withBin(at),
    )
    await running.seen((stdout) => stdout.includes('"type":"waiting"'))
    const stopped = await ralph(at, ['stop', 'demo'])
    expect(stopped.code).toBe(0)
    const end = await running.ended
    expect(end.code).toBe(143)
    expect(at.state()).toMatchObject({ status: 'stopped' })
  })

  test('R16: a login that is gone stops at once, exit 6, no retry', { timeout: 30_000 }, async () => {
    const at = scratch(oneStory)
    const end = await claude(at, 'claude-retries-401.mjs', [])
    expect(end.code).toBe(6)
    expectTruth(at, end)
    expect(at.state().iterations).toMatchObject([{ verdict: 'fatal' }])
  })

  test('R16: an account without credit stops at once, and the message speaks of the bill', async () => {
    const at = scratch(oneStory)
    const end = await claude(at, 'claude-no-credit.mjs', [])
    expect(end.code).toBe(6)
    expectTruth(at, end)
    expect(at.state().iterations).toMatchObject([{ verdict: 'fatal' }])
    expect(at.state()).toMatchObject({ stop_reason: 'auth' })
    const error = eventsOf(end).find((event) => event.type === 'error')
    expect(error).toMatchObject({
      message:
        "the agent's account has no credit, or its bill is not paid (exit code 1): Credit balance is too low",
      hint: expect.stringContaining('Add credit or settle the bill') as string,
    })
    expect(JSON.stringify(error)).not.toMatch(/log ?in\b/i)
  })

  test.each([
    [
      'noed agent.mjs',
      'there is no program noed on PATH',
      'Did you mean node? Then: --agent-command "node agent.mjs"',
    ],
    [
      './no-such-agent.sh --fast',
      "there is no file ./no-such-agent.sh, seen from the repository's root",
      'Write it, or change --agent-command.',
    ],
    ['./plain.txt', './plain.txt is not executable', 'chmod +x ./plain.txt'],
  ])(
    'B12: --agent-command %s, which is not there, is refused by loop, --dry-run and doctor: exit 2, nothing touched',
    async (command, why, fix) => {
      const at = scratch(oneStory)
      at.write('plain.txt', 'no program')
      const before = [at.git('for-each-ref'), at.git('status', '--porcelain')]
      const end = await ralph(at, ['loop', 'demo', '--agent-command', command])
      expect([end.code, end.stdout]).toEqual([2, ''])
      const said = end.stderr.replaceAll(/\s+/g, ' ')
      expect(said).toContain(`The agent \`${command}\` cannot run: ${why}.`)
      expect(said).toContain('Nothing was touched.')
      expect(said).toContain(fix)
      expect([at.git('for-each-ref'), at.git('status', '--porcelain')]).toEqual(before)
      const plan = await ralph(at, ['loop', 'demo', '--agent-command', command, '--dry-run'])
      expect(plan.code).toBe(2)
      expect(plan.stdout.replaceAll(/\s+/g, ' ')).toContain(
        `A start would be refused now: The agent \`${command}\``,
      )
      at.write('ralph.yaml', `agent_command: ${command}\n`)
      const told = await ralph(at, ['doctor', '--json'])
      expect(told.code).toBe(2)
      expect(JSON.parse(told.stdout).checks).toContainEqual({
        name: 'agent',
        verdict: 'problem',
        detail: `The agent \`${command}\` cannot run: ${why}.`,
        fix: expect.stringContaining(fix) as string,
      })
    },
  )

  test('an agent that goes away while the loop runs: exit 6', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = at.script('agent', `rm "$0"; ${goodAgent}`)
    const end = await run(at, ['--agent-command', agent])
    expect(end.code).toBe(6)
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['complete', 'fatal'])
  })

  test('a chain: the second agent takes over at the first one’s limit', async () => {
    const at = scratch(oneStory)
    standIn(binOf(at), 'codex', agentPath('codex-works.mjs'))
    const end = await claude(at, 'claude-limited-once.mjs', ['--agent', 'claude,codex'], {
      AGENT_RESET_SECONDS: '3600',
    })
    expect(end.code).toBe(0)
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['limit', 'complete'])
  })
})

function run(at: Scratch, args: readonly string[]): Promise<Finished> {
  return ralph(at, ['loop', 'demo', '--json', ...args])
}

function claude(
  at: Scratch,
  script: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Finished> {
  standInClaude(at, script)
  const variables = Object.entries({ AGENT_STATE: join(at.root, 'runs'), ...env }).flatMap(
    ([name, value]) => ['--agent-env', `${name}=${value}`],
  )
  const agent = args.includes('--agent') ? [] : ['--agent', 'claude']
  return ralph(at, ['loop', 'demo', '--json', ...agent, ...variables, ...args], withBin(at))
}

function standInClaude(at: Scratch, script: string): void {
  standIn(binOf(at), 'claude', agentPath(script))
}

function binOf(at: Scratch): string {
  const bin = join(at.root, 'bin')
  mkdirSync(bin, { recursive: true })
  return bin
}

function withBin(at: Scratch): { env: NodeJS.ProcessEnv } {
  return { env: { PATH: `${join(at.root, 'bin')}:${at.env['PATH'] ?? ''}` } }
}
