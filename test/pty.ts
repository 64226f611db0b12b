// A shell on a real terminal, read to its end.
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { spawn, type IPty, type IPtyForkOptions } from '@lydell/node-pty'

export interface ShellOn {
  readonly pty: IPty
  /** Once all that it said was read; no code where it was killed. */
  readonly ended: Promise<number | undefined>
}

/**
 * The command sets `code`, and the shell says it last. Then it waits until that was read: when the last program of a
 * terminal ends, what a busy reader has left in it is lost (libuv takes a short read before a hang-up for the end).
 */
export function shellOn(folder: string, command: string, options: IPtyForkOptions): ShellOn {
  const seen = join(folder, `seen-${randomUUID()}`)
  const lines = [
    'trap : INT',
    `mkfifo '${seen}'`,
    command,
    `echo "ended with $code" && read -r line < '${seen}'`,
  ]
  const pty = spawn('sh', ['-c', lines.join('\n')], options)
  let tail = ''
  let code: number | undefined
  pty.onData((data) => {
    tail = (tail + data).slice(-40)
    const [, said] = /ended with (\d+)\r\n$/.exec(tail) ?? []
    if (said === undefined || code !== undefined) return
    code = Number(said)
    void writeFile(seen, '\n')
  })
  return { pty, ended: new Promise((done) => pty.onExit(() => done(code))) }
}
