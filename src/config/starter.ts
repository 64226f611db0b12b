// The ralph.yaml that `ralph init` writes: what was found is set, what one often wants next stands there as a comment.
import { agentNames } from './option.ts'
import type { OptionKey } from './options.ts'

export interface Starter {
  /** Empty: none was found. */
  readonly agent: string
  readonly gates: readonly string[]
  /** Found, and not used. */
  readonly otherGates: readonly string[]
}

/** With their defaults, or with a value that makes sense for many. Short words: all of it fits a screen of 80 columns. */
const offered: readonly (readonly [key: OptionKey, value: string, what: string])[] = [
  ['sandbox', 'workspace', 'recommended: confines agent and gates'],
  ['max_retries', '3', 're-runs of a story after its first attempt'],
  ['iteration_timeout', '45', 'minutes for one run of the agent or of a gate'],
  ['max_cost', '20', 'dollars; checked before each run'],
  ['max_tokens', '3000000', 'the same in tokens'],
  ['worktree', 'true', 'run in a folder of its own instead of yours'],
  ['on_complete', 'keep', 'or cleanup, or ask: where the work goes'],
  ['prompt_append', '"Use tabs."', 'added to every prompt'],
  ['notify_command', '"say done"', 'run at the end'],
]

export function starterFile({ agent, gates, otherGates }: Starter): string {
  const width = Math.max(...offered.map(([key, value]) => `${key}: ${value}`.length))
  return [
    '# ralph: settings for this repository; a flag or a RALPH_ variable wins.',
    '# All of them: ralph config. What each is for: ralph loop --help',
    '',
    `# ${agentNames.filter((name) => name !== 'demo').join(', ')}; or two: claude,codex`,
    agent === '' ? '# agent: claude' : `agent: ${agent}`,
    '',
    '# Gates: commands that must pass before a story counts, in this order.',
    ...listed('verify', gates, '  - "npm test"'),
    ...(otherGates.length === 0 ? [] : ['# Found, and not used:']),
    ...otherGates.map((gate) => `#   - ${JSON.stringify(gate)}`),
    '',
    '# Often used; remove the # to set one:',
    ...offered.map(([key, value, what]) => `# ${`${key}: ${value}`.padEnd(width)}  # ${what}`),
    '',
  ].join('\n')
}

/** JSON texts are YAML, too, whatever is in them. */
function listed(key: string, values: readonly string[], example: string): readonly string[] {
  return values.length === 0
    ? [`# ${key}:`, `# ${example}`]
    : [`${key}:`, ...values.map((value) => `  - ${JSON.stringify(value)}`)]
}
