// `ralph report` and `ralph history` of a real run: one story done at once, one after a failed attempt, one that used up its retries.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RunReport } from '../../src/core/report.ts'
import { goodAgent, ralph, scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { installClaude } from './usage-kit.ts'

/** Five iterations of 120 tokens and $0.50: the second and the last two are not kept. */
const mixed = `
text(n === 2 || n > 3 ? '<promise>FAILED: the <b>flux</b> & the | "capacitor"\\nsecond line</promise>' : '<promise>COMPLETE</promise>')
success('', { total_cost_usd: 0.5 })
`
const lost = '3 of 5 attempts, 360 tokens (60%), $1.50'

async function ranLoop(): Promise<Scratch> {
  const at = scratch({ tasks: tasksOf(3) })
  installClaude(at, mixed)
  const end = await ralph(at, ['loop', 'demo', '--agent', 'claude', '--max-retries', '1'])
  expect(end.code).toBe(3)
  expect(end.stdout).toContain('3 attempts came to nothing: 360 tokens, $1.50')
  // No attempt has changed a file: there is nothing to see or bring back.
  expect(end.stdout).not.toContain('ralph attempts')
  return at
}

/** No format may go to the network or need anything beside the program. */
const chromium = (process.env['PATH'] ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((path) => existsSync(path))

describe('a run as a document', () => {
  test('B11: after a squash or a cleanup the report says where the work is, and names no branch that is gone', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    const report = async (): Promise<string> => (await ralph(at, ['report', 'demo'])).stdout
    expect(await report()).toMatch(/^ {2}branch +ralph\/demo, from main$/m)
    await ralph(at, ['finish', 'demo', '--squash'])
    const squashed = await report()
    expect(squashed).toContain(`  work    one commit on main, ${at.git('rev-parse', 'HEAD').slice(0, 12)}\n`)
    expect(squashed).not.toContain('ralph/demo')
    at.write('openspec/changes/demo/tasks.md', tasksOf(1))
    await ralph(at, [
      'loop',
      'demo',
      '--agent-command',
      `echo more > more.txt; ${goodAgent}`,
      '--on-complete',
      'cleanup',
    ])
    expect(await report()).toMatch(/^ {2}work +on main, uncommitted, since the cleanup at [\d:]{8}$/m)
  })

  test('B11: the report names no branch that is gone, was merged and deleted, or never was', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    const report = async (): Promise<string> =>
      (await ralph(at, ['report', 'demo'])).stdout.replaceAll(/\s+/g, ' ')
    const tip = at.git('rev-parse', 'ralph/demo')
    at.git('switch', '-q', 'main')
    at.git('branch', '-qD', 'ralph/demo')
    expect(await report()).toContain(
      ` work was on ralph/demo, which is gone (deleted or renamed); its last checkpoint is ${tip.slice(0, 12)} `,
    )
    at.git('merge', '-q', tip)
    expect(await report()).toContain(' work merged into main; ralph/demo is deleted ')
    const none = scratch({ tasks: tasksOf(1).replaceAll('[ ]', '[x]') })
    expect((await ralph(none, ['loop', 'demo', '--agent-command', goodAgent])).code).toBe(0)
    const { stdout } = await ralph(none, ['report', 'demo'])
    expect(stdout).toContain('  work    nothing was started; the repository is not changed\n')
    expect(stdout).not.toContain('ralph/demo')
  })

  test('B11: each attempt names the program that made it, a resume may have another; what nobody knows has no column; the text says what is next', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write(
      'one.sh',
      'case $RALPH_STORY in 1) echo "<promise>COMPLETE</promise>";; *) echo "<promise>FAILED: no luck with the second story</promise>";; esac',
    )
    at.write('two.sh', 'echo two > two.txt; echo "<promise>COMPLETE</promise>"')
    at.git('add', '-A')
    at.git('commit', '-qm', 'agents')
    const loop = ['loop', 'demo', '--agent-command', './one.sh', '--max-retries', '1']
    for (const name of ['one.sh', 'two.sh']) chmodSync(join(at.repo, name), 0o755)
    expect((await ralph(at, loop)).code).toBe(3)
    const report = async (...args: string[]): Promise<string> =>
      (await ralph(at, ['report', 'demo', ...args])).stdout
    const stuck = await report()
    expect(stuck).toMatch(/^ {2}agent +one\.sh$/m)
    expect(stuck).not.toContain('by one.sh')
    expect(stuck).toMatch(
      /\n\n {2}next +ralph resume demo --feedback "…" {3}.*\n {2}or +ralph finish demo --cleanup .*\n$/,
    )
    expect(await report('--format', 'md')).not.toContain('ralph resume')
    expect((await ralph(at, ['resume', 'demo', '--agent-command', './two.sh'])).code).toBe(0)
    const text = await report()
    expect(text).toMatch(/^ {2}agent +one\.sh, then two\.sh$/m)
    expect(text).toMatch(/^✓ 1 Story 1 {3}#1 by one\.sh/m)
    expect(text).toMatch(/^ {4}✕ #3 failed by one\.sh .*\n {6}the same as #2\n {4}✓ #4 done by two\.sh/m)
    const markdown = await report('--format', 'md')
    expect(markdown).toContain('| # | story | agent | result | time | reason |')
    expect(markdown).toMatch(/^\| 3 \| 2 \| one\.sh \| ✕ failed \| [^|]+ \| the same as \\#2 \|$/m)
    expect(markdown).toMatch(/^\| 4 \| 2 \| two\.sh \| ✓ done \|/m)
    expect(markdown).toContain('| story | state | tasks | attempts | undone | time |')
    const json = JSON.parse(await report('--json')) as RunReport
    const programs = json.stories.flatMap(({ attempts }) => attempts.map(({ agent_program: name }) => name))
    expect(programs).toEqual(['one.sh', 'one.sh', 'one.sh', 'two.sh'])
  })

  test('history, text, Markdown, JSON and HTML tell the same tokens and cost per story and attempt, and what was not kept', async () => {
    const at = await ranLoop()
    const history = (await ralph(at, ['history', 'demo'])).stdout
    expect(history).toMatch(/^#2 +\S+ +2 Story 2 +✕ failed .* 120 +\$0\.50 +the <b>flux/m)
    expect(history).toMatch(/^5 attempts, .*, 600 tokens, \$2\.50$/m)
    expect(history).toContain(lost)

    const report = async (format: string): Promise<string> => {
      const end = await ralph(at, ['report', 'demo', '--format', format])
      expect(end).toMatchObject({ code: 0, stderr: '' })
      return end.stdout
    }
    expect(await report('text')).toContain(lost)
    const markdown = await report('md')
    expect(markdown).toContain(`- undone: ${lost}`)
    expect(markdown).toMatch(
      /^\| 2 Story 2 \| done \| 2\/2 \| 2 \| 240 \| \$1\.00 \| 120, \$0\.50 \(1 attempt\) \|/m,
    )
    // B11: it used up its retries.
    expect(markdown).toMatch(/^\| 3 Story 3 \| failed \|/m)
    expect(markdown.match(/^\| \d \| \d \| [✓✕] /gm)).toHaveLength(5)
    const json = JSON.parse(await report('json')) as RunReport
    expect(json).toMatchObject({
      change_id: 'demo',
      status: 'stuck',
      stories_done: 2,
      totals: { iterations: 5, tokens: 600, input_tokens: 500, cache_read_tokens: 150, cost_usd: 2.5 },
      not_kept: { iterations: 3, tokens: 360, cost_usd: 1.5 },
    })
    expect(json.stories.map((story) => story.attempts.map((attempt) => attempt.verdict))).toEqual([
      ['complete'],
      ['failed', 'complete'],
      ['failed', 'failed'],
    ])
    expect(JSON.parse((await ralph(at, ['report', '--json'])).stdout)).toEqual(json)
    const html = await report('html')
    expectFigures(html)
    expect(html).not.toMatch(/<script|<link|<img|@import|url\(/i)
  })

  test.skipIf(chromium === undefined)(
    'HTML in headless Chromium: it shows the same (skipped where no Chromium is on PATH)',
    async () => {
      const at = await ranLoop()
      const file = join(at.root, 'report.html')
      writeFileSync(file, (await ralph(at, ['report', 'demo', '--format', 'html'])).stdout)
      const flags = [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        `--user-data-dir=${join(at.root, 'chromium')}`,
      ]
      const dom = execFileSync(chromium ?? '', [...flags, '--dump-dom', `file://${file}`], {
        env: at.env,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      expectFigures(dom)
    },
  )

  test.each(['md', 'html', 'json', 'txt'])(
    'a file that is no report is not written over without --force; an earlier report is (%s)',
    async (ending) => {
      const at = scratch({ tasks: tasksOf(2) })
      const loop = await ralph(at, ['loop', 'demo', '--story', '1', '--agent-command', goodAgent])
      expect(loop.stdout).not.toContain('archive demo')
      const file = join(at.root, `notes.${ending}`)
      const write = (...more: string[]): ReturnType<typeof ralph> =>
        ralph(at, ['report', 'demo', '--output', file, ...more])
      writeFileSync(file, 'my notes\n')
      const refused = await write()
      expect([refused.code, readFileSync(file, 'utf8')]).toEqual([2, 'my notes\n'])
      expect(refused.stderr).toContain('--force')
      expect((await write('--force')).code).toBe(0)
      expect(readFileSync(file, 'utf8')).not.toContain('my notes')
      expect((await write()).code).toBe(0)
    },
  )

  test('before any loop it says how to start one', async () => {
    const end = await ralph(scratch(), ['report'])
    expect(end.code).toBe(2)
    expect(end.stderr).toContain('ralph loop')
  })
})

function expectFigures(html: string): void {
  expect(html.match(/<svg /g)).toHaveLength(2)
  expect(html.match(/<g class="bar kept">/g)).toHaveLength(2)
  expect(html.match(/<g class="bar failed">/g)).toHaveLength(3)
  for (const figure of ['2/3', '600', '$2.50', lost, 'Tokens over time: 600 in all, 360 in attempts'])
    expect(html).toContain(figure)
  expect(html).toContain('the &lt;b&gt;flux&lt;/b&gt; &amp; the |')
  expect(html).not.toContain('<b>flux')
}
