// Gives the terminal back where the screens cannot do it any more: a shell beside them that waits for their end, by kill -9 too.
import { spawn } from 'node:child_process'
import { orphanedBytes } from '../print/modes.ts'

export interface Guard {
  /** The terminal is as the screens need it from now on; `out`: as it was. */
  readonly tell: (where: 'in' | 'out') => void
}

/**
 * Its pipe ends when the process that holds the other end does, before the shell around hears of it. How the terminal was is asked before it
 * is changed; where that was too late, it becomes a usual one. A shell that has put it in order meanwhile is not disturbed. It is in the
 * background by then: without TTOU it may set the modes all the same.
 */
const script = `exec 3>&1
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
was=$(stty -g <&3) || exit
where=out
while read -r word; do
  where=$word
  if [ "$where" = in ]; then
    raw=$(stty -g <&3)
    [ "$raw" = "$was" ] && was=sane
  fi
done
[ "$where" = in ] || exit 0
printf %s "$1"
[ "$(stty -g <&3)" = "$raw" ] && stty "$was" <&3`

export function standGuard(env: NodeJS.ProcessEnv): Guard {
  const guard = spawn('sh', ['-c', script, 'ralph', orphanedBytes], {
    cwd: '/',
    env,
    stdio: ['pipe', 'inherit', 'ignore'],
  })
  // Without one it is as with every other program.
  const without = (): undefined => undefined
  guard.on('error', without)
  guard.stdin.on('error', without)
  guard.unref()
  const pipe = guard.stdin as typeof guard.stdin & { unref?: () => void }
  pipe.unref?.()
  return { tell: (where) => void guard.stdin.write(`${where}\n`) }
}
