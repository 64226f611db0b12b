// What the merge queue does where no agent should merge by hand: generated files are made anew, and a plan is brought up to date with the specs.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { keep, ralph } from './harness.ts'
import { events, project, report } from './queue-kit.ts'

const bin = resolve(import.meta.dirname, '../../node_modules/.bin')
const afterLanding = (path: string): string =>
  `until git cat-file -e "refs/ralph-landed/main:${path}" 2> /dev/null; do sleep 0.05; done\n`
/** Each change writes what would be generated from its own tree. */
const locks =
  'mkdir -p work; echo "$RALPH_CHANGE" > "work/$RALPH_CHANGE.txt"; cat work/*.txt parts.txt > lock.txt\n'
const told = (change: string): string => `echo "$prompt" >> "$HOME/prompt-${change}"\n`

it('Q21: generated files that conflict are made anew by the user’s command, also before and after an agent puts other files together; what a change makes of that setting does not count', async () => {
  const resolving = `${told('c')}case "$prompt" in *"Put two changes together"*) cp lock.txt "$HOME/lock-seen"; printf 'of a\\nof c\\n' > shared.txt; echo '<promise>COMPLETE</promise>'; exit;; esac\n`
  const evil = `printf 'regenerate:\\n  lock.txt: echo evil > lock.txt\\n' > ralph.yaml\n`
  const at = project(
    {
      a: `${locks}echo "of a" > shared.txt`,
      b: `${told('b')}${afterLanding('work/a.txt')}${locks}${evil}`,
      c: `${resolving}${afterLanding('work/b.txt')}${locks}echo "of c" > shared.txt`,
    },
    1,
  )
  at.write('lock.txt', 'nothing yet\n')
  at.write('parts.txt', 'part\n')
  at.write(
    'ralph.yaml',
    'regenerate:\n  "lo*.txt": cat work/*.txt parts.txt > lock.txt; echo x > parts.txt; echo x > left.txt\n',
  )
  at.git('add', '-A')
  at.git('commit', '-qm', 'a lock')
  const done = await ralph(at, ['up', 'a', 'b', 'c', '--jobs', '3', '--json', ...at.args])
  expect([done.code, done.stderr]).toEqual([0, ''])
  const show = (path: string): string => at.git('show', `refs/ralph-landed/main:${path}`)
  // Habits write the name, and then each agent its story: whatever stands in work, all of it is in the lock.
  expect(show('lock.txt')).toBe(
    [...['a', 'b', 'c'].map((name) => show(`work/${name}.txt`)), 'part'].join('\n'),
  )
  // Whatever else the command did is not part of what lands.
  expect(show('parts.txt')).toBe('part')
  expect(at.git('ls-tree', '--name-only', 'refs/ralph-landed/main')).not.toContain('left.txt')
  expect(show('shared.txt')).toBe('of a\nof c')
  const all = events(done)
  expect(all.filter(({ type }) => type === 'candidate.conflicted')).toMatchObject([
    { change: 'c', paths: ['shared.txt'], generated: ['lock.txt'] },
  ])
  expect(all.filter(({ type }) => type === 'candidate.regenerated')).toMatchObject([
    { change: 'b', paths: ['lock.txt'] },
    { change: 'c', paths: ['lock.txt'] },
  ])
  const home = (name: string): string => readFileSync(join(at.root, 'home', name), 'utf8')
  expect(home('prompt-b')).not.toContain('Put two changes together')
  expect(home('lock-seen')).not.toMatch(/<<<<|evil/)
})

it('Q21: a command that fails parks the change with what it printed, and no agent is asked', async () => {
  const at = project({ a: locks, b: `${afterLanding('work/a.txt')}${locks}` }, 1)
  at.write('lock.txt', 'nothing yet\n')
  at.write('parts.txt', 'part\n')
  at.write('ralph.yaml', 'regenerate:\n  lock.txt: echo no network >&2; exit 1\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'a lock')
  const done = await ralph(at, ['up', 'a', 'b', ...at.args])
  expect([done.code, done.stderr]).toEqual([3, ''])
  const [, b] = (await report(at)).entries
  expect([b?.state, b?.why, b?.hint]).toEqual([
    'parked',
    expect.stringMatching(/`echo no network[^`]*`, which regenerates lock.txt, failed: no network/),
    expect.stringMatching(/Its output: \S+\/logs\/b\.log\. Fix it, then: ralph queue retry b/),
  ])
})

const spec = (...scenarios: string[]): string =>
  `### Requirement: Greets\nThe program SHALL greet.\n\n${scenarios.map((name) => `#### Scenario: ${name}\n- **WHEN** it is ${name}\n- **THEN** it greets\n`).join('\n')}`

it('Q22: an archive that would drop scenarios which landed meanwhile is no dead end: an agent brings the plan up to date, and both land', async () => {
  const delta = 'openspec/changes/b/specs/greeting/spec.md'
  const resolving = `case "$prompt" in *"Bring the plan of b up to date"*) cp "$HOME/delta.md" ${delta}; echo '<promise>COMPLETE</promise>'; exit;; esac\n`
  const at = project({ a: '', b: resolving }, 1)
  at.write(
    'openspec/specs/greeting/spec.md',
    `# greeting\n\n## Purpose\nTo greet people who come along.\n\n## Requirements\n${spec('morning')}`,
  )
  for (const [name, scenario] of [
    ['a', 'noon'],
    ['b', 'night'],
  ] as const) {
    at.write(
      `openspec/changes/${name}/proposal.md`,
      `# The change ${name}\n\n## Why\nBecause.\n\n## What Changes\n- greets\n`,
    )
    at.write(
      `openspec/changes/${name}/specs/greeting/spec.md`,
      `## MODIFIED Requirements\n\n${spec('morning', scenario)}`,
    )
  }
  at.write('../home/delta.md', `## MODIFIED Requirements\n\n${spec('morning', 'noon', 'night')}`)
  at.git('add', '-A')
  at.git('commit', '-qm', 'specs')
  const env = { PATH: `${bin}${delimiter}${at.env['PATH'] ?? ''}` }
  const done = await ralph(at, ['up', '--json', ...at.args], { env })
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(events(done).filter(({ type }) => type === 'candidate.conflicted')).toMatchObject([
    { change: 'b', paths: [delta], said: expect.stringContaining('"noon"') },
  ])
  const landed = at.git('show', 'refs/ralph-landed/main:openspec/specs/greeting/spec.md')
  expect(landed).toMatch(/Scenario: morning[^]*Scenario: noon[^]*Scenario: night/)
  expect(at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/main', 'openspec/changes')).toMatch(
    /archive\/\S+-a\/[^]*archive\/\S+-b\//,
  )
})

it('I4: a plan that nobody has committed and that landed archived does not run again: pull takes it away and says where it is, after a merge by hand it counts as landed; an edited one is a new plan', async () => {
  const plan = 'openspec/changes/a/tasks.md'
  const spawned = async (at: ReturnType<typeof project>, ...names: string[]): Promise<number> => {
    const done = await ralph(at, ['up', '--json', '--no-land', ...names, ...at.args])
    expect([done.code, done.stderr]).toEqual([0, ''])
    return events(done).filter(({ type }) => type === 'loop.spawned').length
  }
  const at = project({ a: '' }, 1)
  at.git('rm', '-rq', '--cached', 'openspec/changes/a')
  at.git('commit', '-qm', 'the plan is in no commit')
  const env = { PATH: `${bin}${delimiter}${at.env['PATH'] ?? ''}` }
  expect((await ralph(at, ['up', ...at.args], { env })).code).toBe(0)
  expect(at.git('ls-tree', '-r', '--name-only', 'refs/ralph-landed/main', 'openspec/changes')).toMatch(
    /^(openspec\/changes\/archive\/\S+-a\/\S+\s*){2}$/,
  )
  const again = keep(at)
  const written = at.read(plan)
  const pulled = await ralph(at, ['queue', 'pull'])
  expect([pulled.code, pulled.stderr]).toEqual([0, ''])
  const [, place = ''] =
    /tasks\.md was uncommitted[^\n]*it is archived now[^\n]*git show (\S+tasks\.md)\)/.exec(pulled.stdout) ??
    []
  expect(`${at.git('show', place)}\n`).toBe(written)
  expect([existsSync(`${at.repo}/openspec/changes/a`), at.git('status', '--porcelain')]).toEqual([false, ''])

  rmSync(at.root, { recursive: true })
  const byHand = again()
  byHand.git('merge', '-q', 'refs/ralph-landed/main')
  expect([existsSync(`${byHand.repo}/${plan}`), await spawned(byHand), await spawned(byHand, 'a')]).toEqual([
    true,
    0,
    0,
  ])
  byHand.write(plan, `${written}\n## 2. More\n\n- [ ] 2.1 more\n`)
  expect(await spawned(byHand)).toBe(1)
})
