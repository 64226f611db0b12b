// What a demanding first-time user found: a command that ralph advises works, and what it says is so.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, ralph, scratch, start, tasksOf } from './harness.ts'
import { after as ran, scene } from './scenes.ts'
import type { Scratch } from './harness.ts'

/** Story 1 complete, every other fails. */
const half = `case $RALPH_STORY in 1) ${goodAgent};; *) echo try > try.txt; echo "<promise>FAILED: no luck</promise>";; esac`

function words(agent: string, ...more: string[]): string[] {
  return ['loop', 'demo', '--agent-command', agent, '--max-retries', '0', ...more]
}

function loop(at: Scratch, agent: string, ...more: string[]) {
  return ralph(at, words(agent, ...more))
}

const halfDone = (): Promise<Scratch> => ran(words(half), { tasks: tasksOf(2), code: 3 })

/** Types a line that ralph printed, as a user would. */
function type(at: Scratch, line: string, cwd = at.repo): string {
  return execFileSync('sh', ['-c', line], { cwd, env: at.env, encoding: 'utf8' })
}

function after(text: string, label: string): string {
  const line = text.split('\n').find((each) => each.trimStart().startsWith(label))
  return line?.trimStart().slice(label.length).trim() ?? ''
}

async function killed(at: Scratch, agent: string, ...more: string[]): Promise<void> {
  const running = start(at, ['loop', 'demo', '--agent-command', agent, '--json', ...more])
  await running.seen((out) => out.includes('"text":"ready'))
  running.child.kill('SIGKILL')
  await running.ended
  await ralph(at, ['stop', 'demo'])
}

describe('restore', () => {
  test('F26, F5: brings back what diff shows, onto the tree as it is; later commits and ticked boxes stay; it names the files, and the undo it prints undoes it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    expect((await loop(at, goodAgent, '--on-complete', 'cleanup')).code).toBe(0)
    at.write('README.md', '# mine\n')
    at.git('add', '-A')
    at.git('commit', '-qm', 'mine')
    at.git('rm', '-q', 'story-2.txt')
    at.write(
      'openspec/changes/demo/tasks.md',
      at.read('openspec/changes/demo/tasks.md').replaceAll('[x] 2.', '[ ] 2.'),
    )
    at.git('commit', '-qam', 'without story 2')
    const patch = (await ralph(at, ['diff', '2'])).stdout
    expect(patch).toContain('story-2.txt')
    expect(patch).toContain('+- [x] 2.1')
    const { stdout, code } = await ralph(at, ['restore', '2'], { cwd: join(at.repo, 'openspec') })
    expect(code).toBe(0)
    expect(stdout).toContain('in the work tree now, uncommitted: openspec/changes/demo/tasks.md, story-2.txt')
    expect(at.git('status', '--porcelain')).toBe(' M openspec/changes/demo/tasks.md\n?? story-2.txt')
    expect(at.read('openspec/changes/demo/tasks.md')).not.toContain('[ ]')
    expect(at.read('README.md')).toBe('# mine\n')
    type(at, after(stdout, 'undo:'), join(at.repo, 'openspec'))
    expect(at.git('status', '--porcelain')).toBe('')
  })

  test('F26: right after a cleanup, over uncommitted work; an attempt that is all there touches nothing', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, half, '--on-complete', 'cleanup')
    at.write('README.md', '# mine\n')
    const there = await ralph(at, ['restore', '1'])
    expect(there.stdout).toContain('in the work tree already; nothing was touched')
    const { stdout, code } = await ralph(at, ['restore', '2'])
    expect([code, at.read('try.txt'), at.read('README.md')]).toEqual([0, 'try\n', '# mine\n'])
    expect(stdout).toContain('uncommitted: try.txt\n')
    expect(at.read('openspec/changes/demo/tasks.md')).toContain('[x] 1.1')
    type(at, after(stdout, 'undo:'))
    expect(existsSync(join(at.repo, 'try.txt'))).toBe(false)
  })

  test('F26: what conflicts, or is ignored and in the way, is named and refused with nothing touched', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const doings = 'echo agent > README.md; echo x > new.txt; mkdir d; echo x > d/x'
    await loop(at, `${doings}; echo "<promise>FAILED: no</promise>"`)
    at.write('README.md', '# mine\n')
    at.write('d', 'a file\n')
    const { stderr, code } = await ralph(at, ['restore', '1'])
    expect(code).toBe(1)
    expect(stderr).toContain('other changes on the same lines now: README.md, d\n')
    expect(stderr).toContain('Nothing was touched, and the attempt stays kept.')
    // To commit would not help, and what is advised does.
    expect(stderr).not.toContain('Commit')
    const [, typed = ''] = /own: ralph (restore .+)$/m.exec(stderr) ?? []
    const aside = await ralph(at, typed.split(' '))
    expect([aside.code, readFileSync(join(`${at.repo}-demo-1`, 'README.md'), 'utf8')]).toEqual([0, 'agent\n'])
    rmSync(join(at.repo, 'd'))
    expect(at.git('status', '--porcelain')).toBe(' M README.md')
    at.git('restore', 'README.md')
    at.write('.git/info/exclude', 'new.txt\n.claude\n')
    at.write('new.txt', 'secret\n')
    expect((await ralph(at, ['restore', '1'])).stderr).toMatch(
      /files of yours that git does not show: new\.txt\n +Move or stash them first\./,
    )
    expect([at.read('new.txt'), at.git('status', '--porcelain')]).toEqual(['secret\n', ''])
  })

  test('after the cleanup of a manual change its user’s word is next, and after that nothing', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    expect((await loop(at, goodAgent, '--done', 'manual')).code).toBe(5)
    expect((await ralph(at, ['finish', 'demo', '--cleanup'])).stdout).toMatch(/ralph done demo +it is done/)
    const done = await ralph(at, ['done', 'demo'])
    expect([done.code, done.stdout]).toEqual([0, expect.not.stringContaining('--cleanup')])
  })

  test('F2: an attempt that its dead loop has not kept is neither shown nor advised; where it is, is said', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await killed(at, 'echo x > new.txt; echo ready; exec tail -f /dev/null')
    for (const args of [
      ['restore', '1'],
      ['diff', '1'],
      ['restore', '1', '--to', '../out'],
    ]) {
      const { stderr, code } = await ralph(at, args)
      expect(code).toBe(2)
      expect(stderr).toContain('Attempt 1 of demo is not kept yet')
      expect(stderr).toContain('ralph finish demo --keep')
      expect(stderr).not.toContain('--to')
    }
    expect((await ralph(at, ['finish', 'demo', '--keep'])).code).toBe(0)
    expect((await ralph(at, ['diff', '1'])).stdout).toContain('new.txt')
    expect((await ralph(at, ['restore', '1'])).code).toBe(0)
    expect(at.read('new.txt')).toBe('x\n')
  })
})

describe('finish', () => {
  /** Done and kept on ralph/demo; main has changed the same file since. */
  function diverged(): Promise<Scratch> {
    return scene('done, and main has changed the same file', async () => {
      const at = scratch({ tasks: tasksOf(1) })
      await loop(at, `echo agent > README.md; ${goodAgent}`)
      at.git('switch', '-q', 'main')
      at.write('README.md', '# mine\n')
      at.git('commit', '-qam', 'mine')
      return at
    })
  }

  test('F37: a conflict names the branch and the commands; after them the run is settled, and status advises what works', async () => {
    const at = await diverged()
    const refused = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('main and the loop changed the same lines: README.md')
    const merge = /Merge by hand: (.*?);/.exec(refused.stderr)?.[1] ?? ''
    const looked = (await ralph(at, ['status', 'demo'])).stdout
    expect(looked).toContain(merge)
    expect(looked).toContain('next        ralph finish demo --cleanup   after what "refused" says')
    expect((await ralph(at, ['finish', 'demo', '--squash'])).code).toBe(1)
    const why = (await ralph(at, ['why', 'demo'])).stdout
    expect(why).toContain('refused  the last squash: main and the loop changed the same lines: README.md')
    expect(why).toMatch(/next +ralph finish demo --squash +after what "refused" says/)
    expect(() => type(at, merge)).toThrow()
    at.write('README.md', '# both\n')
    at.git('commit', '-qam', 'merged')
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('next        ralph finish demo --cleanup')
    const settled = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(settled.code).toBe(0)
    expect(settled.stdout).toContain('merged into main already: nothing was left to do')
    expect([at.git('branch', '--list', 'ralph/*'), at.git('status', '--porcelain')]).toEqual(['', ''])
    expect(at.read('README.md')).toBe('# both\n')
    // Nothing was brought.
    const since = (await ralph(at, ['status', 'demo'])).stdout
    expect(since).toContain('on main, committed; merged by you')
    expect(since).not.toContain('by the cleanup')
  })

  test('F38: resume --on-complete cleanup of a done run, refused: the user stays on their branch', async () => {
    const at = await diverged()
    const { stderr, code } = await ralph(at, ['resume', 'demo', '--on-complete', 'cleanup'])
    expect(code).toBe(1)
    expect(stderr).toContain('README.md\n')
    expect(stderr).toContain('The cleanup has touched nothing.')
    expect(at.git('branch', '--show-current')).toBe('main')
  })

  test('F51, F13: a resume says which branch it leaves; with files in the way it names them, and git stash -u helps', async () => {
    const at = await halfDone()
    at.git('switch', '-qc', 'feature', 'main')
    at.write('mine.txt', 'mine')
    const refused = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('there are changes on feature: mine.txt.')
    type(at, /`(git stash -u)`/.exec(refused.stderr)?.[1] ?? 'false')
    const { stderr } = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(stderr).toContain(
      'goes to ralph/demo, where the run of demo continues; to go back afterwards: git switch feature',
    )
  })

  test('F51: a run whose branch was deleted continues where it was, and says so; with files in the way nothing is made', async () => {
    const at = await halfDone()
    at.git('switch', '-q', 'main')
    at.git('branch', '-qD', 'ralph/demo')
    at.write('mine.txt', 'mine')
    const refused = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect([refused.code, at.git('branch', '--format=%(refname:short)')]).toEqual([2, 'main'])
    expect(refused.stderr).toContain('there are changes on main: mine.txt.')
    expect(refused.stderr).not.toContain('switch ralph/demo')
    type(at, /`(git stash -u)`/.exec(refused.stderr)?.[1] ?? 'false')
    const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(end.stderr).toMatch(
      /ralph\/demo was gone \(deleted or renamed\), and is made again at [0-9a-f]{12}; /,
    )
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining('1 of 2 stories done')])
    const subjects = at.git('log', '--format=%s', 'ralph/demo').split('\n')
    expect(subjects.filter((subject) => subject === 'checkpoint: 1')).toHaveLength(1)
  })

  test('F52: a commit of the user between two attempts is named by the resume and by the cleanup', async () => {
    const at = await halfDone()
    at.write('mine.txt', 'mine')
    at.git('add', '-A')
    at.git('commit', '-qm', 'a commit of mine')
    const hash = at.git('rev-parse', '--short', 'HEAD')
    const { stderr } = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(
      `before story 2 commits were made (${hash} a commit of mine) and files were changed (mine.txt), not by the loop: that is saved with this story`,
    )
    const { stdout } = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(stdout).toContain(`Among them, made by hand: ${hash} a commit of mine`)
  })

  test('F52: one that takes the place of a checkpoint is named with what it replaced', async () => {
    const at = await halfDone()
    const saved = at.git('log', '-1', '--format=%h %s')
    at.git('commit', '-q', '--amend', '-m', 'mine')
    const { stderr } = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(stderr).toMatch(/commits were made \(\w+ mine\) and commits were taken off the branch/)
    expect(stderr).toContain(`taken off the branch (${saved})`)
  })

  test('F16: stash mode, stuck: nothing is called finished, the stash entry is named with the command that drops it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const stuck = await loop(at, half, '--checkpoint', 'stash')
    expect(stuck.stdout).toContain('stash@{0} (ralph:demo:2)')
    const { stdout } = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect(stdout).not.toContain('finished')
    expect(stdout).toMatch(/^ {2}next {3}ralph resume demo$/m)
    // A later entry of the user's takes its place in the list.
    at.write('mine.txt', 'mine\n')
    at.git('stash', 'push', '-qu', '-m', 'mine', '--', 'mine.txt')
    const command = /git stash drop ".*?\)"/.exec(stdout)?.[0] ?? 'false'
    type(at, command)
    expect(at.git('stash', 'list')).toBe('stash@{0}: On main: mine')
    expect(() => type(at, command)).toThrow()
    expect(at.git('stash', 'list')).toBe('stash@{0}: On main: mine')
    at.git('stash', 'pop', '-q')
    const done = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(done.code).toBe(0)
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('next        git status')
  })

  test('F25, F27: done, cleaned up, committed, work tree removed as advised: no problem, nothing left to do', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, goodAgent, '--worktree')
    const cleaned = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect((await ralph(at, ['status', 'demo'])).stdout).toContain('next        git status')
    at.git('add', '-A')
    at.git('commit', '-qm', 'the work')
    type(at, after(cleaned.stdout, 'next '))
    const { stdout } = await ralph(at, ['status', 'demo'])
    expect(stdout).not.toContain('problem')
    expect(stdout).not.toContain('next')
    const again = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^demo is finished already: its work is on main since the cleanup at [\d:]{8}\.\n$/,
      ),
    ])
  })

  test('F15, F48: a loop with nothing to do announces no branch and no agent, and puts no earlier run away', async () => {
    const at = scratch({ tasks: tasksOf(1).replaceAll('[ ]', '[x]') })
    const { stdout } = await ralph(at, ['loop', 'demo'])
    expect(stdout).not.toContain('ralph/demo')
    expect(stdout).toContain('✓ done   1 of 1 story, 2 tasks')
    expect((await ralph(at, ['status', 'demo'])).stdout).not.toContain('next')
    at.write('openspec/changes/demo/tasks.md', tasksOf(1))
    await loop(at, goodAgent, '--on-complete', 'cleanup')
    const again = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect([again.code, again.stderr]).toEqual([
      0,
      expect.stringMatching(/^demo is done already\. Is there more to do\?[^]*then: ralph loop demo\n$/),
    ])
    const fresh = await ralph(at, ['loop', 'demo', '--fresh', '--agent-command', goodAgent])
    expect([fresh.code, fresh.stderr]).toEqual([
      0,
      expect.stringContaining('The earlier run stays as it is.'),
    ])
    expect((await ralph(at, ['diff', '1'])).stdout).toContain('story-1.txt')
    // Beside another run, too, the boxes say what is done, not what the run came to.
    at.write('openspec/changes/other/tasks.md', tasksOf(1).replaceAll('[ ]', '[x]'))
    expect((await ralph(at, ['loop', 'other'])).code).toBe(0)
    at.write('openspec/changes/demo/tasks.md', tasksOf(1))
    expect((await ralph(at, ['status'])).stdout).toMatch(/^demo +○ open +0\/1 +1 /m)
  })
})

describe('what status and the others say', () => {
  test('F12: a stop says that the tree was restored, and where its work is; so does status; nothing is called failed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = 'echo x > new.txt; echo ready; exec tail -f /dev/null'
    const running = start(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    await running.seen((out) => out.includes('"text":"ready'))
    const stopped = await ralph(at, ['stop'])
    expect(stopped.stdout).toContain('is kept: ralph diff 1 demo; bring it back: ralph restore 1 demo')
    const { stdout } = await ralph(at, ['status'])
    expect(stdout).toMatch(
      /^ {2}undone +ralph diff 1 demo {3,}what #1 had done\n {14}ralph restore 1 demo {3,}bring it back$/m,
    )
    expect(stdout).toMatch(/^ {2}tokens +unknown$/m)
    expect(stdout).toContain('stopped by  ralph stop\n')
    expect(stdout).not.toContain('last try')
    expect((await ralph(at, ['restore', '1'])).code).toBe(0)
    expect(at.read('new.txt')).toBe('x\n')
  })

  test('B8: an attempt that changed nothing is not offered as work', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const end = await loop(at, 'echo "<promise>FAILED: no</promise>"', '--max-retries', '0')
    expect([end.code, end.stdout]).toEqual([
      3,
      expect.stringMatching(/0 of 1 story, 0 of \d tasks, 1 attempt /),
    ])
    expect(end.stdout).not.toMatch(/ralph diff \d|(was|were) undone/)
    for (const command of ['status', 'why'])
      expect((await ralph(at, [command])).stdout, command).not.toMatch(/ralph diff|  undone/)
  })

  test('F12: a stop of an attempt that had changed nothing offers no diff of it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = 'echo ready; exec tail -f /dev/null'
    const running = start(at, ['loop', 'demo', '--agent-command', agent, '--json'])
    await running.seen((out) => out.includes('"text":"ready'))
    const stopped = await ralph(at, ['stop'])
    expect(stopped.stdout).toContain('The work tree is at the checkpoint; the attempt had changed nothing.')
    expect(stopped.stdout).not.toContain('ralph diff')
  })

  test('F1, F4, F8: a crashed iteration ended at the last sign of life; its death is told once, and nothing is said to be in order', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await killed(at, 'echo ready; exec tail -f /dev/null')
    const why = await ralph(at, ['why', '--json'])
    expect(why.stdout).toContain('The loop was killed.')
    expect(why.stdout).not.toContain('has been repaired')
    const { stdout } = await ralph(at, ['status'])
    expect(stdout.match(/killed/g)).toHaveLength(1)
    const report = JSON.parse((await ralph(at, ['status', '--json'])).stdout) as {
      died_at: string
      iterations: { started: string; ended: string }[]
    }
    expect(report.iterations[0]?.ended).toBe(report.died_at)
  })

  test('F9: the branch of the work, and where the user stands; after a cleanup that it is on main, uncommitted', async () => {
    const at = await halfDone()
    const work = async (): Promise<string> => after((await ralph(at, ['status'])).stdout, 'work')
    expect(await work()).toBe('on ralph/demo (you are on it), from main')
    at.git('switch', '-q', 'main')
    expect(await work()).toBe('on ralph/demo (you are on main), from main')
    expect((await ralph(at, ['status'])).stdout).toMatch(
      /^ {2}next +ralph resume demo --feedback "…" .*\n {2}or +ralph finish demo --cleanup +the work, uncommitted on main$/m,
    )
    await ralph(at, ['finish', '--cleanup'])
    expect(await work()).toMatch(/^on main, uncommitted, since the cleanup at \d\d:\d\d:\d\d$/)
  })

  test('F19: what the summary had to say is in status, too, until the user has agreed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const done = await loop(at, `git config core.pager evil; ${goodAgent}`)
    const note = after(done.stdout, 'note:')
    expect(note).toContain('core.pager')
    expect((await ralph(at, ['status'])).stdout).toContain(`note: ${note}`)
    await ralph(at, ['finish', '--accept-config'])
    expect((await ralph(at, ['status'])).stdout).not.toContain('note:')
  })

  test('F49: done for --story only: status names the command for the others', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, goodAgent, '--story', '1')
    const { stdout } = await ralph(at, ['status'])
    expect(stdout).toMatch(
      /^ {2}next +ralph resume demo +run the 1 open story\n {2}or +ralph finish demo --cleanup /m,
    )
  })

  test('F28: the banner of --worktree names the folder; list says that the loop has got further than this checkout', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const stuck = await loop(at, half, '--worktree')
    expect(stuck.stdout).toContain(`in ${at.root}/repo-ralph-demo, without what is uncommitted here`)
    const { stdout } = await ralph(at, ['list'])
    expect(stdout).toContain('its loop has 1/2 stories on ralph/demo, this checkout 0: ralph status demo')
    expect(stdout).toMatch(/^demo +1\/2 /m)
  })
})

describe('words', () => {
  test('F24, F53: a first run of a second change has no earlier run, and no warning about the state file of the first', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/other/proposal.md', '# Other\n')
    at.write('openspec/changes/other/tasks.md', tasksOf(1))
    await loop(at, goodAgent, '--on-complete', 'cleanup')
    const other = await ralph(at, ['loop', 'other', '--agent-command', goodAgent])
    expect(other.stderr).not.toContain('state file')
    expect((await ralph(at, ['history', 'other'])).stdout).not.toContain('earlier run')
  })

  test('F18, F22: a ralph.yaml that was changed during an attempt: doctor names the commands, and a refused start its flag', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, `echo "max_retries: 9" > ralph.yaml; ${goodAgent}`, '--on-complete', 'cleanup')
    const { stdout } = await ralph(at, ['doctor'])
    expect(stdout).toContain('Agree: ralph finish demo --accept-config')
    expect(stdout).not.toContain('Rename it')
    const refused = await ralph(at, ['loop', 'demo', '--dry-run', '--agent-command', goodAgent])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('type the same command again with --accept-config')
  })

  test('F21: config and doctor say that an open run does not use the file as it is now', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    await loop(at, half, '--max-retries', '1')
    // What it uses anyway is no difference to it.
    at.write('ralph.yaml', 'max_retries: 1\n')
    expect((await ralph(at, ['config'])).stderr).toBe('')
    at.write('ralph.yaml', 'max_retries: 2\n')
    for (const command of ['config', 'doctor']) {
      const { stdout, stderr } = await ralph(at, [command])
      expect(stdout + stderr).toMatch(
        /the open run of demo continues with the settings of its start.*ralph\.yaml/,
      )
      expect(stdout + stderr).toContain('ralph resume demo --accept-config')
      if (command === 'doctor') expect(stdout).toMatch(/^! loop demo +stuck$/m)
    }
  })

  test('F36: an unknown setting: the advised command works', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('ralph.yaml', 'zzzz: 1\n')
    const { stderr } = await ralph(at, ['loop', 'demo'])
    expect((await ralph(at, after(stderr, 'see all of them with: ralph').split(' '))).code).toBe(0)
  })

  test('F14: --fresh says what was archived, where the new run begins, and how to begin elsewhere', async () => {
    const at = await halfDone()
    const tip = at.git('rev-parse', '--short', 'HEAD')
    const { stderr } = await loop(at, half, '--fresh')
    expect(stderr).not.toContain('warning: the earlier run')
    expect(stderr).toContain('the earlier run is archived (ralph attempts demo --all)')
    expect(stderr).toContain(`ralph/demo at ${tip}, with the work of the earlier run`)
    expect(stderr).toContain('to begin at main instead: git switch main && ralph loop demo --fresh')
    expect(stderr).not.toContain('only in the archive')
    expect(stderr).not.toContain('stay kept')
  })

  test('F14: where --fresh begins without the saved work of the earlier run, it names the commit that has it', async () => {
    const at = await halfDone()
    const tip = at.git('rev-parse', 'HEAD')
    at.git('switch', '-q', 'main')
    const { stderr } = await loop(at, half, '--fresh')
    const [, commit = ''] = /which stay kept: git log (\w+)/.exec(stderr) ?? []
    expect(at.git('rev-parse', commit)).toBe(tip)
    expect(at.git('for-each-ref', '--contains', commit, 'refs/ralph/demo/archive')).not.toBe('')
  })

  test('C3: --fresh names the files of the earlier initial state that are only in the archive, with commands that bring them back', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('new file.txt', 'mine\n')
    at.write('README.md', '# mine\n')
    await loop(at, 'false')
    at.git('switch', '-q', 'main')
    const { stderr } = await loop(at, goodAgent, '--fresh')
    const commands = [...stderr.matchAll(/is only in the archive now; to get it back: (.*)/g)]
    expect(commands).toHaveLength(2)
    for (const [, command = ''] of commands) type(at, command)
    expect([at.read('new file.txt'), at.read('README.md')]).toEqual(['mine\n', '# mine\n'])
  })

  test('F17: a branch that ralph has no record of is not said to be a lost run; the branch of the user is named', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.git('branch', 'ralph/demo')
    const { stderr, code } = await loop(at, goodAgent)
    expect(code).toBe(2)
    expect(stderr).toContain('the branch ralph/demo exists, and ralph has no record of a run here')
    expect(stderr).toContain('Somebody else made that branch, or .git/ralph was removed.')
    expect(stderr).not.toContain('YOUR-BRANCH')
  })

  test('F46: a record that is gone: finish without a name tells the way out, too', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await loop(at, `rm -rf .git/ralph; ${goodAgent}`)
    const { stderr } = await ralph(at, ['finish', '--cleanup'])
    expect(stderr).toContain('git merge --squash ralph/demo')
  })

  test('F47: a damaged journal: attempts lists what is kept, history what the state file has', async () => {
    const at = await halfDone()
    at.write('.git/ralph/changes/demo/journal.ndjson', '{"damaged\n')
    const list = await ralph(at, ['attempts', 'demo'])
    expect(list.stdout).toContain('failed')
    expect(list.stdout).toContain('no luck')
    expect((await ralph(at, ['history', 'demo'])).stdout).toContain('no luck')
  })

  test('F30, F35: what was removed beside an agent blames nobody, and is not named any more once it is back; a silent gate ends without a colon', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('mine.txt', 'mine\n')
    const done = await loop(at, `rm mine.txt; ${goodAgent}`)
    expect(done.stdout).toContain(
      'while the loop ran, 1 file that you had not committed was removed, reverted or overwritten',
    )
    const command = /git restore .*/.exec((await ralph(at, ['status'])).stdout)?.[0] ?? 'false'
    type(at, command)
    expect((await ralph(at, ['status'])).stdout).not.toContain('git restore')
    const gated = scratch({ tasks: tasksOf(1) })
    const { stdout } = await loop(gated, goodAgent, '--verify', 'false')
    expect(stdout).toContain('✕ false (exit 1) ')
    expect(stdout).toContain('\n  false failed (exit 1)\n')
  })
})

test('F2: with --json what a repair has to say is on stderr once, and an event', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  await killed(at, 'echo theirs > agent.txt; echo ready; sleep 600')
  at.write('mine.txt', 'mine\n')
  const end = await ralph(at, ['resume', 'demo', '--json', '--agent-command', goodAgent])
  expect(end.code).toBe(0)
  const said = end.stderr.split('\n').filter((line) => line.includes('mine.txt') && line.includes('so yours'))
  expect(said).toHaveLength(1)
  const told = eventsOf(end).filter((event) => event.type === 'warning' && event.message.includes('so yours'))
  expect(told).toMatchObject([{ code: 'repaired' }])
})

describe('F1: a gate that is red from the start', () => {
  /** Keeps its prompts, and what the gate found of its work each time. */
  const keeps = `cat > ../prompt-$RALPH_ITERATION; echo $RALPH_ITERATION > work.txt; echo "<promise>COMPLETE</promise>"`
  const red =
    'ls work.txt >> ../seen 2>/dev/null || echo none >> ../seen; echo "not ok 1 - older than that"; exit 4'

  test("is run once without the agent's work before the retry is paid; the loop, its end, why, --json and the next prompts say so", async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const how = ['--agent-command', keeps, '--max-retries', '2', '--verify', red]
    const end = await ralph(at, ['loop', 'demo', ...how])
    expect(end.code).toBe(3)
    expect(at.read('../seen')).toBe('work.txt\nnone\nwork.txt\nwork.txt\n')
    expect(end.stdout).toMatch(
      /\n {2}! .* fails in the same way without the agent's work .*\n {4}not part of the plan\? Stop, fix it, then ralph resume demo\n/,
    )
    expect(end.stdout).toMatch(/\n {2}It fails in the same way without the agent's work\.\n/)
    expect(end.stderr).toContain(
      "fails without the agent's work, too: fix that first, then type: ralph resume demo",
    )
    expect(at.read('../prompt-2')).toContain('it fails there in the same way')
    expect(at.read('../prompt-3')).toContain('it fails there in the same way')
    expect((await ralph(at, ['prompt', 'demo'])).stdout).toContain('it fails there in the same way')
    const why = await ralph(at, ['why', 'demo'])
    expect(why.stdout).toContain("the gate fails in the same way without the agent's work: fix that first")
    expect(why.stdout).toMatch(/next +ralph resume demo +try again when that is fixed/)
    expect((await ralph(at, ['why', 'demo', '--trace'])).stdout).toContain('before the next attempt')
    expect(at.git('status', '--porcelain')).toBe('')

    const json = await ralph(at, ['loop', 'demo', '--fresh', '--json', ...how])
    const told = eventsOf(json).filter(({ type }) => type.startsWith('baseline.'))
    expect(told).toMatchObject([
      { type: 'baseline.started', n: 2 },
      { type: 'baseline.ended', n: 2, outcome: 'same', exit_code: 4 },
    ])
  })

  test.each(['branch', 'stash'])(
    'G1: what it leaves, moves or ticks without the work is gone when the agent begins (%s)',
    async (checkpoint) => {
      const at = scratch({ tasks: tasksOf(1) })
      const begins =
        'git status --porcelain >> ../begun; git rev-parse HEAD >> ../heads; git branch --list side >> ../begun'
      const agent = `cat > /dev/null; ${begins}; echo $RALPH_ITERATION > work.txt; echo "<promise>COMPLETE</promise>"`
      const gate =
        'echo run >> left.txt; echo gate >> README.md; sed -i "s/\\[ \\]/[x]/" openspec/changes/demo/tasks.md; git branch -f side; exit 4'
      const how = [
        '--agent-command',
        agent,
        '--max-retries',
        '2',
        '--verify',
        gate,
        '--checkpoint',
        checkpoint,
      ]
      const end = await ralph(at, ['loop', 'demo', ...how])
      expect([end.code, at.read('../begun')]).toEqual([3, ''])
      expect(new Set(at.read('../heads').trim().split('\n')).size).toBe(1)
      expect(at.git('status', '--porcelain')).toBe('')
      expect(at.git('branch', '--list', 'side')).toBe('')
    },
  )

  test('what it writes each time does not fail the retry, and where it passes without the work the agent hears that', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `cat > ../prompt-$RALPH_ITERATION; test $RALPH_ITERATION = 2 || echo bad > bad.txt; echo ok > ok.txt; echo "<promise>COMPLETE</promise>"`
    const gate = 'echo run >> runs.txt; test ! -e bad.txt'
    const end = await ralph(at, ['loop', 'demo', '--agent-command', agent, '--verify', gate])
    expect([end.code, end.stdout]).toEqual([0, expect.stringContaining("passes without the agent's work")])
    expect(at.read('../prompt-2')).toContain('Without your changes this gate passes')
    expect(at.git('show', '--stat', '--format=', 'HEAD')).toMatch(/ok\.txt[^]*runs\.txt/)
  })

  test('a stop while it runs ends it, and the agent is not asked', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const gate = 'test -e work.txt && exit 1; echo up > ../up; sleep 600'
    const running = start(at, ['loop', 'demo', '--agent-command', keeps, '--verify', gate, '--json'])
    await expect.poll(() => existsSync(join(at.root, 'up')), { timeout: 120_000 }).toBe(true)
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    expect(existsSync(join(at.root, 'prompt-2'))).toBe(false)
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['gate_failed', 'interrupted'])
    expect(at.git('status', '--porcelain')).toBe('')
  })
})

test('finish in a pipe names the run and what can be typed, and each of it works', async () => {
  const at = await halfDone()
  const { code, stderr } = await ralph(at, ['finish'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('Where should the work of demo go?') as string])
  const typed = stderr.match(/ralph finish demo --\w+/g) ?? []
  expect(typed.map((line) => line.split('--')[1])).toEqual(['cleanup', 'squash', 'keep'])
  expect(at.git('branch', '--show-current')).toBe('ralph/demo')
  expect((await ralph(at, (typed[1] ?? '').split(' ').slice(1))).code).toBe(0)
  expect(at.git('show', '--stat', 'main')).toContain('story-1.txt')
})

test('a plan that was not committed before its loop: elsewhere list, bare ralph and show say which branch has it, until the work is here', async () => {
  const at = scratch({ tasks: '' })
  at.git('rm', '-rq', 'openspec')
  at.git('commit', '-qm', 'no plan')
  at.write('openspec/changes/demo/tasks.md', tasksOf(2))
  expect((await loop(at, goodAgent, '--on-complete', 'keep')).code).toBe(0)
  at.git('switch', '-q', 'main')
  expect(existsSync(join(at.repo, 'openspec'))).toBe(false)
  for (const words of [['list'], ['--no-tui']]) {
    const { stdout, code } = await ralph(at, words)
    expect([code, stdout]).toEqual([0, expect.stringMatching(/demo +2\/2 +4\/4 +✓ done on ralph\/demo\n/)])
    expect(stdout).toContain('demo: plan and work are on ralph/demo, not in this checkout')
    expect(stdout).not.toContain('ralph loop demo')
  }
  const show = await ralph(at, ['show', 'demo'])
  expect([show.code, show.stderr]).toEqual([
    2,
    expect.stringContaining('The plan of demo is on ralph/demo') as string,
  ])
  type(at, 'git merge -q ralph/demo')
  expect((await ralph(at, ['list'])).stdout).not.toContain('not in this checkout')
  at.git('rm', '-rq', 'openspec')
  at.git('commit', '-qm', 'archived')
  expect((await ralph(at, ['list'])).stdout).not.toContain('demo')
})

test('27: logs --gate of a loop that came to nothing is the gate that failed, not one that passed since; why names no attempt that was made good', async () => {
  const at = scratch({ tasks: tasksOf(2) })
  const gate = at.script(
    'gate.sh',
    '#!/bin/sh\n[ -f "$HOME/once" ] && { echo fine; exit; }\ntouch "$HOME/once"; echo broken; exit 1\n',
  )
  const end = await ralph(at, [
    'loop',
    'demo',
    '--agent-command',
    half,
    '--verify',
    gate,
    '--max-retries',
    '1',
  ])
  expect(end.code).toBe(3)
  expect(
    at
      .state()
      .iterations.map(({ verdict }) => verdict)
      .slice(0, 2),
  ).toEqual(['gate_failed', 'complete'])
  const { stdout } = await ralph(at, ['logs', '--gate'])
  expect([stdout.includes('broken'), stdout.includes('fine')]).toEqual([true, false])
  expect((await ralph(at, ['logs', 'demo', '--gate', '2'])).stdout).toContain('fine')
  const why = (await ralph(at, ['why'])).stdout
  expect(why).toContain('ralph diff 4 demo')
  expect(why).not.toMatch(/ralph (?:diff|logs) 1 demo/)
})

test('demo with an agent that there is not says only that, and a repository without a commit is told what ralph up needs', async () => {
  const at = scratch({ commit: false })
  const demo = await ralph(at, ['demo', '--agent', 'nope'])
  expect([demo.code, demo.stdout]).toEqual([2, ''])
  expect(demo.stderr).toContain('there is no agent "nope"')
  const up = await ralph(at, ['up', '--agent', 'demo'])
  expect([up.code, up.stderr]).toEqual([2, expect.stringContaining('main has no commit yet') as string])
  type(at, after(up.stderr, 'Nothing was touched. First:'))
  expect((await ralph(at, ['up', '--agent', 'demo', '--pull'])).code).toBe(0)
})

test('a gate that is red without the agent: status, too, offers no words for the agent', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const red = at.script('red.sh', '#!/bin/sh\necho broken; exit 1\n')
  const words = ['loop', 'demo', '--agent-command', goodAgent, '--max-retries', '1', '--verify', red]
  const stuck = await ralph(at, words)
  expect(stuck.code).toBe(3)
  const status = (await ralph(at, ['status'])).stdout
  expect(status).toMatch(/ralph resume demo +try again when that is fixed$/m)
  expect(status).not.toContain('--feedback')
})

test('39: attach of a name that there is not complains of the name, also where there is no terminal', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const wrong = await ralph(at, ['attach', 'demoo'])
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"demoo"') as string])
  expect(wrong.stderr).not.toContain('terminal')
  await loop(at, goodAgent)
  expect((await ralph(at, ['attach', 'demo'])).stderr).toContain('needs a terminal')
})

test('39: a name that no change has: the others are named; how a new one begins only where there are none', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const wrong = await ralph(at, ['show', 'nope'])
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('There are: demo.') as string])
  expect(wrong.stderr).not.toContain('mkdir')
  rmSync(join(at.repo, 'openspec/changes/demo'), { recursive: true })
  expect((await ralph(at, ['show', 'nope'])).stderr).toContain('mkdir -p')
})
