// What ralph names is typed as it stands, by its words: nothing of the user's may be lost by it.
import { execFileSync, spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { ralph, scratch, tasksOf, type Scratch } from './harness.ts'

const agent = 'echo agent > notes.ign; echo w > work.txt; echo "<promise>COMPLETE</promise>"'

/** The loop's branch holds a file that the user ignores on main, with bytes of their own. */
async function ignoredInTheWay(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(1) })
  const looped = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
  expect(looped.code).toBe(0)
  at.git('switch', '-q', 'main')
  at.write('.git/info/exclude', '*.ign\n')
  at.write('notes.ign', 'mine\n')
  return at
}

function typed(at: Scratch, said: string, command: RegExp): number | null {
  const [line = ''] = command.exec(said) ?? []
  expect(line).not.toBe('')
  return spawnSync('sh', ['-c', `${line} --quiet`], { cwd: at.repo, env: at.env }).status
}

test('F10: a switch that ralph names does not write over an ignored file', async () => {
  const at = await ignoredInTheWay()
  const kept = await ralph(at, ['finish', 'demo', '--keep'])
  expect(typed(at, kept.stdout, /git switch [^`]+/)).not.toBe(0)
  expect(at.read('notes.ign')).toBe('mine\n')
  // With nothing in the way it is as short as ever.
  execFileSync('rm', ['notes.ign'], { cwd: at.repo })
  expect((await ralph(at, ['finish', 'demo', '--keep'])).stdout).toContain('`git switch ralph/demo`')
})

test('F10: a merge that ralph names puts an ignored file aside first', async () => {
  const at = await ignoredInTheWay()
  expect((await ralph(at, ['land', 'demo', '--verify', 'true'])).code).toBe(0)
  at.git('commit', '-q', '--allow-empty', '-m', 'mine')
  at.write('notes.ign.mine', 'older\n')
  const refused = await ralph(at, ['queue', 'pull'])
  const named = /mv -n .*git merge refs\/ralph-landed\/main/
  expect((await ralph(at, ['queue'])).stdout).toMatch(named)
  expect(typed(at, refused.stderr, named)).toBe(0)
  expect(['notes.ign', 'notes.ign.mine', 'notes.ign.mine2'].map((path) => at.read(path))).toEqual([
    'agent\n',
    'older\n',
    'mine\n',
  ])
})

test('F11: a file that the agent removed and its user wrote anew is in no command that status or finish names', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  at.write('mine.txt', 'mine\n')
  at.write('other.txt', 'other\n')
  const removing = 'rm mine.txt other.txt; echo w > work.txt; echo "<promise>COMPLETE</promise>"'
  await ralph(at, ['loop', 'demo', '--agent-command', removing, '--on-complete', 'keep'])
  const named = async (): Promise<readonly string[]> =>
    (await ralph(at, ['status', 'demo'])).stdout.match(/git restore .*/g) ?? []
  const [first = ''] = await named()
  expect(first).toContain(':/mine.txt')
  at.write('mine.txt', 'written anew\n')
  const kept = await ralph(at, ['finish', 'demo', '--keep'])
  expect(kept.stdout).toMatch(/git restore .*other\.txt/)
  expect(kept.stdout).not.toMatch(/git restore .*mine\.txt/)
  for (const line of await named()) execFileSync('sh', ['-c', line], { cwd: at.repo, env: at.env })
  expect([at.read('mine.txt'), at.read('other.txt')]).toEqual(['written anew\n', 'other\n'])
  expect(await named()).toEqual([])
})
