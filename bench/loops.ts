// Whole runs of a plan: twenty stories, one that floods, three hundred and a thousand in a row.
import { closeSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Bed, Ran, Samples, Who } from './bed.ts'
import { median, run, shuffled, watch, type Sample } from './measure.ts'
import { program } from './peer-programs.ts'

export async function stories(bed: Bed): Promise<Samples> {
  const { rounds, stories: count } = bed.size
  const samples: Samples = { between: {}, story: {}, first: {}, last: {}, memory: {}, growth: {} }
  for (let round = 0; round < rounds; round += 1) {
    for (const who of shuffled(bed.who)) {
      await bed.plan(who, count, 'works', (ran) => {
        const { beganMs, endedMs, ms, turns, peakMb, folder, others } = ran
        const note = (row: string, value: number): void => add(samples, row, who, { value, others })
        const commits = Number(run(folder, 'git', 'rev-list', '--count', 'HEAD'))
        if (commits <= count) throw new Error(`${who} made ${commits - 1} commits for ${count} stories`)
        note('between', median(gapsOf(ran)))
        note('story', ms / count)
        note('first', (turns[0]?.beganMs ?? Number.NaN) - beganMs)
        note('last', endedMs - (turns.at(-1)?.endedMs ?? Number.NaN))
        note('memory', peakMb)
        note('growth', grownKb(bed, ran, count))
      })
    }
  }
  return samples
}

/** What a cage adds to a story: the same plan with and without, one after the other. */
export async function caged(bed: Bed): Promise<Samples> {
  const { rounds, stories: count } = bed.size
  const samples: Samples = { cage: {} }
  // Where the stand-in writes down its turns.
  const cage = { RALPH_SANDBOX: 'workspace', RALPH_SANDBOX_ALLOW: bed.root }
  for (let round = 0; round < rounds; round += 1) {
    // From agent to agent: what is between them, and what starts and ends them.
    const tell = ({ turns, others }: Ran): Sample => {
      const periods = turns.slice(1).map(({ beganMs }, at) => beganMs - (turns[at]?.beganMs ?? Number.NaN))
      return { value: median(periods), others }
    }
    const plain = await bed.plan('ralph', count, 'works', tell)
    const kept = await bed.plan('ralph', count, 'works', tell, { env: cage })
    add(samples, 'cage', 'ralph', { value: kept.value - plain.value, others: plain.others + kept.others })
  }
  return samples
}

export async function flood(bed: Bed): Promise<Samples> {
  const { rounds, megabytes } = bed.size
  const samples: Samples = { flood: {}, 'flood-memory': {} }
  const [path, shown] = [join(bed.root, 'flood.ndjson'), join(bed.root, 'shown')]
  writeFlood(path, megabytes)
  for (let round = 0; round < Math.ceil(rounds / 2); round += 1) {
    for (const who of shuffled(bed.who)) {
      await bed.plan(
        who,
        1,
        'floods',
        ({ ms, peakMb, others }) => {
          add(samples, 'flood', who, { value: ms, others })
          add(samples, 'flood-memory', who, { value: peakMb, others })
        },
        { stdout: shown },
      )
      if (who === 'ralph' && statSync(shown).size < megabytes * shownPerMb)
        throw new Error(`only ${statSync(shown).size} bytes of the flood were shown`)
    }
  }
  rmSync(path)
  return samples
}

export function long(bed: Bed): Promise<Samples> {
  return flat(bed, 'long', bed.size.longStories)
}

const looksBack = ['status', 'history', 'why'] as const

/** And what it costs to look back at such a run, beside one of twenty. */
export async function longest(bed: Bed): Promise<Samples> {
  const { looks, stories: few, longestStories: many } = bed.size
  const lookBack = async (samples: Samples, who: Who, cwd: string): Promise<void> => {
    for (let round = 0; round < looks; round += 1) {
      for (const name of shuffled(looksBack)) {
        const { ms, code, others } = await watch([process.execPath, program, name, 'demo'], {
          cwd,
          env: bed.env,
        })
        if (code !== 0) throw new Error(`${name} ended with ${code}`)
        add(samples, `longest-${name}`, who, { value: ms, others })
      }
    }
  }
  const seen: Samples = {}
  await bed.plan('ralph', few, 'works', ({ folder }) => lookBack(seen, 'floor', folder))
  const samples = await flat(bed, 'longest', many, ({ folder }) => lookBack(seen, 'ralph', folder))
  return { ...samples, ...seen }
}

/** The floor of its last fifth is its own first one. */
async function flat(
  bed: Bed,
  name: string,
  count: number,
  more: (ran: Ran) => Promise<void> = () => Promise.resolve(),
): Promise<Samples> {
  const samples: Samples = { [name]: {}, [`${name}-memory`]: {}, [`${name}-growth`]: {} }
  await bed.plan('ralph', count, 'works', async (ran) => {
    const { others, peakMb } = ran
    const gaps = gapsOf(ran).map((value) => ({ value, others }))
    const fifth = Math.floor(gaps.length / 5)
    samples[name] = { floor: gaps.slice(0, fifth), ralph: gaps.slice(-fifth) }
    add(samples, `${name}-memory`, 'ralph', { value: peakMb, others })
    add(samples, `${name}-growth`, 'ralph', { value: grownKb(bed, ran, count), others })
    await more(ran)
  })
  return samples
}

function add(samples: Samples, row: string, who: Who, sample: Sample): void {
  const of = (samples[row] ??= {})
  ;(of[who] ??= []).push(sample)
}

/** From each agent's end to the start of the next. */
function gapsOf({ turns }: Ran): number[] {
  return turns.slice(1).map(({ beganMs }, index) => beganMs - (turns[index]?.endedMs ?? Number.NaN))
}

function grownKb(bed: Bed, { folder }: Ran, stories: number): number {
  return diskKb(join(folder, '.git')) - diskKb(join(bed.root, `template-${stories}`, '.git'))
}

/** What `du` counts. */
function diskKb(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce(
    (sum, entry) =>
      sum +
      (entry.isDirectory()
        ? diskKb(join(folder, entry.name))
        : statSync(join(folder, entry.name)).blocks / 2),
    statSync(folder).blocks / 2,
  )
}

/** Of each megabyte, in bytes: 1.3 MB of 200. */
const shownPerMb = 6_000

/** A turn of 33 KB as Claude Code prints it: words and a tool's input in deltas, both again as messages, and what the tools answered. */
export function writeFlood(path: string, megabytes: number): void {
  const words = 'I read the module and its tests once more. '.repeat(4)
  const source = 'export const answer = (question) => table.get(question)\n'.repeat(32)
  const line = (event: object): string =>
    `${JSON.stringify({ ...event, parent_tool_use_id: null, session_id: 'session-1', uuid: 'd6b0c3c2-58b5-4a0b-9f0e-0f6a4a2f1f6d' })}\n`
  const deltas = (type: string, key: string, text: string, length: number): string[] =>
    Array.from({ length: Math.ceil(text.length / length) }, (_, n) =>
      line({
        type: 'stream_event',
        event: {
          type: 'content_block_delta',
          index: 0,
          delta: { type, [key]: text.slice(n * length, (n + 1) * length) },
        },
      }),
    )
  const assistant = (block: object): string =>
    line({
      type: 'assistant',
      message: { id: 'm', role: 'assistant', model: 'claude-test', content: [block] },
    })
  const result = (content: string): string =>
    line({
      type: 'user',
      message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] },
    })
  const turn = [
    ...deltas('text_delta', 'text', words, 20),
    assistant({ type: 'text', text: words }),
    ...deltas('input_json_delta', 'partial_json', source, 40),
    assistant({
      type: 'tool_use',
      id: 't',
      name: 'Write',
      input: { file_path: 'src/answer.ts', content: source },
    }),
  ].join('')
  const block = Buffer.from(turn + result(source.repeat(2)).repeat(Math.round((33_000 - turn.length) / 3900)))
  const file = openSync(path, 'w')
  for (let left = megabytes * 1e6; left > 0; left -= block.length) writeSync(file, block)
  closeSync(file)
}
