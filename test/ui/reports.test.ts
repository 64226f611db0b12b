// The texts of the reports, and their JSON as contract 9 has it.
import { describe, expect, it } from 'vitest'
import { RalphError } from '../../src/core/error.ts'
import type { UsageSummary } from '../../src/core/usage-summary.ts'
import type { ChangeList, Control, Observe, QueueReport, StatusReport } from '../../src/ui/app.ts'
import { paintFor, plain } from '../../src/ui/io.ts'
import { homeText } from '../../src/ui/print/list.ts'
import { queueRows } from '../../src/ui/print/queue-rows.ts'
import { stepLines } from '../../src/ui/print/step-lines.ts'
import { iteration, status } from './events.ts'
import { ralph } from './fake-app.ts'
import type { Answers } from './fake-app.ts'

const { current: _current, ...ended } = status

const answering = (answers: Answers) => ({ answers })

describe('why', () => {
  const gone = { branch: 'ralph/add-login', is_gone: true as const }
  const cleaned = { branch: 'ralph/add-login', cleaned_at: status.started_at, uncommitted: false }
  it.each<[string, Partial<StatusReport>, RegExp]>([
    ['runs, between two attempts', {}, /^ +what +it is running, between two attempts$/m],
    ['is paused', { waiting_for: 'pause' }, /^ +what +it waits for you to resume it$/m],
    ['has not begun', { alive: false, status: 'stopped', iterations: [] }, /^ +what +it has not begun yet$/m],
    [
      'kept nothing',
      { alive: false, status: 'stuck', where: cleaned, iterations: [] },
      /^ +safe .*done; nothing was saved; main is as you left it$/m,
    ],
    [
      'crashed',
      {
        alive: false,
        status: 'stuck',
        stop_reason: 'retries',
        iterations: [iteration({ verdict: 'crash', reason: 'it crashed (exit 1)' })],
        where: { onward: { command: 'ralph resume add-login', why: 'try again when that is fixed' } },
      },
      /^ +next +ralph resume add-login {3,}try again when that is fixed$/m,
    ],
    [
      'is parked with a merge of the queue',
      {
        alive: false,
        status: 'stuck',
        stories: [
          { id: '1', title: 'One', status: 'done', tasks_done: 1, tasks_total: 1 },
          {
            id: 'merge',
            title: 'Merge with what landed (x.txt)',
            status: 'open',
            tasks_done: 0,
            tasks_total: 0,
          },
        ],
        parked: { why: 'no', hint: `Look:\n  git -C ${'long/'.repeat(40)} grep -n x\n  ralph queue retry x` },
      },
      /1 of 1 story done;[^]*^ +git -C (?:long\/){40} grep -n x\n +ralph queue retry x$/m,
    ],
    ['lost its branch', { alive: false, status: 'stuck', where: gone }, /; the work was on ralph\/add-login/],
  ])('of a loop that %s is a sentence', async (_name, more, words) => {
    const decisions = { change_id: 'add-login', decisions: [], earlier_runs: [] }
    const { out } = await ralph(['why'], {
      answers: {
        why: () => Promise.resolve(decisions),
        status: () => Promise.resolve([{ ...ended, stop_reason: '', ...more }]),
      },
      // What is typed is copied from a narrow terminal, too.
      ...(more.parked !== undefined && { size: { columns: 60, rows: 20 } }),
    })
    expect(out).toMatch(words)
  })
})

describe('steps', () => {
  it('what is to be copied stands out from what is said about it, in columns, and is never broken', () => {
    const paint = paintFor(process.stdout, { FORCE_COLOR: '1' })
    const lines = (columns: number): readonly string[] =>
      stepLines(
        [
          ['next', 'ralph resume x', 'continue'],
          ['or', 'ralph finish x --cleanup', 'the work, uncommitted on main'],
        ],
        { indent: 2, column: 8 },
        { paint, columns },
      )
    expect(lines(80)).toEqual([
      `${paint.dim('  next  ')}${paint.bold('ralph resume x')}             ${paint.dim('continue')}`,
      `${paint.dim('  or    ')}${paint.bold('ralph finish x --cleanup')}   ${paint.dim('the work, uncommitted on main')}`,
    ])
    expect(lines(50).slice(1)).toEqual([
      `${paint.dim('  or    ')}${paint.bold('ralph finish x --cleanup')}`,
      `        ${paint.dim('the work, uncommitted on main')}`,
    ])
    // B13: what fits only there stands below its label.
    expect(
      stepLines(
        [['prompts', 'ralph loop x --prompts', '']],
        { indent: 2, column: 13 },
        { paint, columns: 30 },
      ),
    ).toEqual([paint.dim('  prompts'), `    ${paint.bold('ralph loop x --prompts')}`])
  })
})

describe('status', () => {
  it('of several loops on 80 columns no line is broken in the middle of a word', async () => {
    const tree = 'a-work-tree-with-a-long-name-ralph-add-login'
    const several = [1, 2].map((n) => ({ ...status, change_id: `add-a-long-name-${n}`, worktree_name: tree }))
    const { out } = await ralph(['status'], {
      ...answering({ status: () => Promise.resolve(several) }),
      env: { NO_COLOR: '1' },
      terminal: true,
      size: { columns: 80, rows: 24 },
    })
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThan(80)
    expect(out.match(/a-work-tree-with-a-long-name-ralph-add-login/g)).toHaveLength(2)
  })

  it('F7: of several loops a work tree that was removed is not named', async () => {
    const gone = {
      ...status,
      change_id: 'gone',
      worktree_name: 'app-gone',
      where: { is_tree_gone: true },
    } as const
    const answers = answering({ status: () => Promise.resolve([status, gone]) })
    const { out } = await ralph(['status'], answers)
    expect(out).toMatch(/^gone .* -$/m)
    expect(out).not.toContain('app-gone')
  })

  it('F11: why a change of the queue waits and what makes its "done" worth less are two clauses', () => {
    const entry = {
      change: 'b',
      target: 'main',
      state: 'parked',
      why: 'I do not know',
      after: [],
      stories_done: 1,
      stories_total: 2,
      cost_usd: 0,
      branch: 'ralph/b',
      candidate: '',
      landed: '',
      attempt: 0,
      started_at: '',
      worked_ms: 0,
      warnings: ['story 2 changed no file'],
    } as unknown as QueueReport['entries'][number]
    const queue = { target: 'main', target_commit: '', landed_commit: '', alive: false, entries: [entry] }
    expect(queueRows(queue, 0)[0]?.why).toBe('I do not know; ! story 2 changed no file')
  })

  it('one loop on one screen: story, attempt, last activity, tokens, cost, next command', async () => {
    const { out } = await ralph(['status'], answering({ status: () => Promise.resolve([status]) }))
    expect(out).toMatch(/^add-login {2}▸ running\n/)
    expect(out).toContain('1/2 done')
    expect(out).toContain('2 Page')
    expect(out).toMatch(/attempt +#3, try 2, by claude, for \d+/)
    expect(out).toMatch(/last active +\d+h \d+m ago/)
    expect(out).toContain('12.3k, $0.50')
    expect(out).toContain('the port is taken')
    expect(out).toMatch(/next +ralph logs add-login -f {3}what the agent says\n$/)
  })

  it('24: of a loop that runs: the time of all attempts, what it does now, the name of the agent, and what the turn has used', async () => {
    const now = { tokens: 1_000, cost_usd: 0.25 }
    const where = { branch: 'ralph/add-login', phase: 'gating', agent_program: 'agent.sh', used_now: now }
    const current = status.current && { ...status.current, agent: 'command' }
    const report: StatusReport = { ...status, ...(current && { current }), where }
    const { out } = await ralph(['status'], answering({ status: () => Promise.resolve([report]) }))
    expect(out).toMatch(/attempt +#3, try 2, by agent\.sh, for/)
    expect(out).toMatch(/doing +running the gates\n/)
    expect(out).toMatch(/time +\d+h \d+m\n/)
    expect(out).toMatch(/tokens +13\.3k, \$0\.75/)
  })

  it.each<[string, Partial<StatusReport>, string | RegExp]>([
    [
      'waits for a limit',
      { waiting_for: 'limit', waiting_until: '2026-02-09T15:00:00+01:00' },
      "the provider's limit to reset, until 15:00:00",
    ],
    [
      'was killed',
      { ...ended, alive: false, status: 'stopped', died_at: status.started_at, orphan_pids: [4711] },
      /next +ralph stop add-login {3,}end its agent\n +then +ralph resume add-login {3,}repair it and continue\n +or +ralph finish add-login --cleanup {3,}repair it and end the run\n$/,
    ],
    [
      'is stuck',
      { ...ended, alive: false, status: 'stuck', stop_reason: 'retries' },
      'ralph resume add-login',
    ],
    [
      'awaits a human',
      { ...ended, alive: false, status: 'stopped', stop_reason: 'human', done_criteria: 'manual' },
      'ralph done add-login',
    ],
    [
      'was stopped at the question whether it is done',
      {
        ...ended,
        alive: false,
        status: 'stopped',
        stop_reason: 'interrupted',
        done_criteria: 'manual',
        iterations: status.iterations.map((each) => ({ ...each, verdict: 'complete' as const })),
      },
      /next +ralph done add-login {3,}it is done\n +or +ralph resume add-login/,
    ],
    [
      'is done',
      { ...ended, alive: false, status: 'done', stop_reason: 'done' },
      'ralph finish add-login --cleanup',
    ],
    [
      'awaits a word',
      { ...ended, alive: false, status: 'stopped', stop_reason: 'human', done_criteria: 'manual' },
      'waiting     say whether it is done',
    ],
  ])('U5: a loop that %s says so, and what to type', async (_name, more, words) => {
    const { out } = await ralph(
      ['status'],
      answering({ status: () => Promise.resolve([{ ...status, ...more }]) }),
    )
    expect(out).toEqual(
      words instanceof RegExp ? expect.stringMatching(words) : expect.stringContaining(words),
    )
  })

  it('U2: --json is the state file plus alive; several loops are a list', async () => {
    const one = await ralph(['status', '--json'], answering({ status: () => Promise.resolve([status]) }))
    expect(JSON.parse(one.out)).toEqual(status)
    const several = await ralph(
      ['status', '--json'],
      answering({ status: () => Promise.resolve([status, status]) }),
    )
    expect(JSON.parse(several.out)).toEqual({ loops: [status, status] })
  })

  it('none at all: says so, and what to type', async () => {
    const ran = await ralph(['status'], answering({ status: () => Promise.resolve([]) }))
    expect(ran).toMatchObject({
      code: 0,
      out: 'No loop has run in this repository yet.\n  next   ralph doctor   what is here to run, and what is missing\n',
    })
  })

  it('--watch ends when no loop is alive any more, and in a pipe writes only what is new', async () => {
    const answers = [status, { ...status, alive: false, status: 'done' as const }]
    const read = () => Promise.resolve([answers.shift() ?? status])
    const ran = await ralph(['status', '--watch', '--json'], answering({ status: read }))
    const lines = ran.out
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as StatusReport).status)
    expect(lines).toEqual(['running', 'done'])
  })
})

describe('plan', () => {
  const detail = {
    name: 'add-login',
    title: 'Add a login',
    stories: [
      {
        id: '1',
        title: '1. Model',
        status: 'open' as const,
        tasks: [
          { id: '1.1', text: '1.1 Table', state: 'done' as const, line: 3 },
          { id: '1.2', text: '1.2 Ask legal', state: 'human' as const, line: 4 },
          { id: '1.3', text: '1.3 Index', state: 'open' as const, line: 5 },
        ],
      },
    ],
    scenarios: [
      { capability: 'auth', requirement: 'Login', name: 'Wrong password', steps: ['WHEN', 'THEN'] },
    ],
    lints: ['tasks.md:4 odd'],
  }

  it('show: boxes as they are, scenarios after them, and the contract’s JSON', async () => {
    const answers = answering({ show: () => Promise.resolve(detail) })
    const { out } = await ralph(['show', 'add-login'], answers)
    expect(out).toBe(
      'add-login  Add a login\n\n1. Model 1/3\n  [x] 1.1 Table\n  [?] 1.2 Ask legal\n  [ ] 1.3 Index\n\n1 scenario\n  Wrong password (auth: Login)\n    WHEN\n    THEN\n\nworth knowing before a run\n  tasks.md:4 odd\n',
    )
    expect(JSON.parse((await ralph(['show', 'add-login', '--json'], answers)).out)).toEqual(detail)
  })

  it('B11: show wraps at words, below the text that they belong to; in a pipe a line stays a line', async () => {
    const long = 'a title that is quite a bit longer than sixty columns are, so that it wraps'
    const [story] = detail.stories
    const wide = {
      ...detail,
      stories: [{ ...story, title: long, tasks: [{ id: '1.1', text: long, state: 'open', line: 3 }] }],
      scenarios: [{ capability: 'auth', requirement: 'Login', name: long, steps: [`WHEN ${long}`] }],
    } as typeof detail
    const answers = answering({ show: () => Promise.resolve(wide) })
    const { out } = await ralph(['show', 'add-login'], {
      ...answers,
      env: { NO_COLOR: '1' },
      terminal: true,
      size: { columns: 60, rows: 20 },
    })
    expect(out.split('\n').filter((line) => line.length >= 60)).toEqual([])
    expect(out).toContain(
      '\n  [ ] 1.1 a title that is quite a bit longer than sixty\n      columns are, so that it wraps\n',
    )
    expect(out).toMatch(/\n {2}a title that is .*\n {2}\S.*wraps \(auth: Login\)\n {4}WHEN .*\n {4}\S/)
    expect((await ralph(['show', 'add-login'], answers)).out).toContain(`\n  [ ] 1.1 ${long}\n`)
  })

  it('F35: show without a name asks at a terminal which change is meant, and is refused in a pipe', async () => {
    const ambiguous = new RalphError('change_ambiguous', 'There are 2 open changes', {
      hint: '',
      exitCode: 2,
    })
    const answers: Answers = {
      show: (change) => (change === undefined ? Promise.reject(ambiguous) : Promise.resolve(detail)),
      list: () =>
        Promise.resolve({
          changes: ['a', 'add-login'].map((name) => ({
            name,
            title: `${name} ${'word '.repeat(12)}`,
            stories_done: 0,
            stories_total: 1,
            stories_open: 1,
            tasks_done: 0,
            tasks_total: 1,
            status: '' as const,
          })),
        }),
    }
    const env = { NO_COLOR: '1' }
    const asked = await ralph(['show'], { answers, env, terminal: true, typed: '2\n' })
    expect(asked.out).toContain('which change?')
    // B13: no row is broken by the terminal, within a word.
    expect(asked.out).toMatch(/^ 1 {2}a .*\n {10,}word.*\n 2 {2}add-login /m)
    expect(asked.out).toContain('1. Model 1/3')
    expect(asked.calls.at(-1)).toEqual({ name: 'show', request: 'add-login' })
    expect(await ralph(['show'], { answers })).toMatchObject({ code: 2, out: '' })
  })

  it('F35: finish alone asks at a terminal what the loop asks at its end', async () => {
    const report = { ...ended, alive: false, where: { branch: 'ralph/add-login' } }
    const answers: Answers = {
      status: () => Promise.resolve([report]),
      finish: () => Promise.resolve({ message: 'so be it', data: {} }),
    }
    const env = { NO_COLOR: '1' }
    const cleaned = await ralph(['finish'], { answers, env, terminal: true, typed: 'cleanup\n' })
    expect(cleaned.out).toMatch(/What should happen to the work\?[^]*ralph\/add-login/)
    expect(cleaned.calls.at(-1)).toMatchObject({ request: { change: 'add-login', choice: 'cleanup' } })
    const later = await ralph(['finish'], { answers, env, terminal: true, typed: 'later\n' })
    expect(later.out).toContain('Nothing was done.')
    expect(later.calls.map(({ name }) => name)).toEqual(['status'])
  })

  it('prompt: the exact words, nothing added but a final line feed', async () => {
    const answers = answering({
      prompt: () => Promise.resolve({ change_id: 'x', prompt: 'Do this.\n\n\u0007raw' }),
    })
    const ran = await ralph(['prompt', 'x', '--story', '2'], answers)
    expect(ran.out).toBe('Do this.\n\n\u0007raw\n')
    expect(ran.calls).toEqual([{ name: 'prompt', request: { change: 'x', storyId: '2' } }])
  })

  it('list without a change says how to make one', async () => {
    const ran = await ralph(['list'], answering({ list: () => Promise.resolve({ changes: [] }) }))
    expect(ran.out).toContain('openspec/changes/<name>/tasks.md')
  })

  it('bare ralph names what is next: of work that was kept here, of a loop that was killed', () => {
    const change = {
      name: 'x',
      title: 'x',
      stories_done: 1,
      stories_open: 0,
      stories_total: 1,
      tasks_done: 1,
      tasks_total: 1,
    }
    const home = (list: ChangeList): string => homeText(list, { paint: plain, columns: 80 })
    const kept = { ...change, status: 'done' } as const
    expect(home({ checked_out: 'ralph/x', changes: [kept] })).toContain('ralph finish x --cleanup')
    expect(home({ checked_out: 'main', changes: [kept] })).not.toContain('ralph finish')
    // W5: nothing is left to run or to bring.
    expect(home({ checked_out: 'main', changes: [kept] })).toMatch(
      /\n {2}ralph status x +where its work is, and what is next: push, .*\n {2}ralph report x --format md +.*\n {2}ralph --help/,
    )
    // F6: stories and tasks of one row are from the same place.
    const away = { loop_branch: 'ralph/x', loop_stories_done: 1, loop_tasks_done: 3 }
    const half = { ...change, stories_done: 0, stories_total: 2, tasks_done: 0, tasks_total: 5 }
    expect(home({ changes: [{ ...half, stories_open: 2, status: 'stuck', ...away }] })).toMatch(
      /^x +1\/2 +3\/5 /m,
    )
    const killed = {
      ...change,
      stories_done: 0,
      stories_open: 1,
      status: 'stopped',
      died_at: 'now',
      orphan_pids: [7],
    } as const
    expect(home({ changes: [killed] })).toMatch(
      /\n {2}ralph stop x +end its agent\n {2}ralph resume x +then continue\n/,
    )
  })
})

describe('the past', () => {
  it('history: every iteration with verdict and reason, and the sums', async () => {
    const stories = [{ id: '1', title: 'Login' }]
    const iterations = [
      iteration({ verdict: 'failed', reason: 'one\ntwo' }),
      iteration({ n: 2, cost_usd: 0.001 }),
    ]
    const ran = await ralph(
      ['history'],
      answering({
        history: () => Promise.resolve({ change_id: 'x', iterations, stories, earlier_runs: ['/x/1'] }),
      }),
    )
    expect(ran.out.split('\n')).toEqual([
      'x',
      '#   at        story    result    took    tokens  cost      reason',
      '#1  14:03:22  1 Login  ✕ failed  1m 01s  12.3k   unpriced  one (+1 line)',
      '#2  14:03:22  1 Login  ✓ done    1m 01s  12.3k   <$0.01',
      '2 attempts, 2m 02s, 24.7k tokens, <$0.01',
      'undone: 1 of 2 attempts, 12.3k tokens (50%), unpriced, 1m 01s',
      'cost: unknown for 1 attempt, and not in the sum',
      '1 earlier run: ralph history x --all (or --run 1)',
      '',
    ])
    const waited = [iteration({ verdict: 'limit' }), iteration({ n: 2 })]
    const limited = await ralph(
      ['history'],
      answering({
        history: () => Promise.resolve({ change_id: 'x', iterations: waited, stories, earlier_runs: [] }),
      }),
    )
    expect(limited.out).toMatch(/^waited: 1 of 2 attempts, /m)
    expect(limited.out).not.toContain('undone')
  })

  it('attempts: how to see and bring back one', async () => {
    const attempts = [
      {
        n: 1,
        story_id: '1',
        attempt: 1,
        verdict: 'failed' as const,
        reason: 'r',
        ref: 'refs/x',
        commit: '1234567890',
        changed: true,
      },
    ]
    const list = { change_id: 'x', attempts, earlier: [] }
    const stories = [{ id: '1', title: 'Login' }]
    const answers = answering({ attempts: () => Promise.resolve({ ...list, stories }) })
    const { out } = await ralph(['attempts'], answers)
    expect(out).toMatch(/^x\n#[^\n]*\n#1 +1 Login +✕ failed +r\n/)
    expect(out).toMatch(
      /^ {2}ralph diff 1 x +see what it had changed\n {2}ralph restore 1 x +bring that back$/m,
    )
    expect(JSON.parse((await ralph(['attempts', '--json'], answers)).out)).toEqual(list)
  })

  it('diff: byte for byte in a pipe, coloured and harmless on a terminal', async () => {
    const patch = '@@ -1 +1 @@\n-a\u001B[2J\n+b\n'
    const found = { change_id: 'x', n: 3, what: 'story 2 Page: failed', patch, pager: '' }
    const answers = { diff: () => Promise.resolve(found) }
    const ran = await ralph(['diff', '3'], { answers })
    expect([ran.out, ran.calls]).toEqual([
      patch,
      [{ name: 'diff', request: { change: undefined, n: 3, isAll: false, run: undefined, form: 'patch' } }],
    ])
    const env = { GIT_PAGER: 'cat' }
    const shown = (await ralph(['diff', '#3'], { answers, env, terminal: true })).out
    expect(shown).toContain('#3 of x, story 2 Page: failed')
    expect(shown).toContain('\u001B[32m+b')
    expect(shown).not.toContain('\u001B[2J')
    const stat = await ralph(['diff', 'x', '--stat'], { answers })
    expect(stat.calls).toMatchObject([{ request: { change: 'x', n: undefined, form: 'stat' } }])
    const none = { answers: { diff: () => Promise.resolve({ ...found, patch: '' }) } }
    expect(await ralph(['diff'], none)).toMatchObject({ out: '', err: '#3 of x changed no file.\n' })
  })

  it('why: decision, rule, inputs', async () => {
    const decisions = [
      {
        time: '2026-02-09T14:03:22+01:00',
        n: 2,
        decision: 'retry',
        rule: 'attempts < 4',
        inputs: { attempt: 2, limit: undefined },
      },
    ]
    const ran = await ralph(
      ['why', '--trace'],
      answering({
        why: () => Promise.resolve({ change_id: 'x', decisions, earlier_runs: [] }),
        status: () => Promise.resolve([status]),
      }),
    )
    expect(ran.out).toBe('x\n14:03:22 #2 retry\n  rule: attempts < 4\n  from: attempt=2, limit=none\n')
  })

  it('P5: logs do no harm on a terminal or in a pipe, not even by an escape split over two chunks; --raw has every byte', async () => {
    const bytes = [Buffer.from([0xff, 0x1b]), Buffer.from('[2Jhello\nlast')]
    const logs: Observe['logs'] = ({ write }) => {
      bytes.forEach((chunk) => write(chunk))
      return Promise.resolve()
    }
    expect((await ralph(['logs'], { answers: { logs }, terminal: true })).out).toBe('\uFFFDhello\nlast\n')
    expect((await ralph(['logs'], { answers: { logs } })).out).toBe('\uFFFDhello\nlast\n')
    // F14: what an agent says to ralph alone; a program in a pipe may look for it.
    const promises = 'done\n**<promise>COMPLETE</promise>**\nend <promise>COMPLETE</promise>\n'
    const talk: Observe['logs'] = ({ write }) => Promise.resolve(write(Buffer.from(promises)))
    expect((await ralph(['logs'], { answers: { logs: talk }, terminal: true })).out).toBe(
      'done\nend <promise>COMPLETE</promise>\n',
    )
    for (const words of [['logs'], ['logs', '--raw']])
      expect((await ralph(words, { answers: { logs: talk } })).out).toBe(promises)
    const raw = await ralph(['logs', '--raw'], { answers: { logs } })
    expect(raw.out).toBe('\uFFFD\u001B[2Jhello\nlast')
    const json = await ralph(['logs', '--json'], { answers: { logs } })
    expect(
      json.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([{ text: '\uFFFD\u001B[2Jhello' }, { text: 'last' }])
  })
})

describe('setup', () => {
  it('doctor: what to fix and how; a problem exits 2, a warning does not', async () => {
    const check = (verdict: 'ok' | 'warning' | 'problem') => ({
      name: 'git',
      verdict,
      detail: '2.39',
      fix: 'apt install git',
    })
    const ran = (verdict: 'warning' | 'problem') =>
      ralph(
        ['doctor'],
        answering({ doctor: () => Promise.resolve({ checks: [check('ok'), check(verdict)] }) }),
      )
    expect(await ran('warning')).toMatchObject({
      code: 0,
      out: expect.stringContaining('ralph can run here') as string,
    })
    const bad = await ran('problem')
    expect(bad.code).toBe(2)
    expect(bad.out).toContain('✕ git  2.39\n       fix: apt install git\n')
  })

  it('R12: config shows every value and origin, but never the values of agent_env', async () => {
    const entries = [
      { key: 'max_retries' as const, value: 5, origin: 'variable' as const, where: 'RALPH_MAX_RETRIES' },
      {
        key: 'agent_env' as const,
        value: { TOKEN: 'secret' },
        origin: 'flag' as const,
        where: '--agent-env',
      },
      { key: 'max_iterations' as const, origin: 'default' as const, where: 'later' },
    ]
    const warnings = ['unknown variable RALPH_MAX_RETIRES']
    const files = { user: { path: '/home/me/.config/ralph/ralph.yaml', sha: '', values: new Map() } }
    const answers = answering({ config: () => Promise.resolve({ entries, warnings, files }) })
    const { out: text, err } = await ralph(['config'], answers)
    expect(err).toBe('warning: unknown variable RALPH_MAX_RETIRES\n')
    expect(text).toMatch(/max_retries +5 +RALPH_MAX_RETRIES +re-runs of a story/)
    expect(text).toContain('user     /home/me/.config/ralph/ralph.yaml (not there)')
    const one = await ralph(['config', 'max-retries'], answers)
    expect(one.out).toMatch(/max_retries +5/)
    expect(one.out).not.toContain('agent_env')
    const none = await ralph(['config', 'max_retires'], answers)
    expect(none.err).toBe('error: there is no setting "max_retires"\n  Did you mean max_retries?\n')
    const json = (await ralph(['config', '--json'], answers)).out
    expect(JSON.parse(json)).toEqual({
      settings: {
        max_retries: { value: 5, origin: 'variable', where: 'RALPH_MAX_RETRIES' },
        agent_env: { value: ['TOKEN'], origin: 'flag', where: '--agent-env' },
        max_iterations: { value: null, origin: 'default', where: 'later' },
      },
      sandbox: {
        agents: expect.objectContaining({ claude: ['~/.claude'], codex: ['~/.codex'] }),
        caches: expect.arrayContaining(['~/.cache', '~/.npm']),
        hidden: expect.arrayContaining(['~/.ssh', '~/.gnupg', '~/.aws', '~/.netrc']),
        closed: expect.arrayContaining([
          { folder: '~/.config/*', but: expect.arrayContaining(['git']) as unknown },
        ]) as unknown,
      },
    })
    expect(text + json).not.toContain('secret')
  })

  it('stop, done, finish: the message, the next command, and the same as fields', async () => {
    const said = { message: 'stopped pid 7', next: 'ralph resume x', data: { stopped: true } }
    const answers = answering({ stop: () => Promise.resolve(said), finish: () => Promise.resolve(said) })
    const ran = await ralph(['stop', 'x', '--force'], answers)
    expect(ran.out).toBe('stopped pid 7\n  next   ralph resume x\n')
    expect(ran.calls).toEqual([{ name: 'stop', request: { change: 'x', force: true } }])
    expect(JSON.parse((await ralph(['stop', '--json'], answers)).out)).toEqual({
      message: 'stopped pid 7',
      stopped: true,
    })
    expect((await ralph(['finish', '--cleanup'], answers)).calls).toEqual([
      { name: 'finish', request: { change: undefined, choice: 'cleanup', acceptsConfig: false } },
    ])
  })

  it.each([
    ['y\n', true],
    ['\n', false],
    ['what\nno\n', false],
    ['', false],
  ])('B5: clean asks at a terminal, and only a yes is one: %j', async (typed, expected) => {
    let answer: boolean | undefined
    const clean: Control['clean'] = async ({ agrees }) => {
      answer = await agrees?.('Delete 2 attempts of x?')
      return { message: 'so', data: {} }
    }
    const ran = await ralph(['clean', 'x', '--attempts'], { answers: { clean }, terminal: true, typed })
    expect(ran.out).toContain('Delete 2 attempts of x? [y/N] ')
    expect(answer).toBe(expected)
    await ralph(['clean', 'x', '--attempts', '--yes'], { answers: { clean }, terminal: true })
    expect(answer).toBe(undefined)
  })

  it('usage: text for people, the report’s own fields for programs', async () => {
    const figures: UsageSummary = {
      period: 'custom',
      since: '2026-02-09',
      input_tokens: 3,
      output_tokens: 2,
      cache_read_tokens: 0,
      cache_creation_tokens: 0,
      api_tokens: 5,
      total_tokens: 5,
      unpriced_models: [],
      skipped: [],
    }
    const usage: Observe['usage'] = () => Promise.resolve(figures)
    const { out, calls } = await ralph(['usage'], answering({ usage }))
    expect(calls).toEqual([{ name: 'usage', request: { since: 'week', by: undefined } }])
    expect(out).toContain('Usage, since 2026-02-09\n')
    expect(out).toMatch(/input \+ output +5 /)
    const ran = await ralph(
      ['usage', '--since', '2026-02-09', '--format', 'json', '--by', 'day'],
      answering({ usage }),
    )
    expect(JSON.parse(ran.out)).toEqual(figures)
    expect(ran.calls).toEqual([{ name: 'usage', request: { since: '2026-02-09', by: 'day' } }])
  })
})
