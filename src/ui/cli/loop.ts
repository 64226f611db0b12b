// `ralph loop`: runs the loop and shows it.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { acceptConfig, addLoopOptions } from './loop-options.ts'

export function addLoop(program: Command, context: Context): void {
  const command = program
    .command('loop')
    .alias('run')
    .description('run the agent over a change, story by story')
    .argument('[change]', 'its folder under openspec/changes; may be left out when there is only one')
    .usage('[change] [options] [-- <arguments for the agent>]')
    .addHelpText(
      'after',
      '\nExample:\n  $ ralph loop add-login --agent claude --verify "npm test" --max-retries 2',
    )
    .option(...acceptConfig)
  const flags = addLoopOptions(command)
  command.action(async (change) => {
    const { startLoop } = await import('./loop-run.ts')
    await startLoop(context, change, flags(), command.getOptionValue('acceptConfig') === true)
  })
}
