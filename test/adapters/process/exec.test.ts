// A short command that leaves something behind must not hold ralph up: git helpers and usage programs fork daemons.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { exec } from '../../../src/adapters/process/exec.ts'
import { launch, withShell } from '../../../src/adapters/process/launcher.ts'
import type { ExecOptions, ExecResult } from '../../../src/adapters/process/exec.ts'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'ralph-exec-'))
})
afterEach(() => {
  const stray = join(cwd, 'stray')
  if (existsSync(stray)) process.kill(Number(readFileSync(stray, 'utf8')), 'SIGKILL')
  rmSync(cwd, { recursive: true, force: true })
})

/** Holds the pipes of its parent, in a session of its own: no group kill reaches it. */
const daemon = `setsid sh -c 'echo $$ > stray; exec sleep 600' &`

/** All tests of a file share it, as all commands of a run do. */
let endShell: () => void
let shellEnded: Promise<void>
beforeAll(() => {
  shellEnded = withShell(() => new Promise((resolve) => (endShell = resolve)))
})
afterAll(async () => {
  endShell()
  await shellEnded
})

describe.each([
  ['by ralph itself', exec],
  ['by the small shell', launch],
])('%s', (_how, start) => {
  const sh = (script: string, timeoutMs: number, more: Partial<ExecOptions> = {}): Promise<ExecResult> =>
    start('sh', ['-c', script], { cwd, env: process.env, timeoutMs, ...more })

  test('R3: a command whose daemon keeps the pipes open ends with the command, its output whole', async () => {
    const result = await sh(`${daemon} head -c 300000 /dev/zero; exit 3`, 100_000)
    expect(result).toMatchObject({ exitCode: 3, timedOut: false })
    expect(result.stdout).toHaveLength(300_000)
  })

  test('G24: a command that hangs with such a daemon is over at its time limit', async () => {
    expect(await sh(`${daemon} wait`, 500)).toMatchObject({ signal: 'SIGKILL', timedOut: true })
  })

  test('what it reads, where, with which variables and words; what it says and how it ends', async () => {
    const env = { ...process.env, PWD: '/', OLD: undefined, ODD: "it's\n$HOME `x`" }
    const input = Buffer.from([0, 255, 10, 39, 128])
    const script = 'cat; pwd; printf "%s|%s|%s|%s" "$ODD" "$PWD" "${OLD-unset}" "$1"; echo oops >&2; exit 129'
    const result = await start('bash', ['-c', script, 'name', "a'b\n c"], {
      cwd,
      env,
      input,
      timeoutMs: 9000,
    })
    const said = `${input.toString('latin1')}${cwd}\nit's\n$HOME \`x\`|${cwd}|unset|a'b\n c`
    expect({ ...result, stdout: result.stdout.toString('latin1') }).toMatchObject({
      stdout: said,
      stderr: 'oops\n',
      exitCode: 129,
      timedOut: false,
    })
    // Nothing of it is there for the next one.
    expect(await sh('cat; echo "${ODD-unset}"', 9000)).toMatchObject({
      stdout: Buffer.from('unset\n'),
      stderr: '',
    })
  })

  test('one that is killed, one that is stopped, one that is not there, one with too many words', async () => {
    expect(await sh('kill -9 $$', 9000)).toMatchObject({ signal: 'SIGKILL', timedOut: false })
    const stop = new AbortController()
    const stopped = sh('echo $$ > begun; exec sleep 600', 99_000, { signal: stop.signal })
    await expect.poll(() => existsSync(join(cwd, 'begun'))).toBe(true)
    stop.abort()
    expect(await stopped).toMatchObject({ signal: 'SIGKILL', timedOut: false })
    const options = { cwd, env: process.env, timeoutMs: 9000 }
    expect((await start('no-such-program', [], options)).spawnError?.code).toBe('ENOENT')
    expect((await start('true', [], { ...options, cwd: join(cwd, 'gone') })).spawnError?.code).toBe('ENOENT')
    expect((await start('true', ['x'.repeat(3_000_000)], options)).spawnError?.code).toBe('E2BIG')
    expect(await sh('echo still', 9000)).toMatchObject({ stdout: Buffer.from('still\n'), exitCode: 0 })
  })

  test('many at once', async () => {
    const results = await Promise.all([1, 2, 3, 4].map((n) => sh(`sleep .0${5 - n}; echo ${n}`, 9000)))
    expect(results.map(({ stdout }) => stdout.toString())).toEqual(['1\n', '2\n', '3\n', '4\n'])
  })
})

test('the small shell ends with its process, whatever ends that', async () => {
  const program = join(import.meta.dirname, '../../../src/adapters/process/launcher.ts')
  const script = `import { launch, withShell } from ${JSON.stringify(program)}
    const run = (words) => launch('sh', ['-c', words], { cwd: '/', env: process.env, timeoutMs: 9000 })
    for (const n of [1, 2, 3]) await run('true')
    console.log((await run('ps -o ppid= -p $$')).stdout.toString().trim())
    if (process.argv[2] === 'kill') process.kill(process.pid, 'SIGKILL')`
  writeFileSync(join(cwd, 'program.mts'), script)
  for (const how of ['kill', 'end']) {
    const args = ['--import', import.meta.resolve('tsx'), join(cwd, 'program.mts'), how]
    const { stdout } = await exec(process.execPath, args, { cwd, env: process.env, timeoutMs: 60_000 })
    const pid = Number(stdout.toString())
    expect(pid).toBeGreaterThan(1)
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), 120_000)
  }
})

test('what others still run in the small shell when it closes ends as it would, and what begins then has one of its own, and what it keeps: the process does not end meanwhile', async () => {
  const program = join(import.meta.dirname, '../../../src/adapters/process/launcher.ts')
  const temp = join(import.meta.dirname, '../../../src/adapters/process/temp.ts')
  const script = `import { launch, withShell } from ${JSON.stringify(program)}
    import { keptFile } from ${JSON.stringify(temp)}
    const run = (words) => launch('sh', ['-c', words], { cwd: '/', env: process.env, timeoutMs: 9000 })
    const told = ({ stdout, exitCode, signal }) => console.log(stdout.toString().trim(), exitCode, signal)
    let others
    let next
    await withShell(async () => void (others = run('sleep .1; echo others')))
    told(await others)
    await withShell(async () => {
      await run('true')
      setImmediate(() => (next = withShell(() => run('echo next'))))
    })
    told(await next)
    const first = withShell(async () => {
      await run('true')
      setImmediate(() => (next = withShell(() => first.then(() => keptFile('name', Buffer.from('bytes'))))))
    })
    await first
    console.log((await next) !== undefined, keptFile('name', Buffer.from('bytes')))
    console.log('all')`
  writeFileSync(join(cwd, 'program.mts'), script)
  const args = ['--import', import.meta.resolve('tsx'), join(cwd, 'program.mts')]
  const { stdout, stderr } = await exec(process.execPath, args, { cwd, env: process.env, timeoutMs: 60_000 })
  expect([stdout.toString(), stderr]).toEqual([
    'others 0 undefined\nnext 0 undefined\ntrue undefined\nall\n',
    '',
  ])
})
