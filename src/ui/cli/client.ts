// How the terminal UI works with loops: it looks and asks by way of the App, and starts a loop as a process of its own.
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { RawFlags } from '../../config/load.ts'
import { flagOf, optionKeys } from '../../config/options.ts'
import { RalphError } from '../../core/error.ts'
import type { App } from '../app.ts'
import type { Client } from '../tui/client.ts'
import type { Context } from './context.ts'

export function clientOf({ io }: Pick<Context, 'io'>, app: App): Client {
  const notYet = (what: string): RalphError =>
    new RalphError('usage', `${what} is not known to this loop.`, { hint: '', exitCode: 2 })
  return {
    ...app,
    place: io.cwd.startsWith(`${homedir()}/`) ? `~${io.cwd.slice(homedir().length)}` : io.cwd,
    env: io.env,
    now: () => Date.now(),
    note: () => Promise.reject(notYet('A note')),
    skipWait: () => Promise.reject(notYet('An end to the wait')),
    start: async ({ change, how, flags }) => {
      const folder = mkdtempSync(join(tmpdir(), 'ralph-start-'))
      const said = join(folder, 'stderr')
      try {
        const child = spawn(process.execPath, [process.argv[1] ?? '', how, change, ...argsOf(flags)], {
          cwd: io.cwd,
          env: io.env,
          detached: true,
          stdio: ['ignore', 'ignore', openSync(said, 'w')],
        })
        child.unref()
        const ended = new Promise<number>((resolve) => {
          child.once('exit', (code) => resolve(code ?? 1))
        })
        for (;;) {
          const code = await Promise.race([ended, delay(lookMs, undefined)])
          const [report] = await app.observe.status(change).catch(() => [])
          if (report !== undefined && report.terminal_pid === child.pid) return { change }
          if (code !== undefined) return { refused: readFileSync(said, 'utf8').trim(), exitCode: code }
        }
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}

const lookMs = 100

function argsOf(flags: RawFlags): readonly string[] {
  const words = optionKeys.flatMap((key) => {
    const raw = flags[key]
    if (raw === undefined || raw === false) return []
    const values: readonly unknown[] = Array.isArray(raw) ? raw : [raw]
    return values.flatMap((value) => [flagOf(key), ...(value === true ? [] : [String(value)])])
  })
  return [...words, ...(flags.on_complete === undefined ? ['--on-complete', 'ask'] : []), '--no-tui']
}
