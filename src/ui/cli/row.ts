// What a row of the table of commands is, and how it becomes a command of commander's.
import type { Command, OptionValues } from '@commander-js/extra-typings'
import type { RalphError } from '../../core/error.ts'
import type { App, Said } from '../app.ts'
import type { Paint } from '../io.ts'
import type { Context } from './context.ts'

export interface Row {
  readonly names: readonly string[]
  /** Its answer is about every command: all of them have to be declared. */
  readonly isAboutAll: boolean
  readonly add: (program: Command, context: Context) => void
}

interface Words {
  readonly name: string
  readonly alias?: string
  /** Absent: hidden, for scripts. */
  readonly what?: string
  readonly note?: string
  readonly example?: string
  readonly isAboutAll?: boolean
}

interface Given<Args extends unknown[], Options extends OptionValues, Own extends Command<Args, Options>> {
  readonly args: Args
  readonly options: Options
  readonly command: Own
  readonly program: Command
}

/** A command that does everything itself. */
export function row<
  Args extends unknown[],
  Options extends OptionValues,
  Own extends Command<Args, Options>,
>({
  takes,
  run,
  ...words
}: Words & {
  readonly takes: (command: Command) => Own & Command<Args, Options>
  readonly run: (context: Context, given: Given<Args, Options, Own>) => Promise<void> | void
}): Row {
  const { name, alias, what, note, example, isAboutAll = false } = words
  return {
    names: [name, ...(alias === undefined ? [] : [alias])],
    isAboutAll,
    add: (program, context) => {
      const bare = program.command(name, { hidden: what === undefined })
      if (alias !== undefined) bare.alias(alias)
      if (what !== undefined) bare.description(what)
      const command = takes(bare)
      if (example !== undefined)
        command.addHelpText('after', `\n${note === undefined ? '' : `${note}\n\n`}Example:\n  $ ${example}`)
      command.action(() =>
        run(context, { args: command.processedArgs, options: command.opts(), command, program }),
      )
    },
  }
}

interface Question<Args extends unknown[], Options extends OptionValues, Data> extends Words {
  readonly takes: (command: Command) => Command<Args, Options>
  /** What is wrong with the words, before anything is loaded for them. */
  readonly refuse?: (args: Args, options: Options) => RalphError | undefined
  readonly ask: (
    app: App,
    args: Args,
    options: Options,
    context: Context,
    /** Stdout is for the answer alone. */
    isJson: boolean,
  ) => Promise<Data>
}

interface Page {
  readonly paint: Paint
  readonly columns: number | undefined
}

/** A command that asks once and prints the answer: for a person, or with `--json` as one object. */
export function report<Args extends unknown[], Options extends OptionValues, Data>({
  takes,
  refuse,
  ask,
  also,
  json = (data) => data,
  text,
  jsonHelp = 'as JSON',
  isVerbatim = () => false,
  ...words
}: Question<Args, Options, Data> & {
  /** What else the answer brings with it: an exit code, a warning. */
  readonly also?: (data: Data, context: Context) => Promise<void> | void
  readonly json?: (data: Data) => unknown
  readonly text: (data: Data, page: Page, options: Options) => Promise<string> | string
  readonly jsonHelp?: string
  /** Not ralph's words but a document: every byte of it counts. */
  readonly isVerbatim?: (options: Options) => boolean
}): Row {
  return row({
    ...words,
    takes: (command) => {
      const own = takes(command)
      own.option('--json', jsonHelp)
      return own
    },
    run: async (context, { args, options, command }) => {
      const refusal = refuse?.(args, options)
      if (refusal !== undefined) throw refusal
      const isJson = command.getOptionValue('json') === true || command.getOptionValue('format') === 'json'
      const data = await ask(await context.app(), args, options, context, isJson)
      await also?.(data, context)
      await respond(
        context,
        isJson,
        () => json(data),
        (page) => text(data, page, options),
        isVerbatim(options),
      )
    },
  })
}

/** A command that does something and says so. */
export function act<Args extends unknown[], Options extends OptionValues>(
  question: Question<Args, Options, Said>,
): Row {
  return report({
    ...question,
    json: ({ message, data }) => ({ message, ...data }),
    text: async ({ message, next, gone }, { paint, columns }) => {
      const [{ clean, sentences }, { goneLines }, { folded }, { onwardLines }] = await Promise.all([
        import('../print/text.ts'),
        import('../print/summary.ts'),
        import('../print/layout.ts'),
        import('../print/step-lines.ts'),
      ])
      const said = clean(message)
        .split('\n')
        .flatMap((line) => (/^[a-z0-9].*; /.test(line) ? sentences(line).split('\n') : line))
      const lines = [...said, ...(gone === undefined ? [] : goneLines(gone))].map((line) =>
        folded(line, columns),
      )
      if (next !== undefined) lines.push(...onwardLines(clean(next), { paint, columns }))
      return lines.join('\n')
    },
  })
}

/** The text is made only when it is needed. */
export async function respond(
  { io }: Context,
  isJson: boolean,
  json: () => unknown,
  text: (page: Page) => Promise<string> | string,
  isVerbatim = false,
): Promise<void> {
  if (isJson) {
    io.stdout.write(`${JSON.stringify(await json(), undefined, 2)}\n`)
    return
  }
  const [{ paintFor }, { legible }] = await Promise.all([import('../io.ts'), import('../vocabulary.ts')])
  const whole = await text({ paint: paintFor(io.stdout, io.env), columns: io.stdout.columns })
  const written = isVerbatim ? whole : legible(whole, io.env)
  io.stdout.write(written.endsWith('\n') || written === '' ? written : `${written}\n`)
}
