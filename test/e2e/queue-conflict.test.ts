// A conflict in the merge queue: what an agent may not make of it, and that nothing that was refused lands by being tried again.
import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { ralph } from './harness.ts'
import { events, project, ranUp, report } from './queue-kit.ts'

/** Its habit in the conflict comes later. */
const ready = (): ReturnType<typeof ranUp> => ranUp({ d: 'echo "of d" > shared.txt\n' }, ['d', '--no-land'])

it('Q23 I1: a side dropped behind a blank line and a file deleted beside it are refused, up and retry do not land them, and the gates of the first loop count; merged by hand it lands', async () => {
  const at = project(
    {
      d: `case "$prompt" in *"Put two changes together"*)
  printf 'of d\\n\\n' > shared.txt; git rm -q other.txt; echo '<promise>COMPLETE</promise>'; exit;; esac
echo "of d" > shared.txt\n`,
    },
    1,
  )
  at.write('other.txt', 'of nobody\n')
  at.git('add', '-A')
  at.git('commit', '-qm', 'other')
  const [, command = ''] = at.args
  const gate = at.script('own-gate.sh', '#!/bin/sh\necho x >> "$HOME/gated"\n')
  const first = await ralph(at, ['loop', 'd', '--worktree', '--agent-command', command, '--verify', gate])
  expect(first.code).toBe(0)
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  const up = ['up', 'd', '--json', '--agent-command', command]
  const done = await ralph(at, up)
  const judged = events(done).flatMap((event) =>
    event.type === 'resolution.judged' ? [event.problems, event.beside] : [],
  )
  const problems = ['in shared.txt what landed was dropped', 'other.txt was deleted, and it had no conflict']
  expect([done.code, judged]).toEqual([3, [problems, ['other.txt'], problems, ['other.txt']]])

  // Every look asks the queue first, and nobody's word makes done what was refused.
  const looks = await Promise.all(
    [['status', 'd'], ['why', 'd'], ['list']].map(async (words) => (await ralph(at, words)).stdout),
  )
  for (const look of looks)
    expect(look).toMatch(/! parked[^]*both changed shared.txt[^]*ralph (queue retry|status) d/)
  expect(looks.join('')).not.toMatch(/ralph (done|resume|finish) d|say whether it is done/)
  const word = await ralph(at, ['done', 'd'])
  expect([word.code, word.stderr]).toEqual([
    2,
    expect.stringContaining('it and what landed both changed shared.txt') as string,
  ])

  const again = await ralph(at, up)
  expect([again.code, events(again).filter(({ type }) => type === 'landed')]).toEqual([3, []])
  const retried = await ralph(at, ['queue', 'retry', 'd'])
  expect([retried.code, retried.stderr]).toEqual([
    2,
    expect.stringMatching(/nothing was committed on ralph\/d since/) as string,
  ])
  const [entry] = (await report(at)).entries
  expect(entry).toMatchObject({
    state: 'parked',
    why: expect.stringContaining('no merge of both was accepted, and its branch is as it was then') as string,
  })

  at.write('../repo-ralph-d/shared.txt', 'of main\nof d\n')
  at.write('../repo-ralph-d/other.txt', 'of nobody\n')
  at.git('-C', `${at.repo}-ralph-d`, 'add', 'shared.txt', 'other.txt')
  at.git('-C', `${at.repo}-ralph-d`, 'commit', '-qm', 'by hand')
  const before = at.read('../home/gated')
  expect((await ralph(at, ['queue', 'retry', 'd'])).code).toBe(0)
  const landed = await ralph(at, ['up'])
  expect([landed.code, landed.stderr]).toEqual([0, ''])
  expect(at.git('show', 'refs/ralph-landed/main:shared.txt')).toBe('of main\nof d')
  expect(at.git('show', 'refs/ralph-landed/main:other.txt')).toBe('of nobody')
  expect(at.git('show', 'refs/ralph-landed/main:openspec/changes/d/tasks.md')).not.toContain('[ ]')
  expect(at.read('../home/gated')).not.toBe(before)
  // B9: the loop that was to put it together waits for nobody.
  expect((await report(at)).entries).toMatchObject([{ state: 'landed', stories_done: 1, stories_total: 1 }])
  const { stdout: status } = await ralph(at, ['status', 'd'])
  expect(status).toMatch(/✓ done[^]*landed on main as/)
  expect(status).not.toContain('ralph done d')
})

it('Q23 I1: a resolving loop that ended without a result leaves markers that never land: an agent is asked again, and committed by hand they are refused', async () => {
  const at = await ready()
  at.write(
    '../home/habits/d.sh',
    `case "$prompt" in *"Put two changes together"*)
  [ -f "$HOME/able" ] || { echo '<promise>FAILED: cannot</promise>'; exit; }
  printf 'of main\\nof d\\n' > shared.txt; echo '<promise>COMPLETE</promise>'; exit;; esac
echo "of d" > shared.txt\n`,
  )
  const up = ['up', 'd', '--json', ...at.args]
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  const failed = await ralph(at, up)
  expect([failed.code, events(failed).at(-1)]).toMatchObject([
    3,
    {
      type: 'entry.parked',
      why: expect.stringContaining('it and what landed both changed shared.txt') as string,
    },
  ])
  expect(at.git('show', 'ralph/d:shared.txt')).toContain('<<<<<<<')

  const tree = `${at.repo}-ralph-d`
  at.git('-C', tree, 'commit', '-q', '--allow-empty', '-m', 'as it is')
  const byHand = await ralph(at, up)
  expect([byHand.code, events(byHand).at(-1)]).toMatchObject([
    3,
    {
      type: 'entry.parked',
      why: 'it and what landed both changed shared.txt; no merge of both was accepted: conflict markers are left',
    },
  ])

  at.git('-C', tree, 'reset', '-q', '--hard', 'HEAD~1')
  at.write('../home/able', '')
  const again = await ralph(at, up)
  expect([again.code, events(again).filter(({ type }) => type === 'resolution.judged')]).toMatchObject([
    0,
    [{ problems: [] }],
  ])
  expect(at.git('show', 'refs/ralph-landed/main:shared.txt')).toBe('of main\nof d')
})

it('Q23: an agent that cannot merge both sides is asked twice, whatever the retries of a story are, and the change is parked', async () => {
  const at = await ready()
  at.write(
    '../home/habits/d.sh',
    `case "$prompt" in *"Put two changes together"*)
  echo x >> "$HOME/asked"; echo '<promise>FAILED: cannot merge</promise>'; exit;; esac
echo "of d" > shared.txt\n`,
  )
  const up = ['up', 'd', '--json', ...at.args]
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  const parked = await ralph(at, [...up, '--max-retries', '5'])
  expect([parked.code, events(parked).at(-1)?.type]).toEqual([3, 'entry.parked'])
  expect(at.read('../home/asked')).toBe('x\nx\n')
})

it('I1: a merge that was refused is brought by no other way: finish, done and land refuse it, also out of the queue, ralph up asks no agent again; the advice is typed as it stands, and it lands', async () => {
  const at = await ready()
  at.write(
    '../home/habits/d.sh',
    `case "$prompt" in *"Put two changes together"*)
  echo x >> "$HOME/asked"; echo "of d" > shared.txt; echo '<promise>COMPLETE</promise>'; exit;; esac
echo "of d" > shared.txt\n`,
  )
  const up = ['up', 'd', '--json', ...at.args]
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  expect((await ralph(at, up)).code).toBe(3)
  expect(JSON.parse((await ralph(at, ['status', 'd', '--json'])).stdout)).toMatchObject({
    stories: [{ id: '1' }, { title: 'Merge with what landed (shared.txt)' }],
  })
  // The merge has not taken back what the change has done.
  expect((await report(at)).entries).toMatchObject([{ state: 'parked', stories_done: 1, stories_total: 1 }])
  expect((await ralph(at, ['list'])).stdout).toMatch(/\bd\b.*1\/1/)
  const [asked, refs] = [at.read('../home/asked'), at.git('for-each-ref')]
  const tree = `${at.repo}-ralph-d`
  // Each on a line of its own, and the look for markers first.
  const typedIn = (text: string, again: string): readonly string[] =>
    text
      .split('\n')
      .map((line) => line.replace(/^ *(next)? */, ''))
      .filter((line) => /^(?:git|cd) /.test(line) || line === again)
  const typed = [
    `cd ${tree}`,
    'git grep -n "^<<<<<<<"',
    'git update-index --add --remove -- shared.txt &&',
    'git commit --allow-empty -m "Both sides"',
  ]
  const refused = async (again: string): Promise<void> => {
    for (const words of [
      ['finish', 'd', '--cleanup'],
      ['finish', 'd', '--squash'],
      ['done', 'd'],
      ['land', 'd'],
    ]) {
      const { code, stderr } = await ralph(at, words)
      expect([words, code, typedIn(stderr, again)]).toEqual([words, 2, [...typed, again]])
      expect(stderr).toContain(`1. Edit shared.txt in ${tree} so that both changes are in it`)
      expect(stderr).not.toContain('..')
    }
    const status = (await ralph(at, ['status', 'd'])).stdout
    expect(status).toMatch(/! parked/)
    // 10: the steps have numbers, each on a line of its own, with what is typed below it.
    expect(status).toMatch(/do +1\. Edit [^]*\n +2\. Look for markers[^]*\n +cd [^]*\n +3\. Commit it/)
    expect(typedIn(status, again)).toEqual([...typed, again])
    for (const words of [
      ['report', 'd'],
      ['history', 'd'],
    ]) {
      const { stdout } = await ralph(at, words)
      expect(stdout).toMatch(/^ +parked +it and|! parked$/m)
      expect(stdout).toContain('it and what landed both changed shared.txt')
      expect(stdout).not.toContain('✓ done\n')
      expect(typedIn(stdout, again)).toEqual([...typed, again])
    }
    for (const format of ['md', 'html', 'json'])
      expect((await ralph(at, ['report', 'd', '--format', format])).stdout).toMatch(
        /parked[^]*it and what landed both changed shared\.txt/,
      )
    expect(status).toMatch(/stories +1\/1 done, merge of both sides: /)
    expect(status).not.toMatch(/ralph (done|finish|status) d/)
  }
  await refused('ralph queue retry d')
  const queue = (await ralph(at, ['queue'])).stdout
  expect(typedIn(queue, 'ralph queue retry d')).toEqual([...typed, 'ralph queue retry d'])

  expect((await ralph(at, ['queue', 'remove', 'd'])).code).toBe(0)
  await refused(`cd ${at.repo} && ralph up d`)
  const again = await ralph(at, up)
  expect([again.code, events(again).at(-1)]).toMatchObject([
    3,
    {
      type: 'entry.parked',
      hint: expect.stringMatching(/^1\. Edit .*\n2\. .*\n {2}cd [^]*\n {2}ralph queue retry d$/) as string,
    },
  ])
  expect([at.read('../home/asked'), at.git('for-each-ref')]).toEqual([asked, refs])
  expect(at.git('show', 'main:shared.txt')).toBe('of main')

  // The advice typed too early, and then as it is meant: a finish would call it nothing and delete the branch.
  for (const text of ['of d\n', 'of main\nof d\n']) {
    at.write('../repo-ralph-d/shared.txt', text)
    at.write('../repo-ralph-d/gate.sh', 'true # an edit that is not of the merge\n')
    execFileSync('sh', ['-c', typed.filter((each) => !each.includes('grep')).join('\n')], {
      cwd: at.repo,
      env: at.env,
    })
    expect(at.git('-C', tree, 'diff', 'HEAD', '--name-only')).toBe('gate.sh')
    at.git('-C', tree, 'restore', 'gate.sh')
    const before = at.git('for-each-ref')
    const finish = await ralph(at, ['finish', 'd', '--cleanup'])
    expect([finish.code, finish.stderr]).toEqual([2, expect.stringContaining('ralph queue retry d')])
    expect(at.git('for-each-ref')).toBe(before)
  }
  // Where the pasted lines have led to.
  expect((await ralph(at, ['queue', 'retry', 'd'], { cwd: tree })).code).toBe(0)
  const landed = await ralph(at, ['up', ...at.args])
  expect([landed.code, landed.stderr]).toEqual([0, ''])
  expect(at.git('show', 'refs/ralph-landed/main:shared.txt')).toBe('of main\nof d')
  expect((await ralph(at, ['status', 'd'])).stdout).toMatch(/✓ done[^]*landed on main as/)
})
