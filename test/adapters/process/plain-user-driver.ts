// One turn of an agent in a process of its own, as a plain user: root may remove and look into everything.
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { createAgents } from '../../../src/adapters/agents/agents.ts'

const [, , root = '', command = '', locked] = process.argv
const warnings: string[] = []
const agents = createAgents({
  command: `cat > /dev/null; ${command} echo "<promise>COMPLETE</promise>"`,
  passThrough: [],
  agentEnv: {},
  noApiKey: false,
  env: { PATH: process.env['PATH'], TMPDIR: root },
})
const turn = agents.work(
  {
    n: 1,
    prompt: 'Do it.',
    agent: 'command',
    cwd: root,
    env: { RALPH_RUN_ID: 'run' },
    transcript: join(root, '1.log'),
    timeoutMs: 60_000,
    idleTimeoutMs: 0,
  },
  new AbortController().signal,
  (signal) => {
    if (signal.type === 'started' && locked !== undefined) chmodSync(root, 0o500)
    if (signal.type === 'warning') warnings.push(signal.message)
  },
)
void turn.then((ended) => process.stdout.write(JSON.stringify({ ended, warnings })))
