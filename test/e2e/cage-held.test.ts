// The next agent's cage, made before it is due: what comes between that and the agent's begin. It happens where `wt-usage` is asked, which waits for it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findAlive } from '../../src/adapters/process/reap.ts'
import { tempsOf } from '../../src/adapters/process/temp.ts'
import { ralph, scratch, tasksOf, type Scratch } from './harness.ts'

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0
const skipped = ` (needs bubblewrap${hasBwrap ? '' : ', which is not installed or may make no namespaces here'})`

const journal = '.git/ralph/changes/demo/journal.ndjson'

/** What its git reports to, its temp folder and its variables, and what of the machine it finds; in the end it says that all is done. */
const agent = [
  `mkdir -p seen; at=seen/$RALPH_STORY`,
  `echo "$RALPH_ITERATION $RALPH_ATTEMPT $PWD $(cat | grep -c .)" > $at`,
  `ls /tmp >> $at; touch /tmp/mine`,
  `cat ~/.login >> $at 2>/dev/null`,
  `echo '[alias] evil = !true' >> .git/config || echo no >> $at`,
  `git log -1 --format=%s >> $at`,
  `[ -e /proc/self/fd/5 ] && echo open >> $at`,
  `echo '<promise>COMPLETE</promise>'`,
].join('; ')

/** In the second iteration, when its cage stands at its gate, `meanwhile` happens: a line of a shell. */
function place(meanwhile: string): { at: Scratch; env: NodeJS.ProcessEnv; acted: string } {
  const at = scratch({ tasks: tasksOf(2) })
  const [bin, acted] = [join(at.root, 'bin'), join(at.root, 'acted')]
  mkdirSync(bin)
  const wait = at.script(
    'wait.mjs',
    `import { readdirSync, readFileSync } from 'node:fs'
const text = (pid, file) => { try { return readFileSync('/proc/' + pid + '/' + file, 'latin1') } catch { return '' } }
const isHeld = (pid) => text(pid, 'cmdline').startsWith('/bin/sh\\0-c\\0printf') && text(pid, 'environ').includes(${JSON.stringify(`HOME=${join(at.root, 'home')}`)})
while (!readdirSync('/proc').some(isHeld)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
`,
  )
  at.script(
    'bin/wt-usage',
    `#!/bin/sh
grep -q '"type":"iteration.started".*"n":2' '${join(at.repo, journal)}' || exit 1
[ -e '${acted}' ] && exit 1
'${process.execPath}' '${wait}' && touch '${acted}'
${meanwhile}
exit 1
`,
  )
  return { at, acted, env: { PATH: `${bin}:${at.env['PATH'] ?? ''}` } }
}

/** A bubblewrap that does this first. */
function before(at: Scratch, lines: string): void {
  const real = spawnSync('sh', ['-c', 'command -v bwrap'], { encoding: 'utf8' }).stdout.trim()
  at.script('bin/bwrap', `#!/bin/sh\n${lines}\nexec '${real}' "$@"\n`)
}

const words = ['loop', 'demo', '--json', '--sandbox', 'workspace', '--agent-command', agent]

function runIdOf(at: Scratch): string {
  return /"run_id":"([^"]+)"/.exec(at.read(journal))?.[1] ?? ''
}

function processesOf(at: Scratch): readonly number[] {
  return findAlive({ marker: { HOME: join(at.root, 'home') } }).map(({ pid }) => pid)
}

/** No process of the loop's, and none of its folders. */
async function leftOf(at: Scratch): Promise<readonly unknown[]> {
  return [...processesOf(at), ...(await tempsOf(runIdOf(at), at.env))]
}

function seenBy(at: Scratch, story: number): string {
  return at.read(`seen/${story}`)
}

const usual = (at: Scratch, n: number): string => `${n} 1 ${at.repo} `

describe.skipIf(!hasBwrap)(`a cage that waits for its agent${skipped}`, () => {
  test('is the one that the agent begins in, with its own variables, prompt and temp folder', async () => {
    const { at, env, acted } = place(':')
    const calls = join(at.root, 'calls')
    before(at, `case "$*" in *printf*) echo held;; *) echo at once;; esac >> '${calls}'`)
    const end = await ralph(at, words, { env })
    expect([end.code, existsSync(acted)]).toEqual([0, true])
    // The first is the probe.
    expect(readFileSync(calls, 'utf8')).toBe('at once\nat once\nheld\n')
    for (const n of [1, 2]) {
      expect(seenBy(at, n)).toMatch(new RegExp(`^${usual(at, n)}[1-9]\\d*\nno\n`))
      expect(seenBy(at, n)).not.toMatch(/open|mine/)
    }
    expect(await leftOf(at)).toEqual([])
  })

  test('ralph is killed: no agent begins, nothing is left, and a resume runs it', async () => {
    const { at, env } = place(`kill -KILL $PPID`)
    // As in the moments before bubblewrap has asked to end with its parent: the gate alone keeps the agent back.
    before(at, 'for word; do shift; [ "$word" = --die-with-parent ] || set -- "$@" "$word"; done')
    const { signal } = await ralph(at, words, { env })
    expect(signal).toBe('SIGKILL')
    await expect.poll(() => processesOf(at), { timeout: 10_000 }).toEqual([])
    expect(readdirSync(join(at.repo, 'seen'))).toEqual(['1'])
    const resumed = await ralph(at, ['resume', '--json'], { env })
    expect(resumed.code).toBe(0)
    expect(at.state().iterations).toMatchObject([
      { verdict: 'complete' },
      { verdict: 'interrupted' },
      { verdict: 'complete' },
    ])
    // By the third: the second has begun nothing.
    expect(seenBy(at, 2)).toMatch(/^3 /)
    expect(await leftOf(at)).toEqual([])
  })

  test('the loop is stopped: no agent begins, and nothing is left', async () => {
    const { at, env } = place('kill -TERM $PPID; while :; do sleep 1; done')
    expect((await ralph(at, words, { env })).code).toBe(143)
    expect(readdirSync(join(at.repo, 'seen'))).toEqual(['1'])
    expect(await leftOf(at)).toEqual([])
  })

  test.each([
    ['a login comes into the home', 'echo secret > "$HOME/.login"', /^2 1 \S+ [1-9]\d*\nno\n/],
    [
      'what was protected is another file now',
      'git config user.name Other; git config user.name User',
      /^2 1 \S+ [1-9]\d*\nno\n/,
    ],
  ])('%s: the agent begins in a new one, as if that had been there before', async (_, meanwhile, seen) => {
    const { at, env, acted } = place(meanwhile)
    const end = await ralph(at, words, { env })
    expect([end.code, existsSync(acted)]).toEqual([0, true])
    expect(seenBy(at, 2)).toMatch(seen)
    expect(seenBy(at, 2)).not.toContain('secret')
    expect(await leftOf(at)).toEqual([])
  })
})
