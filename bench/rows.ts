// Every row of the table and its goal, and whether what was measured meets it.
import type { Bed, Samples } from './bed.ts'
import { jobs } from './jobs.ts'
import { large } from './large.ts'
import { looked, looks } from './looks.ts'
import { caged, flood, long, longest, stories } from './loops.ts'
import { spreadOf, type Spread } from './measure.ts'
import { refs } from './refs.ts'
import { firstPicture, screenFlood } from './screens.ts'

interface Goal {
  /** Of the floor's median. */
  readonly ratio?: number
  readonly max?: number
  readonly belowPeer?: true
}

export interface Row {
  readonly name: string
  readonly title: string
  readonly unit: 'ms' | 'MB' | 'KB' | '/s'
  readonly floor?: string
  readonly goal: Goal
  /** Rows of one measurement are taken from the same runs. */
  readonly by: (bed: Bed) => Promise<Samples>
  /** What it would take, for as long as the goal is missed. */
  readonly missing: string
}

const grows =
  'V8’s heap stays at 25 MB from twenty stories on, 14 of them in use after a collection. What grew was memory of the four threads that compile what is hot: 3 MB each, and they do not give it back. Only short functions are compiled so now.'
const shell = 'shell: rev-parse, add, commit'
const looking =
  'profiled when it took 26 ms more than an empty node: 9 were the program, read as V8 has kept it, and its parts (half of what is read is for other looks); 5 the journal, read, checked and replayed; 4 the stream that stdout is to Node; 3 the collection of garbage; 3 the repository and its refs; 2 the command line. Without that stream (its lines go straight to a file or a pipe), and with what V8 keeps of its usual page, `status` takes 19 to 20 ms of processor more. It would take less program.'
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
      'profiled: of the processor time of a story nearly half is the kernel at file calls, a quarter the program’s own code (interpreted, without a hot spot; with other settings of V8 it takes as long), a fifth the part of Node between the two, a fifteenth the collection of garbage. Of those calls the dear ones are few: 30 files and 9 folders that are made (to find room for them takes ext4 without a journal 7 to 13 % of it all, the more the more files anybody has removed lately), 38 syncs in 25 rounds, one after the other (each wakes a thread; in place they took as long, as far as a busy machine shows), 24 names that are given to others, 12 files and folders that are removed, and the fork of ralph itself for the agent; the 1,450 small questions cost less than they: those about one file take a fiftieth together. Hardly anything waits: of 69 ms some 50 are ralph’s own processor time, 10 the two git processes, 5 the syncs; no timer is in between. Two git processes are left, one look at the tree when the attempt is kept (the refs are read meanwhile) and one before the next agent: which files are ignored only git knows. The floor syncs nothing. A tenth of it is the writing of nine objects, each a file with a sync of its own, most in a new folder. It would take a pack for the objects of an attempt and one for those of its checkpoint, which whoever reads them would have to find there; and an agent that a small process starts.',
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
      'nobody waits for `openspec` any more; left are the start of Node and of the program, five git processes one after the other (four looks at the tree, the settings; a sixth pins what others point to, where that is packed), `mkfifo`, and some fifty syncs, more where the repository itself was written in the last ten minutes. The looks before the first checkpoint could be two.',
  },
  {
    name: 'last',
    title: "last agent's end to exit",
    unit: 'ms',
    floor: shell,
    goal: { max: 150 },
    by: stories,
    missing:
      'not profiled in this state: as between two agents up to the checkpoint; then journal, state file and refs are synced one after the other, and a slow disk shows.',
  },
  {
    name: 'cage',
    title: 'what `--sandbox workspace` adds to a story',
    unit: 'ms',
    goal: { max: 15 },
    by: caged,
    missing:
      'from the second story on bubblewrap (10 ms with the mounts of a story) runs beside ralph (decisions/0017): with no core to spare it is on the way again. What is on the way always is the look at what there is to hide (2.5 ms of processor), the word to the gate and the check (0.7), and the shell that begins the agent (1.2).',
  },
  {
    name: 'flood',
    title: 'one story with 200 MB of stream-json, 1.3 MB of it shown',
    unit: 'ms',
    floor: 'agent into `cat`',
    goal: { ratio: 2 },
    by: flood,
    missing:
      'the goal is twice what `cat` takes, and a loop over one silent story takes longer by itself: the first agent and the end, above, and two questions to `openspec` (0.4 s of processor each, asked beside the agent), whose answers it waits for before it ends. On two cores they take half of what the flood needs. Profiled without them: 1.2 s of processor on a busy machine, of which 0.3 s are start and end. Of the rest a third is the telling of 12,000 messages and tool calls one by one (each is reduced, described for the screen and written beside the journal), a quarter the collection of garbage (with a young space of 4 to 16 MB instead of 1 it took as long, and 21 MB more), a sixth the reading of the lines that matter, a tenth the transcript. It would take talk that is reduced and written once for each chunk, and still not reach it.',
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
    name: 'screens',
    title: 'the same 200 MB in the screens: `ralph loop` typed to the choice at the end',
    unit: 'ms',
    floor: '`ralph loop --no-tui`',
    goal: { ratio: 1.3 },
    by: screenFlood,
    missing:
      'not profiled in this state: the loop is another process, which writes what the agent says beside the journal; this one reads it there and draws it.',
  },
  {
    name: 'screens-renders',
    title: 'pictures drawn meanwhile, in the second with the most of them',
    unit: '/s',
    goal: { max: 10 },
    by: screenFlood,
    missing: '',
  },
  {
    name: 'screens-memory',
    title: 'peak memory of the process that draws them',
    unit: 'MB',
    goal: { max: 200 },
    by: screenFlood,
    missing: '',
  },
  {
    name: 'screens-key',
    title: 'a key pressed to its answer on the screen, the slowest of each run',
    unit: 'ms',
    goal: { max: 200 },
    by: screenFlood,
    missing: 'not profiled in this state: what is told is folded in steps of 15 ms, then the keys are heard.',
  },
  {
    name: 'screens-first',
    title: '`ralph` typed to the list of changes on the screen',
    unit: 'ms',
    floor: 'empty node',
    goal: { ratio: 5 },
    by: firstPicture,
    missing:
      'profiled: 86 ms of processor before the list is there, 25 of them an empty node. 22 are Ink and React as V8 has kept them (from the end of the first start on, which is slower), 15 their first picture and its layout, the rest the program, the command line and the changes. It would take a first picture without Ink.',
  },
  {
    name: 'memory',
    title: 'peak memory, 20 stories',
    unit: 'MB',
    floor: shell,
    goal: { max: 70 },
    by: stories,
    missing:
      'an empty node takes 41 MB. After twenty stories 12 MB of the heap are in use: what V8 made of the program, its source and texts; another 7 MB are pages of node itself that a loop touches. It would take less program.',
  },
  {
    name: 'growth',
    title: 'growth of `.git`, 20 stories',
    unit: 'KB',
    floor: shell,
    goal: { max: 900 },
    by: stories,
    missing:
      '`du` counts whole blocks of 4 KB: of each story there are nine objects, a ref, what the agent said and its transcript. Hooks of the watch that were left for a next story (68 KB) and a second copy of the index had made it 908.',
  },
  {
    name: 'long',
    title: '300 stories in one run: between two agents in the last fifth',
    unit: 'ms',
    floor: 'its first fifth',
    goal: { ratio: 1.1 },
    by: long,
    missing:
      'with every story some 28 files are made and 12 removed, and ext4 without a journal does not give away again for some minutes what was removed: the longer a run, the more of it is passed over for each new file (`recently_deleted` and what it calls: a tenth of the processor time of a loop, measured while other programs removed files, too). And the plan is read anew for each story, all 300 of it: a twentieth. It would take fewer files that live for one story only.',
  },
  {
    name: 'long-memory',
    title: 'its peak memory',
    unit: 'MB',
    goal: { max: 80 },
    by: long,
    missing: grows,
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
    name: 'longest',
    title: '1,000 iterations in one run: between two agents in the last fifth',
    unit: 'ms',
    floor: 'its first fifth',
    goal: { ratio: 1.1 },
    by: longest,
    missing:
      'as with 300 stories; and what grows with the run is its plan (1,000 stories, read for each of them) and the state file (all iterations, written whole).',
  },
  {
    name: 'longest-memory',
    title: 'its peak memory',
    unit: 'MB',
    goal: { max: 100 },
    by: longest,
    missing: grows,
  },
  {
    name: 'longest-growth',
    title: 'its growth of `.git`',
    unit: 'KB',
    goal: { max: 30_000 },
    by: longest,
    missing: '',
  },
  ...(['status', 'history', 'why'] as const).map((name): Row => ({
    name: `longest-${name}`,
    title: `\`ralph ${name}\` there`,
    unit: 'ms',
    floor: 'on a run of 20 stories',
    goal: { ratio: 3 },
    by: longest,
    missing:
      'the state that the loop keeps beside the journal is checked byte by byte and read whole, with a record for each iteration; `history` prints a line for each.',
  })),
  {
    name: 'refs-packed',
    title: 'per story with 20,000 branches and tags, packed',
    unit: 'ms',
    floor: 'without them',
    goal: { ratio: 1.5 },
    by: refs,
    missing: 'not profiled yet.',
  },
  {
    name: 'refs-loose',
    title: 'the same, each in a file of its own',
    unit: 'ms',
    floor: 'without them',
    goal: { ratio: 1.5 },
    by: refs,
    missing:
      'every ref is a file, and after each agent every one is asked for its times, once: it may have been written to in its place, which its folder does not tell (60 ms of processor for 20,000, as much as the goal allows in all). Their folders are asked at every look and read where they have changed, and a copy is made of all names when one of them moves. Refs that had just been made were read at every look for two and a half seconds, half of a short run: now for a quarter of one, where the disk keeps exact times (240 ms of processor for a story, start and end included, were 375). `git pack-refs --all` makes it the row above; git itself does that in its own upkeep.',
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
      'measured again by processor time, on a busy machine, since the figures above: 1.4x of what plain git takes (2.5x before). More than half of it are three looks of `git status` (one at what is to be saved, two for a revert: what is to be kept, and whether all is back), each a quarter of all that plain git does. An index of 8 MB is written for the attempt, for the boxes and for the repository, by ralph itself, and by git where it brings files back. The rest is ralph: of a revert a third of that are walks over all folders for what git does not see, of a checkpoint the index. For 0.7x it would take a revert that does not look whether all is back, and what you write in that moment would be in no attempt.',
  },
  {
    name: 'large-failed',
    title: 'a failed attempt in full there: its end to the start of the next',
    unit: 'ms',
    floor: plainGit,
    goal: { ratio: 1 },
    by: large,
    missing:
      'measured again by processor time, on a busy machine, since the figures above: 1.2x of what plain git takes (1.8x before). Two thirds of it are three looks at the tree (what is to be kept, whether all is back, and before the next agent), a twentieth is git that brings files back, a quarter ralph. One look would have to serve two of these, and then an edit of yours in between would be taken for the agent’s.',
  },
  {
    name: 'jobs',
    title: 'six changes by `ralph up --jobs 3`, each with an agent that sleeps for 20 s',
    unit: 'ms',
    floor: 'the same with `--jobs 1`',
    goal: { ratio: 0.45 },
    by: jobs,
    missing: '',
  },
  look('status', 2, looking),
  look('list', 2, looking),
  look('show', 3, looking),
  look('prompt', 3, looking),
  look('config', 3, looking),
  look(
    'doctor',
    3,
    `git is asked for its version: a process, and the part of Node that starts it, are a fifth of it; ${looking}`,
  ),
  look('statusline', 1.5, ''),
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
