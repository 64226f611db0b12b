// The rendezvous: a script rings and waits, the driver acts and answers. Whatever happens, happens at that line of the script.
import { closeSync, constants, existsSync, openSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

export interface Bell {
  close(): void
}

/** `answer` is called for one ring after the other, with the caller's pid and words; without an answer the caller waits for ever. */
export function hangBell(
  desk: string,
  answer: (pid: number, words: readonly string[]) => Promise<string | undefined>,
  onFault: (error: unknown) => void,
): Bell {
  const path = join(desk, 'bell')
  // A reader alone would see the end of the file whenever a script lets go of it.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const hold = openSync(path, constants.O_WRONLY)
  const replies = new Map<number, number>()
  const socket = new Socket({ fd, readable: true, writable: false })
  let rest = ''
  let queue = Promise.resolve()
  socket.on('data', (chunk: Buffer) => {
    const lines = `${rest}${chunk.toString('utf8')}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [pid = '', ...words] = line.split(' ')
      queue = queue.then(() => ring(Number(pid), words)).catch(onFault)
    }
  })
  const ring = async (pid: number, words: readonly string[]): Promise<void> => {
    const reply = await answer(pid, words)
    const at = join(desk, `reply.${pid}`)
    if (reply === undefined || !existsSync(at)) return
    // Held open: what is written is gone with the last that has the pipe open, and the script opens it after ringing.
    const to = replies.get(pid) ?? openSync(at, constants.O_RDWR | constants.O_NONBLOCK)
    replies.set(pid, to)
    writeSync(to, `${reply}\n`)
  }
  return {
    close() {
      socket.destroy()
      closeSync(hold)
      for (const to of replies.values()) closeSync(to)
    },
  }
}
