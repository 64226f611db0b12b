// G25 for the stash strategy.
import { testKills } from './kill.ts'

testKills('stash', [
  ['start', []],
  ['ensure', ['start']],
  ['keep', ['start', 'ensure', 'agent']],
  ['restore', ['start', 'ensure', 'agent', 'keep']],
  ['save', ['start', 'ensure', 'agent', 'keep']],
  ['finish', ['start', 'ensure', 'agent', 'keep', 'restore']],
])
