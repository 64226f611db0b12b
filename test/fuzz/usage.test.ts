// Session files of every agent, and what wt-usage says: figures, or a reason in words; an iteration is never lost to them.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageSince } from '../../src/adapters/usage/usage-since.ts'
import { askWtUsage } from '../../src/adapters/usage/wt-usage.ts'
import { clockAt, sandbox, type Sandbox } from '../adapters/usage/sandbox.ts'
import {
  anyBytes,
  documentsOf,
  fixtures,
  isUnspoilt,
  jsonOf,
  seeded,
  settings,
  twisted,
  wounded,
} from './foreign.ts'

let box: Sandbox
beforeAll(async () => {
  box = await sandbox()
})
afterAll(() => box.remove())

const id = '47ee1115-6b33-4a9c-bfa6-25c89881eab1'
const agents = {
  claude: ['recorded/claude-2.1.325.jsonl', (): string => join(box.claudeFolder, `${id}.jsonl`)],
  codex: [
    'recorded/codex-0.166.0.jsonl',
    (): string =>
      join(box.home, '.codex', 'sessions', '2026', '11', '16', `rollout-2026-11-16T01-57-00-${id}.jsonl`),
  ],
  gemini: [
    'recorded/gemini-0.61.0.jsonl',
    (): string => join(box.home, '.gemini', 'tmp', 'x', 'chats', 'session-2026-11-16T01-57-47ee1115.jsonl'),
  ],
} as const

async function total(): Promise<number> {
  const usage = await usageSince({
    worktrees: [box.worktree],
    env: box.env,
    clock: clockAt(Date.parse('2026-12-01T00:00:00Z')),
    since: '2020-01-01T00:00:00Z',
  })
  return usage.total_tokens
}

function real(fixture: string): Buffer {
  return Buffer.from(
    readFileSync(join(fixtures, 'sessions', fixture), 'utf8').replaceAll('@CWD@', box.worktree),
  )
}

describe('fuzz: session files', () => {
  test.each(Object.entries(agents))(
    `%s: a number that is one, whatever the file holds ${seeded}`,
    async (_name, [fixture, where]) => {
      const file = real(fixture)
      await box.write(join(box.home, '.gemini', 'tmp', 'x', '.project_root'), box.worktree)
      const input = fc.oneof(
        anyBytes,
        wounded([file]),
        fc
          .array(twisted(documentsOf([file])), { minLength: 1, maxLength: 3 })
          .map((lines) =>
            Buffer.concat([file, Buffer.from('\n'), Buffer.from(lines.map(jsonOf).join('\n'))]),
          ),
      )
      await fc.assert(
        fc.asyncProperty(input, async (bytes) => {
          await box.write(where(), bytes)
          const tokens = await total()
          expect(Number.isFinite(tokens) && tokens >= 0).toBe(true)
          expect(isUnspoilt()).toBe(true)
        }),
        settings(4),
      )
      await box.write(where(), '')
    },
  )

  test.each(Object.entries(agents))(
    '%s: a line of 70 MB between two good ones',
    async (_name, [fixture, where]) => {
      const file = real(fixture)
      await box.write(where(), file)
      const before = await total()
      await box.write(
        where(),
        Buffer.concat([
          file,
          Buffer.from('\n{"usage":"'),
          Buffer.alloc(70 * 1024 * 1024, 'x'),
          Buffer.from('"}\n'),
        ]),
      )
      expect(await total()).toBe(before)
      await box.write(where(), '')
    },
  )

  test(`opencode: whatever sqlite3 prints ${seeded}`, async () => {
    const said = join(box.root, 'said')
    mkdirSync(join(box.home, '.local', 'share', 'opencode'), { recursive: true })
    writeFileSync(join(box.home, '.local', 'share', 'opencode', 'opencode.db'), '')
    writeFileSync(join(box.root, 'bin', 'sqlite3'), `#!/bin/sh\ncat '${said}'\n`)
    chmodSync(join(box.root, 'bin', 'sqlite3'), 0o755)
    const rows = [
      {
        id: 'a',
        session: 's',
        parent: null,
        directory: box.worktree,
        model: 'm',
        provider: 'p',
        created: 1_800_000_000_000,
        tokens: '{"input":1,"output":2,"cache":{"read":3,"write":4}}',
        cost: 0.1,
      },
    ]
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          anyBytes,
          twisted([rows]).map((value) => Buffer.from(jsonOf(value))),
        ),
        async (bytes) => {
          writeFileSync(said, bytes)
          expect(Number.isFinite(await total())).toBe(true)
        },
      ),
      settings(8),
    )
  })

  test(`wt-usage: figures or a cause, whatever it prints ${seeded}`, async () => {
    const said = join(box.root, 'said')
    await box.wtUsage(`cat '${said}'\n`)
    const answer = {
      period: 'custom',
      input_tokens: 1,
      output_tokens: 2,
      cache_read_tokens: 3,
      cache_creation_tokens: 4,
      api_tokens: 0,
      total_tokens: 3,
    }
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          anyBytes,
          twisted([answer]).map((value) => Buffer.from(jsonOf(value))),
        ),
        async (bytes) => {
          writeFileSync(said, bytes)
          const told = await askWtUsage({
            since: '2026-01-01T00:00:00Z',
            cwd: box.worktree,
            env: box.env,
            timeoutMs: 20_000,
          })
          if (told.is === 'figures')
            expect(
              Object.values(told.figures).every((figure) => Number.isFinite(figure) && figure >= 0),
            ).toBe(true)
          else expect(told.is).toBe('failed')
        },
      ),
      settings(8),
    )
  })
})
