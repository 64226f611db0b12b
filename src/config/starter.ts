// The ralph.yaml that `ralph init` writes: what was found is set, what one often wants next stands there as a comment.
import { agentNames } from './option.ts'
import { specOf } from './options.ts'
import type { OptionKey } from './options.ts'

export interface Starter {
  /** Empty: none was found. */
  readonly agent: string
  readonly gates: readonly string[]
  /** Found, and not used. */
  readonly otherGates: readonly string[]
}

/** With their defaults, or with a value that makes sense for many. */
const offered: readonly (readonly [key: OptionKey, value: string])[] = [
  ['max_retries', '3'],
  ['iteration_timeout', '45'],
  ['idle_timeout', '10'],
  ['max_tokens', '3000000'],
  ['max_cost', '20'],
  ['limit_wait', '360'],
  ['worktree', 'true'],
  ['on_complete', 'keep'],
  ['prompt_append', '"Keep commits small."'],
  ['notify_command', '"mail -s ralph me@example.org"'],
]

export function starterFile({ agent, gates, otherGates }: Starter): string {
  const width = Math.max(...offered.map(([key, value]) => `${key}: ${value}`.length))
  return [
    '# ralph: settings for this repository. A flag (--max-retries 1) and a variable (RALPH_MAX_RETRIES=1) win over them.',
    '# Every setting, its value and where it comes from: ralph config. What each is for: ralph loop --help.',
    '',
    `# The agent: ${agentNames.filter((name) => name !== 'demo').join(', ')}. After a comma, the one that takes over at its limit.`,
    agent === '' ? '# agent: claude' : `agent: ${agent}`,
    '',
    '# Gates: commands that must pass before a story counts, in this order.',
    ...listed('verify', gates, '  - "npm test"'),
    ...(otherGates.length === 0 ? [] : ['# Found, and not used:']),
    ...otherGates.map((gate) => `#   - ${JSON.stringify(gate)}`),
    '',
    '# Often wanted, too; take the # away:',
    ...offered.map(
      ([key, value]) => `# ${`${key}: ${value}`.padEnd(width)}  # ${specOf(key).help.replaceAll('\n', ' ')}`,
    ),
    '',
  ].join('\n')
}

/** JSON texts are YAML, too, whatever is in them. */
function listed(key: string, values: readonly string[], example: string): readonly string[] {
  return values.length === 0
    ? [`# ${key}:`, `# ${example}`]
    : [`${key}:`, ...values.map((value) => `  - ${JSON.stringify(value)}`)]
}
