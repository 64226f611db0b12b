// What fresh eyes broke, each as they broke it.
import { cpSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'

const failing = 'echo "<promise>FAILED: no</promise>"'

describe('a resume goes on with the settings of its run', () => {
  test('gates: what they held back is not called done by a bare resume', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    expect(
      (
        await ralph(at, [
          'loop',
          'demo',
          '--agent-command',
          goodAgent,
          '--verify',
          'false',
          '--max-retries',
          '0',
          '--json',
        ])
      ).code,
    ).toBe(3)
    const bare = await ralph(at, ['resume', 'demo', '--json'])
    expect(bare.code).toBe(3)
    expect(eventsOf(bare).filter((event) => event.type === 'gate.ended')).toHaveLength(1)
    const mended = await ralph(at, ['resume', 'demo', '--verify', 'true', '--json'])
    expect(mended.code).toBe(0)
  })

  test('--done manual and --task: the human’s word is still needed', async () => {
    const at = scratch()
    await ralph(at, [
      'loop',
      'demo',
      '--done',
      'manual',
      '--task',
      'paint it',
      '--agent-command',
      goodAgent,
      '--json',
    ])
    const again = await ralph(at, ['resume', 'demo', '--feedback', 'no, green', '--json'])
    expect(again.code).toBe(5)
    expect(at.state()).toMatchObject({ done_criteria: 'manual', task: 'paint it', status: 'stopped' })
    expect(at.read('openspec/changes/demo/tasks.md')).toBe(tasksOf(3))
  })

  test('--checkpoint stash stays stash, cannot be changed half-way, and leaves no entry behind', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, [
      'loop',
      'demo',
      '--checkpoint',
      'stash',
      '--agent-command',
      failing,
      '--max-retries',
      '0',
      '--json',
    ])
    const change = await ralph(at, ['resume', 'demo', '--checkpoint', 'branch', '--agent-command', goodAgent])
    expect([change.code, change.stderr]).toEqual([2, expect.stringContaining('stash')])
    const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(0)
    expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
    expect(at.git('stash', 'list')).toBe('')
  })

  test('--story, --agent-command and --max-retries stay; flags of the resume win', async () => {
    const at = scratch()
    await ralph(at, [
      'loop',
      'demo',
      '--story',
      '2',
      '--agent-command',
      failing,
      '--max-retries',
      '1',
      '--json',
    ])
    const again = await ralph(at, ['resume', 'demo', '--json'])
    expect(again.code).toBe(3)
    expect(at.state().iterations.map((iteration) => iteration.story_id)).toEqual(['2', '2', '2', '2'])
    const won = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect(won.code).toBe(0)
    expect(at.state().iterations.at(-1)).toMatchObject({ story_id: '2', verdict: 'complete' })
  })
})

describe('found by attack', () => {
  test('a gate that cannot be run stops the loop with the tree at the checkpoint; what the user mends there stays', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const first = await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      goodAgent,
      '--verify',
      './check.sh',
      '--json',
    ])
    expect(first.code).toBe(1)
    expect(at.git('status', '--porcelain')).toBe('')
    at.write('check.sh', '#!/bin/sh\nexit 0\n')
    at.git('add', 'check.sh')
    at.git('update-index', '--chmod=+x', 'check.sh')
    const { chmodSync } = await import('node:fs')
    chmodSync(join(at.repo, 'check.sh'), 0o755)
    const end = await ralph(at, ['resume', 'demo', '--json'])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(existsSync(join(at.repo, 'check.sh'))).toBe(true)
  })

  test('a forced exit leaves a state file that says stopped', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const stubborn = 'trap "" INT TERM; echo working; while :; do sleep 1; done'
    const running = start(at, ['loop', 'demo', '--agent-command', stubborn])
    await running.seen((stdout) => stdout.includes('working'))
    running.child.kill('SIGTERM')
    await running.seen((stdout) => stdout.includes('Stopping'))
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
    expect(at.state().status).toBe('stopped')
  })

  test('HUP twice, as a closing terminal sends it, is one stop and is recorded', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const running = start(at, [
      'loop',
      'demo',
      '--agent-command',
      'trap "" HUP; echo working; exec tail -f /dev/null',
    ])
    await running.seen((stdout) => stdout.includes('working'))
    running.child.kill('SIGHUP')
    await running.seen((stdout) => stdout.includes('Stopping'))
    running.child.kill('SIGHUP')
    expect((await running.ended).code).toBe(129)
    expect(at.state()).toMatchObject({ status: 'stopped' })
    expect(at.state().iterations).toHaveLength(1)
  })

  test('an unknown change is exit 2 with the nearest name, also for stop, status, logs and finish', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    for (const args of [
      ['stop', 'dmeo'],
      ['status', 'dmeo'],
      ['logs', 'dmeo'],
      ['finish', 'dmeo', '--keep'],
      ['history', 'dmeo'],
    ]) {
      const end = await ralph(at, args)
      expect([args, end.code, end.stderr]).toEqual([args, 2, expect.stringContaining('demo')])
    }
    expect((await ralph(at, ['stop', 'demo'])).code).toBe(0)
  })

  test('a finished list needs no agent', async () => {
    const at = scratch({ tasks: '## 1. A\n\n- [x] 1.1 done\n' })
    expect((await ralph(at, ['loop', 'demo', '--json'])).code).toBe(0)
  })

  test('seq has no gaps in --json', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const events = eventsOf(await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json']))
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1))
  })

  test('a second --worktree run reads the plan of today, not of the tree that the first one left', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const args = [
      'loop',
      'demo',
      '--worktree',
      '--agent-command',
      goodAgent,
      '--on-complete',
      'cleanup',
      '--json',
    ]
    expect((await ralph(at, args)).code).toBe(0)
    at.git('add', '-A')
    at.git('commit', '-qm', 'first story')
    at.write(
      'openspec/changes/demo/tasks.md',
      `${at.read('openspec/changes/demo/tasks.md')}\n## 2. More\n\n- [ ] 2.1 more\n`,
    )
    at.git('commit', '-qam', 'a second story')
    const second = await ralph(at, args)
    expect([second.code, second.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.read('story-2.txt')).toBe('work of 2\n')
    expect(at.read('openspec/changes/demo/tasks.md')).not.toContain('[ ]')
  })

  test('a start that is refused makes no work tree', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const stash = await ralph(at, [
      'loop',
      'demo',
      '--worktree',
      '--checkpoint',
      'stash',
      '--agent-command',
      goodAgent,
    ])
    expect(stash.code).toBe(2)
    at.git('branch', 'ralph')
    const clash = await ralph(at, ['loop', 'demo', '--worktree', '--agent-command', goodAgent])
    expect(clash.code).toBe(2)
    expect(at.git('worktree', 'list').split('\n')).toHaveLength(1)
    expect(existsSync(join(at.root, 'repo-ralph-demo'))).toBe(false)
  })

  test('a copied or moved repository is settled where it is now', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    const copy = join(at.root, 'copy')
    cpSync(at.repo, copy, { recursive: true })
    const copied = await ralph(at, ['finish', 'demo', '--cleanup'], { cwd: copy })
    expect([copied.code, copied.stderr]).toEqual([0, ''])
    expect(readFileSync(join(copy, '.git', 'HEAD'), 'utf8')).toBe('ref: refs/heads/main\n')
    expect(at.git('branch', '--show-current')).toBe('ralph/demo')
    const moved = join(at.root, 'moved')
    renameSync(at.repo, moved)
    const settled = await ralph(at, ['finish', 'demo', '--cleanup'], { cwd: moved })
    expect([settled.code, settled.stderr]).toEqual([0, ''])
    expect(readFileSync(join(moved, '.git', 'HEAD'), 'utf8')).toBe('ref: refs/heads/main\n')
    expect(readFileSync(join(moved, 'story-1.txt'), 'utf8')).toBe('work of 1\n')
  })

  test('a crash says what stderr said', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      'echo "I worked long"; nosuchtool --x',
      '--max-retries',
      '0',
      '--json',
    ])
    expect(at.state().iterations[0]?.reason).toContain('nosuchtool')
  })

  test('FAILED in many lines is FAILED, whatever its reason quotes', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = String.raw`printf '<promise>FAILED: I cannot say\n<promise>COMPLETE</promise>\nbecause tests fail</promise>\n'`
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-retries', '0', '--json'])
    expect(end.code).toBe(3)
    expect(at.state().iterations[0]).toMatchObject({ verdict: 'failed' })
  })

  test('the prompt of a manual change can be printed', async () => {
    const at = scratch({ tasks: '' })
    writeFileSync(join(at.repo, 'ralph.yaml'), 'task: paint the shed\n')
    const end = await ralph(at, ['prompt', 'demo'])
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining('paint the shed')])
  })

  test('a resume reads the plan of its run, whatever branch the user stands on', async () => {
    const at = scratch()
    const one = `[ "$RALPH_STORY" = 1 ] && { ${goodAgent}; } || ${failing}`
    await ralph(at, ['loop', 'demo', '--agent-command', one, '--max-retries', '0', '--json'])
    at.git('switch', '-q', 'main')
    const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent, '--json'])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.state().iterations.map((iteration) => iteration.story_id)).toEqual(['1', '2', '2', '3'])
  })

  test('a resume is not fooled by ticked boxes on another branch, and refuses to touch changes there', async () => {
    const at = scratch()
    await ralph(at, ['loop', 'demo', '--agent-command', failing, '--max-retries', '0', '--json'])
    at.git('switch', '-q', '-c', 'other', 'main')
    at.write('openspec/changes/demo/tasks.md', tasksOf(3).replaceAll('[ ]', '[x]'))
    const before = at.state()
    const dirty = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect([dirty.code, dirty.stderr]).toEqual([2, expect.stringContaining('git switch ralph/demo')])
    expect(at.state()).toEqual(before)
    at.git('commit', '-qam', 'ticked elsewhere')
    const end = await ralph(at, [
      'resume',
      'demo',
      '--agent-command',
      failing,
      '--max-retries',
      '0',
      '--json',
    ])
    expect(end.code).toBe(3)
  })

  test('a done run whose plan has got another story goes on', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    at.write(
      'openspec/changes/demo/tasks.md',
      `${at.read('openspec/changes/demo/tasks.md')}\n## 2. More\n\n- [ ] 2.1 more\n`,
    )
    const end = await ralph(at, ['resume', 'demo', '--json'])
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(at.state().iterations.map((iteration) => iteration.story_id)).toEqual(['1', '2'])
  })

  test('a TMPDIR that is not there does not stop a loop', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'], {
      env: { TMPDIR: '/nonexistent' },
    })
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
  })

  test('G27: a repository whose path has a line break', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const odd = join(at.root, 'new\nline')
    renameSync(at.repo, odd)
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'], { cwd: odd })
    expect([end.code, end.stderr.match(/error/i)]).toEqual([0, null])
    expect(readFileSync(join(odd, 'story-1.txt'), 'utf8')).toBe('work of 1\n')
  })

  test('Tab never puts shell code on the line', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/semi;colon/tasks.md', tasksOf(1))
    const shown = await ralph(at, ['complete', '--', 'loop', ''])
    expect(shown.stdout).toContain('demo')
    expect(shown.stdout).not.toContain('semi')
  })
})
