// `ralph logs`: what the agent said, without what could take a terminal over; with --raw byte for byte.
import type { Command } from '@commander-js/extra-typings'
import { Option } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { iterationNumber } from './number.ts'

export function addLogs(program: Command, context: Context): void {
  program
    .command('logs')
    .description('what the agent said')
    .argument('[change]', 'may be left out when there is only one')
    .option('-f, --follow', 'go on until the loop ends')
    .option('--iteration <N>', 'of this iteration (default: the latest)', iterationNumber)
    .addOption(new Option('--raw', 'every byte, control characters too').conflicts('json'))
    .option('--json', 'one JSON object per piece of output')
    .addHelpText('after', '\nExample:\n  $ ralph logs add-login -f')
    .action(async (change, { follow = false, iteration, json = false, raw = false }) => {
      const app = await context.app()
      const { logWriter } = await import('../print/log-writer.ts')
      const writer = logWriter(context.io.stdout, { json, raw })
      await app.logs({ change, iteration, follow, write: writer.write, stop: context.readerGone })
      writer.end()
    })
}
