// What one setting is made of; the settings themselves are in options.ts.

/** The names `--agent` takes; `command` is what `--agent-command` runs. */
export const agentNames = ['claude', 'codex', 'opencode', 'gemini', 'command', 'acp', 'demo'] as const
type AgentChoice = (typeof agentNames)[number]

/** Hours, minutes, seconds: `90s`, `1h 30m`. */
export const durationPattern =
  /^(?=\d)(?:(\d+(?:\.\d+)?)\s*h)?\s*(?:(\d+(?:\.\d+)?)\s*m(?:in)?)?\s*(?:(\d+(?:\.\d+)?)\s*s)?$/

/** By story id (`2`), or by change and story id (`add-login/2`). */
export type StoryWishes = Readonly<
  Record<string, { readonly verify?: readonly string[]; readonly model?: string }>
>

/** What a kind of setting holds once it is read. */
export interface KindValues {
  count: number
  positive: number
  minutes: number
  minutes_or_off: number
  seconds: number
  usd: number
  /** As written: `4G`. */
  size: string
  text: string
  url: string
  choice: string
  texts: readonly string[]
  pairs: Readonly<Record<string, string>>
  /** By path or glob. */
  commands: Readonly<Record<string, string>>
  agents: readonly AgentChoice[]
  /** `true`: ralph picks the folder. */
  folder: string | true
  switch: boolean
  stories: StoryWishes
}
export type OptionKind = keyof KindValues

/** Headings of the help text, in the order in which a reader decides. */
export const optionGroups = [
  'What to run',
  'Agent',
  'Gates',
  'Limits',
  'Sandbox',
  'Work and end',
  'Output',
] as const

export interface OptionSpec {
  readonly group: (typeof optionGroups)[number]
  readonly kind: OptionKind
  /** How the value is called in help; a switch has none. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly default?: KindValues[OptionKind]
  /** Where the default is worked out later: how to say it. */
  readonly defaultText?: string
  readonly help: string
  /** Given after `--`, or in a file only. */
  readonly flagless?: 'rest' | 'file'
}
