// Settings of single stories, and the user's own words in every prompt: those of the run's start, whatever an agent writes.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { agentPath, standIn } from '../agents/kit.ts'
import { eventsOf, goodAgent, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

function withSettings(yaml: string, stories = 2): Scratch {
  const at = scratch({ tasks: tasksOf(stories) })
  at.write('ralph.yaml', yaml)
  at.git('add', '-A')
  at.git('commit', '-qm', 'settings')
  return at
}

describe('single stories', () => {
  test('F45: gates of a story run after those of all, for that story only', async () => {
    const at = withSettings('verify: "true"\nstories:\n  "2": { verify: test -f story-2.txt }\n')
    const end = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent, '--json'])
    expect(end.code).toBe(0)
    const gates = eventsOf(end).flatMap((event) =>
      event.type === 'gate.ended' ? [[event.n, event.command, event.outcome]] : [],
    )
    expect(gates).toEqual([
      [1, 'true', 'passed'],
      [2, 'true', 'passed'],
      [2, 'test -f story-2.txt', 'passed'],
    ])
  })

  test('F45: the model of a story reaches its agent; what names the change wins', async () => {
    const at = withSettings(
      'model: a\nstories:\n  "2": { model: b }\n  demo/3: { model: c }\n  "3": { model: x }\n',
      3,
    )
    const bin = join(at.root, 'bin')
    mkdirSync(bin)
    const script = at.script(
      'claude.sh',
      `#!/bin/sh\n[ "$1" = --version ] || echo "$RALPH_STORY $*" >> "${at.root}/called"\nexec '${agentPath('claude-works.mjs')}' "$@"\n`,
    )
    standIn(bin, 'claude', script)
    const env = { PATH: `${bin}:${at.env['PATH'] ?? ''}` }
    expect((await ralph(at, ['loop', 'demo', '--agent', 'claude', '--json'], { env })).code).toBe(0)
    const called = readFileSync(join(at.root, 'called'), 'utf8').trim().split('\n')
    expect(called.map((line) => `${line[0] ?? ''} ${/--model (\S+)/.exec(line)?.[1] ?? ''}`)).toEqual([
      '1 a',
      '2 b',
      '3 c',
    ])
  })

  test('H4: an agent that takes a gate of a story out of ralph.yaml, and adds words for the prompt, changes nothing', async () => {
    const at = withSettings('stories:\n  "2": { verify: "false" }\nprompt_append: mine\n')
    const agent = at.script(
      'agent.sh',
      `#!/bin/sh\ncat > "${at.root}/prompt-$RALPH_ITERATION"\necho "prompt_append: theirs" > ralph.yaml\n${goodAgent}\n`,
    )
    const args = ['--agent-command', agent, '--max-retries', '0', '--json']
    expect((await ralph(at, ['loop', 'demo', ...args])).code).toBe(3)
    const resumed = await ralph(at, ['resume', 'demo', '--json'])
    expect(resumed.code).toBe(3)
    expect(resumed.stdout).toContain('stories: {\\"2\\"')
    for (const n of [1, 2, 3]) {
      const prompt = readFileSync(join(at.root, `prompt-${n}`), 'utf8')
      expect(prompt).toContain('```text\nmine\n```')
      expect(prompt).not.toContain('theirs')
    }
    expect((await ralph(at, ['prompt', 'demo'])).stdout).toContain('```text\nmine\n```')
  })

  test('F45: a story that is not there: named, and refused where its change is named', async () => {
    const at = withSettings('stories:\n  "7": { verify: "true" }\n  other/9: { model: x }\n')
    const told = await ralph(at, ['loop', 'demo', '--agent-command', goodAgent])
    expect([told.code, told.stdout + told.stderr]).toEqual([
      0,
      expect.stringContaining('the settings for story 7 are not used'),
    ])
    const wrong = withSettings('stories:\n  demo/9: { verify: "true" }\n')
    const refused = await ralph(wrong, ['loop', 'demo', '--agent-command', goodAgent])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('demo/9')])
    expect(wrong.git('branch', '--show-current')).toBe('main')
  })
})
