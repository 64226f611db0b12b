// G25 for the branch strategy.
import { testKills } from './kill.ts'

testKills('branch', [
  ['start', []],
  ['keep', ['start', 'ensure', 'agent']],
  ['restore', ['start', 'ensure', 'agent', 'keep']],
  ['save', ['start', 'ensure', 'agent', 'keep']],
  ['finish', ['start', 'ensure', 'agent', 'keep', 'save']],
  ['finish', ['start', 'ensure', 'agent', 'keep', 'save', 'elsewhere']],
  ['squash', ['start', 'ensure', 'agent', 'keep', 'save']],
  ['squash', ['start', 'ensure', 'agent', 'keep', 'save', 'elsewhere']],
  ['rename', ['start', 'ensure', 'agent', 'keep', 'save']],
])
