// Checkpoint operations as a plain user, in a process of its own: root may read and write everything.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { bundle } from '../../bundle.ts'
import type { Killable } from './kill-driver.ts'
import type { Strategy, World } from './world.ts'

/** Who is not root already is the plain user; else it is this one. */
const nobody = 65_534
export const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: nobody, gid: nobody } : {}

export interface PlainUser {
  /** The error that came of it: none, when it went well. */
  run(...operations: Killable[]): Promise<string>
  /** A shell of the same user in the work tree: the agent. */
  sh(script: string): void
}

export function plainUser(w: World, strategy: Strategy): PlainUser {
  const journal = join(w.root, 'journal')
  writeFileSync(journal, '')
  if (isRoot) execFileSync('chown', ['-R', `${nobody}:${nobody}`, w.root])
  return {
    run: async (...operations) => {
      const said = await asked({ dir: w.dir, journal, strategy, operations, env: w.env })
      // As the engine does, once the checkpoint is sure.
      if (operations.at(-1) === 'ensure') appendFileSync(journal, '{"type":"iteration.started","n":1}\n')
      return said
    },
    sh: (script) => {
      execFileSync('sh', ['-ec', script], { cwd: w.dir, env: w.env, ...user })
    },
  }
}

/** One process for all tests of a file, as one does all of a loop: to start it takes longer than what it is asked for. */
let driver: ChildProcess | undefined
afterAll(async () => {
  if (driver === undefined) return
  const ended = once(driver, 'exit')
  driver.kill()
  await ended
})

function asked(work: object): Promise<string> {
  const child = (driver ??= startDriver())
  return new Promise((resolve, reject) => {
    child.once('message', (said) => resolve(said as string))
    child.once('exit', (code, signal) => reject(new Error(`the driver ended: ${code ?? signal}`)))
    child.send(work)
  })
}

function startDriver(): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), 'ralph-plain-user-'))
  chmodSync(folder, 0o755)
  const file = join(folder, 'driver.cjs')
  bundle(join(import.meta.dirname, 'kill-driver.ts'), file)
  const env = { PATH: process.env['PATH'], RALPH_KILL_DRIVER: '1' }
  const child = spawn(process.execPath, [file], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    ...user,
  })
  child.setMaxListeners(0)
  child.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return child
}
