// Process groups with real processes: endings, survivors, timeouts (R1-R4, R7, R11, R16).
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startGroup, type Group, type GroupOptions } from '../../../src/adapters/process/group.ts'
import { findAlive, reapByMarker } from '../../../src/adapters/process/reap.ts'
import { makeTemp } from '../../../src/adapters/process/temp.ts'
import { bootId, isAlive, markedInPs, processIdentity, psTable } from '../../../src/adapters/process/table.ts'

let runId: string
let dir: string
let output: string
let onOutput: () => void

beforeEach(() => {
  runId = randomUUID()
  dir = mkdtempSync(join(tmpdir(), 'ralph-group-'))
  output = ''
  onOutput = () => undefined
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await reapByMarker(runId)
  rmSync(dir, { recursive: true, force: true })
})

describe('a program that ends by itself', () => {
  it('R1: its exit code is told', async () => {
    const group = await start('cat; exit 3', { input: 'the prompt' })
    expect(await group.ended).toEqual({ exitCode: 3, leftBehind: 0, survivors: [] })
    expect(output).toBe('the prompt')
  })

  it('R1: its signal is told, never as exit code 0', async () => {
    const group = await start('kill -9 $$')
    expect(await group.ended).toEqual({ signal: 'SIGKILL', leftBehind: 0, survivors: [] })
  })

  it.runIf(process.platform === 'linux')(
    'its end is one look at the processes, in a cage as well: whoever asks for strangers gets it',
    async () => {
      const plain = await start('true')
      // Both carry one marker: while the other runs it would be left behind by this one.
      expect(await plain.ended).toEqual({ exitCode: 0, leftBehind: 0, survivors: [] })
      // Says how it ended, as bubblewrap does.
      const says = ['-c', `echo '{"exit-code": 0}' >&3`]
      const caged = await start('true', {
        cage: ({ env }) => ({
          file: 'sh',
          args: says,
          making: says,
          env,
          tells: true,
          leave: () => Promise.resolve([]),
        }),
      })
      expect(await caged.ended).toEqual({ exitCode: 0, leftBehind: 0, survivors: [] })
      expect([plain.table, caged.table]).toEqual([expect.any(Array), expect.any(Array)])
    },
  )

  it('a missing program is an error at the start', async () => {
    await expect(start('', { file: 'no-such-program-anywhere', args: [] })).rejects.toMatchObject({
      code: 'ENOENT',
    })
  })

  it('P7: a prompt that the program does not read breaks nothing', async () => {
    const group = await start('exec 0<&-; exit 0', { input: 'x'.repeat(5_000_000) })
    expect(await group.ended).toMatchObject({ exitCode: 0 })
  })

  it('P7: a prompt of 1 MB arrives whole and is not in the arguments', async () => {
    const group = await start('wc -c; ps -o args= -p $$', { input: 'y'.repeat(1_000_000) })
    await group.ended
    expect(output).toContain('1000000')
    expect(output).not.toContain('yyy')
  })

  it('R11: it has no terminal', async () => {
    const group = await start('(: < /dev/tty) 2>/dev/null && echo tty || echo none')
    await group.ended
    expect(output).toBe('none\n')
  })

  it('P5: what is printed right before the exit is not lost', async () => {
    const group = await start('head -c 3000000 /dev/zero')
    await group.ended
    expect(output.length).toBe(3_000_000)
  })

  it('R3: a server that it leaves running is ended, and counted', async () => {
    const group = await start('tail -f /dev/null & echo started')
    const ended = await group.ended
    expect(ended).toMatchObject({ exitCode: 0, survivors: [] })
    expect(ended.leftBehind).toBeGreaterThan(0)
    expect(alive()).toEqual([])
  })

  it('R4: what went into a session of its own is ended', async () => {
    const group = await start(
      'setsid sh -c "trap \'\' TERM INT HUP; : > deaf; while :; do tail -f /dev/null & wait; done" & until [ -e deaf ]; do sleep 0.02; done',
    )
    expect(await group.ended).toMatchObject({ exitCode: 0, survivors: [] })
    expect(alive()).toEqual([])
  })

  it('R4: a child with a cleared environment dies with its parent', async () => {
    // The marker cannot find this one: its pid is asked for.
    writeFileSync(join(dir, 'tool.sh'), "env -i sh -c 'echo $$ > pid; exec tail -f /dev/null'\ntrue\n")
    const group = await start('setsid sh tool.sh & until [ -s pid ]; do sleep 0.02; done')
    await group.ended
    const pid = Number(readFileSync(join(dir, 'pid'), 'utf8'))
    expect(pid).toBeGreaterThan(1)
    expect(processIdentity(pid)).toBe('')
  })

  it.runIf(process.platform === 'linux').each(['2> /dev/null', '> /dev/null', '< /dev/null'])(
    'R4: an orphan with a cleared environment is found by the stream that it holds (%s), and counted',
    async (redirection) => {
      writeFileSync(join(dir, 'tool.sh'), 'echo $$ > pid; exec tail -f /dev/null')
      const group = await start(
        `env -i setsid sh tool.sh ${redirection} & until [ -s pid ]; do sleep 0.02; done`,
      )
      expect(await group.ended).toEqual({ exitCode: 0, leftBehind: 1, survivors: [] })
      expect(processIdentity(Number(readFileSync(join(dir, 'pid'), 'utf8')))).toBe('')
    },
  )

  it('R4: a child with a cleared environment that was seen once is ended, although its parent died first', async () => {
    writeFileSync(join(dir, 'tool.sh'), 'echo $$ > pid; exec tail -f /dev/null')
    const group = await start(
      'env -i setsid sh tool.sh > /dev/null 2>&1 & until [ -s pid ]; do sleep 0.02; done; echo ready; wait',
    )
    await said('ready')
    group.end('stopped')
    expect(await group.ended).toMatchObject({ signal: 'SIGINT', survivors: [] })
    expect(processIdentity(Number(readFileSync(join(dir, 'pid'), 'utf8')))).toBe('')
  })
})

describe('its streams', () => {
  const names = {
    stdin: 'cat /dev/stdin',
    stderr: 'echo no | tee /dev/stderr > /dev/null',
    stdout: 'echo out > /dev/stdout',
  }

  it('stdin and stderr can be opened by name', async () => {
    let errors = ''
    const group = await start(`${names.stdin} && ${names.stderr}`, {
      input: 'the prompt',
      onErrorOutput: (chunk) => {
        errors += chunk.toString('utf8')
      },
    })
    expect(await group.ended).toMatchObject({ exitCode: 0 })
    expect([output, errors]).toEqual(['the prompt', 'no\n'])
  })

  it('stdout can be opened by name where it is a pipe', async () => {
    const group = await start(names.stdout, { stdout: 'pipe' })
    expect(await group.ended).toMatchObject({ exitCode: 0 })
    expect(output).toBe('out\n')
  })

  it.each(['socket', 'pipe'] as const)(
    'P5: a writer that knows no EAGAIN loses nothing in a %s',
    async (stdout) => {
      let bytes = 0
      const group = await start('head -c 30000000 /dev/zero && head -c 3000000 /dev/zero >&2', {
        stdout,
        onOutput: (chunk) => {
          bytes += chunk.length
        },
        onErrorOutput: (chunk) => {
          bytes += chunk.length
        },
      })
      expect(await group.ended).toMatchObject({ exitCode: 0 })
      expect(bytes).toBe(33_000_000)
    },
  )

  it('leave nothing on disk while it runs', async () => {
    vi.stubEnv('TMPDIR', dir)
    const group = await start('ls -A', { cwd: dir, input: 'the prompt' })
    await group.ended
    expect(output).toBe('')
  })

  it('come from Node where a folder for them cannot be made, or its path is too long for a socket', async () => {
    const deep = join(dir, 'x'.repeat(120))
    mkdirSync(deep)
    for (const [name, value] of [
      ['TMPDIR', deep],
      ['PATH', dir],
    ] as const) {
      vi.stubEnv(name, value)
      output = ''
      const group = await start('read -r line; echo "$line"; exit 3', {
        file: '/bin/sh',
        input: 'the prompt',
      })
      expect(await group.ended).toMatchObject({ exitCode: 3 })
      expect(output).toBe('the prompt\n')
      expect(readdirSync(deep)).toEqual([])
      vi.unstubAllEnvs()
    }
  })

  it('are closed again when the program cannot be started', async () => {
    const openFiles = (): number => readdirSync('/proc/self/fd').length
    await start('', { file: 'no-such-program', args: [] }).catch(() => undefined)
    const before = openFiles()
    // Pipes are made 16 at a time: after two times as many as many wait for their program as before.
    for (let i = 0; i < 32; i++)
      await start('', { file: 'no-such-program', args: [], input: 'x' }).catch(() => undefined)
    // Some are closed beside, by a thread that has to get its turn.
    await expect.poll(openFiles).toBeLessThan(before + 16)
  })
})

describe('a program that ralph ends', () => {
  it('R2: a grandchild that ignores TERM and holds stdout: settled with the ladder', async () => {
    const group = await start("trap '' INT TERM; (trap '' INT TERM; while :; do sleep 1; done) & wait", {
      timeoutMs: 500,
      graceMs: 600,
    })
    expect(await group.ended).toMatchObject({ cause: 'timeout', survivors: [] })
    expect(alive()).toEqual([])
  })

  it('R18: the cause is known before the first signal goes out', async () => {
    const group = await start('trap "echo COMPLETE; exit 0" INT; echo ready; while :; do sleep 0.05; done')
    await said('ready')
    group.end('stopped')
    expect(group.cause).toBe('stopped')
    group.end('timeout')
    expect(await group.ended).toMatchObject({ cause: 'stopped', exitCode: 0 })
  })

  it('R16: silent and without work is idle', async () => {
    const group = await start('tail -f /dev/null', { idleTimeoutMs: 300 })
    expect(await group.ended).toMatchObject({ cause: 'idle' })
  })

  it('R16: output is activity, and so is the CPU time of a silent child', async () => {
    // Trickles for longer than the limit, then computes for as much of CPU time without a word, in a session of its own.
    const computes = 'while (process.cpuUsage().user < 1.2e6) for (let i = 0; i < 1e6; i += 1);'
    const script = `for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.2; done; setsid -w "${process.execPath}" -e "${computes}"; echo survived`
    const group = await start(script, { idleTimeoutMs: 1100 })
    expect(await group.ended).toMatchObject({ exitCode: 0 })
    expect(output).toContain('survived')
  })
})

describe('identity', () => {
  it('R7: a pid is alive only with its start time', async () => {
    const group = await start('echo ready; tail -f /dev/null')
    await said('ready')
    const started = processIdentity(group.pid)
    expect(started).toMatch(/^\d+$/)
    expect(isAlive(group.pid, started)).toBe(true)
    expect(isAlive(group.pid, `${started}1`)).toBe(false)
    expect(isAlive(group.pid, '')).toBe(false)
    group.end('stopped')
    await group.ended
    expect(isAlive(group.pid, started)).toBe(false)
    expect(bootId()).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('R6: after a crash of ralph the marker alone finds the orphans, and only those of that run', async () => {
    const other = await start('echo ready; tail -f /dev/null', {
      marker: {},
      env: { ...process.env, RALPH_RUN_ID: `${runId}-other` },
    })
    await said('ready')
    output = ''
    const group = await start('setsid tail -f /dev/null & echo ready; tail -f /dev/null')
    await said('ready')
    const { ended, survivors } = await reapByMarker(runId)
    expect(ended).toContain(group.pid)
    expect(survivors).toEqual([])
    expect(processIdentity(other.pid)).not.toBe('')
    other.end('stopped')
    await Promise.all([other.ended, group.ended])
  })

  it('R17: temp folders that a crash left behind go with the orphans, those of others stay', async () => {
    const own = makeTemp(runId, process.env)
    const other = makeTemp(randomUUID(), process.env)
    writeFileSync(join(own, 'leak.so'), 'x')
    await reapByMarker(runId)
    expect([existsSync(own), existsSync(other)]).toEqual([false, true])
    rmSync(other, { recursive: true })
  })

  it('macOS: reads the columns of ps', () => {
    const table = psTable(
      '  501     1   501 Ss     1:02.50 Sun Nov 15 21:53:20 2026     /bin/zsh -l\n 502 501 501 Z 0:00.00 Sun Nov 15 21:53:21 2026 (x)\n',
    )
    expect(table).toEqual([
      { pid: 501, parent: 1, group: 501, started: 'Sun Nov 15 21:53:20 2026', cpuMs: 62_500 },
    ])
    expect(
      markedInPs('  501 zsh HOME=/x RALPH_RUN_ID=a\n 502 zsh RALPH_RUN_ID=ab', ['RALPH_RUN_ID=a']),
    ).toEqual([501])
  })
})

describe('a reader that has no room', () => {
  it('nothing more is read until it has, and nothing is lost', async () => {
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    let isOpen = false
    let early = 0
    const asked = new Promise<void>((resolve) => {
      onOutput = () => {
        early += Number(!isOpen)
        resolve()
      }
    })
    const group = await start("head -c 3000000 /dev/zero | tr '\\0' x; : > printed", {
      room: () => (isOpen ? undefined : opened),
    })
    await asked
    for (let turn = 0; turn < 2000; turn += 1) await new Promise(setImmediate)
    expect({ early, isPrinted: existsSync(join(dir, 'printed')) }).toEqual({ early: 1, isPrinted: false })
    isOpen = true
    open()
    expect(await group.ended).toEqual({ exitCode: 0, leftBehind: 0, survivors: [] })
    expect(output.length).toBe(3_000_000)
  })

  it('its waiting is not the time of the program', async () => {
    const apart = { RALPH_RUN_ID: randomUUID() }
    const longer = await start('tail -f /dev/null', {
      timeoutMs: 3000,
      marker: apart,
      env: { ...process.env, ...apart },
    })
    const waited = longer.ended.then(() => writeFileSync(join(dir, 'go'), ''))
    const script = 'echo held; until [ -e go ]; do sleep 0.02; done; echo over'
    const group = await start(script, { timeoutMs: 2000, idleTimeoutMs: 1000, room: () => waited })
    expect(await group.ended).toEqual({ exitCode: 0, leftBehind: 0, survivors: [] })
    expect(output).toBe('held\nover\n')
  })

  it('16: what it waits for is not its time either, and its output is read meanwhile', async () => {
    const apart = { RALPH_RUN_ID: randomUUID() }
    const longer = await start('tail -f /dev/null', {
      timeoutMs: 3000,
      marker: apart,
      env: { ...process.env, ...apart },
    })
    const waited = longer.ended.then(() => writeFileSync(join(dir, 'go'), ''))
    const script = 'echo asked; until [ -e go ]; do sleep 0.02; done; echo answered'
    const group = await start(script, { timeoutMs: 2000, idleTimeoutMs: 1000 })
    group.wait(waited)
    // Two at once: the time goes on when both are over.
    group.wait(Promise.reject(new Error('over at once')))
    expect(await group.ended).toEqual({ exitCode: 0, leftBehind: 0, survivors: [] })
    expect(output).toBe('asked\nanswered\n')
  })

  it('a program that is ended is heard to its last word all the same', async () => {
    const script = "trap 'echo bye; exit 0' INT TERM; echo held; while :; do sleep 0.02; done"
    const group = await start(script, { room: () => new Promise(() => undefined) })
    await said('held')
    group.end('stopped')
    expect(await group.ended).toMatchObject({ cause: 'stopped', exitCode: 0, survivors: [] })
    expect(output).toBe('held\nbye\n')
  })
})

function start(script: string, options: Partial<GroupOptions> = {}): Promise<Group> {
  return startGroup({
    file: 'sh',
    args: ['-c', script],
    cwd: dir,
    env: { ...process.env, RALPH_RUN_ID: runId },
    input: '',
    stdout: 'socket',
    marker: { RALPH_RUN_ID: runId },
    timeoutMs: 60_000,
    idleTimeoutMs: 0,
    graceMs: 1000,
    onOutput: (chunk) => {
      output += chunk.toString('latin1')
      onOutput()
    },
    onErrorOutput: () => undefined,
    ...options,
  })
}

function said(text: string): Promise<void> {
  return new Promise((resolve) => {
    onOutput = () => {
      if (output.includes(text)) resolve()
    }
    onOutput()
  })
}

function alive(): number[] {
  return findAlive({ marker: { RALPH_RUN_ID: runId } }).map(({ pid }) => pid)
}
