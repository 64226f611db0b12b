// The full screen of the built program on a headless terminal, with real loops in processes of their own: every flow from its start to its end.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath } from '../agents/kit.ts'
import { goodAgent, ralph, scratch, start, tasksOf, type Scratch } from './harness.ts'
import { onScreen } from './screen.ts'
import { install } from './usage-kit.ts'

/** Each iteration waits for its file; what it was asked is kept beside the repository. */
function steered(at: Scratch): {
  readonly agent: string
  readonly go: (n: number) => void
  readonly prompt: (n: number) => string
} {
  const agent = at.script(
    'agent.sh',
    `#!/bin/sh
cat > "${at.root}/prompt-$RALPH_ITERATION"
echo "working on $RALPH_ITERATION"
while [ ! -e "${at.root}/go-$RALPH_ITERATION" ]; do sleep 0.05; done
echo "$RALPH_STORY" > "story-$RALPH_STORY.txt"
echo "<promise>COMPLETE</promise>"
`,
  )
  return {
    agent,
    go: (n) => writeFileSync(join(at.root, `go-${n}`), ''),
    prompt: (n) => readFileSync(join(at.root, `prompt-${n}`), 'utf8'),
  }
}

const whole = { changed: [] } as const

async function aliveLoop(at: Scratch): Promise<boolean> {
  const report = JSON.parse((await ralph(at, ['status', 'demo', '--json'])).stdout) as { alive: boolean }
  return report.alive
}

/** Whom nobody has waited for is dead all the same. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

describe('a loop on its full screen', () => {
  test('from the list to the result: open, run, keep, quit', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    at.write('ralph.yaml', `agent_command: '${goodAgent}'\n`)
    const screen = onScreen(at, [])
    await screen.until(/demo +○ open/)
    screen.type('\r')
    await screen.until('Story 2')
    screen.type('r')
    await screen.until('enter do it')
    screen.type('c')
    await screen.until(/› cleanup/)
    screen.type('\r')
    await screen.until(/Summary/)
    expect(at.git('branch', '--show-current')).toBe('main')
    screen.type('q')
    const end = await screen.ended
    expect(end).toMatchObject({ code: 0, ...whole })
    expect(at.state()).toMatchObject({ status: 'done', choice: 'cleanup' })
    expect(at.read('story-2.txt')).toBe('work of 2\n')
  })

  test('ralph loop: its exit code is that of the loop, after the choice', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = onScreen(at, [
      'loop',
      'demo',
      '--agent-command',
      'echo "<promise>FAILED: no way</promise>"',
      '--max-retries',
      '1',
    ])
    await screen.until('Summary')
    expect(screen.text()).toMatch(/[Ss]tuck/)
    screen.type('q')
    const end = await screen.ended
    expect(end).toMatchObject({ code: 3, ...whole })
    expect(at.state()).toMatchObject({ status: 'stuck' })
  })

  test('on_complete of the settings stands: nobody is asked', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = onScreen(at, ['loop', '--agent-command', goodAgent, '--on-complete', 'cleanup'])
    await screen.until('Summary')
    expect(at.git('branch', '--show-current')).toBe('main')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
    expect(at.state()).toMatchObject({ status: 'done', choice: 'cleanup' })
  })

  test('a manual loop asks on the screen: no, with what is missing; then yes; then where the work goes', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const { agent, go, prompt } = steered(at)
    go(1)
    const screen = onScreen(at, [
      'loop',
      'demo',
      '--done',
      'manual',
      '--task',
      'paint',
      '--agent-command',
      agent,
    ])
    await screen.until('Is it done?')
    await screen.until('enter do it')
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'human' })
    screen.type('m\r')
    await screen.until('What is missing?')
    screen.type('the door is still white\r')
    await screen.until('working on 2')
    go(2)
    await screen.until((text) => text.includes('Is it done?') && text.includes('enter do it'))
    expect(prompt(2)).toContain('the door is still white')
    screen.type('d\r')
    await screen.until((text) => text.includes('What should happen') && text.includes('enter do it'))
    expect(at.state()).toMatchObject({ status: 'done', done_criteria: 'manual' })
    screen.type('\r')
    await screen.until('Summary')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
    expect(at.state()).toMatchObject({ status: 'done', choice: 'keep' })
  })

  test('before a resume: the settings of the run that goes on, not those of a new one', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const failing = 'echo "<promise>FAILED: no way</promise>"'
    await ralph(at, ['loop', 'demo', '--agent-command', failing, '--max-retries', '1', '--verify', 'true'])
    expect(at.state()).toMatchObject({ status: 'stuck' })
    const screen = onScreen(at, [])
    await screen.until(/demo .*stuck/)
    screen.type('\r')
    await screen.until('Story 1')
    screen.type('4')
    await screen.until(/retries +1 +from its start/)
    expect(screen.text()).toMatch(/gates +true +from its start/)
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
  })

  test('what is refused is said on the plain terminal, with its exit code', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = onScreen(at, ['loop', 'demo', '--agent', 'command'])
    const end = await screen.ended
    expect(end).toMatchObject({ code: 2, ...whole })
    expect(end.text).toContain('error: --agent command needs --agent-command CMD')
    expect(existsSync(join(at.repo, '.git/ralph'))).toBe(false)
    const other = onScreen(at, ['resume', 'demo'])
    expect(await other.ended).toMatchObject({
      code: 2,
      text: expect.stringContaining('There is no run of demo') as string,
    })
  })

  test('a start that few expect is asked about first, on the plain terminal', async () => {
    const at = scratch({ tasks: '' })
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', goodAgent])
    await screen.until('Start it? [y/N]')
    screen.type('n\r')
    const end = await screen.ended
    expect(end).toMatchObject({ code: 2, ...whole })
    expect(end.text).toContain('error: Not started.')
  })

  test('--no-tui, a dumb terminal and a CI have plain lines', async () => {
    const words = ['loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'keep']
    for (const [more, env] of [
      [['--no-tui'], {}],
      [[], { TERM: 'dumb' }],
      [[], { CI: '1' }],
      [[], { RALPH_NO_TUI: 'true' }],
    ] as const) {
      const at = scratch({ tasks: tasksOf(1) })
      const end = await onScreen(at, [...words, ...more], { env }).ended
      expect(end).toMatchObject({ code: 0, ...whole })
      expect(end.text).toMatch(/saved [0-9a-f]{7}/)
    }
  })

  test('ralph --no-tui prints the changes, and before a command it is as after it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const home = await onScreen(at, ['--no-tui']).ended
    expect(home).toMatchObject({ code: 0, ...whole })
    expect(home.text).toContain('demo')
    const words = ['--no-tui', 'loop', 'demo', '--agent-command', goodAgent, '--on-complete', 'keep']
    const end = await onScreen(at, words).ended
    expect(end).toMatchObject({ code: 0, ...whole })
    expect(end.text).toMatch(/saved [0-9a-f]{7}/)
  })
})

describe('stop, pause, note, skip', () => {
  test('q asks first; s says what it does and does it: the agent is ended, the attempt kept, the loop stopped', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent } = steered(at)
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent])
    await screen.until('working on 1')
    screen.type('q')
    await screen.until('Quit?')
    expect(at.state().status).toBe('running')
    screen.type('s')
    await screen.until('Stopping: the agent is ended')
    await screen.until('Summary')
    expect(screen.text()).toContain('stopped by you')
    screen.type('q')
    const end = await screen.ended
    expect(end).toMatchObject({ code: 130, ...whole })
    expect(at.state()).toMatchObject({ status: 'stopped', stop_reason: 'signal' })
    expect(at.state().iterations).toMatchObject([{ verdict: 'interrupted' }])
    expect(await aliveLoop(at)).toBe(false)
  })

  test('Ctrl-C three times within three seconds kills it, whatever the agent does, and the screen is gone', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const stubborn = at.script(
      'stubborn.sh',
      `#!/bin/sh\ntrap '' TERM INT HUP\necho $$ > '${at.root}/pid'\necho "working on 1"\nwhile :; do sleep 0.2; done\n`,
    )
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', stubborn])
    await screen.until('working on 1')
    screen.type('\u0003\u0003\u0003')
    const end = await screen.ended
    expect(end).toMatchObject({ code: 130, ...whole })
    expect(end.text).toContain('ralph resume demo')
    // By then, not soon after: who has quit has nobody to ask any more.
    expect(isAlive(Number(readFileSync(join(at.root, 'pid'), 'utf8')))).toBe(false)
    expect(await aliveLoop(at)).toBe(false)
  })

  test('p pauses after this attempt, and p again goes on', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent, go } = steered(at)
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
    await screen.until('working on 1')
    screen.type('p')
    await screen.until('pauses after this')
    go(1)
    await screen.until('paused before the next attempt')
    go(2)
    screen.type('p')
    await screen.until('Summary')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
    expect(at.state()).toMatchObject({ status: 'done' })
  })

  test('n: a note reaches the next prompt, and only that one', async () => {
    const at = scratch({ tasks: tasksOf(3) })
    const { agent, go, prompt } = steered(at)
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
    await screen.until('working on 1')
    screen.type('n')
    screen.type('the page is in src/web')
    await screen.until('the page is in src/web')
    screen.type('\r')
    await screen.until('The next prompt of demo has your note.')
    expect(at.state()).toMatchObject({ for_next_prompt: ['the page is in src/web'] })
    go(1)
    await screen.until('working on 2')
    go(2)
    go(3)
    await screen.until('Summary')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
    expect([1, 2, 3].map((n) => prompt(n).includes('the page is in src/web'))).toEqual([false, true, false])
  })

  test('s ends the wait for a limit: the agent is asked now', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    install(at, 'claude', `#!/bin/sh\nexec '${agentPath('claude-limited-once.mjs')}'\n`)
    const env = { AGENT_RESET_SECONDS: '3000', AGENT_STATE: join(at.root, 'runs') }
    const screen = onScreen(at, ['loop', 'demo', '--agent', 'claude', '--on-complete', 'keep'], { env })
    await screen.until('s asks now')
    screen.type('s')
    await screen.until('Summary')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
    expect(at.state().iterations.map(({ verdict }) => verdict)).toEqual(['limit', 'complete'])
  })
})

describe('leaving and joining', () => {
  test('d leaves the loop running; attach joins it, with what happened so far', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent, go } = steered(at)
    const first = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
    await first.until('working on 1')
    first.type('d')
    const left = await first.ended
    expect(left).toMatchObject({ code: 0, ...whole })
    expect(left.text).toContain('ralph attach demo')
    expect(await aliveLoop(at)).toBe(true)
    const second = onScreen(at, ['attach'])
    await second.until('working on 1')
    go(1)
    await second.until('working on 2')
    go(2)
    await second.until('Summary')
    second.type('q')
    expect(await second.ended).toMatchObject({ code: 0, ...whole })
    const third = onScreen(at, ['attach', 'demo'])
    await third.until('working on 2')
    third.type('q')
    expect(await third.ended).toMatchObject({ code: 0, ...whole })
  })

  test.each(['SIGKILL', 'SIGHUP', 'SIGTERM'] as const)(
    '%s of the screen: the loop goes on',
    async (signal) => {
      const at = scratch({ tasks: tasksOf(1) })
      const { agent, go } = steered(at)
      const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
      await screen.until('working on 1')
      screen.kill(signal)
      const end = await screen.ended
      // After kill -9 it is the guard that gives it back.
      expect(end).toMatchObject(whole)
      expect(await aliveLoop(at)).toBe(true)
      const other = onScreen(at, ['attach'])
      await other.until('working on 1')
      go(1)
      await other.until('Summary')
      other.type('q')
      expect(await other.ended).toMatchObject({ code: 0, ...whole })
      expect(at.state()).toMatchObject({ status: 'done' })
    },
  )

  test('a terminal that is closed: the loop goes on to its end', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const { agent, go } = steered(at)
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
    await screen.until('working on 1')
    screen.close()
    await screen.ended
    expect(await aliveLoop(at)).toBe(true)
    go(1)
    while (await aliveLoop(at));
    expect(at.state()).toMatchObject({ status: 'done' })
  })

  test('a loop that was killed: attach shows what happened, and writes nothing', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const { agent } = steered(at)
    const loop = start(at, ['loop', 'demo', '--agent-command', agent])
    await loop.seen((out) => out.includes('working on 1'))
    const talk = join(at.repo, '.git/ralph/changes/demo/talk')
    while (
      !existsSync(talk) ||
      !readdirSync(talk).some((name) => readFileSync(join(talk, name), 'utf8').includes('working'))
    );
    loop.child.kill('SIGKILL')
    await loop.ended
    const screen = onScreen(at, ['attach'])
    await screen.until((text) => text.includes('working on 1') && /died|dead|killed/.test(text))
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
  })

  test('resume of a paused loop lets it go on and joins it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent, go } = steered(at)
    const loop = start(at, ['loop', 'demo', '--agent-command', agent])
    await loop.seen((out) => out.includes('working on 1'))
    await ralph(at, ['pause'])
    await loop.seen((out) => out.includes('pausing after this attempt'))
    go(1)
    await loop.seen((out) => out.includes('paused'))
    const screen = onScreen(at, ['resume'])
    await screen.until('working on 2')
    go(2)
    await screen.until('Summary')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
    expect((await loop.ended).code).toBe(0)
  })

  test('two screens on one loop see the same, and either can stop it', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const { agent, go } = steered(at)
    const one = onScreen(at, ['loop', 'demo', '--agent-command', agent])
    await one.until('working on 1')
    const two = onScreen(at, ['attach', 'demo'], { columns: 80, rows: 24 })
    await two.until('working on 1')
    go(1)
    await Promise.all([one.until('working on 2'), two.until('working on 2')])
    two.type('qs')
    await Promise.all([one.until('enter do it'), two.until('enter do it')])
    for (const screen of [one, two]) {
      screen.type('\u001B')
      await screen.until('Summary')
      screen.type('q')
    }
    expect(await one.ended).toMatchObject({ code: 130, ...whole })
    expect(await two.ended).toMatchObject({ code: 0, ...whole })
  })
})

test('CJK and emoji: every row of every screen ends where the window does, from 60x20 to 300x100', async () => {
  const at = scratch({
    tasks:
      '## 1. 用户登录 ✅\n\n- [ ] 1.1 👋🏽 👨‍👩‍👧 日本語で挨拶する、とても長い文章なので折り返されるはずです。한국어도 있습니다\n',
  })
  at.write('openspec/changes/demo/proposal.md', '# 다국어 인사 日本語 用户\n\n## Why\n理由\n')
  const { agent, go } = steered(at)
  const said = agent.replace('agent.sh', 'cjk.sh')
  writeFileSync(
    said,
    readFileSync(agent, 'utf8').replace('working on', '日本語で言います 👋✅、working on'),
    {
      mode: 0o755,
    },
  )
  at.write('ralph.yaml', `agent_command: '${said}'\n`)
  const screen = onScreen(at, [], { columns: 300, rows: 100 })
  const everywhere = async (wanted: string): Promise<void> => {
    for (const [columns, rows] of [
      [60, 20],
      [80, 24],
      [140, 45],
      [300, 100],
    ] as const) {
      screen.resize(columns, rows)
      const isWhole = (text: string): boolean => {
        const begins = text.split('\n').findIndex((row) => row.includes('╭'))
        const within = Array.from({ length: rows - 3 }, (_, row) => row).slice(begins + 1)
        return begins !== -1 && within.every((row) => screen.cell(row, columns - 1) === '│')
      }
      // The frame's last row stands above the keys. A picture may be read while it is drawn.
      await screen.until(
        (text) => text.includes(wanted) && screen.cell(rows - 3, columns - 1) === '╯' && isWhole(text),
      )
    }
  }
  await screen.until(/demo +○ open/)
  screen.type('\r')
  await everywhere('用户登录')
  screen.type('r')
  await everywhere('日本語で言います')
  screen.type('2')
  await everywhere('[Tasks]')
  go(1)
  await everywhere('What should happen')
  await screen.until('enter do it')
  screen.type('\u001B')
  await everywhere('Summary')
  screen.type('q')
  expect(await screen.ended).toMatchObject({ code: 0, ...whole })
})

describe('the terminal', () => {
  test('16 colours that the theme decides about, none with NO_COLOR, and the wheel scrolls', async () => {
    const at = scratch({ tasks: tasksOf(40).replace('[ ]', '[x]') })
    for (const [env, colours] of [
      [{ NO_COLOR: undefined }, /\u001B\[3[1-6]m/],
      [{ NO_COLOR: '1' }, undefined],
    ] as const) {
      const screen = onScreen(at, [], { columns: 80, rows: 24, env })
      await screen.until(/demo +○ open/)
      screen.type('\r')
      await screen.until('Story 1')
      // The wheel is told as SGR.
      screen.type('\u001B[<65;10;10M'.repeat(30))
      await screen.until((text) => !text.includes('Story 1 ') && /\d of \d+/.test(text))
      screen.type('\u001B[<64;10;10M'.repeat(30))
      await screen.until('Story 1 ')
      screen.type('q')
      expect(await screen.ended).toMatchObject({ code: 0, ...whole })
      // 256 colours, 24 bits, and a background of its own would not fit every theme.
      expect(screen.raw()).not.toMatch(/\u001B\[(?:3[07]|4\d|9\d|10\d|[34]8;)/)
      if (colours === undefined) expect(screen.raw()).not.toMatch(/\u001B\[(?:3[0-7]|9\d)m/)
      else expect(screen.raw()).toMatch(colours)
    }
  })

  test('Ctrl-Z gives it back while the screens are stopped, fg draws them again, in a window of another size', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const { agent, go } = steered(at)
    const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'], {
      hasJobs: true,
    })
    await screen.until('working on 1')
    screen.type('\u001A')
    await screen.until('stopped with')
    expect(screen.raw()).toContain('The loop goes on; fg brings the screens back.')
    expect(screen.changed()).toEqual([])
    expect(await aliveLoop(at)).toBe(true)
    screen.resize(80, 24)
    screen.type('\r')
    await screen.until(
      (text) => text.includes('working on 1') && text.split('\n')[22]?.startsWith(' q quit') === true,
    )
    expect(screen.changed()).toContain('the cursor')
    screen.kill('SIGTSTP')
    // The first time still stands there.
    await screen.until(() => screen.raw().split('stopped with').length === 3 && screen.changed().length === 0)
    screen.type('\r')
    await screen.until('working on 1')
    go(1)
    await screen.until('Summary')
    screen.type('q')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
  })

  test('Ctrl-Z where no shell could let it go on: the screens stay', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = onScreen(at, [])
    await screen.until(/demo +○ open/)
    screen.type('\u001A?')
    await screen.until('show only names with these letters')
    screen.type('qq')
    expect(await screen.ended).toMatchObject({ code: 0, ...whole })
  })

  test.each(['throw', 'reject'] as const)(
    'a bug in the screens (%s): it is given back before the bug is told',
    async (how) => {
      const at = scratch({ tasks: tasksOf(1) })
      const { agent, go } = steered(at)
      const bug = join(at.root, 'bug.cjs')
      const fails = how === 'throw' ? 'throw new Error("a bug")' : 'Promise.reject(new Error("a bug"))'
      writeFileSync(bug, `process.on('SIGUSR2', () => setImmediate(() => { ${fails} }))\n`)
      const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'], {
        env: { NODE_OPTIONS: `--require ${bug}` },
      })
      await screen.until('working on 1')
      screen.kill('SIGUSR2')
      const end = await screen.ended
      expect(end).toMatchObject({ code: 1, ...whole })
      expect(end.text).toContain('Error: a bug')
      expect(await aliveLoop(at)).toBe(true)
      go(1)
      while (await aliveLoop(at));
      expect(at.state()).toMatchObject({ status: 'done' })
    },
  )
})

test('a flood at full speed: resized in the middle of it, and a key is answered', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const block = join(at.root, 'block')
  writeFileSync(block, 'All work and no play makes an agent print.\n'.repeat(1500))
  const agent = `while [ ! -e ${at.root}/go ]; do cat ${block}; done; echo "<promise>COMPLETE</promise>"`
  const screen = onScreen(at, ['loop', 'demo', '--agent-command', agent, '--on-complete', 'keep'])
  await screen.until('All work and no play')
  for (const [columns, rows] of [
    [60, 20],
    [140, 45],
    [80, 24],
  ] as const) {
    screen.resize(columns, rows)
    // The keys are on the last row that is drawn, whatever the size.
    await screen.until((text) => text.split('\n')[rows - 2]?.startsWith(' q quit') === true)
    expect(screen.text()).toContain('All work and no play')
  }
  screen.type('?')
  await screen.until('search in what is shown')
  screen.type('?')
  await screen.until('All work and no play')
  writeFileSync(join(at.root, 'go'), '')
  await screen.until('Summary')
  screen.type('q')
  expect(await screen.ended).toMatchObject({ code: 0, ...whole })
})
