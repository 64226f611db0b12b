// `ralph config`: every setting, its value and where it came from.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addConfig(program: Command, context: Context): void {
  program
    .command('config')
    .description('every setting, its value and its origin')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ RALPH_MAX_RETRIES=1 ralph config')
    .action(async ({ json }) => {
      const app = await context.app()
      const { entries, warnings } = await app.config()
      const { oneLine } = await import('../print/text.ts')
      for (const warning of warnings) context.io.stderr.write(`warning: ${oneLine(warning)}\n`)
      const { configText, publicValue } = await import('../print/config.ts')
      const settings = Object.fromEntries(
        entries.map(({ key, value, origin, where }) => [
          key,
          { value: publicValue(key, value) ?? null, origin, where },
        ]),
      )
      await respond(context, json, { settings }, (paint) => configText(entries, paint))
    })
}
