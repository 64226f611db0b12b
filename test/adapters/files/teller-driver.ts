// A process that holds the lock and tells events as a loop does, until it is told to end or is killed; for tail.test.ts and bench/follow.ts.
import { writeSync } from 'node:fs'
import { fileLock } from '../../../src/adapters/files/lock.ts'
import { runPaths } from '../../../src/adapters/files/paths.ts'
import { bootId, isAlive, processIdentity } from '../../../src/adapters/process/table.ts'
import { change, openTeller, says, started, warns } from './teller.ts'

const [folder = '', run = 'run-1', count = '0', pauseEach = '0'] = process.argv.slice(2)
const identity = { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive }
const what = { change, worktree: '/w', since: 'now', purpose: 'loop' as const }
const lock = await fileLock(runPaths(folder, change).lock, what, identity).acquire()
const teller = await openTeller(folder, { remembers: false })
await teller.tell(started(run))
writeSync(1, 'ready\n')
/** Nine of ten are talk; a record is durable before what comes after it, as the engine has it. */
for (let i = 1; i <= Number(count); i += 1) {
  if (i % 10 === 0) await teller.tell(warns(`${i}`))
  else void teller.tell(says(`${i} ${'x'.repeat(i % 200)}`, 1 + Math.floor(i / 2000)))
  if (i % Math.max(1, Number(pauseEach)) === 0) await new Promise(setImmediate)
}
await teller.close()
await lock.release()
