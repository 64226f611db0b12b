import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, tasksOf } from './harness.ts'

const failing = 'echo "<promise>FAILED: no</promise>"'

describe('resume', () => {
  test('after a stuck story it starts with fresh attempts; history and counters go on; --feedback reaches the next prompt once', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const stuck = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      failing,
      '--max-retries',
      '1',
      '--json',
    ])
    expect(stuck.code).toBe(3)
    const agent = `cat > "${at.root}/prompt-$RALPH_ITERATION"; ${goodAgent}`
    const resumed = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      agent,
      '--feedback',
      'mind the gap',
      '--json',
    ])
    expect(resumed.code).toBe(0)
    expect(
      at.state().iterations.map((iteration) => [iteration.n, iteration.story_id, iteration.attempt]),
    ).toEqual([
      [1, '1', 1],
      [2, '1', 2],
      [3, '1', 1],
      [4, '2', 1],
    ])
    expect(readFileSync(join(at.root, 'prompt-3'), 'utf8')).toContain('mind the gap')
    expect(readFileSync(join(at.root, 'prompt-4'), 'utf8')).not.toContain('mind the gap')
  })

  test('nothing to resume: exit 2; already done: exit 0, and --on-complete applies', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const nothing = await ralph(at, ['resume', 'demo'])
    expect(nothing.code).toBe(2)
    expect(nothing.stderr).toContain('ralph loop demo')
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect((await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('ralph/demo')
    expect(
      (await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--on-complete', 'cleanup'])).code,
    ).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.state().iterations).toHaveLength(1)
  })

  test('max iterations: stuck with exit 3; a raised limit goes on', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const first = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      '--max-iterations',
      '1',
      '--json',
    ])
    expect(first.code).toBe(3)
    expect(at.state()).toMatchObject({ status: 'stuck', stop_reason: 'iterations', max_iterations: 1 })
    const same = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      goodAgent,
      '--max-iterations',
      '1',
      '--json',
    ])
    expect(same.code).toBe(3)
    const more = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      goodAgent,
      '--max-iterations',
      '5',
      '--json',
    ])
    expect(more.code).toBe(0)
    expect(at.state().iterations).toHaveLength(2)
  })
})

describe('resume where there is no checkpoint', () => {
  test('after a cleanup of an unfinished run it goes on from the tree as it is; attempts and history stay', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `[ "$RALPH_STORY" = 1 ] && { ${goodAgent}; } || ${failing}`
    await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      agent,
      '--max-retries',
      '0',
      '--on-complete',
      'cleanup',
      '--json',
    ])
    expect(at.git('branch', '--show-current')).toBe('main')
    const resumed = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      goodAgent,
      '--on-complete',
      'keep',
      '--json',
    ])
    expect([resumed.code, resumed.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.state().iterations.map((iteration) => iteration.verdict)).toEqual([
      'complete',
      'failed',
      'complete',
    ])
    expect(
      at.git('for-each-ref', '--format=%(refname)', 'refs/ralph/demo/attempts').split('\n'),
    ).toHaveLength(3)
    expect(at.git('log', '--format=%s', '--reverse', 'main..')).toBe('initial state\ncheckpoint: 2')
  })

  test('G25: killed between the first event and the first git step, resume begins at the beginning', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    const journal = join(at.repo, '.git', 'ralph', 'changes', 'demo', 'journal.ndjson')
    const first = readFileSync(journal, 'utf8').split('\n')[0] ?? ''
    at.git('checkout', '-q', 'main')
    at.git('branch', '-qD', 'ralph/demo')
    writeFileSync(journal, `${first}\n`)
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect([resumed.code, resumed.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.state().status).toBe('done')
  })
})

describe('done criteria', () => {
  test('S004-default-done-criteria-with-tasks: tasks.md in the change, else in the work tree', async () => {
    const at = scratch({ tasks: '' })
    at.write('tasks.md', tasksOf(1))
    at.git('add', '-A')
    at.git('commit', '-qm', 'plan')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(0)
    expect(at.state()).toMatchObject({ done_criteria: 'tasks', tasks_file: 'tasks.md', status: 'done' })
    expect(at.read('tasks.md')).not.toContain('[ ]')
  })

  test('S004-default-done-criteria-without-tasks: manual, with the exact warning; exit 5 until the human agrees', async () => {
    const at = scratch({ tasks: '' })
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect(end.stderr + end.stdout).toContain('No tasks.md found, using manual done criteria')
    expect(end.code).toBe(5)
    expect(end.stdout).toMatch(
      /it is done +ralph done demo\n +not yet +ralph resume demo --feedback "what is missing"\n/,
    )
    expect(at.state()).toMatchObject({ done_criteria: 'manual', status: 'stopped', stop_reason: 'human' })
    expect(at.git('log', '--format=%s', '-1')).toBe('checkpoint: iteration-1')
    const done = await ralph(at, ['done', 'demo'])
    expect(done.code).toBe(0)
    expect(at.state().status).toBe('done')
  })

  test('S004-explicit-manual-override: --done manual wins over a tasks.md; --task is what the agent is asked for', async () => {
    const at = scratch()
    const agent = `cat > "${at.root}/prompt"; ${goodAgent}`
    const end = await ralph(at, [
      'loop',
      'demo',
      '--done',
      'manual',
      '--task',
      'paint the shed',
      '--agent-command',
      agent,
      '--json',
    ])
    expect(end.code).toBe(5)
    expect(at.state()).toMatchObject({ done_criteria: 'manual', task: 'paint the shed' })
    expect(readFileSync(join(at.root, 'prompt'), 'utf8')).toContain('paint the shed')
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(3))
  })

  test('manual: work without a promise is kept as iteration-<n>, an empty iteration counts toward a stall', async () => {
    const at = scratch()
    const agent = '[ "$RALPH_ITERATION" = 1 ] && echo a > a.txt; echo thinking'
    const end = await ralph(at, [
      'loop',
      'demo',
      '--done',
      'manual',
      '--agent-command',
      agent,
      '--stall-threshold',
      '2',
      '--json',
    ])
    expect(end.code).toBe(4)
    expect(at.state()).toMatchObject({ status: 'stalled', max_iterations: 10 })
    expect(at.state().iterations.map((iteration) => iteration.verdict)).toEqual(['kept', 'none', 'none'])
    expect(at.git('log', '--format=%s', '--reverse', 'main..')).toBe('initial state\ncheckpoint: iteration-1')
  })

  test('--done tasks without a tasks.md: exit 2', async () => {
    const at = scratch({ tasks: '' })
    expect((await ralph(at, ['loop', 'demo', '--done', 'tasks', '--agent-command', goodAgent])).code).toBe(2)
  })

  test('only human tasks left: exit 5, listed, and never given to the agent', async () => {
    const at = scratch({ tasks: '## 1. A\n\n- [ ] 1.1 code it\n- [?] 1.2 Provide the key [input:KEY]\n' })
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(5)
    expect(end.stdout).toContain('Provide the key')
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(
      '## 1. A\n\n- [x] 1.1 code it\n- [?] 1.2 Provide the key [input:KEY]\n',
    )
  })

  test('stall: commit-less iterations end with exit 4 and every one is in the history', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      'true',
      '--stall-threshold',
      '2',
      '--json',
    ])
    expect(end.code).toBe(4)
    expect(at.state()).toMatchObject({ status: 'stalled', stop_reason: 'stall' })
    expect(at.state().iterations).toHaveLength(2)
  })
})

describe('finish and reports', () => {
  test('status --json is the state file plus alive', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    const status = JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as Record<
      string,
      unknown
    >
    const { updated_at: _, ...expected } = at.state()
    expect(status).toMatchObject({ ...expected, alive: false })
    expect(Object.keys(status).sort()).toEqual([...Object.keys(at.state()), 'alive'].sort())
  })

  test('finish --cleanup later, from a stuck run: done stories arrive uncommitted, half-done work does not', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `echo x > "s$RALPH_STORY.txt"; [ "$RALPH_STORY" = 1 ] && echo "<promise>COMPLETE</promise>" || ${failing}`
    await ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '0', '--json'])
    const finish = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(finish.code).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(existsSync(join(at.repo, 's1.txt'))).toBe(true)
    expect(existsSync(join(at.repo, 's2.txt'))).toBe(false)
  })

  test('attempts, diff and restore bring a failed attempt back', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      `echo precious > lost.txt; ${failing}`,
      '--max-retries',
      '0',
      '--json',
    ])
    const list = JSON.parse((await ralph(at, ['attempts', 'demo', '--json'])).stdout) as {
      attempts: { n: number; verdict: string; reason: string; ref: string }[]
    }
    expect(list.attempts).toMatchObject([
      { n: 1, verdict: 'failed', reason: 'no', ref: 'refs/ralph/demo/attempts/1' },
    ])
    expect((await ralph(at, ['diff', '1'])).stdout).toContain('+precious')
    expect((await ralph(at, ['restore', '1', '--to', join(at.root, 'out')])).code).toBe(0)
    expect(readFileSync(join(at.root, 'out', 'lost.txt'), 'utf8')).toBe('precious\n')
    expect((await ralph(at, ['restore', '1'])).code).toBe(0)
    expect(at.read('lost.txt')).toBe('precious\n')
  })

  test('reports work from a subdirectory, as text and as JSON', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('deep/er/file.txt', 'x')
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'], {
      cwd: join(at.repo, 'deep/er'),
    })
    expect(at.state().status).toBe('done')
    const named = readdirSync(at.root, { recursive: true, encoding: 'utf8' })
    expect(named.filter((path) => path.includes('loop-state'))).toEqual(['repo/.claude/loop-state.json'])
    for (const args of [
      ['list'],
      ['show', 'demo'],
      ['status'],
      ['history'],
      ['why'],
      ['attempts'],
      ['config'],
      ['learnings', 'demo'],
      ['report', '--format', 'json'],
    ]) {
      const text = await ralph(at, args, { cwd: join(at.repo, 'deep') })
      expect([args, text.code, text.stderr]).toEqual([args, 0, ''])
      expect(text.stdout).not.toMatch(/\u001b/)
      if (args[0] === 'report') continue
      const json = await ralph(at, [...args, '--json'], { cwd: join(at.repo, 'deep') })
      expect(json.code).toBe(0)
      expect(() => JSON.parse(json.stdout) as unknown).not.toThrow()
    }
    const logs = await ralph(at, ['logs'])
    expect(logs.stdout).toContain('<promise>COMPLETE</promise>')
  })

  test('--notify-command and --webhook get the complete event; a failing one is a warning, not a failure', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const bodies: string[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString('utf8')))
      request.on('end', () => {
        bodies.push(body)
        response.statusCode = bodies.length === 1 ? 200 : 500
        response.end()
      })
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
    const end = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      '--notify-command',
      `cat /dev/stdin > "${at.root}/told"`,
      '--webhook',
      url,
      '--json',
    ])
    expect(end.code).toBe(0)
    expect(JSON.parse(readFileSync(join(at.root, 'told'), 'utf8'))).toMatchObject({
      type: 'complete',
      status: 'done',
    })
    expect(JSON.parse(bodies[0] ?? '')).toEqual(eventsOf(end).at(-1))
    at.write('openspec/changes/demo/tasks.md', tasksOf(1))
    const again = await ralph(at, [
      'loop',
      'demo',
      '--fresh',
      '--agent-command',
      goodAgent,
      '--notify-command',
      'exit 9',
      '--webhook',
      url,
      '--json',
    ])
    expect(again.code).toBe(0)
    expect(again.stderr).toMatch(/notify-command failed/)
    expect(again.stderr).toMatch(/webhook answered 500/)
  })
})

describe('the state file and git', () => {
  test('F1: not ignored, it is invisible to git all the same, and the user’s .gitignore stays as it is', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('.gitignore', 'node_modules\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'ignore')
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(at.state().status).toBe('done')
    expect(at.git('status', '--porcelain')).toBe('')
    expect(at.git('ls-tree', '-r', '--name-only', 'ralph/demo')).not.toContain('.claude')
    expect(at.read('.gitignore')).toBe('node_modules\n')
  })

  test('F1: tracked by the repository, it is never committed or rolled back', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    mkdirSync(join(at.repo, '.claude'))
    writeFileSync(join(at.repo, '.claude', 'loop-state.json'), '{"somebody":"else"}')
    at.git('add', '-f', '.claude/loop-state.json')
    at.git('commit', '-qm', 'tracked by mistake')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(0)
    expect(at.state().status).toBe('done')
    expect(at.git('show', 'HEAD:.claude/loop-state.json')).toBe('{"somebody":"else"}')
    expect(at.git('diff', '--name-only', 'main..ralph/demo')).not.toContain('loop-state')
  })
})
