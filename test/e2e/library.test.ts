// The packed tarball in an empty folder: one program drives a loop with it, another watches that, and both stay what they were.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scratch, tasksOf } from './harness.ts'
import type { Scratch } from './harness.ts'
import { install, installClaude } from './usage-kit.ts'

const root = resolve(import.meta.dirname, '../..')
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ralph-library-'))
  const npm = (...args: readonly string[]): void =>
    void execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  npm('pack', root, '--ignore-scripts', '--silent')
  const [tarball = ''] = readdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "name": "mine", "private": true }\n')
  npm('install', '--offline', '--no-audit', '--no-fund', '--silent', `./${tarball}`)
}, 120_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Everything of a process that a library could change behind its back. */
const surroundings = `
const surroundings = () => JSON.stringify({
  listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
  streams: [process.stdout, process.stderr].map((stream) => stream.eventNames().map((name) => [String(name), stream.listenerCount(name)])),
  env: process.env, cwd: process.cwd(), title: process.title, exitCode: String(process.exitCode), umask: process.umask(),
  flags: process.execArgv, warnings: process.listenerCount('warning'),
})
const before = surroundings()
const same = () => before === surroundings()
`

const driver = `
import { runLoop } from 'ralphtool'
${surroundings}
const [cwd, agent] = process.argv.slice(2)
const loop = runLoop({ cwd, change: 'demo', settings: { agent_command: agent, verify: ['true'] } })
let isSame = true
const types = []
for await (const { event } of loop) {
  isSame &&= same()
  types.push(event.type)
}
console.log(JSON.stringify({ isSame: isSame && same(), end: loop.end, types }))
`

const watcher = `
import { writeFileSync } from 'node:fs'
import { readLoop, watchLoops } from 'ralphtool'
${surroundings}
const [cwd, go] = process.argv.slice(2)
const end = new AbortController()
const seen = []
for await (const item of watchLoops({ cwd, signal: end.signal })) {
  seen.push(item.type === 'loop' ? item.loop : item.type === 'event' ? item.event.type : item.type)
  if (item.type === 'event' && item.event.type === 'agent.message') {
    const { alive, status } = await readLoop({ cwd })
    seen.push({ alive, status })
    // The agent waits for this: what comes after it was watched while it happened.
    writeFileSync(go, '')
  }
  if (item.type === 'loop' && item.loop === 'ended') end.abort()
}
const { alive, status, terminal_pid } = await readLoop({ cwd, change: 'demo' })
console.log(JSON.stringify({ isSame: same(), seen, alive, status, terminal_pid }))
`

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Ends by itself: nobody calls process.exit. */
function program(
  at: Scratch,
  text: string,
  ...args: readonly string[]
): { pid: number; ended: Promise<Ended> } {
  const file = join(folder, `${at.root.split('/').at(-1) ?? ''}-${args.length}-${text.length}.mjs`)
  writeFileSync(file, text)
  const child = spawn(process.execPath, [file, ...args], { cwd: folder, env: at.env })
  const ended = new Promise<Ended>((done) => {
    const printed = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk: Buffer) => (printed[name] += chunk.toString('utf8')))
    child.on('close', (code) => done({ code, ...printed }))
  })
  return { pid: child.pid ?? 0, ended }
}

describe('the packed library', () => {
  test('one program drives a loop and a second one watches it; neither prints, listens or changes anything of its process', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const go = join(at.root, 'go')
    const watching = program(at, watcher, at.repo, go)
    const agent = `echo hello; until [ -e '${go}' ]; do sleep 0.05; done; echo x > made; echo "<promise>COMPLETE</promise>"`
    const driving = program(at, driver, at.repo, agent)
    const [drove, watched] = await Promise.all([driving.ended, watching.ended])
    expect(drove).toMatchObject({ code: 0, stderr: '' })
    expect(watched).toMatchObject({ code: 0, stderr: '' })
    const told = JSON.parse(drove.stdout) as { types: readonly string[] }
    expect(told).toMatchObject({ isSame: true, end: { exit_code: 0, warnings: [] } })
    const saw = JSON.parse(watched.stdout) as { seen: readonly unknown[] }
    expect(saw).toMatchObject({
      isSame: true,
      alive: false,
      status: 'done',
      terminal_pid: driving.pid,
    })
    expect(saw.seen).toContainEqual({ alive: true, status: 'running' })
    const events = saw.seen.filter((each) => typeof each === 'string' && !['running', 'ended'].includes(each))
    // It may have begun to look a moment after the first of them.
    expect(told.types.join(' ').endsWith(events.join(' '))).toBe(true)
    expect(events.at(-1)).toBe('complete')
    expect(events).toContain('agent.message')
  })

  test('the samples of docs/library.md run as they are printed', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    at.write('openspec/changes/add-login/tasks.md', tasksOf(2))
    at.git('add', '-A')
    at.git('commit', '-qm', 'plan')
    installClaude(at)
    install(at, 'npm', '#!/bin/sh\nexit 0\n')
    const page = readFileSync(join(root, 'docs/library.md'), 'utf8')
    const samples = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, text = '']) => text)
    const [imports = '', ...rest] = samples
    expect(rest).toHaveLength(3)
    const [run = '', look = '', watch = ''] = rest.map((text) => `${imports}${text}`)
    const here = `process.chdir(${JSON.stringify(at.repo)})\n`
    const ran = await program(at, run.replace('/path/of/a/repository', at.repo)).ended
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.stdout).toMatch(/^Story 1 starting .+\nStory 2 running .+\n0\n$/)
    const looked = await program(at, `${here}${look}`, 'look').ended
    expect(looked).toEqual({ code: 0, stdout: 'done undefined\n', stderr: '' })
    const stop = `${here}const end = new AbortController(); const { signal } = end\n`
    const once = watch.replace(/^\}$/m, '  end.abort()\n}')
    expect(await program(at, `${stop}${once}`, 'watch', 'it').ended).toEqual({
      code: 0,
      stdout: 'add-login ended\n',
      stderr: '',
    })
  })

  test('it can be required, too, and ends the process that used it by nothing of its own', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const asked = `
      import { createRequire } from 'node:module'
      const { readLoop, RalphError } = createRequire(import.meta.url)('ralphtool')
      const [cwd] = process.argv.slice(2)
      const error = await readLoop({ cwd, change: 'dmo' }).catch((thrown) => thrown)
      console.log(error instanceof RalphError, error.code, await readLoop({ cwd }))`
    expect(await program(at, asked, at.repo).ended).toEqual({
      code: 0,
      stdout: 'true change_not_found undefined\n',
      stderr: '',
    })
  })

  test('B11: an error that nobody caught is told in a few lines, not in a wall of bundled source', async () => {
    const at = scratch({ tasks: tasksOf(1) })
    const asked = `
      import { readLoop } from 'ralphtool'
      await readLoop({ cwd: process.argv[2], change: 'dmo' })`
    const { code, stderr } = await program(at, asked, at.repo).ended
    expect([code, stderr]).toEqual([1, expect.stringContaining('no run called "dmo"')])
    expect(stderr.length).toBeLessThan(3000)
  })

  test.each([
    ['nodenext', ['--module', 'nodenext', '--moduleResolution', 'nodenext']],
    ['bundler', ['--module', 'esnext', '--moduleResolution', 'bundler']],
  ])(
    'a strict TypeScript program compiles against its types without any other package: %s',
    (name, flags) => {
      const file = join(folder, `typed-${name}.mts`)
      writeFileSync(
        file,
        `import { RalphError, readLoop, runLoop, watchLoops } from 'ralphtool'
import type { ErrorCode, LoopEnd, LoopEvent, LoopItem, LoopSettings, LoopSnapshot, WatchItem } from 'ralphtool'
const settings: LoopSettings = { agent: 'claude', verify: ['npm test'], max_cost: 5, stories: { '2': { model: 'm' } } }
const loop = runLoop({ change: 'a', settings, signal: new AbortController().signal })
for await (const item of loop) {
  const { event, state, cursor }: LoopItem = item
  const story: string = event.type === 'story.started' ? event.title : cursor + state.change_id
  // @ts-expect-error: no event has this type
  if (event.type === 'no.such') throw new Error(story)
}
const end: LoopEnd | undefined = loop.end
const found: LoopSnapshot | undefined = await readLoop({ cwd: '.', change: 'a' })
const alive: boolean = found?.alive ?? false
for await (const item of watchLoops({ from: 'start' })) {
  const told: WatchItem = item
  const event: LoopEvent | undefined = told.type === 'event' ? told.event : undefined
  const code: ErrorCode = 'locked'
  if (alive && end?.exit_code === 0 && event === undefined) throw new RalphError(code, 'x', { hint: 'y' })
}
// @ts-expect-error: no setting has this name
runLoop({ settings: { max_retry: 1 } })
`,
      )
      const tsc = ['--ignoreConfig', '--noEmit', '--strict', '--lib', 'es2022,dom', '--types', '']
      const strict = ['--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--target', 'es2022']
      const args = [...tsc, ...strict, ...flags, file]
      const printed = (): string =>
        execFileSync(join(root, 'node_modules/.bin/tsc'), args, { cwd: folder, encoding: 'utf8' })
      expect(printed()).toBe('')
    },
  )
})
