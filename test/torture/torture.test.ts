// Proof that the oracle of `npm run torture` sees what goes wrong, and only that.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { program } from '../e2e/harness.ts'
import { judge } from './oracle.ts'
import { planRound, type Event, type Plan } from './plan.ts'
import { playRound, type Fault } from './play.ts'

const calm: Plan = {
  seed: 0,
  round: 0,
  mode: 'branch',
  stories: 1,
  has: ['stash', 'edited', 'partly-staged', 'untracked', 'branch'],
  attempts: [],
  gate: false,
  choice: 'cleanup',
  events: [],
  wishes: [],
  orphansGoOn: false,
  isDetached: false,
}

/** Every eighth edit is one of the same file: in the loop's tree, then in the checkout, where it is committed. */
const sameLine: Event[] = [
  { deed: 'edit' as const, place: 'loop' as const },
  ...Array.from({ length: 7 }, () => ({ deed: 'create' as const, place: 'checkout' as const })),
  { deed: 'edit' as const, place: 'checkout' as const },
  { deed: 'commit' as const, place: 'checkout' as const },
].map((act) => ({ at: { on: 'agent', spawn: 0, step: 0 }, act: { do: 'user', ...act } }))

async function faultsOf(plan: Plan, standIn?: string): Promise<Fault[]> {
  const played = await playRound(plan, standIn)
  const faults = judge(played)
  if (faults.length === 0 || standIn !== undefined)
    rmSync(played.world.root, { recursive: true, force: true })
  return faults
}

describe('the oracle', () => {
  test('finds nothing where nothing is wrong, even if main and the loop have changed the same line: the user merges as told', async () => {
    const played = await playRound({ ...calm, mode: 'worktree', events: sameLine })
    expect(judge(played)).toEqual([])
    expect(played.story).toContain('  user: merged, 1 conflicts resolved')
    rmSync(played.world.root, { recursive: true, force: true })
  })

  test('sees what is done to the user, said without being so, or left behind', async () => {
    const faults = await faultsOf(
      calm,
      ralphAndThen(
        'rm -f notes.txt work/story-1.txt',
        'git checkout -q -- src/user-1.txt',
        'git branch -qf user-branch main',
        'git stash drop -q',
        'sed -i "s/\\[x\\] 1.1/[ ] 1.1/" openspec/changes/demo/tasks.md',
        'git config alias.st "!x"',
        'sleep 600 > /dev/null 2>&1 & touch .git/index.lock',
      ),
    )
    const told = faults.map(({ kind, text }) => `${kind}: ${text}`).join('\n')
    for (const words of [
      /lost: .*"notes.txt"/,
      /lost: .*"src\/user-1.txt"/,
      /lost: refs\/heads\/user-branch is/,
      /lost: the stash/,
      /lie: iteration 1 is called complete, its \S+ is in the result 0 times/,
      /lie: done, but open: - \[ \] 1.1/,
      /lie: \.git\/config is not the user's/,
      /process: .*sleep/,
      /left: .*index.lock/,
    ])
      expect(told).toMatch(words)
  })

  test('sees a program that never comes to an end of it', async () => {
    expect(await faultsOf(calm, ralphAndThen('exit 1'))).toContainEqual(
      expect.objectContaining({ kind: 'dead end' }),
    )
  })
})

/** `npm run torture` plays hundreds; these are short ones of it, with a kill and a user beside it, in the modes that differ most. */
describe('a short run', () => {
  test.each([
    ['branch', 12, 20],
    ['stash', 12, 9],
    ['worktree', 12, 10],
    ['submodules', 13, 45],
  ])(
    'O1-O5, O12-O14, G25: %s, seed %i, round %i: nothing lost, no lie, a way on, nothing left behind',
    async (mode, seed, round) => {
      const plan = planRound(seed, round)
      expect(plan.mode).toBe(mode)
      expect(await faultsOf(plan)).toEqual([])
    },
  )
})

/** A program that is ralph itself, and does something more after each of its loops. */
function ralphAndThen(...deeds: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-stand-in-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'ralph.mjs')
  writeFileSync(
    path,
    `import { spawnSync } from 'node:child_process'
const { status, stdout, stderr } = spawnSync(process.execPath, [${JSON.stringify(program)}, ...process.argv.slice(2)])
process.stdout.write(stdout)
process.stderr.write(stderr)
if (['status', 'finish'].includes(process.argv[2])) process.exit(status)
const after = spawnSync('sh', ['-c', ${JSON.stringify(deeds.join('\n'))}], { stdio: 'ignore' })
process.exit(status || after.status)
`,
  )
  return path
}
