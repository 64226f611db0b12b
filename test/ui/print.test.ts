// What a loop looks like in a pipe and as NDJSON.
import { describe, expect, it } from 'vitest'
import { publicEventSchema } from '../../src/core/event.ts'
import { publicEventTypes } from '../../src/core/public-events.ts'
import type { LoopEvent } from '../../src/core/event.ts'
import { jsonPrinter } from '../../src/ui/print/json.ts'
import { wrapWords } from '../../src/ui/print/layout.ts'
import { plainPrinter } from '../../src/ui/print/plain.ts'
import { widthOf } from '../../src/ui/print/text.ts'
import { terminalPrinter } from '../../src/ui/print/terminal.ts'
import { complete, event, iteration, script, started } from './events.ts'
import { Sink } from './fake-app.ts'

function plain(
  events: readonly LoopEvent[],
  env: NodeJS.ProcessEnv = {},
  columns?: number,
  /** As with 2>&1. */
  isOne = false,
): { out: string; err: string } {
  const stdout = new Sink()
  const stderr = isOne ? stdout : new Sink()
  const screen = columns === undefined ? { ...env } : { ...env, NO_COLOR: '1' }
  if (columns !== undefined) {
    for (const sink of [stdout, stderr]) Object.assign(sink, { isTTY: true, columns })
  }
  const printer = plainPrinter({ stdout, stderr, env: screen })
  for (const each of events) printer.tell(each)
  printer.close()
  return { out: stdout.text, err: stderr.text }
}

describe('plain lines', () => {
  it('time never runs backwards: the summary counts the gates, as the rows above it do', () => {
    const events = script.map((event) =>
      event.type === 'gate.ended' ? { ...event, duration_ms: 600_000 } : event,
    )
    expect(plain(events).out).toMatch(/✓ done .*2 attempts   12m 02s /)
  })

  it('contract 10: in a pipe there is not one escape byte or control character, whatever agents and titles hold', () => {
    const { out, err } = plain(script)
    expect(out + err).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F]/)
  })

  it('F11-F17: show the whole, then what happens: cause before effect, a line per gate, no protocol, paths of the tree', () => {
    const { out, err } = plain(script)
    expect(out.trimEnd().split('\n')).toEqual([
      'add-login   main → ralph/add-login   claude   gate: npm test',
      'Leave this folder alone: a failed attempt undoes edits (--worktree avoids it).',
      '▸ 1 Model   ○ 2 Page   2 stories, 5 tasks',
      '',
      '▸ 1/2 Model   #1   14:03:22',
      '    I will start.',
      '    Second line',
      '    Third line',
      '    Edit src/a.ts',
      '  ✕ npm test (exit 1)   3.2 s',
      '      login',
      '      35 more lines: ralph logs add-login --gate 1',
      '  ↺ undone, 2 files: mynote.md, src/a.ts   1m 04s   12.3k tokens   $0.25',
      '    kept as #1: ralph diff 1 add-login',
      '  ‖ usage limit reached: claude is asked again at 15:00:00; Ctrl-C stops',
      '  ✓ saved 1a2b3c4   1m 01s   ~12.3k tokens',
      '',
      '✓ done   2 of 2 stories, 5 tasks, 2 attempts   2m 05s   24.7k tokens   $0.50',
      '  The work is on ralph/add-login. ralph has not changed main.',
      '    look        ralph diff --all add-login         all that was done',
      '    take it     ralph finish add-login --cleanup   uncommitted on main',
      '    or          ralph finish add-login --squash    one commit on main',
    ])
    expect(err).toBe('warning: wt-usage failed, using an estimate\n')
  })

  it.each([40, 50, 80, 120])('F13: at %d columns nothing is cut in the middle of a word', (columns) => {
    const { out } = plain(script, {}, columns)
    const lines = out.split('\n')
    expect(Math.max(...lines.map(widthOf))).toBeLessThan(Math.max(columns, 54))
    const words = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== '')
    // No time on a screen, and nothing else is left out.
    expect(words(out)).toEqual(words(plain(script).out).filter((word) => word !== '14:03:22'))
    expect(out).toMatch(/\n {2}↺ undone, 2 files:/)
  })

  it('ASCII where the locale is not UTF-8', () => {
    const { out } = plain(script, { LANG: 'C' })
    expect(out).toMatch(/^[\n -~]*$/)
    expect(out).toContain('  x npm test (exit 1)')
    expect(out).toContain('  < undone, 2 files')
  })

  it('F37: a run that was cleaned up later is not offered to be finished again', () => {
    const message = 'Everything is on main, uncommitted'
    const { out } = plain([
      event(started),
      event({ type: 'checkpoint.saved', message: 'initial state', commit: '1a2b3c4', changed: true }),
      event({ type: 'loop.finished', choice: 'cleanup', ok: true, message }),
      event(complete),
    ])
    expect(out).toContain(message)
    expect(out).not.toContain('ralph finish')
  })

  it('F16: what an agent says to ralph alone is not shown', () => {
    const said = (text: string): string => plain([event({ type: 'agent.message', n: 1, text })]).out
    expect(said('All done.\n\n<promise>COMPLETE</promise>\n')).toBe('    All done.\n')
    expect(said('**<promise>COMPLETE</promise>**')).toBe('')
    expect(said('I give up. <promise>FAILED: no\nluck</promise>')).toBe('    I give up.\n')
    expect(said('It ends with <promise>COMPLETE</promise> when it is done')).toContain('<promise>')
  })

  it('a long message is shown in part', () => {
    const text = Array.from({ length: 20 }, (_, index) => `line ${String(index)}`).join('\n')
    const { out } = plain([
      event({ type: 'agent.message', n: 1, text }),
      event({ type: 'agent.tool', n: 1, name: 'Edit', input: 'a.txt' }),
    ])
    expect(out.split('\n')).toHaveLength(9)
    expect(out).toContain('    … 14 more lines: ralph logs 1 add-login\n')
  })

  it('F11: a flood is its first lines, and one line on all that is not shown', () => {
    const piece = (from: number, left = 0): LoopEvent => {
      const lines = Array.from({ length: 100 }, (_, index) => `line ${String(from + index)}`)
      const text = `${left === 0 ? '' : `… ${String(left)} lines left out\n`}${lines.join('\n')}\n`
      return event({ type: 'agent.message', n: 1, text })
    }
    const says = (text: string): LoopEvent => event({ type: 'agent.message', n: 1, text })
    const { out } = plain([
      piece(1),
      piece(1001, 900),
      says('line 1101\n'),
      piece(2102, 1000),
      piece(2202),
      { ...says('the end\n'), time: '2099-01-01T00:00:00+00:00' },
    ])
    expect(out.split('\n')).toEqual([
      ...Array.from({ length: 6 }, (_, index) => `    line ${String(1 + index)}`),
      '    … 2295 more lines: ralph logs 1 add-login',
      '    the end',
      '',
    ])
  })

  it('F11: a word that no screen has room for is cut', () => {
    const { out } = plain([event({ type: 'agent.message', n: 1, text: `see ${'x'.repeat(4000)} there` })])
    expect(out).toBe(`    see ${'x'.repeat(199)}… there\n`)
  })

  it('16: a claim is one line, and its gates none; its time is the agent’s', () => {
    const gate = { type: 'gate.ended', n: 2, command: 'make', duration_ms: 600_000, claim: 1 } as const
    const { out } = plain([
      event({ type: 'claim.made', n: 2, claim: 1, summary: 'all done' }),
      event({ type: 'gate.started', n: 2, command: 'make', claim: 1 }),
      event({ ...gate, outcome: 'failed', exit_code: 2, output_tail: 'no such file' }),
      event({ type: 'claim.judged', n: 2, claim: 1, outcome: 'refused', reason: 'make failed (exit 2)' }),
      event({ type: 'claim.judged', n: 2, claim: 2, outcome: 'accepted', reason: '' }),
      event({ type: 'progress.reported', n: 2, task: 'the parser' }),
      event({ type: 'failure.reported', n: 2, reason: 'it cannot be done' }),
    ])
    expect(out.trimEnd().split('\n')).toEqual([
      '  ✕ claim 1 refused: make failed (exit 2)',
      '  ✓ claim 2 accepted',
      '  now: the parser',
      '  the agent reports a failure: it cannot be done',
    ])
    const long = script.flatMap((each) =>
      each.type === 'iteration.ended'
        ? [event({ ...gate, outcome: 'passed', output_tail: '' }), each]
        : [each],
    )
    expect(plain(long).out).not.toContain('10m')
  })

  it('F25: of a gate whose format is not known, the last ten lines', () => {
    const output_tail = Array.from({ length: 30 }, (_, index) => `line ${String(index)}`).join('\n')
    const gate = { type: 'gate.ended', n: 2, command: 'make', outcome: 'failed', exit_code: 2 } as const
    const { out } = plain([event({ ...gate, duration_ms: 10, output_tail, output_lines: 300 })])
    const lines = out.trimEnd().split('\n')
    expect(lines[0]).toBe('  ✕ make (exit 2)   10 ms')
    expect(lines.slice(1, 3)).toEqual(['      line 20', '      line 21'])
    expect(lines.at(-1)).toBe('      290 more lines: ralph logs add-login --gate 2')
  })

  it('F13: a gate that fails as it did before says so, and shows it once', () => {
    const gate = { type: 'gate.ended', command: 'make', outcome: 'failed', exit_code: 2 } as const
    const failed = (n: number, output_tail: string): LoopEvent =>
      event({ ...gate, n, duration_ms: 10, output_tail, output_lines: 1 })
    const { out } = plain([failed(1, 'bad'), failed(2, 'bad'), failed(3, 'worse')])
    expect(out.trimEnd().split('\n')).toEqual([
      '  ✕ make (exit 2)   10 ms',
      '      bad',
      '  ✕ make (exit 2)   10 ms',
      '      the same failure as in #1: ralph logs add-login --gate 2',
      '  ✕ make (exit 2)   10 ms',
      '      worse',
    ])
  })

  it.each([
    ['failed', 'no luck', '  ✕ failed: no luck'],
    ['limit', 'the service is overloaded: 529', '  ‖ the service is overloaded: 529'],
    ['fatal', 'the agent is not installed', '  ! the agent is not installed'],
    ['none', '', '  ✕ did not report'],
  ] as const)('F14: %s (%s) says why before what was undone', (verdict, reason, line) => {
    const { out } = plain([
      event({ type: 'checkpoint.reverted', n: 1, commit: 'c', files: [], files_total: 0 }),
      event({ type: 'iteration.ended', iteration: iteration({ verdict, reason }) }),
    ])
    expect(out.split('\n').slice(0, 3)).toEqual([
      line,
      '  ↺ undone   1m 01s   12.3k tokens',
      '    kept as #1: ralph diff 1 add-login',
    ])
  })

  it('F32: where nothing had changed there is nothing to look at', () => {
    const kept = { type: 'attempt.kept', n: 1, ref: 'r', commit: 'c', changed: false } as const
    const { out } = plain([
      event({
        ...kept,
        commits: [],
        history_rewritten: false,
        ticked: 0,
        still_open: 1,
        not_asked: 0,
      }),
      event({ type: 'checkpoint.reverted', n: 1, commit: 'c', files: [], files_total: 0 }),
      event({ type: 'iteration.ended', iteration: iteration({ verdict: 'none', reason: 'silent' }) }),
    ])
    expect(out).toBe('  ✕ silent\n  ↺ nothing had changed   1m 01s   12.3k tokens\n')
  })

  it('F15, F31: a retry has its number, and says what the agent gets to know', () => {
    const begun = script.find(({ type }) => type === 'iteration.started')
    const second = { ...begun, n: 2, attempt: 2 } as LoopEvent
    const after = (verdict: 'failed' | 'gate_failed' | 'limit' | 'partial'): string =>
      plain([event({ type: 'iteration.ended', iteration: iteration({ verdict }) }), second]).out
    expect(after('gate_failed')).toContain('  retry 1 of 3, the agent gets this output   #2   14:03:22\n')
    expect(after('failed')).toContain('retry 1 of 3, the agent gets this reason   #2')
    expect(after('partial')).toContain('  continues with the open tasks: retry 1 of 3   #2')
    expect(after('limit')).toContain('  again   #2')
  })

  it('F8, F25: on a screen the end is said once; nothing kept: the user is told where they are', () => {
    const message = 'Story 1 failed 2 times; last: npm test failed (exit 1): login'
    const totals = { ...complete.totals, stories_done: 0 }
    const lost = { iterations: 2, tokens: 10, duration_ms: 1 }
    const { out, err } = plain(
      [
        ...script.slice(0, 11),
        event({ type: 'error', code: 'retries', message, hint: 'see ralph attempts' }),
        event({ type: 'checkpoint.saved', message: 'initial state', commit: 'c', changed: true }),
        event({ type: 'loop.finished', choice: 'cleanup', ok: true, message: 'everything is on main' }),
        event({
          ...complete,
          status: 'stuck',
          exit_code: 3,
          reason: message,
          stop_reason: 'retries',
          choice: 'cleanup',
          totals: { ...totals, not_kept: lost },
        }),
      ],
      {},
      80,
    )
    expect(err).toBe('')
    expect(out.match(/failed 2 times/g)).toHaveLength(1)
    expect(out).toContain('✕ stuck: story 1 "1 Model" failed 2 times\n  npm test failed (exit 1): login\n')
    expect(out).toContain('  Nothing was finished: you are back on main, with your files as at the start.\n')
    expect(out).toMatch(/check +npm test +without the agent\?\n +see +ralph logs add-login --gate 1 /)
    expect(out).not.toContain('ralph finish')
  })

  it('an agent that crashed needs no words: its output is named, and no attempt that changed nothing', () => {
    const crashed = [1, 2].flatMap((n) => [
      event({
        type: 'attempt.kept',
        n,
        ref: 'r',
        commit: 'c',
        changed: false,
        commits: [],
        history_rewritten: false,
        ticked: 0,
        still_open: 1,
        not_asked: 0,
      }),
      event({
        type: 'iteration.ended',
        iteration: iteration({ n, verdict: 'crash', reason: 'it crashed (exit 1)' }),
      }),
    ])
    const { out } = plain([
      event(started),
      ...crashed,
      event({
        ...complete,
        status: 'stuck',
        exit_code: 3,
        stop_reason: 'retries',
        choice: 'later',
        totals: { ...complete.totals, iterations: 2, not_kept: { iterations: 2, tokens: 0, duration_ms: 1 } },
      }),
    ])
    expect(out).toMatch(/see +ralph logs 2 add-login +what it printed/)
    expect(out).toMatch(/try again +ralph resume add-login +when that is fixed/)
    expect(out).not.toMatch(/feedback|ralph attempts|ralph diff/)
  })

  it.each([
    ['timeout', 'ralph resume add-login --iteration-timeout 90m'],
    ['idle', 'ralph resume add-login --idle-timeout 20m'],
  ] as const)('F7: who ran out of time (%s) is offered more of it, not words', (verdict, command) => {
    const { out } = plain([
      event(started),
      event({ type: 'iteration.ended', iteration: iteration({ n: 1, verdict, reason: 'it took too long' }) }),
      event({ ...complete, status: 'stuck', exit_code: 3, stop_reason: 'retries', choice: 'later' }),
    ])
    expect(out).toContain(`try again   ${command}   with more time`)
    expect(out).not.toContain('--feedback')
  })

  describe('a gate that may be red from the start', () => {
    const told = (
      changed: boolean,
      before: readonly LoopEvent[] = [],
      after: readonly LoopEvent[] = [],
    ): string => {
      const gate = { type: 'gate.ended', command: 'npm test', duration_ms: 1, output_tail: 'no' } as const
      const tries = [1, 2].flatMap((n) => [
        event({
          type: 'attempt.kept',
          n,
          ref: `refs/ralph/add-login/attempts/${n}`,
          commit: 'c'.repeat(40),
          commits: [],
          changed,
          history_rewritten: false,
          ticked: 0,
          still_open: 1,
          not_asked: 0,
        }),
        event({ ...gate, n, outcome: 'failed', exit_code: 1 }),
        event({ type: 'checkpoint.reverted', n, commit: 'd'.repeat(40), files: [], files_total: 0 }),
        event({ type: 'iteration.ended', iteration: iteration({ n, verdict: 'gate_failed', reason: 'no' }) }),
      ])
      return plain([event(started), ...before, ...tries, ...after]).out
    }
    const stuck = event({
      ...complete,
      status: 'stuck',
      exit_code: 3,
      stop_reason: 'retries',
      reason: 'Story 1 failed 2 times; last: npm test failed (exit 1): no',
      choice: 'later',
    })
    const baseline = (outcome: 'passed' | 'same' | 'other'): LoopEvent =>
      event({ type: 'baseline.ended', n: 2, command: 'npm test', outcome, duration_ms: 3200, reason: 'gone' })

    it("F1: that it fails without the agent's work is said before the retry, and in the last lines, with what to do first", () => {
      const out = told(true, [baseline('same')], [stuck])
      expect(out).toContain(
        "  ! npm test fails in the same way without the agent's work   3.2 s\n    not part of the plan? Stop, fix it, then ralph resume add-login\n",
      )
      expect(out).toContain(
        "\n  npm test failed (exit 1): no\n  It fails in the same way without the agent's work.\n",
      )
      expect(out).toMatch(/try again +ralph resume add-login +when that is fixed/)
      expect(out).not.toMatch(/check +npm test|--feedback/)
      expect(told(true, [baseline('other')], [stuck])).toContain(
        "  ! npm test fails without the agent's work, too   3.2 s\n    gone\n",
      )
    })

    it('F1: that it passes is said as well; where nobody knows, the last lines name the command that tells', () => {
      const passed = told(true, [baseline('passed')], [stuck])
      expect(passed).toContain("  ✓ npm test passes without the agent's work   3.2 s\n")
      expect(passed).toMatch(/try again +ralph resume add-login --feedback "…"/)
      expect(passed).not.toContain('check  ')
      expect(told(true, [], [stuck])).toMatch(/check +npm test +without the agent\?/)
    })

    it('is known where the attempt changed nothing', () => {
      const out = told(false)
      expect(out).toContain('  ↺ nothing had changed   1m')
      expect(out).toContain("\n    the gate fails without the agent's work, too\n")
      const lost = { iterations: 2, tokens: 10, duration_ms: 1 }
      const totals = { ...complete.totals, not_kept: lost }
      const end = event({ ...complete, status: 'stuck', exit_code: 3, stop_reason: 'retries', totals })
      expect(told(false, [], [end])).toContain('  2 attempts came to nothing: 10 tokens')
      expect(told(true, [], [end])).not.toContain('came to nothing')
    })
  })

  it('a note that came after the last prompt is named at the end: the screen had promised the next one', () => {
    const note = (text: string): LoopEvent => event({ type: 'note.added', id: text, text })
    const open = script.findLastIndex(({ type }) => type === 'iteration.started')
    const early = [...script.slice(0, open), note('be quick'), ...script.slice(open)]
    expect(plain(early).out).not.toContain('your note came')
    const late = [...script.slice(0, open + 1), note('say hello'), ...script.slice(open + 1)]
    expect(plain(late).out).toContain(
      '  your note came after the last prompt, no agent has read it: say hello\n',
    )
  })

  it('without gates it says whose word counts: of a manual loop it is the user’s', () => {
    const bare = (done_criteria: 'manual' | 'tasks'): string =>
      plain([event({ ...started, settings: { ...started.settings, done_criteria }, gate_found: '' })]).out
    expect(bare('manual')).toContain('no gates: your word alone counts\n')
    expect(bare('tasks')).toContain("no gates: the agent's word counts\n")
  })

  it('at 80 columns the next commands stand in columns; words that do not fit in theirs follow their command', () => {
    const failed = iteration({
      verdict: 'gate_failed',
      reason: 'npm test failed (exit 1): login',
      attempt_ref: 'refs/ralph/add-login/attempts/1',
    })
    const gate = {
      type: 'gate.ended',
      n: 1,
      command: 'npm test',
      outcome: 'failed',
      duration_ms: 1,
      output_tail: '',
    }
    const tries = [1, 2].flatMap((n) => [
      event({ ...gate, n, exit_code: 1 } as Parameters<typeof event>[0]),
      event({ type: 'iteration.ended', iteration: { ...failed, n } }),
    ])
    const { out } = plain(
      [
        event(started),
        ...tries,
        event({ ...complete, status: 'stuck', exit_code: 3, stop_reason: 'retries', choice: 'later' }),
      ],
      {},
      80,
    )
    const rows = out.split('\n').filter((line) => / {2}(?:npm test|ralph) /.test(line))
    const columns = rows.map((row) => row.search(/(?<= {3})\S[^ ]*(?: \S+)*$/))
    expect(rows[0]).toMatch(/check +npm test {3,}without the agent\?/)
    expect(new Set(columns).size).toBe(1)
    expect(rows.length).toBeGreaterThan(3)
    // A label is said once.
    expect(out.match(/^ +see /gm)).toHaveLength(1)
  })

  it('a short command in quotes is not broken at a blank', () => {
    expect(wrapWords('none: the word counts (found npm test: add --verify "npm test")', 60)).toEqual([
      'none: the word counts (found npm test: add --verify',
      '"npm test")',
    ])
    // F5: nor is one to be copied.
    const gate = { type: 'gate.ended', n: 1, command: 'npm test', outcome: 'failed', duration_ms: 1 } as const
    const output = { output_tail: 'ok\n'.repeat(30), exit_code: 1 }
    const begun = script.filter(({ type }) => type === 'iteration.started').slice(0, 1)
    const narrow = plain([event(started), ...begun, event({ ...gate, ...output })], {}, 40).out
    expect(narrow).toContain('      20 more lines:\n      ralph logs add-login --gate 1\n')
    // B13: nor without quotes, nor a line of the settings.
    expect(wrapWords('gamma: its loop has 2/2 stories: ralph status gamma; and so on', 45)).toEqual([
      'gamma: its loop has 2/2 stories:',
      'ralph status gamma; and so on',
    ])
    expect(wrapWords('Add it, or in ralph.yaml: verify: ["npm test"]', 40)).toEqual([
      'Add it, or in ralph.yaml:',
      'verify: ["npm test"]',
    ])
    expect(wrapWords('say "one two three four" now', 12)).toEqual(['say "one two', 'three four"', 'now'])
  })

  it('the next command after exit 6 fits what was in the way', () => {
    const next = (stop_reason: 'limit' | 'auth' | 'missing' | 'model'): string =>
      plain([event(started), event({ ...complete, status: 'stopped', exit_code: 6, stop_reason })]).out
    expect(next('limit')).toContain('continue    ralph resume add-login   once the limit is over')
    expect(next('auth')).toContain('ralph resume add-login   after you have logged in or paid')
    expect(next('missing')).toContain(
      'ralph resume add-login   once the agent is installed; or with --agent NAME',
    )
    expect(next('model')).toContain('ralph resume add-login --model NAME   with a model that the agent knows')
  })

  it('a stop during a wait or a gate does not speak of an agent', () => {
    const stopping = (signal: 'SIGINT' | 'SIGTERM'): string =>
      plain([event({ type: 'stop.requested', signal })]).out
    expect(stopping('SIGINT')).toBe('  Stopping… press Ctrl-C again to kill it\n')
    expect(stopping('SIGTERM')).toBe('  Stopping… (SIGTERM)\n')
  })

  it('R12: the banner says who pays where that is known, and nothing where it is not', () => {
    const banner = (bill: string): string => plain([event({ ...started, billing: { claude: bill } })]).out
    expect(banner('subscription login')).toContain('   claude (subscription)   gate: npm test')
    expect(banner('unknown')).toContain('   claude   gate: npm test')
  })

  it('U5: a loop that halts names the reason, where the work is and the command to go on with', () => {
    const events = [
      event(started),
      event({
        type: 'iteration.ended',
        iteration: iteration({ n: 4, verdict: 'failed', reason: 'no tests', attempt_ref: 'r' }),
      }),
      event({
        type: 'error',
        code: 'retries',
        message: 'Story 1 failed 4 times; last: no tests',
        hint: 'To try again: ralph resume add-login',
      }),
      event({
        ...complete,
        status: 'stuck',
        exit_code: 3,
        reason: 'Story 1 failed 4 times; last: no tests',
        stop_reason: 'retries',
      }),
    ]
    const { out, err } = plain(events)
    expect(err).toBe('error: Story 1 failed 4 times. To try again: ralph resume add-login\n')
    // F7, F10: the reason with the attempt and on the card; the error is for who reads stderr alone.
    const both = plain(events, {}, undefined, true).out
    expect(both.split('no tests')).toHaveLength(3)
    expect(both).not.toContain('error:')
    expect(out).toContain('failed 4 times\n  no tests\n')
    expect(out).toContain('see         ralph diff 4 add-login')
    expect(out).toContain('try again   ralph resume add-login --feedback')
    expect(out).not.toContain('finish')
  })

  it('U5: a manual loop that waits for its user counts no boxes, and names ralph done, whatever boxes are open', () => {
    const { out } = plain([
      event({ ...started, settings: { ...started.settings, done_criteria: 'manual' } }),
      event({
        ...complete,
        status: 'stopped',
        exit_code: 5,
        reason: 'The agent says that it is complete; you decide whether it is.',
        stop_reason: 'human',
        totals: { ...complete.totals, tasks_done: 0, tasks_total: 4 },
      }),
    ])
    expect(out).toMatch(
      /it is done  ralph done add-login\n +not yet     ralph resume add-login --feedback "what is missing"/,
    )
    expect(out).not.toContain('of 4 tasks')
    expect(out).toContain('! needs you: the agent says that it is complete')
  })

  it.each([
    [{ max_cost_usd: 1 }, '--max-cost is used up: $1.20 of $1.00', {}, '--max-cost USD'],
    [{ max_tokens: 9 }, '--max-tokens is used up: 10 tokens of 9 tokens', {}, '--max-tokens N'],
    [
      { max_tokens: 9, max_cost_usd: 1 },
      'the next attempt would exceed --max-cost',
      {},
      '--max-cost USD --max-tokens N',
    ],
    [{ max_cost_usd: 1 }, '--max-cost cannot be kept', { cost_usd: undefined }, '--max-tokens N'],
  ])('U5: stopped by %j (%s): the next command names what helps', (limits, reason, totals, flags) => {
    const { out } = plain([
      event({ ...started, settings: { ...started.settings, ...limits } }),
      event({
        ...complete,
        status: 'stopped',
        exit_code: 6,
        reason,
        stop_reason: 'budget',
        totals: { ...complete.totals, ...totals },
      }),
    ])
    expect(out).toContain(`continue    ralph resume add-login ${flags}   with a larger budget\n`)
  })

  it('the end uses the words of the finished checkpoint where there are some', () => {
    const { out } = plain([
      event(started),
      event({ type: 'checkpoint.saved', message: 'initial state', commit: 'c'.repeat(40), changed: true }),
      event({
        type: 'loop.finished',
        choice: 'cleanup',
        ok: true,
        message: 'back on main with 3 files changed',
      }),
      event({ ...complete, choice: 'cleanup' }),
    ])
    expect(out).toContain('  Back on main with 3 files changed.\n    look        git status')
  })

  it('G13: a cleanup that could not be done is not called done', () => {
    const { out } = plain([
      event(started),
      event({ type: 'checkpoint.saved', message: 'initial state', commit: 'c'.repeat(40), changed: true }),
      event({ type: 'loop.finished', choice: 'cleanup', ok: false, message: 'main has moved' }),
      event({ ...complete, choice: 'cleanup' }),
    ])
    expect(out).toContain(
      '  The work is on ralph/add-login.\n    look        ralph diff --all add-login         all that was done\n    take it     ralph finish add-login --cleanup',
    )
    expect(out).not.toContain('git status')
  })

  it('R13: an estimate of nothing is not shown as a figure', () => {
    const ended = iteration({ tokens_used: 0, tokens_estimated: true })
    const saved = event({ type: 'checkpoint.saved', n: 1, message: 'm', commit: 'c', changed: true })
    expect(plain([saved, event({ type: 'iteration.ended', iteration: ended })]).out).toBe(
      '  ✓ saved c   1m 01s\n',
    )
  })

  it('FORCE_COLOR colours a pipe, NO_COLOR wins over it', () => {
    expect(plain(script, { FORCE_COLOR: '1' }).out).toContain('\u001B[')
    expect(plain(script, { FORCE_COLOR: '1', NO_COLOR: '1' }).out).not.toContain('\u001B[')
  })
})

describe('a flood of talk', () => {
  class Writes extends Sink {
    readonly chunks: string[]
    constructor(chunks: string[]) {
      super()
      this.chunks = chunks
    }
    override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
      this.chunks.push(chunk.toString())
      super._write(chunk, encoding, done)
    }
  }
  const talk = Array.from({ length: 100 }, (_, n) =>
    event({ type: 'agent.tool', n: 1, name: 'Edit', input: `file-${n}` }),
  )
  const warning = event({ type: 'warning', code: 'agent', message: 'a line was not read' })

  it.each(['plain', 'json', 'terminal'] as const)('is one write per tick, in order: %s', async (kind) => {
    const chunks: string[] = []
    const [stdout, stderr] = [new Writes(chunks), new Writes(chunks)]
    const io = { stdout, stderr, env: {} }
    const printer =
      kind === 'plain'
        ? plainPrinter(io)
        : kind === 'json'
          ? jsonPrinter(stdout, stderr)
          : terminalPrinter({ ...io, now: () => 0 })
    chunks.length = 0
    for (const each of talk) printer.tell(each)
    printer.tell(warning)
    for (const each of talk) printer.tell(each)
    await Promise.resolve()
    const isTalk = (chunk: string): boolean => chunk.includes('file-')
    expect(chunks.filter(isTalk)).toHaveLength(2)
    expect(chunks.findIndex((chunk) => chunk.includes('not read'))).toBeGreaterThan(0)
    expect(chunks.filter(isTalk).map((chunk) => chunk.match(/file-\d+/g))).toEqual(
      [0, 1].map(() => talk.map((_, n) => `file-${n}`)),
    )
    expect(chunks.findLastIndex(isTalk)).toBeGreaterThan(
      chunks.findIndex((chunk) => chunk.includes('not read')),
    )
    const before = chunks.length
    for (const each of talk) printer.tell(each)
    printer.close()
    expect(chunks.slice(before).filter(isTalk)).toHaveLength(1)
  })
})

describe('--json', () => {
  it('contract 9: stdout holds the public events, one valid object per line, in order, and nothing else', () => {
    const stdout = new Sink()
    const stderr = new Sink()
    const printer = jsonPrinter(stdout, stderr)
    for (const each of script) printer.tell(each)
    const lines = stdout.text.trimEnd().split('\n')
    const parsed = lines.map((line) => publicEventSchema.parse(JSON.parse(line)))
    expect(parsed.map(({ type }) => type)).toEqual(
      script.map(({ type }) => type).filter((type) => publicEventTypes.includes(type)),
    )
    expect(parsed.at(-1)?.type).toBe('complete')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      v: 1,
      seq: 1,
      time: expect.any(String),
      change_id: 'add-login',
    })
    expect(stderr.text).toBe('warning: wt-usage failed, using an estimate\n')
  })
})
