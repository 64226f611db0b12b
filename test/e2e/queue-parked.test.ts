// A change that the merge queue has parked, and a person who goes on with it: what each look says, and what to type.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { ralph } from './harness.ts'
import type { Scratch } from './harness.ts'
import { project, report } from './queue-kit.ts'

const fails = "echo '<promise>FAILED: no idea</promise>'; exit 0"
const good = 'cat > /dev/null; echo done > work.txt; echo "<promise>COMPLETE</promise>"'

/** It failed in the queue, and its user has told the agent more since. */
async function resumed(): Promise<ReturnType<typeof project>> {
  const at = project({ a: fails }, 1)
  expect((await ralph(at, ['up', '--json', ...at.args])).code).toBe(3)
  return at
}

test('B4: a parked change whose loop its user has brought to done says so wherever one looks, names ralph land, and that lands it', async () => {
  const at = await resumed()
  const end = await ralph(at, ['resume', 'a', '--feedback', 'like this', '--agent-command', good])
  expect(end.code).toBe(0)
  expect(end.stdout).toMatch(/land it +ralph land a +it is parked in the merge queue\n/)
  for (const look of [['status', 'a'], ['why', 'a'], ['list'], ['queue'], ['report', 'a']]) {
    const { stdout } = await ralph(at, look)
    expect([look, stdout]).toEqual([look, expect.stringContaining('its loop is done now')])
    expect([look, stdout]).toEqual([look, expect.stringContaining('ralph land a')])
    if (look[0] !== 'report') expect(stdout).not.toContain('no idea')
  }
  expect((await ralph(at, ['land', 'a', '--json'])).code).toBe(0)
  expect((await report(at)).entries[0]?.state).toBe('landed')
})

test('B4: one that failed again beside the queue has its new reason there, and why does not send to why', async () => {
  const at = await resumed()
  const other = 'cat > /dev/null; echo "<promise>FAILED: something else</promise>"'
  expect((await ralph(at, ['resume', 'a', '--agent-command', other])).code).toBe(3)
  for (const look of ['list', 'queue']) {
    const { stdout } = await ralph(at, [look])
    expect(stdout).toContain('something else')
    expect(stdout).not.toContain('no idea')
  }
  const why = await ralph(at, ['why', 'a'])
  expect(why.stdout).toMatch(/next +ralph queue retry a +try again\n/)
  expect(why.stdout).not.toMatch(/ralph why a(?! --trace)/)
})

test('B5 B7: parked for a conflict: the last lines of a resume, ralph loop and the dry run of up offer nothing that is refused', async () => {
  const at = project(
    {
      a: `case "$prompt" in *"Put two changes together"*) echo '<promise>FAILED: cannot</promise>'; exit;; esac
echo "of a" > shared.txt\n`,
    },
    1,
  )
  const up = ['up', 'a', '--json', ...at.args]
  expect((await ralph(at, [...up, '--no-land'])).code).toBe(0)
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  expect((await ralph(at, up)).code).toBe(3)

  const end = await ralph(at, ['resume', 'a', '--feedback', 'take both'])
  expect(end.code).toBe(4)
  expect(end.stdout).toMatch(/continue +ralph status a +see how both sides come together\n/)
  expect(end.stdout + end.stderr).not.toMatch(/ralph (?:finish|resume) a/)
  // Nor is its own number of attempts that of a story's retries.
  expect(end.stdout).not.toMatch(/retry \d+ of/)

  const anew = await ralph(at, ['loop', 'a', ...at.args])
  expect([anew.code, anew.stderr]).toEqual([
    2,
    expect.stringMatching(/a is parked in the merge queue: [^]*ralph queue retry a/) as string,
  ])
  const dry = await ralph(at, ['up', 'a', '--dry-run', ...at.args])
  expect(dry.stdout).toContain('lands if both sides of its conflict are merged, without markers')
  expect(dry.stdout).not.toContain('its loop is done')
})

test('F1: with others parked queue retry names the command for this one alone, and the queue says that a bare up pays for the others again', async () => {
  const at = project({ a: fails, b: fails }, 1)
  expect((await ralph(at, ['up', '--json', ...at.args])).code).toBe(3)
  const retried = await ralph(at, ['queue', 'retry', 'a'])
  expect(retried.stdout).toMatch(/next +ralph up a +this one\n +ralph up +all that are parked, too\n/)
  expect((await ralph(at, ['queue'])).stdout).toMatch(
    /ralph up +it is not running now; what is parked is tried again, too, and costs again\n/,
  )
  const again = await ralph(at, ['up', ...at.args])
  expect([again.code, again.stdout]).toEqual([
    3,
    expect.stringContaining('b: was parked, is tried again') as string,
  ])
})

/** The lines of a look that are to be typed, `ralph` aside. */
function typeSteps(at: Scratch, cwd: string, text: string): void {
  const typed = text.split('\n').filter((line) => /^  (git|echo|test)/.test(line))
  execFileSync('sh', ['-ec', typed.join('\n')], {
    cwd,
    env: at.env,
    stdio: 'pipe',
  })
}

test('U1 U6: what a parked conflict names works where it is typed: in the folder of its loop retry and every look lead to ralph up in the checkout, and call it waiting', async () => {
  const at = project(
    {
      a: `case "$prompt" in *"Put two changes together"*) echo '<promise>FAILED: cannot</promise>'; exit;; esac
echo "of a" > shared.txt\n`,
    },
    1,
  )
  const up = ['up', 'a', '--json', ...at.args]
  expect((await ralph(at, [...up, '--no-land'])).code).toBe(0)
  at.write('shared.txt', 'of main\n')
  at.git('commit', '-qam', 'main too')
  expect((await ralph(at, up)).code).toBe(3)

  const cwd = `${at.repo}-ralph-a`
  const [entry] = (await report(at)).entries
  at.write('../repo-ralph-a/shared.txt', 'of main\nof a\n')
  typeSteps(at, cwd, (entry?.hint ?? '').replace(/^ {2}git grep.*\n/m, ''))
  const retried = await ralph(at, ['queue', 'retry', 'a'], { cwd })
  const there = `cd ${at.repo} && ralph up`
  expect([retried.code, retried.stdout]).toEqual([0, expect.stringContaining(`next   ${there}\n`) as string])
  expect((await ralph(at, ['queue'], { cwd })).stdout).toContain(there)
  const refused = await ralph(at, ['up', 'a'], { cwd })
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`${there} a\n`) as string])
  expect(refused.stderr).not.toContain('git switch')

  for (const look of [['status', 'a'], ['why', 'a'], ['list'], ['report', 'a'], ['history', 'a']]) {
    const { stdout } = await ralph(at, look)
    const text = stdout.replaceAll(/\s+/g, ' ')
    expect([look, text]).toEqual([look, expect.stringContaining('it waits for ralph up') as string])
    expect([look, text]).toEqual([look, expect.not.stringMatching(/parked|of both sides: open/i) as string])
  }
  expect((await ralph(at, ['status', 'a'], { cwd })).stdout).toContain(there)
  expect((await ralph(at, ['up', 'a', ...at.args])).code).toBe(0)
  expect(at.git('show', 'refs/ralph-landed/main:shared.txt')).toBe('of main\nof a')
})

test('U2: parked for a gate that fails after the merge: logs --gate has that output, and the steps show the failure in its folder; mended there it lands', async () => {
  const at = project({ one: 'echo x > one.txt', two: 'echo x > two.txt' }, 1)
  at.write('gate.sh', 'test ! -f one.txt || test ! -f two.txt || { echo "only one of both"; exit 1; }\n')
  at.git('commit', '-qam', 'it says why')
  expect((await ralph(at, ['up', ...at.args])).code).toBe(3)
  const parked = (await report(at)).entries.find(({ state }) => state === 'parked')
  const [name, hint] = [parked?.change ?? '', parked?.hint ?? '']
  const cwd = `${at.repo}-ralph-${name}`
  expect(hint).toContain(`  cd ${cwd}\n  git merge --no-edit refs/ralph-landed/main\n  sh gate.sh\n`)
  expect((await ralph(at, ['why', name])).stdout).toContain('git merge --no-edit refs/ralph-landed/main')
  expect((await ralph(at, ['logs', name, '--gate'])).stdout).toMatch(
    /merge queue ran to land[^]*\$ sh gate.sh\nonly one of both\n/,
  )
  expect((await ralph(at, ['logs', name, '--gate', '1'])).stdout).not.toContain('only one of both')

  typeSteps(at, cwd, hint)
  const gate = (): Buffer => execFileSync('sh', ['gate.sh'], { cwd, env: at.env, stdio: 'pipe' })
  expect(gate).toThrow('Command failed')
  at.git('-C', cwd, 'mv', `${name}.txt`, 'other.txt')
  at.git('-C', cwd, 'commit', '-qm', 'Fit to what landed')
  gate()
  expect((await ralph(at, ['queue', 'retry', name], { cwd })).code).toBe(0)
  const again = await ralph(at, ['up', ...at.args])
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining(`${name}: landed as`) as string])
})
