// What a person has mended and ticked between two loops: the gates judge it before it counts, and it is saved.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { RunReport } from '../../src/core/report.ts'
import type { Scratch } from './harness.ts'
import { goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import { counted, installWtUsage } from './usage-kit.ts'

const plan = 'openspec/changes/demo/tasks.md'
const gate = 'echo run >> ../gate.log; grep -q good hello.txt'
/** How often the gate has run. */
const runsOf = (at: Scratch): number => at.read('../gate.log').trim().split('\n').length

/** Story 1 failed its gate, was mended by hand to these words, and ticked. */
async function mended(words: string, stories = 1, args: readonly string[] = []): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(stories) })
  const end = await ralph(at, [
    'loop',
    'demo',
    '--agent-command',
    goodAgent,
    '--max-retries',
    '0',
    '--verify',
    gate,
    ...args,
  ])
  expect(end.code).toBe(3)
  at.write('hello.txt', words)
  at.write(plan, at.read(plan).replaceAll('[ ] 1.', '[x] 1.'))
  return at
}

/** Story 1 is an agent's, and story 2 has failed. */
async function firstOfTwo(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(2) })
  const agent = 'test $RALPH_STORY = 2 && exit 1; echo good > hello.txt; echo "<promise>COMPLETE</promise>"'
  const args = ['--agent-command', agent, '--max-retries', '0', '--verify', gate]
  expect((await ralph(at, ['loop', 'demo', ...args])).code).toBe(3)
  return at
}

test('U1: a story that was ticked by hand is not done while a gate is red: nothing is undone, no agent starts, exit 3', async () => {
  const at = await mended('broken\n', 2)
  const before = runsOf(at)
  const end = await ralph(at, ['resume', 'demo'])
  expect([end.code, end.stderr]).toEqual([
    3,
    expect.stringContaining('story 1 was ticked by hand, and files'),
  ])
  expect(runsOf(at)).toBe(before + 1)
  expect(end.stdout).toContain('tory 1 is ticked by hand, but ')
  expect(end.stdout).toContain('when it is fixed, or its box unticked')
  expect(end.stdout).not.toMatch(/done {3}|is as it began/)
  expect([at.read('hello.txt'), at.read(plan).includes('[x] 1.1')]).toEqual(['broken\n', true])
  // Nor is it the next time, whatever the plan said then.
  const again = await ralph(at, ['resume', 'demo'])
  expect(again.code).toBe(3)
  expect(at.git('log', '--all', '--format=%s')).not.toContain('checkpoint: 2')
  for (const look of ['status', 'why', 'report']) {
    const { stdout } = await ralph(at, [look, 'demo'])
    expect(stdout, look).toContain('ticked by hand')
  }
})

test('U1: a story that was ticked by hand and passes is saved as a checkpoint, and the squash brings it', async () => {
  const at = await mended('good\n')
  const before = runsOf(at)
  const end = await ralph(at, ['resume', 'demo'])
  expect(end.code).toBe(0)
  expect(runsOf(at)).toBe(before + 1)
  expect(end.stdout).not.toContain('No story of this run is done yet')
  expect(at.git('status', '--porcelain')).toBe('')
  expect(at.git('log', '-1', '--format=%B', 'ralph/demo')).toMatch(/^checkpoint: 1\n\nticked by hand\n/)
  // It has been proven: the gate is not asked again.
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  expect(runsOf(at)).toBe(before + 1)
  expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(0)
  expect([at.git('show', 'HEAD:hello.txt'), at.git('status', '--porcelain')]).toEqual(['good', ''])
})

test('U1: the next story runs on what was done by hand once that has passed', async () => {
  const at = await mended('good\n', 2)
  const end = await ralph(at, ['resume', 'demo'])
  expect(end.code).toBe(0)
  expect(at.git('log', '--format=%s', '-3', 'ralph/demo').split('\n')).toEqual([
    'checkpoint: 2',
    'checkpoint: 1',
    'initial state',
  ])
})

test('U1: a red gate that is mended is asked again, and an unticked story is an agent’s again', async () => {
  const at = await mended('broken\n')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  at.write('hello.txt', 'good\n')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  const other = await mended('broken\n')
  expect((await ralph(other, ['resume', 'demo'])).code).toBe(3)
  other.write(plan, other.read(plan).replaceAll('[x] 1.', '[ ] 1.'))
  other.write('hello.txt', 'good\n')
  const end = await ralph(other, ['resume', 'demo'])
  expect(end.code).toBe(0)
  expect(end.stdout).toContain('#2')
})

test('U1: with stashes what was done by hand is judged, too, and stays where it is', async () => {
  const at = await mended('broken\n', 1, ['--checkpoint', 'stash'])
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  expect(at.read('hello.txt')).toBe('broken\n')
  at.write('hello.txt', 'good\n')
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  expect([at.read('hello.txt'), at.git('stash', 'list')]).toEqual(['good\n', ''])
})

test('U1: a gate that takes away what was done by hand takes nothing that is in no ref', async () => {
  const at = await mended('good\n')
  const end = await ralph(at, ['resume', 'demo', '--verify', 'rm hello.txt; exit 1'])
  expect(end.code).toBe(3)
  expect(at.git('show', 'ralph/demo:hello.txt')).toBe('good')
})

test.each([
  ['--cleanup', 'resume'],
  ['--cleanup', 'loop'],
  ['--squash', 'resume'],
  ['--squash', 'loop'],
])('U1: after finish %s a tick by hand counts for %s once the gates pass', async (choice, command) => {
  const at = await firstOfTwo()
  expect((await ralph(at, ['finish', 'demo', choice])).code).toBe(0)
  at.write('hello.txt', 'broken\n')
  at.write(plan, at.read(plan).replaceAll('[ ] 2.', '[x] 2.'))
  const before = runsOf(at)
  const args = ['demo', ...(command === 'loop' ? ['--agent-command', goodAgent, '--verify', gate] : [])]
  const red = await ralph(at, [command, ...args])
  expect([red.code, runsOf(at)]).toEqual([3, before + 1])
  expect(red.stdout).toContain('tory 2 is ticked by hand, but ')
  expect(red.stdout).toContain('when it is fixed, or its box unticked')
  expect([at.read('hello.txt'), at.read(plan).includes('[x] 2.1')]).toEqual(['broken\n', true])
  expect((await ralph(at, ['status', 'demo'])).stdout).toContain('ticked by hand')
  at.write('hello.txt', 'good\n')
  const green = await ralph(at, ['resume', 'demo'])
  expect([green.code, runsOf(at)]).toEqual([0, before + 2])
  expect((await ralph(at, ['finish', 'demo', '--cleanup'])).code).toBe(0)
  expect([at.read('hello.txt'), at.git('branch', '--format=%(refname:short)')]).toEqual(['good\n', 'main'])
})

test('U1: what is ticked by hand while the loop is paused counts once the gates pass', async () => {
  for (const [words, code] of [
    ['broken\n', 3],
    ['good\n', 0],
  ] as const) {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh
while [ ! -e "${at.root}/go" ]; do sleep 0.05; done
echo good > hello.txt
echo "<promise>COMPLETE</promise>"
`,
    )
    const loop = start(at, ['loop', 'demo', '--agent-command', agent, '--verify', gate, '--json'])
    await loop.seen((out) => out.includes('"iteration.started"'))
    await ralph(at, ['pause', 'demo'])
    at.write('../go', '')
    await loop.seen((out) => out.includes('"for":"pause"'))
    at.write('hello.txt', words)
    at.write(plan, at.read(plan).replaceAll('[ ] 2.', '[x] 2.'))
    expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
    const end = await loop.ended
    expect([end.code, runsOf(at)]).toEqual([code, 2])
    expect(end.stdout.includes('Story 2 is ticked by hand, but ')).toBe(code === 3)
    expect(at.git('log', '-1', '--format=%B', 'ralph/demo')).toMatch(/^checkpoint: 2\n\nticked by hand\n/)
    expect([at.read('hello.txt'), at.git('show', 'ralph/demo:hello.txt')]).toEqual([words, words.trim()])
  }
})

test('U1: a box that somebody ticks between two stories counts once the gates pass', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  // Asked once more when a story is saved.
  installWtUsage(
    at,
    `grep -q '\\[x\\] 1' ${plan} && sed -i 's/\\[ \\] 2/[x] 2/' ${plan}; ${counted('n * 10')}`,
  )
  const args = ['--agent-command', goodAgent, '--verify', '[ $RALPH_STORY != 2 ]']
  const end = await ralph(at, ['loop', 'demo', ...args])
  expect([end.code, end.stdout]).toEqual([3, expect.stringContaining('tory 2 is ticked by hand, but ')])
})

const agentless = ['--agent-command', 'touch ../spawned; false', '--verify', gate]

test.each([[[]], [['--checkpoint', 'stash']], [['--story', '1']]])(
  'U1: what is ticked before the first loop counts once the gates pass: %j',
  async (args) => {
    const at = scratch({ tasks: tasksOf(2).replaceAll('[ ] 1.', '[x] 1.') })
    if (args[0] !== '--story') at.write(plan, at.read(plan).replaceAll('[ ]', '[x]'))
    at.write('hello.txt', 'broken\n')
    const before = at.git('status', '--porcelain', '--branch')
    const red = await ralph(at, ['loop', 'demo', ...agentless, ...args])
    expect([red.code, runsOf(at)]).toEqual([3, 1])
    expect(red.stdout).toContain('ticked by hand, but ')
    expect(at.state()).toMatchObject({ status: 'stuck', current_iteration: 0 })
    // Nothing of a loop stays: its user is where they were, with what they had.
    expect(at.git('status', '--porcelain', '--branch')).toBe(before)
    expect([at.git('branch', '--format=%(refname:short)'), at.git('stash', 'list')]).toEqual(['main', ''])
    for (const look of ['status', 'list']) {
      const { stdout } = await ralph(at, [look])
      expect([look, stdout.includes('✓ done')]).toEqual([look, false])
    }
    at.write('hello.txt', 'good\n')
    expect([(await ralph(at, ['resume', 'demo'])).code, runsOf(at)]).toEqual([0, 2])
    expect(existsSync(join(at.root, 'spawned'))).toBe(false)
  },
)

test('U1: a first loop whose gates pass on what is ticked is done, and its user is where they were', async () => {
  const at = scratch({ tasks: tasksOf(1).replaceAll('[ ]', '[x]') })
  at.write('hello.txt', 'good\n')
  const dry = await ralph(at, ['loop', 'demo', '--dry-run', ...agentless])
  expect(dry.stdout).toContain('no agent would run, only the gates, once')
  const end = await ralph(at, ['loop', 'demo', ...agentless, '--on-complete', 'keep'])
  expect([end.code, runsOf(at)]).toEqual([0, 1])
  expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
  expect(at.git('status', '--porcelain')).toBe('?? hello.txt')
  // It is done: nothing runs again.
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  expect((await ralph(at, ['loop', 'demo', ...agentless])).code).toBe(0)
  expect([runsOf(at), existsSync(join(at.root, 'spawned'))]).toEqual([1, false])
})

test('U1: loop --fresh with nothing left to do is no way around the gates of a run that is not done', async () => {
  const at = await mended('broken\n')
  const before = runsOf(at)
  const dry = await ralph(at, ['loop', 'demo', '--fresh', '--dry-run', ...agentless])
  expect([dry.code, dry.stdout]).toEqual([2, expect.stringContaining('ralph resume demo')])
  const end = await ralph(at, ['loop', 'demo', '--fresh', ...agentless])
  expect([end.code, runsOf(at)]).toEqual([2, before])
  expect(end.stderr).toContain('ralph resume demo')
  expect(at.state()).toMatchObject({ status: 'stuck' })
})

test('B8: the report gives a story to the person who did it, with their files; history and attempts have it, too', async () => {
  const at = await mended('good\n', 2)
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(0)
  const look = async (...args: string[]): Promise<string> => (await ralph(at, args)).stdout
  const text = await look('report', 'demo')
  expect(text).toMatch(
    /^✓ 1 .* {3}by hand, gate green {3}.*\n {4}✕ #1 gate failed .*\n(?: {6}.*\n)+ {4}1 file: hello\.txt\n\n✓ 2 .* {3}#2 {3}.*\n {4}1 file: story-2\.txt\n/m,
  )
  const md = await look('report', 'demo', '--format', 'md')
  expect(md).toMatch(/^\| 1 .* \| done by hand, gate green \|/m)
  expect(md).toMatch(/## Files\n\n- 1 .*: 1 file: hello\.txt\n- 2 .*: 1 file: story-2\.txt\n/)
  const html = await look('report', 'demo', '--format', 'html')
  expect(html).toContain('<td>done by hand, gate green</td>')
  expect(html).toMatch(/1 file: 1 [^<]*<\/summary><ul><li><code>hello\.txt</)
  const { stories } = JSON.parse(await look('report', 'demo', '--format', 'json')) as RunReport
  expect(stories.map(({ by_hand: hand, files, gates_ms: ms }) => [hand?.gates, files?.[0], ms !== undefined]))
    // What the gates took of the hand's work is no time of the attempt before it.
    .toEqual([
      ['passed', 'hello.txt', true],
      [undefined, 'openspec/changes/demo/tasks.md', true],
    ])
  const commit = at.git('rev-parse', '--short=7', 'ralph/demo~1')
  expect(at.git('show', '--name-only', '--format=', commit)).toContain('hello.txt')
  const row = `gate green; 1 file: hello.txt (git show ${commit})`
  for (const [command, first] of [
    ['history', /^#1 .*\n {4}[\d:]{8} {2}1 .*✓ by hand .*/m],
    ['attempts', /^#1 .*\n {4}1 .*✓ by hand .*/m],
  ] as const)
    expect(first.exec(await look(command, 'demo'))?.[0], command).toContain(row)
  expect(JSON.parse(await look('history', 'demo', '--json'))).toMatchObject({
    by_hand: [{ after: 1, story_ids: ['1'], checked: { gates: 'passed', reason: '' } }],
  })
})

test('B8: after restore and resume the report has the files of a story that the loop named when it saved them', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const bad = 'echo bad > bad.txt; echo "<promise>FAILED: no</promise>"'
  expect((await ralph(at, ['loop', 'demo', '--agent-command', bad, '--max-retries', '0'])).code).toBe(3)
  expect((await ralph(at, ['restore', '1', 'demo'])).code).toBe(0)
  const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
  expect(end.stdout).toMatch(/saved [\da-f]{7}, 1 file: story-1\.txt /)
  expect((await ralph(at, ['report', 'demo'])).stdout).toContain(
    '    1 file: story-1.txt\n    1 file not by the loop, saved with it: bad.txt\n',
  )
  expect((await ralph(at, ['history', 'demo'])).stdout).toMatch(
    /^ {4}[\d:]{8} {2}1 .*○ by hand .*not by the loop, saved with this story; 1 file: bad\.txt/m,
  )
})

test('B8: with a red gate a story is ticked, not done; unticked again it is the agent’s, and not its files', async () => {
  const at = await mended('broken\n', 2)
  expect((await ralph(at, ['resume', 'demo'])).code).toBe(3)
  const red = (await ralph(at, ['report', 'demo'])).stdout
  expect(red).toMatch(/^✕ 1 .* {3}by hand, gate red /m)
  // Unticked it is the agent's again, on top of what is there.
  at.write(plan, at.read(plan).replaceAll('[x] 1.', '[ ] 1.'))
  at.write('hello.txt', 'good\n')
  const end = await ralph(at, ['resume', 'demo'])
  expect(end.code).toBe(0)
  expect(end.stdout).toMatch(/saved [\da-f]{7}, 1 file: story-1\.txt /)
  const { stdout } = await ralph(at, ['report', 'demo'])
  expect(stdout).toMatch(
    /^✓ 1 (?!.*by hand).*\n(?: {4,}.*\n)* {4}1 file: story-1\.txt\n {4}1 file not by the loop, saved with it: hello\.txt\n/m,
  )
})

test.each([
  ['before the first attempt', 0],
  ['after an attempt that ran no gate', 1],
])(
  'U1: a red gate on what was ticked by hand: the command that is printed shows what it said, why names it, and nothing counts those stories as done: %s',
  async (_, attempts) => {
    const at = scratch({ tasks: tasksOf(2) })
    const loud = at.script('loud.sh', '#!/bin/sh\nseq 1 40\necho boom\nexit 1\n')
    const clueless = 'echo "<promise>FAILED: no idea</promise>"'
    const args = ['--agent-command', clueless, '--max-retries', '0', '--verify', loud]
    if (attempts > 0) expect((await ralph(at, ['loop', 'demo', ...args])).code).toBe(3)
    at.write(plan, at.read(plan).replaceAll('[ ]', '[x]'))
    const end = await ralph(at, attempts > 0 ? ['resume', 'demo'] : ['loop', 'demo', ...args])
    expect([end.code, end.stdout]).toEqual([
      3,
      expect.stringMatching(/more lines: ralph logs demo --gate$/m) as string,
    ])
    if (attempts > 0) expect(end.stderr).toContain('stories 1, 2 were ticked by hand')
    const look = async (...words: string[]): Promise<string> => {
      const { code, stdout } = await ralph(at, words)
      expect([words, code]).toEqual([words, 0])
      return stdout
    }
    const output = await look('logs', 'demo', '--gate')
    expect(output).toMatch(/^▸ what was ticked by hand: 1, 2 {3}by hand, \d\d:\d\d:\d\d\n/)
    expect([output.includes('\n1\n2\n'), output.includes('\nboom\n')]).toEqual([true, true])
    const why = await look('why', 'demo')
    expect(why).toMatch(/^ +what +stories 1, 2 are ticked by hand, and a gate fails on that$/m)
    expect(why).toMatch(/^ +because +.*loud\.sh failed \(exit 1\):$/m)
    expect(why).toMatch(/^ +boom$/m)
    expect(why).toMatch(/^ +safe +0 of 2 stories done/m)
    expect(why).toMatch(/^ +look +ralph logs demo --gate +all that the gate printed$/m)
    expect(why).not.toMatch(/ralph (?:diff|logs) 1/)
    const status = await look('status', 'demo')
    expect(status).toMatch(/^ +stories +0\/2 done$/m)
    expect(status).not.toContain('no idea')
    expect(await look('report', 'demo')).toMatch(/^ *0 of 2 stories|^ *0\/2/m)
    expect(at.state().stories.map(({ status: each }) => each)).toEqual(['open', 'open'])
  },
)
