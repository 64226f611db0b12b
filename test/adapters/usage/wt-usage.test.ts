// Tokens by wt-usage, a real program on PATH that does everything wrong that programs do (seed 004, hazard R13).
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { measureUsage } from '../../../src/adapters/usage/measure.ts'
import type { UsageDeps } from '../../../src/adapters/usage/measure.ts'
import { noUsage } from '../../../src/core/usage.ts'
import type { MeasuredUsage } from '../../../src/ports.ts'
import { answer, clockAt, sandbox, turnStartMs } from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'

let box: Sandbox
beforeEach(async () => {
  box = await sandbox()
})
afterEach(() => box.remove())

const own = { ...noUsage, input_tokens: 70, output_tokens: 7 }

function usage(source: UsageDeps['source'] = 'auto') {
  const { worktree, env } = box
  return measureUsage({
    worktree,
    env,
    clock: clockAt(turnStartMs),
    loopStarted: '2026-02-09T08:30:00+00:00',
    source,
  })
}

/** One turn in which Claude Code writes 4,000 bytes that hold no figures. */
async function turn(measure = usage()): Promise<MeasuredUsage> {
  await box.write(join(box.claudeFolder, 'old.jsonl'), 'o'.repeat(1000))
  await measure.before('claude')
  await box.write(join(box.claudeFolder, 'old.jsonl'), 'o'.repeat(2000))
  await box.write(join(box.claudeFolder, 'new.jsonl'), 'n'.repeat(3000))
  return measure.after('claude', own, undefined)
}

test('the demo agent has no model: it used nothing, and nothing is missing', async () => {
  const measure = usage()
  await measure.before('demo')
  await box.write(join(box.claudeFolder, 'new.jsonl'), 'n'.repeat(3000))
  expect(await measure.after('demo', undefined, undefined)).toEqual({
    ...noUsage,
    estimated: false,
    source: 'agent',
  })
})

describe('S004 token counting via wt-usage', () => {
  test('S004: tokens are the difference of wt-usage --since <loop start> before and after, all four parts', async () => {
    await box.wtUsage(answer('n * 1000', 'n * 10'))
    expect(await turn()).toMatchObject({
      input_tokens: 1000,
      output_tokens: 10,
      cache_read_tokens: 50,
      cache_creation_tokens: 0,
      estimated: false,
      source: 'wt-usage',
    })
    const calls = await readFile(join(box.root, 'calls'), 'utf8')
    expect(calls).toBe('--since 2026-02-09T08:30:00+00:00 --format json\n'.repeat(2))
  })

  test('wt-usage outranks the agent, and a disagreement of more than 20 % is noted', async () => {
    await box.wtUsage(answer('n * 1000'))
    expect((await turn()).note).toContain('wt-usage says 1000 tokens, agent says 77')
  })
})

describe('S004 token tracking failure fallback', () => {
  const broken: [name: string, script: string, cause: string][] = [
    ['R13 zero', answer('500'), 'counted 0 tokens'],
    ['R13 falling', answer('5000 - n * 100'), 'fell by 100 tokens'],
    ['R13 failing', 'echo "no module named usage" >&2; exit 3\n', 'exit code 3: no module named usage'],
    ['R13 failing only afterwards', `[ $n = 2 ] && exit 1\n${answer('n')}`, 'exit code 1'],
    ['R13 killed', 'kill -9 $$\n', 'SIGKILL'],
    ['R13 garbage', 'echo "Claude Usage: lots"\n', 'not JSON'],
    ['R13 half a line', `printf '{"input_tokens": 12'\n`, 'not JSON'],
    ['R13 silent', 'exit 0\n', 'not JSON'],
    ['R13 null fields', `echo '{"input_tokens":null,"output_tokens":5}'\n`, 'no usable input_tokens'],
    ['R13 an array', 'echo "[1]"\n', 'no usable input_tokens'],
    ['R13 hanging (10 s limit)', 'sleep 1000 & wait\n', 'no answer within 10 s'],
    ['R13 not a program', 'exec /nonexistent/interpreter\n', 'exit code 127'],
  ]
  test.each(broken)(
    '%s: one warning with the cause, then growth / 4, marked as estimated',
    async (_, script, cause) => {
      await box.wtUsage(script)
      const measured = await turn()
      expect(measured).toMatchObject({ ...noUsage, input_tokens: 1000, estimated: true, source: 'estimate' })
      expect(measured.warning).toContain(`wt-usage: `)
      expect(measured.warning).toContain(cause)
    },
  )

  test('R13: the warning comes once, however often wt-usage fails', async () => {
    await box.wtUsage('exit 1\n')
    const measure = usage()
    expect((await turn(measure)).warning).not.toBe(undefined)
    const second = await turn(measure)
    expect([second.warning, second.estimated]).toEqual([undefined, true])
    expect(second.note).toContain('exit code 1')
  })

  test('R13: files that shrink or vanish during the turn count nothing, never less than 0', async () => {
    await box.wtUsage('exit 1\n')
    const measure = usage()
    const [shrinking, vanishing] = [join(box.claudeFolder, 'a.jsonl'), join(box.claudeFolder, 'b.jsonl')]
    await box.write(shrinking, 'x'.repeat(9000))
    await box.write(vanishing, 'x'.repeat(9000))
    await measure.before('claude')
    await box.write(shrinking, 'x'.repeat(10))
    await rm(vanishing)
    expect(await measure.after('claude', undefined, undefined)).toMatchObject({
      input_tokens: 0,
      estimated: true,
    })
  })

  test('R13: no session files at all: 0, marked as estimated', async () => {
    await box.wtUsage('exit 1\n')
    const measure = usage()
    await measure.before('command')
    expect(await measure.after('command', undefined, undefined)).toMatchObject({
      ...noUsage,
      estimated: true,
    })
  })

  test('R5: told to stop, it does not wait 10 s for a hanging wt-usage', async () => {
    await box.wtUsage(`[ $n = 2 ] && { sleep 1000 & wait; }\n${answer('n')}`)
    const measure = usage()
    await measure.before('claude')
    const measured = await measure.after('claude', own, undefined, undefined, { hurry: true })
    expect(measured.warning).toContain('no answer within 1.5 s')
  })

  test('R13: a turn that was never announced has no growth', async () => {
    await box.write(join(box.claudeFolder, 'a.jsonl'), 'x'.repeat(9000))
    expect(await usage().after('claude', undefined, undefined)).toMatchObject({
      input_tokens: 0,
      estimated: true,
    })
  })
})

describe('the order of sources', () => {
  test('without wt-usage the agent’s own figures count, without a warning', async () => {
    expect(await turn()).toMatchObject({ ...own, estimated: false, source: 'agent' })
  })

  test('a wt-usage that is not executable, or a folder, is not on PATH', async () => {
    await box.write(join(box.root, 'bin', 'wt-usage', 'README'), 'a folder')
    expect((await turn()).source).toBe('agent')
  })

  test('--usage agent never asks wt-usage', async () => {
    await box.wtUsage(answer('n * 1000'))
    expect((await turn(usage('agent'))).source).toBe('agent')
    await expect(readFile(join(box.root, 'calls'))).rejects.toThrow('ENOENT')
  })

  test.each([
    ['wt-usage', 'wt-usage is not on PATH'],
    ['sessions', 'the session files of the agent do not have them'],
  ] as const)('--usage %s without its source warns and estimates', async (source, cause) => {
    const measured = await turn(usage(source))
    expect(measured).toMatchObject({ input_tokens: 1000, estimated: true })
    expect(measured.warning).toContain(cause)
  })

  test('--usage agent without own figures warns and estimates', async () => {
    const measure = usage('agent')
    await measure.before('claude')
    expect((await measure.after('claude', undefined, undefined)).warning).toContain(
      'the agent did not report them',
    )
  })
})
