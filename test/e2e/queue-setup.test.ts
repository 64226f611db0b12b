// How the work trees of the merge queue are made ready: the user's ignored files, the set-up with its time, and what it made before.
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { events, project } from './queue-kit.ts'

it('Q19: gates have the user’s ignored files, copied or linked, a slot and ports of their own when a change lands, too; the set-up is told with its time and, where its files are the same, copied', async () => {
  const at = project({ a: '', b: '' }, 1)
  at.write('.gitignore', '.env\ncache\nmade\n')
  at.write('lock.json', '1\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'ignore')
  at.write('.env', 'KEY=1\n')
  at.write('cache/big', 'x\n')
  at.write(
    'ralph.yaml',
    'worktree_copy: [.env]\nworktree_link: [cache]\nsetup_cache: [lock.json]\nsetup: "echo x >> $HOME/set-ups; mkdir made; echo ready > made/it"\n',
  )
  const gate = at.script(
    'gate.sh',
    '#!/bin/sh\ngrep -q KEY .env && test -L cache && grep -q x cache/big && grep -q ready made/it || exit 1\necho "$RALPH_SLOT $RALPH_PORT_BASE" >> "$HOME/slots"\n',
  )
  const done = await ralph(at, ['up', '--jobs', '1', '--json', ...at.args, '--verify', gate])
  expect([done.code, done.stderr]).toEqual([0, ''])
  const told = events(done).flatMap((event) =>
    event.type === 'tree.set_up' ? [`${event.change} ${event.for} ${event.cached ? 'copied' : 'made'}`] : [],
  )
  expect(told.toSorted()).toEqual(['a landing copied', 'a loop made', 'b landing copied', 'b loop copied'])
  expect(at.read('../home/set-ups')).toBe('x\n')
  expect([...new Set(at.read('../home/slots').trim().split('\n'))].toSorted()).toEqual(['0 20000', '1 20100'])
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
