// `ralph resume`: goes on with the loop that was stopped, stalled or killed.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { acceptConfig, addLoopOptions } from './loop-options.ts'

export function addResume(program: Command, context: Context): void {
  const command = program
    .command('resume')
    .description('go on after a stop, a crash, a stall or a failed story')
    .argument('[change]', 'may be left out when only one can be resumed')
    .usage('[change] [options] [-- <arguments for the agent>]')
    .addHelpText('after', '\nExample:\n  $ ralph resume add-login --feedback "the login page is in src/web"')
    .option('--feedback <text>', 'your words for the next prompt')
    .option(...acceptConfig)
  const flags = addLoopOptions(command, ['fresh', 'dry_run'])
  command.action(async (change) => {
    const { resumeLoop } = await import('./loop-run.ts')
    const feedback: unknown = command.getOptionValue('feedback')
    await resumeLoop(context, change, flags(), {
      feedback: typeof feedback === 'string' ? feedback : undefined,
      acceptsConfig: command.getOptionValue('acceptConfig') === true,
    })
  })
}
