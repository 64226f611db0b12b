// What an attacker found in the smaller doors, each as it was found.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { eventsOf, goodAgent, program, ralph, scratch, tasksOf } from './harness.ts'

const plan = 'openspec/changes/demo/tasks.md'

describe('a plan that goes missing', () => {
  test('P9, P10: removed by a gate, it is put back and the gate is named; no checkpoint is without it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const gate = 'rm -rf openspec'
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--verify', gate, '--json'])
    expect(end.code).toBe(0)
    const warnings = eventsOf(end).filter((event) => event.type === 'warning')
    expect(warnings.filter(({ message }) => message.includes(`while the gate \`${gate}\` ran`))).toHaveLength(
      2,
    )
    expect(at.read(plan)).toBe(tasksOf(2).replaceAll('[ ]', '[x]'))
    expect(at.git('log', '--format=%s', '--diff-filter=D', '--', 'openspec')).toBe('')
  })

  test('P10: at a resume it is an error; the run stays one that its boxes end, and nobody can say done', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const stuck = 'echo "<promise>FAILED: no</promise>"'
    await ralph(at, ['loop', 'demo', '--agent-command', stuck, '--max-retries', '0', '--json'])
    rmSync(join(at.repo, 'openspec'), { recursive: true })
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect({ code: resumed.code, stderr: resumed.stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/There is no tasks\.md in .*\n.*bring it back from git/) as string,
    })
    expect((await ralph(at, ['done', 'demo'])).code).toBe(2)
    expect(at.state()).toMatchObject({ done_criteria: 'tasks', status: 'stuck' })
    at.git('checkout', '-q', '--', 'openspec')
    expect((await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])).code).toBe(0)
  })
})

test('settings that cannot be read are one problem of doctor: what they would say of gates and agents is not checked', async () => {
  const at = scratch()
  at.write('ralph.yaml', 'verify: [\n')
  const { stdout, code } = await ralph(at, ['doctor'])
  expect(code).not.toBe(0)
  // B11: what is to be fixed first stands first, as the others say.
  expect(stdout).toMatch(/settings [^]*gates +not checked: [^]*"settings" above[^]*agents +not checked: /)
  expect(stdout).toMatch(/\b1 problem\b/)
})

test('a misspelt variable is named by doctor too, and is no problem', async () => {
  const doctor = await ralph(scratch(), ['doctor', '--json'], { env: { RALPH_MAX_RETRYS: '2' } })
  const { checks } = JSON.parse(doctor.stdout) as {
    checks: { name: string; verdict: string; detail: string }[]
  }
  expect(checks.filter(({ name }) => name === 'settings')).toMatchObject([
    { verdict: 'warning', detail: expect.stringContaining('Did you mean RALPH_MAX_RETRIES?') as string },
  ])
})

test('U5: where .claude is a file, no command speaks of a run that is not there or of a bug; each works once it is mended', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const mend = (): void => rmSync(join(at.repo, '.claude'), { recursive: true })
  for (const command of [
    ['loop', 'demo', '--agent-command', goodAgent],
    ['finish', 'demo', '--cleanup'],
  ]) {
    at.write('.claude', 'mine\n')
    const branches = at.git('branch', '--format=%(refname:short)')
    const refused = await ralph(at, command)
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(
        /^error: .*\n {2}Nothing was touched\. .*same command again\.\n$/,
      ) as string,
    })
    expect(at.read('.claude')).toBe('mine\n')
    expect(at.git('branch', '--format=%(refname:short)')).toBe(branches)
    mend()
    expect((await ralph(at, command)).code).toBe(0)
    mend()
  }
})

/** As root, or as somebody who may make namespaces. */
const ownMounts = [['-m'], ['-Urm']].find((flags) => spawnSync('unshare', [...flags, 'true']).status === 0)
const notHere = ownMounts === undefined ? ', skipped: nobody may mount here, not even in a namespace' : ''

test.skipIf(ownMounts === undefined)(
  `L: what an agent mounts in the work tree or in its temp folder is never removed through the mount; ralph names it, and goes on once it is gone${notHere}`,
  () => {
    const at = scratch({ tasks: tasksOf(1) })
    const data = join(at.root, "user's data")
    mkdirSync(data)
    writeFileSync(join(data, 'precious'), 'mine\n')
    const agent = at.script(
      'agent.sh',
      `mkdir 'm nt' "$HOME/new" "$TMPDIR/t"; echo new > "$HOME/new/file"
mount --bind "${data}" 'm nt' && mount --bind "$HOME/new" "$TMPDIR/t"
echo work > work.txt; echo "<promise>FAILED: no</promise>"`,
    )
    const run = (step: string, args: string): string =>
      `"${process.execPath}" "${program}" ${args} > ${join(at.root, step)} 2>&1; echo $? >> ${join(at.root, step)}`
    const steps = [
      run('loop', `loop demo --max-retries 0 --agent-command "${agent}"`),
      run('refused', 'finish demo --cleanup'),
      `cat "${data}/precious" "$HOME/new/file" work.txt`,
      `eval "$(sed -n 's/.*Unmount it: \\(umount .*\\), then .*/\\1/p' ${join(at.root, 'refused')})"`,
      run('finish', 'finish demo --cleanup'),
      `cat "${data}/precious"; ls`,
    ]
    const { stdout } = spawnSync('unshare', [...(ownMounts ?? []), 'sh', '-c', steps.join('\n')], {
      cwd: at.repo,
      env: at.env,
      encoding: 'utf8',
    })
    const told = (step: string): string => readFileSync(join(at.root, step), 'utf8')
    const mount = join(at.repo, 'm nt')
    expect(told('loop')).toMatch(/temp folder could not be removed/)
    expect(told('loop')).toContain(`stopped: ${mount} was mounted in the work tree while the loop ran`)
    expect(told('loop')).toMatch(/Unmount it: umount '[^\n]*m nt', then type: ralph resume demo\.[^]*\n1\n$/)
    expect(told('refused')).toMatch(/Unmount it: umount [^\n]*then type the command again\.\n1\n$/)
    expect(told('finish')).toMatch(/the work tree is back at the checkpoint[^]*\n0\n$/)
    expect(stdout).toBe('mine\nnew\nwork\nmine\nREADME.md\nopenspec\n')
    expect(readFileSync(join(data, 'precious'), 'utf8')).toBe('mine\n')
    expect(at.git('show', 'refs/ralph/demo/attempts/1:work.txt')).toBe('work')
  },
)

test('R17: where the agent has moved the repository, or its objects alone, to its temp folder on another disk, that folder is kept and named', async () => {
  // A copy, as `mv` makes it there: nothing of it is older than the folder.
  const moves = {
    '.git': 'mkdir "$TMPDIR/x" && cp -r .git "$TMPDIR/x" && rm -rf .git',
    objects: 'cp -r .git/objects "$TMPDIR/o" && rm -rf .git/objects/??',
  }
  for (const [part, move] of Object.entries(moves)) {
    const at = scratch({ tasks: tasksOf(1) })
    const before = at.git('rev-list', '--objects', '--all')
    const ended = await ralph(at, ['loop', 'demo', '--agent-command', move], { env: { TMPDIR: at.root } })
    expect(ended.code).toBe(1)
    const [, kept = ''] = /its temp folder: that is kept as (\S+)/.exec(ended.stderr + ended.stdout) ?? []
    const back = part === '.git' ? `cp -r ${kept}/x/.git .` : `cp -r ${kept}/o/. .git/objects`
    spawnSync('sh', ['-c', back], { cwd: at.repo })
    expect(at.git('rev-list', '--objects', before.split('\n')[0] ?? '')).toBe(before)
    const finished = await ralph(at, ['finish', 'demo', '--cleanup'], { env: { TMPDIR: at.root } })
    expect({ code: finished.code, isKept: existsSync(kept) }).toEqual({ code: 0, isKept: true })
  }
})

test.each(['named', 'cleanup'])(
  'L: a branch’s file that an agent has filled with garbage: the command that is named brings it back, and a cleanup makes it again (%s)',
  async (way) => {
    const at = scratch({ tasks: tasksOf(1) })
    const main = at.git('rev-parse', 'main')
    const agent = `echo garbage > .git/refs/heads/main; ${goodAgent}`
    const ended = await ralph(at, ['loop', 'demo', '--agent-command', agent])
    expect(ended.code).toBe(0)
    const told = ended.stdout + ended.stderr
    const [, back = 'false'] =
      /main was overwritten with what is no commit;.*to get it back: (rm .*before\/heads\/main)$/m.exec(
        told,
      ) ?? []
    if (way === 'named') {
      expect(spawnSync('sh', ['-c', back], { cwd: at.repo }).status).toBe(0)
      expect(at.git('rev-parse', 'main')).toBe(main)
    }
    const finished = await ralph(at, ['finish', 'demo', '--cleanup'])
    expect([finished.code, finished.stderr]).toEqual([0, expect.not.stringContaining('failed')])
    expect([at.git('rev-parse', 'main'), at.git('symbolic-ref', 'HEAD')]).toEqual([main, 'refs/heads/main'])
    expect(at.read('story-1.txt')).toBe('work of 1\n')
    const kept = spawnSync('sh', ['-c', 'cat .git/ralph/broken-refs/*'], { cwd: at.repo, encoding: 'utf8' })
    expect(kept.stdout).toBe(way === 'named' ? '' : 'garbage\n')
  },
)
