// Answers the shell's Tab from the program's own declarations, with the names of the changes.
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { agentNames } from '../../config/option.ts'
import { storyName } from '../print/describe.ts'
import { oneLine } from '../print/text.ts'
import { verdictName } from '../vocabulary.ts'
import type { Context } from './context.ts'

/** A word to offer and what it is for. */
type Offer = readonly [word: string, description: string]

export async function answerTab(
  context: Context,
  program: CommandUnknownOpts,
  words: readonly string[],
): Promise<void> {
  const found = await offers(program, words, sourcesOf(context))
  const lines = found.map(([word, what]) => `${oneLine(word)}\t${oneLine(what)}\n`)
  context.io.stdout.write(lines.join(''))
}

/** What only the repository knows; asked for only where it is to be offered: Tab must be quick. */
interface Sources {
  changes(): Promise<readonly Offer[]>
  attempts(change: string | undefined): Promise<readonly Offer[]>
  stories(change: string | undefined): Promise<readonly Offer[]>
}

function sourcesOf(context: Context): Sources {
  return {
    changes: () => changeNames(context),
    attempts: (change) =>
      quietly(async () => {
        const { attempts, stories } = await (await context.app()).observe.attempts(change)
        return attempts.map(({ n, story_id: id, verdict }) => {
          const title = stories.find((story) => story.id === id)?.title ?? ''
          return [String(n), `${verdictName(verdict)}: ${storyName(id, title)}`]
        })
      }),
    stories: (change) =>
      quietly(async () => {
        const { stories } = await (await context.app()).observe.show(change)
        return stories.map(({ id, title, status }) => [id, `${status}: ${title}`])
      }),
  }
}

async function quietly(ask: () => Promise<readonly Offer[]>): Promise<readonly Offer[]> {
  try {
    return await ask()
  } catch {
    // Tab must stay silent.
    return []
  }
}

/** Tab must stay silent: outside a repository, or with a broken plan, there are just no names to offer. */
function changeNames(context: Context): Promise<readonly Offer[]> {
  return quietly(async () => {
    const { observe } = await context.app()
    const { changes } = await observe.list()
    return changes.map(({ name, title }) => [name, title])
  })
}

/** `words`: everything after the program's name up to the cursor; the last one is being typed and may be empty. */
async function offers(
  program: CommandUnknownOpts,
  words: readonly string[],
  sources: Sources,
): Promise<readonly Offer[]> {
  const typed = words.at(-1) ?? ''
  const starting = (all: readonly Offer[]): readonly Offer[] => all.filter(([word]) => word.startsWith(typed))
  const commands = program.createHelp().visibleCommands(program)
  if (words.length <= 1) return starting(commands.map((command) => [command.name(), command.description()]))
  const command = commands.find((candidate) =>
    [candidate.name(), ...candidate.aliases()].includes(words[0] ?? ''),
  )
  if (command === undefined) return []

  const before = words.slice(1, -1)
  const waiting = optionOf(command, before.at(-1))
  const named = words.slice(1, -1).find((word) => isPlain(word) && !/^[-#\d]/.test(word))
  if (waiting?.long === '--story') return starting(await sources.stories(named))
  if (waiting?.long === '--iteration') return starting(await sources.attempts(named))
  if (waiting !== undefined && takesValue(waiting)) return starting(valuesOf(waiting))
  // Bash cuts words at `=`: --agent = cl
  if (typed === '=') return valuesOf(optionOf(command, before.at(-1)))
  if (before.at(-1) === '=') return starting(valuesOf(optionOf(command, before.at(-2))))
  const [flag = '', value] = typed.split('=', 2)
  if (value !== undefined && flag.startsWith('--')) {
    return starting(valuesOf(optionOf(command, flag)).map(([word, what]) => [`${flag}=${word}`, what]))
  }
  if (typed.startsWith('-')) {
    return starting(
      visibleOptions(command).map((option) => [option.long ?? option.flags, option.description]),
    )
  }
  const argument = command.registeredArguments[operands(command, before)]
  const wanted = argument?.name()
  const attempts = wanted === 'n' ? await sources.attempts(undefined) : []
  // A number that may be left out leaves its place to the change.
  const isChange = wanted === 'change' || (wanted === 'n' && argument?.required === false)
  const changes = isChange ? (await sources.changes()).filter(([name]) => isPlain(name)) : []
  const choices = (argument?.argChoices ?? []).map((choice): Offer => [choice, ''])
  return starting([...attempts, ...changes, ...choices])
}

/** A name that a shell would read as more than a word is left to be typed: Tab must never put code on the line. */
function isPlain(name: string): boolean {
  return /^[\w.@+,:-]+$/u.test(name)
}

function visibleOptions(command: CommandUnknownOpts): readonly Option[] {
  return command.createHelp().visibleOptions(command)
}

function optionOf(command: CommandUnknownOpts, word: string | undefined): Option | undefined {
  if (word === undefined) return undefined
  return visibleOptions(command).find((option) => option.long === word || option.short === word)
}

/** An optional value may as well be the next argument: only a required one is waited for. */
function takesValue(option: Option): boolean {
  return option.required
}

function valuesOf(option: Option | undefined): readonly Offer[] {
  if (option === undefined) return []
  const inBrackets = /<([^>]+\|[^>]+)>/.exec(option.flags)?.[1]?.split('|') ?? []
  const words = option.long === '--agent' ? agentNames : (option.argChoices ?? inBrackets)
  return words.map((word) => [word, ''])
}

function operands(command: CommandUnknownOpts, before: readonly string[]): number {
  return before.filter((word, index) => {
    const previous = optionOf(command, before[index - 1])
    return !word.startsWith('-') && (previous === undefined || !takesValue(previous))
  }).length
}
