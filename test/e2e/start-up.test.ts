// What the built program reads to look at a run: packs of its own code, and of Node's modules only those that it uses.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath } from '../agents/kit.ts'
import { goodAgent, program, ralph, scratch, tasksOf, type Scratch } from './harness.ts'
import { install } from './usage-kit.ts'

describe('start-up', () => {
  test.each([
    { args: ['--version'], packs: [] },
    { args: ['status'], packs: ['look'] },
    { args: ['list'], packs: ['look'] },
    { args: ['show', 'demo'], packs: ['look', 'plan', 'parsers'] },
    { args: ['prompt', 'demo'], packs: ['look', 'plan', 'parsers'] },
  ])('$args reads the packs $packs and starts no process', async ({ args, packs }) => {
    const at = scratch()
    const agent = 'echo x >> $RALPH_STORY.txt; echo "<promise>COMPLETE</promise>"'
    await ralph(at, ['loop', 'demo', '--agent-command', agent, '--max-iterations', '1'])
    const { read, taken, builtins } = await opened(at, args)
    expect(read).toEqual(packs)
    // As V8 made them in the build: nothing is compiled again.
    expect(taken).toEqual(packs)
    expect(builtins).toContain('fs')
    // `net` is what stdout needs as a stream.
    const rare = packs.length === 1 ? ['crypto', 'net'] : packs.length === 0 ? ['crypto'] : []
    const dear = ['child_process', 'zlib', 'readline', ...rare]
    expect(builtins.filter((name) => dear.includes(name))).toEqual([])
  })

  test('a pack is ASCII: one letter more, and V8 holds all of it in two bytes for each', () => {
    const folder = dirname(program)
    const packs = readdirSync(folder).filter((name) => /^program-.*\.js$/.test(name))
    expect(packs.map((name) => name.split('.')[1] ?? '').toSorted()).toEqual([
      'lines',
      'look',
      'loop',
      'mcp',
      'parsers',
      'plan',
      'prices',
      'tui',
    ])
    for (const name of packs)
      expect(
        readFileSync(join(folder, name)).every((byte) => byte < 0x80),
        name,
      ).toBe(true)
  })

  test('the pack of what looks has nothing of the engine and of a loop: twice as large, it is read and held by every look', () => {
    const folder = dirname(program)
    const packOf = (fn: string): string[] =>
      readdirSync(folder)
        .filter((name) => /^program-.*\.js$/.test(name))
        .filter((name) => readFileSync(join(folder, name), 'latin1').includes(`function ${fn}(`))
        .map((name) => name.split('.')[1] ?? '')
    expect(packOf('createApp')).toEqual(['look'])
    expect(['createLoop', 'createAgents', 'checkpointsFor'].map(packOf)).toEqual([
      ['loop'],
      ['loop'],
      ['loop'],
    ])
  })
})

test('a loop goes on, and counts what it costs, when its program is replaced by another version', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const dist = join(at.root, 'dist')
  // Other tests may be keeping what V8 made of theirs just now.
  cpSync(dirname(program), dist, { recursive: true, filter: (path) => !path.includes('.cache') })
  const body = `#!/bin/sh\nrm -r '${dist}'\nexec ${agentPath('codex-works.mjs')}\n`
  install(at, 'codex', body)
  const args = ['loop', 'demo', '--agent', 'codex', '--model', 'gpt-5']
  const { status, stderr } = spawnSync(process.execPath, [join(dist, 'main.js'), ...args], {
    cwd: at.repo,
    env: at.env,
    encoding: 'utf8',
  })
  expect(existsSync(dist)).toBe(false)
  expect({ status, stderr }).toMatchObject({ status: 0 })
  expect(at.state().iterations[0]?.cost_usd).toBeGreaterThan(0)
})

test('what V8 made of a loop is kept from the one that got furthest, whatever is typed before its name', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const dist = join(at.root, 'dist')
  cpSync(dirname(program), dist, { recursive: true, filter: (path) => !path.includes('.cache') })
  const run = (...args: string[]): Record<string, number> => {
    const words = [join(dist, 'main.js'), ...args, '--agent-command', goodAgent, '--fresh']
    const { status, stderr } = spawnSync(process.execPath, words, {
      cwd: at.repo,
      env: at.env,
      encoding: 'utf8',
    })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    const kept = readdirSync(dist).filter((name) => name.endsWith('.cache'))
    return Object.fromEntries(kept.map((name) => [name, statSync(join(dist, name)).ino]))
  }
  const dry = run('loop', 'demo', '--dry-run')
  const whole = run('loop', 'demo')
  for (const [name, file] of Object.entries(dry)) expect(whole[name], name).not.toBe(file)
  expect(run('loop', 'demo', '--dry-run')).toEqual(whole)
  expect(run('--no-tui', 'loop', 'demo')).toEqual(whole)
})

test('a command that waits for what can no longer come ends with 1 and says so: Node alone ends such a process with 0', async () => {
  const at = scratch({ tasks: tasksOf(1) })
  const never = join(at.root, 'never.cjs')
  writeFileSync(never, "require('node:timers/promises').setTimeout = () => new Promise(() => {})\n")
  const end = await ralph(at, ['up', 'demo', '--agent-command', goodAgent], {
    env: { NODE_OPTIONS: `--require ${never}` },
  })
  expect(end.code).toBe(1)
  expect(end.stderr).toContain('ralph ended before its command had done its work')
  await expect.poll(() => at.git('for-each-ref', 'refs/heads/ralph/demo')).not.toBe('')
})

/** As the process itself tells at its end. */
async function opened(
  at: Scratch,
  args: readonly string[],
): Promise<{ read: string[]; taken: string[]; builtins: readonly string[] }> {
  const told = join(at.root, 'opened.json')
  const recorder = at.script(
    'recorder.cjs',
    `const fs = require('node:fs')
    const vm = require('node:vm')
    const [read, taken, names, { openSync, readFileSync }, { Script }] = [[], [], new Map(), { ...fs }, vm]
    vm.Script = class extends Script {
      constructor(text, how) {
        super(text, how)
        if (this.cachedDataRejected === false) taken.push(how.filename)
      }
    }
    fs.openSync = (path, ...more) => {
      const file = openSync(path, ...more)
      names.set(file, String(path))
      return file
    }
    fs.readFileSync = (path, ...more) => (read.push(names.get(path) ?? String(path)), readFileSync(path, ...more))
    process.once('exit', () =>
      fs.writeFileSync(${JSON.stringify(told)}, JSON.stringify({ read, taken, builtins: process.moduleLoadList })))`,
  )
  const { code, stderr } = await ralph(at, args, { env: { NODE_OPTIONS: `--require ${recorder}` } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  type Told = Record<'read' | 'taken' | 'builtins', string[]>
  const { read, taken, builtins } = JSON.parse(readFileSync(told, 'utf8')) as Told
  const packsIn = (paths: readonly string[]): string[] =>
    paths.flatMap((path) => /\/program-\w+\.(\w+)\.js$/.exec(path)?.[1] ?? [])
  return {
    read: packsIn(read),
    taken: packsIn(taken),
    builtins: builtins.map((name) => name.replace(/^NativeModule /, '')),
  }
}
