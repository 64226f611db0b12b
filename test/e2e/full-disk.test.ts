import { spawnSync } from 'node:child_process'
import { existsSync, openSync, readFileSync, readdirSync, rmSync, watch } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LoopEvent } from '../../src/core/event.ts'
import { canMount, fill, onSmallDisk } from '../small-disk.ts'
import { eventsOf, goodAgent, program, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'

/** In the git directory: on the same disk, and of no interest to a checkpoint. */
const ballast = '.git/ballast'

function onFullDisk(): Scratch {
  const at = scratch({ tasks: tasksOf(2) })
  onSmallDisk(at.repo)
  at.write('mine.txt', 'the user’s\n')
  return at
}

/** Its first turn works, does `deed` and then says COMPLETE; later ones are good. */
function fillingAgent(at: Scratch, deed: string): string {
  const once = join(at.root, 'once')
  const filling = `dd if=/dev/zero of=${join(at.repo, ballast)} bs=4k 2>/dev/null`
  return at.script(
    'agent.sh',
    `#!/bin/sh\nif [ -e ${once} ]; then ${goodAgent}; exit; fi\ntouch ${once}; echo hours > work.txt; echo spoilt > mine.txt\n${deed.replaceAll('FILL', filling)}\necho '<promise>COMPLETE</promise>'\n`,
  )
}

function journalOf(at: Scratch): LoopEvent[] {
  const text = readFileSync(join(at.repo, '.git/ralph/changes/demo/journal.ndjson'), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LoopEvent)
}

function expectFull(run: Finished): void {
  const events = eventsOf(run)
  const errors = events.filter((event) => event.type === 'error')
  expect(run.code).toBe(1)
  expect(errors).toHaveLength(1)
  expect(errors[0]).toMatchObject({
    code: 'disk',
    message: expect.stringMatching(/^The disk is full/),
    hint: expect.stringMatching(/^Nothing is lost: .* then type: ralph resume demo$/),
  })
  expect(events.at(-1)).toMatchObject({ type: 'complete', status: 'stopped', exit_code: 1 })
  expect(run.stderr).not.toMatch(/bug in ralph|^\s+at /m)
}

/** Room again: the resume goes on, and no number is used twice. */
async function expectResumes(at: Scratch): Promise<void> {
  rmSync(join(at.repo, ballast))
  const resumed = await ralph(at, ['resume', 'demo'])
  expect(resumed).toMatchObject({ code: 0 })
  expect(at.state()).toMatchObject({
    status: 'done',
    iterations: [
      { n: 1, story_id: '1', verdict: expect.stringMatching(/^(?:error|interrupted)$/) },
      { n: 2, story_id: '1', verdict: 'complete' },
      { n: 3, story_id: '2', verdict: 'complete' },
    ],
  })
  expect(at.git('show', 'refs/ralph/demo/attempts/1:work.txt')).toBe('hours')
  expect(at.read('mine.txt')).toBe('the user’s\n')
}

describe.skipIf(!canMount)('a full disk (needs root, to mount a small one)', () => {
  test('R14: an agent fills it: one error, complete is last, all is recorded thanks to the reserve', async () => {
    const at = onFullDisk()
    const run = await ralph(at, ['loop', 'demo', '--json', '--agent-command', fillingAgent(at, 'FILL')])
    expectFull(run)
    expect(at.state()).toMatchObject({ status: 'stopped', iterations: [{ n: 1, verdict: 'error' }] })
    expect(journalOf(at).at(-1)).toMatchObject({ type: 'complete' })
    await expectResumes(at)
  })

  test('R14: without any room the stream still ends in order, every command says why, and the number is not used again', async () => {
    const at = onFullDisk()
    const agent = fillingAgent(at, 'rm .git/ralph/reserve; FILL')
    const run = await ralph(at, ['loop', 'demo', '--json', '--agent-command', agent])
    expectFull(run)
    expect(eventsOf(run).at(-1)).toMatchObject({ totals: { iterations: 1 } })
    expect(journalOf(at).at(-1)?.type).not.toBe('complete')
    for (const command of ['resume', 'stop', 'finish --keep', 'loop --fresh']) {
      const [name = '', ...flags] = command.split(' ')
      const refused = await ralph(at, [name, 'demo', ...flags])
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: The disk is full/m) })
      expect(refused.stderr).not.toMatch(/bug in ralph|^\s+at /m)
    }
    expect(await ralph(at, ['status', 'demo'])).toMatchObject({ code: 0 })
    expect(readdirSync(join(at.repo, '.git/ralph')).toSorted()).toEqual([
      'changes',
      'checkpoints',
      'told-no-sandbox',
      'trust',
    ])
    await expectResumes(at)
  })

  test('R14: a TERM on a full disk ends a loop whose agent would go on', async () => {
    const at = onFullDisk()
    const full = join(at.root, 'full')
    const agent = fillingAgent(at, `FILL; touch ${full}; sleep 600`)
    const loop = start(at, ['loop', 'demo', '--json', '--agent-command', agent])
    const filled = new Promise<void>((done) => {
      const look = watch(at.root, () => existsSync(full) && done())
      onTestFinished(() => look.close())
    })
    // A write of ralph's own may fail before the agent comes to that line: then it ends by itself.
    await Promise.race([filled, loop.ended])
    loop.child.kill('SIGTERM')
    expectFull(await loop.ended)
    await expectResumes(at)
  })

  test.each(['branch', 'stash'])('R14: %s: a loop does not begin without room', async (mode) => {
    const at = onFullDisk()
    fill(join(at.repo, ballast), 12)
    const before = at.git('status', '--porcelain')
    const args = ['loop', 'demo', '--checkpoint', mode, '--agent-command', goodAgent]
    const refused = await ralph(at, args)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: The disk is full/m) })
    expect(refused.stderr).toMatch(/type again: ralph loop/)
    expect(at.git('status', '--porcelain')).toBe(before)
    rmSync(join(at.repo, ballast))
    expect(await ralph(at, args)).toMatchObject({ code: 0 })
  })
})

describe.skipIf(!existsSync('/dev/full'))('a log on a full disk', () => {
  test('R14: a report that was cut off is no success', () => {
    const at = scratch()
    const run = spawnSync(process.execPath, [program, 'list'], {
      cwd: at.repo,
      env: at.env,
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      encoding: 'utf8',
    })
    expect(run).toMatchObject({ status: 1, stderr: expect.stringContaining('ENOSPC') })
  })

  test('R14: a loop that cannot print any more stops and is recorded', async () => {
    const at = scratch()
    const run = spawnSync(process.execPath, [program, 'loop', 'demo', '--agent-command', goodAgent], {
      cwd: at.repo,
      env: at.env,
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      encoding: 'utf8',
    })
    expect(run).toMatchObject({ status: 1, stderr: expect.stringMatching(/^error: The disk is full/m) })
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'error' })
    expect(await ralph(at, ['resume', 'demo'])).toMatchObject({ code: 0 })
    expect(at.state()).toMatchObject({ status: 'done' })
  })
})
