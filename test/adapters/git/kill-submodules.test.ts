// G25, O19: the same with submodules that hold the user's work, and an agent at work in them.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { testKills } from './kill.ts'
import { addSubmodules, branched, nested, odd, plain } from './submodule-world.ts'
import type { World } from './world.ts'

/** One loses its folder, one its git directory, one is committed to, one gets another branch. */
function agent(w: World): void {
  w.git('-C', nested, 'checkout', '-q', '-f', '-b', 'agents')
  w.git('-C', branched, 'commit', '-qam', 'agent')
  w.write(`${branched}/agent.txt`, 'agent\n')
  rmSync(join(w.dir, odd), { recursive: true })
  rmSync(join(w.dir, plain, '.git'), { recursive: true })
}

const more = { setUp: addSubmodules, agent, inside: [branched, nested, odd, plain] }
testKills(
  'branch',
  [
    ['start', []],
    ['restore', ['start', 'ensure', 'agent', 'keep']],
  ],
  { ...more, every: 25 },
)
testKills(
  'stash',
  [
    ['keep', ['start', 'ensure', 'agent']],
    ['save', ['start', 'ensure', 'agent', 'keep']],
  ],
  { ...more, every: 25 },
)
