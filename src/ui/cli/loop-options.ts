// Declares the settings of the table as flags, and reads back what was really given.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { Help, Option } from '@commander-js/extra-typings'
import { RalphError } from '../../core/error.ts'
import type { RawFlags } from '../../config/load.ts'
import { flagOf, optionKeys, specOf } from '../../config/options.ts'
import { optionGroups } from '../../config/option.ts'
import type { OptionKey } from '../../config/options.ts'
import type { OptionSpec } from '../../config/option.ts'

/** A flag and nothing else: in a file or a variable it would be an agent's word. */
export const acceptConfig = [
  '--accept-config',
  'use ralph.yaml, git settings and hooks as an agent changed them',
] as const

/** Hidden: the screens start a loop so, see attended.ts. */
export const attendedFlag = '--attended'

/** Hidden: the merge queue starts a loop so. */
export const aloneFlag = '--alone'

/** For commands that take the same options: their help names its page. */
export function asLoop(except: readonly OptionKey[]): string {
  const not = except.map((key) => `--${key.replaceAll('_', '-')}`)
  return `It takes the options of ralph loop, too (ralph loop --help), but not\n${not.join(', ')}.`
}

/** Returns the reader for the command's action. */
export function addLoopOptions(
  command: CommandUnknownOpts,
  {
    except = [],
    isShort = false,
  }: { readonly except?: readonly OptionKey[]; readonly isShort?: boolean } = {},
): () => RawFlags {
  const declared = new Map<OptionKey, Option>()
  for (const group of optionGroups) {
    for (const key of optionKeys) {
      const spec = specOf(key)
      if (spec.group !== group || spec.flagless || except.includes(key)) continue
      const option = toOption(key, spec).helpGroup(`${group}:`)
      declared.set(key, option)
      command.addOption(option)
    }
  }
  if (isShort) hideFromHelp(command, new Set<unknown>(declared.values()))
  return () => readFlags(command, declared)
}

/** From the page alone: Tab and "did you mean" know them. */
function hideFromHelp(command: CommandUnknownOpts, hidden: ReadonlySet<unknown>): void {
  const plain = new Help()
  command.configureHelp({
    ...command.configureHelp(),
    longestOptionTermLength: (each, helper) =>
      Math.max(
        ...helper
          .visibleOptions(each)
          .map((option) => (hidden.has(option) ? 0 : helper.optionTerm(option).length)),
      ),
    groupItems: (all, visible, groupOf) =>
      plain.groupItems(
        all,
        visible.filter((item) => !hidden.has(item)),
        groupOf,
      ),
  })
}

/** The options as they were given, each with its value where it has one. */
export function givenWords(flags: RawFlags): readonly (readonly [flag: string, value?: string])[] {
  return optionKeys.flatMap((key) => {
    const raw = flags[key]
    if (raw === undefined || raw === false) return []
    const values: readonly unknown[] = Array.isArray(raw) ? raw : [raw]
    return values.map((value) =>
      value === true ? ([flagOf(key)] as const) : ([flagOf(key), String(value)] as const),
    )
  })
}

function toOption(key: OptionKey, spec: OptionSpec): Option {
  const option = new Option(`${flagOf(key)}${placeholder(spec)}`, description(spec))
  if (spec.kind === 'texts' || spec.kind === 'pairs') {
    return option.argParser((value: string, earlier: readonly string[] | undefined) => [
      ...(earlier ?? []),
      value,
    ])
  }
  return option
}

function placeholder(spec: OptionSpec): string {
  if (spec.kind === 'switch') return ''
  if (spec.kind === 'choice') return ` <${(spec.choices ?? []).join('|')}>`
  return spec.kind === 'folder' ? ` [${spec.value ?? ''}]` : ` <${spec.value ?? ''}>`
}

function description(spec: OptionSpec): string {
  const plain =
    typeof spec.default === 'number' || typeof spec.default === 'string' ? String(spec.default) : undefined
  const usual = spec.defaultText ?? plain
  return usual === undefined || usual === 'none' || usual === 'off'
    ? spec.help
    : `${spec.help} (default: ${usual})`
}

function readFlags(command: CommandUnknownOpts, declared: ReadonlyMap<OptionKey, Option>): RawFlags {
  const flags: Partial<Record<OptionKey, unknown>> = {}
  for (const [key, option] of declared) {
    const name = option.attributeName()
    if (command.getOptionValueSource(name) !== 'cli') continue
    const value = option.negate ? true : command.getOptionValue(name)
    refuseSwallowedFlag(key, value, declared)
    flags[key] = value
  }
  return flags
}

/** `--model --json`: the value was forgotten, and the next flag must not become it. */
function refuseSwallowedFlag(key: OptionKey, value: unknown, declared: ReadonlyMap<OptionKey, Option>): void {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  const swallowed = [...declared.keys()].map(flagOf).find((flag) => values.includes(flag))
  if (swallowed === undefined) return
  throw new RalphError('usage', `${flagOf(key)} needs a value, and ${swallowed} is a flag`, {
    hint: `give it one: ${flagOf(key)} ${specOf(key).value ?? ''}`,
  })
}
