// The session files of the agents, read exactly; totals by hand in test/fixtures/sessions/NOTE.md.
import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, readFile, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encode } from '../../../src/adapters/usage/claude-sessions.ts'
import { onPath } from '../../../src/adapters/process/on-path.ts'
import { measureUsage } from '../../../src/adapters/usage/measure.ts'
import type { MeasuredUsage } from '../../../src/ports.ts'
import { clockAt, sandbox, session, turnStartMs } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'

const sqlite = onPath('sqlite3', process.env)
let box: Sandbox
beforeEach(async () => {
  box = await sandbox()
})
afterEach(() => box.remove())

async function turn(
  agent: string,
  work: () => Promise<void>,
  sessionId?: string,
  worktree = box.worktree,
): Promise<MeasuredUsage> {
  const measure = measureUsage({
    worktree,
    env: box.env,
    clock: clockAt(turnStartMs),
    loopStarted: '2026-02-09T08:30:00+00:00',
    source: 'auto',
  })
  await measure.before(agent)
  await work()
  return measure.after(agent, undefined, sessionId)
}

describe('recorded sessions of the real programs', () => {
  const sums = {
    input_tokens: 2700,
    output_tokens: 153,
    cache_read_tokens: 600,
    cache_creation_tokens: 0,
    source: 'sessions',
  }

  test('Claude Code 2.1.325: the figures and the cost that it reported itself', async () => {
    const id = '8b688487-21fd-4441-843a-bb9c489f7877'
    const place = () => box.place('recorded/claude-2.1.325.jsonl', join(box.claudeFolder, `${id}.jsonl`))
    const measured = await turn('claude', place, id)
    expect(measured).toMatchObject({ ...sums, input_tokens: 2100, cache_creation_tokens: 90 })
    expect(measured.cost_usd).toBeCloseTo(0.0091125, 10)
  })

  test('Codex 0.166.0: each answer once, although the file tells of it twice', async () => {
    const id = '01a1e149-b2d4-77a0-9202-eaea9b031d54'
    const path = join(box.home, '.codex/sessions/2026/11/15', `rollout-2026-11-15T22-17-45-${id}.jsonl`)
    expect(await turn('codex', () => box.place('recorded/codex-0.166.0.jsonl', path), id)).toMatchObject(sums)
  })

  test.runIf(sqlite !== undefined)(
    'OpenCode 1.18.33: the figures and the cost that it reported itself',
    async () => {
      const measured = await turn('opencode', () => buildOpencode('recorded/opencode-1.18.33.sql'))
      expect(measured).toMatchObject(sums)
      expect(measured.cost_usd).toBeCloseTo(0.010575, 10)
    },
  )
})

describe('Claude Code', () => {
  const main = () => box.place('claude/main.jsonl', join(box.claudeFolder, `${session}.jsonl`))
  const mainTotals = {
    input_tokens: 1340,
    output_tokens: 105,
    cache_read_tokens: 600,
    cache_creation_tokens: 90,
    estimated: false,
    source: 'sessions',
  }

  test('R13: repeated ids keep the last, null fields, cut lines and bad UTF-8 count nothing', async () => {
    expect(await turn('claude', main, session)).toMatchObject(mainTotals)
  })

  test('without a session id, by the folder on record', async () => {
    expect(await turn('claude', main)).toMatchObject(mainTotals)
  })

  test('sub-agents belong to their session, and every model is priced by its own', async () => {
    const measured = await turn(
      'claude',
      async () => {
        await main()
        await box.place(
          'claude/subagent.jsonl',
          join(box.claudeFolder, session, 'subagents', 'agent-1.jsonl'),
        )
      },
      session,
    )
    expect(measured).toMatchObject({ ...mainTotals, input_tokens: 1540, output_tokens: 125 })
    // sonnet 4.5: 1340 x 3 + 105 x 15 + 600 x 0.3 + 90 x 3.75; haiku 4.5: 200 x 1 + 20 x 5 (USD per million)
    expect(measured.cost_usd).toBeCloseTo((4020 + 1575 + 180 + 337.5 + 200 + 100) / 1e6, 10)
  })

  test('another session of the same work tree does not count when the agent named its own', async () => {
    const measured = await turn(
      'claude',
      async () => {
        await main()
        const other = `{"type":"assistant","cwd":"${box.worktree}","sessionId":"other","timestamp":"2026-02-09T09:05:00Z","message":{"id":"m","usage":{"input_tokens":9000,"output_tokens":1}}}\n`
        await box.write(join(box.claudeFolder, 'other.jsonl'), other)
      },
      session,
    )
    expect(measured).toMatchObject(mainTotals)
  })

  test('another project whose folder encodes to the same name never counts, nor does its growth', async () => {
    const foreign = () => box.place('claude/foreign.jsonl', join(box.claudeFolder, 'foreign.jsonl'))
    expect(await turn('claude', foreign)).toMatchObject({ input_tokens: 0, estimated: true })
  })

  test('only what was added during the turn counts, and a whole last line without its LF does', async () => {
    const path = join(box.claudeFolder, `${session}.jsonl`)
    const line = (id: string, input: number) =>
      `{"type":"assistant","cwd":"${box.worktree}","timestamp":"2026-02-09T09:05:00Z","message":{"id":"${id}","usage":{"input_tokens":${input},"output_tokens":1}}}`
    await box.write(path, `${line('a', 5000)}\n`)
    const measured = await turn(
      'claude',
      () => appendFile(path, `${line('b', 30)}\n${line('c', 4)}`),
      session,
    )
    expect(measured).toMatchObject({ input_tokens: 34, output_tokens: 2 })
  })

  test('history that a resumed session copied into its new file is older than the turn and does not count', async () => {
    const copied = `{"type":"assistant","cwd":"${box.worktree}","timestamp":"2026-02-09T08:59:59Z","message":{"id":"m","usage":{"input_tokens":9000,"output_tokens":1}}}\n`
    const measured = await turn('claude', () => box.write(join(box.claudeFolder, 'resumed.jsonl'), copied))
    expect(measured).toMatchObject({ estimated: true, input_tokens: Math.floor(copied.length / 4) })
  })

  test('a folder named by another rule is found by the session’s name', async () => {
    const measured = await turn(
      'claude',
      () =>
        box.place(
          'claude/main.jsonl',
          join(box.home, '.claude', 'projects', 'another-rule', `${session}.jsonl`),
        ),
      session,
    )
    expect(measured).toMatchObject(mainTotals)
  })

  test('a work tree behind a symlink, and a path over 200 characters with its hash', async () => {
    await box.remove()
    box = await sandbox(join('x'.repeat(120), 'y'.repeat(120)))
    await symlink(box.worktree, join(box.root, 'link'))
    const folder = `${encode(box.worktree).slice(0, 200)}-twtee3`
    const measured = await turn(
      'claude',
      () => box.place('claude/main.jsonl', join(box.home, '.claude', 'projects', folder, `${session}.jsonl`)),
      undefined,
      join(box.root, 'link'),
    )
    expect(measured).toMatchObject(mainTotals)
  })

  test('CLAUDE_CONFIG_DIR moves the folder', async () => {
    box.env['CLAUDE_CONFIG_DIR'] = join(box.root, 'elsewhere')
    const measured = await turn('claude', async () => {
      await main()
      await mkdir(join(box.root, 'elsewhere'), { recursive: true })
      await rename(join(box.home, '.claude', 'projects'), join(box.root, 'elsewhere', 'projects'))
    })
    expect(measured).toMatchObject(mainTotals)
  })

  test('R6: a turn whose loop was killed is measured from the files since its start', async () => {
    await main()
    const { worktree, env } = box
    const loopStarted = '2026-02-09T08:30:00+00:00'
    const measure = measureUsage({
      worktree,
      env,
      clock: clockAt(turnStartMs + 9e6),
      loopStarted,
      source: 'auto',
    })
    const measured = await measure.after('claude', undefined, session, undefined, {
      started: '2026-02-09T10:00:00+01:00',
    })
    expect(measured).toMatchObject(mainTotals)
  })

  test('a model that the files do not name is the one that the agent named', async () => {
    const path = join(box.claudeFolder, 's.jsonl')
    const line = `{"cwd":"${box.worktree}","timestamp":"2026-02-09T09:05:00Z","message":{"id":"m","usage":{"input_tokens":1000,"output_tokens":0}}}\n`
    const measure = measureUsage({
      worktree: box.worktree,
      env: box.env,
      clock: clockAt(turnStartMs),
      loopStarted: '',
      source: 'sessions',
    })
    await measure.before('claude')
    await box.write(path, line)
    expect((await measure.after('claude', undefined, undefined, 'claude-sonnet-4-5')).cost_usd).toBeCloseTo(
      0.003,
      10,
    )
  })

  test('a program that is no known agent may have run Claude Code', async () => {
    expect(await turn('command', main)).toMatchObject(mainTotals)
  })
})

describe('Codex', () => {
  const day = () => join(box.home, '.codex', 'sessions', '2026', '02', '09')
  const place = (name: string, digit: string, time: string) =>
    box.place(
      `codex/rollout-${name}.jsonl`,
      join(day(), `rollout-2026-02-09T${time}-01a1e08b-0000-7000-8000-00000000000${digit}.jsonl`),
    )
  const id = (digit: string) => `01a1e08b-0000-7000-8000-00000000000${digit}`

  test('a refreshed counter counts once, cached tokens are no input', async () => {
    const measured = await turn('codex', () => place('parent', 'a', '09-00-00'), id('a'))
    expect(measured).toMatchObject({
      input_tokens: 2700,
      output_tokens: 153,
      cache_read_tokens: 600,
      source: 'sessions',
    })
    // gpt-5: 2700 x 1.25 + 600 x 0.125 + 153 x 10 (USD per million)
    expect(measured.cost_usd).toBeCloseTo((3375 + 75 + 1530) / 1e6, 10)
  })

  test('a fork’s replay of its parent does not count again', async () => {
    const measured = await turn(
      'codex',
      async () => {
        await place('fork', 'b', '09-10-00')
        await place('parent', 'a', '09-00-00')
      },
      id('a'),
    )
    expect(measured).toMatchObject({ input_tokens: 3000, output_tokens: 160, cache_read_tokens: 700 })
  })

  test('killed in mid-tool: the answers on record count, the late counter not a second time', async () => {
    const measured = await turn('codex', () => place('killed', 'c', '09-20-00'))
    expect(measured).toMatchObject({ input_tokens: 500, output_tokens: 50, cache_read_tokens: 600 })
  })

  test('another project’s rollout never counts', async () => {
    const path = join(day(), `rollout-x-${id('a')}.jsonl`)
    const measured = await turn('codex', async () => {
      await place('parent', 'a', '09-00-00')
      const text = await readFile(join(day(), `rollout-2026-02-09T09-00-00-${id('a')}.jsonl`), 'utf8')
      await box.write(path, text.replaceAll(box.worktree, '/another/project').replaceAll(id('a'), id('d')))
    })
    expect(measured).toMatchObject({ input_tokens: 2700, output_tokens: 153 })
  })
})

describe('OpenCode', () => {
  test.runIf(sqlite !== undefined)('answers of the session and its child, by way of sqlite3', async () => {
    const measured = await turn('opencode', () => buildOpencode('opencode.sql'), 'ses_1')
    expect(measured).toMatchObject({
      input_tokens: 1000,
      output_tokens: 55,
      cache_read_tokens: 300,
      cache_creation_tokens: 20,
      source: 'sessions',
    })
    // One of the two answers is unpriced, so the whole is: a part would look like the sum.
    expect(measured).not.toHaveProperty('cost_usd')
  })

  test('without sqlite3 on PATH the warning says so', async () => {
    await box.write(join(box.home, '.local', 'share', 'opencode', 'opencode.db'), 'SQLite format 3')
    box.env['PATH'] = join(box.root, 'bin')
    const measured = await turn('opencode', () => Promise.resolve())
    expect(measured.warning).toContain('sqlite3 program, which is not on PATH')
  })

  test.runIf(sqlite !== undefined)(
    'R13: a database that cannot be read is a warning with the cause',
    async () => {
      await box.write(
        join(box.home, '.local', 'share', 'opencode', 'opencode.db'),
        'this is no database at all',
      )
      const measured = await turn('opencode', () => Promise.resolve())
      expect(measured).toMatchObject({ input_tokens: 0, estimated: true })
      expect(measured.warning).toContain("OpenCode's sessions could not be read")
    },
  )
})

async function buildOpencode(fixture: string): Promise<void> {
  const folder = join(box.home, '.local', 'share', 'opencode')
  await box.place(fixture, join(folder, 'build.sql'))
  execFileSync(sqlite ?? '', [join(folder, 'opencode.db')], {
    input: await readFile(join(folder, 'build.sql')),
  })
}
