// A process that goes first after a reset and then does nothing more; for logins.test.ts.
import { writeSync } from 'node:fs'
import { systemClock } from '../../../src/adapters/clock.ts'
import { loginLedger } from '../../../src/adapters/files/logins.ts'
import { bootId, isAlive, processIdentity } from '../../../src/adapters/process/table.ts'

const logins = loginLedger({
  folder: process.argv[2] ?? '',
  accountOf: () => 'me',
  loop: { id: 'driver', change: 'demo', worktree: '/somewhere' },
  clock: { ...systemClock, now: () => Date.now() + 2000 },
  identity: { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive },
})
const untilMs = await logins.look('claude')
writeSync(1, untilMs === undefined ? 'first\n' : 'waits\n')
setInterval(() => undefined, 60_000)
