// `ralph finish`: the completion choice, later and from a script.
import type { Command } from '@commander-js/extra-typings'
import { Option } from '@commander-js/extra-typings'
import { RalphError } from '../../core/error.ts'
import type { Context } from './context.ts'
import { acceptConfig } from './loop-options.ts'
import { say } from './context.ts'

export function addFinish(program: Command, context: Context): void {
  program
    .command('finish')
    .description("say where a loop's work goes: --cleanup or --keep")
    .argument('[change]', 'may be left out when only one loop is unfinished')
    .addOption(
      new Option('--cleanup', 'back to your branch, the work there as uncommitted changes').conflicts('keep'),
    )
    .addOption(new Option('--keep', "stay on ralph's branch with all its commits").conflicts('cleanup'))
    .option(...acceptConfig)
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph finish add-login --cleanup')
    .action(async (change, { cleanup, keep, json, acceptConfig: acceptsConfig = false }) => {
      if (!cleanup && !keep && !acceptsConfig) {
        throw new RalphError('usage', 'finish needs to know what to do: --cleanup or --keep', {
          hint: '--cleanup: the work as uncommitted changes on your branch; --keep: stay on its own branch',
          exitCode: 2,
        })
      }
      const app = await context.app()
      const said = await app.finish({
        change,
        choice: cleanup ? 'cleanup' : keep ? 'keep' : undefined,
        acceptsConfig,
      })
      await say(context, json, said)
    })
}
