// `ralph report`: a run as Markdown, HTML, JSON or text.
import type { Command } from '@commander-js/extra-typings'
import { Option } from '@commander-js/extra-typings'
import type { Context } from './context.ts'

export function addReport(program: Command, context: Context): void {
  program
    .command('report')
    .description('a run as a document: tokens, cost and time per story and attempt')
    .argument('[change]', 'may be left out when there is only one')
    .addOption(
      new Option('--format <format>', 'how')
        .choices(['text', 'md', 'html', 'json'] as const)
        .default('text' as const),
    )
    .option('--json', 'the same as --format json')
    .addHelpText('after', '\nExample:\n  $ ralph report add-login --format html > report.html')
    .action(async (change, { format, json }) => {
      const app = await context.app()
      const text = await app.report({ change, format: json ? 'json' : format })
      context.io.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
    })
}
