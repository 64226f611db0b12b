// Programs on PATH that count tokens or use them, and the session files of Claude Code in the test's own home.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { agentPath, standIn } from '../agents/kit.ts'
import type { Finished, Scratch } from './harness.ts'

/** Puts a program in front of everything else on this test's PATH. */
export function install(at: Scratch, name: string, body: string): void {
  const file = join(binOf(at), name)
  writeFileSync(file, body)
  chmodSync(file, 0o755)
}

/** `body` may use $n, the number of this call; every call and its arguments are in `calls`. */
export function installWtUsage(at: Scratch, body: string): { calls(): readonly string[] } {
  const log = join(at.root, 'wt-usage-calls')
  install(at, 'wt-usage', `#!/bin/sh\necho "$*" >> '${log}'\nn=$(wc -l < '${log}' | tr -d ' ')\n${body}\n`)
  return { calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : []) }
}

/** What wt-usage prints; `input` is shell arithmetic over n. */
export function counted(input: string): string {
  return `printf '{"period":"custom","input_tokens":%d,"output_tokens":%d,"cache_read_tokens":%d,"cache_creation_tokens":%d,"api_tokens":0,"total_tokens":0}' $((${input})) $((n * 10)) $((n * 50)) $((n * 3))`
}

/** A stand-in for Claude Code; `body` speaks through the helpers of claude-lines.mjs. Its plain form uses 120 tokens, $0.0127. */
export function installClaude(at: Scratch, body = works): void {
  const script = at.script(
    'claude.mjs',
    `#!/usr/bin/env node
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { init, readPrompt, say, success, text } from '${agentPath('claude-lines.mjs')}'
const n = Number(process.env.RALPH_ITERATION)
const session = ${JSON.stringify(join(projectOf(at), 'session-1.jsonl'))}
await readPrompt()
appendFileSync('${at.root}/spawned', process.env.RALPH_STORY + '\\n')
init()
${body}
`,
  )
  standIn(binOf(at), 'claude', script)
}

export const works = `
writeFileSync('story-' + process.env.RALPH_STORY + '.txt', 'x')
text('<promise>COMPLETE</promise>')
success('')
`

/** Which stories an agent was started for. */
export function spawned(at: Scratch): readonly string[] {
  const file = join(at.root, 'spawned')
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
}

/** Where Claude Code keeps the sessions of the scratch repository. */
export function projectOf(at: Scratch, folder = at.repo): string {
  return join(at.env['HOME'] ?? '', '.claude', 'projects', folder.replaceAll(/[^A-Za-z0-9]/g, '-'))
}

export interface Answer {
  readonly id: string
  readonly time: string
  readonly input: number
  readonly output: number
  readonly model?: string
}

/** One answer as Claude Code writes it into its session file. */
export function answerLine(cwd: string, { id, time, input, output, model }: Answer): string {
  return `${JSON.stringify({
    type: 'assistant',
    sessionId: 'session-1',
    cwd,
    timestamp: time,
    message: {
      id,
      model: model ?? 'claude-sonnet-4-5',
      usage: {
        input_tokens: input,
        output_tokens: output,
        cache_read_input_tokens: 1000,
        cache_creation_input_tokens: 0,
      },
    },
  })}\n`
}

export function writeSession(at: Scratch, file: string, lines: string): void {
  const path = join(projectOf(at), file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines)
}

/** Lines of stderr that warn about tokens. */
export function tokenWarnings(end: Finished): readonly string[] {
  return end.stderr.split('\n').filter((line) => line.startsWith('warning:') && /token/.test(line))
}

function binOf(at: Scratch): string {
  const bin = join(at.root, 'bin')
  if (!existsSync(bin)) {
    mkdirSync(bin)
    at.env['PATH'] = `${bin}:${at.env['PATH'] ?? ''}`
  }
  return bin
}
