// The power is cut at each sync of a run, in simulation: what had not been synced is gone, torn or there. Both promises hold after each.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { LoopEvent } from '../../src/core/event.ts'
import { cutsOf, readImage, writeImage, type Cut, type Image } from './disk-model.ts'
import { readTrace, straceFlags } from './disk-trace.ts'
import { program, ralph, scratch, tasksOf, type Scratch } from './harness.ts'

/** How many of the images are tried; `RALPH_CUTS=all` for all of them (half an hour), `RALPH_CUTS="sync 136"` for those of that name. */
const wanted = process.env['RALPH_CUTS'] ?? '10'

const user = {
  'README.md': '# scratch\n\nhours of work\n',
  'mine.txt': "the user's own, never committed\n",
  'notes/staged.txt': 'staged\n',
}
const good = `
echo "work of $RALPH_STORY" > "story-$RALPH_STORY.txt"
echo "<promise>COMPLETE</promise>"`
/** Fails first, with the user's files spoiled, and stages and commits by itself, as many do: without a sync. */
const agent = `
if [ "$RALPH_ITERATION" = 1 ]; then
  echo spoiled > README.md; echo spoiled > mine.txt; rm notes/staged.txt; echo junk > junk.txt
  echo "<promise>FAILED: I broke it</promise>"; exit
fi
echo "work of $RALPH_STORY" > "story-$RALPH_STORY.txt"
git add -A
if [ "$RALPH_STORY" = 1 ]; then git commit -qm "the agent's own"; fi
echo "<promise>COMPLETE</promise>"`

const canTrace = spawnSync('strace', ['-f', '--seccomp-bpf', '-o', '/dev/null', 'true']).status === 0

test.runIf(canTrace).each(['branch', 'stash'])(
  'O18: after a power cut at any sync nothing is lost, and nothing is called done that is not (--checkpoint %s; needs strace)',
  async (checkpoint) => {
    const at = scratch({ tasks: tasksOf(2) })
    for (const [path, text] of Object.entries(user)) at.write(path, text)
    at.write('stashed.txt', 'stashed\n')
    at.git('stash', 'push', '-qu', '-m', 'mine', '--', 'stashed.txt')
    at.git('add', 'notes')
    const before = readImage(at.repo)
    const flags = ['--checkpoint', checkpoint, '--on-complete', 'cleanup', '--json']
    const trace = join(at.root, 'trace')
    const traced = [...straceFlags, '-o', trace, process.execPath, program]
    execFileSync('strace', [...traced, 'loop', 'demo', '--agent-command', agent, ...flags], {
      cwd: at.repo,
      env: at.env,
      stdio: 'ignore',
    })
    const after = readImage(at.repo)
    const status = at.git('status', '--porcelain')
    const { cuts, syncs, last } = cutsOf(at.repo, before, readTrace(trace))
    // What the record makes of it is what is on the disk: no call is missing there.
    expect(differing(last, after)).toEqual([])
    expect(syncs).toBeGreaterThan(50)

    const tried = chosen(cuts)
    expect(tried.length).toBeGreaterThan(0)
    const wrong: string[] = []
    for (const cut of tried) {
      const found = await faultsAfter(at, cut, flags)
      if (found.length === 0 && at.git('status', '--porcelain') !== status)
        found.push(`git status: ${at.git('status', '--porcelain')}`)
      if (found.length > 0) wrong.push(`${cut.name}: ${found.join('\n  ')}`)
    }
    expect(wrong, `of ${tried.length} images, out of ${cuts.length} at ${syncs} syncs`).toEqual([])
  },
  7_200_000,
)

function chosen(cuts: readonly Cut[]): readonly Cut[] {
  if (wanted === 'all') return cuts
  const count = Number(wanted)
  if (Number.isNaN(count)) return cuts.filter(({ name }) => name.includes(wanted))
  // Each kind of file is lost in one of them, where they are enough for that: the one that loses most goes first.
  const found: Cut[] = []
  const open = new Set(cuts.flatMap(({ lost }) => lost))
  const gain = ({ lost }: Cut): number => lost.filter((what) => open.has(what)).length
  while (found.length < count) {
    const best = cuts.reduce((one, other) => (gain(other) > gain(one) ? other : one))
    if (gain(best) === 0) break
    found.push(best)
    for (const what of best.lost) open.delete(what)
  }
  return found
}

/** What does not hold when the machine is on again, and the user types `ralph status` and `ralph resume`. */
async function faultsAfter(at: Scratch, { image }: Cut, flags: readonly string[]): Promise<string[]> {
  rmSync(at.repo, { recursive: true, force: true })
  writeImage(at.repo, image)
  const [journal, sign] = ['journal.ndjson', 'alive'].map((name) =>
    join(at.repo, '.git/ralph/changes/demo', name),
  ) as [string, string]
  // All that is there was written before the cut.
  for (const file of [journal, sign]) if (existsSync(file)) utimesSync(file, new Date(), new Date())
  // An image has no times: what the agent's git had locked is younger than the checkpoint.
  const names = readdirSync(join(at.repo, '.git'), { encoding: 'utf8', recursive: true })
  for (const name of names.filter((each) => each.endsWith('.lock')))
    utimesSync(join(at.repo, '.git', name), new Date(), new Date())
  const wrong: string[] = []

  const events = eventsIn(journal)
  const saved = events.flatMap((event) => (event.type === 'checkpoint.saved' ? [event.commit] : []))
  if (saved.length > 0) wrong.push(...unreadable(at, saved.join(' ')))
  const look = await ralph(at, ['status', 'demo', '--json'])
  if (look.code !== (events.length > 0 ? 0 : 2)) wrong.push(`status: exit ${look.code}: ${look.stdout}`)
  const said = JSON.parse(look.stdout) as { readonly status?: string }
  if (said.status === 'done' && !hasWork(at)) wrong.push('status says done')

  const args = ['demo', '--agent-command', good, ...flags]
  let first = await ralph(at, ['resume', ...args])
  // A lock of which nobody can tell whose it was is refused, as git itself does it: what is said to do has to work.
  const [, lock] = /remove the file \(rm (\S+\.lock)\)/.exec(first.stderr) ?? []
  if (first.code === 2 && lock !== undefined) {
    rmSync(lock)
    first = await ralph(at, ['resume', ...args])
  }
  const isUnknown = first.code === 2 && first.stderr.includes('ralph loop demo')
  const end = isUnknown ? await ralph(at, ['loop', ...args]) : first
  if (end.code !== 0) wrong.push(`resume: exit ${end.code}: ${end.stdout}${end.stderr}`)
  if (end.code === 0 && !hasWork(at)) wrong.push('done without the work')
  for (const [path, text] of Object.entries(user)) {
    const file = join(at.repo, path)
    const now = existsSync(file) ? readFileSync(file, 'utf8') : undefined
    if (now !== text) wrong.push(`${path} is ${JSON.stringify(now)}`)
  }
  if (at.git('stash', 'list') !== 'stash@{0}: On main: mine') wrong.push(at.git('stash', 'list'))
  return [...wrong, ...unreadable(at, '--all HEAD')]
}

/** Complete lines only. */
function eventsIn(journal: string): LoopEvent[] {
  const lines = existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').slice(0, -1) : []
  return lines.map((line) => JSON.parse(line) as LoopEvent)
}

/** What git says of objects that these lead to and that are missing or broken. */
function unreadable(at: Scratch, refs: string): string[] {
  const command = `git rev-list --objects ${refs} | cut -d' ' -f1 | git cat-file --batch >/dev/null`
  const { stderr } = spawnSync('sh', ['-c', command], { cwd: at.repo, env: at.env, encoding: 'utf8' })
  return stderr === '' ? [] : [stderr]
}

function hasWork(at: Scratch): boolean {
  return ['1', '2'].every((story) => {
    const file = join(at.repo, `story-${story}.txt`)
    return existsSync(file) && readFileSync(file, 'utf8') === `work of ${story}\n`
  })
}

function differing(one: Image, other: Image): string[] {
  return [...new Set([...one.keys(), ...other.keys()])].filter((path) => {
    const [a, b] = [one.get(path), other.get(path)]
    return a === undefined || b === undefined || a.kind !== b.kind || !a.bytes.equals(b.bytes)
  })
}
