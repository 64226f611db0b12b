// `ralph prompt`: the exact words the agent would get next.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import { respond } from './context.ts'

export function addPrompt(program: Command, context: Context): void {
  program
    .command('prompt')
    .description('the exact prompt of the next iteration; spawns nothing')
    .argument('<change>')
    .option('--story <ID>', 'of this story instead of the next one')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  $ ralph prompt add-login --story 2')
    .action(async (change, { story, json }) => {
      const app = await context.app()
      const prompt = await app.prompt({ change, storyId: story })
      await respond(context, json, { change_id: change, prompt }, () => prompt)
    })
}
