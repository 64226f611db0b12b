// Every row of the table and its goal, and whether what was measured meets it.
import type { Bed, Samples } from './bed.ts'
import { large } from './large.ts'
import { looked, looks } from './looks.ts'
import { flood, long, stories } from './loops.ts'
import { spreadOf, type Spread } from './measure.ts'

interface Goal {
  /** Of the floor's median. */
  readonly ratio?: number
  readonly max?: number
  readonly belowPeer?: true
}

export interface Row {
  readonly name: string
  readonly title: string
  readonly unit: 'ms' | 'MB' | 'KB'
  readonly floor?: string
  readonly goal: Goal
  /** Rows of one measurement are taken from the same runs. */
  readonly by: (bed: Bed) => Promise<Samples>
  /** What it would take, for as long as the goal is missed. */
  readonly missing: string
}

const shell = 'shell: rev-parse, add, commit'
const plainGit = 'add, commit, reset, clean'
const look = (name: keyof typeof looked, ratio: number, missing: string): Row => ({
  name,
  title: `\`ralph ${looked[name].join(' ')}\``,
  unit: 'ms',
  floor: 'empty node',
  goal: { ratio },
  by: looks,
  missing,
})

export const rows: readonly Row[] = [
  {
    name: 'between',
    title: 'between two agents: the end of one to the start of the next',
    unit: 'ms',
    floor: shell,
    goal: { ratio: 1.5, belowPeer: true },
    by: stories,
    missing:
      'of one such gap, four git processes (six where ralph ticks the boxes: status, update-index and write-tree when the attempt is kept, the last two again after the tick, status before the next agent) take the most, then some thirty syncs, which make a checkpoint outlive a power cut, and the start of the agent from a process of 90 MB; files are read without a wait. It would take an index and trees that ralph writes itself, as it writes commits and its refs.',
  },
  {
    name: 'story',
    title: 'per story, start and end included',
    unit: 'ms',
    floor: shell,
    goal: { ratio: 2, belowPeer: true },
    by: stories,
    missing: 'the sum of the rows before and after it: what helps them helps here.',
  },
  {
    name: 'first',
    title: 'command typed to first agent running',
    unit: 'ms',
    floor: shell,
    goal: { max: 250 },
    by: stories,
    missing:
      'nobody waits for `openspec` any more; left are the start of Node and of the program, eleven git processes one after the other, and some fifty syncs. The looks at the tree before the first checkpoint (four) could be two.',
  },
  {
    name: 'last',
    title: "last agent's end to exit",
    unit: 'ms',
    floor: shell,
    goal: { max: 150 },
    by: stories,
    missing: '',
  },
  {
    name: 'flood',
    title: 'one story with 200 MB of stream-json, 1.3 MB of it shown',
    unit: 'ms',
    floor: 'agent into `cat`',
    goal: { ratio: 2 },
    by: flood,
    missing:
      'profiled, 12,000 messages and tool calls are told one by one, and each costs an eighth of a millisecond: reduced, described for the screen, and written to three files. Written together once per tick they would cost half.',
  },
  {
    name: 'flood-memory',
    title: 'its peak memory',
    unit: 'MB',
    floor: 'agent into `cat`',
    goal: { max: 90 },
    by: flood,
    missing: '',
  },
  {
    name: 'memory',
    title: 'peak memory, 20 stories',
    unit: 'MB',
    floor: shell,
    goal: { max: 70 },
    by: stories,
    missing:
      "81 MB after four stories and 97 MB after twenty, where an empty node takes 40 MB; 1.7 MB of it is the program's text and as much what V8 kept of it. What holds the rest has not been profiled.",
  },
  {
    name: 'growth',
    title: 'growth of `.git`, 20 stories',
    unit: 'KB',
    floor: shell,
    goal: { max: 900 },
    by: stories,
    missing: '',
  },
  {
    name: 'long',
    title: '300 stories in one run: between two agents in the last fifth',
    unit: 'ms',
    floor: 'its first fifth',
    goal: { ratio: 1.1 },
    by: long,
    missing: '',
  },
  {
    name: 'long-memory',
    title: 'its peak memory',
    unit: 'MB',
    goal: { max: 80 },
    by: long,
    missing: '',
  },
  {
    name: 'long-growth',
    title: 'its growth of `.git`',
    unit: 'KB',
    goal: { max: 9000 },
    by: long,
    missing: '',
  },
  {
    name: 'large',
    title:
      'checkpoint and revert at 100,000 files: the end of an agent to the word that it is saved, and to the word that it is undone',
    unit: 'ms',
    floor: plainGit,
    goal: { ratio: 0.7 },
    by: large,
    missing:
      'traced at 10,000 files, a checkpoint scans the tree twice and writes a tree twice (kept, then saved), and a revert scans it three times: one scan each, handed on, and one tree for both.',
  },
  {
    name: 'large-failed',
    title: 'a failed attempt in full there: its end to the start of the next',
    unit: 'ms',
    floor: plainGit,
    goal: { ratio: 1 },
    by: large,
    missing:
      'traced at 10,000 files, the tree is scanned four times (kept, before and after the restore, before the next start); one scan would have to serve two of them.',
  },
  look(
    'status',
    2,
    'no process is started any more; what V8 kept of the whole program is read for it, half of which only a loop needs, and the journal is replayed.',
  ),
  look('list', 2, 'as `status`, and the schemas of plans (zod, yaml) are built before they are used.'),
  look('show', 3, 'as `list`.'),
  look(
    'prompt',
    3,
    'as `list`; the settings, the plan and every document of the change are read one after the other.',
  ),
  look('config', 3, 'as `list`.'),
  look('doctor', 3, 'git and each agent on PATH are asked for their versions; the rest is as `list`.'),
  look('help', 1.6, ''),
  look('version', 1.6, ''),
]

export interface Result {
  readonly name: string
  /** A row can be measured again without the others. */
  readonly date: string
  readonly floor?: Spread
  readonly ralph_tui?: Spread
  readonly ralph: Spread
  readonly is_met: boolean
}

export function resultOf({ name, goal }: Row, samples: Samples): Omit<Result, 'date'> {
  const { floor, ralph = [], 'ralph-tui': peer } = samples[name] ?? {}
  const [ours, lowest, theirs] = [spreadOf(ralph), floor && spreadOf(floor), peer && spreadOf(peer)]
  const most = Math.min(
    goal.max ?? Infinity,
    (goal.ratio ?? Infinity) * (lowest?.median ?? Infinity),
    goal.belowPeer === true ? (theirs?.median ?? Infinity) : Infinity,
  )
  return {
    name,
    ...(lowest && { floor: lowest }),
    ...(theirs && { ralph_tui: theirs }),
    ralph: ours,
    is_met: ours.median <= most,
  }
}

export function goalIn({ goal, unit, floor }: Row): string {
  const limits = [
    ...(goal.ratio === undefined
      ? []
      : [floor === 'its first fifth' ? `flat (${goal.ratio}x)` : `<= ${goal.ratio}x`]),
    ...(goal.max === undefined ? [] : [`<= ${goal.max.toLocaleString('en')} ${unit}`]),
  ]
  return [...limits, ...(goal.belowPeer === true ? ['below ralph-tui'] : [])].join(', ')
}
