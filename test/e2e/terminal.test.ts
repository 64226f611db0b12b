// The built program on a real pseudo terminal: title, question, Ctrl-C, and what is left of the terminal.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { goodAgent, program, ralph, scratch, tasksOf } from './harness.ts'
import { onTerminal, shellOnTerminal as terminal } from './on-terminal.ts'

const loop = (agent: string, more = ''): string =>
  `"${process.execPath}" "${program}" loop demo --agent-command '${agent}' ${more}`
const hanging = 'echo working; exec tail -f /dev/null'

describe('on a terminal', () => {
  test('R5: a terminal that goes away stops the loop in order, with the exit code of a HUP', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const shell = terminal(at, `trap "" HUP; ${loop(hanging)}; echo $? > ../code`)
    await shell.until((raw) => raw.includes('working'))
    shell.close()
    await shell.exited
    expect(readFileSync(join(at.repo, '..', 'code'), 'utf8').trim()).toBe('129')
    expect(at.state()).toMatchObject({ status: 'stopped' })
  })

  test('B11: ralph stop at the last question of a run that is done closes it, and advises no resume', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const shell = terminal(at, loop(goodAgent))
    await shell.until((raw) => raw.includes('later'))
    const stopped = await ralph(at, ['stop', 'demo'])
    expect(stopped.stdout).toContain('demo was done already')
    expect(stopped.stdout).toContain('  next   ralph finish demo --cleanup')
    expect(stopped.stdout).not.toContain('resume')
    await shell.exited
    expect(at.state()).toMatchObject({ status: 'done' })
  })

  test('R5: a loop that nohup started outlives a HUP', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `kill -HUP $PPID; ${goodAgent}`
    const shell = terminal(at, `nohup ${loop(agent)} > ../out 2>&1; echo "exit $?"`)
    await shell.exited
    expect(shell.raw()).toContain('exit 0')
    expect(at.state()).toMatchObject({ status: 'done' })
  })

  const titles = (raw: string): string[] =>
    [...raw.matchAll(/\u001B\]0;([^\u0007]*)\u0007|\u001B\[2([23]);0t/g)].map(
      ([, title, stack]) => title ?? (stack === '2' ? 'saved' : 'restored'),
    )

  test('S004-title: the title tells the iteration and then the status, which stays when the program has gone', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, loop(goodAgent, '--on-complete keep'))
    expect((await screen.exited).exitCode).toBe(0)
    const status = 'Ralph: demo [done]'
    expect(titles(screen.raw())).toEqual(['saved', 'Ralph: demo [1/4]', status, 'restored', status])
  })

  test('S004-title: the question at the end has the status in the title', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, loop(goodAgent))
    await screen.until((raw) => raw.includes('squash, keep or later?'))
    expect(titles(screen.raw())).toEqual(['saved', 'Ralph: demo [1/4]', 'Ralph: demo [done]'])
    screen.type('later\r')
    await screen.exited
    expect(titles(screen.raw()).at(-1)).toBe('Ralph: demo [done]')
  })

  test('S004-title: a loop that never began gives the title back', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('.git/MERGE_HEAD', `${at.git('rev-parse', 'HEAD')}\n`)
    const screen = terminal(at, loop(goodAgent))
    expect((await screen.exited).exitCode).toBe(2)
    expect(titles(screen.raw())).toEqual(['saved', 'restored'])
  })

  test('the completion question says what each choice does, by name of the branch; cleanup is done', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, loop(goodAgent))
    await screen.until((raw) => raw.includes('squash, keep or later?'))
    expect(screen.raw()).toMatch(/all changes on main, uncommitted/)
    expect(screen.raw()).toMatch(/stay on ralph\/demo/)
    expect(screen.raw().match(/\(a\s+backup\s+is\s+kept\)/g)).toHaveLength(2)
    screen.type('c\r')
    expect((await screen.exited).exitCode).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('main')
  })

  test('B2: what was typed while the loop ran answers no question at its end', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, loop(`until [ -e ../go ]; do sleep 0.05; done; ${goodAgent}`))
    await screen.until((raw) => raw.includes('Story 1'))
    screen.type('keep\r')
    await screen.until((raw) => raw.includes('keep'))
    writeFileSync(join(at.root, 'go'), '')
    await screen.until((raw) => raw.includes('squash, keep or later?'))
    screen.type('c\r')
    expect((await screen.exited).exitCode).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('main')
  })

  test('F3: Enter while the live line is there leaves no copy of it behind; the terminal stays as it was', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `echo working; until [ -e ../go ]; do sleep 0.05; done; ${goodAgent}`
    const screen = terminal(at, `${loop(agent, '--on-complete keep')}; stty -a`)
    await screen.until((raw) => raw.includes('working'))
    const seen = screen.raw().length
    screen.type('what is this\r')
    // The next frame goes up over the row that Enter has left.
    await screen.until((raw) => raw.slice(seen).includes('\r\u001B[1A\u001B[J'))
    writeFileSync(join(at.root, 'go'), '')
    await screen.exited
    expect(
      screen
        .raw()
        .slice(seen)
        .match(/\u001B\[1A/g),
    ).toHaveLength(1)
    expect(screen.raw()).toMatch(/ icanon/)
    expect(screen.raw()).toMatch(/ echo /)
  })

  test('F3: a loop in the background reads nothing of what is typed, and is not stopped by it', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const agent = `echo working; until [ -e ../go ]; do sleep 0.05; done; ${goodAgent}`
    const screen = terminal(
      at,
      `set -m; ${loop(agent, '--on-complete keep')} & read line; echo "got $line"; wait`,
    )
    await screen.until((raw) => raw.includes('working'))
    screen.type('mine\r')
    await screen.until((raw) => raw.includes('got mine'))
    writeFileSync(join(at.root, 'go'), '')
    await screen.exited
    expect(at.state()).toMatchObject({ status: 'done' })
  })

  test('F1: errors, hints and what finish says break between words at the width of the terminal', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    for (const args of [
      ['loop', 'demo'],
      ['finish', 'demo', '--keep'],
    ]) {
      const screen = onTerminal(at, args, at.repo, 50)
      await screen.exited
      const plain = stripVTControlCharacters(screen.raw().replaceAll(/\u001B\][^\u0007]*\u0007/g, ''))
      const lines = plain.trimEnd().split('\r\n')
      expect(lines.length).toBeGreaterThan(1)
      expect(lines.filter((line) => line.length >= 50)).toEqual([])
      const whole = await ralph(at, args)
      expect(lines.join(' ').replaceAll(/ +/g, ' ')).toBe(
        (whole.stderr + whole.stdout).trimEnd().replaceAll(/\s+/g, ' '),
      )
    }
  })

  test('F36: a squash at the question is one commit on the branch the user came from, and the last words say so', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, loop(goodAgent))
    await screen.until((raw) => raw.includes('cleanup, squash, keep or later?'))
    expect(screen.raw()).toMatch(/s {2}squash {4}all changes on main as one commit/)
    screen.type('s\r')
    expect((await screen.exited).exitCode).toBe(0)
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.git('log', '--format=%s')).toBe('Demo change\nstart')
    expect(at.git('status', '--porcelain')).toBe('')
    const commit = at.git('rev-parse', '--short=7', 'HEAD')
    expect(screen.raw()).toContain('The work is one commit on main')
    expect(screen.raw()).toMatch(new RegExp(`look +git show ${commit} +what was done`))
    expect(screen.raw()).not.toContain('take it')
    expect((await ralph(at, ['status', 'demo'])).stdout).toMatch(/work +one commit on main, [0-9a-f]{12}\n/)
  })

  test('F36: a squash that git refuses is told, and the loop has still succeeded', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    writeFileSync(join(at.repo, '.git/hooks/pre-commit'), '#!/bin/sh\necho no tabs please; exit 1\n', {
      mode: 0o755,
    })
    const screen = terminal(at, loop(goodAgent))
    await screen.until((raw) => raw.includes('squash, keep or later?'))
    screen.type('squash\r')
    expect((await screen.exited).exitCode).toBe(0)
    expect(screen.raw()).toContain('no tabs please')
    expect(screen.raw()).toContain('git commit -F')
    expect(screen.raw()).toContain('The work is on main, uncommitted.')
    expect(screen.raw()).not.toContain('The work is on ralph/demo')
    expect([at.git('log', '--format=%s'), at.git('branch', '--show-current')]).toEqual(['start', 'main'])
  })

  test('R5, F28: Ctrl-C once ends the agent, records it, asks nothing, and exits 130', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, `${loop(hanging)}; echo "code $?"; stty -a`)
    await screen.until((raw) => raw.includes('working'))
    screen.type('\u0003')
    await screen.exited
    expect(screen.raw()).toContain('code 130')
    expect(screen.raw()).not.toContain('squash, keep or later?')
    expect(screen.raw().match(/stopped by you/g)).toHaveLength(1)
    expect(screen.raw()).toMatch(/continue +ralph resume demo/)
    expect(screen.raw()).toMatch(/ icanon/)
    expect(screen.raw()).toMatch(/ echo /)
    expect(at.state()).toMatchObject({ status: 'stopped' })
    expect(at.state().iterations).toHaveLength(1)
  })

  test('W10: after Ctrl-C with nothing saved the user is back on their branch, and resume begins from there', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('mine.txt', 'mine\n')
    const screen = terminal(at, loop(hanging))
    await screen.until((raw) => raw.includes('working'))
    screen.type('\u0003')
    expect((await screen.exited).exitCode).toBe(130)
    expect(screen.raw()).toContain(
      'Nothing was finished: you are back on main, with your files as at the start.',
    )
    expect(at.git('branch', '--format=%(refname:short)')).toBe('main')
    expect(at.git('status', '--short')).toBe('?? mine.txt')
    // What the user does meanwhile on their own branch belongs to the next start.
    at.git('commit', '-q', '--allow-empty', '-m', 'meanwhile')
    const end = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(end.code).toBe(0)
    expect(at.state().iterations.map(({ n, verdict }) => [n, verdict])).toEqual([
      [1, 'interrupted'],
      [2, 'complete'],
    ])
    expect(at.git('log', '--format=%s', 'ralph/demo')).toBe('checkpoint: 1\ninitial state\nmeanwhile\nstart')
  })

  test('W10: after Ctrl-C with a story saved the work stays where it is', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const screen = terminal(at, loop(`if [ $RALPH_STORY = 1 ]; then ${goodAgent}; else ${hanging}; fi`))
    await screen.until((raw) => raw.includes('working'))
    screen.type('\u0003')
    expect((await screen.exited).exitCode).toBe(130)
    expect(at.git('branch', '--show-current')).toBe('ralph/demo')
    expect(screen.raw()).toMatch(/or +ralph finish demo --cleanup +uncommitted on main/)
  })

  test('F8: nothing was kept: no question, and the user is back on their branch with their files', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('mine.txt', 'mine\n')
    const giveUp = 'echo try > try.txt; echo "<promise>FAILED: no luck</promise>"'
    const screen = terminal(at, loop(giveUp, '--max-retries 0'))
    expect((await screen.exited).exitCode).toBe(3)
    expect(screen.raw()).not.toContain('squash, keep or later?')
    expect(screen.raw()).toContain(
      'Nothing was finished: you are back on main, with your files as at the start.',
    )
    expect(screen.raw().match(/no luck/g)).toHaveLength(2)
    expect(at.git('branch', '--show-current')).toBe('main')
    expect(at.git('status', '--porcelain')).toBe('?? mine.txt')
    expect((await ralph(at, ['diff', '1'])).stdout).toContain('try.txt')
    const resumed = await ralph(at, ['resume', 'demo', '--agent-command', goodAgent])
    expect(resumed.code).toBe(0)
    expect(at.read('mine.txt')).toBe('mine\n')
  })

  test('F4: a stuck run offers another try beside the rest; Enter decides nothing, and again goes on with the same agent', async () => {
    const at = scratch({ tasks: tasksOf(2) })
    const agent = `[ "$RALPH_STORY" = 1 ] || [ -e ../mended ] || { echo "<promise>FAILED: no luck</promise>"; exit; }; ${goodAgent}`
    // By the flag: the resume that `again` starts keeps to plain lines, too.
    const typed = loop(agent.replaceAll("'", "'\\''"), '--no-tui --max-retries 0')
    const screen = terminal(at, `unset RALPH_NO_TUI; ${typed}; echo "code $?"`)
    await screen.until((raw) => raw.includes('again, cleanup, squash, keep or later? [later]'))
    expect(screen.raw()).toMatch(/a {2}again {5}try the story again now, as `ralph resume` does/)
    writeFileSync(join(at.root, 'mended'), '')
    screen.type('again\r')
    await screen.until((raw) => raw.includes('cleanup, squash, keep or later? [keep]'))
    expect(screen.raw()).toContain('resumed')
    screen.type('keep\r')
    await screen.exited
    expect(screen.raw()).toContain('code 0')
    expect(at.state()).toMatchObject({ status: 'done', iterations: [{}, { verdict: 'failed' }, {}] })
  })

  test('R5: Ctrl-C twice forces; the terminal is sane and the next command puts the run in order', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const stubborn = 'trap "" INT TERM; echo working; while :; do sleep 1; done'
    const status = `"${process.execPath}" "${program}" status`
    const screen = terminal(at, `${loop(stubborn)}; echo "code $?"; stty -a; ${status}`)
    await screen.until((raw) => raw.includes('working'))
    screen.type('\u0003')
    await screen.until((raw) => raw.includes('Stopping… press Ctrl-C again'))
    screen.type('\u0003')
    await screen.exited
    expect(screen.raw()).toContain('code 130')
    expect(screen.raw()).toMatch(/ icanon/)
    expect(at.state()).toMatchObject({ status: 'stopped' })
    expect(at.state().iterations).toHaveLength(1)
  })

  test('R11: killed with -9 in mid-run it leaves the terminal sane', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, `${loop(hanging)}; stty -a; "${process.execPath}" "${program}" stop`)
    await screen.until((raw) => raw.includes('working'))
    process.kill(at.state().terminal_pid, 'SIGKILL')
    await screen.exited
    expect(screen.raw()).toMatch(/ icanon/)
    expect(screen.raw()).toMatch(/ echo /)
    expect(screen.raw()).not.toContain('\u001B[?25l')
    expect(at.state()).toMatchObject({ status: 'stopped' })
  })

  test('a manual loop asks whether it is done', async () => {
    const at = scratch({ tasks: '' })
    const screen = terminal(at, loop(goodAgent, '--on-complete keep'))
    await screen.until((raw) => raw.includes('Start it?'))
    screen.type('y\r')
    await screen.until((raw) => raw.includes('done? yes, no or later?'))
    expect(screen.raw()).toContain('\u001B]9;ralph needs you\u0007\u0007')
    screen.type('y\r')
    expect((await screen.exited).exitCode).toBe(0)
    expect(at.state()).toMatchObject({ status: 'done', done_criteria: 'manual' })
  })

  test('--no-tui: lines, the title and a live line, and never the full screen', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const screen = terminal(at, `unset RALPH_NO_TUI; ${loop(goodAgent, '--no-tui --on-complete keep')}`)
    expect((await screen.exited).exitCode).toBe(0)
    expect(screen.raw()).toMatch(/✓ saved [0-9a-f]{7}/)
    expect(screen.raw()).toContain('Ralph: demo [1/4]')
    expect(screen.raw()).toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
    expect(screen.raw()).not.toContain('\u001B[?1049h')
  })
})
