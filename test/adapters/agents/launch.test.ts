// How each agent is called and with what environment; which are installed; who pays.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { agentEnvironment } from '../../../src/adapters/agents/environment.ts'
import { echoFilter } from '../../../src/adapters/agents/echo.ts'
import { installedAgents, loginOf } from '../../../src/adapters/agents/installed.ts'
import type { AgentRun } from '../../../src/adapters/agents/kind.ts'
import { agentKinds } from '../../../src/adapters/agents/table.ts'
import * as fc from 'fast-check'
import { bench, type Bench } from '../../agents/kit.ts'

let dir: string
let kit: Bench
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ralph-launch-'))
  kit = bench()
})
afterEach(() => {
  rmSync(dir, { recursive: true, force: true })
  kit.remove()
})

const run: AgentRun = {
  prompt: 'the prompt',
  cwd: '/repo',
  model: 'm',
  command: 'my agent',
  passThrough: ['--x', 'y z'],
  isRoot: false,
}

describe('command lines', () => {
  const rows: [keyof typeof agentKinds, string, readonly string[]][] = [
    [
      'claude',
      'claude',
      [
        '-p',
        '--output-format',
        'stream-json',
        '--verbose',
        '--dangerously-skip-permissions',
        '--model',
        'm',
        '--x',
        'y z',
      ],
    ],
    [
      'codex',
      'codex',
      [
        'exec',
        '--json',
        '--dangerously-bypass-approvals-and-sandbox',
        '--skip-git-repo-check',
        '-m',
        'm',
        '--x',
        'y z',
        '-',
      ],
    ],
    ['opencode', 'opencode', ['run', '--format', 'json', '--auto', '-m', 'm', '--x', 'y z']],
    [
      'gemini',
      'gemini',
      ['--output-format', 'stream-json', '--approval-mode', 'yolo', '--skip-trust', '-m', 'm', '--x', 'y z'],
    ],
    ['command', 'sh', ['-c', 'my agent "$@"', 'sh', '--x', 'y z']],
    ['acp', 'sh', ['-c', 'my agent "$@"', 'sh', '--x', 'y z']],
  ]
  it.each(rows)('%s', (name, file, args) =>
    expect(agentKinds[name].launch(run)).toMatchObject({ file, args }),
  )

  it('P7: no prompt is ever an argument', () => {
    for (const kind of Object.values(agentKinds))
      expect(kind.launch(run).args.join(' ')).not.toContain('the prompt')
  })

  it('a user’s own permissions replace the free hand', () => {
    expect(
      agentKinds.claude.launch({ ...run, passThrough: ['--permission-mode', 'acceptEdits'] }).args,
    ).not.toContain('--dangerously-skip-permissions')
    expect(
      agentKinds.codex.launch({ ...run, passThrough: ['--sandbox', 'workspace-write'] }).args,
    ).not.toContain('--dangerously-bypass-approvals-and-sandbox')
    expect(
      agentKinds.gemini.launch({ ...run, passThrough: ['--approval-mode', 'auto_edit'] }).args,
    ).not.toContain('yolo')
  })

  it('Claude Code is told of the sandbox only where it is needed', () => {
    expect(agentKinds.claude.launch(run).env).not.toHaveProperty('IS_SANDBOX')
    expect(agentKinds.claude.launch({ ...run, isRoot: true }).env).toHaveProperty('IS_SANDBOX', '1')
  })
})

describe('environment', () => {
  const base = { task: { RALPH_STORY: '2' }, kind: {}, own: {}, hidden: [], tempDir: '/tmp/own' }

  it('is the user’s, minus what makes a nested agent misbehave', () => {
    const user = {
      HOME: '/h',
      CLAUDECODE: '1',
      CLAUDE_CODE_ENTRYPOINT: 'cli',
      NODE_OPTIONS: '--inspect',
      VITEST: 'true',
      GIT_DIR: '/x',
      GIT_AUTHOR_NAME: 'me',
      FORCE_COLOR: '3',
    }
    expect(agentEnvironment({ ...base, user })).toEqual({
      HOME: '/h',
      GIT_AUTHOR_NAME: 'me',
      TMPDIR: '/tmp/own',
      RALPH_STORY: '2',
    })
  })

  it('keeps NODE_OPTIONS that a project may need', () => {
    const user = { NODE_OPTIONS: '--max-old-space-size=8192' }
    expect(agentEnvironment({ ...base, user })).toMatchObject(user)
  })

  it('--agent-env is stronger than the user’s, and cannot change who the run is', () => {
    const own = { HOME: '/other', RALPH_STORY: '9' }
    expect(agentEnvironment({ ...base, user: { HOME: '/h' }, own })).toMatchObject({
      HOME: '/other',
      RALPH_STORY: '2',
    })
  })

  it.each(['command', 'acp', 'opencode'] as const)(
    'R12: from %s every known provider’s key is hidden',
    (agent) => {
      const known = [
        'OPENROUTER_API_KEY',
        'MISTRAL_API_KEY',
        ...agentKinds.claude.keys,
        ...agentKinds.codex.keys,
      ]
      expect(agentKinds[agent].keys).toEqual(expect.arrayContaining([...known, ...agentKinds.gemini.keys]))
    },
  )

  it('R12: --no-api-key hides the key from the agent', async () => {
    const env = { OPENROUTER_API_KEY: 'secret-key', OTHER: 'kept' }
    const hidden = await kit.command('shows-environment.sh', { options: { env, noApiKey: true } })
    expect(hidden.transcript.toString()).not.toContain('secret-key')
    expect(hidden.transcript.toString()).toContain('OTHER=kept')
    expect(hidden.transcript.toString()).toContain('RALPH_RUN_ID=')
    const shown = await kit.command('shows-environment.sh', { options: { env } })
    expect(shown.transcript.toString()).toContain('secret-key')
  })
})

describe('what is installed, and who pays', () => {
  it('is found on PATH without starting it, in order of preference', () => {
    for (const name of ['gemini', 'claude']) {
      writeFileSync(join(dir, name), '#!/bin/sh\nexit 1\n')
      chmodSync(join(dir, name), 0o755)
    }
    writeFileSync(join(dir, 'codex'), 'not executable')
    mkdirSync(join(dir, 'opencode'))
    expect(installedAgents({ PATH: `/nowhere:${dir}` })).toEqual(['claude', 'gemini'])
    expect(installedAgents({})).toEqual([])
  })

  it('R12, B2: a key, a subscription, none, or not known where ralph cannot look', () => {
    const seen = (
      agent: string,
      env: NodeJS.ProcessEnv = {},
      platform: NodeJS.Platform = 'linux',
    ): string => {
      const { is, how } = loginOf(agent, { HOME: dir, ...env }, platform)
      return how === '' ? is : how
    }
    expect(seen('claude', { ANTHROPIC_API_KEY: 'k' })).toBe('API key ANTHROPIC_API_KEY')
    expect(seen('claude', { CLAUDE_CODE_OAUTH_TOKEN: 't' })).toBe(
      'subscription login, CLAUDE_CODE_OAUTH_TOKEN',
    )
    expect(seen('claude')).toBe('none')
    expect(seen('claude', {}, 'darwin')).toBe('unknown')
    mkdirSync(join(dir, '.claude'))
    writeFileSync(join(dir, '.claude', 'settings.json'), '{"apiKeyHelper":"pass show key"}')
    expect(seen('claude')).toBe('unknown')
    writeFileSync(join(dir, '.claude.json'), '{"primaryApiKey":"k"}')
    expect(seen('claude')).toContain('API key')
    writeFileSync(join(dir, '.claude', '.credentials.json'), '{}')
    expect(seen('claude')).toBe('subscription login')
    expect(seen('codex')).toBe('none')
    mkdirSync(join(dir, '.codex'))
    writeFileSync(
      join(dir, '.codex', 'auth.json'),
      JSON.stringify({ OPENAI_API_KEY: null, tokens: { id_token: 'x' } }),
    )
    expect(seen('codex')).toBe('subscription login')
    writeFileSync(join(dir, '.codex', 'auth.json'), JSON.stringify({ OPENAI_API_KEY: 'k' }))
    expect(seen('codex')).toContain('API key')
    writeFileSync(join(dir, '.codex', 'auth.json'), '{"cut')
    expect(seen('codex')).toBe('none')
    writeFileSync(join(dir, '.codex', 'config.toml'), 'model_provider = "house"\n')
    expect(seen('codex')).toBe('unknown')
    expect(seen('gemini')).toBe('none')
    expect(seen('gemini', { GEMINI_API_KEY: 'k' })).toBe('API key GEMINI_API_KEY')
    expect(seen('opencode')).toBe('unknown')
    expect(seen('command')).toBe('unknown')
  })
})

describe('P2: a copy of the prompt is not the assistant’s', () => {
  const prompt = `Do story 1.\n${'A long line of orders. '.repeat(20)}\nThen say so.\n`

  it('is taken out wherever the stream is cut, and nothing else is', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.array(fc.nat(1000), { maxLength: 8 }),
        (before, after, cuts) => {
          const text = `${before}\n${prompt.trim()}${after}`
          const filter = echoFilter(prompt)
          const places = [
            0,
            ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b),
            text.length,
          ]
          let own = ''
          for (let i = 1; i < places.length; i++) own += filter.feed(text.slice(places[i - 1], places[i]))
          expect(own + filter.end()).toBe(`${before}\n${after}`)
        },
      ),
    )
  })

  it('half a copy stays', () => {
    const filter = echoFilter(prompt)
    const half = prompt.slice(0, 100)
    expect(filter.feed(half) + filter.end()).toBe(half)
  })
})

describe('the demo agent', () => {
  const tasks =
    '# Tasks\n\n## 1. First\n- [x] 1.1 old\n- [ ] 1.2 new\n\n## Notes\nnone\n\n## 2. Second\n- [ ] 2.1 a\n- [ ] 2.2 b\n'
  const work = (story: string, attempt: string): ReturnType<Bench['work']> => {
    mkdirSync(join(kit.cwd, 'openspec/changes/add-x'), { recursive: true })
    writeFileSync(join(kit.cwd, 'openspec/changes/add-x/tasks.md'), tasks)
    const env = {
      RALPH_RUN_ID: `demo-${story}-${attempt}-${process.pid}`,
      RALPH_ITERATION: '1',
      RALPH_CHANGE: 'add-x',
      RALPH_STORY: story,
      RALPH_ATTEMPT: attempt,
    }
    return kit.work('demo', { task: { env } })
  }

  it('edits files for the open tasks of its story and leaves the plan alone', async () => {
    const { ended } = await work('1', '1')
    expect(ended).toMatchObject({ ending: 'finished', promise: { kind: 'complete' } })
    const note = readFileSync(join(kit.cwd, 'ralph-demo/add-x/story-1.md'), 'utf8')
    expect(note).toBe('# 1. First\n\n- 1.2 new\n')
    expect(readFileSync(join(kit.cwd, 'openspec/changes/add-x/tasks.md'), 'utf8')).toBe(tasks)
  })

  it('fails once, with a reason, on the second story', async () => {
    expect((await work('2', '1')).ended.promise).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('on purpose'),
    })
    expect((await work('2', '2')).ended.promise).toEqual({ kind: 'complete' })
  })
})
