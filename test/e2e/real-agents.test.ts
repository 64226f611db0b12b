// The real CLIs through the whole built program, against the scripted model server.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { onPath } from '../../src/adapters/process/on-path.ts'
import { findAlive } from '../../src/adapters/process/reap.ts'
import { pointedAt, realAgent, type RealAgent } from '../model-stub/real-agents.ts'
import type { Script, Step } from '../model-stub/script.ts'
import { modelServer, type ModelServer } from '../model-stub/server.ts'
import type { StateFile } from '../../src/core/state-file.ts'
import { eventsOf, ralph, scratch, start, tasksOf } from './harness.ts'
import type { Finished, Scratch } from './harness.ts'
import { expectTruth } from './truth.ts'

/** Those that are run by their own protocol are so in the sandbox, where it can be made: the others are run without. */
const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']).status === 0

const oneStory = { tasks: tasksOf(1) }

interface Row {
  readonly title: string
  readonly name: RealAgent
  readonly agent: readonly string[]
  /** A start of OpenCode or Gemini is two to three seconds of work, and what comes after a story is not theirs: one each. */
  readonly stories: 1 | 2
  /** Of a model call. */
  readonly tokens: number
}

const own = (name: RealAgent, stories: 1 | 2, tokens: number): Row => ({
  title: hasBwrap ? `${name}, in the sandbox` : name,
  name,
  agent: ['--agent', name, ...(hasBwrap ? ['--sandbox', 'workspace'] : [])],
  stories,
  tokens,
})
const acp = (name: RealAgent, command: string, tokens: number): Row => ({
  title: command,
  name,
  agent: ['--agent', 'acp', '--agent-command', command],
  stories: 1,
  tokens,
})
const rows = [
  // The input of the others counts what came from the cache; ralph leaves that out.
  own('claude', 2, 1050),
  own('codex', 2, 850),
  own('opencode', 1, 850),
  own('gemini', 1, 850),
  acp('opencode', 'opencode acp', onPath('sqlite3', process.env) === undefined ? 0 : 850),
  // It does not tell what came from the cache, nor what was thought.
  acp('gemini', 'gemini --acp', 1040),
]

for (const row of rows) {
  const { missing } = realAgent(row.name)
  const isOptional = row.name === 'opencode' || row.name === 'gemini'
  const isSkipped = isOptional && missing !== ''
  describe.skipIf(isSkipped)(
    `real ${row.title}${isSkipped ? `, skipped: not installed, ${missing}` : ''}`,
    () => {
      test('is installed', () => expect(missing).toBe(''))

      // A start of a real agent takes seconds: one run has it all, and each test its part of it.
      let played: Promise<Played> | undefined
      const run = (): Promise<Played> => (played ??= play(row))

      const title =
        row.stories === 2
          ? 'two stories by real tool calls, the second FAILED once and retried with its reason'
          : 'a story by real tool calls, FAILED once and retried with its reason'
      test(title, async () => {
        const { resumed, state, files } = await run()
        expect(resumed.code).toBe(0)
        const [, ...iterations] = state.iterations
        const last = String(row.stories)
        expect(iterations.map(({ story_id, attempt, verdict }) => [story_id, attempt, verdict])).toEqual([
          ...(row.stories === 2 ? [['1', 1, 'complete']] : []),
          [last, 1, 'failed'],
          [last, 2, 'complete'],
        ])
        expect(files).toEqual({ 'works.txt': 'x\n', ...(row.stories === 2 && { 'story-2.txt': 'made' }) })
        const calls = 2 * iterations.length
        expect(iterations.reduce((sum, { tokens_used }) => sum + tokens_used, 0)).toBe(calls * row.tokens)
      })

      test('gives a reason with FAILED', async () => {
        const { state } = await run()
        expect(state.iterations.map(({ reason }) => reason)).toContain(reason)
      })

      test('O13: its git works, and what it does to refs is known and goes back', async () => {
        const { refs, resumed } = await run()
        expect(refs.after).toEqual(refs.before)
        const messages = eventsOf(resumed).flatMap((event) =>
          event.type === 'warning' ? [event.message] : [],
        )
        expect(messages).toEqual(
          expect.arrayContaining([
            'the agent deleted old; it is back',
            expect.stringMatching(/^the agent made tags\/made; /),
          ]),
        )
      })

      test('R4, R5: TERM in the middle of a tool: recorded once, nothing alive, exit 143, the tree clean; a resume goes on', async () => {
        const { stopped, stateThen, resumed, state } = await run()
        expect(stopped.code).toBe(143)
        expect(stateThen).toMatchObject({ status: 'stopped' })
        expect(stateThen.iterations).toMatchObject([{ verdict: 'interrupted' }])
        expect(resumed.code).toBe(0)
        expect(state).toMatchObject({ status: 'done' })
      })

      test('R4, R18: a stop in the middle of a tool ends the tool too, and no verdict comes of it', async () => {
        const { stateThen, aliveThen, temporaryThen } = await run()
        expect(stateThen.iterations).toMatchObject([{ verdict: 'interrupted' }])
        expect(aliveThen).toEqual([])
        expect(temporaryThen).toEqual([])
      })
    },
  )
}

/** The others repeat their call for minutes before they tell. */
for (const row of rows.filter(({ name }) => name === 'claude' || name === 'codex')) {
  describe(`real ${row.title}, its provider`, () => {
    test('R8: a 429 with a reset: waits, says until when, and a stop ends the wait', async () => {
      const at = scratch(oneStory)
      const resetsAt = Math.ceil(Date.now() / 1000) + 3600
      const server = await serve(() => limit(resetsAt))
      const { args, options } = realArgs(row, at, server, [], subscription)
      const running = start(at, ['loop', ...args], options)
      await running.seen((stdout) => stdout.includes('"type":"waiting"'))
      running.child.kill('SIGINT')
      const end = await running.ended
      expect(end.code).toBe(130)
      expectTruth(at, end)
      const waiting = eventsOf(end).find((event) => event.type === 'waiting')
      // Codex tells minutes only.
      expect(Math.abs((waiting?.until_ms ?? 0) / 1000 - resetsAt)).toBeLessThanOrEqual(120)
      expect(at.state().iterations).toMatchObject([{ verdict: 'limit' }])
    })

    test('R8: an overloaded service: waits, goes on with the same attempt, no retry used', async () => {
      const at = scratch(oneStory)
      const script = storyScript(at)
      const server = await serve((call) =>
        call.before === 0 ? { do: 'fail', status: 503, message: 'overloaded' } : script(call),
      )
      const end = await real(row, at, server, ['--max-retries', '0'])
      expect(end.code).toBe(0)
      expectTruth(at, end)
      expect(eventsOf(end).filter((event) => event.type === 'waiting')).toMatchObject([{ for: 'overloaded' }])
      expect(at.state().iterations.map(({ verdict, attempt }) => [verdict, attempt])).toEqual([
        ['limit', 1],
        ['complete', 1],
      ])
    })
  })
}

interface Played {
  readonly stopped: Finished
  readonly stateThen: StateFile
  /** What still ran of the tool, and what was left of the agent's temporary files. */
  readonly aliveThen: readonly number[]
  readonly temporaryThen: readonly string[]
  readonly resumed: Finished
  readonly state: StateFile
  readonly files: Record<string, string>
  /** Branches and tags. */
  readonly refs: { readonly before: string; readonly after: string }
}

/** TERM in the middle of a tool of story 1; then story 1 with much git in it, and the last story gives up once. */
async function play(row: Row): Promise<Played> {
  const at = scratch({ tasks: tasksOf(row.stories) })
  at.git('branch', 'old')
  const listed = (): string => at.git('for-each-ref', 'refs/heads', 'refs/tags')
  const before = listed()
  const script = storyScript(at, row.stories)
  let isHanging = true
  const server = await serve((call) => (isHanging ? { do: 'shell', command: hangingTool } : script(call)))
  const temp = join(at.root, 'temp')
  mkdirSync(temp)
  const { args, options } = realArgs(row, at, server, ['--on-complete', 'cleanup'], { TMPDIR: temp })
  const started = fileIn(at.repo, 'started.txt')
  const running = start(at, ['loop', ...args], options)
  await Promise.race([started, running.ended])
  running.child.kill('SIGTERM')
  const stopped = await running.ended
  expectTruth(at, stopped)
  const stateThen = at.state()
  const aliveThen = findAlive({ marker: { HOME: join(at.root, 'home') } }).map(({ pid }) => pid)
  const temporaryThen = readdirSync(temp)

  isHanging = false
  const resumed = await ralph(at, ['resume', ...args], options)
  const names = readdirSync(at.repo).filter((name) => name.endsWith('.txt'))
  return {
    stopped,
    stateThen,
    aliveThen,
    temporaryThen,
    resumed,
    state: at.state(),
    files: Object.fromEntries(names.map((name) => [name, at.read(name)])),
    refs: { before, after: listed() },
  }
}

function real(row: Row, at: Scratch, server: ModelServer, more: readonly string[] = []): Promise<Finished> {
  const { args, options } = realArgs(row, at, server, more)
  return ralph(at, ['loop', ...args], options)
}

function realArgs(
  { name, agent }: Row,
  at: Scratch,
  server: ModelServer,
  more: readonly string[] = [],
  env: Record<string, string> = {},
): { args: string[]; options: { env: NodeJS.ProcessEnv } } {
  const pointed = pointedAt(name, server.url, join(at.root, 'home'))
  const variables = Object.entries({ ...pointed.env, ...env }).filter(([, value]) => value !== '')
  return {
    args: ['demo', '--json', ...agent, '--model', pointed.model, ...more, '--', ...pointed.passThrough],
    options: {
      env: { ...Object.fromEntries(variables), PATH: `${realAgent(name).bin}:${at.env['PATH'] ?? ''}` },
    },
  }
}

/** Resolves as soon as the file is there. */
function fileIn(folder: string, name: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(folder, (_event, file) => {
      if (file === name) resolve()
    })
    onTestFinished(() => watcher.close())
  })
}

/** One part of it leaves the agent's group. */
const hangingTool = 'setsid tail -f /dev/null & echo x > started.txt; tail -f /dev/null'

/** Of two lines. */
const reason = 'the parser is missing\nno tests'

const gitDoings =
  'git branch -qD old; git tag made; git commit -q --allow-empty -m agent && git stash list && echo x > works.txt'

/** The last story, of two or one, leaves a mess and gives up, until its prompt tells the reason; any other is done at once. */
function storyScript(at: Scratch, stories = 2): Script {
  return ({ prompt, results }): Step => {
    const story = /Your story: (\d)/.exec(prompt)?.[1] ?? '1'
    const isFirstTry = story === String(stories) && !prompt.includes('the parser is missing')
    if (results === 0 && story === '1' && !isFirstTry) return { do: 'shell', command: gitDoings }
    const file = isFirstTry ? 'mess.txt' : `story-${story}.txt`
    if (results === 0) return { do: 'write', path: join(at.repo, file), content: 'made' }
    return {
      do: 'say',
      text: isFirstTry ? `<promise>FAILED: ${reason}</promise>` : 'Done.\n<promise>COMPLETE</promise>',
    }
  }
}

/** Only a subscription's limit carries the time of its reset. */
const subscription = { ANTHROPIC_API_KEY: '', CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test-key' }

function limit(resetsAt: number): Step {
  const headers = {
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-reset': String(resetsAt),
    'anthropic-ratelimit-unified-representative-claim': 'five_hour',
  }
  return { do: 'fail', status: 429, message: 'limit', headers, resetsAt }
}

async function serve(script: Script): Promise<ModelServer> {
  const server = await modelServer(script)
  onTestFinished(() => server.close())
  return server
}
