// Lets go of a terminal that is gone: at its end Node sets each terminal back as it was, and aborts where it cannot.
import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { isatty } from 'node:tty'

export function outliveTerminal(): void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  process.once('exit', () => {
    for (const fd of terminals) {
      if (isatty(fd)) continue
      closeSync(fd)
      // Takes the number that is free now; Node leaves alone what was opened anew.
      openSync(devNull, 'r+')
    }
  })
}
