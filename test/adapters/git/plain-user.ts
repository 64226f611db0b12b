// Checkpoint operations as a plain user, in processes of their own: root may read and write everything.
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from '../../bundle.ts'
import type { Killable } from './kill-driver.ts'
import type { Strategy, World } from './world.ts'

/** Who is not root already is the plain user; else it is this one. */
const nobody = 65_534
export const isRoot = process.getuid?.() === 0

export interface PlainUser {
  /** What it said on stderr: nothing, when it went well. */
  run(...operations: Killable[]): string
  /** A shell of the same user in the work tree: the agent. */
  sh(script: string): void
}

export function plainUser(w: World, strategy: Strategy): PlainUser {
  const driver = join(w.root, 'driver.cjs')
  bundle(join(import.meta.dirname, 'kill-driver.ts'), driver)
  const journal = join(w.root, 'journal')
  writeFileSync(journal, '')
  const user = isRoot ? { uid: nobody, gid: nobody } : {}
  if (isRoot) execFileSync('chown', ['-R', `${nobody}:${nobody}`, w.root])
  return {
    run: (...operations) => {
      const args = [driver, w.dir, journal, strategy, ...operations]
      const env = { ...w.env, RALPH_KILL_DRIVER: '1' }
      const said = spawnSync(process.execPath, args, { env, encoding: 'utf8', ...user }).stderr
      // As the engine does, once the checkpoint is sure.
      if (operations.at(-1) === 'ensure') appendFileSync(journal, '{"type":"iteration.started","n":1}\n')
      return said
    },
    sh: (script) => {
      execFileSync('sh', ['-ec', script], { cwd: w.dir, env: w.env, ...user })
    },
  }
}
