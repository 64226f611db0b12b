// Every fact of the merge queue, as one closed union: the lines of its journal.
import * as z from 'zod'
import { setUpSchema } from './event.ts'
import { once } from './once.ts'

/** Why an entry is parked, by what has to happen before it can go on. */
export const parkedFor = ['failed', 'human', 'limit'] as const

const change = z.string().min(1)
const hash = z.string().regex(/^[0-9a-f]{40,64}$/)

const bodies = () =>
  z.discriminatedUnion('type', [
    z.object({
      type: z.literal('queue.opened'),
      target: z.string(),
      jobs: z.number().int().positive(),
      land: z.enum(['squash', 'merge']),
      lands: z.boolean(),
      max_cost_usd: z.number().positive().optional(),
      /** Given to this `ralph up`: for all that it runs and lands. */
      gates: z.array(z.string()).optional(),
      /** What each change that is to run or to land has to pass: with its own loop's, and those it was queued with before. */
      proven: z.array(z.object({ change, gates: z.array(z.string()) })).optional(),
      /** Of a queue without gates: a command that would make one; empty where there is none. */
      gate_found: z.string().optional(),
      /** Those whose plan is not committed: it lands with the work. */
      uncommitted: z.array(change).optional(),
      /** In the queue, and not asked for: they stay as they are. */
      left: z.array(change).optional(),
    }),
    z.object({
      type: z.literal('entry.added'),
      change,
      after: z.array(change),
      /** Where it lands; undefined: where the queue was opened for. */
      target: z.string().optional(),
      /** That it is queued with: they stay with it. */
      gates: z.array(z.string()).optional(),
    }),
    /** Gates that it was queued with hold no longer: somebody has named others. */
    z.object({ type: z.literal('gates.dropped'), change, gates: z.array(z.string()) }),
    /** `why`: where nobody has asked for it. */
    z.object({ type: z.literal('entry.removed'), change, why: z.string().optional() }),
    /** Before all others that can run. */
    z.object({ type: z.literal('entry.first'), change }),
    z.object({ type: z.literal('entry.retried'), change }),
    /** In the queue already: what it comes after besides. */
    z.object({ type: z.literal('entry.ordered'), change, after: z.array(change) }),
    z.object({ type: z.literal('entry.waiting'), change, why: z.string() }),
    z.object({
      type: z.literal('entry.parked'),
      change,
      for: z.enum(parkedFor),
      why: z.string(),
      hint: z.string(),
      /** Of its loop, where that has ended. */
      cost_usd: z.number().nonnegative().optional(),
      /** Its run then: another one since has its own end. */
      run: z.string().optional(),
    }),
    z.object({
      type: z.literal('loop.spawned'),
      change,
      /** Undefined: it was running already, and is adopted. */
      base: hash.optional(),
      /** From 1; no two loops that run at once have the same one. */
      slot: z.number().int().positive(),
      /** The run that was there before: where there is no other one yet, the loop has not begun. */
      over: z.string().optional(),
      reserved_usd: z.number().optional(),
      /** The most that its run may cost, with what it has cost before: nobody spends what another one has reserved. */
      max_cost_usd: z.number().optional(),
    }),
    z.object({
      type: z.literal('loop.ended'),
      change,
      cost_usd: z.number().nonnegative(),
      tip: hash.optional(),
      /** What its run has said that makes its "done" worth less. */
      warnings: z.array(z.string()).optional(),
      /** Its share of the budget is used up: it goes on where more is left. */
      is_short: z.boolean().optional(),
    }),
    z.object({ type: z.literal('candidate.began'), change, base: hash, tip: hash }),
    z.object({
      type: z.literal('candidate.conflicted'),
      change,
      base: hash,
      tip: hash,
      paths: z.array(z.string()),
      /** Both sides with git's markers between them; where an agent begins to put them together. */
      marked: hash,
      /** Without markers: what landed changed the specs that its plan rewrites, and OpenSpec said this. */
      said: z.string().optional(),
      /** Files that a command makes anew, before and after the agent. */
      generated: z.array(z.string()).optional(),
      /** Of the change's own loop: they count, too, for what comes of it. */
      gates: z.array(z.string()).optional(),
    }),
    /** The work tree of its loop, or the one that merges are tried in, is ready. */
    z.object({
      type: z.literal('tree.set_up'),
      change,
      for: z.enum(['loop', 'landing']),
      /** Of a loop: told once for each. */
      run: z.string().optional(),
      ...setUpSchema.shape,
    }),
    /** What went from a branch, a tag or the stash while a gate ran, and nobody can tell by whose hand: where it is kept, a sentence each. */
    z.object({ type: z.literal('refs.held'), change, told: z.array(z.string()) }),
    /** Generated files that both sides changed, made anew by the user's command. */
    z.object({ type: z.literal('candidate.regenerated'), change, paths: z.array(z.string()) }),
    /** What is wrong with how an agent put both sides together; none: it goes on. */
    z.object({
      type: z.literal('resolution.judged'),
      change,
      problems: z.array(z.string()),
      /** Of the branch that was judged. */
      tip: hash.optional(),
      /** Files that had no conflict and were changed all the same. */
      beside: z.array(z.string()).optional(),
      cost_usd: z.number().nonnegative().optional(),
    }),
    z.object({ type: z.literal('candidate.built'), change, base: hash, tip: hash, commit: hash }),
    z.object({
      type: z.literal('candidate.gated'),
      change,
      commit: hash,
      gate: z.string(),
      outcome: z.enum(['passed', 'failed', 'could_not_run']),
      /** It failed at first, and passed when it ran again. */
      flaky: z.boolean().optional(),
      /** It passed, and its test program says that it ran no test. */
      ran_no_tests: z.literal(true).optional(),
    }),
    /** Somebody else moved the target or the change's branch: built again. */
    z.object({
      type: z.literal('base.moved'),
      change,
      to: hash,
      /** Commits that came to the target while its gates ran and that ralph has not made, by whose hand nobody can tell. */
      came: z.array(z.string()).optional(),
    }),
    z.object({
      type: z.literal('landing.began'),
      change,
      commit: hash,
      onto: hash.optional(),
      /** Where the target itself stood. */
      home: hash.optional(),
    }),
    z.object({
      type: z.literal('landed'),
      change,
      commit: hash,
      /** What makes it worth less: it changed a gate, took tests away, or a gate ran none. */
      warnings: z.array(z.string()).optional(),
    }),
    /** The branch itself has what landed. */
    z.object({ type: z.literal('target.followed'), target: z.string(), commit: hash }),
    /** It had landed, and somebody has set the target back since. Never in the journal: git's history is asked each time. */
    z.object({ type: z.literal('entry.unlanded'), change, why: z.string(), hint: z.string() }),
    /** The journal was lost: what has landed was read from git. */
    z.object({
      type: z.literal('queue.rebuilt'),
      target: z.string(),
      commit: hash,
      landed: z.array(z.object({ change, commit: hash, tip: hash })),
    }),
    /** Nobody's fault: what is on the target does not pass its own gates, or cannot be put together with what landed. */
    z.object({ type: z.literal('queue.halted'), why: z.string(), hint: z.string() }),
  ])

export const queueEventSchema = once(() =>
  z.intersection(z.object({ v: z.literal(1), seq: z.number().int().positive(), time: z.string() }), bodies()),
)
export type QueueBody = z.infer<ReturnType<typeof bodies>>
export type QueueEvent = QueueBody & { readonly v: 1; readonly seq: number; readonly time: string }
