// A process that takes the lock and stops itself (SIGSTOP) before its n-th call of the file system; for lock-race.test.ts.
import fs from 'node:fs'
import { fileLock } from '../../../src/adapters/files/lock.ts'
import { bootId, isAlive, processIdentity } from '../../../src/adapters/process/table.ts'

const [path = '', stopAt = '0'] = process.argv.slice(2)
const say = (words: string): void => {
  fs.writeSync(1, `${words}\n`)
}

const identity = { pid: process.pid, started: processIdentity(process.pid), bootId: bootId(), isAlive }
const what = { change: 'demo', worktree: '/somewhere', since: `${process.pid}` }
let calls = 0
/** As if the scheduler took the processor away just there. */
const stopping =
  <Args extends unknown[], Result>(name: string, call: (...args: Args) => Result) =>
  (...args: Args): Result => {
    calls += 1
    if (calls === Number(stopAt)) {
      say(`stopped ${name}`)
      process.kill(process.pid, 'SIGSTOP')
    }
    return call(...args)
  }
const names = ['openSync', 'linkSync', 'renameSync', 'rmSync', 'writeFileSync', 'readdirSync'] as const
// The lock's own calls, too: as CommonJS, which the bundle is, it looks each of them up when it makes it.
for (const name of names) Object.assign(fs, { [name]: stopping(name, fs[name] as () => unknown) })

say('ready')
process.stdin.once('data', () => {
  calls = 0
  fileLock(path, what, identity)
    .acquire()
    .then(
      (lock) => {
        say('held')
        process.stdin.once('data', () => {
          lock.release().then(
            () => process.exit(0),
            () => process.exit(1),
          )
        })
      },
      (error: Error) => {
        say(/^(A loop|Another ralph)/.test(error.message) ? 'refused' : error.message)
        process.exit(0)
      },
    )
})
