// What the installed openspec program says about a change, asked once at the start of a loop.
import * as z from 'zod'
import { isAtLeast, type OpenSpecCli } from './cli.ts'

export interface ApplyFacts {
  readonly context: string
  readonly guidance: readonly string[]
  /** `blocked`, `ready` or `all_done`. */
  readonly state: string
  /** As the program counts; absent below 1.13.1, whose counts are known to be lower than ours. */
  readonly progress?: { readonly total: number; readonly complete: number }
}

const applySchema = z.looseObject({
  context: z.string().optional().catch(undefined),
  operationGuidance: z.array(z.string()).optional().catch(undefined),
  state: z.string().catch(''),
  progress: z.looseObject({ total: z.number(), complete: z.number() }).optional().catch(undefined),
})

/** `note` is one line for the user when it gave no answer; the built-in rules serve then. */
export async function applyFacts(
  cli: OpenSpecCli,
  root: string,
  change: string,
): Promise<{ readonly facts?: ApplyFacts; readonly note: string }> {
  const answer = await cli.run(['instructions', 'apply', '--change', change, '--json'], root)
  if (!answer.ok)
    return {
      note: `openspec gave no instructions for ${change} (${answer.message}): the built-in rules are used`,
    }
  const said = applySchema.safeParse(answer.json).data
  if (said === undefined)
    return { note: `openspec ${cli.version} answered in an unknown shape: the built-in rules are used` }
  const { context, operationGuidance, state, progress } = said
  const counts = isAtLeast(cli.version, [1, 13, 1]) ? progress : undefined
  return {
    facts: {
      context: context ?? '',
      guidance: operationGuidance ?? [],
      state,
      ...(counts && { progress: { total: counts.total, complete: counts.complete } }),
    },
    note: '',
  }
}
