// How the work trees of the merge queue are made ready: the user's ignored files, the set-up with its time, and what it made before.
import { existsSync, lstatSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ralph, start } from './harness.ts'
import { events, project, report } from './queue-kit.ts'

it('Q19: gates have the user’s ignored files, copied or linked, a slot, ports and a temp folder of their own when a change lands, too; the set-up is told with its time and, where its files are the same, copied', async () => {
  const at = project({ a: '', b: '' }, 1)
  at.write('.gitignore', '.env\ncache\nmade\n')
  at.write('lock.json', '1\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'ignore')
  at.write('.env', 'KEY=1\n')
  at.write('cache/big', 'x\n')
  at.write(
    'ralph.yaml',
    'worktree_copy: [.env]\nworktree_link: [cache]\nsetup_cache: [lock.json]\nsetup: "echo x >> $HOME/set-ups; echo $TMPDIR >> $HOME/temps; mkdir made; echo ready > made/it"\n',
  )
  const gate = at.script(
    'gate.sh',
    '#!/bin/sh\ngrep -q KEY .env && test -L cache && grep -q x cache/big && grep -q ready made/it || exit 1\necho "$RALPH_SLOT $RALPH_PORT_BASE" >> "$HOME/slots"\necho x > "$TMPDIR/x"; echo "$TMPDIR" >> "$HOME/temps"\n',
  )
  const done = await ralph(at, ['up', '--jobs', '1', '--json', ...at.args, '--verify', gate])
  expect([done.code, done.stderr]).toEqual([0, ''])
  const told = events(done).flatMap((event) =>
    event.type === 'tree.set_up' ? [`${event.change} ${event.for} ${event.cached ? 'copied' : 'made'}`] : [],
  )
  expect(told.toSorted()).toEqual(['a landing copied', 'a loop made', 'b landing copied', 'b loop copied'])
  expect(at.read('../home/set-ups')).toBe('x\n')
  expect([...new Set(at.read('../home/slots').trim().split('\n'))].toSorted()).toEqual(['0 20000', '1 20100'])
  const temps = at.read('../home/temps').trim().split('\n')
  // The set-up once, and the gates of two loops and two landings.
  expect([temps.length, new Set([...temps, at.env['TMPDIR']]).size]).toEqual([5, 6])
  expect(temps.filter((folder) => existsSync(folder))).toEqual([])
  expect(lstatSync(join(`${at.repo}-ralph-a`, '.env')).isFile()).toBe(true)
  expect(at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/main')).not.toMatch(/\.env|cache|made/)
})

it('a link that git would not ignore is refused, and nothing is left of it', async () => {
  const at = project({ a: '' }, 1)
  at.write('.gitignore', 'cache/\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'ignore')
  at.write('cache/big', 'x\n')
  const refused = await ralph(at, ['loop', 'a', '--worktree', '--worktree-link', 'cache', ...at.args])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('without a slash at its end') as string,
  ])
  expect(at.git('worktree', 'list').split('\n')).toHaveLength(1)
})

/** One that nobody has waited for yet is not. */
function isRunning(pid: number): boolean {
  const stat = `/proc/${pid}/stat`
  return existsSync(stat) && !/\) Z /.test(readFileSync(stat, 'utf8'))
}

it('P1 Q24: a set-up is ended with the start that it belongs to, by a signal or by stop --all; one whose start was killed is ended by the next', async () => {
  const at = project({ a: '' }, 1)
  const tree = `${at.repo}-ralph-a`
  const waits = 'echo $$ > "$HOME/pid.new" && mv "$HOME/pid.new" "$HOME/pid"; while :; do sleep 0.05; done'
  const begun = async (): Promise<number> => {
    while (!existsSync(`${at.root}/home/pid`)) await new Promise((resolve) => setTimeout(resolve, 20))
    const pid = Number(at.read('../home/pid'))
    rmSync(`${at.root}/home/pid`)
    return pid
  }
  const loop = start(at, ['loop', 'a', '--worktree', '--setup', waits, ...at.args])
  const first = await begun()
  loop.child.kill('SIGINT')
  const stopped = await loop.ended
  expect([stopped.code, stopped.stderr]).toEqual([
    130,
    expect.stringContaining('Stopped while the new work tree'),
  ])
  expect([isRunning(first), existsSync(tree)]).toEqual([false, false])

  const up = start(at, ['up', '--setup', waits, ...at.args])
  const second = await begun()
  expect((await ralph(at, ['stop', '--all'])).code).toBe(0)
  expect((await up.ended).code).toBe(143)
  expect([isRunning(second), existsSync(tree)]).toEqual([false, false])

  const killed = start(at, ['loop', 'a', '--worktree', '--setup', waits, ...at.args])
  const third = await begun()
  killed.child.kill('SIGKILL')
  await killed.ended
  expect(isRunning(third)).toBe(true)
  const failed = await ralph(at, ['up', '--setup', 'echo no such package; exit 3', ...at.args])
  expect([failed.code, isRunning(third)]).toEqual([3, false])
  const [entry] = (await report(at)).entries
  expect(entry?.why).toContain('failed: no such package. Nothing was touched')
})
