// Asks the wt-usage program for the tokens since the loop's start; whatever it does wrong is a cause in words, never a crash.
import { readJson } from '../../core/json.ts'
import type { UsageFigures } from '../../core/usage.ts'
import { exec } from '../process/exec.ts'
import { asObject } from './usage-record.ts'
import { onPath, ownEnv } from '../process/on-path.ts'

export type WtUsageAnswer =
  | { readonly is: 'figures'; readonly figures: UsageFigures }
  | { readonly is: 'absent' }
  | { readonly is: 'failed'; readonly cause: string }

export interface WtUsageQuestion {
  readonly since: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly timeoutMs: number
  readonly stop?: AbortSignal | undefined
}

export async function askWtUsage(question: WtUsageQuestion): Promise<WtUsageAnswer> {
  const { since, cwd, env, timeoutMs, stop } = question
  const program = onPath('wt-usage', ownEnv(env, cwd))
  if (program === undefined) return { is: 'absent' }
  const failed = (cause: string): WtUsageAnswer => ({ is: 'failed', cause })
  if (isAborted(stop)) return failed(stopped)
  const result = await exec(program, ['--since', since, '--format', 'json'], {
    cwd,
    env,
    timeoutMs,
    ...(stop !== undefined && { signal: stop }),
  })
  if (isAborted(stop)) return failed(stopped)
  if (result.timedOut) return failed(`no answer within ${timeoutMs / 1000} s`)
  if (result.spawnError !== undefined) return failed(`it could not be started (${result.spawnError.message})`)
  if (result.exitCode !== 0) {
    const words = result.stderr.trim().split('\n').at(-1) ?? ''
    return failed(`${result.signal ?? `exit code ${result.exitCode}`}${words && `: ${words.slice(0, 200)}`}`)
  }
  return parseAnswer(result.stdout.toString('utf8'))
}

/** Apart, because it changes while one waits. */
function isAborted(stop: AbortSignal | undefined): boolean {
  return stop?.aborted === true
}

const stopped = 'the loop was told to stop before it answered'

/** What one turn used: the difference, or why it cannot be told. */
export function between(before: UsageFigures, after: UsageFigures): UsageFigures | string {
  const grown = (
    key: 'input_tokens' | 'output_tokens' | 'cache_read_tokens' | 'cache_creation_tokens',
  ): number => after[key] - before[key]
  const used = grown('input_tokens') + grown('output_tokens')
  if (used === 0) return 'it counted 0 tokens for this attempt'
  if (used < 0) return `its count fell by ${-used} tokens`
  return {
    input_tokens: Math.max(0, grown('input_tokens')),
    output_tokens: Math.max(0, grown('output_tokens')),
    cache_read_tokens: Math.max(0, grown('cache_read_tokens')),
    cache_creation_tokens: Math.max(0, grown('cache_creation_tokens')),
  }
}

function parseAnswer(stdout: string): WtUsageAnswer {
  const answer = readJson(stdout)
  if (answer === undefined) {
    return { is: 'failed', cause: `its output is not JSON: ${JSON.stringify(stdout.trim().slice(0, 60))}` }
  }
  const fields = asObject(answer) ?? {}
  const count = (key: string): number | undefined => {
    const value = fields[key]
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined
  }
  const input = count('input_tokens')
  const output = count('output_tokens')
  if (input === undefined || output === undefined) {
    return { is: 'failed', cause: 'its JSON has no usable input_tokens and output_tokens' }
  }
  return {
    is: 'figures',
    figures: {
      input_tokens: input,
      output_tokens: output,
      cache_read_tokens: count('cache_read_tokens') ?? 0,
      cache_creation_tokens: count('cache_creation_tokens') ?? 0,
    },
  }
}
