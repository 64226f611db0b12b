// What an attempt has done so far, looked at from another process while it works: files, boxes, gates; and nothing is written.
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createApp } from '../../src/compose.ts'
import type { Observe } from '../../src/ui/app.ts'
import { scratch, start, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'

function observing(at: Scratch): Observe {
  const { stdout, stdin, stderr } = process
  return createApp({ cwd: at.repo, env: at.env, stdout, stdin, stderr }).observe
}

/** Everything of git's own that a look could have touched. */
function gitBytes(at: Scratch): string {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: at.repo, env: at.env, encoding: 'utf8' })
  const index = join(at.repo, '.git/index')
  return [
    git('count-objects', '-v'),
    git('for-each-ref'),
    String(statSync(index).mtimeMs),
    readFileSync(index).toString('hex'),
  ].join('\n')
}

test('attemptNow shows changed, new and ticked, of the attempt at hand, and writes nothing; gateOutput what its gate prints', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  writeFileSync(join(at.repo, 'old.txt'), 'one\n')
  execFileSync('git', ['add', 'old.txt'], { cwd: at.repo, env: at.env })
  execFileSync('git', ['commit', '-qm', 'old'], { cwd: at.repo, env: at.env })
  const wait = (name: string): string => `until [ -e '${at.root}/${name}' ]; do sleep 0.05; done`
  const tick = `sed -i '0,/\\[ \\]/s//[x]/' openspec/changes/demo/tasks.md`
  const agent = `echo two >> old.txt; echo 'größe' > 'né w.txt'; ${tick}; echo begun; ${wait('go')}; echo "<promise>COMPLETE</promise>"`
  const gate = `echo the gate speaks; ${wait('pass')}`
  const loop = start(at, [
    'loop',
    'demo',
    '--agent-command',
    agent,
    '--verify',
    gate,
    '--story',
    '1',
    '--json',
  ])
  await loop.seen((out) => out.includes('begun'))
  const observe = observing(at)

  const before = gitBytes(at)
  const now = await observe.attemptNow('demo')
  expect(gitBytes(at)).toBe(before)
  expect(now).toMatchObject({ change_id: 'demo', n: 1, is_cut: false })
  expect(now.patch).toContain('+two')
  expect(now.patch).toContain('new file mode 100644')
  expect(now.patch).toContain('+größe')
  expect(now.stories[0]?.tasks[0]?.state).toBe('done')
  expect(await observe.gateOutput({ change: 'demo', n: 1 })).toMatchObject({ text: '', is_cut: false })

  writeFileSync(join(at.root, 'go'), '')
  await loop.seen((out) => out.includes('gate.started'))
  const spoken = async (): Promise<string> => {
    for (;;) {
      const { text } = await observe.gateOutput({ change: 'demo', n: 1 })
      if (text.includes('the gate speaks\n')) return text
    }
  }
  expect(await spoken()).toContain('$ echo the gate speaks')
  writeFileSync(join(at.root, 'pass'), '')
  expect((await loop.ended).code).toBe(0)
  expect(await observe.attemptNow('demo')).toMatchObject({ patch: '' })
})
