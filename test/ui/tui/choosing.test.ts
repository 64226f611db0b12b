// The first screens as data: every change with where it stands, and one of them before its run.
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import type { RawFlags } from '../../../src/config/load.ts'
import type { ChangeList, DryRun, StatusReport } from '../../../src/ui/app.ts'
import { iteration, status } from '../events.ts'
import { Player } from './played.ts'

type Listed = ChangeList['changes'][number]

const open: Listed = {
  name: 'add-login',
  title: 'A login',
  stories_done: 0,
  stories_total: 6,
  stories_open: 6,
  tasks_done: 0,
  tasks_total: 12,
  status: '',
  edited_at: '2026-02-09T12:07:20+01:00',
}
const running: Listed = {
  ...open,
  name: 'add-greeting',
  status: 'running',
  stories_done: 2,
  stories_total: 4,
}
const stuck: Listed = {
  ...open,
  name: 'polish-cli',
  status: 'stuck',
  stories_done: 1,
  stories_total: 3,
  stories_open: 2,
}
const done: Listed = {
  ...open,
  name: 'old-change',
  status: 'done',
  stories_done: 3,
  stories_total: 3,
  stories_open: 0,
}

function reported(change: string, more: Partial<StatusReport> = {}): StatusReport {
  return {
    ...status,
    change_id: change,
    started_at: '2026-02-09T13:55:16+01:00',
    updated_at: '2026-02-09T13:00:00+01:00',
    cost_usd: 1.42,
    alive: false,
    ...more,
  }
}

const reports = [
  reported('add-greeting', {
    alive: true,
    where: { home: '/repo' },
    started_at: '2026-02-07T13:55:16+01:00',
    iterations: [iteration({ started: '2026-02-07T13:55:16+01:00', ended: '2026-02-07T14:05:16+01:00' })],
    current: {
      n: 2,
      story_id: '2',
      attempt: 1,
      started: '2026-02-09T14:05:16+01:00',
      base_commit: 'c'.repeat(40),
      agent: 'claude',
      last_activity: '2026-02-09T14:06:16+01:00',
    },
  }),
  reported('polish-cli'),
  reported('old-change', { updated_at: '2026-02-07T13:00:00+01:00' }),
]

function selecting(size = { columns: 80, rows: 24 }, changes = [done, open, stuck, running]): Player {
  const player = new Player({ at: 'select' }, size)
  return player.hear({
    type: 'loaded',
    loaded: { what: 'changes', list: { changes, checked_out: 'main' }, reports },
  })
}

describe('choosing a change', () => {
  test.each([
    [60, 20],
    [80, 24],
    [120, 35],
  ] as const)(
    'at %i x %i: loops that run first, then what needs you, then what is open',
    async (columns, rows) => {
      const file = `./golden/select-${String(columns)}x${String(rows)}.txt`
      await expect(selecting({ columns, rows }).text()).toMatchFileSnapshot(file)
    },
  )

  test('a run that stopped after a story that was kept is not called done; where there is no story, none is drawn', () => {
    const player = new Player({ at: 'select' }, { columns: 80, rows: 24 })
    const manual = { ...done, name: 'manual', stories_done: 0, stories_total: 0 }
    const halted = { ...stuck, status: 'stopped' as const }
    const kept = reported('polish-cli', { iterations: [iteration({ verdict: 'complete' })] })
    const list = { changes: [halted, manual] }
    player.hear({ type: 'loaded', loaded: { what: 'changes', list, reports: [kept, reported('manual')] } })
    expect(player.text()).toMatch(/polish-cli +‖ stopped +1\/3 stories +[█░]{10} +1 h ago +A login$/m)
    expect(player.text()).toMatch(/manual +✓ done +1 h ago +A login$/m)
  })

  test('a parked change is the user’s to look at; what landed counts its stories, and its word fits', () => {
    const landed: Listed = {
      ...done,
      stories_done: 0,
      landed: { target: 'main', commit: 'c'.repeat(40), is_pulled: false },
    }
    const parked: Listed = { ...stuck, status: 'stopped', parked: { why: 'conflict', hint: 'Merge it' } }
    const long: Listed = { ...open, name: 'a-change-with-a-name-of-forty-letters-so' }
    const text = selecting({ columns: 60, rows: 20 }, [landed, parked, long]).text()
    expect(text).toMatch(/! parked +1\/3 stories +1 h ago/)
    expect(text).toMatch(/a-change-with-a-n… +○ open/)
    expect(text).toMatch(/✓ landed +3\/3 stories/)
  })

  test('it looks again by itself, and keeps the place', () => {
    const player = selecting().type('\u001B[B\u001B[B')
    expect(player.text()).toContain('› add-login')
    player.asked()
    expect(player.later(3).asked()).toEqual([{ do: 'load', load: { what: 'changes' } }])
    expect(player.later(3).asked()).toEqual([])
    const changes = [{ ...open, name: 'a-new-one' }, running, open, stuck, done]
    player.hear({
      type: 'loaded',
      loaded: { what: 'changes', list: { changes, checked_out: 'main' }, reports },
    })
    expect(player.text()).toContain('› add-login')
    expect(player.text()).toContain('a-new-one')
  })

  test('/ filters by name while typing; its letters are no keys; Esc shows all', () => {
    const player = selecting().type('/q')
    expect(player.text()).toContain('No change has "q" in its name')
    player.type('\u007Fgreet')
    expect(player.text()).toContain('add-greeting')
    expect(player.text()).not.toContain('polish-cli')
    expect(player.type('\u001B').text()).toContain('polish-cli')
  })

  test('Enter joins a loop that runs, and opens what does not', () => {
    const player = selecting()
    player.asked()
    expect(player.type('\r').asked()).toEqual([{ do: 'follow', change: 'add-greeting' }])
    expect(player.model.at).toBe('loop')
    player.type('\u001B')
    expect(player.model.at).toBe('select')
    player.asked()
    player.type('\u001B[B\r')
    expect(player.model.at).toBe('preview')
    expect(player.asked()).toContainEqual({ do: 'load', load: { what: 'detail', change: 'polish-cli' } })
  })

  test('r runs what is open and resumes what has stopped', () => {
    const player = selecting().type('\u001B[B')
    player.asked()
    expect(player.type('r').asked()).toContainEqual({
      do: 'start',
      change: 'polish-cli',
      how: 'resume',
      flags: {},
    })
    const other = selecting().type('\u001B[B\u001B[B')
    other.asked()
    expect(other.type('r').asked()).toContainEqual({
      do: 'start',
      change: 'add-login',
      how: 'loop',
      flags: {},
    })
  })

  test('q quits, and Ctrl-C too', () => {
    expect(selecting().type('q').asked()).toContainEqual({ do: 'quit', exitCode: 0, words: [] })
    expect(selecting().type('\u0003').asked()).toContainEqual({ do: 'quit', exitCode: 0, words: [] })
  })

  test('no change at all: how to make one', () => {
    const player = new Player({ at: 'select' })
    player.hear({ type: 'loaded', loaded: { what: 'changes', list: { changes: [] }, reports: [] } })
    expect(player.text()).toContain('openspec/changes/<name>/tasks.md')
  })

  test('a loop in another work tree whose change is not here can be joined', () => {
    const player = new Player({ at: 'select' }, { columns: 80, rows: 24 })
    const elsewhere = [reported('far-away', { alive: true })]
    player.hear({
      type: 'loaded',
      loaded: { what: 'changes', list: { changes: [open] }, reports: elsewhere },
    })
    expect(player.text()).toContain('› far-away')
  })
})

const plan: DryRun = {
  change_id: 'add-login',
  branch: 'ralph/add-login',
  original_branch: 'main',
  worktree: '/repo',
  own_worktree: false,
  done_criteria: 'tasks',
  agents: ['claude'],
  billing: {},
  gates: ['npm test'],
  gate_offered: '',
  on_complete: 'ask',
  stories_total: 2,
  max_retries: 3,
  max_iterations: 8,
  warnings: [],
  stories: [
    {
      id: '1',
      title: 'Form',
      status: 'open',
      tasks_done: 0,
      tasks_total: 2,
      prompt: 'You work on story 1.\n\n- the form',
    },
    {
      id: '2',
      title: 'Session',
      status: 'open',
      tasks_done: 0,
      tasks_total: 1,
      prompt: 'You work on story 2.',
    },
  ],
}

async function previewing(size = { columns: 80, rows: 24 }): Promise<Player> {
  const player = selecting(size).type('\u001B[B\u001B[B\r')
  player.hear({
    type: 'loaded',
    loaded: {
      what: 'detail',
      change: 'add-login',
      detail: {
        name: 'add-login',
        title: 'A login',
        stories: [
          {
            id: '1',
            title: 'Form',
            status: 'open',
            tasks: [
              { id: '1.1', text: 'the form', state: 'done', line: 2 },
              { id: '1.2', text: 'ask the designers', state: 'human', line: 3 },
            ],
          },
          {
            id: '2',
            title: 'Session',
            status: 'open',
            tasks: [{ id: '2.1', text: 'a cookie', state: 'open', line: 5 }],
          },
        ],
        scenarios: [
          {
            capability: 'login',
            requirement: 'A login by name',
            name: 'The name is known',
            steps: ['- **GIVEN** a user', '- **WHEN** they log in', '- **THEN** they are in'],
          },
        ],
        lints: ['tasks.md:9 this line is no task'],
      },
    },
  })
  return planned(player, {})
}

async function planned(player: Player, flags: RawFlags): Promise<Player> {
  const settings = await loadConfig({ flags, env: { XDG_CONFIG_HOME: '/nonexistent' } })
  return player.hear({ type: 'loaded', loaded: { what: 'plan', change: 'add-login', settings, plan } })
}

describe('before a run', () => {
  test.each(['Stories', 'Scenarios', 'Prompt', 'Settings'])('%s', async (tab) => {
    const player = await previewing()
    while (!player.text().includes(`[${tab}]`)) player.type('\t')
    await expect(player.text()).toMatchFileSnapshot(`./golden/preview-${tab.toLowerCase()}-80x24.txt`)
  })

  test('→ shows the prompt of the next story, word for word', async () => {
    const player = (await previewing()).type('3\u001B[C')
    expect(player.text()).toContain('You work on story 2.')
  })

  test('a setting is changed for this run: asked for again with it, and started with it', async () => {
    const player = (await previewing()).type('4\u001B[B\u001B[B\r')
    player.asked()
    player.type('\u00151\r')
    const flags = { max_retries: '1' }
    expect(player.asked()).toEqual([{ do: 'load', load: { what: 'plan', change: 'add-login', flags } }])
    await planned(player, flags)
    expect(player.text()).toMatch(/retries +1 +for this run/)
    expect(player.type('r').asked()).toEqual([{ do: 'start', change: 'add-login', how: 'loop', flags }])
    expect(player.text()).toContain('Starting…')
    expect(player.type('r').asked()).toEqual([])
  })

  test('what a setting cannot be is said while its field is open, and nothing is changed by it', async () => {
    const player = (await previewing()).type('4\u001B[B\u001B[B\r')
    player.asked()
    player.type('\u0015abc\r')
    expect(player.asked()).toEqual([])
    expect(player.text()).toContain('! retries must be a whole number, 0 or more, such as 3, not "abc"')
    expect(player.model.preview).toMatchObject({ flags: {}, editor: expect.anything() as unknown })
    expect(player.type('\u00152').text()).not.toContain('must be')
    expect(player.type('\r').model.preview?.flags).toEqual({ max_retries: '2' })
    player.type('\r\u0015x\r')
    expect(player.type('\u001B').text()).not.toContain('must be')
    player.type('\u001B[A\u001B[A\r\u0015nobody\r')
    expect(player.text()).toMatch(/! agent: there is no agent "nobody"\n {3}it can be: claude, codex/)
  })

  test('an empty field takes the change back; Esc leaves it as it was', async () => {
    const player = (await previewing()).type('4\r\u0015codex\r')
    expect(player.model.preview?.flags).toEqual({ agent: 'codex' })
    player.type('\r\u0015gemini\u001B')
    expect(player.model.preview?.flags).toEqual({ agent: 'codex' })
    await planned(player, { agent: 'codex' })
    player.type('\r\u0015\r')
    expect(player.model.preview?.flags).toEqual({})
  })

  test('a start that is refused says why, here; one that began is followed', async () => {
    // What is typed for a search is no command: the "r" of "number" would start an agent.
    const deaf = (await previewing()).type('/number')
    expect(deaf.model.preview?.isStarting).toBe(false)
    expect(deaf.text()).toContain('there is no search here')
    expect(deaf.type('\rr').model.preview?.isStarting).toBe(true)
    const player = (await previewing()).type('r')
    const act = { do: 'start', change: 'add-login', how: 'loop', flags: {} } as const
    player.hear({ type: 'failed', act, message: 'Another loop is running.', hint: '', exitCode: 7 })
    expect(player.text()).toContain('! Another loop is running.')
    player.type('r').hear({ type: 'started', change: 'add-login' })
    expect(player.model.at).toBe('loop')
    expect(player.asked()).toContainEqual({ do: 'follow', change: 'add-login' })
  })

  test('a start from the list looks at nothing else; where it is refused, the change is read, and why stays', async () => {
    const player = selecting().type('\u001B[B')
    const start = { do: 'start', change: 'polish-cli', how: 'resume', flags: {} } as const
    player.asked()
    expect(player.type('r').asked()).toEqual([start])
    player.hear({ type: 'failed', act: start, message: 'No agent is installed.', hint: '', exitCode: 6 })
    expect(player.asked()).toEqual([
      { do: 'load', load: { what: 'detail', change: 'polish-cli' } },
      { do: 'load', load: { what: 'plan', change: 'polish-cli', flags: {}, isResumed: true } },
    ])
    const settings = await loadConfig({ flags: {}, env: { XDG_CONFIG_HOME: '/nonexistent' } })
    player.hear({ type: 'loaded', loaded: { what: 'plan', change: 'polish-cli', settings, plan } })
    expect(player.text()).toContain('! No agent is installed.')
  })

  test('why a start would be refused is there before', async () => {
    const player = await previewing()
    const settings = await loadConfig({ flags: {}, env: { XDG_CONFIG_HOME: '/nonexistent' } })
    const hint = 'Install one.\nOr name another: ralph config'
    const refused = { message: 'No agent is installed.', hint, exit_code: 6 }
    player.hear({
      type: 'loaded',
      loaded: { what: 'plan', change: 'add-login', settings, plan: { ...plan, refused } },
    })
    expect(player.text()).toMatch(
      /! No agent is installed\. Install one\. *\n *Or name another: ralph config/,
    )
    player.hear({
      type: 'loaded',
      loaded: { what: 'plan', change: 'add-login', settings, plan: { ...plan, agents: [], refused } },
    })
    expect(player.text()).toMatch(/Install one\. *\n *Here: agent, or agent command, under Settings \(4\)\./)
  })

  test('a wide screen has what each setting is for, whole; an own agent is from where its command is', async () => {
    const player = await previewing({ columns: 120, rows: 60 })
    const env = { XDG_CONFIG_HOME: '/nonexistent', RALPH_AGENT_COMMAND: './agent.sh' }
    const settings = await loadConfig({ flags: {}, env })
    player.hear({ type: 'loaded', loaded: { what: 'plan', change: 'add-login', settings, plan } }).type('4')
    expect(player.text()).toMatch(/agent +your own: agent_command +variable /)
    const words = player.text().replaceAll(/[│\s]+/g, ' ')
    expect(words).toContain('first attempt; 0 = one')
    for (const row of player.lines().slice(3, 30)) expect(row.slice(80)).not.toContain('…')
  })

  test('gates that are there and not used are offered', async () => {
    const player = await previewing()
    const settings = await loadConfig({ flags: {}, env: { XDG_CONFIG_HOME: '/nonexistent' } })
    const gateless = { ...plan, gates: [], gate_offered: 'npm test' }
    player.hear({
      type: 'loaded',
      loaded: { what: 'plan', change: 'add-login', settings, plan: gateless },
    })
    expect(player.lines()[1]).toContain('claude · no gates (found npm test)')
  })

  test('Esc goes back to all changes', async () => {
    expect((await previewing()).type('\u001B').model.at).toBe('select')
  })
})
