// The command line from its words to its exit code, with a fake behind it.
import { describe, expect, it } from 'vitest'
import { optionKeys, flagOf, specOf } from '../../src/config/options.ts'
import { beginning } from '../../src/core/cursor.ts'
import { RalphError } from '../../src/core/error.ts'
import { initialState } from '../../src/core/state.ts'
import type { ChangeList, LoopHandle, LoopRequest } from '../../src/ui/app.ts'
import { buildProgram } from '../../src/ui/cli/program.ts'
import type { Context } from '../../src/ui/cli/context.ts'
import { complete, event, script, started, status } from './events.ts'
import { ralph } from './fake-app.ts'
import type { RunOptions } from './fake-app.ts'

/** Printers look at the event alone. */
const after = [initialState('demo'), beginning] as const

const changes: ChangeList = {
  changes: [
    {
      name: 'add-login',
      title: 'Add a login',
      stories_done: 1,
      stories_total: 3,
      stories_open: 2,
      tasks_done: 2,
      tasks_total: 9,
      status: 'stuck',
    },
    {
      name: 'add-page',
      title: 'A page',
      stories_done: 0,
      stories_total: 1,
      stories_open: 1,
      tasks_done: 0,
      tasks_total: 2,
      status: '',
    },
  ],
}

/** What the loop was asked for. */
async function looped(
  argv: readonly string[],
  options: RunOptions = {},
): Promise<LoopRequest & { feedback?: string }> {
  const answer = () => Promise.resolve({ exitCode: 0 })
  const ran = await ralph(argv, { answers: { loop: answer, resume: answer }, ...options })
  expect(ran.err).toBe('')
  const request = ran.calls.find(({ name }) => name === 'loop' || name === 'resume')?.request
  return request as LoopRequest & { feedback?: string }
}

const commandNames = (): string[] => {
  const streams = { stdout: process.stdout, stderr: process.stderr, stdin: process.stdin }
  const context = { io: { ...streams, env: {}, cwd: '/' } } as unknown as Context
  return buildProgram(context, '0').commands.map((command) => command.name())
}

it('finish asks nothing of a change that has landed, or of a run that began nothing: there is nothing to decide', async () => {
  const landed = { target: 'main', commit: 'abc1234', is_pulled: true }
  const ended = { ...status, alive: false, status: 'done' as const }
  for (const where of [{ landed }, { branch: '' }]) {
    const ran = await ralph(['finish'], {
      terminal: true,
      answers: {
        status: () => Promise.resolve([{ ...ended, where }]),
        finish: () => Promise.resolve({ message: 'add-login has landed as abc1234.', data: {} }),
      },
    })
    expect([ran.code, ran.out]).toEqual([0, 'add-login has landed as abc1234.\n'])
  }
})

describe('wrong words', () => {
  it('a number that is none is refused in our words, not in those of the parser', async () => {
    const { code, err } = await ralph(['restore', 'x'], { answers: {} })
    expect([code, err]).toEqual([
      2,
      'error: "x" cannot be used here. Type the number of an attempt, such as 3; they are in: ralph attempts\n  see: ralph restore --help\n',
    ])
  })

  it.each([
    [['lop'], "unknown command 'lop'", 'Did you mean loop?'],
    [['lop', '--help'], "unknown command 'lop'", 'Did you mean loop?'],
    [['web', '-h'], "unknown command 'web'", 'see: ralph --help'],
    [['loop', '--max-retires', '5'], "unknown option '--max-retires'", 'Did you mean --max-retries?'],
    [['restore'], 'Which attempt? restore needs its number.', 'ralph attempts'],
    [['usage', '--since', 'gestern'], '--since cannot be "gestern". Type yesterday', 'ralph usage --help'],
    [['loop', '--max-retries', 'abc'], '--max-retries must be a whole number', 're-runs of a story'],
    [['loop', '--max-retries', '-1'], '--max-retries must be a whole number', 're-runs of a story'],
    [['loop', '--agent', 'cluade'], '--agent: there is no agent "cluade"', 'Did you mean claude?'],
    [['loop', '--checkpoint', 'brunch'], '--checkpoint must be one of branch, stash', 'Did you mean branch?'],
    [['loop', '--model', '--json'], '--model needs a value, and --json is a flag', '--model M'],
    [['loop', '--model'], "option '--model <M>' argument missing", 'ralph loop --help'],
    [['loop', 'a', 'b'], 'too many arguments', 'ralph loop --help'],
    [['loop', '--gate', 'npm test'], "unknown option '--gate'", 'Did you mean --verify?'],
    [['list', '--jsn'], "unknown option '--jsn'", 'Did you mean --json?'],
    [['diff', '0'], 'Type the number of an attempt', 'ralph attempts'],
    [['restore', 'x'], 'Type the number of an attempt', 'ralph restore --help'],
    [['help', 'lop'], "unknown command 'lop'", 'Did you mean loop?'],
    [['loop', '--on-complete', 'squash'], 'must be one of ask, cleanup, keep, not', 'ralph finish --squash'],
    [['completion'], 'bash, zsh and fish', 'ralph completion bash'],
    [['completion', 'zhs'], '"zhs" is none of bash, zsh, fish', 'Did you mean zsh?'],
    [['queue', 'addd', 'x'], '"addd" is none of add, remove', 'Did you mean add?'],
    [['land'], 'Which change? land needs its name.', 'ralph list'],
    [['usage', '--today', '--by', 'modle'], 'must be one of agent, model', 'Did you mean model?'],
    [['finish', '--keep', '-m', 'x'], '-m is the message of --squash', 'add --squash'],
    [['finish', '--squash', '-m', ' '], '-m needs a text', 'leave it out'],
    [['finish', '--cleanup', '--rename'], '--rename goes with --keep', '--keep --rename'],
    [['finish', '--squash', '--keep'], 'cannot be used with', 'ralph finish --help'],
    [['finish', '--cleanup', '--keep'], 'cannot be used with', 'ralph finish --help'],
    [['usage', '--since', 'yesterdayish'], 'ISO time', 'ralph usage --help'],
    [['usage', '--today', '--format', 'pdf'], 'must be one of text, json', 'ralph usage --help'],
    [['clean'], 'nothing selected', '--attempts'],
    [['-C', '/nonexistent', 'list'], 'There is no folder /nonexistent', 'ralph -C <dir>'],
    [['--fresh', 'loop'], "unknown option '--fresh'", 'ralph --help'],
  ])(
    'U1: %j exits 2, says what is wrong and what is right, and runs nothing',
    async (argv, message, hint) => {
      const ran = await ralph(argv)
      expect(ran.err).toContain(`error: `)
      expect(ran.err).toContain(message)
      expect(ran.err).toContain(hint)
      expect({ code: ran.code, out: ran.out }).toEqual({ code: 2, out: '' })
      expect(ran.calls.filter(({ name }) => name !== 'settings')).toEqual([])
    },
  )

  it('with --json a report that fails is one object on stdout', async () => {
    const missing = new RalphError('change_not_found', 'no change add-lgin', {
      hint: 'Did you mean add-login?',
      exitCode: 2,
    })
    const ran = await ralph(['show', 'add-lgin', '--json'], {
      answers: { show: () => Promise.reject(missing) },
    })
    expect(JSON.parse(ran.out)).toEqual({
      error: {
        code: 'change_not_found',
        message: 'no change add-lgin',
        hint: 'Did you mean add-login?',
        exit_code: 2,
      },
    })
    expect({ code: ran.code, err: ran.err }).toEqual({ code: 2, err: '' })
  })

  it('a loop that cannot start keeps stdout empty even with --json', async () => {
    const locked = new RalphError('locked', 'pid 7 holds it', { hint: 'ralph stop', exitCode: 7 })
    const ran = await ralph(['loop', '--json'], { answers: { loop: () => Promise.reject(locked) } })
    expect(ran).toMatchObject({ code: 7, out: '', err: 'error: pid 7 holds it\n  ralph stop\n' })
  })

  it('a bug shows its stack, says that it is one, and exits 1', async () => {
    const ran = await ralph(['list'], {
      answers: { list: () => Promise.reject(new TypeError('x is not a function')) },
    })
    expect(ran.code).toBe(1)
    expect(ran.err).toMatch(/TypeError: x is not a function\n\s+at /)
    expect(ran.err).toContain('This is a bug in ralph. Your work is safe')
  })
})

describe('ralph alone', () => {
  it('on a terminal: the screens, and the terminal is given back as it was', async () => {
    const queue = { target: '', target_commit: '', landed_commit: '', alive: false, entries: [] }
    const answers = {
      list: () => Promise.resolve(changes),
      status: () => Promise.resolve([]),
      queue: () => Promise.resolve(queue),
    }
    const ran = await ralph([], { terminal: true, env: { TERM: 'xterm' }, answers, typed: 'q' })
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(ran.out.indexOf('\u001B[?1049h')).toBeGreaterThan(-1)
    expect(ran.out.lastIndexOf('\u001B[?1049l')).toBeGreaterThan(ran.out.lastIndexOf('\u001B[?1049h'))
  })

  it('where the screens cannot be, on a dumb terminal and in a CI: the changes and what to type next', async () => {
    const other = await ralph([], {
      terminal: true,
      env: { CI: 'true' },
      answers: { list: () => Promise.resolve(changes) },
    })
    expect(other.out).toContain('ralph resume add-login')
    const ran = await ralph([], {
      terminal: true,
      env: { NO_COLOR: '1', TERM: 'dumb' },
      answers: { list: () => Promise.resolve(changes) },
    })
    expect(ran.code).toBe(0)
    expect(ran.out).toContain('add-login  1/3      2/9    ✕ stuck  Add a login\n')
    expect(ran.out).toContain('ralph resume add-login')
    expect(ran.out).toContain('ralph loop add-page --dry-run')
  })

  it('in a pipe: the help text and exit 2, and nothing is loaded', async () => {
    const ran = await ralph([])
    expect(ran.code).toBe(2)
    expect(ran.out).toContain('Usage: ralph')
    expect(ran.calls).toEqual([])
  })

  it('B4: in a pipe with --no-tui: the changes as plain lines; where there are none to be, the help and why', async () => {
    const ran = await ralph(['--no-tui'], { answers: { list: () => Promise.resolve(changes) } })
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(ran.out).toContain('ralph resume add-login')
    const nowhere = new RalphError('not_a_repository', '/x is not in a git repository', { hint: 'Go there.' })
    const lost = await ralph(['--no-tui'], { answers: { list: () => Promise.reject(nowhere) } })
    expect(lost).toMatchObject({ code: 2, err: '/x is not in a git repository\n  Go there.\n' })
    expect(lost.out).toContain('Usage: ralph')
  })
})

describe('help', () => {
  it.each(commandNames().filter((name) => name !== 'complete'))(
    'ralph %s --help shows one example, exit 0',
    async (name) => {
      const ran = await ralph([name, '--help'])
      expect(ran).toMatchObject({ code: 0, err: '' })
      expect(ran.out.match(/Example:\n {2}\$ /g)).toHaveLength(1)
      expect(ran.calls).toEqual([])
    },
  )

  it('ralph loop --help names every setting of the table', async () => {
    const { out } = await ralph(['loop', '--help'])
    for (const key of optionKeys) if (!specOf(key).flagless) expect(out).toContain(flagOf(key))
  })

  it('ralph help and ralph help loop print what --help prints', async () => {
    expect(await ralph(['help'])).toEqual(await ralph(['--help']))
    expect(await ralph(['help', 'run'])).toEqual(await ralph(['loop', '--help']))
  })

  it('--version prints the version', async () => {
    expect(await ralph(['--version'])).toMatchObject({ code: 0, out: '1.2.3\n' })
  })
})

describe('loop', () => {
  it('passes change, flags and what follows -- on; run is the same', async () => {
    const argv = [
      'loop',
      'add-login',
      '--max-retries',
      '0',
      '--verify',
      'a',
      '--verify',
      'b',
      '--no-tui',
      '--',
      '--fast',
      'x',
    ]
    for (const name of ['loop', 'run']) {
      const request = await looped([name, ...argv.slice(1)])
      expect(request.change).toBe('add-login')
      expect(request.settings.config).toMatchObject({
        max_retries: 0,
        verify: ['a', 'b'],
        no_tui: true,
        agent_args: ['--fast', 'x'],
      })
    }
  })

  it('without a change, what follows -- is not taken for one', async () => {
    const request = await looped(['loop', '--', 'add-login'])
    expect(request.change).toBeUndefined()
    expect(request.settings.config.agent_args).toEqual(['add-login'])
  })

  it('a single-valued flag given twice: the last wins', async () => {
    const { config } = (
      await looped(['loop', '--max-retries', '1', '--model=a', '--max-retries=2', '--model', 'b'])
    ).settings
    expect(config).toMatchObject({ max_retries: 2, model: 'b' })
  })

  it('--worktree takes a folder or stands alone', async () => {
    expect((await looped(['loop', 'x', '--worktree'])).settings.config.worktree).toBe(true)
    expect((await looped(['loop', 'x', '--worktree', '../w'])).settings.config.worktree).toBe('../w')
    expect((await looped(['loop', 'x'])).settings.config.worktree).toBeUndefined()
  })

  it('a flag that was not given is no value of its own', async () => {
    const { entries } = (await looped(['loop', 'x', '--no-api-key'])).settings
    expect(entries.filter(({ origin }) => origin === 'flag').map(({ key }) => key)).toEqual(['no_api_key'])
  })

  it('resume hands the feedback on, and has no --fresh', async () => {
    expect((await looped(['resume', 'x', '--feedback', 'look in src'])).feedback).toBe('look in src')
    expect(await ralph(['resume', '--fresh'])).toMatchObject({ code: 2 })
  })

  it.each([0, 3, 4, 5, 6, 143])('U1: exits with %i when the loop says so', async (exitCode) => {
    expect((await ralph(['loop'], { answers: { loop: () => Promise.resolve({ exitCode }) } })).code).toBe(
      exitCode,
    )
  })

  it('--json: stdout is NDJSON only, ended by complete', async () => {
    const loop = (request: LoopRequest) => {
      for (const each of script) request.tell(each, ...after)
      return Promise.resolve({ exitCode: 0 })
    }
    const ran = await ralph(['loop', '--json'], { terminal: true, answers: { loop } })
    const types = ran.out
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type)
    expect(types[0]).toBe('loop.started')
    expect(types.at(-1)).toBe('complete')
    expect(ran.out).not.toContain('\u001B')
  })

  it('--dry-run asks for a plan, never for a loop', async () => {
    const plan = {
      change_id: 'x',
      branch: 'ralph/x',
      original_branch: 'main',
      worktree: '/repo',
      own_worktree: false,
      done_criteria: 'tasks' as const,
      agents: ['claude'],
      billing: { claude: 'subscription login' },
      gates: [],
      gate_offered: 'npm test',
      on_complete: 'ask' as const,
      stories_total: 3,
      max_retries: 3,
      max_iterations: 4,
      warnings: ['two lints'],
      stories: [
        { id: '1', title: 'One', status: 'open' as const, tasks_done: 0, tasks_total: 1, prompt: 'Do it.\n' },
      ],
    }
    const ran = await ralph(['loop', 'x', '--dry-run'], { answers: { plan: () => Promise.resolve(plan) } })
    expect(ran.calls.map(({ name }) => name)).toEqual(['settings', 'plan'])
    expect(ran.out).toContain('nothing is changed')
    expect(ran.out).toContain('1 of 3 would run: 1 One (1 task)')
    expect(ran.out).toContain('claude (subscription login)')
    expect(ran.out).toContain('(found npm test: add --verify "npm test")')
    expect(ran.out).not.toContain('Do it.')
    expect(ran.out.split('\n').length).toBeLessThan(12)
    const manual = { ...plan, done_criteria: 'manual' as const }
    const human = await ralph(['loop', 'x', '--dry-run'], {
      answers: { plan: () => Promise.resolve(manual) },
    })
    expect(human.out).toMatch(/limits +4 attempts\n/)
    const refused = { message: 'There is a run.', hint: 'Go on.', exit_code: 2 }
    const kept = await ralph(['loop', 'x', '--dry-run', '--prompts'], {
      answers: { plan: () => Promise.resolve({ ...plan, refused }) },
    })
    expect(kept.code).toBe(2)
    expect(kept.out).toMatch(/A start would be refused now: There is a run\.\n +Go on\./)
    expect(kept.out).toContain('story 1/1: 1 One\nDo it.\n')
    const given = ['--verify', 'npm test', '--verify', 'true', '--fresh', '--agent', 'demo']
    const typed = await ralph(['loop', 'x', ...given, '--dry-run', '--', '-v'], {
      answers: { plan: () => Promise.resolve(plan) },
    })
    const [, repeated = ''] = /next +ralph (loop x .*)/.exec(typed.out) ?? []
    expect(repeated).toContain(" --verify 'npm test' --verify true")
    expect(repeated.split(' ').toSorted()).toEqual(
      [
        'loop',
        'x',
        '--verify',
        "'npm",
        "test'",
        '--verify',
        'true',
        '--fresh',
        '--agent',
        'demo',
        '--',
        '-v',
      ].toSorted(),
    )
    const json = await ralph(['loop', 'x', '--dry-run', '--json'], {
      answers: { plan: () => Promise.resolve(plan) },
    })
    expect(JSON.parse(json.out)).toEqual(plan)
  })

  const ambiguous = new RalphError('change_ambiguous', 'there are 2 changes', {
    hint: 'name one',
    exitCode: 2,
  })
  const onlyNamed = (request: LoopRequest) =>
    request.change === undefined ? Promise.reject(ambiguous) : Promise.resolve({ exitCode: 0 })
  const severalChanges = { loop: onlyNamed, list: () => Promise.resolve(changes) }

  it.each(['2\n', 'add-page\n', 'nonsense\n9\n0\n2\n'])(
    'several changes on a terminal: one is picked by %j',
    async (typed) => {
      const ran = await ralph(['loop', '--no-tui'], { answers: severalChanges, terminal: true, typed })
      const asked = ran.calls
        .filter(({ name }) => name === 'loop')
        .map(({ request }) => (request as LoopRequest).change)
      expect({ code: ran.code, asked }).toEqual({ code: 0, asked: [undefined, 'add-page'] })
    },
  )

  it('several changes in a pipe, or nobody picks one: exit 2', async () => {
    expect(await ralph(['loop', '--no-tui'], { answers: severalChanges, typed: '2\n' })).toMatchObject({
      code: 2,
      out: '',
    })
    expect(
      await ralph(['loop', '--no-tui'], { answers: severalChanges, terminal: true, typed: '' }),
    ).toMatchObject({
      code: 2,
    })
  })

  it('in a pipe nobody is asked: the human says later', async () => {
    let choice = ''
    const loop = async (request: LoopRequest) => {
      choice = await request.human.choose(
        { originalBranch: 'main', branch: 'b', summary: '' },
        new AbortController().signal,
      )
      return { exitCode: 0 }
    }
    const ran = await ralph(['loop'], { answers: { loop }, typed: 'cleanup\n' })
    expect({ choice, out: ran.out }).toEqual({ choice: 'later', out: '' })
  })

  it('a reader that goes away stops the loop, and the loop still ends by itself', async () => {
    let gone = false
    const loop = async (request: LoopRequest) => {
      request.tell(event(started), ...after)
      let release = (): void => undefined
      await new Promise<void>((resolve, reject) => {
        const handle: LoopHandle = {
          isAsking: false,
          stop: () => resolve(),
          pause: reject,
          fail: reject,
          kill: reject,
        }
        release = request.onRunning(handle)
      })
      release()
      gone = true
      request.tell(event(complete), ...after)
      return { exitCode: 129 }
    }
    const { PassThrough, Writable } = await import('node:stream')
    const { run } = await import('../../src/ui/cli/run.ts')
    const { fakeApp, Sink } = await import('./fake-app.ts')
    const broken = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('EPIPE'), { code: 'EPIPE' })),
    })
    const io = { env: {}, cwd: '/', stdin: new PassThrough(), stdout: broken, stderr: new Sink() }
    const code = await run(['loop'], {
      io,
      version: '1',
      loadApp: () => Promise.resolve(fakeApp({ loop }).app),
    })
    expect({ code, gone }).toEqual({ code: 129, gone: true })
  })
})

describe('completion', () => {
  const stories = ['1', '2'].map((id) => ({ id, title: `Story ${id}`, status: 'open' as const, tasks: [] }))
  const kept = (n: number) => {
    const shared = { story_id: '1', attempt: 1, verdict: 'failed' as const, reason: '', ref: '', commit: '' }
    return { n, ...shared, changed: true }
  }
  const offered = async (...words: string[]) => {
    const ran = await ralph(['complete', '--', ...words], {
      answers: {
        list: () => Promise.resolve(changes),
        attempts: () =>
          Promise.resolve({ change_id: 'add-login', stories, attempts: [kept(1), kept(12)], earlier: [] }),
        show: (name = '') => Promise.resolve({ name, title: '', stories, scenarios: [] }),
      },
    })
    return ran.out
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split('\t')[0])
  }

  it('offers commands, changes, flags and their words', async () => {
    expect(await offered('lo')).toEqual(['loop', 'logs'])
    expect(await offered('loop', '')).toEqual(['add-login', 'add-page'])
    expect(await offered('run', 'add-p')).toEqual(['add-page'])
    expect(await offered('loop', '--max-r')).toEqual(['--max-retries'])
    expect(await offered('loop', '--agent', 'co')).toEqual(['codex', 'command'])
    expect(await offered('loop', '--agent', '=', 'cl')).toEqual(['claude'])
    expect(await offered('loop', '--checkpoint=s')).toEqual(['--checkpoint=stash'])
    expect(await offered('loop', '--model', 'x', '')).toEqual(['add-login', 'add-page'])
    expect(await offered('diff', '3', '')).toEqual(['add-login', 'add-page'])
    expect(await offered('completion', 'z')).toEqual(['zsh'])
    expect(await offered('diff', '')).toEqual(['1', '12', 'add-login', 'add-page'])
    expect(await offered('logs', 'add')).toEqual(['add-login', 'add-page'])
    expect(await offered('restore', '1')).toEqual(['1', '12'])
    expect(await offered('logs', 'add-login', '--iteration', '12')).toEqual(['12'])
    expect(await offered('loop', 'add-login', '--story', '')).toEqual(['1', '2'])
    expect(await offered('nonsense', '')).toEqual([])
  })

  it('stays silent where the changes cannot be read', async () => {
    expect(await ralph(['complete', '--', 'loop', ''])).toMatchObject({ code: 0, out: '', err: '' })
  })
})
