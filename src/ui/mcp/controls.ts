// The tools that start, stop and end loops: only with --allow-control. Which agent runs and which gates must pass is never theirs to say.
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import type { RawFlags } from '../../config/load.ts'
import type { Said } from '../app.ts'
import type { StartRequest } from '../tui/client.ts'
import { answer, refusal } from './answers.ts'
import { changeId, saidSchema } from './schemas.ts'
import type { Asking } from './server.ts'

const limits = {
  max_iterations: z.number().int().min(1).optional(),
  max_retries: z.number().int().min(0).optional(),
  max_cost: z.number().positive().optional().describe('in USD'),
}
const text = z.string().min(1).max(20_000)
const annotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: true,
}

export function addControls(server: McpServer, { act, start }: Asking): void {
  const begin = (request: StartRequest): Promise<CallToolResult> =>
    act(async () => {
      // Where a start would surprise it is not made: the refusal says what to ask for instead.
      const begun = await start({ ...request, confirm: () => Promise.resolve(false) })
      if ('refused' in begun)
        return begun.exitCode === 0
          ? answer(begun.refused, { message: begun.refused, started: false })
          : refusal(begun.refused)
      const message = `Started: ${begun.change}. It runs in the background; get_ralph_status shows it.`
      const said = begun.said === '' ? message : `${message}\n${begun.said}`
      return answer(said, { message: said, change_id: begun.change, started: true })
    })

  server.registerTool(
    'start_loop',
    {
      description:
        'Start a Ralph loop over a change, in a process of its own that outlives this server. Agent, gates and all else come from ralph.yaml. At its end its work stays on its branch until finish_loop.',
      inputSchema: z.object({
        change_id: changeId,
        fresh: z.boolean().default(false).describe('archive the earlier run of this change and start over'),
        worktree: z.boolean().default(false).describe('in a git work tree of its own'),
        manual: z.boolean().default(false).describe('a person decides when it is done, not the boxes'),
        task: text.optional().describe('with manual: what the agent is asked for'),
        stories: z.array(z.string()).optional().describe('only these stories, by id'),
        ...limits,
      }),
      outputSchema: saidSchema,
      annotations,
    },
    ({ change_id: change, fresh, worktree, manual, task, stories, ...numbers }) =>
      begin({
        how: 'loop',
        change,
        flags: given({
          ...numbers,
          fresh: fresh || undefined,
          worktree: worktree || undefined,
          done: manual ? 'manual' : undefined,
          task,
          story: stories,
        }),
      }),
  )
  server.registerTool(
    'resume_loop',
    {
      description:
        'Continue a loop after a stop, a crash, a stall, a failed story or a pause, with a hint of the user for the next prompt where there is one.',
      inputSchema: z.object({
        change_id: changeId,
        feedback: text.optional().describe('for the next prompt, in the words of the user'),
        ...limits,
      }),
      outputSchema: saidSchema,
      annotations,
    },
    ({ change_id: change, feedback, ...numbers }) =>
      begin({ how: 'resume', change, flags: given(numbers), feedback }),
  )
  server.registerTool(
    'stop_loop',
    {
      description: 'Stop the running loop of a change and wait until it has stopped. Its work is kept.',
      inputSchema: z.object({ change_id: changeId }),
      outputSchema: saidSchema,
      annotations: { ...annotations, idempotentHint: true },
    },
    ({ change_id: change }) =>
      act(async ({ control }) => saidAnswer(await control.stop({ change, force: false }))),
  )
  server.registerTool(
    'finish_loop',
    {
      description:
        "Apply the result of a loop that has ended. keep (the default): stay on ralph's branch with all its commits. rename: keep, with the story titles as subjects. cleanup: back to the original branch, the work uncommitted there. squash: back to the original branch, the work as one commit.",
      inputSchema: z.object({
        change_id: changeId,
        choice: z.enum(['keep', 'rename', 'cleanup', 'squash']).default('keep'),
        message: text.optional().describe('with squash: the commit message'),
      }),
      outputSchema: saidSchema,
      annotations: { ...annotations, destructiveHint: true },
    },
    ({ change_id: change, choice, message }) =>
      act(async ({ control }) => {
        if (message !== undefined && choice !== 'squash')
          return refusal('message is the message of a squash.', 'Nothing was touched. Add choice: squash.')
        return saidAnswer(await control.finish({ change, choice, message, acceptsConfig: false }))
      }),
  )
}

function saidAnswer({ message, next, gone, data }: Said): CallToolResult {
  const files = (gone ?? []).map(({ path, restore }) => `${path}: ${restore}`)
  const lines = [message, ...files, ...(next === undefined ? [] : [`next: ${next}`])]
  return answer(lines.join('\n'), { ...data, message, ...(next !== undefined && { next }) })
}

function given(flags: RawFlags): RawFlags {
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
}
