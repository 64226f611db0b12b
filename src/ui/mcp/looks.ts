// The tools that look: each asks the App once and never writes.
import { basename } from 'node:path'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import type { App, LoggedAttempt, LoopSeen, StatusReport } from '../app.ts'
import { plain } from '../io.ts'
import { historyText } from '../print/history.ts'
import { listText } from '../print/list.ts'
import { showText } from '../print/show.ts'
import { answer, firstBytes, lastLines } from './answers.ts'
import {
  changeId,
  changeSchema,
  changesSchema,
  diffSchema,
  historySchema,
  logSchema,
  loopsSchema,
  statusSchema,
} from './schemas.ts'
import type { Asking } from './server.ts'
import { hasUsage, listWords, statusWords } from './words.ts'

const which = changeId
  .optional()
  .describe('default: the loop that runs, else the one of this work tree, else the latest')
const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

export function addLooks(server: McpServer, { ask, now }: Asking): void {
  server.registerTool(
    'list_loops',
    {
      description:
        'Every Ralph loop of this repository, in all its work trees: where it stands, and whether its process is alive.',
      inputSchema: z.object({}),
      outputSchema: loopsSchema,
      annotations,
    },
    () =>
      ask(async ({ observe }) => {
        const loops = await observe.loops()
        return answer(listWords(loops), { loops: loops.map(withoutIterations) })
      }),
  )
  server.registerTool(
    'get_ralph_status',
    {
      description:
        'Get Ralph loop status: status, iteration, time, task, stories, tokens, cost, and whether its process is alive. Without change_id: all loops. With it: also its stories, the iteration that runs now, and the last one that ended.',
      inputSchema: z.object({ change_id: changeId.optional() }),
      outputSchema: statusSchema,
      annotations,
    },
    ({ change_id: asked }) =>
      ask(async ({ observe }) => {
        const all = await observe.loops()
        const loops = all.filter((loop) => asked === undefined || isCalled(loop, asked))
        const text = statusWords(loops, { asked, nowMs: now() })
        if (asked === undefined) return answer(text, { loops: loops.map(withoutIterations) })
        const isOwn = loops.some((loop) => loop.written_by === 'ralph' && loop.problem === undefined)
        const [report] = isOwn ? await observe.status(asked) : []
        return answer(text, { loops: loops.map((loop) => detailOf(loop, report)) })
      }),
  )
  server.registerTool(
    'get_loop_history',
    {
      description: 'The iterations of a loop: story, verdict, reason, time, tokens, cost, commits.',
      inputSchema: z.object({
        change_id: which,
        last: z.number().int().min(1).max(1000).default(20).describe('how many of the latest'),
      }),
      outputSchema: historySchema,
      annotations,
    },
    ({ change_id: asked, last }) =>
      ask(async ({ observe }) => {
        const other = await otherLoop(observe, asked)
        if (other !== undefined) {
          const { change_id, iterations = [] } = other
          const lines = iterations
            .slice(-last)
            .map(({ n, started, ended, done_check: isDone, commits, tokens_used: tokens }) =>
              [`#${n}`, started, ended, isDone ? 'done' : '', `${commits.length} commits`, `${tokens} tokens`]
                .filter((word) => word !== '')
                .join('  '),
            )
          return answer(lines.join('\n') || 'No iteration has ended yet.', {
            change_id,
            iterations_total: iterations.length,
            iterations: iterations.slice(-last),
          })
        }
        const { change_id, iterations, stories } = await observe.history(asked)
        const shown = iterations.slice(-last)
        return answer(
          historyText(
            { change_id, iterations: shown, stories, earlier_runs: [] },
            { paint: plain, columns: 120 },
          ),
          { change_id, iterations_total: iterations.length, iterations: shown },
        )
      }),
  )
  server.registerTool(
    'get_loop_log',
    {
      description:
        'What the agent of an iteration said and did (or with gates: what its gates printed), the end of it.',
      inputSchema: z.object({
        change_id: which,
        iteration: z.number().int().min(1).optional().describe('default: the latest'),
        tail: z.number().int().min(1).max(2000).default(100).describe('how many lines'),
        gates: z.boolean().default(false).describe('what the gates printed instead'),
      }),
      outputSchema: logSchema,
      annotations,
    },
    ({ change_id: change, iteration, tail, gates }, { mcpReq: { signal } }) =>
      ask(async ({ observe }) => {
        const { feed, end } = lastLines(tail)
        let about: LoggedAttempt | undefined
        await observe.logs({
          change,
          iteration,
          isOfGates: gates,
          follow: false,
          began: (attempt) => (about = attempt),
          write: feed,
          stop: signal,
        })
        const { text, isCut } = end()
        const n = about?.n ?? iteration ?? 0
        return answer(text === '' ? 'Nothing was said yet.' : text, {
          change_id: about?.change_id ?? change ?? '',
          iteration: n,
          ...(about !== undefined &&
            about.by_hand === undefined && { story_id: about.story_id, attempt: about.attempt }),
          text,
          is_cut: isCut,
        })
      }),
  )
  server.registerTool(
    'get_attempt_diff',
    {
      description: 'What an attempt changed, as a patch; failed and undone attempts are kept, too.',
      inputSchema: z.object({
        n: z
          .number()
          .int()
          .min(1)
          .optional()
          .describe('the iteration; default: the last one that was not kept'),
        change_id: which,
        stat: z.boolean().default(false).describe('only the files, and how many lines'),
      }),
      outputSchema: diffSchema,
      annotations,
    },
    ({ n, change_id: change, stat }) =>
      ask(async ({ observe }) => {
        const diff = await observe.diff({ change, n, form: stat ? 'stat' : 'patch' })
        const { text, isCut } = firstBytes(diff.patch)
        const more = isCut ? '\n(there is more: ask for it with stat, or see ralph diff)' : ''
        return answer(`${diff.what}\n\n${text === '' ? 'It changed nothing.' : text}${more}`, {
          change_id: diff.change_id,
          ...(diff.n !== undefined && { n: diff.n }),
          what: diff.what,
          patch: text,
          is_cut: isCut,
        })
      }),
  )
  server.registerTool(
    'list_changes',
    {
      description:
        'The OpenSpec changes of this repository: stories and tasks, done and in all, and the status of their loops.',
      inputSchema: z.object({}),
      outputSchema: changesSchema,
      annotations,
    },
    () =>
      ask(async ({ observe }) => {
        const list = await observe.list()
        return answer(listText(list, { paint: plain, columns: 120 }), list)
      }),
  )
  server.registerTool(
    'get_change',
    {
      description: 'One OpenSpec change: its stories with their tasks, and the scenarios of its specs.',
      inputSchema: z.object({ change_id: changeId }),
      outputSchema: changeSchema,
      annotations,
    },
    ({ change_id: change }) =>
      ask(async ({ observe }) => {
        const detail = await observe.show(change)
        return answer(showText(detail, { paint: plain, columns: undefined }), detail)
      }),
  )
}

/** wt-tools names its loops by their work trees. */
function isCalled({ change_id: change, written_by: by, worktree }: LoopSeen, asked: string): boolean {
  return change === asked || (by === 'wt-tools' && basename(worktree) === asked)
}

/** A loop that ralph has no record of. */
async function otherLoop(observe: App['observe'], asked: string | undefined): Promise<LoopSeen | undefined> {
  const named = (await observe.loops()).filter((loop) => asked === undefined || isCalled(loop, asked))
  return named.every((loop) => loop.written_by === 'wt-tools') ? named[0] : undefined
}

export function withoutIterations(loop: LoopSeen): Omit<LoopSeen, 'iterations'> {
  const { iterations: _, cost_usd: cost, ...rest } = loop
  return { ...rest, ...(cost !== undefined && hasUsage(loop) && { cost_usd: cost }) }
}

function detailOf(loop: LoopSeen, report: StatusReport | undefined): object {
  if (loop.written_by === 'wt-tools' || report === undefined) {
    const last = loop.iterations?.at(-1)
    return { ...withoutIterations(loop), ...(last !== undefined && { last_iteration: last }) }
  }
  const { agent, model, done_criteria, original_branch, choice, stories, current, notes, finish_refused } =
    report
  const last = report.iterations.at(-1)
  const given = {
    agent,
    model,
    done_criteria,
    original_branch,
    branch: report.where?.branch,
    choice,
    stories,
    current: current && {
      n: current.n,
      story_id: current.story_id,
      attempt: current.attempt,
      started: current.started,
      agent: current.agent,
      last_activity: current.last_activity,
    },
    last_iteration: last,
    notes,
    finish_refused,
  }
  const known = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...withoutIterations(loop), ...Object.fromEntries(known) }
}
