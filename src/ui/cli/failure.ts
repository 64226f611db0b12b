// What a failed command says, where, and with which exit code.
import { CommanderError } from '@commander-js/extra-typings'
import { diskError } from '../../core/disk.ts'
import { RalphError } from '../../core/error.ts'
import { nearest } from '../../core/nearest.ts'
import type { Io } from '../io.ts'
import { paintFor } from '../io.ts'
import { folded } from '../print/layout.ts'
import { clean } from '../print/text.ts'

export interface FailureOptions {
  readonly io: Io
  /** One object on stdout instead of words on stderr. */
  readonly json: boolean
  readonly command: string
}

export function reportFailure(thrown: unknown, { io, json, command }: FailureOptions): number {
  const error =
    thrown instanceof CommanderError
      ? usageError(thrown, command)
      : thrown instanceof RalphError
        ? thrown
        : (diskError(thrown, (mend) => `${safe} ${mend}, then type again: ralph ${command} …`) ?? thrown)
  if (error instanceof RalphError) {
    if (json) {
      const { code, message, hint, exitCode } = error
      io.stdout.write(
        `${JSON.stringify({ error: { code, message, hint, exit_code: exitCode } }, undefined, 2)}\n`,
      )
      return exitCode
    }
    const paint = paintFor(io.stderr, io.env)
    const { columns } = io.stderr
    const hint = error.hint === '' ? '' : `${folded(clean(error.hint), columns, '  ')}\n`
    const said = folded(`error: ${clean(error.message)}`, columns).slice('error:'.length)
    io.stderr.write(`${paint.red('error:')}${said}\n${hint}`)
    return error.exitCode
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (json)
    io.stdout.write(
      `${JSON.stringify({ error: { code: 'internal', message: stack, hint: bugHint, exit_code: 1 } })}\n`,
    )
  io.stderr.write(`${stack}\n${bugHint}\n`)
  return 1
}

const safe =
  'Your work is safe: checkpoints and attempts are kept, the journal is under ralph/ in the git directory.'

const bugHint = `This is a bug in ralph. ${safe}
To see its state and what to type next: ralph status`

/** Commander says 1 for a wrong flag; the contract says 2. */
function usageError(error: CommanderError, command: string): RalphError {
  const [first = '', second = ''] = error.message.replace(/^error: /, '').split('\n')
  const near = /^\(Did you mean (.+)\?\)$/.exec(second)?.[1] ?? nearestChoice(first) ?? otherName(first)
  if (error.code === 'commander.missingArgument' && command === 'completion')
    return new RalphError('usage', 'Which shell? There is bash, zsh and fish.', {
      hint: 'e.g. ralph completion bash',
      cause: error,
    })
  if (error.code === 'commander.missingArgument' && command === 'restore')
    return new RalphError('usage', 'Which attempt? restore needs its number.', {
      hint: 'The attempts and their numbers: ralph attempts; then, for example: ralph restore 2',
      cause: error,
    })
  if (error.code === 'commander.missingArgument' && first.includes("'change'"))
    return new RalphError('usage', `Which change? ${command} needs its name.`, {
      hint: `The changes and their names: ralph list; then, for example: ralph ${command} add-login`,
      cause: error,
    })
  const known = error.code === 'commander.unknownCommand' || command.startsWith('-')
  return new RalphError('usage', plain(first), {
    hint: near === undefined ? `see: ralph ${known ? '' : `${command} `}--help` : `Did you mean ${near}?`,
    cause: error,
  })
}

/** In the words that settings are refused with. */
function plain(message: string): string {
  const [, word = '', known = ''] =
    /^command-argument value '([^']*)' is invalid.* Allowed choices are (.+)\.$/.exec(message) ?? []
  if (known !== '') return `"${word}" is none of ${known}`
  const [, given, why] =
    /^command-argument value '([^']*)' is invalid for argument '[^']*'\. (.+)$/s.exec(message) ?? []
  if (why !== undefined) return `"${given ?? ''}" cannot be used here. ${why}`
  const [, flag = '', value = '', rest = ''] =
    /^option '(?:-\w, )?(--[\w-]+)[^']*' argument '([^']*)' is invalid\. (.*)$/s.exec(message) ?? []
  if (flag === '') return message
  const choices = /^Allowed choices are (.+)\.$/.exec(rest)?.[1]
  return choices === undefined
    ? `${flag} cannot be "${value}". ${rest}`
    : `${flag} must be one of ${choices}, not "${value}"`
}

/** What other tools, or our own words, call it. */
const otherNames: readonly (readonly [RegExp, string])[] = [
  [/^--(gates?|tests?|checks?)$/, '--verify'],
  [/^--(cmd|command)$/, '--agent-command'],
  [/^--(retries|attempts)$/, '--max-retries'],
  [/^--(iterations|max-attempts)$/, '--max-iterations'],
  [/^--(budget|cost)$/, '--max-cost'],
]

function otherName(message: string): string | undefined {
  const flag = /^unknown option '([^']*)'/.exec(message)?.[1]
  return flag === undefined ? undefined : otherNames.find(([name]) => name.test(flag))?.[1]
}

/** Commander suggests flags and commands, but not the words of a choice. */
function nearestChoice(message: string): string | undefined {
  const [, word, choices] = /'([^']*)' is invalid.*Allowed choices are (.+)\.$/.exec(message) ?? []
  return word === undefined || choices === undefined ? undefined : nearest(word, choices.split(', '))
}
