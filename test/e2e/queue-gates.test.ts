// The gates that a change was queued with stay with it: what they refused lands by no later command that does not name them.
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { project, report } from './queue-kit.ts'

it('I1: what a gate of up refused is refused by retry, by a bare up and by land, which name the gate; fixed it lands, and only --verify drops a gate, which is said', async () => {
  const at = project({ one: 'echo x > one.txt', two: 'echo x > two.txt' }, 1)
  const agent = at.args.slice(0, 2)
  expect((await ralph(at, ['up', '--no-land', ...agent])).code).toBe(0)
  const red = await ralph(at, ['up', 'one', 'two', '--verify', 'test ! -e two.txt'])
  expect([red.code, red.stdout]).toEqual([3, expect.stringContaining('`test ! -e two.txt` fails')])
  // The one that was only taken along passed it, and has landed.
  expect((await report(at)).entries.map(({ state }) => state)).toEqual(['landed', 'parked'])
  const tree = `${at.repo}-ralph-two`
  expect((await report(at)).entries[1]?.hint).toContain(
    `  cd ${tree}\n  git merge --no-edit refs/ralph-landed/main\n  test ! -e two.txt\n`,
  )

  expect((await ralph(at, ['queue', 'retry', 'two'])).code).toBe(0)
  const bare = await ralph(at, ['up'])
  expect([bare.code, bare.stdout]).toEqual([3, expect.stringContaining('; gates: test ! -e two.txt\n')])
  for (const words of [
    ['land', 'two'],
    ['queue', 'remove', 'two'],
    ['land', 'two'],
    ['up', 'two'],
  ]) {
    const again = await ralph(at, words)
    expect([words, again.code]).toEqual([words, words[0] === 'queue' ? 0 : 3])
    expect(again.stdout).not.toMatch(/no gates|two: landed/)
  }
  const plan = await ralph(at, ['up', 'two', '--dry-run'])
  expect(plan.stdout).toContain('test ! -e two.txt')
  expect(at.git('ls-tree', '--name-only', 'refs/ralph-landed/main')).not.toContain('two.txt')

  const other = await ralph(at, ['up', 'two', '--verify', 'test -e two.txt'])
  expect([other.code, other.stdout]).toEqual([0, expect.stringContaining('gates: test -e two.txt\n')])
  expect(other.stdout).toContain('two: no longer a gate of it: test ! -e two.txt (--verify names others)')
  expect(at.git('ls-tree', '--name-only', 'refs/ralph-landed/main')).toContain('two.txt')
})

it('I1: a change that was queued with a gate and had not begun runs and lands with it, and the header names the gates of each change’s own loop', async () => {
  const at = project({ one: 'exit 1', two: '', three: '' }, 1)
  const gates = 'sh gate.sh'
  const red = await ralph(at, ['up', 'one', 'two', '--after', 'two:one', ...at.args])
  expect([red.code, red.stdout]).toEqual([3, expect.stringContaining(`; gates: ${gates}\n`)])
  at.write('../home/habits/one.sh', '')
  const next = await ralph(at, ['up', ...at.args.slice(0, 2)])
  expect(next.stdout).toContain(`; gates: ${gates} (one, two); no gates: the agent's word counts for three\n`)
  expect(next.code).toBe(0)
  expect(next.stdout).toContain(`two: gate passed: ${gates}`)
  expect(next.stdout).not.toContain('three: gate')
})

it('I4: what has landed is not merged a second time, though it was taken out of the queue, added again while main was set back, and edited since; each command that names it says that it has landed', async () => {
  const at = project({ a: 'echo "of a" > shared.txt' }, 1)
  expect((await ralph(at, ['up', '--pull', ...at.args])).code).toBe(0)
  at.write('shared.txt', 'of a, and more\n')
  at.git('commit', '-qam', 'more')
  expect((await ralph(at, ['queue', 'remove', 'a'])).code).toBe(0)
  for (const words of [
    ['up', 'a'],
    ['land', 'a'],
  ]) {
    const { code, stdout } = await ralph(at, words)
    expect([words, code, stdout]).toEqual([words, 0, expect.stringContaining('a has landed already')])
  }
  const retried = await ralph(at, ['queue', 'retry', 'a'])
  expect([retried.code, retried.stderr]).toEqual([2, expect.stringContaining('a has landed.')])
  const tip = at.git('rev-parse', 'main')
  at.git('reset', '-q', '--hard', 'refs/ralph-landed/main~1')
  expect((await ralph(at, ['up', ...at.args])).code).toBe(5)
  at.git('reset', '-q', '--hard', tip)
  expect((await ralph(at, ['queue'])).stdout).toContain('halted when ralph up looked last: ')
  const again = await ralph(at, ['up', ...at.args])
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('a: landed as')])
  expect(again.stdout).not.toContain('conflict')
  expect([at.git('rev-parse', 'main'), at.read('shared.txt')]).toEqual([tip, 'of a, and more\n'])
  expect((await report(at)).entries).toMatchObject([
    { state: 'landed', landed: at.git('rev-parse', 'main~1') },
  ])
})

it('up is refused as a loop is, once and before anything is queued: no agent is exit 6, a mistyped gate or agent exit 2; the dry run says it with the agent, the gates and the limits, and a mistyped gate sticks to no change', async () => {
  const at = project({ a: '', b: '' }, 1)
  const [, agent = '', , gate = ''] = at.args
  const bare = { env: { PATH: '/usr/bin:/bin' } }
  const cases = [
    {
      words: [],
      options: bare,
      code: 6,
      said: 'None of the coding agents claude, codex, opencode and gemini is on PATH.',
    },
    {
      words: ['--agent-command', agent, '--verify', 'nosuch'],
      code: 2,
      said: 'there is no program nosuch on PATH.',
    },
    {
      words: ['--agent-command', 'nosuch-agent'],
      code: 2,
      said: 'there is no program nosuch-agent on PATH.',
    },
  ]
  for (const { words, options, code, said } of cases) {
    const plan = await ralph(at, ['up', '--dry-run', ...words], options)
    expect([plan.code, plan.stdout]).toEqual([code, expect.stringMatching(/A start would be refused now:/)])
    expect(plan.stdout.replaceAll(/\s+/g, ' ')).toContain(said)
    const refused = await ralph(at, ['up', ...words], options)
    const alone = await ralph(at, ['loop', 'a', ...words], options)
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([code, '', alone.stderr])
    expect(refused.stderr).toContain(said)
  }
  expect((await report(at)).entries).toEqual([])
  const later = await ralph(at, ['up', '--no-land', ...at.args])
  expect([later.code, later.stdout]).toEqual([0, expect.stringContaining(`; gates: ${gate}\n`)])
  const land = await ralph(at, ['land', 'a', '--verify', 'nosuch'])
  expect([land.code, land.stderr]).toEqual([
    2,
    expect.stringContaining('there is no program nosuch on PATH.'),
  ])
  expect((await report(at)).entries.map(({ state }) => state)).toEqual(['done', 'done'])
})
