// Gate-on-claim through the built program: an agent has its story judged while it works, mends it in the same session, and cannot make it more than it is.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath } from '../agents/kit.ts'
import { eventsOf, longDead, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { expectTruth } from './truth.ts'

type Step = Readonly<Record<string, unknown>>

const bad = { write: 'made.txt', text: 'bad' }
const good = { write: 'made.txt', text: 'good' }
const claim = { call: ['story_complete', { summary: 'all done' }] }
/** What passes only when made.txt is good, and says so when it is not. */
const gate = 'grep -q good made.txt || { echo "made.txt is not good"; exit 1; }'

interface Claims {
  readonly at: Scratch
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** What the agent heard. */
  readonly heard: () => readonly Record<string, unknown>[]
}

function claiming(attempts: readonly (readonly Step[])[], more: readonly string[] = []): Claims {
  const at = scratch({ tasks: tasksOf(1) })
  const log = join(at.root, 'heard.log')
  return {
    at,
    args: [
      'demo',
      '--json',
      '--agent=acp',
      `--agent-command=${agentPath('acp-claims.mjs')}`,
      `--agent-env=CLAIM_STEPS=${JSON.stringify(attempts)}`,
      `--agent-env=CLAIM_LOG=${log}`,
      `--verify=${gate}`,
      ...more,
    ],
    env: {},
    heard: () =>
      existsSync(log)
        ? readFileSync(log, 'utf8')
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as Record<string, unknown>)
        : [],
  }
}

function answersOf({ heard }: Claims): readonly string[] {
  return heard().flatMap(({ answer }) => (typeof answer === 'string' ? [answer] : []))
}

/** `claim 1 refused: …` */
function claimsOf(end: Finished): readonly string[] {
  return eventsOf(end).flatMap((event) =>
    event.type === 'claim.judged'
      ? [`${event.claim} ${event.outcome}${event.reason && `: ${event.reason}`}`]
      : [],
  )
}

function warningsOf(end: Finished): readonly string[] {
  return eventsOf(end).flatMap((event) => (event.type === 'warning' ? [event.message] : []))
}

function verdictsOf({ at }: Claims): readonly unknown[] {
  return at.state().iterations.map(({ verdict, attempt, claims }) => [verdict, attempt, claims])
}

async function loop(claims: Claims): Promise<Finished> {
  const end = await ralph(claims.at, ['loop', ...claims.args])
  expectTruth(claims.at, end)
  return end
}

describe('16: a claim is judged while the agent works', () => {
  test('refused with what the gate printed, mended in the same session, accepted: one attempt', async () => {
    const claims = claiming([[bad, claim, good, claim, { say: 'That was it.' }]])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claimsOf(end)).toEqual([`1 refused: ${gate} failed (exit 1): made.txt is not good`, '2 accepted'])
    const [refused, accepted] = answersOf(claims)
    expect(refused).toContain('made.txt is not good')
    expect(refused).toContain('4 claims left')
    expect(accepted).toMatch(/^Accepted\. The gate passed\./)
    expect(verdictsOf(claims)).toEqual([['complete', 1, 2]])
    expect(claims.at.read('made.txt')).toBe('good')
    // For each claim, and for the verdict once the agent was dead.
    const gates = eventsOf(end).flatMap((event) =>
      event.type === 'gate.ended' ? [[event.claim, event.outcome]] : [],
    )
    expect(gates).toEqual([
      [1, 'failed'],
      [2, 'passed'],
      [undefined, 'passed'],
    ])
  })

  test('what it changes after an accepted claim is judged again: not complete', async () => {
    const claims = claiming([[good, claim, bad]], ['--max-retries', '0'])
    const end = await loop(claims)
    expect(end.code).toBe(3)
    expect(claimsOf(end)).toEqual(['1 accepted'])
    expect(verdictsOf(claims)).toEqual([['gate_failed', 1, 1]])
  })

  test('the last word wins: a failure after an accepted claim, by tool or by text, takes it back', async () => {
    const failed = { call: ['story_failed', { reason: 'the parser is missing' }] }
    const claims = claiming(
      [
        [good, claim, failed],
        [good, claim, { say: '<promise>FAILED: it is wrong after all</promise>' }],
        [failed, good, claim],
      ],
      ['--max-retries', '2'],
    )
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claims.at.state().iterations.map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['failed', 'the parser is missing'],
      ['failed', 'it is wrong after all'],
      ['complete', ''],
    ])
  })

  test('what the gates write anew each time is theirs, also where they ran for a claim first', async () => {
    const report = 'date +%s%N > report.txt'
    const claims = claiming([[bad, claim, good, claim]], ['--verify', report])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(verdictsOf(claims)).toEqual([['complete', 1, 2]])
  })

  test('boxes that were forgotten are named by a claim, not by another attempt', async () => {
    const tasks = 'openspec/changes/demo/tasks.md'
    const one = { run: `sed -i 's/\\[ \\] 1.1/[x] 1.1/' ${tasks}` }
    const two = { run: `sed -i 's/\\[ \\] 1.2/[x] 1.2/' ${tasks}` }
    const claims = claiming([[good, one, claim, two, claim]])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claimsOf(end)).toEqual(['1 refused: 1 task of the story still open', '2 accepted'])
    expect(verdictsOf(claims)).toEqual([['complete', 1, 2]])
  })

  test('the promise by text goes on working where the tools are there, and a refused claim does not stand in its way', async () => {
    const claims = claiming([[bad, claim, good, { say: '<promise>COMPLETE</promise>' }]])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(verdictsOf(claims)).toEqual([['complete', 1, 1]])
  })

  test('progress is told, and a learning is kept through the revert of its attempt', async () => {
    const claims = claiming([
      [
        { call: ['report_progress', { task: 'the parser' }] },
        { call: ['record_learning', { text: 'tests need\nTZ=UTC' }] },
        { call: ['story_failed', { reason: 'no' }] },
      ],
      [good, claim],
    ])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(eventsOf(end)).toContainEqual(
      expect.objectContaining({ type: 'progress.reported', n: 1, task: 'the parser' }),
    )
    const learnings = await ralph(claims.at, ['learnings', 'demo'])
    expect(learnings.stdout).toContain('- tests need TZ=UTC')
  })
})

describe('16: a claim is the agent’s own, and of its attempt', () => {
  const steal = `node ${agentPath('steals-claim.mjs')}`

  test('a sub-process that finds the secret is refused and told; the story is not complete', async () => {
    const claims = claiming([[good, { run: steal }]], ['--max-retries', '0'])
    const end = await loop(claims)
    expect(end.code).toBe(3)
    expect(verdictsOf(claims)).toEqual([['none', 1, undefined]])
    expect(claimsOf(end)).toEqual([])
    expect(warningsOf(end)).toContain(
      "A claim that is not the agent's was refused: the secret of this attempt was used before.",
    )
    const [first = '', second = ''] = String(
      claims.heard().find(({ run }) => run !== undefined)?.['run'],
    ).split('\n')
    // Used up, so that it may be found; no variable and no file has it.
    expect(JSON.parse(first)).toEqual({ isFound: true, beside: ['s'], own: [] })
    expect(JSON.parse(second)).toEqual({ heard: '' })
  })

  test('a guessed secret is refused and told', async () => {
    const claims = claiming([[good, { run: `${steal} ${'0'.repeat(48)}` }]], ['--max-retries', '0'])
    const end = await loop(claims)
    expect(end.code).toBe(3)
    expect(claimsOf(end)).toEqual([])
    expect(warningsOf(end)).toContain(
      "A claim that is not the agent's was refused: it does not know the secret of this attempt.",
    )
  })

  test('a claim for another story is no claim', async () => {
    const other = { call: ['story_complete', { summary: 'done', story: '2' }] }
    const claims = claiming([[good, other]], ['--max-retries', '0'])
    const end = await loop(claims)
    expect(end.code).toBe(3)
    expect(claimsOf(end)).toEqual([])
    expect(answersOf(claims)[0]).toContain('it is about your own story')
  })

  test('the secret is in no prompt, journal, state file, transcript or file of the work tree', async () => {
    const dump = {
      run: 'cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" | grep ^RALPH_CLAIMS_KEY= | sort -u',
    }
    const claims = claiming([[good, dump, claim]])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    const keys =
      String(claims.heard().find(({ run }) => run !== undefined)?.['run']).match(/[0-9a-f]{48}/g) ?? []
    expect(keys.length).toBeGreaterThan(0)
    const { at } = claims
    const files = readdirSync(at.repo, { recursive: true, withFileTypes: true, encoding: 'utf8' })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    for (const key of keys)
      for (const text of [...files, end.stdout, end.stderr]) expect(text).not.toContain(key)
  })
})

describe('16: claims have limits', () => {
  test('--claims 1: a second one is not judged, and says how to go on', async () => {
    const claims = claiming(
      [[bad, claim, good, claim, claim, { say: '<promise>COMPLETE</promise>' }]],
      ['--claims', '1'],
    )
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claimsOf(end)).toHaveLength(1)
    expect(answersOf(claims)[0]).toContain('That was the last claim of this attempt')
    expect(answersOf(claims)[1]).toContain('used up')
    const told = warningsOf(end).filter((message) => message.includes('has used up its claims (1)'))
    expect(told).toHaveLength(1)
    expect(verdictsOf(claims)).toEqual([['complete', 1, 1]])
  })

  test('--claims 0: no tools, and no word of them in the prompt', async () => {
    const claims = claiming([[good, { say: '<promise>COMPLETE</promise>' }]], ['--claims', '0'])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claims.heard()).toEqual([{ servers: [], isTold: false }])
  })

  test('with claims the agent is offered four tools and told of them; an agent that has no MCP is not', async () => {
    const claims = claiming([[good, claim]])
    await loop(claims)
    expect(claims.heard().slice(0, 2)).toEqual([
      { servers: ['ralph_story'], isTold: true },
      { tools: ['story_complete', 'story_failed', 'report_progress', 'record_learning'] },
    ])
    const at = scratch({ tasks: tasksOf(1) })
    const own = join(at.root, 'prompt.txt')
    const agent = `cat > ${own}; echo "<promise>COMPLETE</promise>"`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect(end.code).toBe(0)
    expect(readFileSync(own, 'utf8')).toContain('How to report')
    expect(readFileSync(own, 'utf8')).not.toContain('story_complete')
  })

  test('ralph prompt shows what the next agent is told: of the tools where it gets them', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const shown = async (env: NodeJS.ProcessEnv): Promise<string> =>
      (await ralph(at, ['prompt', 'demo'], { env })).stdout
    expect(await shown({ RALPH_AGENT: 'claude' })).toContain('story_complete')
    expect(await shown({ RALPH_AGENT: 'claude', RALPH_CLAIMS: '0' })).not.toContain('story_complete')
    expect(await shown({ RALPH_AGENT: 'gemini' })).not.toContain('story_complete')
    // Whoever names permissions of their own gets those and no others: its tools would be refused.
    at.write('ralph.yaml', 'agent: claude\nagent_args: [--permission-mode, plan]\n')
    expect(await shown({})).not.toContain('story_complete')
  })

  test('two claims at once are judged one after the other', async () => {
    const both = { calls: [claim.call, claim.call] }
    const claims = claiming([[good, both]])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    const order = eventsOf(end).flatMap((event) =>
      'claim' in event && event.claim !== undefined ? [`${event.type} ${event.claim}`] : [],
    )
    const whole = (n: number): string[] =>
      ['claim.made', 'gate.started', 'gate.ended', 'claim.judged'].map((type) => `${type} ${n}`)
    expect(order).toEqual([...whole(1), ...whole(2)])
  })
})

describe('16: in the middle of a claim', () => {
  /** A gate that never ends while there is a file `slow`. */
  const slow = 'test ! -e slow || { echo begun > ../gate-begun; exec tail -f /dev/null; }'
  const hang = { write: 'slow', text: '' }
  /** The second of its gates. */
  const begun = (stdout: string): boolean => stdout.split('"type":"gate.started"').length > 2

  test('TERM: nothing is left of the gate or the agent, the attempt is interrupted, a resume goes on', async () => {
    const claims = claiming([[good, hang, claim]], ['--verify', slow])
    const { at } = claims
    const running = start(at, ['loop', ...claims.args])
    await running.seen(begun)
    running.child.kill('SIGTERM')
    const end = await running.ended
    expectTruth(at, end)
    expect(end.code).toBe(143)
    expect(claimsOf(end)).toEqual(['1 stopped'])
    expect(verdictsOf(claims)).toEqual([['interrupted', 1, 1]])
    expect(existsSync(join(at.repo, 'slow'))).toBe(false)
    const steps = `CLAIM_STEPS=${JSON.stringify([[good, claim]])}`
    const log = `CLAIM_LOG=${join(at.root, 'heard.log')}`
    const resumed = await ralph(at, ['resume', 'demo', '--json', '--agent-env', steps, '--agent-env', log])
    expect(resumed.code).toBe(0)
    expectTruth(at, resumed)
  })

  test('kill -9 of ralph: a resume ends the gate and the agent, puts the tree back and goes on', async () => {
    const claims = claiming([[good, hang, claim]], ['--verify', slow])
    const { at } = claims
    const running = start(at, ['loop', ...claims.args])
    await running.seen(begun)
    running.child.kill('SIGKILL')
    await running.ended
    longDead(at)
    const steps = `CLAIM_STEPS=${JSON.stringify([[good, claim]])}`
    const log = `CLAIM_LOG=${join(at.root, 'heard.log')}`
    const resumed = await ralph(at, ['resume', 'demo', '--json', '--agent-env', steps, '--agent-env', log])
    expect(resumed.code).toBe(0)
    expectTruth(at, resumed)
    expect(verdictsOf(claims)).toEqual([
      ['interrupted', 1, 1],
      ['complete', 1, 1],
    ])
    expect(existsSync(join(at.repo, 'slow'))).toBe(false)
  })

  test('the agent dies: its gates are ended, the claim counts for nothing', async () => {
    const claims = claiming(
      [
        [
          good,
          hang,
          { begin: claim.call },
          { run: 'until test -e ../gate-begun; do sleep 0.05; done' },
          { exit: 1 },
        ],
      ],
      ['--verify', slow, '--max-retries', '0'],
    )
    const end = await loop(claims)
    expect(end.code).toBe(3)
    expect(claimsOf(end)).toEqual(['1 stopped'])
    expect(verdictsOf(claims)).toEqual([['crash', 1, 1]])
  })

  test('a call that its client gives up ends its gates, and the next claim is judged', async () => {
    const claims = claiming(
      [
        [
          good,
          hang,
          { begin: claim.call },
          { run: 'until test -e ../gate-begun; do sleep 0.05; done; rm slow' },
          { cancel: true },
          claim,
        ],
      ],
      ['--verify', slow],
    )
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claimsOf(end)).toEqual(['1 stopped', '2 accepted'])
  })

  test('a gate may take longer than the agent may be silent', async () => {
    // Three times the idle timeout, and the agent prints nothing meanwhile.
    const long = 'test -e ../waited || { sleep 6; : > ../waited; }'
    const claims = claiming([[good, claim]], ['--verify', long, '--idle-timeout', '0.033'])
    const end = await loop(claims)
    expect(end.code).toBe(0)
    expect(claimsOf(end)).toEqual(['1 accepted'])
  })
})

describe('16: what a person sees of a claim', () => {
  test('one line in plain lines, and one in why', async () => {
    const claims = claiming([[bad, claim, good, claim]])
    const { at } = claims
    const end = await ralph(at, ['loop', ...claims.args.filter((arg) => arg !== '--json')])
    expect(end.code).toBe(0)
    const lines = end.stdout.split('\n').filter((line) => line.includes('claim '))
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(/claim 1 refused: .*made\.txt is not good/)
    expect(lines[1]).toMatch(/claim 2 accepted/)
    const why = await ralph(at, ['why', 'demo', '--trace'])
    expect(why.stdout).toContain('claim 1 refused')
  })
})
