// A change that the merge queue has parked, and a person who goes on with it: what each look says, and what to type.
import { expect, test } from 'vitest'
import { ralph } from './harness.ts'
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
